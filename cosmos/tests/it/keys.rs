//! Who is let in, with which key or token, to what, and what the others are told.

use mayfly_cosmos::{
    Options,
    auth::{Key, Keys},
    http_date,
};
use mayfly_engine::{Clock as _, SystemClock};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::harness::*;

fn other(text: &str) -> Key {
    Key::from_base64(text).unwrap()
}

#[tokio::test]
async fn each_key_opens_what_it_should() {
    let (second, reader, foreign) = (other("c2Vjb25k"), other("cmVhZGVy"), other("Zm9yZWlnbg=="));
    let all = Keys { primary: key(), secondary: Some(second.clone()), read_only: Some(reader.clone()) };
    let account = Account::with(Options::new(all)).await;
    account.container(json!({}), &[]).await.ok();
    let with = async |key: &Key, verb: &str, path: &str, extra: &[(&str, &str)], body: &str| {
        account.raw(signed(key, verb, path, extra, body.to_owned())).await
    };
    let items = "/dbs/db/colls/c/docs";
    let pk = (PK, r#"["a"]"#);
    let item = r#"{"id":"1","pk":"a"}"#;
    assert_eq!(with(&second, "POST", items, &[pk], item).await.status, 201);
    assert_eq!(with(&reader, "GET", &format!("{items}/1"), &[pk], "").await.status, 200);
    let query = [(IS_QUERY, "true"), (CROSS, "true")];
    assert_eq!(with(&reader, "POST", items, &query, r#"{"query":"SELECT * FROM c"}"#).await.status, 200);
    let wrong = "The input authorization token can't serve the request. The wrong key is being used or the expected \
                 payload is not built as per the protocol.";
    with(&reader, "POST", items, &[pk], item).await.refused(401, wrong);
    with(&reader, "DELETE", &format!("{items}/1"), &[pk], "").await.refused(401, wrong);
    let answer = with(&foreign, "GET", "/dbs/db", &[], "").await;
    answer.refused(401, wrong);
    assert!(answer.message().contains(r"payload to sign: 'get\ndbs\ndbs/db\n"), "{}", answer.message());
}

#[tokio::test]
async fn what_is_missing_or_malformed_is_said() {
    let account = Account::new().await;
    let date = http_date::format(SystemClock.now().seconds());
    let dated = ("x-ms-date", date.as_str());
    let ask = async |all: &[(&str, &str)]| account.raw(request("GET", "/dbs", all, "")).await;
    ask(&[dated]).await.refused(401, "Required Header authorization is missing.");
    for token in [
        "x",
        "type=master",
        "type=none&ver=1.0&sig=AAAA",
        "type=master&ver=2.0&sig=AAAA",
        "type=master&ver=1.0&sig=!",
    ] {
        ask(&[dated, ("authorization", token)]).await.refused(401, "doesn't confirm to the required format");
    }
    let token = ("authorization", "type=master&ver=1.0&sig=AAAA");
    ask(&[token]).await.refused(401, "Authorization token mandates Date header.");
    ask(&[token, ("x-ms-date", "today")]).await.refused(401, "RFC 1123 style date format");
}

#[tokio::test]
async fn a_signature_lasts_a_quarter_of_an_hour() {
    let account = Account::new().await;
    let now = SystemClock.now().seconds();
    for (age, status) in [(0, 200), (14 * 60, 200), (-14 * 60, 200), (16 * 60, 403), (-16 * 60, 403)] {
        let date = http_date::format(now.saturating_add_signed(-age));
        let answer = account.raw(signed_at(&key(), &date, "GET", "/dbs", &[], "")).await;
        assert_eq!(answer.status, status, "{age}");
        if status == 403 {
            assert_eq!(answer.statuses(), (403, ""));
            answer.refused(403, "The authorization token is not valid at the current time.");
        }
    }
}

#[tokio::test]
async fn rids_serve_as_well_as_names() {
    let account = Account::new().await;
    let container = account.container(json!({}), &[]).await.ok().json();
    let item = account.item(json!({ "id": "1", "pk": "a" })).await.ok().json();
    for link in [&container["_self"], &item["_self"]] {
        let path = format!("/{}", link.as_str().unwrap());
        let answer = account.get(&path, &[(PK, r#"["a"]"#)]).await.ok();
        assert_eq!(answer.json()["_self"], *link);
    }
    let ranges = format!("/{}pkranges", container["_self"].as_str().unwrap());
    assert_eq!(account.get(&ranges, &[]).await.ok().json()["_count"], 1);
}

/// A permission's token, ready to be sent.
async fn token(account: &Account, permission: Value, extra: &[(&str, &str)]) -> String {
    let made = account.send("POST", "/dbs/db/users/u/permissions", extra, permission.to_string()).await.ok();
    utf8_percent_encode(made.json()["_token"].as_str().unwrap(), NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn a_token_reaches_what_its_permission_says() {
    let account = Account::new().await;
    let made = account.container(json!({}), &[]).await.ok();
    let other = json!({ "id": "other", "partitionKey": { "paths": ["/pk"] } }).to_string();
    account.send("POST", "/dbs/db/colls", &[], other).await.ok();
    account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    account.item(json!({ "id": "1", "pk": "b" })).await.ok();
    account.send("POST", "/dbs/db/users", &[], r#"{"id":"u"}"#).await.ok();
    let permission = |id: &str, mode: &str, resource: &str| json!({ "id": id, "permissionMode": mode, "resource": resource });
    let ask = async |token: &str, verb: &str, path: &str, pk: &str, body: &'static str| {
        account.raw(request(verb, path, &[("authorization", token), (PK, pk)], body)).await.status
    };
    let (items, item) = ("/dbs/db/colls/c/docs", "/dbs/db/colls/c/docs/1");
    let new = r#"{"id":"2","pk":"a"}"#;

    let reading = token(&account, permission("r", "Read", "dbs/db/colls/c"), &[]).await;
    assert_eq!(ask(&reading, "GET", "/", "[]", "").await, 200);
    assert_eq!(ask(&reading, "GET", "/dbs/db/colls/c", "[]", "").await, 200);
    assert_eq!(ask(&reading, "GET", "/dbs/db/colls/c/pkranges", "[]", "").await, 200);
    assert_eq!(ask(&reading, "GET", item, r#"["a"]"#, "").await, 200);
    assert_eq!(ask(&reading, "POST", items, r#"["a"]"#, new).await, 403);
    assert_eq!(ask(&reading, "GET", "/dbs/db/colls/other", "[]", "").await, 403);
    assert_eq!(ask(&reading, "GET", "/dbs/db", "[]", "").await, 403);
    assert_eq!(ask(&reading, "GET", "/offers", "[]", "").await, 403);
    // One permission of a user for a resource.
    let twice = permission("again", "All", "dbs/db/colls/c").to_string();
    assert_eq!(account.send("POST", "/dbs/db/users/u/permissions", &[], twice).await.status, 409);
    account.send("DELETE", "/dbs/db/users/u/permissions/r", &[], "").await.ok();

    let mut bound = permission("w", "All", "dbs/db/colls/c");
    bound["resourcePartitionKey"] = json!(["a"]);
    let writing = token(&account, bound, &[]).await;
    assert_eq!(ask(&writing, "POST", items, r#"["a"]"#, new).await, 201);
    assert_eq!(ask(&writing, "GET", item, r#"["b"]"#, "").await, 403);
    assert_eq!(ask(&writing, "DELETE", item, r#"["b"]"#, "").await, 403);
    let query = [("authorization", writing.as_str()), (IS_QUERY, "true"), (CROSS, "true")];
    let all = account.raw(request("POST", items, &query, r#"{"query":"SELECT * FROM c"}"#)).await;
    all.refused(403, "Insufficient permissions provided in the authorization header");

    // A container made again under the same name is another one.
    account.send("DELETE", "/dbs/db/colls/c", &[], "").await.ok();
    let again = account.container(json!({}), &[]).await.ok();
    assert_ne!(again.json()["_rid"], made.json()["_rid"]);
    assert_eq!(ask(&writing, "GET", item, r#"["a"]"#, "").await, 403);
    let forged = writing.replace("%3B", "%3BAAAA");
    assert_eq!(ask(&forged, "GET", item, r#"["a"]"#, "").await, 401);
}
