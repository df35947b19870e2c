//! TTL indexes of collections: what one would do, before it is there, and when each document goes.

use super::{Administered, READ_ONLY_KEY};
use mayfly_cosmos::auth::EMULATOR_KEY;
use serde_json::{Value, json};

impl Administered {
    async fn now(&self) -> i64 {
        self.ok("GET", "clock", "").await["unixSeconds"].as_f64().unwrap() as i64
    }

    /// Ten documents with a date, three of them two hours ago; one without; one with a list whose earliest is half an
    /// hour ago.
    async fn sessions() -> (Administered, i64) {
        let it = Administered::start().await;
        let now = it.now().await;
        let date = |seconds: i64| json!({ "$date": { "$numberLong": (seconds * 1000).to_string() } });
        let mut documents: Vec<_> = (0..10)
            .map(
                |n| json!({ "_id": n, "open": n % 2 == 0, "at": date(if n < 3 { now - 7200 } else { now }) }),
            )
            .collect();
        documents.push(json!({ "_id": "undated", "open": true }));
        documents.push(json!({ "_id": "list", "at": [date(now + 86_400), "x", date(now - 1800)] }));
        it.insert(&json!(documents)).await;
        (it, now)
    }

    /// The name of a command comes first, and the fields of a JSON value need not keep their order.
    async fn insert(&self, documents: &Value) {
        let command = format!(r#"{{"insert":"sessions","documents":{documents}}}"#);
        self.ok("POST", "mongo/shop", &command).await;
    }

    async fn index(&self, options: Value) {
        let command = json!({ "createIndexes": "sessions", "indexes": [options] });
        self.ok("POST", "mongo/shop", &command.to_string()).await;
    }

    async fn preview(&self, query: &str) -> [u64; 5] {
        let answer = self.ok("GET", &format!("ttl/shop/sessions?{query}"), "").await;
        ["live", "expiresAtOnce", "expiresWithinHour", "expiresWithinDay", "neverExpires"]
            .map(|name| answer[name]["documents"].as_u64().unwrap())
    }

    async fn fates(&self, ids: Value) -> Vec<Value> {
        let body = json!({ "ids": ids }).to_string();
        let answer = self.ok("POST", "ttl/shop/sessions/documents", &body).await;
        answer["documents"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_ttl_index_is_looked_at_before_it_is_made_and_then_does_that() {
    let (it, _) = Administered::sessions().await;
    assert_eq!(it.preview("field=at&seconds=3600").await, [12, 3, 8, 0, 1]);
    assert_eq!(it.preview("field=at&seconds=7200").await, [12, 3, 0, 8, 1], "up to and with the moment");
    assert_eq!(it.preview("field=at&seconds=7201").await, [12, 0, 3, 8, 1]);
    assert_eq!(it.preview("field=a%74&seconds=3600").await[1], 3, "names are encoded");
    assert_eq!(it.preview("field=nowhere&seconds=0").await, [12, 0, 0, 0, 12]);
    let bytes =
        it.ok("GET", "ttl/shop/sessions?field=at&seconds=3600", "").await["expiresAtOnce"]["bytes"].clone();
    assert!(bytes.as_u64().unwrap() > 3 * 20, "{bytes}");
    it.index(json!({ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 3600 })).await;
    assert_eq!(it.preview("").await, [9, 0, 8, 0, 1], "what was said has happened");
}

#[tokio::test]
async fn another_length_of_a_ttl_index_is_looked_at_by_its_own_rule() {
    let (it, _) = Administered::sessions().await;
    let only = json!({ "open": true });
    let options = json!({ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 86_400, "partialFilterExpression": only });
    it.index(options).await;
    // 0 and 2 are old and open; 4, 6 and 8 are new and open; the others are not the index's.
    assert_eq!(it.preview("index=at_1&seconds=3600").await, [12, 2, 3, 0, 7]);
    let change = r#"{"collMod":"sessions","index":{"name":"at_1","expireAfterSeconds":3600}}"#;
    it.ok("POST", "mongo/shop", change).await;
    assert_eq!(it.preview("").await, [10, 0, 3, 0, 7]);
    // Made longer, what is gone stays gone.
    assert_eq!(it.preview("index=at_1&seconds=86400").await, [10, 0, 0, 3, 7]);
}

#[tokio::test]
async fn other_rules_count_in_the_look_at_an_index() {
    let (it, _) = Administered::sessions().await;
    it.index(json!({ "key": { "_ts": 1 }, "name": "own", "expireAfterSeconds": 600 })).await;
    assert_eq!(it.preview("field=at&seconds=86400").await, [12, 0, 12, 0, 0], "all go by the default first");
}

#[tokio::test]
async fn a_proposal_that_makes_no_sense_is_refused() {
    let (it, _) = Administered::sessions().await;
    it.create("/dbs/shop/colls", r#"{"id":"carts","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#).await;
    for wrong in [
        "ttl/shop/sessions?field=at",
        "ttl/shop/sessions?field=at&seconds=-1",
        "ttl/shop/sessions?field=at&seconds=2147483648",
        "ttl/shop/sessions?field=&seconds=5",
        "ttl/shop/sessions?index=none&seconds=5",
        "ttl/shop/sessions?field=at&index=at_1&seconds=5",
        "ttl/shop/carts?field=at&seconds=5",
    ] {
        assert_eq!(it.ask(Some(EMULATOR_KEY), "GET", wrong, "").await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn each_document_says_when_it_goes_and_by_which_rule() {
    let (it, now) = Administered::sessions().await;
    it.index(json!({ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 86_400 })).await;
    it.index(json!({ "key": { "_ts": 1 }, "name": "last", "expireAfterSeconds": 172_800 })).await;
    let documents = json!([{ "_id": "short", "ttl": 60 }, { "_id": "pinned", "ttl": -1 }]);
    it.insert(&documents).await;
    let fates =
        it.fates(json!([0, "list", "undated", "short", "pinned", "missing", { "$numberLong": "5" }])).await;
    let seen: Vec<_> =
        fates.iter().map(|fate| (fate["expiresAt"].as_f64(), fate["index"].as_str())).collect();
    let at = |seconds: i64| Some((now + seconds) as f64);
    let whole: Vec<_> = seen.iter().map(|(at, index)| (at.map(f64::floor), *index)).collect();
    assert_eq!(
        whole,
        [
            (at(86_400 - 7200), Some("at_1")),
            (at(86_400 - 1800), Some("at_1")),
            (at(172_800), None),
            (at(60), None),
            (None, None),
            (None, None),
            (at(86_400), Some("at_1")),
        ]
    );
    assert_eq!(
        (&fates[3]["ownTtl"], &fates[4]["ownTtl"], &fates[2]["ownTtl"]),
        (&json!(60), &json!(-1), &Value::Null)
    );
    assert_eq!(fates[2]["lastWrite"].as_i64(), Some(now));
    assert_eq!(fates[5], Value::Null);
    it.advance(60).await;
    assert_eq!(it.fates(json!(["short"])).await, [Value::Null], "gone is gone");
}

#[tokio::test]
async fn fates_are_for_readers_too_and_want_a_list() {
    let (it, _) = Administered::sessions().await;
    let path = "ttl/shop/sessions/documents";
    assert_eq!(it.ask(Some(READ_ONLY_KEY), "POST", path, r#"{"ids":[1]}"#).await.0, 200);
    for wrong in ["", "[]", "{}", r#"{"ids":1}"#] {
        assert_eq!(it.ask(Some(EMULATOR_KEY), "POST", path, wrong).await.0, 400, "{wrong}");
    }
    assert_eq!(it.ask(Some(EMULATOR_KEY), "POST", "ttl/shop/none/documents", r#"{"ids":[]}"#).await.0, 404);
}
