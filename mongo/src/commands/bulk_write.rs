//! `bulkWrite`: inserts, updates and deletes in several collections.

use std::{collections::VecDeque, sync::Arc};

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::insert::{check_batch, prepare};
use crate::{
    arguments::{Argument, Kind, check_command, check_fields, may, must},
    auth::Role,
    call::{Call, check_collection_name, integer},
    changing::{Action, ChangeStatement, Changed, note_of, parse_update},
    cursor::{Cursor, Ready},
    duplicates,
    failure::{Failure, Result},
    filter::Filter,
    filtering::{Surroundings, document_in},
    namespace,
    query::hint_name,
    service::{appended, to_raw},
    sort::SortPattern,
    validation::Validator,
    writer::{Change, Statement, Writer},
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "ops",
    "nsInfo",
    "ordered",
    "errorsOnly",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "let",
    "cursor",
];

/// Fields of an item of `nsInfo`.
const NAMESPACE: &[Argument] = &[
    must("ns", Kind::Text),
    may("collectionUUID", Kind::Any),
    may("encryptionInformation", Kind::Any),
    may("isTimeseriesNamespace", Kind::Any),
];

/// Types of the arguments, but for `ops` and `nsInfo`, which drivers send beside the command's document.
const ARGUMENTS: &[Argument] = &[
    may("ordered", Kind::Strict),
    may("errorsOnly", Kind::Strict),
    may("bypassDocumentValidation", Kind::Truth),
    may("let", Kind::Object),
    may("cursor", Kind::Fields(&[may("batchSize", Kind::Number(0, i64::MAX))])),
];

/// Which of the namespaces; whether there is such a one is looked at by itself.
const PLACE: Kind = Kind::Number(i64::MIN, i64::MAX);

const INSERT: &[Argument] = &[must("insert", PLACE), must("document", Kind::Object)];

const UPDATE: &[Argument] = &[
    must("update", PLACE),
    must("filter", Kind::Object),
    must("updateMods", Kind::Update),
    may("multi", Kind::Strict),
    may("upsert", Kind::Strict),
    may("arrayFilters", Kind::Array),
    may("collation", Kind::Object),
    may("hint", Kind::Hint),
    may("sort", Kind::Object),
    may("constants", Kind::Object),
    may("upsertSupplied", Kind::Truth),
    may("sampleId", Kind::Any),
    may("allowShardKeyUpdatesWithoutFullShardKeyInQuery", Kind::Truth),
];

const DELETE: &[Argument] = &[
    must("delete", PLACE),
    must("filter", Kind::Object),
    may("multi", Kind::Strict),
    may("collation", Kind::Object),
    may("hint", Kind::Hint),
    may("sampleId", Kind::Any),
];

#[derive(Default)]
struct Counts {
    errors: i32,
    inserted: i32,
    matched: i32,
    modified: i32,
    upserted: i32,
    deleted: i32,
}

/// Carries out the operations.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    check_command("bulkWrite", &call.request.body, ARGUMENTS)?;
    let missing = |field: &str| {
        Failure::new(40414, format!("BSON field 'bulkWrite.{field}' is missing but a required field"))
    };
    let operations = call.documents("ops")?.ok_or_else(|| missing("ops"))?;
    let names = call.documents("nsInfo")?.ok_or_else(|| missing("nsInfo"))?;
    check_batch(operations.len())?;
    // What fails in a transaction ends it.
    let ordered = call.get("ordered")?.is_none() || call.flag("ordered")? || call.in_transaction();
    let errors_only = call.flag("errorsOnly")?;
    let mut namespaces = Vec::new();
    for info in &names {
        check_fields("bulkWrite.nsInfo", info, NAMESPACE)?;
        let full = info.get_str("ns").unwrap_or_default();
        let (db, name) = full
            .split_once('.')
            .ok_or_else(|| Failure::new(73, format!("Invalid namespace specified '{full}'")))?;
        check_collection_name(db, name)?;
        call.check_role(db, Role::ReadWrite)?;
        namespaces.push((db.to_owned(), name.to_owned()));
    }
    for operation in &operations {
        check_operation(operation, namespaces.len())?;
    }
    let (mut counts, mut results, mut retried) = (Counts::default(), VecDeque::new(), Vec::new());
    for (place, operation) in operations.iter().enumerate() {
        let done = one(call, place, operation, &namespaces, &mut counts, &mut retried).await;
        match done {
            Ok(result) => {
                if !errors_only {
                    let mut whole = doc! { "ok": 1.0, "idx": place as i32 };
                    whole.extend(result);
                    results.push_back(to_raw(&whole));
                }
            }
            Err(failure)
                if failure.code == 112 && call.session.as_ref().is_some_and(|s| s.in_transaction) =>
            {
                return Err(failure);
            }
            Err(failure) => {
                counts.errors += 1;
                let mut error =
                    doc! { "ok": 0.0, "idx": place as i32, "code": failure.code, "errmsg": &failure.message };
                error.extend((*failure.fields).clone());
                error.insert("n", 0);
                if matches!(operation.get("update"), Ok(Some(_))) {
                    error.insert("nModified", 0);
                }
                results.push_back(to_raw(&error));
                if ordered {
                    break;
                }
            }
        }
    }
    let batch = match call.document("cursor")? {
        Some(cursor) => cursor.get("batchSize")?.and_then(integer).map(|size| size.max(0) as usize),
        None => None,
    };
    let cursor = Cursor::new(call, "admin.$cmd.bulkWrite".into(), Ready(results));
    let answer = call
        .mongo
        .cursors
        .first(call.mongo, cursor, Some(batch.unwrap_or(usize::MAX)), false, call.now)
        .await?;
    let mut end = doc! {
        "nErrors": counts.errors, "nInserted": counts.inserted, "nMatched": counts.matched,
        "nModified": counts.modified, "nUpserted": counts.upserted, "nDeleted": counts.deleted,
    };
    if !retried.is_empty() {
        end.insert("retriedStmtIds", retried);
    }
    Ok(appended(answer, end))
}

/// Refuses the command for an operation that is none, whatever the others are.
fn check_operation(operation: &RawDocument, namespaces: usize) -> Result<()> {
    let Some((kind, target)) = operation.iter().next().transpose()? else {
        return Err(Failure::new(9, "an operation of bulkWrite is empty"));
    };
    let table = match kind.as_str() {
        "insert" => INSERT,
        "update" => UPDATE,
        "delete" => DELETE,
        other => return Err(Failure::unknown_field(&format!("bulkWrite.{other}"))),
    };
    check_fields("bulkWrite.ops", operation, table)?;
    if !integer(target).is_some_and(|place| usize::try_from(place).is_ok_and(|place| place < namespaces)) {
        return Err(Failure::bad_value("BulkWrite ops entry has an invalid nsInfo index."));
    }
    Ok(())
}

async fn one(
    call: &Call<'_>,
    place: usize,
    operation: &RawDocument,
    namespaces: &[(String, String)],
    counts: &mut Counts,
    retried: &mut Vec<i32>,
) -> Result<Document> {
    let Some((kind, target)) = operation.iter().next().transpose()? else {
        return Err(Failure::new(9, "an operation of bulkWrite is empty"));
    };
    let target =
        integer(target).and_then(|place| usize::try_from(place).ok()).and_then(|place| namespaces.get(place));
    let (db, name) =
        target.ok_or_else(|| Failure::bad_value("BulkWrite ops entry has an invalid nsInfo index."))?;
    let kind = kind.as_str();
    let flag = |name: &str| matches!(operation.get(name), Ok(Some(RawBsonRef::Boolean(true))));
    let session = call.session.as_ref().filter(|session| session.is_retryable_write());
    let number = session.map(|session| session.statement(place));
    let collection = match (namespace::seen(call, db, name), kind, flag("upsert")) {
        (Some(found), _, _) => Some(found),
        (None, "insert", _) | (None, "update", true) => Some(namespace::ensure(call, db, name).await?.0),
        _ => None,
    };
    let mut surroundings = Surroundings::on(call, collection.as_ref())?.collated(document_in(
        operation,
        "collation",
        "bulkWrite.ops",
    )?)?;
    if flag("multi") && session.is_some() {
        return Err(Failure::new(72, "Cannot use retryable writes with multi=true"));
    }
    let part = |name: &str| {
        document_in(operation, name, "bulkWrite.ops")?.ok_or_else(|| {
            Failure::new(40414, format!("BSON field 'bulkWrite.{name}' is missing but a required field"))
        })
    };
    let action = match kind {
        "insert" => {
            let Some(collection) = collection else { return Ok(Document::new()) };
            let document = prepare(call, part("document")?.to_owned(), false)?;
            let writer = Writer::new(call, &collection)?;
            if let Some(number) = number
                && writer.answered(number).await?.is_some()
            {
                retried.push(number);
                counts.inserted += 1;
                return Ok(doc! { "n": 1 });
            }
            if let Some(validator) = Validator::of(&collection)?
                .filter(|_| !call.flag("bypassDocumentValidation").unwrap_or(false))
            {
                validator.admit(&surroundings, None, &document)?;
            }
            let target = writer.target(&document)?;
            let taken = collection.clone();
            let decide = move |before: Option<&RawDocument>| match before {
                Some(_) => Err(duplicates::id_taken(&taken, &document)),
                None => Ok(Change::Put(document.clone())),
            };
            let statement = number.map(|number| Statement { number, answer: Arc::new(|_| doc! { "n": 1 }) });
            writer.decide_one(target, Arc::new(decide), statement.as_ref()).await?;
            counts.inserted += 1;
            call.mongo.counters.inserted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            return Ok(doc! { "n": 1 });
        }
        "update" => {
            let body = operation.get("updateMods")?.ok_or_else(|| {
                Failure::new(40414, "BSON field 'bulkWrite.updateMods' is missing but a required field")
            })?;
            let array_filters = match operation.get("arrayFilters")? {
                Some(RawBsonRef::Array(filters)) => Some(filters),
                _ => None,
            };
            let constants = document_in(operation, "constants", "bulkWrite.ops")?;
            let update = parse_update(body, array_filters, constants, &mut surroundings)?;
            if flag("multi") && update.is_replacement() {
                return Err(Failure::new(9, "multi update is not supported for replacement-style update"));
            }
            let validator = match (&collection, call.flag("bypassDocumentValidation")?) {
                (Some(collection), false) => Validator::of(collection)?.map(Arc::new),
                _ => None,
            };
            Action::Update { update, upsert: flag("upsert"), validator }
        }
        "delete" => Action::Delete,
        other => {
            return Err(Failure::new(
                40415,
                format!("BSON field 'bulkWrite.ops.{other}' is an unknown field."),
            ));
        }
    };
    let deletes = matches!(action, Action::Delete);
    let filter = Arc::new(Filter::parse(part("filter")?, &surroundings.names())?);
    let sort = document_in(operation, "sort", "bulkWrite.ops")?.map(SortPattern::parse).transpose()?;
    let changed = match &collection {
        None => Changed::default(),
        Some(collection) => {
            let writer = Writer::new(call, collection)?;
            match number {
                Some(number) if writer.answered(number).await?.is_some() => {
                    retried.push(number);
                    writer.answered(number).await?.map(|note| Changed::from_note(&note)).unwrap_or_default()
                }
                _ => {
                    let change = ChangeStatement {
                        filter,
                        multi: flag("multi"),
                        sort,
                        hint: hint_name(Some(collection), operation.get("hint")?)?,
                        action,
                        surroundings,
                        statement: number.map(|number| Statement { number, answer: Arc::new(note_of) }),
                        writer: &writer,
                        collection,
                    };
                    change.run(call).await?
                }
            }
        }
    };
    if deletes {
        counts.deleted += changed.removed as i32;
        return Ok(doc! { "n": changed.removed as i32 });
    }
    let upserted = i32::from(changed.upserted.is_some());
    counts.matched += changed.matched as i32;
    counts.modified += changed.modified as i32;
    counts.upserted += upserted;
    let mut result = doc! { "n": changed.matched as i32 + upserted, "nModified": changed.modified as i32 };
    if let Some(id) = changed.upserted {
        result.insert("upserted", doc! { "_id": id });
    }
    Ok(result)
}
