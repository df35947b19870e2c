//! Who answers a script: this crate, or a real server.

use std::collections::BTreeMap;

use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::{DateTime, RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use mayfly_mongo::expression::Names;
use mayfly_mongo::filter::{Details, Filter};
use mayfly_mongo::pipeline::{Collections, Pipeline, Row};
use mayfly_mongo::projection::Projection;
use mayfly_mongo::sort::SortPattern;
use mayfly_mongo::update::Update;
use mayfly_mongo::{Context, MongoError};
use mayfly_value::bson;

use crate::literal;
use crate::oracle::Oracle;

/// A line of a script, read.
pub struct Command {
    /// Answers may come in any order: they are sorted before they are compared.
    unordered: bool,
    verb: String,
    argument: RawBson,
}

impl Command {
    pub fn parse(line: &str) -> Command {
        let (unordered, line) = match line.strip_prefix("unordered ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (verb, rest) = line.split_once(' ').unwrap_or_else(|| panic!("no argument: {line}"));
        let (argument, rest) = literal::parse(rest);
        assert!(rest.trim().is_empty(), "after the command: {rest}");
        Command { unordered, verb: verb.to_string(), argument }
    }
}

/// Answers commands.
pub trait Subject {
    /// Sets the documents of a collection.
    fn load(&mut self, collection: &str, documents: Vec<RawDocumentBuf>);

    /// Answers in lines; an error is one of them.
    fn try_answer(&mut self, verb: &str, argument: &RawBson) -> Result<Vec<String>, i32>;

    fn answer(&mut self, command: &Command) -> Vec<String> {
        match self.try_answer(&command.verb, &command.argument) {
            Ok(mut lines) => {
                if command.unordered {
                    lines.sort();
                }
                if lines.is_empty() {
                    lines.push("nothing".to_string());
                }
                lines
            }
            Err(code) => vec![format!("error {code}")],
        }
    }
}

fn lines<'a>(documents: impl Iterator<Item = &'a RawDocument>) -> Vec<String> {
    documents.map(|document| literal::print(RawBsonRef::Document(document))).collect()
}

fn ids<'a>(documents: impl Iterator<Item = &'a RawDocument>) -> Vec<String> {
    let ids: Vec<_> =
        documents.map(|d| literal::print(d.get("_id").unwrap().unwrap_or(RawBsonRef::Null))).collect();
    if ids.is_empty() { vec![] } else { vec![ids.join(" ")] }
}

/// The pipeline that gives an expression's value of each document.
fn expression_pipeline(expression: &RawBson) -> RawArrayBuf {
    let mut computed = RawDocumentBuf::new();
    computed.append(cstr!("_id"), 0);
    computed.append(cstr!("v"), expression.clone());
    let mut stage = RawDocumentBuf::new();
    stage.append(cstr!("$project"), computed);
    RawArrayBuf::from_iter([stage])
}

fn values<'a>(documents: impl Iterator<Item = &'a RawDocument>) -> Vec<String> {
    documents.map(|d| d.get("v").unwrap().map_or("missing".to_string(), literal::print)).collect()
}

/// Runs commands on a server.
impl Subject for Oracle {
    fn load(&mut self, collection: &str, documents: Vec<RawDocumentBuf>) {
        Oracle::load(self, collection, &documents);
        Oracle::load(self, &format!("{collection}_kept"), &documents);
    }

    fn try_answer(&mut self, verb: &str, argument: &RawBson) -> Result<Vec<String>, i32> {
        let mut command = RawDocumentBuf::new();
        match verb {
            "match" => {
                command.append(cstr!("find"), "c");
                command.append(cstr!("filter"), argument.clone());
                Ok(ids(batch(&self.succeed(command)?).iter().map(|d| d.as_ref())))
            }
            "find" => {
                command.append(cstr!("find"), "c");
                for field in argument.as_document().expect("options of a find").iter() {
                    let (key, value) = field.unwrap();
                    command.append(key, value);
                }
                Ok(lines(batch(&self.succeed(command)?).iter().map(|d| d.as_ref())))
            }
            "aggregate" => {
                Ok(lines(self.aggregate(argument.as_array().unwrap().to_owned())?.iter().map(|d| d.as_ref())))
            }
            "expr" => Ok(values(self.aggregate(expression_pipeline(argument))?.iter().map(|d| d.as_ref()))),
            "update" => {
                command.append(cstr!("update"), "c");
                command.append(cstr!("updates"), RawArrayBuf::from_iter([argument.clone()]));
                let reply = self.succeed(command);
                let answer = reply.map(|reply| {
                    let mut find = RawDocumentBuf::new();
                    find.append(cstr!("find"), "c");
                    let found = self.succeed(find).map(|reply| batch(&reply)).unwrap_or_default();
                    let mut answer = vec![summary(&reply)];
                    answer.extend(lines(found.iter().map(|d| d.as_ref())));
                    answer
                });
                let mut find = RawDocumentBuf::new();
                find.append(cstr!("find"), "c_kept");
                let kept = self.succeed(find).map(|reply| batch(&reply)).unwrap_or_default();
                Oracle::load(self, "c", &kept);
                answer
            }
            _ => panic!("unknown command {verb}"),
        }
    }
}

fn batch(reply: &RawDocument) -> Vec<RawDocumentBuf> {
    let cursor = reply.get_document("cursor").expect("a cursor");
    let batch = cursor.get_array("firstBatch").expect("a batch");
    batch.into_iter().map(|d| d.unwrap().as_document().unwrap().to_owned()).collect()
}

/// What an update did; a made-up id would differ from run to run.
fn summary(reply: &RawDocument) -> String {
    let number = |name| reply.get_i32(name).unwrap_or(0);
    let upserted = if reply.get("upserted").unwrap().is_some() { ", upserted" } else { "" };
    format!("matched {}, modified {}{upserted}", number("n"), number("nModified"))
}

impl Oracle {
    fn succeed(&mut self, command: RawDocumentBuf) -> Result<RawDocumentBuf, i32> {
        let reply = self.run(command);
        let failed = reply.get_f64("ok").ok() != Some(1.0);
        let error: Option<RawDocumentBuf> = match reply.get_array("writeErrors") {
            Ok(errors) => errors.get_document(0).ok().map(|d| d.to_owned()),
            Err(_) => failed.then(|| reply.clone()),
        };
        match error {
            Some(error) => {
                if std::env::var("MESSAGES").is_ok() {
                    println!("{}", literal::print(RawBsonRef::Document(&error)));
                }
                Err(error.get_i32("code").unwrap_or(-1))
            }
            None => Ok(reply),
        }
    }

    fn aggregate(&mut self, pipeline: RawArrayBuf) -> Result<Vec<RawDocumentBuf>, i32> {
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("aggregate"), "c");
        command.append(cstr!("pipeline"), pipeline);
        command.append(cstr!("cursor"), RawDocumentBuf::from_iter([(cstr!("batchSize"), 10_000)]));
        Ok(batch(&self.succeed(command)?))
    }
}

/// This crate.
#[derive(Default)]
pub struct Ours {
    collections: BTreeMap<String, Vec<RawDocumentBuf>>,
}

impl Collections for Ours {
    fn scan(
        &self,
        collection: &str,
        _: &Filter,
        visit: &mut dyn FnMut(Row) -> Result<bool, MongoError>,
    ) -> Result<(), MongoError> {
        for document in self.collections.get(collection).into_iter().flatten() {
            if !visit(Row::made(document.clone()))? {
                break;
            }
        }
        Ok(())
    }
}

fn context() -> Context<'static> {
    Context::new(DateTime::from_millis(1_700_000_000_123), &|| 0.5)
}

impl Ours {
    fn documents(&self) -> &[RawDocumentBuf] {
        self.collections.get("c").map_or(&[], Vec::as_slice)
    }

    fn find(&self, options: &RawDocument) -> Result<Vec<RawDocumentBuf>, MongoError> {
        let (context, empty) = (context(), RawDocumentBuf::new());
        let part = |name| options.get_document(name).unwrap_or(&empty);
        let filter = Filter::parse(part("filter"), &Names::default())?;
        let sort = SortPattern::parse(part("sort"))?;
        let projection = Projection::parse_find(part("projection"), &filter, &Names::default())?;
        let mut found = Vec::new();
        for document in self.documents() {
            if filter.matches(document, &context)? {
                found.push((sort.key(document, &context)?, document));
            }
        }
        found.sort_by(|a, b| sort.compare(&a.0, &b.0, &context));
        let skip = options.get_i32("skip").unwrap_or(0) as usize;
        let limit = options
            .get_i32("limit")
            .ok()
            .filter(|limit| *limit > 0)
            .map_or(usize::MAX, |limit| limit as usize);
        found
            .into_iter()
            .skip(skip)
            .take(limit)
            .map(|(_, document)| projection.apply(document, &context))
            .collect()
    }

    fn aggregate(&self, stages: &RawArray) -> Result<Vec<RawDocumentBuf>, MongoError> {
        let context = context();
        let pipeline = Pipeline::parse(stages, &Names::default())?;
        let mut execution = pipeline.start(&context, self);
        for document in self.documents() {
            execution.push(Row::made(document.clone()))?;
        }
        execution.finish()?;
        Ok(execution.take().into_iter().map(|row| row.document).collect())
    }

    fn update(&self, command: &RawDocument) -> Result<Vec<String>, MongoError> {
        let context = context();
        let filter = Filter::parse(command.get_document("q").expect("a filter"), &Names::default())?;
        let update = Update::parse(
            command.get("u").unwrap().expect("an update"),
            command.get_array("arrayFilters").ok(),
            &Names::default(),
        )?;
        let multi = command.get_bool("multi").unwrap_or(false);
        if multi && update.is_replacement() {
            return Err(MongoError::new(9, "multi update is not supported for replacement-style update"));
        }
        let (mut matched, mut modified, mut after) = (0, 0, Vec::new());
        for document in self.documents() {
            let mut details = Details::default();
            if (multi || matched == 0) && filter.matches_with(document, &context, &mut details)? {
                matched += 1;
                if let Some(changed) = update.apply(document, details.position, &context)? {
                    modified += 1;
                    after.push(changed);
                    continue;
                }
            }
            after.push(document.clone());
        }
        let upsert = command.get_bool("upsert").unwrap_or(false) && matched == 0;
        if upsert {
            after.push(update.upsert(&filter, ObjectId::from_bytes([7; 12]), &context)?);
            matched = 1;
        }
        let upserted = if upsert { ", upserted" } else { "" };
        let mut answer = vec![format!("matched {matched}, modified {modified}{upserted}")];
        answer.extend(lines(after.iter().map(|d| d.as_ref())));
        Ok(answer)
    }
}

impl Subject for Ours {
    fn load(&mut self, collection: &str, documents: Vec<RawDocumentBuf>) {
        self.collections.insert(collection.to_string(), documents);
    }

    fn try_answer(&mut self, verb: &str, argument: &RawBson) -> Result<Vec<String>, i32> {
        let answer = match verb {
            "match" => {
                let options = RawDocumentBuf::from_iter([(cstr!("filter"), argument.clone())]);
                self.find(&options).map(|found| ids(found.iter().map(|d| d.as_ref())))
            }
            "find" => self
                .find(argument.as_document().expect("options of a find"))
                .map(|found| lines(found.iter().map(|d| d.as_ref()))),
            "aggregate" => self
                .aggregate(argument.as_array().expect("a pipeline"))
                .map(|found| lines(found.iter().map(|d| d.as_ref()))),
            "expr" => self
                .aggregate(&expression_pipeline(argument))
                .map(|found| values(found.iter().map(|d| d.as_ref()))),
            "update" => self.update(argument.as_document().expect("an update")),
            _ => panic!("unknown command {verb}"),
        };
        answer.map_err(|error| error.code)
    }
}
