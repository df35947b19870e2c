//! `drop`, `dropDatabase` and `renameCollection`: what takes a name away.

use bson::{Document, RawDocumentBuf, doc};
use mayfly_engine::Error as EngineError;

use super::reply;
use crate::{
    call::{Call, check_collection_name},
    change_stream::{Farewell, Happening},
    failure::{Failure, Result},
    indexes, namespace,
};

/// `drop`. One that is not there is as good as dropped.
pub async fn collection(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let Some(collection) = namespace::find(&call.mongo.engine, &call.db, name) else {
        return reply(Document::new());
    };
    let count = indexes::shown(&collection).len() as i32;
    let farewell = Farewell::of(call.mongo, &collection, call.now).await?;
    match call.mongo.engine.delete_container(&collection.container, None).await {
        Ok(()) | Err(EngineError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let time = call.mongo.cluster_time.tick(call.now);
    call.mongo.streams.tell(Happening::Drop { db: call.db.clone(), name: name.to_owned(), farewell }, time);
    call.mongo.cursors.kill_of(&collection.namespace());
    reply(doc! { "nIndexesWas": count, "ns": collection.namespace() })
}

/// `dropDatabase`.
pub async fn database(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let mut dropped = Vec::new();
    for collection in namespace::list(&call.mongo.engine, &call.db) {
        let farewell = Farewell::of(call.mongo, &collection, call.now).await?;
        dropped.push((collection.name, farewell));
    }
    match call.mongo.engine.delete_database(&call.db, None).await {
        Ok(()) => {
            for (name, farewell) in dropped {
                let time = call.mongo.cluster_time.tick(call.now);
                call.mongo.streams.tell(Happening::Drop { db: call.db.clone(), name, farewell }, time);
            }
            let time = call.mongo.cluster_time.tick(call.now);
            call.mongo.streams.tell(Happening::DropDatabase { db: call.db.clone() }, time);
            call.mongo.cursors.kill_of(&format!("{}.", call.db));
        }
        Err(EngineError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    reply(Document::new())
}

/// `renameCollection`.
pub async fn rename(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let split = |field: &str| -> Result<(String, String)> {
        let full = call.text(field)?.unwrap_or_default();
        let (db, name) = full
            .split_once('.')
            .ok_or_else(|| Failure::new(73, format!("Invalid namespace specified '{full}'")))?;
        check_collection_name(db, name)?;
        Ok((db.to_owned(), name.to_owned()))
    };
    let (db, name) = split("renameCollection")?;
    let (to_db, to_name) = split("to")?;
    let source = namespace::find(&call.mongo.engine, &db, &name)
        .ok_or_else(|| Failure::new(26, format!("Source collection {db}.{name} does not exist")))?;
    if (&db, &name) == (&to_db, &to_name) {
        return Err(Failure::new(20, "Can't rename a collection to itself"));
    }
    let replaces = call.flag("dropTarget")?;
    let target = namespace::find(&call.mongo.engine, &to_db, &to_name);
    if target.is_some() && !replaces {
        return Err(Failure::new(48, "target namespace exists"));
    }
    let database = namespace::ensure_database(&call.mongo.engine, &to_db, call.now).await?;
    call.mongo.engine.rename_container(&source.container, &database, &to_name, replaces).await?;
    let time = call.mongo.cluster_time.tick(call.now);
    let (from, to) = ((db, name), (to_db, to_name));
    call.mongo.cursors.kill_of(&source.namespace());
    call.mongo.streams.tell(Happening::Rename { from, to }, time);
    reply(Document::new())
}
