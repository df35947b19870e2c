//! `insert`.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc, raw::cstr};

use super::{
    hello::{DOCUMENT_BYTES_MAX, WRITE_BATCH_MAX},
    reply,
};
use crate::{
    call::Call,
    duplicates,
    failure::{Failure, Result},
    filtering::Surroundings,
    namespace,
    service::new_object_id,
    validation::Validator,
    writer::{Change, Decide, Statement, Target, Writer},
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "documents",
    "ordered",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "collectionUUID",
    "isTimeseriesNamespace",
    "encryptionInformation",
];

/// Documents written in one step.
const STEP: usize = 1000;
const STEP_BYTES: usize = 8 << 20;

/// Inserts documents.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let documents = call.documents("documents")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'insert.documents' is missing but a required field")
    })?;
    check_batch(documents.len())?;
    let ordered = call.get("ordered")?.is_none() || call.flag("ordered")?;
    let (inserted, errors, retried) = documents_into(call, name, documents, ordered).await?;
    let mut answer = doc! { "n": inserted };
    finish(&mut answer, errors, retried);
    reply(answer)
}

/// Refuses batches of a wrong size.
pub fn check_batch(count: usize) -> Result<()> {
    if count == 0 || count > WRITE_BATCH_MAX {
        let message =
            format!("Write batch sizes must be between 1 and {WRITE_BATCH_MAX}. Got {count} operations.");
        return Err(Failure::new(16, message));
    }
    Ok(())
}

/// Adds what went wrong, and what had been done before, to a write's answer.
pub fn finish(answer: &mut Document, errors: Vec<Document>, retried: Vec<i32>) {
    if !errors.is_empty() {
        answer.insert("writeErrors", errors);
    }
    if !retried.is_empty() {
        answer.insert("retriedStmtIds", retried);
    }
}

type Inserted = (i32, Vec<Document>, Vec<i32>);

/// Inserts documents into a collection, made if it is not there.
async fn documents_into(
    call: &Call<'_>,
    name: &str,
    documents: Vec<RawDocumentBuf>,
    ordered: bool,
) -> Result<Inserted> {
    let (collection, _) = namespace::ensure(call.mongo, &call.db, name, call.now).await?;
    let writer = Writer::new(call, &collection)?;
    let validator = match call.flag("bypassDocumentValidation")? {
        true => None,
        false => Validator::of(&collection)?,
    };
    let surroundings = Surroundings::on(call, Some(&collection))?;
    let keep_empty = call.flag("bypassEmptyTsReplacement")?;
    let (mut inserted, mut errors, mut retried) = (0, Vec::new(), Vec::new());
    let mut ready: Vec<(usize, Target, RawDocumentBuf)> = Vec::new();
    let mut stop = false;
    for (place, document) in documents.into_iter().enumerate() {
        if let Some(session) = &call.session
            && writer.answered(session.statement(place)).await?.is_some()
        {
            retried.push(session.statement(place));
            inserted += 1;
            continue;
        }
        let prepared = prepare(call, &document, keep_empty).and_then(|document| {
            if let Some(validator) = &validator {
                validator.admit(&surroundings, None, &document)?;
            }
            Ok((writer.target(&document)?, document))
        });
        match prepared {
            Ok((target, document)) => ready.push((place, target, document)),
            Err(failure) => {
                errors.push((place, failure));
                stop = ordered;
            }
        }
        if stop {
            break;
        }
    }
    let mut rest = ready.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|(_, target, document)| {
            bytes += document.as_bytes().len();
            bytes <= STEP_BYTES && target.partition == rest[0].1.partition
        });
        let step = fits.take(STEP).count().max(1);
        let (now, later) = rest.split_at(step);
        match insert_step(call, &writer, &collection, now).await {
            Ok(()) => {
                inserted += now.len() as i32;
                rest = later;
            }
            Err((at, failure)) => {
                // What comes before it in the batch is inserted; what comes after, only if the order does not matter.
                let at = at.min(now.len() - 1);
                if at > 0 {
                    match insert_step(call, &writer, &collection, &now[..at]).await {
                        Ok(()) => inserted += at as i32,
                        Err((before, failure)) => {
                            // Somebody else was quicker with another one meanwhile: one by one.
                            errors.push((now[before.min(at - 1)].0, failure));
                            if ordered {
                                break;
                            }
                            rest = &rest[before.min(at - 1) + 1..];
                            continue;
                        }
                    }
                }
                let aborts = failure.code == 112;
                errors.push((now[at].0, failure));
                if ordered || aborts && writer.txn().is_some() {
                    break;
                }
                rest = &rest[at + 1..];
            }
        }
    }
    call.mongo.counters.inserted.fetch_add(inserted as u64, Relaxed);
    errors.sort_by_key(|(place, _)| *place);
    if ordered {
        errors.truncate(1);
    }
    // A conflict inside of a transaction is the answer itself.
    if let (Some(_), Some((_, failure))) =
        (writer.txn(), errors.iter().find(|(_, failure)| failure.code == 112))
    {
        return Err(failure.clone());
    }
    let errors = errors.iter().map(|(place, failure)| failure.to_write_error(*place)).collect();
    Ok((inserted, errors, retried))
}

async fn insert_step(
    call: &Call<'_>,
    writer: &Writer<'_>,
    collection: &namespace::Collection,
    documents: &[(usize, Target, RawDocumentBuf)],
) -> std::result::Result<(), (usize, Failure)> {
    let targets: Vec<(Target, Decide)> = documents
        .iter()
        .map(|(_, target, document)| {
            let (document, collection) = (document.clone(), collection.clone());
            let decide = move |before: Option<&RawDocument>| match before {
                Some(_) => Err(duplicates::id_taken(&collection, &document)),
                None => Ok(Change::Put(document.clone())),
            };
            (target.clone(), Arc::new(decide) as Decide)
        })
        .collect();
    let statements: Vec<Statement> = match &call.session {
        Some(session) if session.is_retryable_write() => documents
            .iter()
            .map(|(place, _, _)| Statement {
                number: session.statement(*place),
                answer: Arc::new(|_| doc! { "n": 1 }),
            })
            .collect(),
        _ => Vec::new(),
    };
    writer.decide(&targets, &statements).await.map(|_| ())
}

/// A document as it is stored: `_id` first, made up if there is none.
pub fn prepare(call: &Call<'_>, document: &RawDocument, keep_empty: bool) -> Result<RawDocumentBuf> {
    if document.as_bytes().len() > DOCUMENT_BYTES_MAX {
        let message = format!(
            "object to insert too large. size in bytes: {}, max size: {DOCUMENT_BYTES_MAX}",
            document.as_bytes().len()
        );
        return Err(Failure::bad_value(message));
    }
    let id = document.get("_id")?;
    if let Some(id) = id {
        check_id(id)?;
    }
    let empty =
        |value: RawBsonRef<'_>| matches!(value, RawBsonRef::Timestamp(t) if t.time == 0 && t.increment == 0);
    let first = document.iter_elements().next().transpose()?.map(|element| element.key().as_str() == "_id");
    let mut has_empty = false;
    for element in document.iter() {
        has_empty |= empty(element?.1);
    }
    if first == Some(true) && (!has_empty || keep_empty) {
        return Ok(document.to_owned());
    }
    let mut stored = RawDocumentBuf::new();
    match id {
        Some(id) => stored.append(cstr!("_id"), id),
        None => stored.append(cstr!("_id"), new_object_id(&call.mongo.engine, call.now.seconds())),
    }
    for element in document.iter() {
        let (name, value) = element?;
        if name.as_str() == "_id" {
            continue;
        }
        if empty(value) && !keep_empty {
            stored.append(name, call.mongo.cluster_time.tick(call.now));
        } else {
            stored.append(name, value);
        }
    }
    Ok(stored)
}

/// Refuses values that name nothing.
pub fn check_id(id: RawBsonRef<'_>) -> Result<()> {
    match id {
        RawBsonRef::Array(_) => Err(Failure::new(53, "The '_id' value cannot be of type array")),
        RawBsonRef::RegularExpression(_) => Err(Failure::new(53, "The '_id' value cannot be of type regex")),
        RawBsonRef::Undefined => Err(Failure::new(53, "The '_id' value cannot be of type undefined")),
        RawBsonRef::Document(inner) => {
            for element in inner.iter_elements() {
                let name = element?.key().as_str().to_owned();
                if name.starts_with('$') {
                    let message = format!(
                        "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
                    );
                    return Err(Failure::new(52, message));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
