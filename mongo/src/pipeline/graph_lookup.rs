//! `$graphLookup`: documents reached step by step through another collection.

use std::collections::BTreeMap;

use super::lookup::{collection, fetch, local_values};
use super::unwind::with_nested;
use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition};
use crate::collation::Ordered;
use crate::error::{FAILED_TO_PARSE, Result, bail};
use crate::expression::{Expression, split_path};
use crate::filter::{Filter, presence_filter};
use crate::values::{Ref, Value, array, as_integer, field, fields, items, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$graphLookup", help: "documents reached step by step", parse }];

struct GraphLookup {
    from: String,
    start: Expression,
    connect_from: Vec<String>,
    connect_to: String,
    target: Vec<String>,
    depth_max: Option<i64>,
    depth_field: Option<Vec<String>>,
    restriction: Filter,
}

fn parse(_: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(object) = operand else {
        bail!(
            FAILED_TO_PARSE,
            "the $graphLookup stage specification must be an object, but found {}",
            type_name(operand)
        );
    };
    let (mut from, mut start, mut connect_from, mut connect_to, mut target) = (None, None, None, None, None);
    let (mut depth_max, mut depth_field, mut restriction) = (None, None, Filter::all());
    for (name, value) in fields(object) {
        match (name, value) {
            ("startWith", value) => start = Some(Expression::parse(value, place.names)?),
            ("maxDepth", value) => match as_integer(value) {
                Some(depth) if depth >= 0 => depth_max = Some(depth),
                Some(_) => bail!(40101, "maxDepth requires a nonnegative argument"),
                None if crate::values::is_number(value) => {
                    bail!(40102, "maxDepth could not be represented as a long long")
                }
                None => bail!(40100, "maxDepth must be numeric, found type: {}", type_name(value)),
            },
            ("restrictSearchWithMatch", Ref::Document(filter)) => {
                restriction = Filter::parse(filter, place.names)?
            }
            ("restrictSearchWithMatch", _) => bail!(40185, "restrictSearchWithMatch must be an object"),
            ("from", value) => from = Some(collection("$graphLookup", value)?),
            ("as", Ref::String(text)) => target = Some(split_path(text)?),
            ("connectFromField", Ref::String(text)) => connect_from = Some(split_path(text)?),
            ("connectToField", Ref::String(text)) => {
                split_path(text)?;
                connect_to = Some(text.to_string());
            }
            ("depthField", Ref::String(text)) => depth_field = Some(split_path(text)?),
            ("as" | "connectFromField" | "connectToField" | "depthField", other) => {
                bail!(40103, "expected string as argument for {name}, found: {}", type_name(other))
            }
            _ => bail!(40104, "Unknown argument to $graphLookup: {name}"),
        }
    }
    let (Some(from), Some(start), Some(connect_from), Some(connect_to), Some(target)) =
        (from, start, connect_from, connect_to, target)
    else {
        bail!(
            40105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified."
        );
    };
    let stage =
        GraphLookup { from, start, connect_from, connect_to, target, depth_max, depth_field, restriction };
    Ok(Parsed::Stage(Box::new(stage)))
}

impl Stage for GraphLookup {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(GraphOperator { stage: self, run })
    }
}

struct GraphOperator<'a> {
    stage: &'a GraphLookup,
    run: Run<'a>,
}

impl Operator for GraphOperator<'_> {
    fn push(&mut self, row: Row, out: &mut Vec<Row>) -> Result<()> {
        let GraphLookup {
            from,
            start,
            connect_from,
            connect_to,
            target,
            depth_max,
            depth_field,
            restriction,
        } = self.stage;
        let mut frontier = match start.evaluate(&row, self.run.context)? {
            Some(Value::Array(list)) => items(&list).map(Value::from).collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        };
        let (mut reached, mut found, mut bytes, mut depth) = (BTreeMap::new(), Vec::new(), 0, 0_i64);
        while !frontier.is_empty() && depth_max.is_none_or(|max| depth <= max) {
            // Who has no such field is connected to nothing, not to null.
            let filter = presence_filter(connect_to, std::mem::take(&mut frontier));
            for next in fetch(self.run, "$graphLookup", from, &filter)? {
                if !restriction.matches(&next, self.run.context)? {
                    continue;
                }
                let id = field(&next, "_id").map_or(Value::Null, Value::from);
                if reached.insert(Ordered(id, None), ()).is_some() {
                    continue;
                }
                bytes += next.as_bytes().len();
                self.run.check_memory("$graphLookup", bytes)?;
                frontier.extend(local_values(&next, connect_from));
                let shown = match depth_field {
                    Some(path) => with_nested(&next, path, Some(Value::Int64(depth))),
                    None => next.document,
                };
                found.push(Value::Document(shown));
            }
            depth += 1;
        }
        let joined = with_nested(&row, target, Some(array(found)));
        out.push(row.becomes(joined));
        Ok(())
    }
}
