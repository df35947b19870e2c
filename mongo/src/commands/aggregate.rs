//! `aggregate`, and what other commands become on a view.
//!
//! The documents of a collection, or of a stage that makes its own, are pushed through the pipeline one by one; what comes
//! out is kept until the client has fetched it. Reading other collections on the way (`$lookup` and its relatives) happens
//! in the same thread, which therefore leaves its place among the server's workers for as long as the pipeline runs.

use std::collections::VecDeque;

use bson::{Document, RawArray, RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};
use tokio::runtime::Handle;

use super::count::Values;
use crate::{
    call::{Call, integer},
    counting::Counting,
    cursor::{Cursor, Kept},
    disclosed::Metadata,
    error::MongoError,
    expression::with_field,
    failure::{Failure, Result},
    filter::Filter,
    filtering::{Surroundings, text_index},
    namespace::{self, Collection},
    near::Near,
    output,
    pipeline::{Collections, Pipeline, Row, filters_first, mentions_metadata},
    query::{Query, check_scores, hint_name},
    service::to_raw,
    sort::SortPattern,
    stages,
    values::{META, carrying},
};

/// Arguments.
pub const FIELDS: &[&str] = &[
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "bypassDocumentValidation",
    "collation",
    "hint",
    "let",
    "collectionUUID",
    "isMapReduceCommand",
    "fromRouter",
    "fromMongos",
    "needsMerge",
    "exchange",
    "runtimeConstants",
    "legacyRuntimeConstants",
    "querySettings",
    "includeQueryStatsMetrics",
    "unwrappedPackedBatch",
    "isRankFusion",
    "isHybridSearch",
    "encryptionInformation",
    "isClusterQueryWithoutShardKeyCmd",
];

/// The most bytes of results that are kept for a client.
const RESULT_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Views on views.
const VIEWS_MAX: usize = 20;

/// Runs a pipeline.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = match call.get("aggregate")? {
        Some(RawBsonRef::String(_)) => Some(call.collection()?),
        Some(other) if integer(other) == Some(1) => None,
        _ => {
            return Err(Failure::new(
                9,
                "Invalid command format: the 'aggregate' field must specify a collection name or 1",
            ));
        }
    };
    let stages = call.array("pipeline")?.ok_or_else(|| {
        Failure::new(40414, "BSON field 'aggregate.pipeline' is missing but a required field")
    })?;
    if call.flag("explain")? {
        return super::explain::pipeline(call, name, stages, None).await;
    }
    let batch = match call.document("cursor")? {
        Some(cursor) => match cursor.get("batchSize")?.and_then(integer) {
            Some(..0) => return Err(Failure::bad_value("BSON field 'batchSize' value must be >= 0")),
            size => size.map(|size| size as usize),
        },
        None => {
            let message = "The 'cursor' option is required, except for aggregate with the explain argument";
            return Err(Failure::new(9, message));
        }
    };
    let namespace = match name {
        Some(name) => format!("{}.{name}", call.db),
        None => format!("{}.$cmd.aggregate", call.db),
    };
    let cursor = match stages::first(stages)? {
        Some(("$changeStream", options)) => {
            let source = crate::change_stream::open(call, name, options, stages).await?;
            Cursor::new(call, namespace, source)
        }
        _ => {
            let results = results(call, name, stages).await?;
            Cursor::new(call, namespace, Kept::new(results, call.now))
        }
    };
    call.mongo.cursors.first(call.mongo, cursor, batch, false, call.now).await
}

fn is_linearizable(call: &Call<'_>) -> Result<bool> {
    let level = match call.document("readConcern")? {
        Some(concern) => concern.get("level")?,
        None => None,
    };
    Ok(matches!(level, Some(RawBsonRef::String("linearizable"))))
}

/// Everything that comes out of a pipeline.
async fn results(call: &Call<'_>, name: Option<&str>, stages: &RawArray) -> Result<VecDeque<Row>> {
    let collection = name.and_then(|name| namespace::seen(call, &call.db, name));
    let surroundings = Surroundings::on(call, collection.as_ref())?;
    let (collection, stages) = match &collection {
        Some(collection) => resolve_view(call, collection.clone(), stages)?,
        None => (None, stages.to_owned()),
    };
    let hint = hint_name(collection.as_ref(), call.get("hint")?)?;
    run_pipeline(call, collection, name.is_none(), &stages, &surroundings, hint).await
}

/// The collection behind a view, and the view's stages before the given ones.
fn resolve_view(
    call: &Call<'_>,
    collection: Collection,
    stages: &RawArray,
) -> Result<(Option<Collection>, RawArrayBuf)> {
    let mut before: Vec<Document> = Vec::new();
    let mut current = Some(collection);
    for _ in 0..VIEWS_MAX {
        let Some((source, pipeline)) = current.as_ref().and_then(Collection::view) else {
            let mut all = RawArrayBuf::new();
            before.iter().for_each(|stage| all.push(to_raw(stage)));
            for stage in stages {
                all.push(stage?);
            }
            return Ok((current, all));
        };
        before = pipeline.into_iter().chain(before).collect();
        current = namespace::seen(call, &call.db, &source);
    }
    Err(Failure::new(165, "View depth too deep or view cycle detected"))
}

async fn run_pipeline(
    call: &Call<'_>,
    collection: Option<Collection>,
    collectionless: bool,
    stages: &RawArray,
    surroundings: &Surroundings,
    hint: Option<String>,
) -> Result<VecDeque<Row>> {
    let near = Near::of(stages, collection.as_ref(), surroundings)?;
    let made = stages::make(call, collection.as_ref(), stages).await?;
    let (made, rest) = match made {
        None if near.is_none() => (None, stages.to_owned()),
        made => (made, skip_first(stages)?),
    };
    let rest = filters_first(&rest, &surroundings.names()).unwrap_or(rest);
    let pipeline = Pipeline::parse(&rest, &surroundings.names())?;
    if pipeline.effect().is_some() && is_linearizable(call)? {
        return Err(Failure::new(72, "$out and $merge cannot be used with readConcern level linearizable"));
    }
    if collectionless && made.is_none() && !pipeline.has_source() {
        let message = "{aggregate: 1} is not valid for this pipeline: it needs a stage that makes documents";
        return Err(Failure::new(73, message));
    }
    if pipeline.has_source() && !collectionless {
        return Err(Failure::new(73, "$documents is only valid with {aggregate: 1}"));
    }
    let reads = made.is_none() && !pipeline.has_source();
    let matched = match stages::first(&rest)? {
        Some(("$match", RawBsonRef::Document(filter))) => Some(Filter::parse(filter, &surroundings.names())?),
        _ => None,
    };
    let has_filter = reads && near.is_none() && matched.is_some();
    let (filter, pipeline) = match (&near, matched) {
        // The reader filters; what it gives has passed the stage.
        (None, Some(filter)) if reads => (filter, pipeline.without_first()),
        (_, Some(filter)) if filter.mentions_text() => {
            let message = "$match with $text is only allowed as the first pipeline stage";
            return Err(Failure::new(17313, message));
        }
        (Some(near), _) => (near.filter(surroundings)?, pipeline),
        _ => (Filter::all(), pipeline),
    };
    let scored = (&rest).into_iter().filter_map(std::result::Result::ok).take_while(|stage| {
        stage.as_document().is_none_or(|stage| !matches!(stage.get("$group"), Ok(Some(_))))
    });
    check_scores(&filter, scored)?;
    let txn = call.view()?;
    let mut query = Query::new(collection, filter, surroundings.clone(), txn);
    query.hint = hint;
    query.asked = Metadata::asked_in(RawBsonRef::Array(&rest));
    if let Some(counting) = Counting::of(&rest)?.filter(|_| reads && near.is_none()) {
        return counting.run(query, call).await;
    }
    let pipeline = match stages::at(&rest, usize::from(has_filter))? {
        // Where an index has the order, nothing need be held.
        Some(("$sort", RawBsonRef::Document(order))) if reads && near.is_none() => {
            query.sort = Some(SortPattern::parse(order)?);
            match query.plan_in_order() {
                Some(_) => pipeline.without_first(),
                None => {
                    query.sort = None;
                    pipeline
                }
            }
        }
        _ => pipeline,
    };
    let mut source = query.open(call.mongo).await?.reading_ahead();
    let tells = mentions_metadata(&rest);
    let others = Others { call, surroundings, depth: 0 };
    let handle = Handle::current();
    let results = tokio::task::block_in_place(|| -> Result<VecDeque<Row>> {
        surroundings.with(|context| {
            let mut execution = pipeline.start(context, &others);
            let ready = match (made, pipeline.has_source()) {
                (Some(documents), _) => documents,
                (None, true) => pipeline.source_documents(context)?.into(),
                (None, false) => VecDeque::new(),
            };
            let (mut results, mut bytes) = (VecDeque::new(), 0);
            let mut keep = |rows: Vec<Row>| {
                for mut row in rows {
                    bytes += row.as_bytes().len();
                    if tells {
                        row.document = with_field(&row, META, None);
                    }
                    results.push_back(row);
                }
                if bytes > RESULT_BYTES_MAX {
                    return Err(Failure::new(146, "the results of the pipeline are too large"));
                }
                Ok(())
            };
            for row in ready {
                if execution.is_done() {
                    break;
                }
                execution.push(row)?;
                keep(execution.take())?;
            }
            while reads && !execution.is_done() {
                let few = handle.block_on(call.within_time(source.next_few(call.mongo, call.now)))?;
                if few.is_empty() {
                    break;
                }
                for found in few {
                    if execution.is_done() {
                        break;
                    }
                    let metadata = if tells { source.metadata(&found.document)? } else { None };
                    let from = source.provenance(&found);
                    match (&near, metadata) {
                        (None, None) => execution.push_ref(&found.document, from)?,
                        (near, metadata) => {
                            let distance = source.distance(&found.document).unwrap_or_default();
                            let document = &*found.document;
                            let mut told = near
                                .as_ref()
                                .map_or_else(|| document.to_owned(), |near| near.told(document, distance));
                            if let Some(metadata) = metadata {
                                told = carrying(&told, RawBsonRef::Document(&metadata));
                            }
                            execution.push(from.row(told))?;
                        }
                    }
                    if execution.has_results() {
                        keep(execution.take())?;
                    }
                }
            }
            execution.finish()?;
            keep(execution.take())?;
            Ok(results)
        })
    })?;
    match pipeline.effect() {
        Some(effect) => {
            output::apply(call, effect, results.into_iter().map(|row| row.document).collect(), surroundings)
                .await?;
            Ok(VecDeque::new())
        }
        None => Ok(results),
    }
}

fn skip_first(stages: &RawArray) -> Result<RawArrayBuf> {
    let mut rest = RawArrayBuf::new();
    for stage in stages.into_iter().skip(1) {
        rest.push(stage?);
    }
    Ok(rest)
}

/// Other collections of the same database, for stages that read them.
struct Others<'a> {
    call: &'a Call<'a>,
    surroundings: &'a Surroundings,
    depth: usize,
}

impl Collections for Others<'_> {
    fn scan(
        &self,
        collection: &str,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> std::result::Result<bool, MongoError>,
    ) -> std::result::Result<(), MongoError> {
        let failed = |failure: Failure| MongoError::new(failure.code, failure.message);
        let call = self.call;
        let Some(found) = namespace::seen(call, &call.db, collection) else { return Ok(()) };
        let handle = Handle::current();
        if found.view().is_some() {
            if self.depth >= VIEWS_MAX {
                return Err(MongoError::new(165, "View depth too deep or view cycle detected"));
            }
            self.surroundings.check_view(&found).map_err(failed)?;
            let (source, stages) = resolve_view(call, found, RawArrayBuf::new().as_ref()).map_err(failed)?;
            let run = run_pipeline(call, source, false, &stages, self.surroundings, None);
            for row in handle.block_on(Box::pin(run)).map_err(failed)? {
                if !visit(row)? {
                    break;
                }
            }
            return Ok(());
        }
        let txn = call.view().map_err(failed)?;
        let mut surroundings = self.surroundings.clone();
        surroundings.text = text_index(&found);
        let query = Query::new(Some(found), filter.clone(), surroundings, txn);
        let mut source = handle.block_on(query.open(call.mongo)).map_err(failed)?;
        loop {
            let next = call.within_time(source.next(call.mongo, call.now));
            let Some(found) = handle.block_on(next).map_err(failed)? else { break };
            if !visit(source.provenance(&found).row((*found.document).to_owned()))? {
                break;
            }
        }
        Ok(())
    }
}

/// Runs stages on a view for a command that is no `aggregate`.
async fn on_view(call: &Call<'_>, view: &Collection, stages: &RawArray) -> Result<VecDeque<Row>> {
    let surroundings = Surroundings::on(call, Some(view))?;
    let (collection, stages) = resolve_view(call, view.clone(), stages)?;
    run_pipeline(call, collection, false, &stages, &surroundings, None).await
}

/// A `find` on a view, as the pipeline it stands for.
pub async fn find_on_view(call: &Call<'_>, view: &Collection) -> Result<RawDocumentBuf> {
    for option in ["showRecordId", "returnKey"] {
        if call.flag(option)? {
            return Err(Failure::new(168, format!("Option {option} not supported in aggregation.")));
        }
    }
    let mut stages = RawArrayBuf::new();
    if let Some(filter) = call.document("filter")? {
        stages.push(rawdoc! { "$match": filter.to_owned() });
    }
    if let Some(sort) = call.document("sort")?.filter(|sort| !sort.is_empty()) {
        stages.push(rawdoc! { "$sort": sort.to_owned() });
    }
    if let Some(skip) = call.integer("skip")?.filter(|skip| *skip > 0) {
        stages.push(rawdoc! { "$skip": skip });
    }
    if let Some(limit) = call.integer("limit")?.filter(|limit| *limit > 0) {
        stages.push(rawdoc! { "$limit": limit });
    }
    if let Some(projection) = call.document("projection")?.filter(|projection| !projection.is_empty()) {
        stages.push(rawdoc! { "$project": projection.to_owned() });
    }
    let results = on_view(call, view, &stages).await?;
    let cursor = Cursor::new(call, view.namespace(), Kept::new(results, call.now));
    let batch = call.count("batchSize")?.map(|size| size as usize);
    call.mongo.cursors.first(call.mongo, cursor, batch, call.flag("singleBatch")?, call.now).await
}

fn match_stage(filter: Option<&RawDocument>) -> RawArrayBuf {
    let mut stages = RawArrayBuf::new();
    if let Some(filter) = filter {
        stages.push(rawdoc! { "$match": filter.to_owned() });
    }
    stages
}

/// A `count` on a view.
pub async fn count_on_view(call: &Call<'_>, view: &Collection) -> Result<i32> {
    let found = on_view(call, view, &match_stage(call.document("query")?)).await?.len() as i64;
    let (skip, limit) = (call.integer("skip")?.unwrap_or(0), call.integer("limit")?.unwrap_or(0).abs());
    let left = (found - skip).max(0);
    Ok(if limit > 0 { left.min(limit) } else { left } as i32)
}

/// A `distinct` on a view.
pub async fn distinct_on_view(call: &Call<'_>, view: &Collection, key: &str) -> Result<RawDocumentBuf> {
    let mut values = Values { surroundings: Surroundings::on(call, Some(view))?, found: Vec::new() };
    for document in on_view(call, view, &match_stage(call.document("query")?)).await? {
        values.take(&document, key)?;
    }
    values.answer(call)
}
