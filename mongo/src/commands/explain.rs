//! `explain`: which plan a command would take, in MongoDB's shape.

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use mayfly_engine::Direction;

use super::{diagnostics::version, reply};
use crate::{
    call::{Call, type_name},
    expression::Names,
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    pipeline::filters_first,
    planner::Plan,
    query::{Query, hint_name},
    sort::SortPattern,
    stages,
};

/// What is explained.
#[derive(Default)]
struct Subject<'a> {
    collection: &'a str,
    filter: Option<&'a RawDocument>,
    hint: Option<RawBsonRef<'a>>,
    sort: Option<&'a RawDocument>,
    /// Its own; the collection's if it has none.
    collation: Option<&'a RawDocument>,
    /// What is done with the documents that are found.
    stage: Option<&'static str>,
}

/// Explains a command.
pub async fn run(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let command = match call.get("explain")? {
        Some(RawBsonRef::Document(command)) => command,
        Some(other) => {
            return Err(Failure::new(14, format!("explain takes an object, not {}", type_name(other))));
        }
        None => return Err(Failure::new(9, "explain needs a command")),
    };
    let verbosity = call.text("verbosity")?.unwrap_or("allPlansExecution");
    if !["queryPlanner", "executionStats", "allPlansExecution"].contains(&verbosity) {
        return Err(Failure::new(
            9,
            "verbosity string must be one of {'queryPlanner', 'executionStats', 'allPlansExecution'}",
        ));
    }
    let Some((kind, target)) = command.iter().next().transpose()? else {
        return Err(Failure::new(59, "Explain failed due to unknown command"));
    };
    let name = target.as_str();
    let part = |field: &str| -> Result<Option<&RawDocument>> {
        Ok(match command.get(field)? {
            Some(RawBsonRef::Document(found)) => Some(found),
            _ => None,
        })
    };
    let whole = Subject {
        collection: name.unwrap_or_default(),
        hint: command.get("hint")?,
        sort: part("sort")?,
        collation: part("collation")?,
        ..Subject::default()
    };
    let statement = |list: &str, stage: &'static str| -> Result<Subject<'_>> {
        let first = match command.get(list)? {
            Some(RawBsonRef::Array(items)) => match items.into_iter().next().transpose()? {
                Some(RawBsonRef::Document(first)) => Some(first),
                _ => None,
            },
            _ => None,
        };
        let part = |field: &str| first.and_then(|first| first.get_document(field).ok());
        let hint = first.and_then(|first| first.get("hint").ok()?);
        let (filter, sort, collation) = (part("q"), part("sort"), part("collation"));
        Ok(Subject { collection: whole.collection, filter, hint, sort, collation, stage: Some(stage) })
    };
    let subject = match kind.as_str() {
        "find" => Subject { filter: part("filter")?, ..whole },
        "count" | "distinct" => Subject { filter: part("query")?, stage: Some("COUNT"), ..whole },
        "findAndModify" | "findandmodify" => {
            Subject { filter: part("query")?, stage: Some("UPDATE"), ..whole }
        }
        "update" => statement("updates", "UPDATE")?,
        "delete" => statement("deletes", "DELETE")?,
        "aggregate" => {
            let Some(RawBsonRef::Array(pipeline_stages)) = command.get("pipeline")? else {
                return Err(Failure::new(
                    40414,
                    "BSON field 'aggregate.pipeline' is missing but a required field",
                ));
            };
            return pipeline(call, name, pipeline_stages, whole.collation).await;
        }
        other => return Err(Failure::new(20, format!("Explain failed due to unknown command: {other}"))),
    };
    let counts = verbosity != "queryPlanner";
    let mut answer = explained(call, subject, counts).await?;
    answer.insert("command", Document::try_from(command)?);
    reply(with_server(call, answer))
}

/// Explains a pipeline: its first stage, as far as it narrows.
pub async fn pipeline(
    call: &Call<'_>,
    name: Option<&str>,
    list: &RawArray,
    collation: Option<&RawDocument>,
) -> Result<RawDocumentBuf> {
    let moved = filters_first(list, &Names::default());
    let list = moved.as_deref().unwrap_or(list);
    let filter = match stages::first(list)? {
        Some(("$match", RawBsonRef::Document(filter))) => Some(filter),
        _ => None,
    };
    let subject = Subject { collection: name.unwrap_or_default(), filter, collation, ..Subject::default() };
    let answer = explained(call, subject, true).await?;
    let mut shown = vec![Bson::from(doc! { "$cursor": answer })];
    for stage in list {
        shown.push(Bson::try_from(stage?)?);
    }
    reply(with_server(call, doc! { "explainVersion": "1", "stages": shown }))
}

fn with_server(call: &Call<'_>, mut answer: Document) -> Document {
    answer.insert(
        "serverInfo",
        doc! {
            "host": call.connection.local.ip().to_string(), "port": i32::from(call.connection.local.port()),
            "version": version(), "gitVersion": concat!("mayfly-", env!("CARGO_PKG_VERSION")),
        },
    );
    answer.insert("serverParameters", Document::new());
    answer
}

async fn explained(call: &Call<'_>, subject: Subject<'_>, counts: bool) -> Result<Document> {
    let Subject { collection: name, filter, hint, sort, collation, stage } = subject;
    let collection = namespace::seen(call, &call.db, name);
    let surroundings = Surroundings::on(call, collection.as_ref())?.collated(collation)?;
    let parsed = match filter {
        Some(filter) => Filter::parse(filter, &surroundings.names())?,
        None => Filter::all(),
    };
    let hint = hint_name(collection.as_ref(), hint)?;
    let missing = collection.is_none();
    let mut query = Query::new(collection, parsed, surroundings, None);
    query.hint = hint;
    query.sort = sort.filter(|sort| !sort.is_empty()).map(SortPattern::parse).transpose()?;
    let ordered = query.plan_in_order();
    let is_in_order = ordered.is_some();
    let (plan, direction) = ordered.unwrap_or_else(|| (query.plan(), Direction::Forward));
    let shown = filter.map(Document::try_from).transpose()?.unwrap_or_default();
    let mut winning = plan_stage(&plan, missing, &shown, query.filter.is_by_distance(), direction);
    if let Some(sort) = sort.filter(|sort| !sort.is_empty() && !is_in_order) {
        let pattern = Document::try_from(sort)?;
        winning = doc! { "stage": "SORT", "sortPattern": pattern, "memLimit": 104_857_600, "type": "simple", "inputStage": winning };
    }
    if let Some(stage) = stage {
        winning = doc! { "stage": stage, "inputStage": winning };
    }
    let mut answer = doc! {
        "explainVersion": "1",
        "queryPlanner": {
            "namespace": format!("{}.{name}", call.db),
            "parsedQuery": shown,
            "indexFilterSet": false,
            "optimizedPipeline": false,
            "winningPlan": winning.clone(),
            "rejectedPlans": Vec::<Bson>::new(),
        },
    };
    if counts {
        let mut source = query.open(call.mongo).await?;
        let watch = mayfly_engine::clock::Stopwatch::start();
        let mut returned = 0_i32;
        while source.next(call.mongo, call.now).await?.is_some() {
            returned += 1;
        }
        let scanned = source.scanned() as i32;
        let keys = if matches!(plan, Plan::Scan) { 0 } else { scanned };
        let mut stages = winning;
        stages.insert("nReturned", returned);
        answer.insert(
            "executionStats",
            doc! {
                "executionSuccess": true, "nReturned": returned,
                "executionTimeMillis": watch.elapsed().as_millis() as i32,
                "totalKeysExamined": keys, "totalDocsExamined": scanned, "executionStages": stages,
            },
        );
    }
    Ok(answer)
}

fn plan_stage(
    plan: &Plan,
    missing: bool,
    filter: &Document,
    by_distance: bool,
    direction: Direction,
) -> Document {
    let way = if direction == Direction::Forward { "forward" } else { "backward" };
    match plan {
        _ if missing => doc! { "stage": "EOF" },
        Plan::Scan => doc! { "stage": "COLLSCAN", "filter": filter.clone(), "direction": "forward" },
        Plan::Ids(_) => doc! { "stage": "IDHACK" },
        Plan::IdRange(_) => doc! {
            "stage": "FETCH", "filter": filter.clone(),
            "inputStage": { "stage": "IXSCAN", "keyPattern": { "_id": 1 }, "indexName": "_id_", "direction": "forward" },
        },
        Plan::Index { name, spec, ranges } => {
            let spec = Document::from_reader(spec.as_slice()).unwrap_or_default();
            let key = spec.get_document("key").cloned().unwrap_or_default();
            let scan = doc! {
                "stage": "IXSCAN", "keyPattern": key.clone(), "indexName": name,
                "isUnique": spec.get_bool("unique").unwrap_or(false),
                "isSparse": spec.get_bool("sparse").unwrap_or(false),
                "isPartial": spec.contains_key("partialFilterExpression"),
                "indexVersion": 2, "direction": way, "seeks": ranges.len() as i32,
            };
            let fetch = doc! { "stage": "FETCH", "filter": filter.clone(), "inputStage": scan };
            let on_places = |plugin: &str| key.values().any(|value| value.as_str() == Some(plugin));
            if spec.contains_key("textIndexVersion") {
                return doc! {
                    "stage": "TEXT_MATCH", "indexPrefix": {}, "indexName": name,
                    "parsedTextQuery": filter.get("$text").cloned().unwrap_or(Bson::Null), "textIndexVersion": 3,
                    "inputStage": fetch,
                };
            }
            if by_distance {
                let stage = if on_places("2d") { "GEO_NEAR_2D" } else { "GEO_NEAR_2DSPHERE" };
                return doc! {
                    "stage": stage, "keyPattern": key, "indexName": name, "indexVersion": 2, "inputStages": [fetch],
                };
            }
            fetch
        }
    }
}
