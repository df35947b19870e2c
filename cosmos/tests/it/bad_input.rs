//! Whatever a client sends, it gets a 4xx in the protocol's shape, and the next request is served.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use mayfly_cosmos::{Cosmos, Head, Options};
use mayfly_engine::clock::Stopwatch;
use serde_json::json;

use crate::harness::*;

const ITEMS: &str = "/dbs/db/colls/c/docs";
const KEY: (&str, &str) = (PK, r#"["a"]"#);

async fn with_container() -> Account {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    account
}

#[tokio::test]
async fn bodies_that_are_no_items() {
    let account = with_container().await;
    let deep = format!("{{\"id\":\"1\",\"pk\":\"a\",\"d\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let bodies: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"{".to_vec(),
        b"[]".to_vec(),
        b"\"text\"".to_vec(),
        b"null".to_vec(),
        b"{\"id\":1}".to_vec(),
        b"{\"pk\":\"a\"}".to_vec(),
        b"{\"id\":\"\",\"pk\":\"a\"}".to_vec(),
        b"{\"id\":\"a/b\",\"pk\":\"a\"}".to_vec(),
        b"{\"id\":\"1\",\"pk\":\"a\"} trailing".to_vec(),
        b"{\"id\":\"\xff\"}".to_vec(),
        b"{\"id\":\"\\ud800\",\"pk\":\"a\"}".to_vec(),
        vec![0x80, 0xED, 0xFF, 0x02],
        deep.into_bytes(),
    ];
    for body in bodies {
        let answer = account.send("POST", ITEMS, &[KEY], body.clone()).await;
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(&body[..body.len().min(60)]));
        answer.message();
    }
    account.item(json!({ "id": "1", "pk": "a" })).await.ok();
}

#[tokio::test]
async fn bodies_of_other_requests() {
    let account = with_container().await;
    let batch = ("x-ms-cosmos-is-batch-request", "True");
    for body in ["", "{", "1", "[1]", "null", "{\"query\":1}", "\u{1}"] {
        let answers = [
            ("databases", account.send("POST", "/dbs", &[], body).await),
            ("containers", account.send("POST", "/dbs/db/colls", &[], body).await),
            ("replace", account.send("PUT", "/dbs/db/colls/c", &[], body).await),
            ("users", account.send("POST", "/dbs/db/users", &[], body).await),
            ("query", account.send("POST", ITEMS, &[(IS_QUERY, "true")], body).await),
            (
                "plan",
                account.send("POST", ITEMS, &[("x-ms-cosmos-is-query-plan-request", "true")], body).await,
            ),
            ("batch", account.send("POST", ITEMS, &[batch, KEY], body).await),
            ("offers", account.send("POST", "/offers", &[(IS_QUERY, "true")], body).await),
            ("patch", account.send("PATCH", "/dbs/db/colls/c/docs/1", &[KEY], body).await),
        ];
        for (name, answer) in answers {
            assert_eq!(answer.status, 400, "{name} {body}");
            answer.message();
        }
    }
}

#[tokio::test]
async fn headers_that_cannot_be_read() {
    let account = with_container().await;
    account.item(json!({ "id": "1", "pk": "a" })).await.ok();
    for (name, value) in [
        ("x-ms-max-item-count", "0"),
        ("x-ms-max-item-count", "-2"),
        ("x-ms-max-item-count", "many"),
        ("x-ms-continuation", "!!"),
        ("x-ms-continuation", "AAAA"),
        (PK, "a"),
        (PK, "[1,2]"),
        (PK, "[{\"a\":1}]"),
        (PK, "[[]]"),
        ("x-ms-start-epk", "xyz"),
        (LEVEL, "High"),
        (SESSION, "::"),
        ("x-ms-cosmos-throughput-bucket", "0"),
        ("x-ms-cosmos-throughput-bucket", "6"),
        ("x-ms-cosmos-throughput-bucket", "one"),
        ("a-im", "Some Feed"),
    ] {
        let answer = account.get(ITEMS, &[(name, value)]).await;
        assert_eq!(answer.status, 400, "{name}: {value}");
        answer.message();
    }
    account
        .get(ITEMS, &[("x-ms-cosmos-throughput-bucket", "6")])
        .await
        .refused(400, "specified for the header 'x-ms-cosmos-throughput-bucket' is invalid.");
    // A continuation is good for the feed it came from.
    account.item(json!({ "id": "2", "pk": "a" })).await.ok();
    let first = account.get(ITEMS, &[("x-ms-max-item-count", "1")]).await.ok();
    let next = ("x-ms-continuation", first.header("x-ms-continuation"));
    assert_eq!(account.get(ITEMS, &[next]).await.ok().json()["_count"], 1);
    let other = json!({ "id": "other", "partitionKey": { "paths": ["/pk"] } }).to_string();
    account.send("POST", "/dbs/db/colls", &[], other).await.ok();
    account.get("/dbs/db/colls/other/docs", &[next]).await.refused(400, "Invalid Continuation Token");
    let answer = account.get(ITEMS, &[(RANGE, "7")]).await;
    assert_eq!(answer.statuses(), (410, "1002"));
    let since = account.get(ITEMS, &[("a-im", "Incremental Feed"), ("if-modified-since", "yesterday")]).await;
    assert_eq!(since.status, 400);
    let create = account.send("POST", ITEMS, &[KEY, ("x-ms-documentdb-is-upsert", "perhaps")], "{}").await;
    assert_eq!(create.status, 400);
}

#[tokio::test]
async fn paths_that_lead_nowhere() {
    let account = with_container().await;
    for path in [
        "/nothing",
        "/dbs/db/nothing",
        "/dbs/db/colls/c/docs/1/more/x/y",
        "/dbs/db/colls/c/nothing/1",
        "/dbs/%zz",
        "/dbs/%f",
        "/dbs/%ff",
        "/dbs/db/colls/%c3%28/docs",
        "/media/x/y/z",
    ] {
        let answer = account.raw(request("GET", path, &[], "")).await;
        assert!((400..=404).contains(&answer.status), "{path} {}", answer.status);
        answer.message();
    }
    for verb in ["OPTIONS", "TRACE", "PUT", "BREW", "DELETE"] {
        let answer = account.raw(request(verb, "/dbs", &[], "")).await;
        assert_eq!(answer.status, 405, "{verb}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{verb}");
    }
    // Slashes mean nothing.
    assert_eq!(account.get("//dbs//db/", &[]).await.status, 200);
    assert_eq!(account.get("/dbs/db/colls/c/docs/", &[]).await.status, 200);
}

#[tokio::test]
async fn bodies_without_end_or_measure() {
    let account = with_container().await;
    let huge = json!({ "id": "1", "pk": "a", "x": "y".repeat(2_200_000) }).to_string();
    account.send("POST", ITEMS, &[KEY], huge).await.refused(413, "Request size is too large");
    let large = json!({ "id": "1", "pk": "a", "x": "y".repeat(2 * 1024 * 1024) }).to_string();
    account.send("POST", ITEMS, &[KEY], large).await.refused(413, "Request size is too large");

    /// A body of which nothing comes.
    struct Silent;
    impl Body for Silent {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Pending
        }
    }
    let options = Options { body_timeout: Duration::from_millis(1), ..Options::new(keys()) };
    let cosmos = Cosmos::new(account.world.engine().clone(), options);
    let (parts, _) = signed(&key(), "POST", ITEMS, &[KEY], "").into_parts();
    let (reply, _) = cosmos.serve(Head::of(&parts), Silent, "http", Stopwatch::start()).await;
    assert_eq!(reply.status(), 408);
    let body = reply.into_response().into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).starts_with("{\"code\":\"RequestTimeout\""));
}
