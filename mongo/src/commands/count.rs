//! `count` and `distinct`.

use bson::{Bson, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::reply;
use crate::{
    call::Call,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    query::{Query, hint_name},
};

/// How many documents there are.
pub async fn count(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let collection = namespace::seen(call, &call.db, name);
    if let Some(collection) = &collection
        && collection.view().is_some()
    {
        let n = super::aggregate::count_on_view(call, collection).await?;
        return reply(doc! { "n": n });
    }
    let surroundings = Surroundings::on(call, collection.as_ref())?;
    let query = call.document("query")?.filter(|query| !query.is_empty());
    let (skip, limit) =
        (call.count("skip")?.unwrap_or(0), call.integer("limit")?.unwrap_or(0).unsigned_abs());
    let n = match (&collection, query) {
        // Without a filter the engine knows the number.
        (Some(collection), None) if call.get("hint")?.is_none() => {
            call.mongo.engine.usage(&collection.container, call.now).await?.live.documents
        }
        (None, None) => 0,
        (_, filter) => {
            let filter = match filter {
                Some(filter) => Filter::parse(filter, &surroundings.names())?,
                None => Filter::all(),
            };
            let hint = hint_name(collection.as_ref(), call.get("hint")?)?;
            let mut query = Query::new(collection, filter, surroundings, None);
            query.hint = hint;
            query.limit = (limit > 0).then(|| limit.saturating_add(skip));
            query.count(call.mongo, call.now).await?
        }
    };
    let n = n.saturating_sub(skip);
    let n = if limit > 0 { n.min(limit) } else { n };
    reply(doc! { "n": i32::try_from(n).map_or(Bson::Int64(n as i64), Bson::Int32) })
}

/// The values of a field.
pub async fn distinct(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let key = call
        .text("key")?
        .ok_or_else(|| Failure::new(40414, "BSON field 'distinct.key' is missing but a required field"))?;
    let collection = namespace::seen(call, &call.db, name);
    if let Some(collection) = &collection
        && collection.view().is_some()
    {
        return super::aggregate::distinct_on_view(call, collection, key).await;
    }
    let surroundings = Surroundings::on(call, collection.as_ref())?;
    let filter = match call.document("query")? {
        Some(filter) => Filter::parse(filter, &surroundings.names())?,
        None => Filter::all(),
    };
    let hint = hint_name(collection.as_ref(), call.get("hint")?)?;
    let txn = call.view()?;
    let mut query = Query::new(collection, filter, surroundings.clone(), txn);
    query.hint = hint;
    let mut source = query.open(call.mongo).await?;
    let mut values = Values { surroundings, found: Vec::new() };
    while let Some(found) = source.next(call.mongo, call.now).await? {
        values.take(&found.document, key)?;
    }
    values.answer(call)
}

/// Values without repeats.
pub struct Values {
    /// Says what is equal.
    pub surroundings: Surroundings,
    /// The values, in order.
    pub found: Vec<RawBson>,
}

impl Values {
    /// Adds the values of a document at a path.
    pub fn take(&mut self, document: &RawDocument, path: &str) -> Result<()> {
        let parts: Vec<&str> = path.split('.').collect();
        let mut values = Vec::new();
        collect(RawBsonRef::Document(document), &parts, &mut values)?;
        for value in values {
            let place = self.surroundings.with(|context| {
                self.found.binary_search_by(|other| {
                    context.compare(other.as_raw_bson_ref(), value.as_raw_bson_ref())
                })
            });
            if let Err(place) = place {
                self.found.insert(place, value);
            }
        }
        Ok(())
    }

    /// The answer.
    pub fn answer(self, call: &Call<'_>) -> Result<RawDocumentBuf> {
        let values = bson::RawArrayBuf::from_iter(self.found);
        let mut answer = RawDocumentBuf::new();
        answer.append(bson::raw::cstr!("values"), values);
        if let Some((time, _)) = &call.snapshot {
            answer.append(bson::raw::cstr!("atClusterTime"), *time);
        }
        Ok(answer)
    }
}

fn collect(value: RawBsonRef<'_>, path: &[&str], out: &mut Vec<RawBson>) -> Result<()> {
    match (value, path.split_first()) {
        (RawBsonRef::Array(items), None) => {
            for item in items {
                out.push(RawBson::from(item?));
            }
        }
        (value, None) => out.push(RawBson::from(value)),
        (RawBsonRef::Document(document), Some((name, rest))) => {
            if let Some(value) = document.get(name)? {
                collect(value, rest, out)?;
            }
        }
        (RawBsonRef::Array(items), Some((name, rest))) => {
            if let Some(item) =
                name.parse::<usize>().ok().map(|place| items.get(place)).transpose()?.flatten()
            {
                collect(item, rest, out)?;
            }
            for item in items {
                if let item @ RawBsonRef::Document(_) = item? {
                    collect(item, path, out)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
