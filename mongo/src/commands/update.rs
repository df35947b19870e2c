//! `update`.

use std::sync::Arc;

use bson::{Bson, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::{
    insert::{check_batch, finish},
    reply,
};
use crate::{
    call::{Call, integer},
    changing::{Action, ChangeStatement, Changed, note_of, parse_update},
    failure::{Failure, Result},
    filter::Filter,
    filtering::{Surroundings, document_in},
    namespace::{self, Collection},
    pipeline::STAGES,
    query::hint_name,
    sort::SortPattern,
    validation::Validator,
    writer::{Statement, Writer},
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "updates",
    "ordered",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "let",
    "collectionUUID",
    "isTimeseriesNamespace",
    "encryptionInformation",
    "runtimeConstants",
    "legacyRuntimeConstants",
];

const STATEMENT_FIELDS: &[&str] = &[
    "q",
    "u",
    "c",
    "multi",
    "upsert",
    "collation",
    "arrayFilters",
    "hint",
    "sort",
    "upsertSupplied",
    "sampleId",
    "allowShardKeyUpdatesWithoutFullShardKeyInQuery",
];

/// A stage that nobody knows fails the command, not just the statement.
fn check_stages(stages: &RawArray) -> Result<()> {
    for stage in stages {
        let RawBsonRef::Document(stage) = stage? else { continue };
        let Some(element) = stage.iter_elements().next().transpose()? else { continue };
        let name = element.key().as_str();
        if !STAGES.iter().copied().flatten().any(|stage| stage.name == name) {
            return Err(Failure::new(40324, format!("Unrecognized pipeline stage name: '{name}'")));
        }
    }
    Ok(())
}

/// Updates documents.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let updates = call
        .documents("updates")?
        .ok_or_else(|| Failure::new(40414, "BSON field 'update.updates' is missing but a required field"))?;
    check_batch(updates.len())?;
    // What fails in a transaction ends it.
    let ordered = call.get("ordered")?.is_none() || call.flag("ordered")? || call.in_transaction();
    let mut statements = Vec::new();
    for update in &updates {
        for element in update.iter_elements() {
            let field = element?.key().as_str().to_owned();
            if !STATEMENT_FIELDS.contains(&field.as_str()) {
                return Err(Failure::unknown_field(&format!("update.updates.{field}")));
            }
        }
        if let Some(field) = ["q", "u"].into_iter().find(|field| !matches!(update.get(field), Ok(Some(_)))) {
            return Err(Failure::missing(&format!("update.updates.{field}")));
        }
        if flag(update, "multi") && document_in(update, "sort", "update.updates")?.is_some() {
            return Err(Failure::new(9, "Cannot specify sort with multi=true"));
        }
        if let Ok(stages) = update.get_array("u") {
            check_stages(stages)?;
        }
        statements.push(update);
    }
    let upserts = updates.iter().any(|update| flag(update, "upsert"));
    let collection = match namespace::seen(call, &call.db, name) {
        Some(found) => Some(found),
        None if upserts => Some(namespace::ensure(call, &call.db, name).await?.0),
        None => None,
    };
    let (mut matched, mut modified) = (0, 0);
    let (mut upserted, mut errors, mut retried) = (Vec::new(), Vec::new(), Vec::new());
    for (place, update) in statements.into_iter().enumerate() {
        let done = statement(call, collection.as_ref(), place, update, &mut retried).await;
        match done {
            Ok(changed) => {
                matched += changed.matched;
                modified += changed.modified;
                if let Some(id) = changed.upserted {
                    matched += 1;
                    upserted.push(Bson::from(doc! { "index": place as i32, "_id": id }));
                }
            }
            Err(failure)
                if failure.code == 112 && call.session.as_ref().is_some_and(|s| s.in_transaction) =>
            {
                return Err(failure);
            }
            Err(failure) => {
                errors.push(failure.to_write_error(place));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut answer = doc! { "n": matched as i32 };
    if !upserted.is_empty() {
        answer.insert("upserted", upserted);
    }
    answer.insert("nModified", modified as i32);
    finish(&mut answer, errors, retried);
    reply(answer)
}

fn flag(document: &RawDocument, name: &str) -> bool {
    match document.get(name) {
        Ok(Some(RawBsonRef::Boolean(value))) => value,
        Ok(Some(value)) => integer(value).is_some_and(|number| number != 0),
        _ => false,
    }
}

async fn statement(
    call: &Call<'_>,
    collection: Option<&Collection>,
    place: usize,
    update: &RawDocument,
    retried: &mut Vec<i32>,
) -> Result<Changed> {
    let multi = flag(update, "multi");
    let retryable = call.session.as_ref().filter(|session| session.is_retryable_write());
    if retryable.is_some() && multi {
        return Err(Failure::new(72, "Cannot use (or request) retryable writes with multi=true"));
    }
    let mut surroundings =
        Surroundings::on(call, collection)?.collated(document_in(update, "collation", "update.updates")?)?;
    let filter = document_in(update, "q", "update.updates")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'update.updates.q' is missing but a required field")
    })?;
    let body = update.get("u")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'update.updates.u' is missing but a required field")
    })?;
    let array_filters = match update.get("arrayFilters")? {
        Some(RawBsonRef::Array(filters)) => Some(filters),
        _ => None,
    };
    let constants = document_in(update, "c", "update.updates")?;
    let parsed = parse_update(body, array_filters, constants, &mut surroundings)?;
    if multi && parsed.is_replacement() {
        return Err(Failure::new(9, "multi update is not supported for replacement-style update"));
    }
    let filter = Arc::new(Filter::parse(filter, &surroundings.names())?);
    let sort = document_in(update, "sort", "update.updates")?;
    let sort = sort.filter(|sort| !sort.is_empty()).map(SortPattern::parse).transpose()?;
    let Some(collection) = collection else { return Ok(Changed::default()) };
    let hint = hint_name(Some(collection), update.get("hint")?)?;
    let writer = Writer::new(call, collection)?;
    let number = retryable.map(|session| session.statement(place));
    if let Some(number) = number
        && let Some(note) = writer.answered(number).await?
    {
        retried.push(number);
        return Ok(Changed::from_note(&note));
    }
    let validator = match call.flag("bypassDocumentValidation")? {
        true => None,
        false => Validator::of(collection)?.map(Arc::new),
    };
    let change = ChangeStatement {
        filter,
        multi,
        sort,
        hint,
        action: Action::Update { update: parsed, upsert: flag(update, "upsert"), validator },
        surroundings,
        statement: number.map(|number| Statement { number, answer: Arc::new(note_of) }),
        writer: &writer,
        collection,
    };
    change.run(call).await
}
