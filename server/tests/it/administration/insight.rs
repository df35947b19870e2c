//! What the server says about itself, its containers and their time to live.

use std::time::Duration;

use super::{Administered, READ_ONLY_KEY};
use mayfly_cosmos::auth::EMULATOR_KEY;
use mayfly_engine::clock::Stopwatch;
use serde_json::{Value, json};

/// A container with a default of an hour: two documents that follow it, one with its own ttl, one pinned.
async fn carts(default: &str) -> Administered {
    let it = Administered::start().await;
    it.create("/dbs", r#"{"id":"shop"}"#).await;
    let definition =
        format!(r#"{{"id":"carts","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{default}}}"#);
    it.create("/dbs/shop/colls", &definition).await;
    for body in [
        r#"{"id":"1","pk":"p","n":1}"#,
        r#"{"id":"2","pk":"p","n":2}"#,
        r#"{"id":"own","pk":"p","ttl":7200}"#,
        r#"{"id":"pinned","pk":"p","ttl":-1}"#,
    ] {
        it.create("/dbs/shop/colls/carts/docs", body).await;
    }
    it
}

fn documents(amount: &Value) -> u64 {
    amount["documents"].as_u64().unwrap()
}

#[tokio::test]
async fn every_route_wants_a_key_and_a_method_it_has() {
    let it = Administered::start().await;
    for (verb, path) in [
        ("GET", "server"),
        ("GET", "overview"),
        ("GET", "metrics"),
        ("GET", "clock"),
        ("POST", "clock"),
        ("GET", "ttl/shop/carts"),
        ("GET", "ttl/shop/carts/history"),
        ("POST", "ttl/shop/carts/documents"),
        ("POST", "explain/shop/carts"),
        ("POST", "mongo/shop"),
    ] {
        assert_eq!(it.ask(None, verb, path, "{}").await.0, 401, "{path}");
        assert_eq!(it.ask(Some("d3Jvbmc="), verb, path, "{}").await.0, 401, "{path}");
        assert_eq!(it.ask(Some(EMULATOR_KEY), "DELETE", path, "").await.0, 405, "{path}");
    }
    assert_eq!(it.ask(Some(EMULATOR_KEY), "GET", "elsewhere", "").await.0, 404);
    assert_eq!(it.ask(Some(READ_ONLY_KEY), "GET", "server", "").await.1["access"], "readOnly");
    let server = it.ok("GET", "server", "").await;
    assert_eq!((&server["access"], &server["mongo"]), (&json!("readWrite"), &Value::Null));
}

#[tokio::test]
async fn the_overview_counts_what_lives() {
    let it = carts(r#","defaultTtl":3600"#).await;
    let container = |overview: &Value| overview["databases"][0]["containers"][0].clone();
    let before = container(&it.ok("GET", "overview", "").await);
    assert_eq!((documents(&before["live"]), &before["defaultTtl"]), (4, &json!(3600)));
    assert_eq!((&before["isCollection"], &before["partitionKey"]), (&json!(false), &json!(["/pk"])));
    it.advance(3600).await;
    assert_eq!(documents(&container(&it.ok("GET", "overview", "").await)["live"]), 2);
}

#[tokio::test]
async fn a_default_is_looked_at_before_it_is_set() {
    let it = carts("").await;
    it.advance(1800).await;
    let preview = it.ok("GET", "ttl/shop/carts?default=900", "").await;
    assert_eq!((&preview["presentDefault"], &preview["proposedDefault"]), (&Value::Null, &json!(900)));
    for (name, expected) in [
        ("live", 4),
        ("expiresAtOnce", 2),
        ("expiresWithinDay", 1),
        ("pinned", 1),
        ("ownTtl", 1),
        ("neverExpires", 1),
    ] {
        assert_eq!(documents(&preview[name]), expected, "{name}: {preview}");
    }
    // Nothing has changed by looking.
    assert_eq!(documents(&it.ok("GET", "ttl/shop/carts", "").await["live"]), 4);
    for wrong in ["0", "soon", "-2"] {
        let (status, _) =
            it.ask(Some(EMULATOR_KEY), "GET", &format!("ttl/shop/carts?default={wrong}"), "").await;
        assert_eq!(status, 400, "{wrong}");
    }
    assert_eq!(it.ask(Some(EMULATOR_KEY), "GET", "ttl/shop/none", "").await.0, 404);
}

#[tokio::test]
async fn the_forecast_says_which_hour() {
    let it = carts(r#","defaultTtl":3600"#).await;
    let forecast = it.ok("GET", "ttl/shop/carts", "").await;
    let hourly: Vec<_> = forecast["hourly"].as_array().unwrap().iter().map(documents).collect();
    assert_eq!((hourly.len(), hourly.iter().sum::<u64>()), (48, 3));
    assert_eq!(forecast["daily"].as_array().unwrap().len(), 60);
}

#[tokio::test]
async fn the_history_has_every_change_the_latest_first() {
    let it = Administered::start().await;
    // A collection's default is a TTL index on `_ts`.
    let index = |seconds: i64| {
        format!(
            r#"{{"createIndexes":"c","indexes":[{{"key":{{"_ts":1}},"name":"ttl","expireAfterSeconds":{seconds}}}]}}"#
        )
    };
    it.ok("POST", "mongo/shop", &index(60)).await;
    it.advance(10).await;
    let change = r#"{"collMod":"c","index":{"name":"ttl","expireAfterSeconds":120}}"#;
    it.ok("POST", "mongo/shop", change).await;
    let history = it.ok("GET", "ttl/shop/c/history", "").await;
    let changes = history["changes"].as_array().unwrap();
    assert_eq!((&changes[0]["from"], &changes[0]["to"]), (&json!(60), &json!(120)));
    assert!(
        changes.iter().skip(1).all(|change| change["at"].as_u64() < changes[0]["at"].as_u64()),
        "{history}"
    );
}

#[tokio::test]
async fn a_query_is_explained() {
    let it = carts("").await;
    let path = "explain/shop/carts";
    let plan = it.ok("POST", path, r#"{"query":"SELECT * FROM c WHERE c.n = 1"}"#).await;
    assert_eq!((&plan["access"], &plan["scope"]), (&json!("index"), &json!("container")));
    let body = r#"{"query":"SELECT * FROM c WHERE c.pk = @p","parameters":[{"name":"@p","value":"p"}]}"#;
    let (status, plan) = it.ask(Some(READ_ONLY_KEY), "POST", path, body).await;
    assert_eq!((status, &plan["scope"]), (200, &json!("partition")));
    let (status, error) = it.ask(Some(EMULATOR_KEY), "POST", path, r#"{"query":"SELECT FROM"}"#).await;
    assert_eq!((status, error["code"].is_string()), (400, true), "{error}");
}

#[tokio::test]
async fn samples_have_a_time_after_which_they_are_asked_for() {
    let it = Administered::start().await;
    let mut metrics = it.ok("GET", "metrics", "").await;
    while metrics["samples"].as_array().unwrap().is_empty() {
        metrics = it.ok("GET", "metrics", "").await;
    }
    let last = metrics["samples"].as_array().unwrap().last().unwrap().clone();
    assert!(last["requests"].is_u64() && last["byDuration"].is_array(), "{last}");
    assert!(metrics["durationBounds"].is_array());
    assert_eq!(it.ok("GET", "metrics?since=99999999999", "").await["samples"], json!([]));
    assert_eq!(it.ask(Some(EMULATOR_KEY), "GET", "metrics?since=then", "").await.0, 400);
}

#[tokio::test]
async fn the_clock_moves_forward_where_it_may() {
    let it = Administered::start().await;
    let time = |clock: &Value| clock["unixSeconds"].as_f64().unwrap();
    let before = it.ok("GET", "clock", "").await;
    assert_eq!((&before["adjustable"], &before["frozen"]), (&json!(true), &json!(true)));
    it.advance(60).await;
    assert_eq!((time(&it.ok("GET", "clock", "").await) - time(&before)).round(), 60.0);
    for wrong in [r#"{"advanceSeconds":-1}"#, r#"{"setUnixSeconds":5}"#, r#"{"sooner":1}"#, "[]", ""] {
        assert_eq!(it.ask(Some(EMULATOR_KEY), "POST", "clock", wrong).await.0, 400, "{wrong}");
    }
    let move_on = r#"{"advanceSeconds":1}"#;
    assert_eq!(it.ask(Some(READ_ONLY_KEY), "POST", "clock", move_on).await.0, 403);
    let fixed = Administered::start_with("").await;
    assert_eq!(fixed.ok("GET", "clock", "").await["adjustable"], false);
    assert_eq!(fixed.ask(Some(EMULATOR_KEY), "POST", "clock", move_on).await.0, 403);
}

/// 18. Purge changes no answer: not that of a request either which was told the second before and looks a moment later.
#[tokio::test]
async fn ttl_18_purge_comes_a_second_after_expiry() {
    let it = carts(r#","defaultTtl":3600"#).await;
    let watch = Stopwatch::start();
    it.advance(3600).await;
    while documents(&it.ok("GET", "ttl/shop/carts", "").await["purged"]) < 2 {}
    assert!(watch.elapsed() >= Duration::from_secs(1), "purged after {:?}", watch.elapsed());
}
