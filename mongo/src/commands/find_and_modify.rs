//! `findAndModify`.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocumentBuf, doc};

use super::reply;
use crate::{
    call::Call,
    changing::{Action, ChangeStatement, Changed, parse_update},
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    projection::Projection,
    query::{check_scores, hint_name},
    sort::SortPattern,
    validation::Validator,
    writer::{Change, Done, Statement, Writer},
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "arrayFilters",
    "collation",
    "hint",
    "let",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "encryptionInformation",
    "sampleId",
    "runtimeConstants",
    "legacyRuntimeConstants",
];

/// Changes one document and answers with it.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let (remove, upsert, new) = (call.flag("remove")?, call.flag("upsert")?, call.flag("new")?);
    let update = call.get("update")?;
    match (remove, update) {
        (true, Some(_)) => return Err(Failure::new(9, "Cannot specify both an update and remove=true")),
        (true, None) if upsert => {
            return Err(Failure::new(9, "Cannot specify both upsert=true and remove=true "));
        }
        (true, None) if new => {
            let message =
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document";
            return Err(Failure::new(9, message));
        }
        (false, None) => return Err(Failure::new(9, "Either an update or remove=true must be specified")),
        _ => {}
    }
    let collection = match namespace::seen(call, &call.db, name) {
        Some(found) => Some(found),
        None if upsert => Some(namespace::ensure(call, &call.db, name).await?.0),
        None => None,
    };
    let mut surroundings = Surroundings::on(call, collection.as_ref())?;
    let filter = match call.document("query")? {
        Some(filter) => Arc::new(Filter::parse(filter, &surroundings.names())?),
        None => Arc::new(Filter::all()),
    };
    let sort = call.document("sort")?.filter(|sort| !sort.is_empty()).map(SortPattern::parse).transpose()?;
    // It shows what it changed, and not what it found.
    check_scores(&Filter::all(), call.get("fields")?)?;
    let projection = match call.document("fields")?.filter(|fields| !fields.is_empty()) {
        Some(fields) => Some(Projection::parse_find(fields, &filter, &surroundings.names())?),
        None => None,
    };
    if new && projection.as_ref().is_some_and(Projection::is_positional) {
        return Err(Failure::bad_value("cannot use a positional projection and return the new document"));
    }
    let parsed = match update {
        Some(update) => Some(parse_update(update, call.array("arrayFilters")?, None, &mut surroundings)?),
        None => None,
    };
    let Some(collection) = collection else {
        return answer(&Changed::default(), remove, None);
    };
    let writer = Writer::new(call, &collection)?;
    let session = call.session.as_ref().filter(|session| session.is_retryable_write());
    let number = session.map(|session| session.statement(0));
    if let Some(number) = number
        && let Some(mut kept) = writer.answered(number).await?
    {
        kept.insert("retriedStmtId", number);
        return reply(kept);
    }
    let validator = match call.flag("bypassDocumentValidation")? {
        true => None,
        false => Validator::of(&collection)?.map(Arc::new),
    };
    let shape = {
        let (projection, surroundings) = (projection.map(Arc::new), surroundings.clone());
        move |document: RawDocumentBuf| -> Result<RawDocumentBuf> {
            match &projection {
                Some(projection) => Ok(surroundings.with(|context| projection.apply(&document, context))?),
                None => Ok(document),
            }
        }
    };
    let remembered = {
        let shape = shape.clone();
        move |done: &[Done]| -> Document {
            let changed = changed_of(done);
            let shown = shown(&changed, new, remove).and_then(|document| shape(document).ok());
            answer_document(&changed, remove, shown).unwrap_or_default()
        }
    };
    let change = ChangeStatement {
        filter,
        multi: false,
        sort,
        hint: hint_name(Some(&collection), call.get("hint")?)?,
        action: match parsed {
            Some(update) => Action::Update { update, upsert, validator },
            None => Action::Delete,
        },
        surroundings,
        statement: number.map(|number| Statement { number, answer: Arc::new(remembered) }),
        writer: &writer,
        collection: &collection,
    };
    let changed = change.run(call).await?;
    let shown = shown(&changed, new, remove).map(shape).transpose()?;
    answer(&changed, remove, shown)
}

fn changed_of(done: &[Done]) -> Changed {
    let mut changed = Changed::default();
    if let Some(one) = done.first() {
        changed.before = one.before.clone();
        match &one.change {
            Change::Put(after) | Change::Modify(after) => {
                changed.after = Some(after.clone());
                match &one.before {
                    Some(_) => (changed.matched, changed.modified) = (1, 1),
                    None => {
                        changed.upserted =
                            after.get("_id").ok().flatten().and_then(|id| Bson::try_from(id).ok())
                    }
                }
            }
            Change::Keep => {
                changed.matched = 1;
                changed.after = one.before.clone();
            }
            Change::Remove => changed.removed = 1,
            Change::Skip => {}
        }
    }
    changed
}

fn shown(changed: &Changed, new: bool, remove: bool) -> Option<RawDocumentBuf> {
    if new && !remove { changed.after.clone() } else { changed.before.clone() }
}

fn answer_document(changed: &Changed, remove: bool, shown: Option<RawDocumentBuf>) -> Result<Document> {
    let n = changed.matched + changed.removed + u64::from(changed.upserted.is_some());
    let mut last = doc! { "n": n as i32 };
    if !remove {
        last.insert("updatedExisting", changed.matched > 0);
        if let Some(id) = &changed.upserted {
            last.insert("upserted", id.clone());
        }
    }
    let value = match shown {
        Some(document) => Bson::try_from(RawBsonRef::Document(&document))?,
        None => Bson::Null,
    };
    Ok(doc! { "lastErrorObject": last, "value": value })
}

fn answer(changed: &Changed, remove: bool, shown: Option<RawDocumentBuf>) -> Result<RawDocumentBuf> {
    reply(answer_document(changed, remove, shown)?)
}
