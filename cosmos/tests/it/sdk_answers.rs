//! Answers that an SDK builds on: the requests are written as SDKs send them, the answers are as the service
//! gives them.

use mayfly_value::json::JsonLimits;
use serde_json::{Value, json};

use crate::harness::*;

const ITEMS: &str = "/dbs/db/colls/c/docs";
const KEY: (&str, &str) = (PK, r#"["a"]"#);
const PAGE: &str = "x-ms-max-item-count";
const CONTINUATION: &str = "x-ms-continuation";

async fn with_container() -> Account {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    account
}

/// Documents `0` to `count - 1`, each in a partition of its own.
async fn with_items(throughput: &str, count: usize) -> Account {
    let account = Account::new().await;
    account.container(json!({}), &[(THROUGHPUT, throughput)]).await.ok();
    for n in 0..count {
        account.item(json!({ "id": n.to_string(), "pk": format!("p{n}"), "n": n })).await.ok();
    }
    account
}

/// Asks with parameters, and headers beside those of a query.
async fn ask(account: &Account, query: &str, parameters: Value, extra: &[(&str, &str)]) -> Answer {
    let mut all = vec![(IS_QUERY, "True"), (CROSS, "True")];
    all.extend_from_slice(extra);
    let body = json!({ "query": query, "parameters": parameters }).to_string();
    account.send("POST", ITEMS, &all, body).await
}

#[tokio::test]
async fn a_null_parameter_is_null() {
    let account = with_container().await;
    account.item(json!({ "id": "null", "pk": "a", "n": null })).await.ok();
    account.item(json!({ "id": "one", "pk": "a", "n": 1 })).await.ok();
    account.item(json!({ "id": "none", "pk": "a" })).await.ok();
    for (filter, ids) in [("c.n = @n", vec!["null"]), ("c.n != @n", vec!["one"]), ("IS_NULL(@n)", vec![])] {
        let query = format!("SELECT VALUE c.id FROM c WHERE {filter} ORDER BY c.id");
        let found = |answer: Answer| answer.ok().json()["Documents"].clone();
        let null = found(ask(&account, &query, json!([{ "name": "@n", "value": null }]), &[]).await);
        let ids = if ids.is_empty() { vec!["none", "null", "one"] } else { ids };
        assert_eq!(null, json!(ids), "{filter}");
        let absent = found(ask(&account, &query, json!([{ "name": "@n" }]), &[]).await);
        assert_eq!(absent, json!([]), "{filter}: without a value it is undefined");
    }
}

#[tokio::test]
async fn a_parameter_without_its_sign_is_refused() {
    let account = with_container().await;
    let answer = ask(&account, "SELECT @n", json!([{ "name": "n", "value": 1 }]), &[]).await;
    answer.refused(400, "'n'");
}

#[tokio::test]
async fn the_latest_version_feed_has_envelopes_for_those_who_ask() {
    let account = with_container().await;
    account.item(json!({ "id": "new", "pk": "a", "n": 1 })).await.ok();
    account.item(json!({ "id": "old", "pk": "a", "n": 1 })).await.ok();
    let body = json!({ "id": "old", "pk": "a", "n": 2 }).to_string();
    account.send("PUT", &format!("{ITEMS}/old"), &[KEY], body).await.ok();
    let feed = [("A-IM", "Incremental feed"), (RANGE, "0")];
    let plain = account.get(ITEMS, &feed).await.ok().json();
    let format = ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15");
    let enveloped = account.get(ITEMS, &[feed[0], feed[1], format]).await.ok().json();
    let (plain, enveloped) = (plain["Documents"].as_array(), enveloped["Documents"].as_array());
    let (plain, enveloped) = (plain.unwrap(), enveloped.unwrap());
    assert_eq!(enveloped.len(), 2);
    for ((document, item), operation) in plain.iter().zip(enveloped).zip(["create", "replace"]) {
        assert_eq!(item["current"], *document);
        let metadata = json!({
            "lsn": document["_lsn"], "crts": document["_ts"], "operationType": operation,
        });
        assert_eq!(item["metadata"], metadata);
    }
}

#[tokio::test]
async fn the_log_of_all_versions_does_not_start_at_the_beginning() {
    let account = with_container().await;
    let log = [("A-IM", "Full-Fidelity Feed"), (RANGE, "0")];
    account.get(ITEMS, &log).await.refused(400, "All Versions and Deletes");
    let account = Account::new().await;
    account.container(json!({ "changeFeedPolicy": { "retentionDuration": 10 } }), &[]).await.ok();
    let since = ("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT");
    for start in [&log[..], &[log[0], log[1], since]] {
        let answer = account.get(ITEMS, start).await;
        answer.refused(400, "You must read the change feed from within the retention period.");
    }
}

#[tokio::test]
async fn a_partition_key_version_may_be_written_by_its_name() {
    for (sent, number) in [(json!("V1"), 1), (json!("V2"), 2), (json!(2), 2)] {
        let account = Account::new().await;
        let key = json!({ "paths": ["/pk"], "kind": "Hash", "version": sent });
        let made = account.container(json!({ "partitionKey": key }), &[]).await.ok().json();
        assert_eq!(made["partitionKey"]["version"], json!(number));
        account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    }
    let account = Account::new().await;
    for version in [json!("V3"), json!("2"), json!(3), json!([2])] {
        let key = json!({ "paths": ["/pk"], "kind": "Hash", "version": version });
        assert_eq!(account.container(json!({ "partitionKey": key }), &[]).await.status, 400, "{version}");
    }
}

#[tokio::test]
async fn policies_that_the_service_refuses() {
    let account = Account::new().await;
    let blank = json!({ "partitionKey": { "paths": ["/id ds"], "kind": "Hash" } });
    account
        .container(blank, &[])
        .await
        .refused(400, "Partition key paths must contain only valid characters");
    let bounds = json!({ "xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1 });
    let spatial = |bounds: Value| {
        json!({ "indexingPolicy": { "spatialIndexes":
            [{ "path": "/at/*", "types": ["Point"], "boundingBox": bounds }] } })
    };
    let answer = account.container(spatial(bounds), &[]).await;
    answer.refused(400, "boundingBox");
    answer.refused(400, "Geography");
    account.container(spatial(Value::Null), &[]).await.ok();
}

#[tokio::test]
async fn bulk_and_batch_leave_bodies_out_on_request() {
    let account = with_container().await;
    let minimal = ("Prefer", "return=minimal");
    let is_batch = ("x-ms-cosmos-is-batch-request", "True");
    for atomic in ["True", "False"] {
        let atomic_header = ("x-ms-cosmos-batch-atomic", atomic);
        let steps = json!([
            { "operationType": "Create", "resourceBody": { "id": atomic, "pk": "a" } },
            { "operationType": "Read", "id": atomic },
        ]);
        let headers = [KEY, minimal, is_batch, atomic_header];
        let answer = account.send("POST", ITEMS, &headers, steps.to_string()).await.ok().json();
        assert_eq!(answer[0]["statusCode"], json!(201));
        assert!(answer[0]["eTag"].is_string());
        assert_eq!(answer[0]["resourceBody"], Value::Null);
        assert_eq!(answer[1]["resourceBody"]["id"], json!(atomic), "what is read is given all the same");
    }
}

#[tokio::test]
async fn an_invalid_ttl_is_refused_also_where_nothing_expires() {
    let account = with_container().await;
    for ttl in [json!(0), json!(-10), json!(null), json!(2.5), json!("x"), json!(2_147_483_648_u64)] {
        let answer = account.item(json!({ "id": "1", "pk": "a", "ttl": ttl })).await;
        answer.refused(400, &format!("The input ttl '{}' is invalid", ttl.to_string().replace('"', "\\\"")));
    }
    account.item(json!({ "id": "1", "pk": "a", "ttl": 2_147_483_647 })).await.ok();
    let patch = json!([{ "op": "set", "path": "/ttl", "value": null }]).to_string();
    account.send("PATCH", &format!("{ITEMS}/1"), &[KEY], patch).await.refused(400, "The input ttl 'null'");
}

#[tokio::test]
async fn an_id_may_have_a_question_mark_that_is_not_encoded() {
    let account = with_container().await;
    for id in ["a?b", "a?b=c&d?"] {
        account.item(json!({ "id": id, "pk": "a", "n": 1 })).await.ok();
        let path = format!("{ITEMS}/{id}");
        assert_eq!(account.get(&path, &[KEY]).await.ok().json()["id"], json!(id));
        let encoded = format!("{ITEMS}/{}/", id.replace('?', "%3F"));
        assert_eq!(account.get(&encoded, &[KEY]).await.ok().json()["id"], json!(id));
        let body = json!({ "id": id, "pk": "a", "n": 2 }).to_string();
        assert_eq!(account.send("PUT", &path, &[KEY], body).await.ok().json()["n"], json!(2));
        assert_eq!(account.send("DELETE", &path, &[KEY], "").await.status, 204);
    }
    assert_eq!(account.get(&format!("{ITEMS}?x=1"), &[KEY]).await.ok().json()["_count"], json!(0));
}

#[tokio::test]
async fn a_request_that_is_too_large_is_told_as_the_backend_does() {
    let account = with_container().await;
    let large = json!({ "id": "1", "pk": "a", "text": "x".repeat(3 << 20) });
    account.item(large).await.refused(413, "Message: {\"Errors\":[\"Request size is too large\"]}\r\n");
}

/// A sorted query as clients send it to a range, with a condition to resume at.
fn for_a_range(top: &str, condition: &str, limit: &str) -> String {
    format!(
        "SELECT {top} c._rid, [{{\"item\": c.n}}] AS orderByItems, c AS payload\nFROM c\n\
         WHERE ({condition})\nORDER BY c.n\n{limit}"
    )
}

fn numbers(answer: &Answer) -> Vec<i64> {
    let body = answer.json();
    let number = |row: &Value| row["payload"]["n"].as_i64().unwrap();
    body["Documents"].as_array().unwrap().iter().map(number).collect()
}

#[tokio::test]
async fn a_sorted_query_of_a_range_goes_on_with_another_condition() {
    let account = with_items("400", 30).await;
    for (top, limit) in [("", ""), ("TOP 25", ""), ("", "OFFSET 0 LIMIT 25")] {
        let scope = [(RANGE, "0"), (PAGE, "10")];
        let first = account.query(&for_a_range(top, "true", limit), &scope).await.ok();
        assert_eq!(numbers(&first), (0..10).collect::<Vec<_>>());
        let token = first.header(CONTINUATION);
        for (condition, from) in [("c.n >= 12", 12), ("c.n >= 5", 10), ("true", 10)] {
            let text = for_a_range(top, condition, limit);
            let next = account.query(&text, &[scope[0], scope[1], (CONTINUATION, token)]).await.ok();
            assert_eq!(numbers(&next), (from..from + 10).collect::<Vec<_>>(), "{top} {limit} {condition}");
        }
        let other = for_a_range(top, "true", limit).replace("ORDER BY c.n", "ORDER BY c.n DESC");
        let refused = account.query(&other, &[scope[0], (CONTINUATION, token)]).await;
        refused.refused(400, "Invalid Continuation Token");
        let refused =
            account.query("SELECT * FROM c WHERE c.n >= 12", &[scope[0], (CONTINUATION, token)]).await;
        refused.refused(400, "Invalid Continuation Token");
    }
}

/// The plan that a client is given which can do `features`.
async fn plan(account: &Account, query: &str, features: &str) -> Value {
    let headers =
        [("x-ms-cosmos-is-query-plan-request", "True"), ("x-ms-cosmos-supported-query-features", features)];
    let body = json!({ "query": query }).to_string();
    account.send("POST", ITEMS, &headers, body).await.ok().json()
}

#[tokio::test]
async fn a_plan_says_what_the_query_does_however_many_ranges_there_are() {
    let all = "Aggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top, GroupBy, MultipleAggregates, \
               NonValueAggregate, NonStreamingOrderBy, CountIf, DCount";
    for throughput in ["400", "20000"] {
        let account = with_items(throughput, 1).await;
        let info = async |query: &str| plan(&account, query, all).await["queryInfo"].clone();
        let sorted = info("SELECT TOP 5 * FROM c ORDER BY c.n DESC").await;
        assert_eq!((&sorted["orderBy"], &sorted["top"]), (&json!(["Descending"]), &json!(5)));
        assert!(sorted["rewrittenQuery"].as_str().unwrap().contains("orderByItems"), "{sorted}");
        let limited = info("SELECT * FROM c OFFSET 3 LIMIT 4").await;
        assert_eq!((&limited["offset"], &limited["limit"]), (&json!(3), &json!(4)));
        let grouped = info("SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k").await;
        assert_eq!(grouped["groupByExpressions"], json!(["c.k"]));
        assert_eq!(grouped["groupByAliasToAggregateType"], json!({ "k": null, "n": "Count" }));
        assert_eq!(info("SELECT VALUE SUM(c.n) FROM c").await["aggregates"], json!(["Sum"]));
        assert_eq!(info("SELECT DISTINCT c.n FROM c").await["distinctType"], json!("Unordered"));
        let plain = info("SELECT * FROM c WHERE c.n = 1").await;
        assert_eq!((&plain["rewrittenQuery"], &plain["orderBy"]), (&json!(""), &json!([])));
    }
}

#[tokio::test]
async fn what_a_client_cannot_merge_is_passed_on_to_the_one_range() {
    let query = "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k";
    let account = with_items("400", 1).await;
    let plan = plan(&account, query, "OrderBy, Top").await;
    assert_eq!(plan["queryInfo"]["groupByExpressions"], json!([]));
    assert_eq!(plan["queryInfo"]["rewrittenQuery"], json!(""));
    let account = with_items("20000", 1).await;
    let features = ("x-ms-cosmos-supported-query-features", "OrderBy, Top");
    let headers = [("x-ms-cosmos-is-query-plan-request", "True"), features];
    let refused = account.send("POST", ITEMS, &headers, json!({ "query": query }).to_string()).await;
    refused.refused(400, "GroupBy");
}

#[tokio::test]
async fn a_continuation_of_all_ranges_is_an_array_with_a_range() {
    for throughput in ["400", "20000"] {
        let account = with_items(throughput, 10).await;
        for query in ["SELECT VALUE c.n FROM c", "SELECT VALUE c.n FROM c ORDER BY c.n"] {
            let (mut found, mut token) = (Vec::new(), String::new());
            loop {
                let answer = account.query(query, &[(PAGE, "3"), (CONTINUATION, &token)]).await.ok();
                found.extend(answer.json()["Documents"].as_array().unwrap().clone());
                token = answer.header(CONTINUATION).to_owned();
                if token.is_empty() {
                    break;
                }
                let told: Value = serde_json::from_str(&token).unwrap();
                assert_eq!(told.as_array().unwrap().len(), 1);
                assert_eq!(told[0]["range"], json!({ "min": "", "max": "FF" }));
                assert!(told[0]["token"].is_string());
            }
            assert_eq!(found.len(), 10, "{query}");
        }
        let one = account.query("SELECT * FROM c", &[(PAGE, "1"), (RANGE, "0")]).await.ok();
        assert!(!one.header(CONTINUATION).starts_with('['), "a range's own is the token itself");
    }
}

#[tokio::test]
async fn rows_that_an_offset_leaves_out_make_no_pages() {
    let account = with_items("20000", 20).await;
    let first = account.query("SELECT * FROM c OFFSET 19 LIMIT 1", &[(PAGE, "2")]).await.ok();
    assert_eq!(first.json()["_count"], json!(1));
    assert_eq!(first.header(CONTINUATION), "");
    let first = account.query("SELECT * FROM c OFFSET 15 LIMIT 5", &[(PAGE, "3")]).await.ok();
    assert_eq!(first.json()["_count"], json!(3));
    let token = first.header(CONTINUATION);
    let last =
        account.query("SELECT * FROM c OFFSET 15 LIMIT 5", &[(PAGE, "3"), (CONTINUATION, token)]).await;
    assert_eq!((last.json()["_count"].clone(), last.header(CONTINUATION)), (json!(2), ""));
}

/// The names of an object's members, in their order.
fn names(text: &[u8]) -> Vec<String> {
    let document = mayfly_value::json::parse_document(text, JsonLimits::default()).unwrap();
    document.iter().map(|member| member.unwrap().0.as_str().to_owned()).collect()
}

#[tokio::test]
async fn what_the_server_adds_keeps_its_place_when_an_item_is_sent_back() {
    const ADDED: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];
    let account = with_container().await;
    let created = account.item(json!({ "id": "a", "pk": "a", "n": 1 })).await.ok();
    assert_eq!(names(&created.body), [&["id", "n", "pk"][..], &ADDED].concat());
    // A client adds a property to what it has read.
    let text = String::from_utf8(created.body.to_vec()).unwrap();
    let sent = text.trim_end_matches('}').to_owned() + ",\"z\":[1]}";
    let replaced = account.send("PUT", "/dbs/db/colls/c/docs/a", &[KEY], sent).await.ok();
    let whole = [&["id", "n", "pk"][..], &ADDED, &["z"]].concat();
    assert_eq!(names(&replaced.body), whole);
    let own = |answer: &Answer| (answer.json()["_etag"].clone(), answer.json()["_rid"].clone());
    assert_eq!(own(&replaced), (json!(replaced.header("etag")), own(&created).1));
    let read = account.get("/dbs/db/colls/c/docs/a", &[KEY]).await.ok();
    assert_eq!(read.body, replaced.body);
    let text = String::from_utf8(read.body.to_vec()).unwrap();
    for query in ["SELECT * FROM c", "SELECT VALUE c FROM c ORDER BY c.n", "SELECT DISTINCT VALUE c FROM c"] {
        let answer = ask(&account, query, json!([]), &[]).await.ok();
        assert!(String::from_utf8_lossy(&answer.body).contains(&text), "{query}: {:?}", answer.body);
    }
    let feed = account.get(ITEMS, &[("a-im", "Incremental Feed"), (RANGE, "0")]).await.ok();
    assert!(String::from_utf8_lossy(&feed.body).contains(text.trim_end_matches('}')), "{:?}", feed.body);
    for (filter, ids) in
        [("IS_NULL(c._etag)", json!([])), ("c._etag = @e", json!(["a"])), ("c.z[0] = 1", json!(["a"]))]
    {
        let query = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        let parameters = json!([{ "name": "@e", "value": read.header("etag") }]);
        assert_eq!(ask(&account, &query, parameters, &[]).await.ok().json()["Documents"], ids, "{filter}");
    }
    // What is sent back as it is, and what was never whole, comes as ever.
    let again = account.send("PUT", "/dbs/db/colls/c/docs/a", &[KEY], text).await.ok();
    assert_eq!(names(&again.body), whole);
    let part = json!({ "id": "b", "_etag": "x", "pk": "a" });
    assert_eq!(names(&account.item(part).await.ok().body), [&["id", "pk"][..], &ADDED].concat());
}
