//! Request units as a limit, on a clock that moves only when the test says so.

use mayfly_cosmos::Options;
use serde_json::{Value, json};

use crate::harness::*;

async fn throttled() -> Account {
    Account::with(Options { throttle: true, ..Options::new(keys()) }).await
}

/// Makes items until one is refused; gives how many there are, what they cost, and the refusal.
async fn until_refused(account: &Account, prefix: &str, pk: Value) -> (usize, f64, Answer) {
    let mut spent = 0.0;
    for n in 0..5000 {
        let answer = account.item(json!({ "id": format!("{prefix}{n}"), "pk": pk })).await;
        if answer.status != 201 {
            return (n, spent, answer);
        }
        spent += answer.header("x-ms-request-charge").parse::<f64>().unwrap();
    }
    panic!("nothing was refused");
}

#[tokio::test]
async fn a_container_gets_what_it_is_provisioned_with() {
    let account = throttled().await;
    account.container(json!({}), &[(THROUGHPUT, "400")]).await.ok();
    let (count, spent, refused) = until_refused(&account, "a", json!("p")).await;
    assert!((400.0..410.0).contains(&spent), "{spent}");
    assert_eq!(refused.statuses(), (429, "3200"));
    assert!(refused.message().contains("Request rate is large."), "{}", refused.message());
    assert!(refused.message().contains(refused.header("x-ms-activity-id")));
    assert_eq!(refused.header("x-ms-request-charge"), "0");
    let wait: u64 = refused.header("x-ms-retry-after-ms").parse().unwrap();
    assert!((1..=25).contains(&wait), "{wait}");
    // Whoever waits as long as it is told gets through, and not before.
    account.world.advance_ms(wait - 1);
    assert_eq!(account.item(json!({ "id": "early", "pk": "p" })).await.status, 429);
    account.world.advance_ms(1);
    assert_eq!(account.item(json!({ "id": "due", "pk": "p" })).await.status, 201);
    // A refusal changed nothing.
    account.world.advance(1);
    let all = account.query("SELECT VALUE COUNT(1) FROM c", &[]).await.ok().json();
    assert_eq!(all["Documents"], json!([count + 1]));
    // A second later there is a second's worth again, and no more.
    account.world.advance(60);
    let (_, spent, _) = until_refused(&account, "b", json!("p")).await;
    assert!((400.0..410.0).contains(&spent), "{spent}");
}

#[tokio::test]
async fn reads_queries_and_feeds_pay_too() {
    let account = throttled().await;
    account.container(json!({}), &[(THROUGHPUT, "400")]).await.ok();
    until_refused(&account, "a", json!("p")).await;
    let key = (PK, r#"["p"]"#);
    let batch = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True"), key];
    let answers = [
        account.get("/dbs/db/colls/c/docs/a0", &[key]).await,
        account.get("/dbs/db/colls/c/docs", &[]).await,
        account.query("SELECT * FROM c", &[]).await,
        account.send("DELETE", "/dbs/db/colls/c/docs/a0", &[key], "").await,
        account.send("POST", "/dbs/db/colls/c/docs", &batch, r#"[{"operationType":"Read","id":"a0"}]"#).await,
        account.send("POST", "/dbs/db/colls/c/operations/partitionkeydelete", &[key], "").await,
    ];
    for answer in answers {
        assert_eq!(answer.statuses(), (429, "3200"));
    }
    // Metadata has a budget of its own in the service, and none here.
    assert_eq!(account.get("/dbs/db/colls/c", &[]).await.status, 200);
    assert_eq!(account.get("/dbs/db/colls/c/pkranges", &[]).await.status, 200);
}

#[tokio::test]
async fn a_new_offer_counts_at_once_and_autoscale_counts_by_its_most() {
    let account = throttled().await;
    let settings = ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":1000}"#);
    account.container(json!({}), &[settings]).await.ok();
    let (_, spent, _) = until_refused(&account, "a", json!("p")).await;
    assert!((1000.0..1010.0).contains(&spent), "{spent}");
    let mut offer = account.get("/offers", &[]).await.ok().json()["Offers"][0].clone();
    offer["content"]["offerAutopilotSettings"]["maxThroughput"] = json!(2000);
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    account.send("PUT", &path, &[], offer.to_string()).await.ok();
    account.world.advance(1);
    let (_, spent, _) = until_refused(&account, "b", json!("p")).await;
    assert!((1990.0..2010.0).contains(&spent), "{spent}");
}

#[tokio::test]
async fn containers_of_a_database_with_throughput_share_it() {
    let account = throttled().await;
    account.send("POST", "/dbs", &[(THROUGHPUT, "400")], r#"{"id":"shared"}"#).await.ok();
    let body = |id: &str| json!({ "id": id, "partitionKey": { "paths": ["/pk"] } }).to_string();
    for id in ["one", "two"] {
        account.send("POST", "/dbs/shared/colls", &[], body(id)).await.ok();
    }
    let mut written = Vec::new();
    for n in 0..200 {
        let path = format!("/dbs/shared/colls/{}/docs", ["one", "two"][n % 2]);
        let item = json!({ "id": n.to_string(), "pk": "p" }).to_string();
        written.push(account.send("POST", &path, &[(PK, r#"["p"]"#)], item).await.status);
    }
    let passed = written.iter().filter(|status| **status == 201).count();
    assert!((60..=80).contains(&passed), "{passed}");
    assert!(written[..passed].iter().all(|status| *status == 201), "both draw on one budget: {written:?}");
}

#[tokio::test]
async fn each_range_has_its_share() {
    let account = throttled().await;
    account.container(json!({}), &[(THROUGHPUT, "12000")]).await.ok();
    // The point writes of one logical partition draw on its range's half.
    let (_, spent, _) = until_refused(&account, "m", json!("p")).await;
    assert!((6_000.0..6_020.0).contains(&spent), "{spent}");
    // Another range still has its own.
    let passes = async |pk: u32| account.item(json!({ "id": "x", "pk": pk })).await.status;
    let mut seen = std::collections::BTreeSet::new();
    for pk in 0..20 {
        seen.insert(passes(pk).await);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [201, 429]);
}

#[tokio::test]
async fn purge_costs_nothing() {
    let account = throttled().await;
    account.container(json!({ "defaultTtl": 10 }), &[(THROUGHPUT, "400")]).await.ok();
    until_refused(&account, "a", json!("p")).await;
    account.world.advance(11);
    account.world.purge().await.unwrap();
    let (_, spent, _) = until_refused(&account, "b", json!("p")).await;
    assert!((400.0..410.0).contains(&spent), "{spent}");
}

#[tokio::test]
async fn nobody_is_held_back_unless_asked_for() {
    let account = Account::new().await;
    account.container(json!({}), &[(THROUGHPUT, "400")]).await.ok();
    for n in 0..200 {
        account.item(json!({ "id": n.to_string(), "pk": "p" })).await.ok();
    }
}
