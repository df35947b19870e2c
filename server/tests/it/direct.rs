//! Requests that are read without hyper, beside the same ones read by it.

use crate::harness::*;
use crate::random::{Random, cases};
use mayfly_server::connection::Scheme;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A request that is for hyper: with a host in its address. What comes after it is for hyper too.
const FOR_HYPER: &[u8] = b"GET http://localhost/echo HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// What ends a connection.
const LAST: &[u8] = b"GET /echo/last HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// How long a server may be silent that has something to say.
const SILENCE: Duration = Duration::from_secs(3);

const CASES: u64 = 1500;
const AT_A_TIME: usize = 100;

/// Pieces that requests are made of; most of them right.
const FIRST_LINES: [&str; 12] = [
    "GET /echo HTTP/1.1",
    "POST /echo/a%20b HTTP/1.1",
    "PUT /echo?x=/y&z HTTP/1.1",
    "DELETE /echo/it's(1);a=b:c@d HTTP/1.1",
    "PATCH /echo/ HTTP/1.1",
    "HEAD /echo HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "get /echo HTTP/1.1",
    "GET //echo HTTP/1.1",
    "GET /echo#there HTTP/1.1",
    "GET /echo/{id}|\"[]^` HTTP/1.1",
    "GET /echo HTTP/1.0",
];
const LINES: [&str; 24] = [
    "x-one: 1",
    "X-One:  two words \t",
    "x-two:",
    "x-two: \t",
    "X-TWO: a, b",
    "x-two : 3",
    "x-two: \u{e9}",
    " x-two: folded",
    "Accept: */*",
    "content-type: application/json",
    "connection: keep-alive",
    "Connection: Keep-Alive",
    "connection: close",
    "connection: keep-alive, close",
    "connection: upgrade",
    "upgrade: h2c",
    "expect: 100-continue",
    "transfer-encoding: chunked",
    "transfer-encoding: identity",
    "content-length: 3",
    "content-length: +3",
    "content-length: 3, 3",
    "content-length: 03",
    "content-length: 99999999999999999999",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_is_what_hyper_would_have_read() {
    let server = start().await;
    let ((mut random, seed), cases) = (Random::seeded(11), cases(CASES));
    let (mut running, mut direct) = (JoinSet::new(), 0);
    for case in 0..cases {
        let bytes = request_of_pieces(&mut random);
        let address = server.address;
        running.spawn(async move {
            (case, answers(address, false, &bytes).await, answers(address, true, &bytes).await, bytes)
        });
        if running.len() == AT_A_TIME || case + 1 == cases {
            while let Some(done) = running.join_next().await {
                let (case, (ours, is_direct), (theirs, _), bytes) = done.unwrap();
                assert_eq!(ours, theirs, "seed {seed}, case {case}: {}", bytes.escape_ascii());
                direct += u64::from(is_direct);
            }
        }
    }
    // To compare hyper with hyper would show nothing.
    assert!(direct > cases / 5, "{direct} of {cases} were read directly");
}

fn request_of_pieces(random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random, of: &[&'static str]| of[random.below(of.len() as u64) as usize];
    let first = if random.one_in(3) { pick(random, &FIRST_LINES) } else { pick(random, &FIRST_LINES[..5]) };
    let mut text = format!("{first}\r\nhost: localhost\r\n");
    for _ in 0..random.below(4) {
        let line = if random.one_in(4) { pick(random, &LINES) } else { pick(random, &LINES[..5]) };
        text += &format!("{line}\r\n");
    }
    let body = "b".repeat(random.below(5) as usize);
    if random.one_in(2) {
        text += &format!("Content-Length: {}\r\n", body.len() as u64 + u64::from(random.one_in(20)));
    }
    let mut bytes = format!("{text}\r\n{body}").into_bytes();
    if random.one_in(6) {
        let at = random.below(bytes.len() as u64) as usize;
        match random.below(3) {
            0 => bytes[at] = random.below(256) as u8,
            1 => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.below(256) as u8),
        }
    }
    bytes
}

/// What a server says to these bytes, as lines in an order of their own, and whether it has read the first of them directly.
async fn answers(address: SocketAddr, is_by_hyper: bool, bytes: &[u8]) -> (Vec<String>, bool) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    if is_by_hyper {
        stream.write_all(FOR_HYPER).await.unwrap();
        assert!(one_answer(&mut stream).await.contains("x-direct: false"));
    }
    let _ = stream.write_all(&[bytes, LAST].concat()).await;
    let mut answer = Vec::new();
    let _ = timeout(SILENCE, stream.read_to_end(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer);
    let is_direct = text.contains("x-direct: true");
    let is_told = |line: &&str| !line.starts_with("date: ") && !line.starts_with("x-direct: ");
    let mut lines: Vec<_> = text.split("\r\n").filter(is_told).map(str::to_owned).collect();
    lines.sort();
    (lines, is_direct)
}

/// The next answer on a connection.
async fn one_answer(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut answer = Vec::new();
    let whole = |answer: &[u8]| {
        let text = String::from_utf8_lossy(answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "))?;
        (body.len() >= length.parse().unwrap()).then_some(text.clone())
    };
    let read = async {
        loop {
            match whole(&answer) {
                Some(text) => return text,
                None => assert!(stream.read_buf(&mut answer).await.unwrap() > 0, "the connection ended"),
            }
        }
    };
    timeout(PATIENCE, read).await.unwrap()
}

async fn ask(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), bytes: &[u8]) -> String {
    stream.write_all(bytes).await.unwrap();
    stream.flush().await.unwrap();
    one_answer(stream).await
}

#[tokio::test]
async fn requests_of_the_plain_form_are_answered_over_tls_too() {
    let server = start().await;
    for scheme in [Scheme::Http, Scheme::Https] {
        let tcp = TcpStream::connect(server.address).await.unwrap();
        let request = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nX-One: 1\r\ncontent-length: 2\r\n\r\nhi";
        let expected = "POST /echo; host Some(\"localhost\"); x-one Some(\"1\");";
        let answer = match scheme {
            Scheme::Http => {
                let mut tcp = tcp;
                ask(&mut tcp, request).await;
                ask(&mut tcp, request).await
            }
            Scheme::Https => {
                let mut tls = server.tls(tcp, &[b"http/1.1"]).await;
                ask(&mut tls, request).await;
                ask(&mut tls, request).await
            }
        };
        assert!(answer.contains("x-direct: true\r\n") && answer.contains(expected), "{answer}");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("; hi"), "{answer}");
    }
}

#[tokio::test]
async fn the_end_of_a_connection_is_told_over_tls_too() {
    let server = start().await;
    let mut tls = server.tls(TcpStream::connect(server.address).await.unwrap(), &[b"http/1.1"]).await;
    tls.write_all(LAST).await.unwrap();
    let mut answer = Vec::new();
    // An end without a word would be an error.
    timeout(PATIENCE, tls.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&answer).contains("GET /echo/last"));
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_order() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let requests: String =
        (0..50).map(|n| format!("GET /echo/{n} HTTP/1.1\r\nhost: localhost\r\n\r\n")).collect();
    stream.write_all(&[requests.as_bytes(), LAST].concat()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    let paths: Vec<_> =
        answer.split("GET /echo/").skip(1).map(|rest| rest.split(';').next().unwrap()).collect();
    let expected: Vec<_> = (0..50).map(|n| n.to_string()).chain(["last".to_owned()]).collect();
    assert_eq!(paths, expected);
}

#[tokio::test]
async fn a_body_in_two_pieces_is_waited_for() {
    let server = start().await;
    let in_two = async |pause| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let head = b"POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nab";
        stream.write_all(head).await.unwrap();
        assert!(timeout(pause, stream.readable()).await.is_err(), "an answer to half a request");
        let answer = ask(&mut stream, b"cd").await;
        assert!(answer.ends_with("; abcd"), "{answer}");
        answer.contains("x-direct: true\r\n")
    };
    // After a while it is hyper that waits. On a busy machine the rest of a body may be late by itself, but not each time.
    assert!(!in_two(Duration::from_millis(200)).await);
    let mut tries = 0;
    while !in_two(Duration::ZERO).await {
        tries += 1;
        assert!(tries < 100, "never waited for");
    }
}

#[tokio::test]
async fn what_nobody_waits_for_is_given_up() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /forever HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    while !server.get("/metrics").await.1.contains("mayfly_test_forever 1") {}
    drop(stream);
    let gone = async { while !server.get("/metrics").await.1.contains("mayfly_test_forever 0") {} };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_long_answer_comes_whole() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = "b".repeat(60_000);
    let request = format!("POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60000\r\n\r\n{body}");
    for _ in 0..3 {
        let answer = ask(&mut stream, request.as_bytes()).await;
        assert!(answer.contains("x-direct: true\r\n") && answer.ends_with(&body));
    }
}

#[tokio::test]
async fn a_server_that_stops_says_so_in_its_last_answer() {
    let mut server = start().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    ask(&mut idle, b"GET /echo HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    while !server.get("/metrics").await.1.contains("mayfly_test_slow 1") {}
    server.signals.send(()).await.unwrap();
    let answer = one_answer(&mut busy).await;
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    let mut rest = Vec::new();
    assert_eq!(timeout(PATIENCE, idle.read_to_end(&mut rest)).await.unwrap().unwrap(), 0);
    server.ended().await.0.unwrap();
}
