//! `$out` and `$merge`: what a pipeline's documents become when nobody is given them.

mod merge;

use std::{collections::VecDeque, sync::Arc};

use bson::{RawDocument, RawDocumentBuf};

use crate::{
    auth::Role,
    call::{Call, check_collection_name},
    change_stream::{Happening, Subject, finish_log},
    commands::prepare,
    duplicates,
    failure::{Failure, Result},
    filtering::Surroundings,
    indexes,
    namespace::{self, Collection},
    pipeline::{Effect, Out},
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
    let database = match effect {
        Effect::Out(Out { database, .. }) => database,
        Effect::Merge(merge) => &merge.database,
    };
    call.check_role(database.as_deref().unwrap_or(&call.db), Role::ReadWrite)?;
    match effect {
        Effect::Out(out) => replace(call, out, documents).await,
        Effect::Merge(merge) => merge::into(call, merge, documents, surroundings).await,
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
