//! Every operation of the engine, dropped at every poll in turn.
//!
//! A client may leave at any moment, and the server then drops what it was doing for it. Whatever the moment,
//! the operation has happened or it has not; the store is sound and the catalog in memory is the one that is
//! stored (both are [`Engine::check`]'s to say); another engine on the same store answers the same; nothing
//! is locked; and the same operation, sent again, does what it was to do, or says that it has been done.

use std::sync::Arc;

use mayfly_engine::{
    Container, ContainerDefinition, DocumentId, Engine, Error, IndexRefused, IndexingMode, IndexingPolicy,
    InvalidTtl, Kept, KeptKind, Operation, Pace, Part, Receipt, Result, StatementList, Timestamp, Watched,
    collection::{CollectionRules, FieldKind, IndexField, IndexRule, whole},
};
use mayfly_storage::MemoryStore;
use mayfly_testkit::{
    World, Yielding,
    cancel::{cut, in_time, tasks_end},
    world::{DATABASE, START, definition, document, id_of, json, partition_key},
};
use mayfly_value::path::Path;

type Running = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// What the operation does when it has been done already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The same.
    Same,
    /// It is refused: there is one, or there is none any more, or the document is not what it was.
    Refused,
    /// It makes another one.
    Another,
}
use Again::{Another, Refused, Same};

struct Case {
    /// The method of [`Engine`].
    name: &'static str,
    again: Again,
    run: fn(Engine) -> Running,
}

macro_rules! case {
    ($name:ident, $again:ident, $run:expr) => {
        Case { name: stringify!($name), again: $again, run: |engine| Box::pin($run(engine)) }
    };
}

/// Methods that change nothing, in the store or in memory: they leave nothing behind wherever they end.
const READS: &[&str] = &[
    "changes",
    "check",
    "check_unique",
    "count_collection",
    "count_documents",
    "count_entries",
    "estimate",
    "forecast",
    "forecast_dates",
    "has_ids_out_of_order",
    "index_progress",
    "list",
    "log",
    "log_left",
    "lsn",
    "notes",
    "range_usage",
    "read",
    "read_collection",
    "read_with_lsn",
    "receipt",
    "sample",
    "scan",
    "scan_by_birth",
    "scan_entries",
    "scan_where",
    "search",
    "slot_usage",
    "usage",
    "view",
    "walk_collection",
];

/// Methods that do something only where nodes share a store; `engine/tests/postgres.rs` has them.
const BETWEEN_NODES: &[&str] =
    &["answer_errand", "ask", "enlist", "errands", "forget_errands", "refresh", "tell"];

const CASES: &[Case] = &[
    case!(now, Same, |engine: Engine| async move { engine.now().await.map(drop) }),
    case!(renew_horizon, Same, |engine: Engine| async move { engine.renew_horizon().await }),
    case!(close, Same, |engine: Engine| async move { engine.close().await }),
    case!(create_database, Refused, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.create_database("new", now).await.map(drop)
    }),
    case!(
        delete_database,
        Refused,
        |engine: Engine| async move { engine.delete_database(DATABASE, None).await }
    ),
    case!(delete_database_noting, Refused, |engine: Engine| async move {
        engine.delete_database_noting(DATABASE, &[vec![1]]).await
    }),
    case!(to_completion, Refused, |engine: Engine| async move {
        let (now, own) = (engine.now().await?, engine.clone());
        let steps = async move {
            own.create_database("one", now).await?;
            own.create_database("two", now).await.map(drop)
        };
        engine.to_completion(steps).await
    }),
    case!(create_container, Refused, |engine: Engine| async move {
        let now = engine.now().await?;
        let database = engine.database(DATABASE)?;
        engine.create_container(&database, definition("new", "/id"), 2, now).await.map(drop)
    }),
    case!(replace_container, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        let container = find(&engine, "c")?;
        let mut definition = container.definition().clone();
        definition.default_ttl = Some(50.try_into().unwrap());
        definition.indexing.mode = IndexingMode::Lazy;
        engine.replace_container(&container, definition, None, now).await.map(drop)
    }),
    case!(rename_container, Refused, |engine: Engine| async move {
        let (container, database) = (find(&engine, "c")?, engine.database(DATABASE)?);
        engine.rename_container(&container, &database, "empty", true, &[vec![1]]).await.map(drop)
    }),
    case!(delete_container, Refused, |engine: Engine| async move {
        engine.delete_container(&*find(&engine, "c")?, None).await
    }),
    case!(delete_container_noting, Refused, |engine: Engine| async move {
        engine.delete_container_noting(&*find(&engine, "s")?, &[vec![1]]).await
    }),
    case!(delete_unwritten_container, Refused, |engine: Engine| async move {
        engine.delete_unwritten_container(&*find(&engine, "empty")?).await.map(drop)
    }),
    case!(delete_unwritten_container, Same, |engine: Engine| async move {
        engine.delete_unwritten_container(&*find(&engine, "c")?).await.map(drop)
    }),
    case!(keep, Refused, |engine: Engine| async move {
        let (now, owner) = (engine.now().await?, find(&engine, "empty")?.id);
        engine.keep(KeptKind::Offer, owner, "new", 1.into(), now).await.map(drop)
    }),
    case!(replace_kept, Refused, |engine: Engine| async move {
        let (now, kept) = (engine.now().await?, offer(&engine)?);
        engine.replace_kept(KeptKind::Offer, &kept, "renamed", 2.into(), None, now).await.map(drop)
    }),
    case!(delete_kept, Refused, |engine: Engine| async move {
        engine.delete_kept(KeptKind::Offer, &offer(&engine)?, None).await
    }),
    case!(watch, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.watch(Watched::Database(DATABASE), 10, now).await
    }),
    case!(write_notes, Same, |engine: Engine| async move { engine.write_notes(&[vec![1], vec![2]]).await }),
    case!(create_index, Another, |engine: Engine| async move {
        let now = engine.now().await?;
        let created = engine.create_index(&*find(&engine, "s")?, index("when"), Some(5), now).await;
        created.map(drop).map_err(other)
    }),
    case!(create_index, Same, |engine: Engine| async move {
        // Two documents have the same value: the index goes again.
        let (now, rule) = (engine.now().await?, IndexRule { unique: true, ..index("same") });
        match engine.create_index(&*find(&engine, "s")?, rule, None, now).await {
            Err(IndexRefused::Duplicate(_)) => Ok(()),
            done => panic!("made although two have the same: {:?}", done.map(drop).map_err(other)),
        }
    }),
    case!(create_default_ttl_index, Another, |engine: Engine| async move {
        let (now, ttl) = (engine.now().await?, 10.try_into().unwrap());
        engine.create_default_ttl_index(&*find(&engine, "s")?, index("_ts"), ttl, now).await.map(drop)
    }),
    case!(drop_index, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.drop_index(&*find(&engine, "s")?, 1, now).await.map(drop)
    }),
    case!(change_index, Same, |engine: Engine| async move {
        let (now, container) = (engine.now().await?, find(&engine, "s")?);
        // With a date rule that was not there: documents get their dates.
        let rule = container.definition().index_rules.iter().find(|rule| rule.number == 1).cloned();
        engine.change_index(&container, rule.unwrap(), Some(7), now).await.map(drop)
    }),
    case!(create_date_rule, Another, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.create_date_rule(&*find(&engine, "c")?, &Path::parse("/when").unwrap(), 5, now).await.map(drop)
    }),
    case!(change_date_rule, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.change_date_rule(&*find(&engine, "dated")?, 0, Some(6), now).await.map(drop)
    }),
    case!(build_indexes, Same, |engine: Engine| async move { engine.build_indexes().await.map(drop) }),
    // The first document of a container narrows what its index covers: a change of the catalog inside a
    // write.
    case!(write, Refused, |engine: Engine| async move {
        let (now, container) = (engine.now().await?, find(&engine, "empty")?);
        let body = document(r#"{"id": "first", "n": {"deep": [1, {"m": null}]}}"#);
        let operation = Operation::Create { id: id_of(&body), body };
        engine
            .write(&container, &partition_key(r#""first""#), operation, InvalidTtl::Refuse, now)
            .await
            .map(drop)
    }),
    case!(transact, Same, |engine: Engine| async move {
        let (now, container) = (engine.now().await?, find(&engine, "c")?);
        let body = document(r#"{"id": "a", "u": 9}"#);
        let upsert = Operation::Upsert { id: id_of(&body), body, if_match: None };
        let read = Operation::Read { id: DocumentId::text("a") };
        let key = partition_key(r#""a""#);
        let done = engine.transact(&container, &key, &[upsert, read], InvalidTtl::Refuse, now).await;
        done.map(drop).map_err(|refused| refused.error)
    }),
    case!(run_statements, Same, |engine: Engine| async move {
        let body = document(r#"{"id": "new"}"#);
        let upsert = [Operation::Upsert { id: DocumentId::text("new"), body, if_match: None }];
        run_statement(&engine, upsert, vec![1, 2]).await
    }),
    case!(split_ranges, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.split_ranges(&*find(&engine, "c")?, 3, now).await.map(drop)
    }),
    case!(transact_parts, Refused, |engine: Engine| async move {
        let now = engine.now().await?;
        let part = |name: &str, key| {
            let create = Operation::Create { id: DocumentId::text("x"), body: document(r#"{"id": "x"}"#) };
            Ok::<_, Error>(Part { container: find(&engine, name)?, key, operations: vec![create] })
        };
        let parts = [part("s", whole())?, part("empty", partition_key(r#""x""#))?];
        let done = engine.transact_parts(&parts, InvalidTtl::Ignore, now).await;
        done.map(drop).map_err(|refused| refused.error)
    }),
    case!(forget_receipts, Same, |engine: Engine| async move {
        let before = Timestamp::from_seconds(START + 1_000_000);
        engine.forget_receipts(&*find(&engine, "s")?, before).await.map(drop)
    }),
    case!(purge, Same, |engine: Engine| async move {
        let now = engine.now().await?;
        engine.purge(now, Pace::Full).await.map(drop)
    }),
    case!(reap, Same, |engine: Engine| async move { engine.reap().await.map(drop) }),
    case!(reclaim, Same, |engine: Engine| async move { engine.reclaim().await.map(drop) }),
    case!(settle_store, Same, |engine: Engine| async move { engine.settle_store().await.map(drop) }),
];

fn find(engine: &Engine, name: &str) -> Result<Arc<Container>> {
    engine.container(&*engine.database(DATABASE)?, name)
}

/// A statement in the collection, with a receipt.
async fn run_statement(engine: &Engine, operations: [Operation; 1], session: Vec<u8>) -> Result<()> {
    let (now, container) = (engine.now().await?, find(engine, "s")?);
    let receipt = Receipt { session, note: Arc::new(|_| Some(vec![3])) };
    let list = StatementList { operations: &operations, ordered: true, receipt: Some(&receipt) };
    let done = engine.run_statements(&container, &whole(), &list, InvalidTtl::Ignore, now).await?;
    done.results.into_iter().try_for_each(|result| result.map(drop))
}

fn offer(engine: &Engine) -> Result<Kept> {
    engine.kept_named(KeptKind::Offer, find(engine, "c")?.id, "offer")
}

fn other(refused: IndexRefused) -> Error {
    match refused {
        IndexRefused::Other(error) => error,
        IndexRefused::Duplicate(body) => panic!("{} has what another has", json(&body)),
    }
}

fn index(field: &str) -> IndexRule {
    IndexRule {
        number: 0,
        name: format!("{field}_1"),
        fields: vec![IndexField { path: field.to_owned(), kind: FieldKind::Up }],
        unique: false,
        sparse: false,
        folded: false,
        filter: Vec::new(),
        date_rule: None,
        is_default_ttl: false,
        building: false,
        spec: Vec::new(),
    }
}

fn collection(name: &str) -> ContainerDefinition {
    let mut definition = definition(name, "");
    definition.indexing = IndexingPolicy {
        mode: IndexingMode::None,
        automatic: false,
        included: Vec::new(),
        excluded: Vec::new(),
        ..IndexingPolicy::default()
    };
    definition.collection = Some(CollectionRules::default());
    definition
}

/// Something of everything: documents alive and expired, a container that nobody has written to, one that is
/// to be reaped, a collection with an index and a receipt, one that waits for its index, a small resource.
async fn furnished(name: &str) -> World {
    let store = Arc::new(Yielding::new(Arc::new(MemoryStore::new())));
    let world = World::on(store, Timestamp::from_seconds(START)).await.unwrap();
    let engine = world.engine();
    engine.create_database(DATABASE, world.now().await).await.unwrap();
    let mut with_ttl = definition("c", "/id");
    with_ttl.default_ttl = Some((-1).try_into().unwrap());
    with_ttl.log_minutes = Some(10);
    let container = world.create_container(with_ttl).await.unwrap();
    world.create("c", r#"{"id": "a", "u": 1, "when": {"$date": 2000}}"#).await.unwrap();
    world.create("c", r#"{"id": "b", "u": 2, "ttl": 2}"#).await.unwrap();
    world.create_container(definition("empty", "/id")).await.unwrap();
    engine.keep(KeptKind::Offer, container.id, "offer", 1.into(), world.now().await).await.unwrap();
    world.create_container(definition("dated", "/id")).await.unwrap();
    world.create("dated", r#"{"id": "d", "when": {"$date": 2000}}"#).await.unwrap();
    let (when, now) = (Path::parse("/when").unwrap(), world.now().await);
    engine.create_date_rule(&world.must_container("dated"), &when, 5, now).await.unwrap();
    world.create_container(collection("s")).await.unwrap();
    for id in ["one", "two"] {
        let body = document(&format!(r#"{{"id": "{id}", "same": 1, "when": {{"$date": 2000}}}}"#));
        let create = [Operation::Create { id: DocumentId::text(id), body }];
        run_statement(engine, create, vec![9]).await.unwrap();
    }
    let now = world.now().await;
    engine.create_index(&world.must_container("s"), index("when"), None, now).await.unwrap();
    world.create_container(definition("unindexed", "/id")).await.unwrap();
    world.create("unindexed", r#"{"id": "u", "n": 1}"#).await.unwrap();
    world.change("unindexed", |definition| definition.indexing.excluded = vec!["/m/*".into()]).await.unwrap();
    world.create_container(definition("gone", "/id")).await.unwrap();
    world.create("gone", r#"{"id": "g"}"#).await.unwrap();
    engine.delete_container(&world.must_container("gone"), None).await.unwrap();
    // `b` has expired, and the horizon is to be moved on.
    world.advance(3);
    tasks_end().await;
    assert!(engine.check().await.unwrap().is_clean(), "{name}");
    world
}

/// Everything that a client can ask for.
async fn state(world: &World) -> Vec<String> {
    let engine = world.engine();
    let mut state = Vec::new();
    let watched = engine.watched(DATABASE, None, world.now().await);
    state.push(format!("watched: {watched:?}"));
    for database in engine.databases() {
        state.push(database.name.clone());
        for container in engine.containers(&database) {
            state.push(format!("{:?} in {} ranges", container.definition(), container.ranges().len()));
            for kept in engine.kept(KeptKind::Offer, container.id) {
                state.push(format!("{} {}", kept.name, kept.value));
            }
            for found in world.list(container.name(), 3).await.unwrap() {
                let expires_at = engine.expires_at(&container, &found.record);
                state.push(format!("{} expires at {expires_at:?}", json(found.record.body())));
            }
            if container.is_collection() {
                let receipt = engine.receipt(&container, &[1, 2]).await.unwrap();
                state.push(format!("{receipt:?}"));
            }
        }
    }
    state
}

/// Nothing is in anybody's way: not in the catalog, not in a container that was there.
async fn nothing_is_locked(world: &World) {
    let now = world.now().await;
    let engine = world.engine();
    let database = engine.create_database("probe", now).await.unwrap();
    for container in engine.databases().iter().flat_map(|database| engine.containers(database)) {
        let definition = container.definition().clone();
        let changed = engine.replace_container(&container, definition, None, now).await.unwrap();
        let body = document(r#"{"id": "probe", "deep": {"n": [null]}}"#);
        let key = if changed.is_collection() { whole() } else { partition_key(r#""probe""#) };
        for operation in [
            Operation::Upsert { id: id_of(&body), body, if_match: None },
            Operation::Delete { id: DocumentId::text("probe"), if_match: None },
        ] {
            engine.write(&changed, &key, operation, InvalidTtl::Ignore, now).await.unwrap();
        }
    }
    engine.delete_database(&database.name, None).await.unwrap();
}

#[tokio::test]
async fn every_operation_is_cut_at_every_poll() {
    for case in CASES {
        let world = furnished(case.name).await;
        let before = state(&world).await;
        (case.run)(world.engine().clone()).await.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        tasks_end().await;
        let after = state(&world).await;
        let mut polls = 0;
        loop {
            let at = format!("{} after {polls} polls", case.name);
            let world = furnished(case.name).await;
            let ended = cut((case.run)(world.engine().clone()), polls).await;
            let is_over = ended.is_some();
            tasks_end().await;
            let report = in_time(&at, world.engine().check()).await.unwrap();
            assert!(report.is_clean(), "{at}: {:#?}", report.problems);
            let left = in_time(&at, state(&world)).await;
            assert!(left == before || left == after, "{at}, half-done: {left:#?}");
            assert_eq!(left, state(&world.neighbour(0).await).await, "{at}: as another engine sees it");
            in_time(&format!("{at}, what came next"), nothing_is_locked(&world)).await;

            let world = furnished(case.name).await;
            cut((case.run)(world.engine().clone()), polls).await;
            tasks_end().await;
            let is_done = state(&world).await == after && after != before;
            if !(is_done && case.again == Another) {
                let again = in_time(&at, (case.run)(world.engine().clone())).await;
                tasks_end().await;
                match again {
                    Ok(()) => {}
                    Err(Error::Exists(_) | Error::NotFound(_) | Error::Contention)
                        if is_done && case.again == Refused => {}
                    Err(error) => panic!("{at}: cannot be repeated: {error}"),
                }
                assert_eq!(state(&world).await, after, "{at}, and again");
            }
            let report = world.engine().check().await.unwrap();
            assert!(report.is_clean(), "{at}, and again: {:#?}", report.problems);
            if is_over {
                break;
            }
            polls += 1;
        }
        assert!(polls > 0 || case.name == "settle_store", "{} has nowhere to be cut", case.name);
    }
}

/// The end of an engine waits for what was begun, whether or not its caller does.
#[tokio::test]
async fn the_end_waits_for_what_is_under_way() {
    let case = CASES.iter().find(|case| case.name == "create_index").unwrap();
    let mut made = 0;
    for polls in 0.. {
        let world = furnished("close").await;
        let before = state(&world).await;
        let ended = cut((case.run)(world.engine().clone()), polls).await;
        world.engine().close().await.unwrap();
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "after {polls} polls");
        if ended.is_some() {
            break;
        }
        made += usize::from(state(&world).await != before);
    }
    assert!(made > 0, "it was never under way");
}

/// The names of `pub async fn` in the blocks `impl Engine`, as the sources have them.
fn operations() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut is_engine = false;
            for line in std::fs::read_to_string(path).unwrap().lines() {
                match line {
                    "impl Engine {" => is_engine = true,
                    "}" => is_engine = false,
                    _ => {}
                }
                let name = line.strip_prefix("    pub async fn ").filter(|_| is_engine);
                found.extend(name.and_then(|rest| rest.split(['(', '<']).next()).map(str::to_owned));
            }
        }
    }
    found
}

/// A new operation has a case, or is known to change nothing.
#[test]
fn every_operation_has_a_case() {
    let cases = CASES.iter().map(|case| case.name);
    let known: Vec<&str> = cases.chain(READS.iter().chain(BETWEEN_NODES).copied()).collect();
    let found = operations();
    let new: Vec<_> = found.iter().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(new.is_empty(), "without a case in engine/tests/it/cancel.rs: {new:?}");
    let gone: Vec<_> = known.iter().filter(|name| !found.iter().any(|found| found == *name)).collect();
    assert!(gone.is_empty(), "no operations any more: {gone:?}");
}
