//! One port speaks plain and TLS, HTTP/1.1 and HTTP/2; the server's own paths answer on it without a key.

use crate::harness::*;
use hyper::Version;
use mayfly_server::connection::Scheme;
use tokio::net::TcpStream;

#[tokio::test]
async fn every_protocol_on_one_port() {
    let server = start().await;
    for (scheme, version, expected) in [
        (Scheme::Http, Version::HTTP_11, "http HTTP/1.1 0"),
        (Scheme::Http, Version::HTTP_2, "http HTTP/2.0 0"),
        (Scheme::Https, Version::HTTP_11, "https HTTP/1.1 0"),
        (Scheme::Https, Version::HTTP_2, "https HTTP/2.0 0"),
    ] {
        let mut client = server.connect(scheme, version).await;
        // Twice: the connection stays usable.
        for _ in 0..2 {
            let answer = text(client.send(get("/dbs")).await).await;
            assert_eq!(answer, (200, expected.into()));
        }
    }
    server.stop().await.0.unwrap();
}

#[tokio::test]
async fn tls_offers_http2_first_and_needs_no_alpn() {
    let server = start().await;
    let connect = async || TcpStream::connect(server.address).await.unwrap();
    let both = server.tls(connect().await, &[b"http/1.1", b"h2"]).await;
    assert_eq!(both.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let none = server.tls(connect().await, &[]).await;
    assert_eq!(none.get_ref().1.alpn_protocol(), None);
    let mut client = Client::new(none, Version::HTTP_11).await;
    assert_eq!(text(client.send(get("/dbs")).await).await.0, 200);
}

#[tokio::test]
async fn own_paths_need_no_key() {
    let server = start().await;
    assert_eq!(server.get("/alive").await, (200, "alive\n".into()));
    assert_eq!(server.get("/ready").await, (200, "ready\n".into()));
    assert_eq!(server.get("/_explorer/emulator.pem").await, (200, server.ca_pem.clone()));
    assert!(server.get("/_explorer/index.html").await.1.contains("Mayfly"));

    let (status, body) = server.get("/status").await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["status"], &body["store"]), (200, &"ready".into(), &"memory".into()));

    server.get("/dbs/secret-name").await;
    let (status, body) = server.get("/metrics").await;
    assert_eq!(status, 200);
    for line in [
        "mayfly_ready 1",
        "mayfly_requests_total{operation=\"server\",status=\"2xx\"} 5",
        "mayfly_requests_total{operation=\"test\",status=\"2xx\"} 1",
        "mayfly_connections_total{scheme=\"http\"} 7",
        "mayfly_test_lines_total 1",
    ] {
        assert!(body.lines().any(|l| l == line), "{line} is missing in\n{body}");
    }
    assert!(!body.contains("secret-name"), "{body}");
}

#[tokio::test]
async fn own_paths_are_for_reading() {
    let server = start().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = server.connect(Scheme::Http, version).await;
        let (status, body) = text(client.send(request("POST", "/alive")).await).await;
        assert_eq!(status, 405);
        assert!(body.starts_with("{\"code\":\"MethodNotAllowed\","), "{body}");
        let head = client.send(request("HEAD", "/alive")).await;
        assert_eq!(head.headers()["content-length"], "6");
        assert_eq!(text(head).await, (200, String::new()));
    }
}

#[tokio::test]
async fn what_takes_long_leaves_the_workers() {
    let server = start().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = server.connect(Scheme::Http, version).await;
        assert_eq!(text(client.send(get("/thread")).await).await, (200, "mayfly-worker".to_owned()));
        let (status, thread) = text(client.send(get("/long/thread")).await).await;
        assert_eq!(status, 200);
        assert_ne!(thread, "mayfly-worker");
        // Wherever it happens.
        assert_eq!(client.send(get("/long/panic")).await.status(), 500);
        assert_eq!(text(client.send(get("/thread")).await).await, (200, "mayfly-worker".to_owned()));
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_the_connection_lives_on() {
    let server = start().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = server.connect(Scheme::Https, version).await;
        let mut request = get("/panic");
        request.headers_mut().insert("x-ms-activity-id", "an-id".parse().unwrap());
        let (status, body) = text(client.send(request).await).await;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["code"]), (500, &"InternalServerError".into()));
        assert!(body["message"].as_str().unwrap().contains("ActivityId: an-id"), "{body}");
        assert!(!body.to_string().contains("as the test wants"), "{body}");
        assert_eq!(text(client.send(get("/dbs")).await).await.0, 200);
    }
    assert!(server.get("/metrics").await.1.contains("mayfly_handler_panics_total 2\n"));
}
