//! Session tokens and consistency levels.

use serde_json::json;

use crate::harness::*;

async fn with_item(throughput: &str) -> Account {
    let account = Account::new().await;
    account.container(json!({}), &[(THROUGHPUT, throughput)]).await.ok();
    account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    account
}

const ITEM: &str = "/dbs/db/colls/c/docs/1";
const ITEMS: &str = "/dbs/db/colls/c/docs";
const AHEAD: &str = "The read session is not available for the input session token.";

#[tokio::test]
async fn a_token_of_an_answer_is_good_for_the_next_read() {
    let account = with_item("400").await;
    let written = account.item(json!({ "id": "2", "pk": "a" })).await.ok();
    let (version, commit) = written.header(SESSION).strip_prefix("0:").unwrap().split_once('#').unwrap();
    assert!(version.parse::<u32>().is_ok(), "{version}");
    assert_eq!(commit, "2");
    let read = account.get(ITEM, &[(PK, r#"["a"]"#), (SESSION, written.header(SESSION))]).await.ok();
    assert_eq!(read.header(SESSION), written.header(SESSION));
}

#[tokio::test]
async fn every_read_with_a_token_ahead_of_the_server_is_refused() {
    let account = with_item("400").await;
    let (key, ahead) = ((PK, r#"["a"]"#), (SESSION, "0:-1#9"));
    let answers = [
        account.get(ITEM, &[key, ahead]).await,
        account.get(ITEMS, &[ahead]).await,
        account.get(ITEMS, &[ahead, ("A-IM", "Incremental Feed")]).await,
        account.query("SELECT * FROM c", &[ahead]).await,
    ];
    for answer in answers {
        assert_eq!(answer.statuses(), (404, "1002"));
        answer.refused(404, AHEAD);
    }
}

#[tokio::test]
async fn a_token_ahead_is_no_matter_to_a_write_or_to_a_weaker_level() {
    let account = with_item("400").await;
    let (key, ahead) = ((PK, r#"["a"]"#), (SESSION, "0:-1#9"));
    let put = account.send("PUT", ITEM, &[key, ahead], r#"{"id":"1","pk":"a"}"#).await;
    assert_eq!(put.status, 200);
    for level in ["Eventual", "ConsistentPrefix", "eventual"] {
        assert_eq!(account.get(ITEM, &[key, ahead, (LEVEL, level)]).await.status, 200, "{level}");
    }
    assert_eq!(account.get(ITEM, &[key, ahead, (LEVEL, "Session")]).await.status, 404);
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_refused() {
    let account = with_item("400").await;
    for token in ["0", "abc", "0:-1#x", "0:-1#1,,"] {
        let answer = account.get(ITEM, &[(PK, r#"["a"]"#), (SESSION, token)]).await;
        answer.refused(400, &format!("The session token provided '{token}' is invalid."));
    }
    assert_eq!(account.get(ITEM, &[(PK, r#"["a"]"#), (SESSION, "")]).await.status, 200);
}

#[tokio::test]
async fn a_level_beyond_the_accounts_is_refused() {
    let account = with_item("400").await;
    for level in ["Strong", "BoundedStaleness"] {
        let answer = account.get(ITEM, &[(PK, r#"["a"]"#), (LEVEL, level)]).await;
        answer.refused(
            400,
            &format!(
                "ConsistencyLevel {level} specified in the request is invalid when service is configured with \
                 consistency level Session."
            ),
        );
    }
    let answer = account.get(ITEM, &[(PK, r#"["a"]"#), (LEVEL, "Sometimes")]).await;
    answer.refused(400, "'x-ms-consistency-level' is invalid");
}

#[tokio::test]
async fn each_range_counts_for_itself() {
    let account = with_item("11000").await;
    // Over several ranges, one key after another until each range has an item.
    let mut written = std::collections::BTreeMap::new();
    for n in 0..40 {
        let answer = account.item(json!({ "id": format!("i{n}"), "pk": n })).await.ok();
        written.insert(answer.header(RANGE).to_owned(), (n, answer.header(SESSION).to_owned()));
    }
    assert_eq!(written.keys().collect::<Vec<_>>(), ["0", "1"]);
    for (range, (n, token)) in &written {
        assert!(token.starts_with(&format!("{range}:")), "{token}");
        let path = format!("{ITEMS}/i{n}");
        let key = format!("[{n}]");
        assert_eq!(account.get(&path, &[(PK, &key), (SESSION, token)]).await.status, 200);
        // What the other range has not reached is no matter here.
        let other = format!("{}:-1#999,{token}", 1 - range.parse::<u16>().unwrap());
        assert_eq!(account.get(&path, &[(PK, &key), (SESSION, &other)]).await.status, 200);
        assert_eq!(account.get(ITEMS, &[(SESSION, &other)]).await.statuses(), (404, "1002"));
        let mine = format!("{range}:-1#999");
        assert_eq!(account.get(&path, &[(PK, &key), (SESSION, &mine)]).await.statuses(), (404, "1002"));
    }
    // An answer from all ranges says how far each has got; one from a range speaks of that range.
    let tokens: Vec<_> = written.values().map(|(_, token)| token.clone()).collect();
    let all = tokens.join(",");
    assert_eq!(account.query("SELECT * FROM c", &[]).await.ok().header(SESSION), all);
    assert_eq!(account.get(ITEMS, &[]).await.ok().header(SESSION), all);
    assert_eq!(account.get(ITEMS, &[(RANGE, "1")]).await.ok().header(SESSION), tokens[1]);
    assert_eq!(account.get(ITEMS, &[(SESSION, &all)]).await.status, 200);
}

#[tokio::test]
async fn a_token_of_another_container_is_passed_over() {
    let account = with_item("400").await;
    let many = account.item(json!({ "id": "2", "pk": "a" })).await.ok();
    account.send("DELETE", "/dbs/db/colls/c", &[], "").await.ok();
    account.container(json!({}), &[]).await.ok();
    let first = account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    let (old, new) = (many.header(SESSION), first.header(SESSION));
    assert_eq!(account.get(ITEM, &[(PK, r#"["a"]"#), (SESSION, old)]).await.status, 200);
    // Clients that hold both keep the one with the higher version: the later container's.
    let version = |token: &str| token[2..].split('#').next().unwrap().parse::<u32>().unwrap();
    assert!(version(new) > version(old));
}
