//! Commands of MongoDB by Extended JSON.

use super::{Administered, READ_ONLY_KEY};
use mayfly_cosmos::auth::EMULATOR_KEY;
use serde_json::{Value, json};

impl Administered {
    async fn run(&self, command: &str) -> Value {
        self.ok("POST", "mongo/shop", command).await
    }

    async fn refused(&self, key: &str, command: &str) -> (u16, Value) {
        let (status, answer) = self.ask(Some(key), "POST", "mongo/shop", command).await;
        assert!(status >= 400, "{command}: {answer}");
        (status, answer)
    }

    async fn count(&self, filter: &str) -> Value {
        self.run(&format!(r#"{{"count":"carts","query":{filter}}}"#)).await["n"].clone()
    }
}

async fn with_carts() -> Administered {
    let it = Administered::start().await;
    let carts = r#"{"insert":"carts","documents":[
        {"_id":1,"user":"ada","total":20.5},
        {"_id":2,"user":"grace","total":{"$numberLong":"7"}},
        {"_id":{"$oid":"507f1f77bcf86cd799439011"},"user":"ada","total":{"$numberDouble":"3.0"}}]}"#;
    assert_eq!(it.run(carts).await["n"], 3);
    it
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_come_back_in_types_that_last() {
    let it = with_carts().await;
    let answer = it.run(r#"{"find":"carts","filter":{"user":"ada"},"sort":{"total":-1}}"#).await;
    let expected = json!([
        { "_id": 1, "user": "ada", "total": 20.5 },
        { "_id": { "$oid": "507f1f77bcf86cd799439011" }, "user": "ada", "total": { "$numberDouble": "3.0" } },
    ]);
    assert_eq!(answer["cursor"]["firstBatch"], expected);
    assert_eq!((&answer["ok"], answer.get("$clusterTime")), (&json!({ "$numberDouble": "1.0" }), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_go_on_and_end() {
    let it = with_carts().await;
    let id = |answer: &Value| answer["cursor"]["id"]["$numberLong"].as_str().unwrap().to_owned();
    let first = it.run(r#"{"find":"carts","batchSize":2}"#).await;
    assert_ne!(id(&first), "0");
    let more = format!(r#"{{"getMore":{{"$numberLong":"{}"}},"collection":"carts"}}"#, id(&first));
    let rest = it.run(&more).await;
    assert_eq!((rest["cursor"]["nextBatch"].as_array().unwrap().len(), id(&rest)), (1, "0".to_owned()));
    let (status, gone) = it.refused(EMULATOR_KEY, &more).await;
    assert_eq!((status, &gone["code"]), (404, &json!(43)));
    let other = id(&it.run(r#"{"find":"carts","batchSize":1}"#).await);
    let killed =
        it.run(&format!(r#"{{"killCursors":"carts","cursors":[{{"$numberLong":"{other}"}}]}}"#)).await;
    assert_eq!(killed["cursorsKilled"], json!([{ "$numberLong": other }]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_on_the_list_works() {
    let it = with_carts().await;
    let by_user = r#"{"aggregate":"carts","pipeline":[{"$group":{"_id":"$user","n":{"$sum":1}}},{"$sort":{"_id":1}}],"cursor":{}}"#;
    let groups = json!([{ "_id": "ada", "n": 2 }, { "_id": "grace", "n": 1 }]);
    assert_eq!(it.run(by_user).await["cursor"]["firstBatch"], groups);
    assert_eq!(it.run(r#"{"distinct":"carts","key":"user"}"#).await["values"], json!(["ada", "grace"]));
    let set = r#"{"update":"carts","updates":[{"q":{"_id":1},"u":{"$set":{"paid":true}}}]}"#;
    assert_eq!(it.run(set).await["nModified"], 1);
    let taken = r#"{"findAndModify":"carts","query":{"_id":1},"update":{"$inc":{"n":1}},"new":true}"#;
    assert_eq!(it.run(taken).await["value"]["paid"], true);
    it.run(r#"{"createIndexes":"carts","indexes":[{"key":{"user":1},"name":"by_user"}]}"#).await;
    let plan = r#"{"explain":{"find":"carts","filter":{"user":"ada"}},"verbosity":"executionStats"}"#;
    let plan = it.run(plan).await;
    assert_eq!(plan["queryPlanner"]["winningPlan"]["inputStage"]["indexName"], "by_user");
    assert_eq!(plan["executionStats"]["nReturned"], 2);
    let indexes = it.run(r#"{"listIndexes":"carts"}"#).await;
    assert_eq!(indexes["cursor"]["firstBatch"].as_array().unwrap().len(), 2);
    it.run(r#"{"dropIndexes":"carts","index":"by_user"}"#).await;
    it.run(r#"{"delete":"carts","deletes":[{"q":{"_id":2},"limit":1}]}"#).await;
    assert_eq!(it.count("{}").await, 2);
    let overview = it.ok("GET", "overview", "").await;
    assert_eq!(overview["databases"][0]["containers"][0]["isCollection"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ttl_index_takes_documents_to_the_second() {
    let it = Administered::start().await;
    let now = it.ok("GET", "clock", "").await["unixSeconds"].as_f64().unwrap() as u64;
    let date = |seconds: u64| format!(r#"{{"$date":{{"$numberLong":"{}"}}}}"#, seconds * 1000);
    it.run(&format!(r#"{{"insert":"carts","documents":[{{"_id":1,"at":{}}},{{"_id":2}}]}}"#, date(now)))
        .await;
    it.run(r#"{"createIndexes":"carts","indexes":[{"key":{"at":1},"name":"at_1","expireAfterSeconds":60}]}"#)
        .await;
    it.advance(58).await;
    assert_eq!(it.count("{}").await, 2);
    it.advance(3).await;
    assert_eq!(it.count("{}").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_read_only_key_reads() {
    let it = with_carts().await;
    for command in [
        r#"{"find":"carts"}"#,
        r#"{"aggregate":"carts","pipeline":[],"cursor":{}}"#,
        r#"{"count":"carts"}"#,
        r#"{"distinct":"carts","key":"user"}"#,
        r#"{"explain":{"find":"carts"}}"#,
        r#"{"listIndexes":"carts"}"#,
    ] {
        assert_eq!(it.ask(Some(READ_ONLY_KEY), "POST", "mongo/shop", command).await.0, 200, "{command}");
    }
    for command in [
        r#"{"insert":"carts","documents":[{}]}"#,
        r#"{"update":"carts","updates":[{"q":{},"u":{"$set":{"a":1}}}]}"#,
        r#"{"delete":"carts","deletes":[{"q":{},"limit":0}]}"#,
        r#"{"findAndModify":"carts","remove":true}"#,
        r#"{"createIndexes":"carts","indexes":[{"key":{"a":1},"name":"a"}]}"#,
        r#"{"dropIndexes":"carts","index":"*"}"#,
        r#"{"collMod":"carts","index":{"name":"a","expireAfterSeconds":1}}"#,
        r#"{"aggregate":"carts","pipeline":[{"$out":"copy"}],"cursor":{}}"#,
        r#"{"aggregate":"carts","pipeline":[{"$merge":"copy"}],"cursor":{}}"#,
    ] {
        let (status, answer) = it.refused(READ_ONLY_KEY, command).await;
        assert_eq!(
            (status, &answer["code"], &answer["codeName"]),
            (403, &json!(13), &json!("Unauthorized")),
            "{command}"
        );
    }
    assert_eq!(it.count("{}").await, 3);
    let overview = it.ok("GET", "overview", "").await;
    assert_eq!(overview["databases"][0]["containers"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_a_status_and_mongodbs_words() {
    let it = with_carts().await;
    let (status, answer) =
        it.refused(EMULATOR_KEY, r#"{"find":"carts","filter":{"a":{"$near":1,"$oops":1}}}"#).await;
    assert_eq!(
        (status, answer["errmsg"].is_string(), answer["code"].is_i64()),
        (400, true, true),
        "{answer}"
    );
    let (status, answer) = it.refused(EMULATOR_KEY, r#"{"listIndexes":"none"}"#).await;
    assert_eq!((status, &answer["code"]), (404, &json!(26)));
    for command in [
        r#"{"dropDatabase":1}"#,
        r#"{"createUser":"x"}"#,
        "{}",
        "[]",
        "",
        r#"{"find":"carts""#,
        r#"{"find":{"$oid":"x"}}"#,
    ] {
        let (status, answer) = it.refused(EMULATOR_KEY, command).await;
        assert_eq!((status, answer["message"].is_string()), (400, true), "{command}: {answer}");
    }
    let (status, _) = it.ask(Some(EMULATOR_KEY), "POST", "mongo/a%2Fb", r#"{"find":"c"}"#).await;
    assert_eq!(status, 400);
    let long = format!(r#"{{"insert":"carts","documents":[{{"a":"{}"}}]}}"#, "x".repeat(4 << 20));
    assert_eq!(it.refused(EMULATOR_KEY, &long).await.0, 413);
    // A statement that fails stands in the answer of a command that does not.
    let answer = it.run(r#"{"insert":"carts","documents":[{"_id":1}]}"#).await;
    assert_eq!((&answer["n"], &answer["writeErrors"][0]["code"]), (&json!(0), &json!(11000)));
}
