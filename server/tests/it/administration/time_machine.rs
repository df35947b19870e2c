//! The clock that can be moved, over restarts on the embedded store and at its limits.

use super::*;
use mayfly_engine::{Clock as _, SystemClock};
use serde_json::json;

const DAY: f64 = 86_400.0;

fn seconds(clock: &Value) -> f64 {
    clock["unixSeconds"].as_f64().unwrap()
}

/// How far the server's time is ahead of the machine's.
fn ahead(clock: &Value) -> f64 {
    seconds(clock) - SystemClock.now().0 as f64 / 1000.0
}

async fn living(it: &Administered) -> u64 {
    it.ok("GET", "ttl/shop/carts", "").await["live"]["documents"].as_u64().unwrap()
}

/// Advanced by a day and started again, `advanceSeconds` was answered with 200 and moved nothing: it moved
/// the machine's clock, which was a day behind the time of the data.
#[tokio::test]
async fn time_goes_on_after_a_restart_and_can_be_moved_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    it.create("/dbs", r#"{"id":"shop"}"#).await;
    let container = r#"{"id":"carts","partitionKey":{"paths":["/p"]},"defaultTtl":3600}"#;
    it.create("/dbs/shop/colls", container).await;
    let before = it.ok("POST", "clock", r#"{"advanceSeconds":86400}"#).await;
    it.server.stop().await.0.unwrap();

    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    let found = it.ok("GET", "clock", "").await;
    assert!(seconds(&found) >= seconds(&before), "{found} after {before}");
    assert!((ahead(&found) - DAY).abs() < 60.0, "{found}");
    assert_eq!((&found["frozen"], &found["standsStillSeconds"]), (&json!(false), &json!(0)), "{found}");
    let mut later = found.clone();
    while seconds(&later) == seconds(&found) {
        later = it.ok("GET", "clock", "").await;
    }
    it.create("/dbs/shop/colls/carts/docs", r#"{"id":"1","p":"p"}"#).await;
    it.create("/dbs/shop/colls/carts/docs", r#"{"id":"2","p":"p","ttl":60}"#).await;
    it.create("/dbs/shop/colls/carts/docs", r#"{"id":"3","p":"p","ttl":-1}"#).await;
    assert_eq!(living(&it).await, 3);
    it.advance(61).await;
    assert_eq!(living(&it).await, 2);
    it.advance(3600).await;
    assert_eq!(living(&it).await, 1);
    it.server.stop().await.0.unwrap();
}

/// Whether the clock was frozen is not kept; it runs after a restart, and says so.
#[tokio::test]
async fn a_frozen_clock_runs_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    it.advance(3600).await;
    let frozen = it.ok("POST", "clock", r#"{"freeze":true}"#).await;
    assert_eq!(frozen["frozen"], true);
    it.server.stop().await.0.unwrap();

    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    let found = it.ok("GET", "clock", "").await;
    assert_eq!(found["frozen"], false);
    assert!(seconds(&found) >= seconds(&frozen), "{found} after {frozen}");
    while seconds(&it.ok("GET", "clock", "").await) == seconds(&found) {}
    it.server.stop().await.0.unwrap();
}

/// Without `--dev-clock` the machine's clock counts. Time does not go back to it, and the answer says how
/// long it stands still.
#[tokio::test]
async fn data_that_was_moved_ahead_stands_still_by_the_clock_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    let moved = it.ok("POST", "clock", r#"{"advanceSeconds":864000}"#).await;
    it.server.stop().await.0.unwrap();

    let it = Administered::on_files(directory.path(), "").await;
    let found = it.ok("GET", "clock", "").await;
    assert!(seconds(&found) >= seconds(&moved), "{found} after {moved}");
    let left = found["standsStillSeconds"].as_f64().unwrap();
    assert!((left - 10.0 * DAY).abs() < 60.0, "{found}");
    assert_eq!(seconds(&it.ok("GET", "clock", "").await), seconds(&found));
    it.server.stop().await.0.unwrap();

    // And it goes on where a clock can be moved.
    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    assert_eq!(it.ok("GET", "clock", "").await["standsStillSeconds"], 0);
    it.server.stop().await.0.unwrap();
}

#[tokio::test]
async fn far_ahead_is_warned_of() {
    let it = Administered::start().await;
    let near = it.ok("POST", "clock", r#"{"advanceSeconds":86000}"#).await;
    assert_eq!(near.get("warning"), None, "{near}");
    let far = it.ok("POST", "clock", r#"{"advanceSeconds":864000}"#).await;
    let warning = far["warning"].as_str().unwrap();
    assert!(warning.contains("10 days and 23 hours ahead of the machine's clock"), "{warning}");

    let directory = tempfile::tempdir().unwrap();
    let it = Administered::on_files(directory.path(), "dev-clock = true").await;
    let to = SystemClock.now().seconds() + 400 * 86_400;
    let far = it.ok("POST", "clock", &format!(r#"{{"setUnixSeconds":{to}}}"#)).await;
    let warning = far["warning"].as_str().unwrap();
    assert!(warning.contains("1 year and 3") && warning.contains("never goes back"), "{warning}");
    it.server.stop().await.0.unwrap();
}

#[tokio::test]
async fn times_that_cannot_be_are_refused_and_change_nothing() {
    let it = Administered::start().await;
    let before = it.ok("GET", "clock", "").await;
    let just_before = seconds(&before) - 1.0;
    let cases = [
        (r#"{"advanceSeconds":-1}"#.into(), "not below zero"),
        (r#"{"advanceSeconds":-1e300}"#.into(), "not below zero"),
        (r#"{"advanceSeconds":1e300}"#.into(), "year 9999"),
        (r#"{"advanceSeconds":1e999}"#.into(), "The body is one of"),
        (r#"{"advanceSeconds":NaN}"#.into(), "The body is one of"),
        (r#"{"advanceSeconds":"60"}"#.into(), "The body is one of"),
        (r#"{"advanceSeconds":253402300799}"#.into(), "year 9999"),
        (r#"{"setUnixSeconds":-5}"#.into(), "not below zero"),
        (r#"{"setUnixSeconds":253402300800}"#.into(), "year 9999"),
        (r#"{"setUnixSeconds":1e20}"#.into(), "year 9999"),
        (format!(r#"{{"setUnixSeconds":{just_before}}}"#), "only goes forward"),
        (r#"{"advanceSeconds":1,"freeze":true}"#.into(), "The body is one of"),
    ];
    for (body, says) in cases {
        let (status, error) = it.ask(Some(EMULATOR_KEY), "POST", "clock", &body).await;
        assert_eq!(status, 400, "{body}: {error}");
        assert!(error["message"].as_str().unwrap_or_default().contains(says), "{body}: {error}");
    }
    assert_eq!(it.ok("GET", "clock", "").await, before);
    let last = it.ok("POST", "clock", r#"{"setUnixSeconds":253402300799}"#).await;
    assert_eq!(seconds(&last), 253_402_300_799.0);
}
