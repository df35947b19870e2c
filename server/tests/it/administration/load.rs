//! Whom background work gives way to: those who ask for documents, by either protocol, and not those who look on.

use super::Administered;

impl Administered {
    /// Requests that counted so far, as the metrics tell.
    async fn counted(&self) -> u64 {
        let (_, metrics) = self.server.get("/metrics").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix("mayfly_load_requests_total "));
        line.unwrap_or_else(|| panic!("no such metric in\n{metrics}")).parse().unwrap()
    }
}

#[tokio::test]
async fn requests_of_both_protocols_count() {
    let it = Administered::start().await;
    let before = it.counted().await;
    it.create("/dbs", r#"{"id":"shop"}"#).await;
    assert_eq!(it.counted().await, before + 1);
    it.ok("POST", "mongo/shop", r#"{"insert":"c","documents":[{"_id":1}]}"#).await;
    it.ok("POST", "mongo/shop", r#"{"find":"c"}"#).await;
    assert_eq!(it.counted().await, before + 3);
}

/// The portal asks for these every few seconds, a monitor for the metrics; what they watch must go on.
#[tokio::test]
async fn who_looks_on_does_not_count() {
    let it = Administered::start().await;
    it.ok("POST", "mongo/shop", r#"{"insert":"c","documents":[{"_id":1}]}"#).await;
    let before = it.counted().await;
    for path in ["server", "overview", "metrics", "clock", "ttl/shop/c", "ttl/shop/c/history"] {
        it.ok("GET", path, "").await;
    }
    for path in ["/status", "/metrics", "/alive", "/_explorer/index.html"] {
        assert_eq!(it.server.get(path).await.0, 200, "{path}");
    }
    assert_eq!(it.counted().await, before);
}
