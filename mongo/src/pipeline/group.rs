//! `$group` and `$sortByCount`: documents with the same key become one.

use bson::{RawDocument, RawDocumentBuf};

use super::accumulators::{Accumulator, Maker, find};
use super::group_keys::GroupKeys;
use super::sorting::Sort;
use super::{Operator, Parsed, Place, Provenance, Row, Run, Stage, StageDefinition};
use crate::context::Context;
use crate::error::{Result, bail};
use crate::expression::{Env, Expression, Names};
use crate::sort::SortPattern;
use crate::values::{Ref, Value, fields, items, put, type_name};

pub(super) const STAGES: &[StageDefinition] = &[
    StageDefinition { name: "$group", help: "one document for each key, with accumulators", parse },
    StageDefinition { name: "$sortByCount", help: "keys by how often they occur", parse: sort_by_count },
];

/// A field of the output and how it is collected.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) make: Maker,
}

/// Reads `{$sum: ...}`.
pub(super) fn accumulated(name: &str, value: Ref<'_>, names: &Names) -> Result<Field> {
    if name.contains('.') {
        bail!(40235, "The field name '{name}' cannot contain '.'");
    }
    if name.starts_with('$') {
        bail!(40236, "The field name '{name}' cannot be an operator name");
    }
    let Ref::Document(object) = value else {
        bail!(40234, "The field '{name}' must be an accumulator object");
    };
    let mut entries = fields(object);
    let Some((operator, operand)) = entries.next().filter(|(operator, _)| operator.starts_with('$')) else {
        bail!(40234, "The field '{name}' must be an accumulator object");
    };
    if entries.next().is_some() {
        bail!(40238, "The field '{name}' must specify one accumulator");
    }
    if let Ref::Array(list) = operand
        && items(list).count() != 1
    {
        bail!(40237, "The {operator} accumulator is a unary operator");
    }
    match find(operator) {
        Some(definition) => {
            Ok(Field { name: name.to_string(), make: (definition.parse)(operator, operand, names)? })
        }
        None => bail!(15952, "unknown group operator '{operator}'"),
    }
}

/// A parsed `$group`.
pub(super) struct Group {
    pub(super) key: Key,
    pub(super) fields: Vec<Field>,
}

/// What documents are grouped by.
pub(super) enum Key {
    Expression(Expression),
    /// The one field of an object. MongoDB groups by its value and makes the object of it at the end, so one that is missing
    /// is null, as it is without an object and is not in an object of several.
    Field(String, Expression),
    Function(KeyFunction),
}

/// Computes the key of a document; for stages that group by more than an expression.
type KeyFunction = Box<dyn Fn(&RawDocument, &Context<'_>) -> Result<Value> + Send + Sync>;

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(specification) = operand else {
        bail!(15947, "a group's fields must be specified in an object")
    };
    let (mut key, mut parsed) = (None, Vec::new());
    for (name, value) in fields(specification) {
        match name {
            "_id" => {
                if key.is_some() {
                    bail!(15948, "a group's _id may only be specified once");
                }
                key = Some(parse_key(value, place.names)?);
            }
            "$doingMerge" | "$willBeMerged" => bail!(17030, "{name} is an internal option"),
            _ => parsed.push(accumulated(name, value, place.names)?),
        }
    }
    let Some(key) = key else { bail!(15955, "a group specification must include an _id") };
    Ok(Parsed::Stage(Box::new(Group { key, fields: parsed })))
}

fn parse_key(value: Ref<'_>, names: &Names) -> Result<Key> {
    // Also for what is wrong with the object.
    let whole = Expression::parse(value, names)?;
    let Ref::Document(object) = value else { return Ok(Key::Expression(whole)) };
    let mut entries = fields(object);
    match (entries.next(), entries.next()) {
        (Some((name, value)), None) if !name.starts_with('$') => {
            Ok(Key::Field(name.to_string(), Expression::parse(value, names)?))
        }
        _ => Ok(Key::Expression(whole)),
    }
}

fn sort_by_count(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    match operand {
        Ref::Document(object) => match fields(object).next() {
            Some((name, _)) if name.starts_with('$') => {}
            _ => bail!(40147, "the sortByCount field must be defined as an expression inside an object"),
        },
        Ref::String(path) if path.starts_with('$') => {}
        Ref::String(_) => bail!(
            40148,
            "the sortByCount field must be defined as a $-prefixed path or an expression inside an object"
        ),
        other => bail!(
            40149,
            "the sortByCount field must be specified as a string or as an object, not {}",
            type_name(other)
        ),
    }
    let key = Key::Expression(Expression::parse(operand, place.names)?);
    let one = Value::Int32(1);
    let mut sum = RawDocumentBuf::new();
    put(&mut sum, "$sum", one);
    let count = accumulated("count", Ref::Document(&sum), place.names)?;
    let mut pattern = RawDocumentBuf::new();
    put(&mut pattern, "count", -1);
    Ok(Parsed::Stages(vec![
        Box::new(Group { key, fields: vec![count] }),
        Box::new(Sort { pattern: SortPattern::parse(&pattern)?, limit: None }),
    ]))
}

impl Stage for Group {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(GroupOperator {
            group: self,
            keys: GroupKeys::new(run.context.collation),
            run,
            groups: Vec::new(),
            bytes: 0,
            pushed: 0,
        })
    }
}

struct GroupOperator<'a> {
    group: &'a Group,
    run: Run<'a>,
    keys: GroupKeys<'a>,
    /// What each group collects, in the order of the keys.
    groups: Vec<Vec<Box<dyn Accumulator>>>,
    bytes: usize,
    pushed: usize,
}

impl Operator for GroupOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        self.push_ref(&row, Provenance::NONE, out)
    }

    fn push_ref(&mut self, document: &RawDocument, _: Provenance<'_>, _: &mut Vec<Row>) -> Result<()> {
        let context = self.run.context;
        let mut env = Env::new(document, context);
        let key = match &self.group.key {
            Key::Expression(expression) | Key::Field(_, expression) => {
                expression.eval_in(&mut env)?.unwrap_or(Value::Null)
            }
            Key::Function(function) => function(document, context)?,
        };
        let place = self.keys.place(key);
        if place == self.groups.len() {
            self.groups.push(self.group.fields.iter().map(|field| (field.make)()).collect());
            self.bytes += 256;
        }
        if let Some(accumulators) = self.groups.get_mut(place) {
            for accumulator in accumulators {
                accumulator.add(&mut env)?;
            }
        }
        // What accumulators hold is asked for now and then: it grows by at most a document at a time.
        self.pushed += 1;
        if self.pushed.is_multiple_of(1024) || document.as_bytes().len() > 64 * 1024 {
            let held: usize = self.groups.iter().flat_map(|all| all.iter().map(|one| one.bytes())).sum();
            self.run.check_memory("$group", self.bytes + held)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        for (key, accumulators) in self.keys.shown.drain(..).zip(self.groups.drain(..)) {
            let mut document = RawDocumentBuf::new();
            match &self.group.key {
                Key::Field(name, _) => {
                    let mut object = RawDocumentBuf::new();
                    put(&mut object, name, key);
                    put(&mut document, "_id", Value::Document(object));
                }
                _ => put(&mut document, "_id", key),
            }
            for (field, accumulator) in self.group.fields.iter().zip(accumulators) {
                put(&mut document, &field.name, accumulator.value(self.run.context)?);
            }
            out.push(Row::made(document));
        }
        Ok(())
    }
}
