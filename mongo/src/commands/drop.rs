//! `drop`, `dropDatabase` and `renameCollection`: what takes a name away.

use bson::{Document, RawDocumentBuf, doc};
use mayfly_engine::Error as EngineError;

use super::reply;
use crate::{
    auth::Role,
    call::{Call, check_collection_name},
    change_stream::{Happening, Subject, finish_log},
    failure::{Failure, Result},
    indexes, namespace, users,
};

/// `drop`. One that is not there is as good as dropped.
pub async fn collection(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let Some(collection) = namespace::seen(call, &call.db, name) else {
        return reply(Document::new());
    };
    let count = indexes::shown(&collection).len() as i32;
    finish_log(call.mongo, &collection, call.now).await?;
    let dropped = Happening::Drop { collection: Subject::of(&collection) };
    let notes = call.mongo.streams.notes(call.mongo, &[dropped], call.now).await?;
    match call.mongo.engine.delete_container_noting(&collection.container, &notes).await {
        Ok(()) | Err(EngineError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let namespace = collection.namespace();
    call.mongo.streams.stir();
    call.mongo.cursors.kill_of(&namespace);
    reply(doc! { "nIndexesWas": count, "ns": namespace })
}

/// `dropDatabase`.
pub async fn database(call: &Call<'_>) -> Result<RawDocumentBuf> {
    if call.integer("dropDatabase")? != Some(1) {
        return Err(Failure::new(5_255_100, "Have to pass 1 as 'drop' parameter"));
    }
    if call.db == users::DATABASE {
        return Err(Failure::new(20, "Dropping the 'admin' database is prohibited."));
    }
    let mut dropped = Vec::new();
    for collection in namespace::all_seen(call, &call.db) {
        finish_log(call.mongo, &collection, call.now).await?;
        dropped.push(Happening::Drop { collection: Subject::of(&collection) });
    }
    dropped.push(Happening::DropDatabase { db: call.db.clone() });
    let notes = call.mongo.streams.notes(call.mongo, &dropped, call.now).await?;
    match call.mongo.engine.delete_database_noting(&call.db, &notes).await {
        Ok(()) => {
            call.mongo.streams.stir();
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
        let missing = || Failure::missing(&format!("renameCollection.{field}"));
        let full = call.text(field)?.ok_or_else(missing)?;
        let (db, name) = full
            .split_once('.')
            .ok_or_else(|| Failure::new(73, format!("Invalid namespace specified '{full}'")))?;
        check_collection_name(db, name)?;
        Ok((db.to_owned(), name.to_owned()))
    };
    let (db, name) = split("renameCollection")?;
    let (to_db, to_name) = split("to")?;
    call.check_role(&db, Role::ReadWrite)?;
    call.check_role(&to_db, Role::ReadWrite)?;
    if users::are_kept_in(&to_db, &to_name) {
        call.check_role(&to_db, Role::Admin)?;
    }
    let source = namespace::seen(call, &db, &name)
        .ok_or_else(|| Failure::new(26, format!("Source collection {db}.{name} does not exist")))?;
    if (&db, &name) == (&to_db, &to_name) {
        return Err(Failure::new(20, "Can't rename a collection to itself"));
    }
    let replaces = call.flag("dropTarget")?;
    let target = namespace::seen(call, &to_db, &to_name);
    if target.is_some() && !replaces {
        return Err(Failure::new(48, "target namespace exists"));
    }
    if let Some(target) = &target {
        finish_log(call.mongo, target, call.now).await?;
    }
    let database = namespace::ensure_database(&call.mongo.engine, &to_db, call.now).await?;
    let (collection, replaced) = (Subject::of(&source), target.as_ref().map(Subject::of));
    let renamed = Happening::Rename { collection, to: (to_db, to_name.clone()), replaced };
    let notes = call.mongo.streams.notes(call.mongo, &[renamed], call.now).await?;
    call.mongo.engine.rename_container(&source.container, &database, &to_name, replaces, &notes).await?;
    call.mongo.cursors.kill_of(&source.namespace());
    call.mongo.streams.stir();
    reply(Document::new())
}
