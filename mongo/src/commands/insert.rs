//! `insert`.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc, raw::cstr, spec::ElementType};
use mayfly_engine::Operation;
use mayfly_value::partition::PartitionKey;

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
    writer::{Change, Decide, Order, Statement, Target, Writer},
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
    // What fails in a transaction ends it.
    let ordered = call.get("ordered")?.is_none() || call.flag("ordered")? || call.in_transaction();
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
    let (collection, _) = namespace::ensure(call, &call.db, name).await?;
    let writer = Writer::new(call, &collection)?;
    let validator = match call.flag("bypassDocumentValidation")? {
        true => None,
        false => Validator::of(&collection)?,
    };
    let surroundings = Surroundings::on(call, Some(&collection))?;
    let keep_empty = call.flag("bypassEmptyTsReplacement")?;
    let (mut inserted, mut errors, mut retried) = (0, Vec::new(), Vec::new());
    let mut ready = Ready::default();
    let mut stop = false;
    for (place, document) in documents.into_iter().enumerate() {
        if let Some(session) = &call.session
            && writer.answered(session.statement(place)).await?.is_some()
        {
            retried.push(session.statement(place));
            inserted += 1;
            continue;
        }
        let prepared = prepare(call, document, keep_empty).and_then(|document| {
            if let Some(validator) = &validator {
                validator.admit(&surroundings, None, &document)?;
            }
            Ok((writer.target(&document)?, document))
        });
        match prepared {
            Ok((target, document)) => ready.push(place, target, document),
            Err(failure) => {
                errors.push((place, failure));
                stop = ordered;
            }
        }
        if stop {
            break;
        }
    }
    let mut from = 0;
    while from < ready.len() {
        let mut bytes = 0;
        let fits = ready.range(from..).take_while(|(partition, body)| {
            bytes += body.as_bytes().len();
            bytes <= STEP_BYTES && **partition == ready.partitions[from]
        });
        let end = from + fits.take(STEP).count().max(1);
        let results = ready.insert(call, &writer, &collection, from..end, Order::of(ordered)).await;
        let failed = errors.len();
        for (place, result) in ready.places[from..end].iter().zip(results) {
            match result {
                Ok(()) => inserted += 1,
                Err(failure) => errors.push((*place, failure)),
            }
        }
        if ordered && errors.len() > failed {
            break;
        }
        from = end;
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

/// Documents that are ready to be written, each with its place in the command.
#[derive(Default)]
struct Ready {
    places: Vec<usize>,
    partitions: Vec<PartitionKey>,
    /// As the engine takes them, so that a step of them is a slice.
    creates: Vec<Operation>,
}

impl Ready {
    fn push(&mut self, place: usize, target: Target, body: RawDocumentBuf) {
        self.places.push(place);
        self.partitions.push(target.partition);
        self.creates.push(Operation::Create { id: target.id, body });
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    fn range(
        &self,
        range: std::ops::RangeFrom<usize>,
    ) -> impl Iterator<Item = (&PartitionKey, &RawDocument)> {
        self.partitions[range.clone()].iter().zip(self.creates[range].iter().filter_map(
            |create| match create {
                Operation::Create { body, .. } => Some(&**body),
                _ => None,
            },
        ))
    }

    /// Inserts some of them in one step. There are fewer answers if an ordered step was stopped.
    async fn insert(
        &self,
        call: &Call<'_>,
        writer: &Writer<'_>,
        collection: &namespace::Collection,
        some: std::ops::Range<usize>,
        order: Order,
    ) -> Vec<Result<()>> {
        let statements: Vec<Statement> = match &call.session {
            Some(session) if session.is_retryable_write() => self.places[some.clone()]
                .iter()
                .map(|place| Statement {
                    number: session.statement(*place),
                    answer: Arc::new(|_| doc! { "n": 1 }),
                })
                .collect(),
            _ => Vec::new(),
        };
        if writer.txn().is_none() && collection.container.is_collection() {
            return writer.insert(&self.creates[some], &statements, order).await;
        }
        let decisions = self.partitions[some.clone()].iter().zip(&self.creates[some]);
        let decisions = decisions.filter_map(|(partition, create)| {
            let Operation::Create { id, body } = create else { return None };
            let (document, collection) = (body.clone(), collection.clone());
            let decide = move |before: Option<&RawDocument>| match before {
                Some(_) => Err(duplicates::id_taken(&collection, &document)),
                None => Ok(Change::Put(document.clone())),
            };
            let target = Target { id: id.clone(), partition: partition.clone() };
            Some((target, Arc::new(decide) as Decide))
        });
        let decisions: Vec<(Target, Decide)> = decisions.collect();
        let done = writer.decide(&decisions, &statements, order).await;
        done.into_iter().map(|done| done.map(drop)).collect()
    }
}

/// A document as it is stored: `_id` first, made up if there is none.
pub fn prepare(call: &Call<'_>, document: RawDocumentBuf, keep_empty: bool) -> Result<RawDocumentBuf> {
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
    for element in document.iter_elements() {
        let element = element?;
        has_empty |= element.element_type() == ElementType::Timestamp && empty(element.value()?);
    }
    if first == Some(true) && (!has_empty || keep_empty) {
        return Ok(document);
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
