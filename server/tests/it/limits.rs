//! What a client cannot do to the server: send endless headers, send nothing, take every place for good.

use crate::harness::*;
use hyper::Version;
use mayfly_server::connection::Scheme;
use mayfly_server::listen::Limits;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

fn impatient() -> Limits {
    let short = Duration::from_millis(150);
    Limits { header_timeout: short, handshake_timeout: short, ..Limits::default() }
}

#[tokio::test]
async fn large_headers_pass_and_oversize_ones_do_not() {
    let server = start().await;
    for version in [Version::HTTP_11, Version::HTTP_2] {
        for (bytes, expected) in [(16 * 1024, 200), (80 * 1024, 431)] {
            let mut client = server.connect(Scheme::Http, version).await;
            let mut request = get("/dbs");
            request.headers_mut().insert("x-ms-continuation", "c".repeat(bytes).parse().unwrap());
            assert_eq!(client.send(request).await.status(), expected, "{version:?} {bytes}");
        }
    }
    assert_eq!(server.get("/alive").await.0, 200);
}

#[tokio::test]
async fn who_does_not_finish_a_header_is_cut_off() {
    let server = start_with::<TestBackend>("store = 'memory'", impatient()).await;
    let hello_start = [0x16, 3, 1, 0x40, 0];
    let beginnings: [&[u8]; 6] = [
        b"",
        b"G",
        b"GET /dbs HTTP/1.1\r\nhost: localhost\r\nx-ms-da",
        b"PRI * HTT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &hello_start,
    ];
    for beginning in beginnings {
        let mut tcp = TcpStream::connect(server.address).await.unwrap();
        tcp.write_all(beginning).await.unwrap();
        let mut rest = Vec::new();
        let ended = timeout(PATIENCE, tcp.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{:?} is still served", String::from_utf8_lossy(beginning));
    }
    assert_eq!(server.get("/alive").await.0, 200);
}

#[tokio::test]
async fn a_request_in_work_is_not_bound_by_the_header_timeout() {
    let server = start_with::<TestBackend>("store = 'memory'", impatient()).await;
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    tcp.write_all(b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\na").await.unwrap();
    let mut answer = [0; 17];
    assert!(timeout(impatient().header_timeout * 3, tcp.read(&mut answer)).await.is_err());
    tcp.write_all(b"b").await.unwrap();
    timeout(PATIENCE, tcp.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK\r\n");
}

#[tokio::test]
async fn more_connections_than_places_wait() {
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let server = start_with::<TestBackend>("store = 'memory'", limits).await;
    let mut first = server.connect(Scheme::Http, Version::HTTP_11).await;
    assert_eq!(text(first.send(get("/dbs")).await).await.0, 200);
    {
        let second = server.get("/dbs");
        let mut second = std::pin::pin!(second);
        assert!(timeout(Duration::from_millis(100), second.as_mut()).await.is_err());
        drop(first);
        assert_eq!(timeout(PATIENCE, second).await.unwrap().0, 200);
    }
    server.stop().await.0.unwrap();
}
