//! Who answers a script: this crate, or a real server.

use std::collections::BTreeMap;

use bson::raw::{CString, cstr};
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
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

impl Subject for Ours {
    fn load(&mut self, collection: &str, documents: Vec<RawDocumentBuf>) {
        self.collections.insert(collection.to_string(), documents);
    }

    fn try_answer(&mut self, verb: &str, argument: &RawBson) -> Result<Vec<String>, i32> {
        let _ = (verb, argument, CString::try_from("x"));
        Err(0)
    }
}
