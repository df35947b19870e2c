//! Golden scripts of whole commands: what a server answers that has indexes, plans and a clock.
//!
//! ```text
//! > {createIndexes: "c", indexes: [{key: {a: 1}, name: "a_1"}]}
//! {numIndexesBefore: 1, ...}
//! > explain {find: "c", filter: {a: 1}}
//! FETCH IXSCAN a_1
//! > advance 10
//! > more 5
//! ```
//!
//! `admin` before a command sends it to that database. A cursor is shown as its documents, one line each; `more` asks the last one that was left open for its next so many; a refusal as its code, one of a part of a write with its place; a plan as its stages. Each script starts with an
//! empty server. Scripts without `advance` can be asked of a real server, as in `scripts.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocumentBuf};
use mayfly_engine::{AdjustableClock, Engine, Pace, Timestamp, ids::SeededIds};
use mayfly_mongo::auth::{Accounts, Role};
use mayfly_mongo::{Filters, Mongo, Options, Topology};
use mayfly_testkit::{Backend, Ground};
use mayfly_value::bson;

use crate::literal;
use crate::oracle::Oracle;

/// The second at which every script starts.
const START: u64 = 1_700_000_000;

/// Whoever answers commands.
pub trait Server {
    fn run_on(&mut self, db: &str, command: &Document) -> Document;
    fn run(&mut self, command: &Document) -> Document {
        self.run_on("test", command)
    }
    fn advance(&mut self, seconds: u64);
}

/// A server of its own, with a clock that stands still.
pub struct Ours {
    // In the order of dropping: tasks end before the store closes, and the store before its directory goes.
    runtime: tokio::runtime::Runtime,
    mongo: Arc<Mongo>,
    engine: Engine,
    clock: Arc<AdjustableClock>,
    ground: Arc<Ground>,
}

impl Ours {
    pub fn start() -> Self {
        Self::start_on(Backend::Mirrored)
    }

    pub fn start_on(backend: Backend) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self::on(Arc::new(runtime.block_on(Ground::new(backend))))
    }

    /// One that knows nothing but what this one has stored.
    pub fn restarted(self) -> Self {
        let ground = self.ground.clone();
        drop(self);
        Self::on(ground)
    }

    fn on(ground: Arc<Ground>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store = runtime.block_on(ground.open()).unwrap();
        let clock = Arc::new(AdjustableClock::frozen(Timestamp::from_seconds(START)));
        let engine = Engine::builder(store)
            .clock(clock.clone())
            .ids(Arc::new(SeededIds::default()))
            .predicates(Arc::new(Filters));
        let engine = runtime.block_on(engine.open()).unwrap();
        let accounts = Accounts::new("mayfly", Vec::new(), false, [7; 16]);
        let options =
            Options { topology: Topology::Router, advertise: "localhost".into(), test_commands: false };
        Self { runtime, mongo: Mongo::new(engine.clone(), accounts, options), engine, clock, ground }
    }

    /// Purges what has expired, if that is asked for, and says what is wrong with the store.
    pub fn tidy(&self, purges: bool) -> String {
        self.runtime.block_on(async {
            if purges {
                let now = self.engine.now().await.unwrap();
                self.engine.purge(now, Pace::Full).await.unwrap();
            }
            let report = self.engine.check().await.unwrap();
            if report.is_clean() { String::new() } else { format!("{:?}", report.problems) }
        })
    }

    pub fn command(&self, command: &Document) -> Document {
        self.command_on("test", command)
    }

    pub fn command_on(&self, db: &str, command: &Document) -> Document {
        let (mongo, db, command) = (self.mongo.clone(), db.to_owned(), command.clone());
        let answer = async move { mongo.run_as_account(&db, &command, Role::Admin).await };
        self.runtime.block_on(self.runtime.spawn(answer)).unwrap()
    }
}

impl Server for Ours {
    fn run_on(&mut self, db: &str, command: &Document) -> Document {
        self.command_on(db, command)
    }

    fn advance(&mut self, seconds: u64) {
        self.clock.advance(std::time::Duration::from_secs(seconds));
    }
}

impl Server for Oracle {
    fn run_on(&mut self, db: &str, command: &Document) -> Document {
        let mut command = command.clone();
        command.insert("$db", db);
        let reply = Oracle::run(self, RawDocumentBuf::try_from(&command).unwrap());
        let mut reply = Document::try_from(reply).unwrap();
        reply.remove("$clusterTime");
        reply.remove("operationTime");
        reply
    }

    fn advance(&mut self, _: u64) {
        panic!("a real server has a clock of its own");
    }
}

fn print(document: &Document) -> String {
    literal::print(RawBsonRef::Document(&RawDocumentBuf::try_from(document).unwrap()))
}

/// The stages of a plan, from the top down, each with the index it reads.
fn stages(plan: &Document, out: &mut Vec<String>) {
    if let Ok(stage) = plan.get_str("stage") {
        out.push(stage.to_owned());
        if let ("IXSCAN", Ok(index)) = (stage, plan.get_str("indexName")) {
            out.push(index.to_owned());
        }
    }
    if let Ok(input) = plan.get_document("inputStage") {
        stages(input, out);
    }
    for input in plan.get_array("inputStages").into_iter().flatten() {
        if let Bson::Document(input) = input {
            stages(input, out);
        }
    }
}

fn shown(reply: &Document, explains: bool) -> Vec<String> {
    if reply.get_f64("ok").ok() != Some(1.0) {
        return vec![format!("error {}", reply.get_i32("code").expect("a code"))];
    }
    if explains {
        let plan = reply.get_document("queryPlanner").and_then(|planner| planner.get_document("winningPlan"));
        let mut found = Vec::new();
        stages(plan.expect("a plan"), &mut found);
        return vec![found.join(" ")];
    }
    if let Ok(cursor) = reply.get_document("cursor") {
        let batch =
            cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch")).expect("a batch");
        let lines: Vec<_> = batch.iter().filter_map(Bson::as_document).map(print).collect();
        return if lines.is_empty() { vec!["nothing".into()] } else { lines };
    }
    let mut rest = reply.clone();
    for volatile in ["ok", "commitQuorum", "electionId", "opTime", "recoveryToken"] {
        rest.remove(volatile);
    }
    // Where it stands among the others means nothing.
    if let Some(retried) = rest.remove("retriedStmtIds") {
        rest.insert("retriedStmtIds", retried);
    }
    if let Ok(errors) = reply.get_array("writeErrors") {
        let told = errors.iter().filter_map(Bson::as_document).map(|error| {
            let (place, code) = (error.get_i32("index"), error.get_i32("code"));
            format!("{}: {}", place.expect("a place"), code.expect("a code"))
        });
        rest.insert("errors", told.collect::<Vec<_>>());
        rest.remove("writeErrors");
    }
    vec![print(&rest)]
}

/// A cursor that the server left open.
#[derive(Default)]
struct Open {
    id: i64,
    collection: String,
}

fn answer(line: &str, server: &mut dyn Server, open: &mut Open) -> Vec<String> {
    if let Some(count) = line.strip_prefix("more ") {
        let count: i32 = count.trim().parse().expect("a number");
        let more = bson::doc! { "getMore": open.id, "collection": &open.collection, "batchSize": count };
        return shown(&server.run(&more), false);
    }
    if let Some(seconds) = line.strip_prefix("advance ") {
        server.advance(seconds.trim().parse().expect("seconds"));
        return Vec::new();
    }
    let (unordered, line) = line.strip_prefix("unordered ").map_or((false, line), |rest| (true, rest));
    let (db, line) = line.strip_prefix("admin ").map_or(("test", line), |rest| ("admin", rest));
    let (explains, line) = line.strip_prefix("explain ").map_or((false, line), |rest| (true, rest));
    let (command, rest) = literal::parse(line);
    assert!(rest.trim().is_empty(), "after the command: {rest}");
    let command = Document::try_from(command.as_document().expect("a command").to_owned()).unwrap();
    let command = match explains {
        true => bson::doc! { "explain": command, "verbosity": "queryPlanner" },
        false => command,
    };
    let reply = server.run_on(db, &command);
    if let Ok(cursor) = reply.get_document("cursor")
        && let (Ok(id @ 1..), Ok(namespace)) = (cursor.get_i64("id"), cursor.get_str("ns"))
    {
        let collection = namespace.split_once('.').expect("a namespace").1;
        *open = Open { id, collection: collection.to_owned() };
    }
    let mut lines = shown(&reply, explains);
    if unordered {
        lines.sort();
    }
    lines
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_scripts");
    let files = std::fs::read_dir(folder).expect("a folder of scripts");
    let mut files: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    if let Ok(only) = std::env::var("ONLY") {
        files.retain(|path| path.to_string_lossy().contains(&only));
    }
    files
}

/// The script with the answers that are given now.
fn run(path: &Path, server: &mut dyn Server) -> String {
    let text = std::fs::read_to_string(path).expect("a script");
    let (mut fresh, mut open) = (String::new(), Open::default());
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            fresh += &format!("{line}\n");
            for line in answer(command, server, &mut open) {
                fresh += &format!("{line}\n");
            }
        } else if line.is_empty() || line.starts_with('#') {
            fresh += &format!("{line}\n");
        }
    }
    fresh
}

/// With `UPDATE` set, what is answered now becomes what is expected.
#[test]
fn command_scripts_answer_as_written() {
    let mut differences = Vec::new();
    for path in scripts() {
        let fresh = run(&path, &mut Ours::start());
        let text = std::fs::read_to_string(&path).expect("a script");
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&path, fresh).expect("the script can be written");
            continue;
        }
        let before = differences.len();
        for (number, (expected, found)) in text.lines().zip(fresh.lines()).enumerate() {
            if expected != found {
                let place = format!("{}:{}", path.display(), number + 1);
                differences.push(format!("{place}\n  expected {expected}\n  answered {found}"));
            }
        }
        if before == differences.len() && text.lines().count() != fresh.lines().count() {
            differences.push(format!("{}: more or fewer lines", path.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// On demand: the same scripts on a real server, which has to answer the same.
#[test]
#[ignore = "needs a MongoDB at MONGOD"]
fn command_scripts_answer_as_a_real_server_does() {
    let mut oracle = Oracle::connect().expect("MONGOD names a server");
    let mut differences = Vec::new();
    for path in scripts() {
        let text = std::fs::read_to_string(&path).expect("a script");
        if text.contains("> advance") {
            continue;
        }
        Server::run(&mut oracle, &bson::doc! { "dropDatabase": 1 });
        let fresh = run(&path, &mut oracle);
        for (number, (expected, found)) in text.lines().zip(fresh.lines()).enumerate() {
            if expected != found {
                differences.push(format!(
                    "{}:{}\n  ours   {expected}\n  theirs {found}",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn who_only_reads_is_stopped_when_the_time_is_up() {
    use bson::doc;
    let mut server = Ours::start();
    for some in 0..20 {
        let documents: Vec<_> =
            (0..1000).map(|n| doc! { "_id": some * 1000 + n, "n": n, "text": "x".repeat(200) }).collect();
        server.run(&doc! { "insert": "c", "documents": documents });
    }
    let slow = doc! { "n": { "$mod": [7, 3] }, "text": { "$regex": "y$" } };
    let find = doc! { "find": "c", "filter": &slow };
    let pipeline = vec![doc! { "$match": &slow }, doc! { "$sort": { "text": 1 } }];
    let aggregate = doc! { "aggregate": "c", "pipeline": &pipeline, "cursor": {} };
    for mut command in [find, aggregate, doc! { "count": "c", "query": &slow }] {
        command.insert("maxTimeMS", 1);
        let reply = server.run(&command);
        assert_eq!(reply.get_i32("code").ok(), Some(50), "{command}: {reply}");
        command.insert("maxTimeMS", 600_000);
        assert_eq!(server.run(&command).get_f64("ok").ok(), Some(1.0), "{command}");
    }
    let all = doc! { "q": slow, "u": { "$set": { "seen": 1 } }, "multi": true };
    let update = server.run(&doc! { "update": "c", "updates": [all], "maxTimeMS": 1 });
    assert_eq!(update.get_f64("ok").ok(), Some(1.0), "{update}");
}

/// A document that a batch had no room for was read with it, and may have expired when the next is asked for.
#[test]
fn what_did_not_fit_into_a_batch_expires_too() {
    use bson::doc;
    let mut server = Ours::start();
    let key = doc! { "key": { "_ts": 1 }, "name": "_ts_1", "expireAfterSeconds": 100 };
    server.run(&doc! { "createIndexes": "c", "indexes": [key] });
    let large = "x".repeat(9 << 20);
    for id in 1..=2 {
        let document = doc! { "_id": id, "large": &large, "ttl": 10 * id };
        assert_eq!(server.run(&doc! { "insert": "c", "documents": [document] }).get_i32("n").ok(), Some(1));
    }
    let pipeline = vec![doc! { "$sort": { "_id": -1 } }];
    for command in [
        doc! { "find": "c", "sort": { "_id": -1 }, "batchSize": 2 },
        doc! { "aggregate": "c", "pipeline": pipeline, "cursor": { "batchSize": 2 } },
    ] {
        let reply = server.run(&command);
        let cursor = reply.get_document("cursor").expect("a cursor");
        assert_eq!(cursor.get_array("firstBatch").expect("a batch").len(), 1);
        let id = cursor.get_i64("id").expect("a number");
        server.advance(10);
        let reply = server.run(&doc! { "getMore": id, "collection": "c", "batchSize": 2 });
        let cursor = reply.get_document("cursor").expect("a cursor");
        assert_eq!(cursor.get_array("nextBatch").expect("a batch").len(), 0, "{command}");
        // Both as before.
        for id in 1..=2 {
            let update = doc! { "q": { "_id": id }, "u": { "_id": id, "large": &large, "ttl": 10 * id }, "upsert": true };
            server.run(&doc! { "update": "c", "updates": [update] });
        }
    }
}

#[test]
fn a_record_id_grows_and_stays() {
    use bson::doc;
    let mut server = Ours::start();
    server.run(&doc! { "insert": "c", "documents": [{ "_id": 5 }, { "_id": 3 }] });
    server.run(&doc! { "insert": "c", "documents": [{ "_id": 4 }] });
    let mut ids = || -> Vec<i64> {
        let found = server.run(&doc! { "find": "c", "projection": { "_id": 1 }, "showRecordId": true });
        let batch = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        server.run(
            &doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } }, "multi": true }] },
        );
        batch.iter().map(|found| found.as_document().unwrap().get_i64("$recordId").unwrap()).collect()
    };
    // In the order of `_id`: 3, 4, 5.
    let before = ids();
    assert!(before[2] < before[0] && before[0] < before[1], "{before:?}");
    assert_eq!(ids(), before);
}
