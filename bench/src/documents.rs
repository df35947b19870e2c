//! The documents that benches write: about 1 KB of JSON with ten indexed leaves.

use bson::RawDocumentBuf;
use mayfly_engine::{Container, DefaultTtl, DocumentId, Engine, IndexingPolicy, InvalidTtl, Operation};
use mayfly_engine::{ContainerDefinition, Timestamp};
use mayfly_value::{
    json::{self, JsonLimits},
    partition::{Component, KeyDefinition, KeyKind, PartitionKey},
    path::Path,
};
use std::sync::Arc;

/// Logical partitions that the documents are spread over.
pub const PARTITIONS: usize = 1000;

/// The text of document `n`: ten leaves that the policy of [`container`] indexes, and a payload that it does not.
pub fn text(n: usize) -> String {
    let payload = "mayfly ".repeat(110);
    format!(
        r#"{{"id":"{n:08}","pk":"p{}","name":"session {n}","user":{},"score":{}.5,"active":{},"tags":["a","b"],"address":{{"city":"Lisbon","zip":"{:05}"}},"payload":"{payload}"}}"#,
        n % PARTITIONS,
        n % 5000,
        n % 100,
        n.is_multiple_of(2),
        n % 99_999
    )
}

/// The id of document `n`.
pub fn id(n: usize) -> DocumentId {
    DocumentId::text(&id_text(n))
}

/// The same as text.
pub fn id_text(n: usize) -> String {
    format!("{n:08}")
}

/// The partition key of document `n`.
pub fn key(n: usize) -> PartitionKey {
    PartitionKey(vec![Component::String(format!("p{}", n % PARTITIONS))])
}

/// Document `n`.
pub fn body(n: usize) -> RawDocumentBuf {
    json::parse_document(text(n).as_bytes(), JsonLimits::default()).expect("bench documents are valid")
}

/// The operation that makes document `n`.
pub fn create(n: usize) -> Operation {
    Operation::Create { id: id(n), body: body(n) }
}

/// A container for these documents.
pub async fn container(
    engine: &Engine,
    name: &str,
    default_ttl: Option<DefaultTtl>,
    now: Timestamp,
) -> Arc<Container> {
    let mut indexing = IndexingPolicy::default();
    indexing.excluded.push("/payload/?".into());
    container_with(engine, name, default_ttl, indexing, now).await
}

/// A container with an indexing policy of the caller's.
pub async fn container_with(
    engine: &Engine,
    name: &str,
    default_ttl: Option<DefaultTtl>,
    indexing: IndexingPolicy,
    now: Timestamp,
) -> Arc<Container> {
    let database = match engine.database("bench") {
        Ok(database) => database,
        Err(_) => engine.create_database("bench", now).await.expect("a new database"),
    };
    let path = Path::parse("/pk").expect("a path");
    let mut definition =
        ContainerDefinition::new(name, KeyDefinition { paths: vec![path], kind: KeyKind::Hash, version: 2 });
    definition.default_ttl = default_ttl;
    definition.indexing = indexing;
    engine.create_container(&database, definition, 1, now).await.expect("a new container")
}

/// A container of several slots for these documents.
pub async fn container_in_slots(engine: &Engine, name: &str, slots: u32, now: Timestamp) -> Arc<Container> {
    let one = container(engine, name, None, now).await;
    let database = engine.database("bench").expect("it was just made");
    let mut definition = one.definition().clone();
    definition.name = format!("{name}-{slots}");
    engine.create_container(&database, definition, slots, now).await.expect("a new container")
}

/// Writes documents `0..count` in batches of one logical partition, as a bulk load does.
pub async fn load(engine: &Engine, container: &Arc<Container>, count: usize, now: Timestamp) {
    const BATCH: usize = 50;
    let loads = (0..PARTITIONS).map(|partition| {
        let ids: Vec<usize> = (partition..count).step_by(PARTITIONS).collect();
        let (engine, container) = (engine.clone(), container.clone());
        async move {
            for batch in ids.chunks(BATCH) {
                let operations: Vec<_> = batch.iter().map(|n| create(*n)).collect();
                let done =
                    engine.transact(&container, &key(partition), &operations, InvalidTtl::Refuse, now).await;
                done.map_err(|refused| refused.error).expect("a load of new documents");
            }
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    for load in loads {
        if tasks.len() >= 8 {
            tasks.join_next().await;
        }
        tasks.spawn(load);
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a load does not panic");
    }
}
