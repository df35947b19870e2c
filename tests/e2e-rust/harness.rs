//! A collection that cleans up after itself, and a clock that tests can move.
//!
//! Where the server is stands in the environment; `cargo xtask test clients` sets it. Time is moved with the server's own clock,
//! so nothing here sleeps.

use std::{
    env,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicU32, Ordering},
};

use mongodb::{
    bson::Document,
    error::{Error, ErrorKind, WriteFailure},
    sync::{Client, Collection},
};

/// Makes names of databases; each test has its own.
static NAMES: AtomicU32 = AtomicU32::new(0);

fn setting(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask test clients`"))
}

/// Gives a test a collection that exists.
pub fn with_collection(test: impl FnOnce(&Client, Collection<Document>)) {
    let client = Client::with_uri_str(setting("MAYFLY_TEST_MONGO")).expect("a client");
    let name = format!("rust-{}-{}", std::process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
    let database = client.database(&name);
    database.create_collection("c").run().expect("a collection");
    test(&client, database.collection("c"));
    database.drop().run().expect("the database is dropped");
}

/// The code of a refusal.
pub fn code(error: &Error) -> Option<i32> {
    match &*error.kind {
        ErrorKind::Command(refused) => Some(refused.code),
        ErrorKind::Write(WriteFailure::WriteError(refused)) => Some(refused.code),
        _ => None,
    }
}

/// The server's clock; it stands still until this is dropped.
pub struct Clock(());

impl Clock {
    pub fn stop() -> Self {
        move_by("{\"freeze\":true}");
        Self(())
    }

    pub fn advance(&self, seconds: u64) {
        move_by(&format!("{{\"advanceSeconds\":{seconds}}}"));
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        move_by("{\"freeze\":false}");
    }
}

fn move_by(change: &str) {
    let address = setting("MAYFLY_TEST_HTTP");
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).expect("the server");
    let request = format!(
        "POST /_mayfly/clock HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{change}",
        setting("MAYFLY_TEST_KEY"),
        change.len()
    );
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
