//! `$merge`: writes each document of a pipeline where its fields say.
//!
//! Each is decided about on the version that is there when it is written, as an update is, so what others write meanwhile
//! is not lost, and the validator of the collection is asked.

use std::{collections::VecDeque, sync::Arc};

use bson::{Bson, Document, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, doc, raw::cstr};

use crate::{
    call::{Call, check_collection_name},
    changing::check_size,
    commands::prepare,
    duplicates,
    error::MongoError,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    indexes,
    namespace::{self, Collection},
    pipeline::{Merge, NoCollections, Row, WhenMatched, WhenNotMatched},
    query::Query,
    service::to_raw,
    update::compare_names,
    validation::Validator,
    writer::{Change, Target, Writer},
};

/// Writes the documents. One that cannot be written keeps no other from being written.
pub(super) async fn into(
    call: &Call<'_>,
    merge: &Arc<Merge>,
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
    let index = unique_index(merge, collection.as_ref())?;
    let inserts = merge.when_not_matched == WhenNotMatched::Insert;
    let (mut failed, mut unmatched) = (None, None);
    for document in documents {
        let target = match &collection {
            Some(target) => target,
            // Made by the first document that is inserted, and not by a pipeline that gives none.
            None if inserts => collection.insert(namespace::ensure(call, db, &merge.collection).await?.0),
            None if merge.when_not_matched == WhenNotMatched::Discard => continue,
            None => return Err(no_match()),
        };
        match OneDocument::new(call, (merge, index.as_ref()), target, document, surroundings)?
            .write(call)
            .await
        {
            Ok(true) => {}
            Ok(false) => drop(unmatched.get_or_insert_with(no_match)),
            Err(failure) => drop(failed.get_or_insert(failure)),
        }
    }
    // What could not be written is told before what was not there.
    failed.or(unmatched).map_or(Ok(()), Err)
}

/// The index by which no two documents have the fields of `on` alike; none for `_id`.
fn unique_index(merge: &Merge, collection: Option<&Collection>) -> Result<Option<Document>> {
    if is_by_id(merge) {
        return Ok(None);
    }
    let mut on = merge.on.clone();
    on.sort();
    let unique = collection.map(indexes::shown).unwrap_or_default().into_iter().find(|index| {
        let mut fields: Vec<String> =
            index.get_document("key").map(|key| key.keys().cloned().collect()).unwrap_or_default();
        fields.sort();
        index.get_bool("unique").unwrap_or(false) && fields == on
    });
    let missing = || Failure::new(51183, "Cannot find index to verify that join fields will be unique");
    unique.map(Some).ok_or_else(missing)
}

fn is_by_id(merge: &Merge) -> bool {
    merge.on.len() == 1 && merge.on[0] == "_id"
}

fn no_match() -> Failure {
    let message = "$merge could not find a matching document in the target collection for at least one document \
                   in the source collection";
    Failure::new(13113, message)
}

/// A document on its way into a collection.
#[derive(Clone)]
struct OneDocument {
    merge: Arc<Merge>,
    collection: Collection,
    /// What the pipeline gave.
    new: RawDocumentBuf,
    /// The same as it is inserted: with an `_id`.
    prepared: RawDocumentBuf,
    /// Which documents it may be merged with; none if `_id` says that.
    filter: Option<Filter>,
    surroundings: Surroundings,
    validator: Option<Validator>,
}

impl OneDocument {
    fn new(
        call: &Call<'_>,
        (merge, index): (&Arc<Merge>, Option<&Document>),
        collection: &Collection,
        new: RawDocumentBuf,
        surroundings: &Surroundings,
    ) -> Result<Self> {
        let by_id = is_by_id(merge) || matches!(merge.when_matched, WhenMatched::Fail);
        let filter = match by_id {
            // An insert: whatever is alike is found by the indexes.
            true => None,
            false => {
                let is_sparse = index.is_some_and(|index| index.get_bool("sparse").unwrap_or(false));
                let key = key_of(merge, &new, is_sparse)?;
                Some(Filter::parse(&to_raw(&key), &surroundings.names())?)
            }
        };
        let validator = match call.flag("bypassDocumentValidation")? {
            true => None,
            false => Validator::of(collection)?,
        };
        Ok(Self {
            merge: merge.clone(),
            collection: collection.clone(),
            prepared: prepare(call, new.clone(), true)?,
            new,
            filter,
            surroundings: surroundings.clone(),
            validator,
        })
    }

    /// Writes it. False if it should have been there and was not.
    async fn write(self, call: &Call<'_>) -> Result<bool> {
        let writer = Writer::new(call, &self.collection)?;
        let this = Arc::new(self);
        loop {
            let found = this.find(call, &writer).await?;
            let is_found = found.is_some();
            let target = match found {
                Some(target) => target,
                None => match this.merge.when_not_matched {
                    WhenNotMatched::Insert => writer.target(&this.prepared)?,
                    WhenNotMatched::Discard => return Ok(true),
                    WhenNotMatched::Fail => return Ok(false),
                },
            };
            let deciding = this.clone();
            let decide = move |before: Option<&RawDocument>| deciding.change(before, is_found);
            let done = writer.decide_one(target, Arc::new(decide), None).await?;
            if done.change != Change::Skip {
                return Ok(true);
            }
            // With `_id` it is clear what is missing; otherwise what was found is another now.
            if this.filter.is_none() {
                return Ok(this.merge.when_not_matched != WhenNotMatched::Fail);
            }
        }
    }

    /// Which document it is merged with. By `_id` there is no need to look.
    async fn find(&self, call: &Call<'_>, writer: &Writer<'_>) -> Result<Option<Target>> {
        let Some(filter) = &self.filter else { return writer.target(&self.prepared).map(Some) };
        let query =
            Query::new(Some(self.collection.clone()), filter.clone(), self.surroundings.clone(), None);
        let found = query.open(call.mongo).await?.next(call.mongo, call.now).await?;
        Ok(found.map(|found| Target { id: found.id, partition: found.partition }))
    }

    /// What becomes of the document at the target. `is_found` is false if a filter found none, so that another stands in
    /// the way of what is inserted.
    fn change(&self, before: Option<&RawDocument>, is_found: bool) -> Result<Change> {
        let change = match before {
            None if is_found && self.filter.is_some() => return Ok(Change::Skip),
            None => match self.merge.when_not_matched {
                WhenNotMatched::Insert => self.inserted()?,
                WhenNotMatched::Discard | WhenNotMatched::Fail => return Ok(Change::Skip),
            },
            Some(_) if !is_found => return Err(duplicates::id_taken(&self.collection, &self.prepared)),
            Some(old) => {
                if let Some(filter) = &self.filter
                    && !self.surroundings.matches(filter, old)?
                {
                    return Ok(Change::Skip);
                }
                self.merged_with(old)?
            }
        };
        if let Change::Put(after) | Change::Modify(after) = &change {
            check_size(after)?;
            if let Some(validator) = &self.validator {
                validator.admit(&self.surroundings, before, after)?;
            }
        }
        Ok(change)
    }

    fn inserted(&self) -> Result<Change> {
        Ok(Change::Put(match self.merge.when_matched {
            // These are updates that insert, and set one field after the other.
            WhenMatched::Merge | WhenMatched::KeepExisting => {
                merged(&with_id(&self.prepared, &RawDocumentBuf::new())?, &self.prepared)?
            }
            _ => self.prepared.clone(),
        }))
    }

    fn merged_with(&self, old: &RawDocument) -> Result<Change> {
        let change = match &self.merge.when_matched {
            WhenMatched::KeepExisting => return Ok(Change::Keep),
            WhenMatched::Fail => {
                // An insert, which the validator is asked about first.
                if let Some(validator) = &self.validator {
                    validator.admit(&self.surroundings, None, &self.prepared)?;
                }
                return Err(duplicates::id_taken(&self.collection, &self.prepared));
            }
            WhenMatched::Replace => {
                check_same_id(old, &self.new)?;
                Change::Put(with_id(old, &self.new)?)
            }
            WhenMatched::Merge => {
                check_same_id(old, &self.new)?;
                Change::Modify(merged(old, &self.new)?)
            }
            WhenMatched::Pipeline(pipeline) => {
                let (mut inner, new) = (self.surroundings.clone(), &self.new);
                let values = self.surroundings.with(|context| {
                    let mut values = Vec::new();
                    for (name, expression) in &self.merge.variables {
                        let value = expression.evaluate(new, context)?;
                        values.push((name.clone(), value.unwrap_or(RawBson::Null)));
                    }
                    Ok::<_, MongoError>(values)
                })?;
                if self.merge.variables.is_empty() {
                    inner.variables.push(("new".into(), RawBson::Document(new.clone())));
                }
                inner.variables.extend(values);
                let after = inner.with(|context| {
                    let mut execution = pipeline.start(context, &NoCollections);
                    execution.push(Row::made(old.to_owned()))?;
                    execution.finish()?;
                    Ok::<_, MongoError>(execution.take())
                })?;
                let after = after.into_iter().next().map(|row| row.document).unwrap_or_default();
                check_same_id(old, &after)?;
                Change::Modify(with_id(old, &after)?)
            }
        };
        let is_same = matches!(&change, Change::Put(after) | Change::Modify(after) if **after == *old);
        Ok(if is_same { Change::Keep } else { change })
    }
}

/// What the fields of `on` are. Missing and null are alike, and a sparse index has neither.
fn key_of(merge: &Merge, new: &RawDocument, is_sparse: bool) -> Result<Document> {
    let mut wanted = doc! {};
    for path in &merge.on {
        let mut value = RawBsonRef::Document(new);
        for part in path.split('.') {
            value = match value {
                RawBsonRef::Document(object) => object.get(part)?.unwrap_or(RawBsonRef::Null),
                RawBsonRef::Array(_) => break,
                _ => RawBsonRef::Null,
            };
        }
        match value {
            RawBsonRef::Array(_) => {
                return Err(Failure::new(51185, "$merge write error: 'on' field cannot be an array"));
            }
            RawBsonRef::Null | RawBsonRef::Undefined if is_sparse => {
                let message = "$merge write error: 'on' field cannot be missing, null or undefined if supporting \
                               index is sparse";
                return Err(Failure::new(51132, message));
            }
            value => wanted.insert(path, doc! { "$eq": Bson::try_from(value)? }),
        };
    }
    Ok(wanted)
}

/// A document keeps its `_id`, whatever it is merged with.
fn check_same_id(old: &RawDocument, new: &RawDocument) -> Result<()> {
    let same = |a: RawBsonRef<'_>, b: RawBsonRef<'_>| {
        mayfly_value::order::compare(mayfly_value::Order::Mongo, a, b).is_eq()
    };
    match (old.get("_id")?, new.get("_id")?) {
        (Some(a), Some(b)) if !same(a, b) => Err(Failure::new(
            66,
            "$merge failed to update the matching document, did you attempt to modify the _id or the shard key?",
        )),
        _ => Ok(()),
    }
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
