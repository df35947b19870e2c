//! What tools around the emulators count on.

use mayfly_cosmos::http_date;
use serde_json::json;

use crate::harness::*;

#[tokio::test]
async fn the_account_says_how_the_client_reached_it() {
    let account = Account::new().await;
    for host in ["localhost:8081", "cosmos:8081", "127.0.0.1:12345", "[::1]:9"] {
        let body = account.get("/", &[("host", host)]).await.ok().json();
        for list in ["writableLocations", "readableLocations"] {
            assert_eq!(body[list].as_array().unwrap().len(), 1);
            assert_eq!(body[list][0]["databaseAccountEndpoint"], format!("http://{host}/"));
        }
        // The JavaScript SDK takes an account called localhost for one without regions, and asks again each time.
        assert_ne!(body["id"], "localhost");
        assert_eq!(body["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
        assert!(body["queryEngineConfiguration"].is_string());
    }
}

#[tokio::test]
async fn no_answer_lets_other_sites_in() {
    let account = Account::new().await;
    account.container(json!({}), &[]).await.ok();
    let origin = ("origin", "http://elsewhere.example");
    for path in ["/", "/dbs", "/dbs/db/colls/c"] {
        let answer = account.get(path, &[origin]).await.ok();
        assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control-")), "{path}");
    }
    let preflight = [origin, ("access-control-request-method", "GET")];
    let answer = account.raw(request("OPTIONS", "/dbs", &preflight, "")).await;
    assert_eq!(answer.status, 405);
    assert!(!answer.headers.keys().any(|name| name.as_str().starts_with("access-control-")));
}

#[tokio::test]
async fn the_clients_activity_id_comes_back() {
    let account = Account::new().await;
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    let answer = account.get("/dbs/none", &[("x-ms-activity-id", id)]).await;
    assert_eq!((answer.status, answer.header("x-ms-activity-id")), (404, id));
    assert!(answer.message().contains(&format!("ActivityId: {id}")));
    let own = account.get("/dbs", &[("x-ms-activity-id", "no id\u{7f}".trim_end_matches('\u{7f}'))]).await;
    assert_eq!(own.header("x-ms-activity-id").len(), 36);
}

/// Whoever is refused can tell by `date` whether what it knows of had expired: to the second, also where the time of the
/// request was too late for what another node had written.
#[tokio::test]
async fn ttl_07_a_refusal_bears_the_second_it_was_decided_at() {
    let account = Account::new().await;
    account.container(json!({ "defaultTtl": 1 }), &[]).await.ok();
    account.item(json!({ "id": "a", "pk": "p" })).await.ok();
    let ahead = account.world.neighbour(1).await;
    ahead.create("c", r#"{"id":"b","pk":"p"}"#).await.unwrap();

    let replaced = json!({ "id": "a", "pk": "p", "n": 2 }).to_string();
    let gone = account.send("PUT", "/dbs/db/colls/c/docs/a", &[(PK, "[\"p\"]")], replaced).await;
    let decided = http_date::format(account.world.clock_seconds() + 1);
    assert_eq!((gone.status, gone.header("date")), (404, decided.as_str()));
}
