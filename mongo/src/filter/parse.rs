//! From a filter document to conditions, with MongoDB's errors for what makes no sense.

use bson::{RawArray, RawDocument};

use super::Node;
use super::bits::{BitRule, BitTest};
use super::leaf::{Comparison, Membership, Predicate};
use super::operators::OPERATORS;
use super::schema::Schema;
use crate::decimal::Decimal;
use crate::error::{BAD_VALUE, FAILED_TO_PARSE, Result, TYPE_MISMATCH, bail};
use crate::expression::{Expression, Names};
use crate::geo::{NearQuery, Region};
use crate::path::{Path, is_reference_part};
use crate::pattern::Pattern;
use crate::text::TextQuery;
use crate::values::{
    Ref, TYPES, Value, as_double, as_integer, field, fields, is_truthy, items, show, type_name,
};

/// Nested conditions before a filter is refused: documents nest deeper, but each level here costs stack.
const DEPTH_MAX: usize = 100;

/// Where in a filter the parser is.
#[derive(Clone, Copy)]
struct Place<'a> {
    names: &'a Names,
    depth: usize,
    /// Inside `$elemMatch` some conditions about the whole document make no sense.
    top: bool,
}

impl<'a> Place<'a> {
    fn deeper(self) -> Result<Place<'a>> {
        if self.depth >= DEPTH_MAX {
            bail!(BAD_VALUE, "exceeded maximum depth of {DEPTH_MAX} nested conditions");
        }
        Ok(Place { depth: self.depth + 1, ..self })
    }
}

pub(super) fn parse_filter(filter: &RawDocument, names: &Names) -> Result<Node> {
    let node = parse_object(filter, Place { names, depth: 0, top: true })?;
    if texts(&node)? > 1 {
        bail!(BAD_VALUE, "Too many text expressions");
    }
    Ok(node)
}

/// How many text searches there are; what is not so cannot be asked of an index of words.
fn texts(node: &Node) -> Result<usize> {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().map(texts).sum(),
        Node::Nor(nodes) if nodes.iter().map(texts).sum::<Result<usize>>()? > 0 => {
            bail!(BAD_VALUE, "text expression not allowed in nor")
        }
        Node::Text(_) => Ok(1),
        _ => Ok(0),
    }
}

/// Parses what `$pull` and an array filter say about an item: conditions on its fields.
pub(crate) fn parse_condition(filter: &RawDocument) -> Result<Node> {
    parse_object(filter, Place { names: &Names::default(), depth: 0, top: false })
}

/// Parses operators about a value that has no name: `{$gt: 1, $lt: 5}`.
pub(crate) fn parse_value_condition(operators: &RawDocument) -> Result<Node> {
    parse_operators("", operators, Place { names: &Names::default(), depth: 0, top: false })
}

fn conjunction(mut nodes: Vec<Node>) -> Node {
    // An expression may fail; it is only computed for what passes all else.
    nodes.sort_by_key(|node| matches!(node, Node::Expression(_)));
    match nodes.len() {
        1 => nodes.remove(0),
        _ => Node::And(nodes),
    }
}

/// Equalities on one path are a membership: the position of the first item that is any of them counts.
fn disjunction(nodes: Vec<Node>) -> Node {
    let path_of = |node: &Node| match node {
        Node::Field { path, predicate: Predicate::Compare(Comparison::Equal, _) } => Some(path.clone()),
        _ => None,
    };
    let Some(path) = nodes.first().and_then(path_of).filter(|_| nodes.len() > 1) else {
        return Node::Or(nodes);
    };
    if !nodes.iter().all(|node| path_of(node).as_ref() == Some(&path)) {
        return Node::Or(nodes);
    }
    let values = nodes.into_iter().filter_map(|node| match node {
        Node::Field { predicate: Predicate::Compare(_, value), .. } => Some(value),
        _ => None,
    });
    Node::Field { path, predicate: Predicate::In(Membership::new(values.collect(), Vec::new())) }
}

fn parse_object(filter: &RawDocument, place: Place<'_>) -> Result<Node> {
    let place = place.deeper()?;
    let mut nodes = Vec::new();
    for entry in filter.iter() {
        let (name, value) = entry?;
        match name.as_str() {
            name if name.starts_with('$') => nodes.extend(parse_top(name, value, place)?),
            name => nodes.push(parse_field(name, value, place)?),
        }
    }
    Ok(conjunction(nodes))
}

fn parse_top(name: &str, value: Ref<'_>, place: Place<'_>) -> Result<Option<Node>> {
    Ok(Some(match name {
        "$and" => Node::And(parse_list(name, value, place)?),
        "$or" => disjunction(parse_list(name, value, place)?),
        "$nor" => Node::Nor(parse_list(name, value, place)?),
        "$comment" => return Ok(None),
        "$expr" if !place.top => bail!(BAD_VALUE, "$expr can only be applied to the top-level document"),
        "$expr" => Node::Expression(Box::new(Expression::parse(value, place.names)?)),
        "$jsonSchema" => match value {
            Ref::Document(schema) => Node::Schema(Box::new(Schema::parse(schema)?)),
            _ => bail!(TYPE_MISMATCH, "$jsonSchema must be an object"),
        },
        "$sampleRate" => match as_double(value) {
            Some(rate) if (0.0..=1.0).contains(&rate) => Node::SampleRate(rate),
            Some(_) => bail!(BAD_VALUE, "numeric argument to $sampleRate must be in [0, 1]"),
            None => bail!(BAD_VALUE, "argument to $sampleRate must be a numeric type"),
        },
        "$alwaysTrue" | "$alwaysFalse" => match as_integer(value) {
            Some(1) => Node::Constant(name == "$alwaysTrue"),
            _ => bail!(FAILED_TO_PARSE, "{name} must be an integer value of 1"),
        },
        // The part of a reference is equal to its operand, whatever that is.
        "$ref" | "$id" | "$db" => Node::Field {
            path: Path::new(name),
            predicate: Predicate::Compare(Comparison::Equal, value.into()),
        },
        "$where" => bail!(BAD_VALUE, "$where is not supported: this server does not run JavaScript"),
        "$text" if !place.top => bail!(BAD_VALUE, "$text can only be applied to the top-level document"),
        "$text" => Node::Text(Box::new(TextQuery::parse(value)?)),
        _ => bail!(
            BAD_VALUE,
            "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, consider \
             using $getField or $setField."
        ),
    }))
}

fn parse_list(name: &str, value: Ref<'_>, place: Place<'_>) -> Result<Vec<Node>> {
    let Ref::Array(list) = value else { bail!(BAD_VALUE, "{name} must be an array") };
    let mut nodes = Vec::new();
    for item in items(list) {
        let Ref::Document(filter) = item else {
            bail!(BAD_VALUE, "$or/$and/$nor entries need to be full objects");
        };
        nodes.push(parse_object(filter, place)?);
    }
    if nodes.is_empty() {
        bail!(BAD_VALUE, "$and/$or/$nor must be a nonempty array");
    }
    Ok(nodes)
}

/// Whether an object says something about a value, and is no value itself. One with `$ref` and `$id` is a reference.
fn is_operators(object: &RawDocument) -> bool {
    begins_with_dollar(object) && !["$ref", "$id"].iter().all(|part| field(object, part).is_some())
}

/// Operators about a value, which `$all` does not take as values.
fn is_operator(name: &str) -> bool {
    const ABOUT_DOCUMENTS: [&str; 9] =
        ["$and", "$or", "$nor", "$expr", "$jsonSchema", "$comment", "$sampleRate", "$text", "$where"];
    OPERATORS.iter().any(|known| known.name == name) && !ABOUT_DOCUMENTS.contains(&name)
}

fn begins_with_dollar(object: &RawDocument) -> bool {
    fields(object).next().is_some_and(|(name, _)| name.starts_with('$'))
}

fn parse_field(path: &str, value: Ref<'_>, place: Place<'_>) -> Result<Node> {
    let predicate = match value {
        Ref::Document(object) if is_operators(object) => return parse_operators(path, object, place),
        Ref::RegularExpression(regex) => {
            Predicate::Pattern(Pattern::new(regex.pattern.as_str(), regex.options.as_str())?)
        }
        Ref::Undefined => bail!(BAD_VALUE, "cannot compare to undefined"),
        value => Predicate::Compare(Comparison::Equal, value.into()),
    };
    Ok(Node::Field { path: Path::new(path), predicate })
}

fn parse_operators(path: &str, operators: &RawDocument, place: Place<'_>) -> Result<Node> {
    let place = place.deeper()?;
    let mut nodes = Vec::new();
    for (name, operand) in fields(operators) {
        nodes.extend(parse_operator(path, name, operand, operators, place)?);
    }
    Ok(conjunction(nodes))
}

fn parse_operator(
    path: &str,
    name: &str,
    operand: Ref<'_>,
    siblings: &RawDocument,
    place: Place<'_>,
) -> Result<Option<Node>> {
    let field = |predicate| Node::Field { path: Path::new(path), predicate };
    let not = |predicate| Node::Not(Box::new(field(predicate)));
    Ok(Some(match name {
        "$eq" => field(compare(name, Comparison::Equal, operand, path)?),
        "$ne" => not(compare(name, Comparison::Equal, operand, path)?),
        "$gt" => field(compare(name, Comparison::Greater, operand, path)?),
        "$gte" => field(compare(name, Comparison::GreaterOrEqual, operand, path)?),
        "$lt" => field(compare(name, Comparison::Less, operand, path)?),
        "$lte" => field(compare(name, Comparison::LessOrEqual, operand, path)?),
        "$in" => field(Predicate::In(membership(name, operand)?)),
        "$nin" => not(Predicate::In(membership(name, operand)?)),
        "$exists" if is_truthy(Some(operand)) => field(Predicate::Exists),
        "$exists" => not(Predicate::Exists),
        "$type" => field(Predicate::Type(types(operand)?)),
        "$mod" => field(modulo(operand)?),
        "$size" => field(Predicate::Size(size(operand)?)),
        "$all" => all(path, operand, place)?,
        "$elemMatch" => field(elem_match(operand, place)?),
        "$not" => Node::Not(Box::new(negated(path, operand, place)?)),
        "$regex" => field(Predicate::Pattern(pattern(operand, siblings)?)),
        "$options" => match super::super::values::field(siblings, "$regex") {
            Some(_) => return Ok(None),
            None => bail!(BAD_VALUE, "$options needs a $regex"),
        },
        "$bitsAllSet" => field(Predicate::Bits(BitTest::parse(BitRule::AllSet, operand)?)),
        "$bitsAllClear" => field(Predicate::Bits(BitTest::parse(BitRule::AllClear, operand)?)),
        "$bitsAnySet" => field(Predicate::Bits(BitTest::parse(BitRule::AnySet, operand)?)),
        "$bitsAnyClear" => field(Predicate::Bits(BitTest::parse(BitRule::AnyClear, operand)?)),
        "$geoWithin" | "$within" => field(Predicate::Within(Region::parse_within(operand)?)),
        "$geoIntersects" => field(Predicate::Intersects(Region::parse_intersects(operand)?)),
        "$near" | "$nearSphere" | "$geoNear" => field(Predicate::Near(NearQuery::parse(name, siblings)?)),
        "$maxDistance" | "$minDistance" | "$uniqueDocs" if has_near(siblings) => return Ok(None),
        "$expr" => bail!(BAD_VALUE, "unknown operator: $expr"),
        _ => bail!(BAD_VALUE, "unknown operator: {name}"),
    }))
}

fn has_near(siblings: &RawDocument) -> bool {
    fields(siblings).any(|(name, _)| matches!(name, "$near" | "$nearSphere" | "$geoNear"))
}

fn compare(name: &str, comparison: Comparison, operand: Ref<'_>, path: &str) -> Result<Predicate> {
    match operand {
        Ref::Undefined => bail!(BAD_VALUE, "cannot compare to undefined"),
        Ref::RegularExpression(_) if name == "$ne" => bail!(BAD_VALUE, "Can't have regex as arg to $ne."),
        Ref::RegularExpression(_) if comparison != Comparison::Equal => {
            bail!(BAD_VALUE, "Can't have RegEx as arg to predicate over field '{path}'.")
        }
        operand => Ok(Predicate::Compare(comparison, operand.into())),
    }
}

fn membership(name: &str, operand: Ref<'_>) -> Result<Membership> {
    let Ref::Array(list) = operand else { bail!(BAD_VALUE, "{name} needs an array") };
    let (mut values, mut patterns) = (Vec::new(), Vec::new());
    for item in items(list) {
        match item {
            Ref::RegularExpression(regex) => {
                patterns.push(Pattern::new(regex.pattern.as_str(), regex.options.as_str())?);
            }
            Ref::Document(object) if is_operators(object) => bail!(BAD_VALUE, "cannot nest $ under $in"),
            Ref::Undefined => bail!(BAD_VALUE, "InMatchExpression equality cannot be undefined"),
            value => values.push(Value::from(value)),
        }
    }
    Ok(Membership::new(values, patterns))
}

/// Type names and numbers, alone or in a list; `number` stands for four.
pub(super) fn types(operand: Ref<'_>) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    match operand {
        Ref::Array(list) => {
            for item in items(list) {
                found.extend(one_type(item)?);
            }
            if found.is_empty() {
                bail!(FAILED_TO_PARSE, "$type must match at least one type");
            }
        }
        _ => found = one_type(operand)?,
    }
    Ok(found)
}

fn one_type(operand: Ref<'_>) -> Result<Vec<i32>> {
    match operand {
        Ref::String("number") => Ok(vec![1, 16, 18, 19]),
        Ref::String(name) => match TYPES.iter().find(|(found, _)| *found == name) {
            Some((_, code)) => Ok(vec![*code]),
            None => bail!(BAD_VALUE, "Unknown type name alias: {name}"),
        },
        Ref::Int32(_) | Ref::Int64(_) | Ref::Double(_) | Ref::Decimal128(_) => {
            let code = as_integer(operand).and_then(|code| i32::try_from(code).ok());
            match code.filter(|code| TYPES.iter().any(|(_, found)| found == code)) {
                Some(code) => Ok(vec![code]),
                None if code == Some(0) => {
                    bail!(BAD_VALUE, "Invalid numerical type code: 0. Instead use {{$exists:false}}.")
                }
                None => bail!(BAD_VALUE, "Invalid numerical type code: {}", show(operand)),
            }
        }
        _ => bail!(TYPE_MISMATCH, "type must be represented as a number or a string"),
    }
}

fn modulo(operand: Ref<'_>) -> Result<Predicate> {
    let Ref::Array(list) = operand else { bail!(BAD_VALUE, "malformed mod, needs to be an array") };
    let parts: Vec<_> = items(list).collect();
    match parts.as_slice() {
        [] | [_] => bail!(BAD_VALUE, "malformed mod, not enough elements"),
        [divisor, remainder] => {
            let divisor = mod_number(*divisor, "divisor")?;
            let remainder = mod_number(*remainder, "remainder")?;
            if divisor == 0 {
                bail!(BAD_VALUE, "divisor cannot be 0");
            }
            Ok(Predicate::Modulo { divisor, remainder })
        }
        _ => bail!(BAD_VALUE, "malformed mod, too many elements"),
    }
}

fn mod_number(value: Ref<'_>, what: &str) -> Result<i64> {
    let truncated = match value {
        Ref::Int32(value) => Some(value.into()),
        Ref::Int64(value) => Some(value),
        Ref::Double(value) if value.is_finite() && value.abs() < 9.223_372_036_854_775e18 => {
            Some(value as i64)
        }
        Ref::Decimal128(value) => Decimal::from_bson(value).to_i64_truncated(),
        Ref::Double(_) => None,
        _ => bail!(BAD_VALUE, "malformed mod, {what} not a number"),
    };
    match truncated {
        Some(value) => Ok(value),
        None => bail!(BAD_VALUE, "malformed mod, {what} value is invalid"),
    }
}

fn size(operand: Ref<'_>) -> Result<i64> {
    match as_integer(operand) {
        Some(size) if size >= 0 => Ok(size),
        Some(_) => {
            bail!(BAD_VALUE, "Failed to parse $size. Expected a non-negative number in: {}", show(operand))
        }
        None if as_double(operand).is_some() => {
            bail!(BAD_VALUE, "Failed to parse $size. Expected an integer: {}", show(operand))
        }
        None => bail!(BAD_VALUE, "Failed to parse $size. Expected a number in: {}", show(operand)),
    }
}

fn all(path: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Node> {
    let Ref::Array(list) = operand else { bail!(BAD_VALUE, "$all needs an array") };
    if items(list).next().is_none() {
        return Ok(Node::Constant(false));
    }
    let mut nodes = Vec::new();
    for item in items(list) {
        nodes.push(all_item(path, item, list, place)?);
    }
    Ok(Node::And(nodes))
}

fn all_item(path: &str, item: Ref<'_>, list: &RawArray, place: Place<'_>) -> Result<Node> {
    let is_elem_match = |item: Ref<'_>| {
        item.as_document().and_then(|object| fields(object).next()).is_some_and(|(n, _)| n == "$elemMatch")
    };
    let first_is_elem_match = items(list).next().is_some_and(is_elem_match);
    let predicate = match item {
        Ref::Document(object) if is_elem_match(item) => {
            if !first_is_elem_match {
                bail!(BAD_VALUE, "no $ expressions in $all");
            }
            match field(object, "$elemMatch") {
                Some(operand) if fields(object).count() == 1 => elem_match(operand, place)?,
                _ => bail!(BAD_VALUE, "$all/$elemMatch has to be consistent"),
            }
        }
        _ if first_is_elem_match => bail!(BAD_VALUE, "$all/$elemMatch has to be consistent"),
        Ref::Document(object) if fields(object).next().is_some_and(|(name, _)| is_operator(name)) => {
            bail!(BAD_VALUE, "no $ expressions in $all")
        }
        Ref::RegularExpression(regex) => {
            Predicate::Pattern(Pattern::new(regex.pattern.as_str(), regex.options.as_str())?)
        }
        Ref::Undefined => bail!(BAD_VALUE, "cannot compare to undefined"),
        value => Predicate::Compare(Comparison::Equal, value.into()),
    };
    Ok(Node::Field { path: Path::new(path), predicate })
}

fn elem_match(operand: Ref<'_>, place: Place<'_>) -> Result<Predicate> {
    let Ref::Document(object) = operand else { bail!(BAD_VALUE, "$elemMatch needs an Object") };
    let place = Place { top: false, ..place }.deeper()?;
    let about_values = match fields(object).next() {
        Some(("$and" | "$or" | "$nor" | "$where" | "$expr" | "$comment", _)) => false,
        // Here a part of a reference is enough for one.
        Some(_) => begins_with_dollar(object) && !fields(object).any(|(name, _)| is_reference_part(name)),
        None => false,
    };
    Ok(if about_values {
        Predicate::ItemValue(Box::new(parse_operators("", object, place)?))
    } else {
        Predicate::ItemObject(Box::new(parse_object(object, place)?))
    })
}

fn negated(path: &str, operand: Ref<'_>, place: Place<'_>) -> Result<Node> {
    match operand {
        Ref::RegularExpression(_) => parse_field(path, operand, place),
        Ref::Document(object) => match fields(object).next() {
            None => bail!(BAD_VALUE, "$not cannot be empty"),
            Some((name, _)) if !name.starts_with('$') => bail!(BAD_VALUE, "unknown operator: {name}"),
            Some(_) => parse_operators(path, object, place),
        },
        _ => bail!(BAD_VALUE, "$not needs a regex or a document"),
    }
}

fn pattern(operand: Ref<'_>, siblings: &RawDocument) -> Result<Pattern> {
    let options = match field(siblings, "$options") {
        Some(Ref::String(options)) => Some(options),
        Some(_) => bail!(BAD_VALUE, "$options has to be a string"),
        None => None,
    };
    match operand {
        Ref::String(source) => Pattern::new(source, options.unwrap_or_default()),
        Ref::RegularExpression(regex) => {
            let own = regex.options.as_str();
            if options.is_some() && !own.is_empty() {
                bail!(51075, "options set in both $regex and $options");
            }
            Pattern::new(regex.pattern.as_str(), options.unwrap_or(own))
        }
        other => bail!(BAD_VALUE, "$regex has to be a string, not {}", type_name(other)),
    }
}
