//! Partition key ranges: how many a container has, and what clients see when they split.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::*;

const RANGES: &str = "/dbs/db/colls/c/pkranges";
const ITEMS: &str = "/dbs/db/colls/c/docs";
const CONTINUATION: &str = "x-ms-continuation";
const AUTOSCALE: &str = "x-ms-cosmos-offer-autopilot-settings";
const INCREMENTAL: (&str, &str) = ("A-IM", "Incremental feed");

/// The ids of the ranges that an answer has, with their parents.
fn shown(answer: &Answer) -> Vec<(String, Vec<String>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let body = answer.json();
    let ranges = body["PartitionKeyRanges"].as_array().unwrap().iter();
    ranges
        .map(|range| (text(&range["id"]), range["parents"].as_array().unwrap().iter().map(text).collect()))
        .collect()
}

async fn ids(account: &Account) -> Vec<String> {
    shown(&account.get(RANGES, &[]).await.ok()).into_iter().map(|(id, _)| id).collect()
}

/// Sets the throughput of the one container that has an offer.
async fn provision(account: &Account, content: Value) -> Answer {
    let offers = account.get("/offers", &[]).await.ok().json();
    let mut offer = offers["Offers"][0].clone();
    offer["content"] = content;
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    account.send("PUT", &path, &[], offer.to_string()).await
}

async fn raise(account: &Account, units: u32) {
    let answer = provision(account, json!({ "offerThroughput": units })).await.ok();
    assert_eq!(answer.header("x-ms-offer-replace-pending"), "false");
}

async fn with_items(throughput: &str, count: usize) -> Account {
    let account = Account::new().await;
    account.container(json!({}), &[(THROUGHPUT, throughput)]).await.ok();
    for n in 0..count {
        account.item(json!({ "id": format!("i{n:02}"), "pk": n, "n": n % 7 })).await.ok();
    }
    account
}

fn item_ids(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let documents = body["Documents"].as_array().unwrap().iter();
    documents.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_container_has_a_range_for_each_6000_units_that_are_begun() {
    for (throughput, count) in
        [("400", 1), ("6000", 1), ("6100", 2), ("11000", 2), ("20000", 4), ("25000", 5), ("50000", 9)]
    {
        let account = with_items(throughput, 0).await;
        assert_eq!(ids(&account).await.len(), count, "{throughput}");
    }
    let account = Account::new().await;
    account.container(json!({}), &[(AUTOSCALE, r#"{"maxThroughput":13000}"#)]).await.ok();
    assert_eq!(ids(&account).await.len(), 3);
}

#[tokio::test]
async fn raising_throughput_splits_ranges_and_lowering_it_merges_none() {
    let account = with_items("11000", 0).await;
    let first = account.get(RANGES, &[INCREMENTAL]).await.ok();
    let etag = first.header("etag").to_owned();
    // Two ranges serve up to 20,000.
    raise(&account, 20_000).await;
    assert_eq!(account.get(RANGES, &[INCREMENTAL, ("If-None-Match", &etag)]).await.status, 304);
    raise(&account, 25_000).await;
    let parents = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let children = [("2".to_owned(), parents(&["0"])), ("3".to_owned(), parents(&["0"]))];
    let whole = account.get(RANGES, &[]).await.ok();
    assert_eq!(shown(&whole)[..2], children);
    assert_eq!(shown(&whole)[2..], [("1".to_owned(), vec![])]);
    let body = whole.json();
    let bounds = body["PartitionKeyRanges"].as_array().unwrap().iter();
    let bounds: Vec<_> = bounds.map(|range| (&range["minInclusive"], &range["maxExclusive"])).collect();
    assert_eq!(
        bounds,
        [(&json!(""), &json!("10")), (&json!("10"), &json!("20")), (&json!("20"), &json!("FF"))]
    );
    // A client that knows the ranges before is told what came since, and one that does not ask for that all
    // of them.
    let news = account.get(RANGES, &[INCREMENTAL, ("If-None-Match", &etag)]).await.ok();
    assert_eq!(shown(&news), children);
    assert_eq!(shown(&account.get(RANGES, &[("If-None-Match", &etag)]).await.ok()), shown(&whole));
    let now = news.header("etag");
    assert_eq!(now, whole.header("etag"));
    assert_eq!(account.get(RANGES, &[INCREMENTAL, ("If-None-Match", now)]).await.status, 304);
    // An etag of another container, or none of ours, is no reason to leave anything out.
    for foreign in ["\"9999.0\"", "\"x\"", "*"] {
        let answer = account.get(RANGES, &[INCREMENTAL, ("If-None-Match", foreign)]).await.ok();
        assert_eq!(shown(&answer), shown(&whole), "{foreign}");
    }
    raise(&account, 400).await;
    assert_eq!(ids(&account).await, ["2", "3", "1"]);
    // The most that a container may scale to counts as well, and grandchildren name all that they came of.
    provision(&account, json!({ "offerAutopilotSettings": { "maxThroughput": 41_000 } })).await.ok();
    let whole = shown(&account.get(RANGES, &[]).await.ok());
    assert_eq!(whole.iter().map(|(id, _)| &id[..]).collect::<Vec<_>>(), ["4", "5", "3", "6", "7"]);
    assert_eq!((&whole[0].1, &whole[4].1), (&parents(&["0", "2"]), &parents(&["1"])));
}

#[tokio::test]
async fn a_range_that_has_split_is_gone_for_every_request_that_names_it() {
    let account = with_items("400", 10).await;
    raise(&account, 11_000).await;
    let bulk =
        json!([{ "operationType": "Upsert", "partitionKey": "[1]", "resourceBody": { "id": "x", "pk": 1 } }]);
    let batch =
        [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "False"), (RANGE, "0")];
    for answer in [
        account.get(ITEMS, &[(RANGE, "0")]).await,
        account.get(ITEMS, &[(RANGE, "0"), INCREMENTAL]).await,
        account.query("SELECT * FROM c", &[(RANGE, "0")]).await,
        account
            .query("SELECT * FROM c", &[(RANGE, "0"), ("x-ms-start-epk", "10"), ("x-ms-end-epk", "30")])
            .await,
        account.send("POST", ITEMS, &batch, bulk.to_string()).await,
    ] {
        assert_eq!(answer.statuses(), (410, "1002"), "{answer:?}");
    }
    assert_eq!(account.get(ITEMS, &[(RANGE, "1")]).await.status, 200);
}

#[tokio::test]
async fn what_was_begun_before_a_split_goes_on_in_the_children() {
    const QUERIES: [&str; 4] = [
        "SELECT * FROM c",
        "SELECT * FROM c ORDER BY c.n",
        "SELECT * FROM c WHERE c.n > 1 ORDER BY c.n DESC",
        "SELECT * FROM c WHERE c.n = 3",
    ];
    let few = ("x-ms-max-item-count", "3");
    for query in QUERIES {
        let account = with_items("400", 40).await;
        let expected: BTreeSet<_> = item_ids(&account.query(query, &[]).await.ok()).into_iter().collect();
        let first = account.query(query, &[(RANGE, "0"), few]).await.ok();
        let mut found = item_ids(&first);
        raise(&account, 35_000).await;
        for range in ids(&account).await {
            let mut token = first.header(CONTINUATION).to_owned();
            while !token.is_empty() {
                let page = account.query(query, &[(RANGE, &range), few, (CONTINUATION, &token)]).await.ok();
                assert_eq!(page.header(RANGE), range);
                found.extend(item_ids(&page));
                token = page.header(CONTINUATION).to_owned();
            }
        }
        assert_eq!(found.len(), expected.len(), "{query}: none is given twice");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{query}");
    }
    // The list of items and the change feed.
    let account = with_items("400", 40).await;
    let list = account.get(ITEMS, &[few]).await.ok();
    let feed = account.get(ITEMS, &[INCREMENTAL, few, (RANGE, "0")]).await.ok();
    let (mut listed, mut fed) = (item_ids(&list), item_ids(&feed));
    raise(&account, 25_000).await;
    account.item(json!({ "id": "new", "pk": "new" })).await.ok();
    for range in ids(&account).await {
        let mut token = list.header(CONTINUATION).to_owned();
        while !token.is_empty() {
            let page = account.get(ITEMS, &[(RANGE, &range), few, (CONTINUATION, &token)]).await.ok();
            listed.extend(item_ids(&page));
            token = page.header(CONTINUATION).to_owned();
        }
        let mut etag = feed.header("etag").to_owned();
        loop {
            let at = [INCREMENTAL, few, (RANGE, &range), ("If-None-Match", &etag)];
            let page = account.get(ITEMS, &at).await;
            if page.status == 304 {
                break;
            }
            fed.extend(item_ids(&page));
            etag = page.header("etag").to_owned();
        }
    }
    let all: Vec<_> = (0..40).map(|n| format!("i{n:02}")).chain(["new".to_owned()]).collect();
    fed.sort();
    assert_eq!(fed, all);
    // Where the list stands is a place among hashes, so what was written before it is not in it.
    listed.retain(|id| id != "new");
    listed.sort();
    assert_eq!(listed, all[..40]);
}

#[tokio::test]
async fn tokens_of_a_range_hold_for_those_that_came_of_it() {
    let account = with_items("400", 10).await;
    raise(&account, 11_000).await;
    let key = (PK, "[3]");
    let read = async |token: &str| account.get("/dbs/db/colls/c/docs/i03", &[key, (SESSION, token)]).await;
    assert_eq!(read("0:-1#10").await.status, 200);
    assert_eq!(read("0:-1#11").await.statuses(), (404, "1002"));
    let here = read("0:-1#10").await;
    let range = here.header(RANGE).to_owned();
    assert!(["1", "2"].contains(&&*range) && here.header(SESSION).starts_with(&format!("{range}:")));
    assert_eq!(read(&format!("{range}:-1#11")).await.statuses(), (404, "1002"));
    // An answer from the whole container speaks of both.
    let whole = account.query("SELECT * FROM c", &[]).await.ok();
    let ranges: Vec<_> = whole.header(SESSION).split(',').map(|part| &part[..2]).collect();
    assert_eq!(ranges, ["1:", "2:"]);
}

#[tokio::test]
async fn queries_and_statistics_of_split_ranges_are_those_of_the_whole() {
    let account = with_items("400", 40).await;
    let asked = [("x-ms-documentdb-populatepartitionstatistics", "True")];
    let sum = |answer: &Answer, name: &str| -> u64 {
        let body = answer.json();
        body["statistics"].as_array().unwrap().iter().map(|range| range[name].as_u64().unwrap()).sum()
    };
    raise(&account, 25_000).await;
    let statistics = account.get("/dbs/db/colls/c", &asked).await.ok();
    assert_eq!(statistics.json()["statistics"].as_array().unwrap().len(), 3);
    assert_eq!(sum(&statistics, "documentCount"), 40);
    assert_eq!(sum(&statistics, "sampledDistinctPartitionKeyCount"), 40);
    let mut counted = 0;
    for range in ids(&account).await {
        let answer = account.query("SELECT VALUE COUNT(1) FROM c", &[(RANGE, &range)]).await.ok();
        counted += answer.json()["Documents"][0].as_u64().unwrap();
    }
    assert_eq!(counted, 40);
    // Keys of two ranges, and of all.
    let keys = [
        ("x-ms-start-epk", "08"),
        ("x-ms-end-epk", "2A"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
    ];
    let some = item_ids(&account.query("SELECT * FROM c", &keys).await.ok());
    assert!((5..40).contains(&some.len()), "{some:?}");
    let one =
        item_ids(&account.query("SELECT * FROM c", &[keys[0], keys[1], keys[2], (RANGE, "2")]).await.ok());
    assert!(!one.is_empty() && one.len() < some.len() && one.iter().all(|id| some.contains(id)));
    // A plan for several ranges tells the client to merge.
    let plan =
        [("x-ms-cosmos-is-query-plan-request", "True"), ("x-ms-cosmos-supported-query-features", "OrderBy")];
    let plan = account.query("SELECT * FROM c ORDER BY c.n", &plan).await.ok().json();
    assert_eq!(plan["queryInfo"]["orderBy"], json!(["Ascending"]));
}
