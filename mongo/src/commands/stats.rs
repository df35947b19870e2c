//! `collStats`, `dbStats`, `dataSize`, `validate` and `top`: how much there is.

use bson::{Bson, Document, RawDocumentBuf, doc};

use super::reply;
use crate::{
    call::Call,
    cursor::{Cursor, Ready},
    failure::{Failure, Result},
    indexes,
    namespace::{self, Collection, not_found},
};

/// The figures of a collection. Expired documents are in none of them.
pub async fn of_collection(call: &Call<'_>, collection: &Collection, scale: i64) -> Result<Document> {
    let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
    let (size, count) = (live.bytes as i64, live.documents as i64);
    let shown = indexes::shown(collection);
    let sizes: Document = shown
        .iter()
        .map(|index| (index.get_str("name").unwrap_or_default().to_owned(), Bson::Int64(0)))
        .collect();
    let mut stats = doc! {
        "size": size / scale,
        "count": count,
        "numOrphanDocs": 0,
        "storageSize": size / scale,
        "totalIndexSize": 0_i64,
        "totalSize": size / scale,
        "indexSizes": sizes,
        "avgObjSize": if count > 0 { size / count } else { 0 },
        "ns": collection.namespace(),
        "nindexes": shown.len() as i32,
        "indexBuilds": Vec::<Bson>::new(),
        "freeStorageSize": 0_i64,
        "capped": collection.options().get_bool("capped").unwrap_or(false),
        "scaleFactor": scale as i32,
    };
    if count == 0 {
        stats.remove("avgObjSize");
    }
    let options = collection.options();
    if options.get_bool("capped").unwrap_or(false) {
        let limit = |name: &str| options.get(name).cloned().unwrap_or(Bson::Int64(0));
        stats.insert("max", limit("max"));
        stats.insert("maxSize", limit("size"));
    }
    Ok(stats)
}

/// `collStats`.
pub async fn collection(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let scale = call.integer("scale")?.unwrap_or(1);
    if scale < 1 {
        let message = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
        return Err(Failure::bad_value(message));
    }
    match namespace::seen(call, &call.db, name) {
        Some(collection) if collection.view().is_some() => Err(Failure::new(
            166,
            format!("Namespace {} is a view, not a collection", collection.namespace()),
        )),
        Some(collection) => reply(of_collection(call, &collection, scale).await?),
        None => reply(doc! {
            "ns": format!("{}.{name}", call.db), "size": 0, "count": 0, "numOrphanDocs": 0, "storageSize": 0, "totalSize": 0,
            "nindexes": 0, "totalIndexSize": 0, "indexDetails": {}, "indexSizes": {}, "scaleFactor": scale as i32,
        }),
    }
}

/// `dbStats`.
pub async fn database(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let scale = call.integer("scale")?.unwrap_or(1).max(1);
    let (mut collections, mut views, mut objects, mut size, mut count) = (0_i64, 0_i64, 0_i64, 0_i64, 0_i64);
    for collection in namespace::all_seen(call, &call.db) {
        if collection.view().is_some() {
            views += 1;
            continue;
        }
        let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
        collections += 1;
        objects += live.documents as i64;
        size += live.bytes as i64;
        count += indexes::shown(&collection).len() as i64;
    }
    let scaled = size as f64 / scale as f64;
    reply(doc! {
        "db": &call.db,
        "collections": collections,
        "views": views,
        "objects": objects,
        "avgObjSize": if objects > 0 { size as f64 / objects as f64 } else { 0.0 },
        "dataSize": scaled,
        "storageSize": scaled,
        "indexes": count,
        "indexSize": 0.0,
        "totalSize": scaled,
        "scaleFactor": scale,
        "fsUsedSize": call.mongo.engine.store_stats().disk_bytes as f64,
        "fsTotalSize": 0.0,
    })
}

/// `dataSize`.
pub async fn data_size(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let full = call.text("dataSize")?.unwrap_or_default();
    let (db, name) =
        full.split_once('.').ok_or_else(|| Failure::new(73, format!("Invalid namespace: {full}")))?;
    let live = match namespace::seen(call, db, name) {
        Some(collection) => call.mongo.engine.usage(&collection.container, call.now).await?.live,
        None => Default::default(),
    };
    reply(doc! {
        "estimate": true, "size": live.bytes as i64, "numObjects": live.documents as i64, "millis": 0,
    })
}

/// `validate`: what a running server can say; `mayfly check` looks at everything.
pub async fn validate(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name).ok_or_else(|| not_found(&call.db, name))?;
    if collection.view().is_some() {
        return Err(Failure::new(166, "Cannot validate a view"));
    }
    if call.flag("background")? && call.flag("full")? {
        let message =
            "Running the validate command with both { background: true } and { full: true } is not supported";
        return Err(Failure::new(72, message));
    }
    let live = call.mongo.engine.usage(&collection.container, call.now).await?.live;
    let shown = indexes::shown(&collection);
    let names = || shown.iter().map(|index| index.get_str("name").unwrap_or_default().to_owned());
    let keys: Document = names().map(|name| (name, Bson::Int64(live.documents as i64))).collect();
    let details: Document = names().map(|name| (name, Bson::from(doc! { "valid": true }))).collect();
    reply(doc! {
        "ns": collection.namespace(),
        "uuid": collection.uuid(),
        "nInvalidDocuments": 0_i64,
        "nNonCompliantDocuments": 0_i64,
        "nrecords": live.documents as i64,
        "nIndexes": shown.len() as i32,
        "keysPerIndex": keys,
        "indexDetails": details,
        "valid": true,
        "repaired": false,
        "repairMode": "None",
        "warnings": Vec::<Bson>::new(),
        "errors": Vec::<Bson>::new(),
        "extraIndexEntries": Vec::<Bson>::new(),
        "missingIndexEntries": Vec::<Bson>::new(),
        "corruptRecords": Vec::<Bson>::new(),
    })
}

/// `checkMetadataConsistency`: of a collection, or of a database.
pub async fn metadata_consistency(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let namespace = match call.get("checkMetadataConsistency")? {
        Some(bson::RawBsonRef::String(name)) => format!("{}.{name}", call.db),
        _ => format!("{}.$cmd.aggregate", call.db),
    };
    let cursor = Cursor::new(call, namespace, Ready(Default::default()));
    call.mongo.cursors.first(call.mongo, cursor, None, false, call.now).await
}
