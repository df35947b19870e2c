//! `$setWindowFields`: fields computed from the neighbours of each document.
//!
//! Documents are parted and sorted, then each output is computed as a column over a part. A window is a range
//! of the part's places, by number of documents or by distance in the sort field.

use std::ops::Range;

use super::unwind::with_nested;
use super::window_functions::{Column, parse_function};
use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition, options};
use crate::calendar::Zone;
use crate::error::{FAILED_TO_PARSE, MISSING_FIELD, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Unit, add_unit, split_path};
use crate::number::Number;
use crate::sort::SortPattern;
use crate::values::{Ref, Value, as_integer, field, fields, items};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$setWindowFields", help: "fields computed over neighbours", parse }];

/// Documents of one part, in order.
pub(super) struct Part<'a> {
    pub(super) documents: Vec<Row>,
    pub(super) keys: Vec<Vec<Value>>,
    pub(super) pattern: Option<&'a SortPattern>,
    pub(super) run: Run<'a>,
}

impl Part<'_> {
    /// The value that a document is sorted by, of a pattern with one field.
    pub(super) fn sort_value(&self, at: usize) -> Option<&Value> {
        self.keys.get(at)?.first()
    }
}

/// One end of a window.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    Unbounded,
    Current,
    By(Value),
}

/// The neighbours that a function sees.
#[derive(Debug, Clone)]
pub(super) enum Window {
    Documents(Bound, Bound),
    Range { low: Bound, high: Bound, unit: Option<Unit> },
}

impl Window {
    pub(super) const WHOLE: Window = Window::Documents(Bound::Unbounded, Bound::Unbounded);

    fn parse(value: Ref<'_>) -> Result<Window> {
        let Ref::Document(object) = value else { bail!(FAILED_TO_PARSE, "'window' field must be an object") };
        let (mut documents, mut range, mut unit) = (None, None, None);
        for (name, value) in fields(object) {
            match (name, value) {
                ("documents", value) => documents = Some(bounds(value)?),
                ("range", value) => range = Some(bounds(value)?),
                ("unit", Ref::String(name)) => unit = Some(Unit::parse(name)?),
                _ => bail!(
                    FAILED_TO_PARSE,
                    "'window' field that specifies a frame has an unknown field: {name}"
                ),
            }
        }
        match (documents, range) {
            (Some((low, high)), None) if unit.is_none() => {
                for bound in [&low, &high] {
                    if let Bound::By(value) = bound
                        && as_integer(value.as_raw_bson_ref()).is_none()
                    {
                        bail!(FAILED_TO_PARSE, "Numeric document-based bounds must be an integer");
                    }
                }
                let number = |bound: &Bound, open: i64| match bound {
                    Bound::Unbounded => open,
                    Bound::Current => 0,
                    Bound::By(value) => as_integer(value.as_raw_bson_ref()).unwrap_or(0),
                };
                if number(&low, i64::MIN) > number(&high, i64::MAX) {
                    bail!(5339900, "Lower bound must not exceed upper bound");
                }
                Ok(Window::Documents(low, high))
            }
            (None, Some((low, high))) => Ok(Window::Range { low, high, unit }),
            (None, None) => Ok(Window::WHOLE),
            _ => bail!(FAILED_TO_PARSE, "Window bounds can specify either 'documents' or 'range', not both"),
        }
    }

    /// The places that the window of a document covers.
    pub(super) fn frame(&self, part: &Part<'_>, at: usize) -> Result<Range<usize>> {
        let count = part.documents.len();
        match self {
            Window::Documents(low, high) => {
                let place = |bound: &Bound, open: i64, extra: i64| match bound {
                    Bound::Unbounded => open,
                    Bound::Current => at as i64 + extra,
                    Bound::By(by) => {
                        (at as i64).saturating_add(as_integer(by.as_raw_bson_ref()).unwrap_or(0)) + extra
                    }
                };
                let start = place(low, 0, 0).clamp(0, count as i64) as usize;
                let end = place(high, count as i64, 1).clamp(0, count as i64) as usize;
                Ok(start..end.max(start))
            }
            Window::Range { low, high, unit } => {
                let own = part.sort_value(at).cloned().unwrap_or(Value::Null);
                let from_current = *low == Bound::Current;
                let low = moved(&own, low, *unit)?;
                let high = moved(&own, high, *unit)?;
                let compare = |place: usize, bound: &Value| {
                    let value = part.sort_value(place).cloned().unwrap_or(Value::Null);
                    part.run.context.compare(value.as_raw_bson_ref(), bound.as_raw_bson_ref())
                };
                let places = 0..count;
                let start =
                    places.clone().find(|place| low.as_ref().is_none_or(|low| compare(*place, low).is_ge()));
                // Of equals, the window that begins with the current document begins with itself.
                let start = if from_current { at } else { start.unwrap_or(count) };
                let end =
                    places.rev().find(|place| high.as_ref().is_none_or(|high| compare(*place, high).is_le()));
                Ok(start..end.map_or(start, |end| (end + 1).max(start)))
            }
        }
    }
}

fn bounds(value: Ref<'_>) -> Result<(Bound, Bound)> {
    let Ref::Array(list) = value else { bail!(FAILED_TO_PARSE, "Window bounds must be a 2-element array") };
    let bound = |value: Ref<'_>| {
        Ok(match value {
            Ref::String("unbounded") => Bound::Unbounded,
            Ref::String("current") => Bound::Current,
            value if crate::values::is_number(value) => Bound::By(value.into()),
            _ => bail!(FAILED_TO_PARSE, "Window bounds must be 'unbounded', 'current', or a number."),
        })
    };
    match items(list).collect::<Vec<_>>().as_slice() {
        [low, high] => Ok((bound(*low)?, bound(*high)?)),
        _ => bail!(FAILED_TO_PARSE, "Window bounds must be a 2-element array"),
    }
}

/// A sort value moved by a bound; none is no bound.
fn moved(own: &Value, bound: &Bound, unit: Option<Unit>) -> Result<Option<Value>> {
    let by = match bound {
        Bound::Unbounded => return Ok(None),
        Bound::Current => return Ok(Some(own.clone())),
        Bound::By(by) => by,
    };
    match (own, unit) {
        (Value::DateTime(date), Some(unit)) => {
            let amount = as_integer(by.as_raw_bson_ref()).unwrap_or(0);
            let millis = add_unit(date.timestamp_millis(), unit, amount, &Zone::UTC).unwrap_or(i64::MAX);
            Ok(Some(Value::DateTime(bson::DateTime::from_millis(millis))))
        }
        (Value::DateTime(_), None) => {
            bail!(5429513, "Invalid range: Expected the sortBy field to be a number, but it was a date")
        }
        (own, None) => match (Number::of(own.as_raw_bson_ref()), Number::of(by.as_raw_bson_ref())) {
            (Some(own), Some(by)) => Ok(Some(own.add(by).value())),
            _ => bail!(5429414, "Invalid range: Expected the sortBy field to be a number"),
        },
        _ => bail!(5429414, "Invalid range: Expected the sortBy field to be a date"),
    }
}

pub(super) struct SetWindowFields {
    pub(super) partition_by: Option<Expression>,
    pub(super) pattern: Option<SortPattern>,
    pub(super) outputs: Vec<(Vec<String>, Column)>,
}

fn parse(name: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Parsed> {
    let Ref::Document(_) = operand else {
        bail!(FAILED_TO_PARSE, "the $setWindowFields stage specification must be an object")
    };
    let object = options(name, operand, &["partitionBy", "sortBy", "output"])?;
    let partition_by =
        field(object, "partitionBy").map(|by| Expression::parse(by, place.names)).transpose()?;
    let pattern = match field(object, "sortBy") {
        None => None,
        Some(Ref::Document(pattern)) => Some(SortPattern::parse(pattern)?),
        Some(_) => bail!(
            TYPE_MISMATCH,
            "BSON field '$setWindowFields.sortBy' is the wrong type, expected type 'object'"
        ),
    };
    let Some(output) = field(object, "output") else {
        bail!(MISSING_FIELD, "BSON field '$setWindowFields.output' is missing but a required field");
    };
    let Ref::Document(output) = output else {
        bail!(
            TYPE_MISMATCH,
            "BSON field '$setWindowFields.output' is the wrong type, expected type 'object'"
        );
    };
    let mut outputs = Vec::new();
    for (name, value) in fields(output) {
        let path = split_path(name)?;
        let Ref::Document(specification) = value else {
            bail!(FAILED_TO_PARSE, "The field '{name}' must be an object");
        };
        let (mut function, mut window) = (None, None);
        for (key, operand) in fields(specification) {
            match key {
                "window" => window = Some(Window::parse(operand)?),
                key if key.starts_with('$') && function.is_none() => function = Some((key, operand)),
                _ => bail!(FAILED_TO_PARSE, "Window function found an unknown argument: {key}"),
            }
        }
        let Some((function, operand)) = function else {
            bail!(FAILED_TO_PARSE, "Expected a $-prefixed window function");
        };
        if let Some(Window::Range { .. }) = window
            && pattern
                .as_ref()
                .and_then(SortPattern::paths)
                .is_none_or(|paths| paths.len() != 1 || paths.iter().any(|(_, down)| *down))
        {
            bail!(5339902, "Range-based bounds require sortBy a single field, in ascending order");
        }
        let bounded = matches!(&window, Some(Window::Documents(low, high)) if !(*low == Bound::Unbounded && *high == Bound::Unbounded));
        if bounded && pattern.is_none() {
            bail!(5339901, "Document-based bounds require a sortBy");
        }
        let sorted = pattern.is_some();
        outputs.push((path, parse_function(function, operand, window, sorted, place.names)?));
    }
    Ok(Parsed::Stage(Box::new(SetWindowFields { partition_by, pattern, outputs })))
}

impl Stage for SetWindowFields {
    fn start<'a>(&'a self, run: Run<'a>) -> Box<dyn Operator + 'a> {
        Box::new(WindowOperator { stage: self, run, held: Vec::new(), bytes: 0 })
    }
}

struct WindowOperator<'a> {
    stage: &'a SetWindowFields,
    run: Run<'a>,
    held: Vec<(Value, Vec<Value>, Row)>,
    bytes: usize,
}

impl Operator for WindowOperator<'_> {
    fn push(&mut self, row: Row, _: &mut Vec<Row>) -> Result<()> {
        let context = self.run.context;
        let part = match &self.stage.partition_by {
            Some(by) => by.evaluate(&row, context)?.unwrap_or(Value::Null),
            None => Value::Null,
        };
        if matches!(part, Value::Array(_)) {
            bail!(TYPE_MISMATCH, "An expression used to partition cannot evaluate to value of type array");
        }
        let key = match &self.stage.pattern {
            Some(pattern) => pattern.key(&row, context)?,
            None => Vec::new(),
        };
        self.bytes += 2 * row.as_bytes().len() + 64;
        self.held.push((part, key, row));
        self.run.check_memory("$setWindowFields", self.bytes)
    }

    fn finish(&mut self, out: &mut Vec<Row>) -> Result<()> {
        let context = self.run.context;
        let pattern = self.stage.pattern.as_ref();
        self.held.sort_by(|a, b| {
            let by_part = context.compare(a.0.as_raw_bson_ref(), b.0.as_raw_bson_ref());
            by_part.then_with(|| {
                pattern.map_or(std::cmp::Ordering::Equal, |pattern| pattern.compare(&a.1, &b.1, context))
            })
        });
        let mut rest = std::mem::take(&mut self.held).into_iter().peekable();
        while let Some((value, key, document)) = rest.next() {
            let mut part = Part { documents: vec![document], keys: vec![key], pattern, run: self.run };
            while let Some((_, key, document)) =
                rest.next_if(|(next, ..)| context.equal(next.as_raw_bson_ref(), value.as_raw_bson_ref()))
            {
                part.documents.push(document);
                part.keys.push(key);
            }
            let mut columns = Vec::new();
            for (path, column) in &self.stage.outputs {
                columns.push((path, column(&part)?.into_iter()));
            }
            for mut row in part.documents {
                for (path, column) in &mut columns {
                    if let Some(Some(value)) = column.next() {
                        row.document = with_nested(&row, path, Some(value));
                    }
                }
                out.push(row);
            }
        }
        Ok(())
    }
}
