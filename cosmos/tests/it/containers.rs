//! Containers: what they hold, and what clients are told about it.

use mayfly_cosmos::Rid;
use mayfly_engine::collection::CollectionRules;
use serde_json::json;

use crate::harness::*;

#[tokio::test]
async fn usage_and_statistics_count_what_is_alive() {
    let account = Account::new().await;
    account.container(json!({ "defaultTtl": 100 }), &[(THROUGHPUT, "11000")]).await.ok();
    for n in 0..30 {
        let filler = "x".repeat(400);
        account.item(json!({ "id": n.to_string(), "pk": n % 10, "filler": filler })).await.ok();
    }
    account.item(json!({ "id": "soon", "pk": "soon", "ttl": 5 })).await.ok();
    account.world.advance(5);
    let asked = [
        ("x-ms-documentdb-populatequotainfo", "True"),
        ("x-ms-documentdb-populatepartitionstatistics", "True"),
    ];
    let answer = account.get("/dbs/db/colls/c", &asked).await.ok();
    let usage = answer.header("x-ms-resource-usage");
    assert!(usage.contains("documentsCount=30;"), "{usage}");
    let size: u64 = usage.split("documentsSize=").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    assert!((12..25).contains(&size), "{usage}");
    assert!(answer.header("x-ms-resource-quota").contains("documentsCount=-1;"));

    let body = answer.json();
    let statistics = body["statistics"].as_array().unwrap();
    assert_eq!(statistics.iter().map(|range| range["id"].as_str().unwrap()).collect::<Vec<_>>(), ["0", "1"]);
    let sum = |name: &str| statistics.iter().map(|range| range[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("documentCount"), sum("sampledDistinctPartitionKeyCount")), (30, 10));
    let keys: Vec<_> =
        statistics.iter().flat_map(|range| range["partitionKeys"].as_array().unwrap()).collect();
    assert_eq!(keys.len(), 10);
    assert!(keys.iter().all(|key| key["partitionKey"][0].is_number() && key["sizeInKB"] == 2), "{keys:?}");

    // Only for who asks.
    let plain = account.get("/dbs/db/colls/c", &[]).await.ok();
    assert_eq!(plain.header("x-ms-resource-usage"), "");
    assert!(plain.json().get("statistics").is_none());
}

#[tokio::test]
async fn what_a_client_has_already_is_not_sent_again() {
    let account = Account::new().await;
    let made = account.container(json!({}), &[]).await.ok();
    let item = account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    let ranges = account.get("/dbs/db/colls/c/pkranges", &[]).await.ok();
    let database = account.get("/dbs/db", &[]).await.ok();
    for (path, etag) in [
        ("/dbs/db/colls/c", made.header("etag")),
        ("/dbs/db/colls/c/docs/1", item.header("etag")),
        ("/dbs/db/colls/c/pkranges", ranges.header("etag")),
        ("/dbs/db", database.header("etag")),
    ] {
        let known = account.get(path, &[(PK, r#"["a"]"#), ("if-none-match", etag)]).await;
        assert_eq!((known.status, known.body.len(), known.header("etag")), (304, 0, etag), "{path}");
        let other = account.get(path, &[(PK, r#"["a"]"#), ("if-none-match", "\"other\"")]).await;
        assert_eq!((other.status, other.header("etag")), (200, etag), "{path}");
    }
    assert_eq!(item.json()["_etag"], item.header("etag"));
}

#[tokio::test]
async fn answers_say_where_they_come_from() {
    let account = Account::new().await;
    let made = account.container(json!({}), &[]).await.ok();
    assert_eq!(made.header("x-ms-alt-content-path"), "dbs/db");
    assert_eq!(made.header("x-ms-documentdb-collection-index-transformation-progress"), "100");
    // SDKs take this header for a sign that indexing is lazy.
    assert_eq!(made.header("x-ms-documentdb-collection-lazy-indexing-progress"), "");
    let item = account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    assert_eq!(item.header("x-ms-alt-content-path"), "dbs/db/colls/c");
    assert_eq!(item.header("x-ms-content-path"), made.json()["_rid"]);
    assert_eq!(item.header("content-location"), "http://localhost:8081/dbs/db/colls/c/docs");
    for name in [
        "x-ms-activity-id",
        "x-ms-request-charge",
        "x-ms-gatewayversion",
        "x-ms-serviceversion",
        "x-ms-schemaversion",
        "x-ms-last-state-change-utc",
        "x-ms-request-duration-ms",
        "x-ms-session-token",
        "lsn",
        "x-ms-item-lsn",
        "x-ms-cosmos-llsn",
        "x-ms-cosmos-item-llsn",
        "x-ms-global-committed-lsn",
        "x-ms-quorum-acked-lsn",
        "x-ms-number-of-read-regions",
    ] {
        assert_ne!(item.header(name), "", "{name}");
    }
    // A miss has its place in the session too.
    let missing = account.get("/dbs/db/colls/c/docs/none", &[(PK, r#"["a"]"#)]).await;
    assert_eq!((missing.status, missing.header(SESSION)), (404, item.header(SESSION)));
}

/// MongoDB's `renameCollection` does it.
#[tokio::test]
async fn answers_name_a_renamed_container_by_its_new_name() {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    let item = account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    assert_eq!(item.header("x-ms-alt-content-path"), "dbs/db/colls/c");
    let (engine, container) = (account.world.engine(), account.world.must_container("c"));
    let database = engine.database("db").unwrap();
    engine.rename_container(&container, &database, "d", false, &[]).await.unwrap();
    let read = account.get("/dbs/db/colls/d/docs/1", &[(PK, r#"["a"]"#)]).await.ok();
    assert_eq!(read.header("x-ms-alt-content-path"), "dbs/db/colls/d");
    assert_eq!(read.header("x-ms-content-path"), item.header("x-ms-content-path"));
}

#[tokio::test]
async fn the_log_of_all_versions_stays_in_its_scope() {
    let account = Account::new().await;
    account.container(json!({ "changeFeedPolicy": { "retentionDuration": 10 } }), &[]).await.ok();
    for pk in ["a", "b", "a"] {
        let id = account.world.now().await.0.to_string();
        account.world.advance(1);
        account.item(json!({ "id": id, "pk": pk })).await.ok();
    }
    let feed = [("A-IM", "Full-Fidelity Feed"), ("if-none-match", "\"0\"")];
    let all = account.get("/dbs/db/colls/c/docs", &feed).await.ok();
    assert_eq!(all.json()["_count"], 3);
    let one = account.get("/dbs/db/colls/c/docs", &[feed[0], feed[1], (PK, r#"["a"]"#)]).await.ok().json();
    let keys: Vec<_> =
        one["Documents"].as_array().unwrap().iter().map(|event| &event["current"]["pk"]).collect();
    assert_eq!(keys, ["a", "a"]);
    let none = account.get("/dbs/db/colls/c/docs", &[feed[0], feed[1], (PK, r#"["c"]"#)]).await;
    assert_eq!((none.status, none.header("etag")), (304, "\"3\""));

    // What is older than the log is kept is gone, and who has missed it is told so.
    account.world.advance(11 * 60);
    account.item(json!({ "id": "last", "pk": "a" })).await.ok();
    let late = account.get("/dbs/db/colls/c/docs", &[feed[0], ("if-none-match", "\"2\"")]).await;
    late.refused(400, "You must read the change feed from within the retention period.");
    let last = account.get("/dbs/db/colls/c/docs", &[feed[0], ("if-none-match", "\"3\"")]).await.ok();
    assert_eq!(last.json()["_count"], 1);
}

#[tokio::test]
async fn what_mongodb_keeps_for_itself_is_not_shown() {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    let mut users = account.world.must_container("c").definition().clone();
    users.name = "system.users".to_owned();
    users.collection = Some(CollectionRules::default());
    let users = account.world.create_container(users).await.unwrap();
    let listed = account.get("/dbs/db/colls", &[]).await.ok().json();
    assert_eq!(listed["_count"], 1);
    let rid = Rid::Container { db: users.database, coll: users.id }.encode();
    for path in [
        "colls/system.users",
        "colls/system.users/docs",
        &format!("colls/{rid}"),
        &format!("colls/{rid}/docs"),
    ] {
        assert_eq!(account.get(&format!("/dbs/db/{path}"), &[]).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn long_keys_of_the_old_hash_are_told_apart() {
    let account = Account::new().await;
    account.container(json!({ "partitionKey": { "paths": ["/pk"], "version": 1 } }), &[]).await.ok();
    let (one, two) = ("x".repeat(200), "x".repeat(201));
    for pk in [&one, &two] {
        account.item(json!({ "id": "1", "pk": pk })).await.ok();
    }
    for pk in [&one, &two] {
        let key = json!([pk]).to_string();
        let rows = account.query("SELECT VALUE c.pk FROM c", &[(PK, &key)]).await.ok().json();
        assert_eq!(rows["Documents"], json!([pk]));
    }
}

#[tokio::test]
async fn too_few_parts_of_a_key_are_a_mismatch() {
    let account = Account::new().await;
    let key = json!({ "partitionKey": { "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 } });
    account.container(key, &[]).await.ok();
    let short = (PK, r#"["x"]"#);
    let item = r#"{"id":"1","a":"x"}"#;
    let created = account.send("POST", "/dbs/db/colls/c/docs", &[short], item).await;
    let read = account.get("/dbs/db/colls/c/docs/1", &[short]).await;
    for answer in [created, read] {
        assert_eq!(answer.statuses(), (400, "1001"));
        answer.refused(400, "has fewer components than defined in the the collection.");
    }
    let batch = [("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True"), short];
    let answer =
        account.send("POST", "/dbs/db/colls/c/docs", &batch, r#"[{"operationType":"Read","id":"1"}]"#).await;
    answer.refused(400, "Partition key provided either doesn't correspond to definition in the collection");
}

#[tokio::test]
async fn conflicts_are_asked_for_within_a_partition_or_across_all() {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    let ask = async |extra: &[(&str, &str)]| {
        let all = [&[(IS_QUERY, "True")], extra].concat();
        account.send("POST", "/dbs/db/colls/c/conflicts", &all, r#"{"query":"SELECT * FROM c"}"#).await
    };
    ask(&[]).await.refused(400, "Cross partition query is required but disabled.");
    assert_eq!(ask(&[(PK, r#"["a"]"#)]).await.ok().json()["Conflicts"], json!([]));
    assert_eq!(ask(&[(CROSS, "true")]).await.ok().json()["_count"], 0);
}
