//! How resources look as JSON: their system properties, and the envelope of a feed.

use std::{borrow::Cow, cell::RefCell};

use bson::{
    RawDocument,
    raw::{CStr, cstr},
};
use mayfly_engine::{Container, Database, Engine, Record};
use mayfly_sql::{Value as SqlValue, write_number};
use mayfly_value::{
    json::{
        ObjectWriter,
        plain::{self, Instead},
        write_int,
    },
    partition::Epk,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};

use crate::{
    collection,
    error::ApiError,
    policy,
    rid::{ChildKind, Rid},
};

/// The name of the account. Not `localhost`: the JavaScript SDK treats that one specially.
pub const ACCOUNT: &str = "mayfly";

/// Properties that the server owns. What a client sends under these names is dropped.
pub const SYSTEM_PROPERTIES: [&str; 6] = ["_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"];

/// Those that a document always has: all but the number of its commit, which the change feed adds.
pub const ADDED: &[&str] = SYSTEM_PROPERTIES.split_at(5).0;

/// Stands in a stored document, with null, where those were that the client sent, if properties of its own came behind them. No
/// index has it, unless a policy names it.
pub const PLACE_OF_ADDED: &CStr = cstr!("_etag");

fn is_added(name: &[u8]) -> bool {
    name.first() == Some(&b'_') && ADDED.iter().any(|added| added.as_bytes() == name)
}

/// What a document weighs more as JSON text, about: most of it is what the server adds.
pub const ADDED_BYTES: usize = 256;

/// Bits of a document's RID for the commit that made it and for its place in that. The commit has the low ones, which come
/// first in the text: clients put rows of equal rank in the order of these texts, and in the service older ones come
/// first then, whichever range they are in.
const LSN_BITS: u32 = 40;
const ORDINAL_BITS: u32 = 8;

/// The account, with its endpoints as the client reached us.
pub fn account(base_url: &str) -> Value {
    let region = json!([{ "name": "Mayfly", "databaseAccountEndpoint": base_url }]);
    json!({
        "_self": "",
        "id": ACCOUNT,
        "_rid": format!("{ACCOUNT}.sql.cosmos.azure.com"),
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": region,
        "readableLocations": region,
        "enableMultipleWriteLocations": false,
        "continuousBackupEnabled": false,
        "enableNRegionSynchronousCommit": false,
        "enablePerPartitionFailoverBehavior": false,
        "userReplicationPolicy": { "asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 4 },
        "userConsistencyPolicy": { "defaultConsistencyLevel": "Session" },
        "systemReplicationPolicy": { "minReplicaSetSize": 1, "maxReplicasetSize": 4, "asyncReplication": false },
        "readPolicy": { "primaryReadCoefficient": 1, "secondaryReadCoefficient": 1 },
        "queryEngineConfiguration": query_engine_configuration().to_string(),
    })
}

/// Limits that client-side planners ask for.
fn query_engine_configuration() -> Value {
    json!({
        "maxSqlQueryInputLength": 262_144,
        "maxJoinsPerSqlQuery": 5,
        "maxLogicalAndPerSqlQuery": 500,
        "maxLogicalOrPerSqlQuery": 500,
        "maxUdfRefPerSqlQuery": 10,
        "maxInExpressionItemsCount": 16_000,
        "queryMaxInMemorySortDocumentCount": 500,
        "maxQueryRequestTimeoutFraction": 0.9,
        "sqlAllowNonFiniteNumbers": false,
        "sqlAllowAggregateFunctions": true,
        "sqlAllowSubQuery": true,
        "sqlAllowScalarSubQuery": true,
        "allowNewKeywords": true,
        "sqlAllowLike": true,
        "sqlAllowGroupByClause": true,
        "maxSpatialQueryCells": 12,
        "spatialMaxGeometryPointCount": 256,
        "sqlDisableQueryILOptimization": false,
        "sqlDisableOptimizationFlags": 0,
        "sqlAllowTop": true,
        "enableSpatialIndexing": true,
    })
}

/// A database's RID.
pub fn database_rid(database: &Database) -> String {
    Rid::Database { db: database.id }.encode()
}

/// A container's RID.
pub fn container_rid(container: &Container) -> String {
    with_paths(container, |paths| paths.rid.clone())
}

/// Calls `set` with a container's RID and its path of names, as headers show them.
pub fn with_container_paths(database: &Database, container: &Container, set: impl FnOnce(&str, &str)) {
    with_paths(container, |paths| {
        let named = paths.in_headers.take().filter(|named| named.name == container.name());
        let named = named.unwrap_or_else(|| {
            let path = ["dbs/", &database.name, "/colls/", container.name()].concat();
            Named { name: container.name().to_owned(), path: header_path(&path) }
        });
        set(&paths.rid, &paths.in_headers.insert(named).path);
    });
}

/// What must stay plain in a header; names may be anything.
const NOT_PLAIN: &AsciiSet = &CONTROLS.add(b'%');

/// A path of names as it can stand in a header.
pub fn header_path(path: &str) -> String {
    Cow::from(utf8_percent_encode(path, NOT_PLAIN)).into_owned()
}

/// What is the same in all answers about one container.
struct Paths {
    container: (u32, u32),
    rid: String,
    /// The path of RIDs up to its documents.
    documents: String,
    in_headers: Option<Named>,
}

/// The path of names as long as a container has this name: it may get another one.
struct Named {
    name: String,
    path: String,
}

/// Calls `use_paths` with those of a container. Answers about the same one share them: a container's numbers are its own for good.
fn with_paths<T>(container: &Container, use_paths: impl FnOnce(&mut Paths) -> T) -> T {
    thread_local! {
        static LAST: RefCell<Option<Paths>> = const { RefCell::new(None) };
    }
    let (db, coll) = (container.database, container.id);
    LAST.with_borrow_mut(|last| {
        let paths = last.take().filter(|paths| paths.container == (db, coll)).unwrap_or_else(|| {
            let rid = Rid::Container { db, coll }.encode();
            let documents = format!("dbs/{}/colls/{rid}/docs/", Rid::Database { db }.encode());
            Paths { container: (db, coll), rid, documents, in_headers: None }
        });
        use_paths(last.insert(paths))
    })
}

/// A database.
pub fn database(database: &Database) -> Value {
    let rid = database_rid(database);
    json!({
        "id": database.name,
        "_rid": rid,
        "_self": format!("dbs/{rid}/"),
        "_etag": database.etag().to_string(),
        "_colls": "colls/",
        "_users": "users/",
        "_ts": database.modified,
    })
}

/// A container.
pub fn container(container: &Container) -> Value {
    let (db, rid) = (Rid::Database { db: container.database }.encode(), container_rid(container));
    let mut object = policy::to_json(container.definition());
    let system = json!({
        "_rid": rid,
        "_self": format!("dbs/{db}/colls/{rid}/"),
        "_etag": container.etag().to_string(),
        "_ts": container.modified(),
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    });
    if let Value::Object(system) = system {
        object.extend(system);
    }
    Value::Object(object)
}

/// Appends a document: its properties in their order, then the system's, unless those have a place among them.
pub fn push_document(
    engine: &Engine,
    container: &Container,
    slot: u16,
    record: &Record,
    out: &mut Vec<u8>,
) -> Result<(), ApiError> {
    write_document(engine, container, slot, record, out).map(ObjectWriter::end)
}

/// Appends a document as the change feed shows it: with the number of its commit.
pub fn push_changed_document(
    engine: &Engine,
    container: &Container,
    slot: u16,
    record: &Record,
    out: &mut Vec<u8>,
) -> Result<(), ApiError> {
    let mut object = write_document(engine, container, slot, record, out)?;
    object.field_int("_lsn", record.lsn as i64);
    object.end();
    Ok(())
}

/// A feed of documents that are JSON text already.
pub fn document_feed(owner_rid: &str, documents: &[Vec<u8>]) -> Vec<u8> {
    let head = format!("{{\"_rid\":\"{owner_rid}\",\"Documents\":[");
    let tail = format!("],\"_count\":{}}}", documents.len());
    [head.as_bytes(), &documents.join(&b","[..]), tail.as_bytes()].concat()
}

/// What the server adds to the documents of a container, as queries see it.
pub struct SystemProperties<'a> {
    engine: &'a Engine,
    container: &'a Container,
}

impl<'a> SystemProperties<'a> {
    /// For the documents of `container`.
    pub fn new(engine: &'a Engine, container: &'a Container) -> Self {
        Self { engine, container }
    }

    /// Appends a document with those properties, as a row that it is by itself. False, and nothing is written, if it has types
    /// that JSON lacks.
    pub fn push_row(&self, slot: u16, record: &Record, body: &RawDocument, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.push(b'{');
        let mut push = |out: &mut Vec<u8>| push_system(self.engine, self.container, slot, record, out);
        let mut system: Instead<'_> = Some(&mut push);
        let is_empty = plain::write_members(body.as_bytes(), is_added, &mut system, write_number, out, 1);
        let Some(is_empty) = is_empty else {
            out.truncate(start);
            return false;
        };
        if let Some(push) = system {
            if !is_empty {
                out.push(b',');
            }
            push(out);
        }
        out.push(b'}');
        true
    }

    /// Those of one document.
    pub fn of(&self, slot: u16, record: &Record) -> [(&'static str, SqlValue<'static>); 5] {
        let (rid, path) = document_rid(self.container, slot, record);
        [
            ("_rid", SqlValue::string(rid)),
            ("_self", SqlValue::string(path)),
            ("_etag", SqlValue::string(self.engine.etag(self.container, slot, record).to_text())),
            ("_attachments", SqlValue::string("attachments/")),
            ("_ts", SqlValue::Int(record.ts() as i64)),
        ]
    }
}

/// A document's RID and its path of RIDs.
pub fn document_rid(container: &Container, slot: u16, record: &Record) -> (String, String) {
    let rid = Rid::document(container.database, container.id, document_number(slot, record)).encode();
    let path = with_paths(container, |paths| [&paths.documents, &rid, "/"].concat());
    (rid, path)
}

fn document_number(slot: u16, record: &Record) -> u64 {
    let birth = record.birth;
    let place = u64::from(slot) << ORDINAL_BITS | u64::from(birth.ordinal);
    place << LSN_BITS | birth.lsn
}

/// Appends the properties that the server adds, as JSON. Nothing in them has to be escaped, and every row has them: so they
/// are put together as they are.
fn push_system(engine: &Engine, container: &Container, slot: u16, record: &Record, out: &mut Vec<u8>) {
    let rid = Rid::document_text(container.database, container.id, document_number(slot, record));
    out.extend_from_slice(b"\"_rid\":\"");
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"\",\"_self\":\"");
    with_paths(container, |paths| out.extend_from_slice(paths.documents.as_bytes()));
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"/\",\"_etag\":\"\\\"");
    out.extend_from_slice(&engine.etag(container, slot, record).digits());
    out.extend_from_slice(b"\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
    write_int(record.ts() as i64, out);
}

fn write_document<'a>(
    engine: &Engine,
    container: &Container,
    slot: u16,
    record: &Record,
    out: &'a mut Vec<u8>,
) -> Result<ObjectWriter<'a>, ApiError> {
    let mut object = ObjectWriter::begin(out);
    let mut push = |out: &mut Vec<u8>| push_system(engine, container, slot, record, out);
    let mut system: Instead<'_> = Some(&mut push);
    let body = collection::shown(container, record)?;
    object.fields_of_except(&body, is_added, &mut system).map_err(|_| ApiError::internal())?;
    if let Some(push) = system {
        object.fields_as(push);
    }
    Ok(object)
}

/// A feed of resources.
pub fn feed(owner_rid: &str, key: &str, items: Vec<Value>) -> Value {
    let count = items.len();
    json!({ "_rid": owner_rid, key: items, "_count": count })
}

/// The partition key ranges of a container; those that came after a change of them, if one is told.
pub fn partition_key_ranges(container: &Container, after: Option<u32>) -> Vec<Value> {
    let all = container.ranges();
    let (db, coll) = (Rid::Database { db: container.database }.encode(), container_rid(container));
    let news = all.iter().filter(|range| after.is_none_or(|after| range.generation > after));
    let shown = news.map(|range| {
        let rid = Rid::Child {
            db: container.database,
            coll: container.id,
            kind: ChildKind::PartitionKeyRange,
            number: u64::from(range.id) + 1,
        };
        let rid = rid.encode();
        json!({
            "_rid": rid,
            "id": range.id.to_string(),
            "_etag": format!("\"{}.{}\"", container.id, range.generation),
            "minInclusive": range.keys.start.to_hex(),
            "maxExclusive": range.keys.end.as_ref().map_or("FF".to_owned(), Epk::to_hex),
            "ridPrefix": range.id,
            "_self": format!("dbs/{db}/colls/{coll}/pkranges/{rid}/"),
            "throughputFraction": 1.0 / all.len() as f64,
            "status": "online",
            "parents": range.parents.iter().map(u32::to_string).collect::<Vec<_>>(),
            "ownedArchivalPKRangeIds": [],
            "_ts": range.made.unwrap_or(container.modified()),
        })
    });
    shown.collect()
}
