//! Tokens of the form Entra ID gives out: let in when switched on, refused otherwise.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use mayfly_cosmos::Options;
use mayfly_engine::{Clock as _, SystemClock};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::harness::*;

fn token(expires_in: i64) -> String {
    let expires = SystemClock.now().seconds().saturating_add_signed(expires_in);
    let claims = json!({ "aud": "https://localhost.localhost", "exp": expires }).to_string();
    let jwt =
        [r#"{"typ":"JWT","alg":"RS256"}"#, &claims, "signature"].map(|part| BASE64.encode(part)).join(".");
    format!("type=aad&ver=1.0&sig={jwt}")
}

async fn read_account(account: &Account, authorization: &str) -> Answer {
    account.raw(request("GET", "/", &[("authorization", authorization)], "")).await
}

#[tokio::test]
async fn a_token_is_refused_unless_switched_on() {
    let account = Account::new().await;
    let answer = read_account(&account, &token(60)).await;
    answer.refused(401, "Authorization tokens of type 'aad' are not accepted by this server.");
}

#[tokio::test]
async fn switched_on_any_token_serves_until_it_expires() {
    let account = Account::with(Options { any_entra_token: true, ..Options::new(keys()) }).await;
    assert_eq!(read_account(&account, &token(60)).await.status, 200);
    // Some SDKs encode it.
    let encoded = utf8_percent_encode(&token(60), NON_ALPHANUMERIC).to_string();
    assert_eq!(read_account(&account, &encoded).await.status, 200);
    read_account(&account, &token(-1)).await.refused(401, "is not valid at the current time");
    read_account(&account, "type=aad&ver=1.0&sig=a.b.c")
        .await
        .refused(401, "doesn't confirm to the required format");
    // Keys go on working.
    assert_eq!(account.get("/", &[]).await.status, 200);
}

#[tokio::test]
async fn a_token_reads_and_writes_items() {
    let account = Account::with(Options { any_entra_token: true, ..Options::new(keys()) }).await;
    account.container(json!({}), &[]).await.ok();
    let token = token(60);
    let all = [("authorization", token.as_str()), (PK, r#"["p"]"#)];
    let body = r#"{"id":"1","pk":"p"}"#;
    assert_eq!(account.raw(request("POST", "/dbs/db/colls/c/docs", &all, body)).await.status, 201);
    assert_eq!(account.raw(request("GET", "/dbs/db/colls/c/docs/1", &all, "")).await.status, 200);
}
