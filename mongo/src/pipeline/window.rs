//! `$setWindowFields`: fields computed from the neighbours of each document.
//!
//! Documents are parted and sorted, then each output is computed as a column over a part. A window is a range
//! of the part's places, by number of documents or by distance in the sort field.

use std::ops::Range;

use super::window_functions::{Column, parse_function};
use super::{Operator, Parsed, Place, Row, Run, Stage, StageDefinition, options};
use crate::calendar::Zone;
use crate::error::{FAILED_TO_PARSE, MISSING_FIELD, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Names, Unit, add_unit, split_path};
use crate::number::Number;
use crate::projection::Projection;
use crate::sort::SortPattern;
use crate::values::{Ref, Value, as_double, as_integer, field, fields, items, type_name};

pub(super) const STAGES: &[StageDefinition] =
    &[StageDefinition { name: "$setWindowFields", help: "fields computed over neighbours", parse }];

/// Documents of one part, in order.
pub(super) struct Part<'a> {
    pub(super) documents: Vec<Row>,
    pub(super) keys: Vec<Vec<Value>>,
    pub(super) pattern: Option<&'a SortPattern>,
    /// What stands in the field that a pattern of one field sorts by: for calculations an array is an array, and not its least item.
    pub(super) sort_values: Vec<Option<Value>>,
    pub(super) run: Run<'a>,
}

impl Part<'_> {
    /// The value of the field that a document is sorted by, of a pattern with one field.
    pub(super) fn sort_value(&self, at: usize) -> Option<&Value> {
        self.sort_values.get(at)?.as_ref()
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

    /// Whether each document is in its own window.
    pub(super) fn has_current(&self) -> bool {
        let (Window::Documents(low, high) | Window::Range { low, high, .. }) = self;
        let beyond = |bound: &Bound| match bound {
            Bound::By(by) => as_double(by.as_raw_bson_ref()).unwrap_or(0.0),
            _ => 0.0,
        };
        beyond(low) <= 0.0 && beyond(high) >= 0.0
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
                let own = measured(part.sort_value(at), *unit)?;
                let (from_current, to_current) = (*low == Bound::Current, *high == Bound::Current);
                let (low, high) = (moved(own, low, *unit), moved(own, high, *unit));
                // Documents are in the order of this field, so those before a bound come first.
                let before = |bound: &Value, or_at: bool| {
                    part.sort_values.partition_point(|value| {
                        let value = value.as_ref().map_or(Ref::Null, Value::as_raw_bson_ref);
                        let order = part.run.context.compare(value, bound.as_raw_bson_ref());
                        order.is_lt() || or_at && order.is_eq()
                    })
                };
                // Of equals, the window that begins or ends with the current document does so with itself.
                let start = if from_current { at } else { low.map_or(0, |low| before(&low, false)) };
                let end = if to_current { at + 1 } else { high.map_or(count, |high| before(&high, true)) };
                Ok(start..end.max(start))
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

/// A sort value that distances can be measured from.
fn measured(own: Option<&Value>, unit: Option<Unit>) -> Result<&Value> {
    match (own, unit) {
        (Some(own @ Value::DateTime(_)), Some(_)) => Ok(own),
        (own, Some(_)) => bail!(
            5429513,
            "Invalid range: Expected the sortBy field to be a Date, but it was {}",
            own.map_or("missing", |own| type_name(own.as_raw_bson_ref()))
        ),
        (Some(Value::DateTime(_)), None) => bail!(
            5429413,
            "Invalid range: For windows that involve date or time ranges, a unit must be provided."
        ),
        (Some(own), None) if Number::of(own.as_raw_bson_ref()).is_some() => Ok(own),
        (own, None) => bail!(
            5429414,
            "Invalid range: Expected the sortBy field to be a number, but it was {}",
            own.map_or("missing", |own| type_name(own.as_raw_bson_ref()))
        ),
    }
}

/// A sort value moved by a bound; none is no bound.
fn moved(own: &Value, bound: &Bound, unit: Option<Unit>) -> Option<Value> {
    let by = match bound {
        Bound::Unbounded => return None,
        Bound::Current => return Some(own.clone()),
        Bound::By(by) => by.as_raw_bson_ref(),
    };
    if let (Value::DateTime(date), Some(unit)) = (own, unit) {
        let amount = as_integer(by).unwrap_or(0);
        let millis = add_unit(date.timestamp_millis(), unit, amount, &Zone::UTC).unwrap_or(i64::MAX);
        return Some(Value::DateTime(bson::DateTime::from_millis(millis)));
    }
    let moved = Number::of(own.as_raw_bson_ref()).zip(Number::of(by)).map(|(own, by)| own.add(by).value());
    Some(moved.unwrap_or_else(|| own.clone()))
}

pub(super) struct SetWindowFields {
    pub(super) partition_by: Option<Expression>,
    pub(super) pattern: Option<SortPattern>,
    /// The one field of the pattern.
    pub(super) sorted_by: Option<Expression>,
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
        let sort_fields = pattern.as_ref().map(SortPattern::len);
        outputs.push((path, parse_function(function, operand, window, sort_fields, place.names)?));
    }
    let sorted_by = sorted_by(pattern.as_ref())?;
    Ok(Parsed::Stage(Box::new(SetWindowFields { partition_by, pattern, sorted_by, outputs })))
}

/// The field of a pattern that has only one.
pub(super) fn sorted_by(pattern: Option<&SortPattern>) -> Result<Option<Expression>> {
    match pattern.and_then(SortPattern::paths).as_deref() {
        Some([(path, _)]) => Expression::parse(Ref::String(&format!("${path}")), &Names::default()).map(Some),
        _ => Ok(None),
    }
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
            let mut part = Part {
                documents: vec![document],
                keys: vec![key],
                pattern,
                sort_values: Vec::new(),
                run: self.run,
            };
            while let Some((_, key, document)) =
                rest.next_if(|(next, ..)| context.equal(next.as_raw_bson_ref(), value.as_raw_bson_ref()))
            {
                part.documents.push(document);
                part.keys.push(key);
            }
            if let Some(sorted_by) = &self.stage.sorted_by {
                let values = part.documents.iter().map(|row| sorted_by.evaluate(row, context));
                part.sort_values = values.collect::<Result<_>>()?;
            }
            let mut columns = Vec::new();
            for (path, column) in &self.stage.outputs {
                columns.push((path, column(&part)?.into_iter()));
            }
            for mut row in part.documents {
                let mut values = Vec::new();
                for (path, column) in &mut columns {
                    if let Some(Some(value)) = column.next() {
                        values.push((path.as_slice(), value));
                    }
                }
                row.document = Projection::set(values)?.apply(&row, context)?;
                out.push(row);
            }
        }
        Ok(())
    }
}
