//! From BSON to expressions: paths, variables, objects, arrays and operator calls.

use bson::{DateTime, RawDocument, RawDocumentBuf};

use super::{Args, Base, Call, EXPRESSIONS, Expr, Failures, Kind, Names, Null, Operator};
use crate::context::Context;
use crate::error::{FAILED_TO_PARSE, MongoError, Result, bail};
use crate::path::is_allowed_dollar_name;
use crate::values::{Ref, Value, fields, items, show};

/// Nested expressions before one is refused.
const DEPTH_MAX: usize = 120;

/// The variables in sight while parsing; a variable's slot is its place in the list.
pub(crate) struct Scope {
    names: Vec<String>,
    failures: Failures,
    depth: usize,
}

impl Scope {
    pub(crate) fn new(names: &Names) -> Scope {
        Scope { names: names.0.clone(), failures: names.1, depth: 0 }
    }

    /// Parses with more variables in sight.
    pub(crate) fn with<T>(&mut self, names: &[&str], inner: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.names.len();
        self.names.extend(names.iter().map(ToString::to_string));
        let result = inner(self);
        self.names.truncate(depth);
        result
    }

    fn slot(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|found| found == name)
    }
}

pub(crate) fn parse_expression(value: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    scope.depth += 1;
    if scope.depth > DEPTH_MAX {
        bail!(FAILED_TO_PARSE, "expression nests deeper than {DEPTH_MAX} levels");
    }
    let parsed = match value {
        Ref::String(text) if text.starts_with('$') => parse_path(text, scope),
        Ref::Document(object) => parse_object(object, scope),
        Ref::Array(list) => {
            let parsed: Vec<_> =
                items(list).map(|item| parse_expression(item, scope)).collect::<Result<_>>()?;
            Ok(constant_array(parsed))
        }
        value => Ok(Expr::Constant(Some(value.into()))),
    };
    scope.depth -= 1;
    parsed
}

fn constant_array(parsed: Vec<Expr>) -> Expr {
    let constants: Option<Vec<_>> = parsed
        .iter()
        .map(|expr| match expr {
            Expr::Constant(value) => Some(value.clone().unwrap_or(Value::Null)),
            _ => None,
        })
        .collect();
    match constants {
        Some(values) => Expr::Constant(Some(crate::values::array(values))),
        None => Expr::Array(parsed),
    }
}

fn parse_object(object: &RawDocument, scope: &mut Scope) -> Result<Expr> {
    if let Some((name, operand)) = fields(object).next().filter(|(name, _)| name.starts_with('$')) {
        if fields(object).count() != 1 {
            bail!(
                15983,
                "an expression specification must contain exactly one field, the name of the expression. Found {} \
                 fields in {}",
                fields(object).count(),
                show(Ref::Document(object))
            );
        }
        return parse_operator(name, operand, scope);
    }
    let mut parsed = Vec::new();
    for (name, value) in fields(object) {
        check_field_name(name)?;
        parsed.push((name.to_string(), parse_expression(value, scope)?));
    }
    let constants = parsed.iter().all(|(_, expr)| matches!(expr, Expr::Constant(_)));
    if constants {
        let mut object = RawDocumentBuf::new();
        for (name, expr) in parsed {
            if let Expr::Constant(Some(value)) = expr {
                crate::values::put(&mut object, &name, value);
            }
        }
        return Ok(Expr::Constant(Some(Value::Document(object))));
    }
    Ok(Expr::Object(parsed))
}

fn check_field_name(name: &str) -> Result<()> {
    if name.is_empty() {
        bail!(40352, "FieldPath cannot be constructed with empty string");
    }
    if name.starts_with('$') && !is_allowed_dollar_name(name) {
        bail!(16410, "FieldPath field names may not start with '$'. Consider using $getField or $setField.");
    }
    if name.contains('.') {
        bail!(16412, "FieldPath field names may not contain '.'. Consider using $getField or $setField.");
    }
    Ok(())
}

/// Parses `$path`, `$$variable` and `$$variable.path`.
fn parse_path(text: &str, scope: &Scope) -> Result<Expr> {
    let Some(variable) = text.strip_prefix("$$") else {
        let path = text.get(1..).unwrap_or_default();
        if path.is_empty() {
            bail!(16872, "'$' by itself is not a valid FieldPath");
        }
        return Ok(Expr::Path { base: Base::Current, path: split_path(path)? });
    };
    let (name, path) = match variable.split_once('.') {
        Some((name, path)) => (name, split_path(path)?),
        None => (variable, Vec::new()),
    };
    if name.is_empty() {
        bail!(FAILED_TO_PARSE, "empty variable names are not allowed");
    }
    let word = |word: &str| Ok(Expr::Constant(Some(Value::String(word.to_string()))));
    let base = match name {
        "ROOT" => Base::Root,
        "CURRENT" => Base::Current,
        "NOW" => Base::Now,
        "CLUSTER_TIME" => Base::ClusterTime,
        "USER_ROLES" => Base::UserRoles,
        "REMOVE" => return Ok(Expr::Constant(None)),
        "DESCEND" => return word("descend"),
        "PRUNE" => return word("prune"),
        "KEEP" => return word("keep"),
        _ => match scope.slot(name) {
            Some(slot) => Base::Slot(slot),
            None => bail!(17276, "Use of undefined variable: {name}"),
        },
    };
    Ok(Expr::Path { base, path })
}

/// Splits a dotted path and refuses parts that are empty or begin with a dollar sign, but for those of references.
pub(crate) fn split_path(path: &str) -> Result<Vec<String>> {
    if path.is_empty() {
        bail!(40352, "FieldPath cannot be constructed with empty string");
    }
    if path.ends_with('.') {
        bail!(40353, "FieldPath must not end with a '.'.");
    }
    if path.contains('\0') {
        bail!(16411, "FieldPath field names may not contain '\0'.");
    }
    path.split('.')
        .map(|part| match part {
            "" => bail!(15998, "FieldPath field names may not be empty strings."),
            part if part.starts_with('$') && !is_allowed_dollar_name(part) => {
                bail!(
                    16410,
                    "FieldPath field names may not start with '$'. Consider using $getField or $setField."
                )
            }
            part => Ok(part.to_string()),
        })
        .collect()
}

fn find(name: &str) -> Option<&'static Operator> {
    EXPRESSIONS.iter().copied().flatten().find(|operator| operator.name == name)
}

/// Functions that look at their operands one after the other.
const STOPS_AT_NULL: &[&str] = &[
    "$add",
    "$multiply",
    "$round",
    "$trunc",
    "$atan2",
    "$bitAnd",
    "$bitOr",
    "$bitXor",
    "$concat",
    "$concatArrays",
    "$setIntersection",
    "$setUnion",
];

/// Functions that do so with the first.
const STOPS_AT_FIRST_NULL: &[&str] = &["$indexOfArray", "$indexOfBytes", "$indexOfCP"];

/// Functions whose operands may come in any order. Constants come last, as with MongoDB: a null of a document is met before a
/// constant of a wrong type.
const CONSTANTS_LAST: &[&str] =
    &["$add", "$multiply", "$bitAnd", "$bitOr", "$bitXor", "$setIntersection", "$setUnion"];

fn parse_operator(name: &str, operand: Ref<'_>, scope: &mut Scope) -> Result<Expr> {
    let Some(operator) = find(name) else { bail!(168, "Unrecognized expression '{name}'") };
    match &operator.kind {
        Kind::Function { min, max, call } => {
            let mut parsed = arguments(name, operand, (*min, *max), scope)?;
            if CONSTANTS_LAST.contains(&name) {
                parsed.sort_by_key(|operand| matches!(operand, Expr::Constant(_)));
            }
            let null = match name {
                name if STOPS_AT_NULL.contains(&name) => Null::Answers,
                name if STOPS_AT_FIRST_NULL.contains(&name) => Null::AnswersFirst,
                _ => Null::Seen,
            };
            call_of(*call, parsed, null, scope.failures)
        }
        Kind::Form(parse) => parse(name, operand, scope),
        Kind::Refused(code, message) => bail!(*code, "{message}"),
    }
}

/// A call of a function, computed now if its arguments are constants.
fn call_of(call: Call, parsed: Vec<Expr>, null: Null, failures: Failures) -> Result<Expr> {
    let constants: Option<Vec<_>> = parsed
        .iter()
        .map(|expr| match expr {
            Expr::Constant(value) => Some(value.clone()),
            _ => None,
        })
        .collect();
    let Some(values) = constants else { return Ok(Expr::Call { call, arguments: parsed, null }) };
    // No function looks at the time or at chance.
    let context = Context::new(DateTime::from_millis(0), &|| 0.0);
    match call(&Args { values: &values, context: &context }) {
        // A collation may decide otherwise about strings.
        Ok(_) if values.iter().any(has_strings) => Ok(Expr::Call { call, arguments: parsed, null }),
        Ok(value) => Ok(Expr::Constant(value)),
        Err(_) if failures == Failures::ForDocuments => Ok(Expr::Call { call, arguments: parsed, null }),
        Err(error) => Err(error),
    }
}

fn has_strings(value: &super::Out) -> bool {
    matches!(value, Some(Value::String(_) | Value::Document(_) | Value::Array(_)))
}

/// The arguments of a call: the items of an array, or one value by itself.
pub(crate) fn arguments(
    name: &str,
    operand: Ref<'_>,
    (min, max): (usize, usize),
    scope: &mut Scope,
) -> Result<Vec<Expr>> {
    let given: Vec<_> = match operand {
        Ref::Array(list) => items(list).collect(),
        single => vec![single],
    };
    let count = given.len();
    if count < min || count > max {
        return Err(arity_error(name, min, max, count));
    }
    given.into_iter().map(|value| parse_expression(value, scope)).collect()
}

/// These say in a way of their own that they take one argument.
const CONVERSIONS: &[&str] = &[
    "$toBool",
    "$toDate",
    "$toDecimal",
    "$toDouble",
    "$toInt",
    "$toLong",
    "$toObjectId",
    "$toString",
    "$toUUID",
];

fn arity_error(name: &str, min: usize, max: usize, count: usize) -> MongoError {
    if CONVERSIONS.contains(&name) {
        return MongoError::new(50723, format!("{name} requires a single argument, got {count}"));
    }
    if min == max {
        return MongoError::new(
            16020,
            format!("Expression {name} takes exactly {min} arguments. {count} were passed in."),
        );
    }
    MongoError::new(
        28667,
        format!(
            "Expression {name} takes at least {min} arguments, and at most {max}, but {count} were passed in."
        ),
    )
}

/// The operand of a form that takes named arguments: an object with these fields and no others.
pub(crate) fn object_operand<'a>(
    name: &str,
    operand: Ref<'a>,
    known: &[&str],
    (not_object, unknown): (i32, i32),
) -> Result<&'a RawDocument> {
    let Ref::Document(object) = operand else {
        bail!(not_object, "{name} only supports an object as its argument");
    };
    for (found, _) in fields(object) {
        if !known.contains(&found) {
            bail!(unknown, "Unrecognized argument to {name}: {found}");
        }
    }
    Ok(object)
}
