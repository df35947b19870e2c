//! `delete`.

use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf, doc};

use super::{
    insert::{check_batch, finish},
    reply,
};
use crate::{
    call::{Call, integer},
    changing::{Action, ChangeStatement, Changed, note_of},
    failure::{Failure, Result},
    filter::Filter,
    filtering::{Surroundings, document_in},
    namespace::{self, Collection},
    query::hint_name,
    writer::{Statement, Writer},
};

/// Arguments.
pub const FIELDS: &[&str] =
    &["deletes", "ordered", "let", "collectionUUID", "isTimeseriesNamespace", "encryptionInformation"];

/// Deletes documents.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let deletes = call
        .documents("deletes")?
        .ok_or_else(|| Failure::new(40414, "BSON field 'delete.deletes' is missing but a required field"))?;
    check_batch(deletes.len())?;
    for delete in &deletes {
        check_statement(delete)?;
    }
    // What fails in a transaction ends it.
    let ordered = call.get("ordered")?.is_none() || call.flag("ordered")? || call.in_transaction();
    let collection = namespace::seen(call, &call.db, name);
    let (mut removed, mut errors, mut retried) = (0, Vec::new(), Vec::new());
    for (place, delete) in deletes.iter().enumerate() {
        match statement(call, collection.as_ref(), place, delete, &mut retried).await {
            Ok(changed) => removed += changed.removed,
            Err(failure)
                if failure.code == 112 && call.session.as_ref().is_some_and(|s| s.in_transaction) =>
            {
                return Err(failure);
            }
            Err(failure) if failure.code == 9 && place == 0 => return Err(failure),
            Err(failure) => {
                errors.push(failure.to_write_error(place));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut answer = doc! { "n": removed as i32 };
    finish(&mut answer, errors, retried);
    reply(answer)
}

/// Refuses the command for a statement that is none, whatever the others are.
fn check_statement(delete: &RawDocument) -> Result<()> {
    for element in delete.iter_elements() {
        let field = element?.key().as_str();
        if !["q", "limit", "collation", "hint", "sampleId"].contains(&field) {
            return Err(Failure::unknown_field(&format!("delete.deletes.{field}")));
        }
    }
    match ["q", "limit"].into_iter().find(|field| !matches!(delete.get(field), Ok(Some(_)))) {
        Some(field) => Err(Failure::missing(&format!("delete.deletes.{field}"))),
        None => Ok(()),
    }
}

async fn statement(
    call: &Call<'_>,
    collection: Option<&Collection>,
    place: usize,
    delete: &RawDocument,
    retried: &mut Vec<i32>,
) -> Result<Changed> {
    let multi = match delete.get("limit")?.and_then(integer) {
        Some(0) => true,
        Some(1) => false,
        _ => return Err(Failure::new(9, "The limit field in delete objects must be 0 or 1.")),
    };
    let retryable = call.session.as_ref().filter(|session| session.is_retryable_write());
    if retryable.is_some() && multi {
        return Err(Failure::new(72, "Cannot use (or request) retryable writes with limit=0"));
    }
    let surroundings =
        Surroundings::on(call, collection)?.collated(document_in(delete, "collation", "delete.deletes")?)?;
    let filter = document_in(delete, "q", "delete.deletes")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'delete.deletes.q' is missing but a required field")
    })?;
    let filter = Arc::new(Filter::parse(filter, &surroundings.names())?);
    let Some(collection) = collection else { return Ok(Changed::default()) };
    let hint = hint_name(Some(collection), delete.get("hint")?)?;
    let writer = Writer::new(call, collection)?;
    let number = retryable.map(|session| session.statement(place));
    if let Some(number) = number
        && let Some(note) = writer.answered(number).await?
    {
        retried.push(number);
        return Ok(Changed::from_note(&note));
    }
    let change = ChangeStatement {
        filter,
        multi,
        sort: None,
        hint,
        action: Action::Delete,
        surroundings,
        statement: number.map(|number| Statement { number, answer: Arc::new(note_of) }),
        writer: &writer,
        collection,
    };
    change.run(call).await
}
