//! `$out` and `$merge`: what a pipeline's documents become when nobody is given them.

use std::{collections::VecDeque, sync::Arc};

use bson::{RawDocument, RawDocumentBuf, doc, raw::cstr};

use crate::{
    auth::Role,
    call::{Call, check_collection_name},
    change_stream::{Happening, Subject, finish_log},
    commands::prepare,
    duplicates,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    indexes,
    namespace::{self, Collection},
    pipeline::{Effect, Merge, NoCollections, Out, Row, WhenMatched, WhenNotMatched},
    query::Query,
    service::to_raw,
    update::compare_names,
    validation::Validator,
    writer::{Change, Decide, Order, Target, Writer},
};

/// Documents written in one step.
const STEP: usize = 500;

/// Does what a pipeline wants done.
pub async fn apply(
    call: &Call<'_>,
    effect: &Effect,
    documents: VecDeque<RawDocumentBuf>,
    surroundings: &Surroundings,
) -> Result<()> {
    if call.in_transaction() {
        return Err(Failure::new(263, "$out and $merge cannot be used in a transaction"));
    }
    // Reading is enough for the command, not for this.
    let (Effect::Out(Out { database, .. }) | Effect::Merge(Merge { database, .. })) = effect;
    call.check_role(database.as_deref().unwrap_or(&call.db), Role::ReadWrite)?;
    match effect {
        Effect::Out(out) => replace(call, out, documents).await,
        Effect::Merge(merge) => merge_into(call, merge, documents, surroundings).await,
    }
}

/// `$out`: fills a new collection and puts it in the place of the old one.
async fn replace(call: &Call<'_>, out: &Out, documents: VecDeque<RawDocumentBuf>) -> Result<()> {
    let db = out.database.as_deref().unwrap_or(&call.db);
    check_collection_name(db, &out.collection)?;
    if out.collection.starts_with("system.") {
        let message = format!("Can't $out to special collection: {}", out.collection);
        return Err(Failure::new(17385, message));
    }
    let old = namespace::seen(call, db, &out.collection);
    if let Some(old) = &old {
        old.check_writable()?;
    }
    let unique: String = call.mongo.engine.ids().unique().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("tmp.agg_out.{unique}");
    let options = old.as_ref().map(Collection::options).unwrap_or_default();
    let fresh = namespace::create(call, db, &name, &options).await?;
    let filled = fill(call, &fresh, old.as_ref(), documents).await;
    if let Err(failure) = filled {
        let dropped = Happening::Drop { collection: Subject::of(&fresh) };
        let notes = call.mongo.streams.notes(call.mongo, &[dropped], call.now).await?;
        call.mongo.engine.delete_container_noting(&fresh.container, &notes).await?;
        call.mongo.streams.stir();
        return Err(failure);
    }
    if let Some(old) = &old {
        finish_log(call.mongo, old, call.now).await?;
    }
    let database = namespace::ensure_database(&call.mongo.engine, db, call.now).await?;
    let current = namespace::seen(call, db, &name).unwrap_or(fresh);
    let to = (db.to_owned(), out.collection.clone());
    let (collection, replaced) = (Subject::of(&current), old.as_ref().map(Subject::of));
    let renamed = Happening::Rename { collection, to, replaced };
    let notes = call.mongo.streams.notes(call.mongo, &[renamed], call.now).await?;
    let (container, name) = (&current.container, &out.collection);
    call.mongo.engine.rename_container(container, &database, name, true, &notes).await?;
    call.mongo.streams.stir();
    Ok(())
}

async fn fill(
    call: &Call<'_>,
    fresh: &Collection,
    old: Option<&Collection>,
    documents: VecDeque<RawDocumentBuf>,
) -> Result<()> {
    let mut current = fresh.clone();
    for spec in old.map(indexes::shown).unwrap_or_default().iter().skip(1) {
        let wanted = indexes::parse(spec, true)?;
        current = crate::commands::build_index(call, &current, wanted).await?;
    }
    let writer = Writer::new(call, &current)?;
    let validator = match call.flag("bypassDocumentValidation")? {
        true => None,
        false => Validator::of(&current)?,
    };
    let surroundings = Surroundings::on(call, Some(&current))?;
    let mut batch: Vec<(Target, Decide)> = Vec::new();
    for document in documents {
        let document = prepare(call, document, true)?;
        if let Some(validator) = &validator {
            validator.admit(&surroundings, None, &document)?;
        }
        let target = writer.target(&document)?;
        let collection = current.clone();
        let decide = move |before: Option<&RawDocument>| match before {
            Some(_) => Err(duplicates::id_taken(&collection, &document)),
            None => Ok(Change::Put(document.clone())),
        };
        batch.push((target, Arc::new(decide)));
        if batch.len() >= STEP {
            let done = writer.decide(&std::mem::take(&mut batch), &[], Order::Ordered).await;
            done.into_iter().try_for_each(|done| done.map(drop))?;
        }
    }
    let done = writer.decide(&batch, &[], Order::Ordered).await;
    done.into_iter().try_for_each(|done| done.map(drop))
}

/// `$merge`: writes each document where its fields say.
async fn merge_into(
    call: &Call<'_>,
    merge: &Merge,
    documents: VecDeque<RawDocumentBuf>,
    surroundings: &Surroundings,
) -> Result<()> {
    let db = merge.database.as_deref().unwrap_or(&call.db);
    check_collection_name(db, &merge.collection)?;
    if merge.collection.starts_with("system.") {
        let message = format!("Cannot $merge to special collection: {}", merge.collection);
        return Err(Failure::new(31319, message));
    }
    let mut collection = namespace::seen(call, db, &merge.collection);
    let by_id = merge.on.len() == 1 && merge.on[0] == "_id";
    if !by_id {
        let mut on = merge.on.clone();
        on.sort();
        let unique = collection.as_ref().map(indexes::shown).unwrap_or_default().iter().any(|index| {
            let mut fields: Vec<String> =
                index.get_document("key").map(|key| key.keys().cloned().collect()).unwrap_or_default();
            fields.sort();
            index.get_bool("unique").unwrap_or(false) && fields == on
        });
        if !unique {
            return Err(Failure::new(51183, "Cannot find index to verify that join fields will be unique"));
        }
    }
    let inserts = merge.when_not_matched == WhenNotMatched::Insert;
    let mut failed = None;
    for document in documents {
        let target = match &collection {
            Some(target) => target,
            // Made by the first document that is inserted, and not by a pipeline that gives none.
            None if inserts => collection.insert(namespace::ensure(call, db, &merge.collection).await?.0),
            None if merge.when_not_matched == WhenNotMatched::Discard => continue,
            None => return Err(no_match()),
        };
        // One that cannot be written keeps no other from being written; the first is what the command fails with.
        if let Err(failure) = one(call, merge, target, &document, by_id, surroundings).await {
            failed.get_or_insert(failure);
        }
    }
    failed.map_or(Ok(()), Err)
}

fn no_match() -> Failure {
    let message = "$merge could not find a matching document in the target collection for at least one document \
                   in the source collection";
    Failure::new(13113, message)
}

async fn one(
    call: &Call<'_>,
    merge: &Merge,
    collection: &Collection,
    new: &RawDocument,
    by_id: bool,
    surroundings: &Surroundings,
) -> Result<()> {
    let writer = Writer::new(call, collection)?;
    let prepared = prepare(call, new.to_owned(), true)?;
    let target = if by_id {
        Some(writer.target(&prepared)?)
    } else {
        let mut wanted = doc! {};
        for path in &merge.on {
            let value = new.get(path)?.map(bson::Bson::try_from).transpose()?;
            let value = value.ok_or_else(|| {
                Failure::new(
                    51132,
                    "$merge write error: 'on' field cannot be missing, null, undefined or an array",
                )
            })?;
            wanted.insert(path, doc! { "$eq": value });
        }
        let filter = Filter::parse(&to_raw(&wanted), &surroundings.names())?;
        let mut source =
            Query::new(Some(collection.clone()), filter, surroundings.clone(), None).open(call.mongo).await?;
        let found = source.next(call.mongo, call.now).await?;
        found.map(|found| Target { id: found.id, partition: found.partition })
    };
    let matched = match &target {
        Some(target) => {
            let record =
                call.mongo.engine.read_collection(&collection.container, &target.id, None, call.now).await?;
            record.map(|record| record.body().to_owned())
        }
        None => None,
    };
    let change = match &matched {
        None => match merge.when_not_matched {
            WhenNotMatched::Insert => Change::Put(match merge.when_matched {
                // These are updates that insert, and set one field after the other.
                WhenMatched::Merge | WhenMatched::KeepExisting => {
                    merged(&with_id(&prepared, &RawDocumentBuf::new())?, &prepared)?
                }
                _ => prepared.clone(),
            }),
            WhenNotMatched::Discard => return Ok(()),
            WhenNotMatched::Fail => return Err(no_match()),
        },
        Some(old) => match &merge.when_matched {
            WhenMatched::KeepExisting => return Ok(()),
            WhenMatched::Fail => return Err(duplicates::id_taken(collection, &prepared)),
            WhenMatched::Replace => Change::Put(with_id(old, new)?),
            WhenMatched::Merge => Change::Put(merged(old, new)?),
            WhenMatched::Pipeline(pipeline) => {
                let mut inner = surroundings.clone();
                let values = surroundings.with(|context| {
                    let mut values = Vec::new();
                    for (name, expression) in &merge.variables {
                        let value = expression.evaluate(new, context)?;
                        values.push((name.clone(), value.unwrap_or(bson::RawBson::Null)));
                    }
                    Ok::<_, crate::error::MongoError>(values)
                })?;
                if merge.variables.is_empty() {
                    inner.variables.push(("new".into(), bson::RawBson::Document(new.to_owned())));
                }
                inner.variables.extend(values);
                let after = inner.with(|context| {
                    let mut execution = pipeline.start(context, &NoCollections);
                    execution.push(Row::made(old.clone()))?;
                    execution.finish()?;
                    Ok::<_, crate::error::MongoError>(execution.take())
                })?;
                Change::Put(after.into_iter().next().map(|row| row.document).unwrap_or_default())
            }
        },
    };
    let target = match target {
        Some(target) => target,
        None => writer.target(&prepared)?,
    };
    let decide = move |_: Option<&RawDocument>| Ok(change.clone());
    writer.decide_one(target, Arc::new(decide), None).await?;
    Ok(())
}

/// The new document under the old one's `_id`.
fn with_id(old: &RawDocument, new: &RawDocument) -> Result<RawDocumentBuf> {
    let mut document = RawDocumentBuf::new();
    if let Some(id) = old.get("_id")? {
        document.append(cstr!("_id"), id);
    }
    for element in new.iter() {
        let (name, value) = element?;
        if name.as_str() != "_id" {
            document.append(name, value);
        }
    }
    Ok(document)
}

/// The old document with the fields of the new one, which are set in the order of their names, as by an update.
fn merged(old: &RawDocument, new: &RawDocument) -> Result<RawDocumentBuf> {
    let mut document = bson::Document::try_from(old)?;
    let mut fields: Vec<_> = bson::Document::try_from(new)?.into_iter().collect();
    fields.sort_by(|(a, _), (b, _)| compare_names(a, b));
    for (name, value) in fields {
        if name != "_id" {
            document.insert(name, value);
        }
    }
    Ok(to_raw(&document))
}
