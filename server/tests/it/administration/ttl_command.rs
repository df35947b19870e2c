//! `mayfly ttl`, the program, against a server.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::Administered;
use serde_json::{Value, json};

impl Administered {
    /// Runs the program and gives its exit code and what it said; `typed` is what a person answers.
    async fn mayfly_ttl(&self, arguments: &[&str], typed: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
        command.arg("ttl").args(arguments).args(["--endpoint", &format!("http://{}", self.server.address)]);
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let typed = typed.to_owned();
        let ended = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        });
        let ended = ended.await.unwrap();
        let text = [ended.stdout, ended.stderr].concat();
        (ended.status.code().unwrap(), String::from_utf8(text).unwrap())
    }

    async fn default_of_carts(&self) -> Value {
        self.ok("GET", "ttl/shop/carts", "").await["presentDefault"].clone()
    }
}

/// The number behind a label.
fn number(text: &str, label: &str) -> u64 {
    let line =
        text.lines().find(|line| line.trim().starts_with(label)).unwrap_or_else(|| panic!("{label}: {text}"));
    line.trim()[label.len()..].split_whitespace().next().unwrap().parse().unwrap()
}

async fn carts() -> Administered {
    let it = Administered::start().await;
    it.create("/dbs", r#"{"id":"shop"}"#).await;
    it.create(
        "/dbs/shop/colls",
        r#"{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#,
    )
    .await;
    for body in [r#"{"id":"1","pk":"p"}"#, r#"{"id":"2","pk":"p"}"#, r#"{"id":"pinned","pk":"p","ttl":-1}"#] {
        it.create("/dbs/shop/colls/carts/docs", body).await;
    }
    it.advance(1800).await;
    it
}

#[tokio::test(flavor = "multi_thread")]
async fn preview_says_what_a_default_would_do_and_changes_nothing() {
    let it = carts().await;
    let (code, text) = it.mayfly_ttl(&["preview", "shop", "carts", "--default", "900"], "").await;
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("Default: off now, 900 s proposed"), "{text}");
    assert_eq!(
        (number(&text, "documents"), number(&text, "gone at once"), number(&text, "never")),
        (3, 2, 1)
    );
    assert_eq!(it.default_of_carts().await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn set_asks_for_the_name_when_much_would_go() {
    let it = carts().await;
    let set = ["set", "shop", "carts", "--default", "900"];
    let (code, text) = it.mayfly_ttl(&set, "cart\n").await;
    assert!(code == 0 && text.contains("2 of 3 documents would be gone at once"), "{text}");
    assert!(text.ends_with("Nothing was changed.\n"), "{text}");
    assert_eq!(it.default_of_carts().await, Value::Null);
    let (_, text) = it.mayfly_ttl(&set, "carts\n").await;
    assert!(text.ends_with("The default is set.\n"), "{text}");
    assert_eq!(it.default_of_carts().await, json!(900));
    // Nothing goes at once: nothing is asked.
    let (_, text) = it.mayfly_ttl(&["set", "shop", "carts", "--default", "off"], "").await;
    assert!(text.ends_with("The default is set.\n"), "{text}");
    assert_eq!(it.default_of_carts().await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn set_does_not_ask_whoever_says_yes() {
    let it = carts().await;
    let (code, text) = it.mayfly_ttl(&["set", "shop", "carts", "--default", "900", "--yes"], "").await;
    assert_eq!((code, it.default_of_carts().await), (0, json!(900)), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forecast_says_what_goes_when_and_how_the_default_was_changed() {
    let it = carts().await;
    it.mayfly_ttl(&["set", "shop", "carts", "--default", "7200"], "").await;
    let (code, text) = it.mayfly_ttl(&["forecast", "shop", "carts"], "").await;
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("Default: 7200 s"), "{text}");
    assert!(text.lines().any(|line| line.trim().starts_with("hour 2") && line.contains(" 2 ")), "{text}");
    assert!(text.contains("from off to 7200 s"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_reason() {
    let it = carts().await;
    for (arguments, phrase) in [
        (&["preview", "shop", "none"][..], "404"),
        (&["preview", "shop", "carts", "--default", "0"], "0 is neither -1"),
        (&["preview", "shop", "carts", "--key", "d3Jvbmc="], "401"),
        (&["set", "shop", "carts"], "say which default"),
    ] {
        let (code, text) = it.mayfly_ttl(arguments, "").await;
        assert!(code != 0 && text.contains(phrase), "{arguments:?}: {code} {text}");
    }
}
