//! Regular expressions in expressions: whether, where, and what they captured.

use bson::RawDocumentBuf;

use super::parse::{object_operand, parse_expression};
use super::{Env, Expr, Operator, Out, Scope, form};
use crate::error::{Result, bail};
use crate::pattern::Pattern;
use crate::values::{Ref, Value, array, field, put, type_name};

pub(super) const OPERATORS: &[Operator] = &[
    form("$regexMatch", "whether a string matches", |name, operand, scope| {
        compile(name, operand, scope, |text, pattern| Ok(Some(Value::Boolean(pattern.is_match(text)?))))
    }),
    form("$regexFind", "the first match", |name, operand, scope| {
        compile(name, operand, scope, |text, pattern| {
            Ok(Some(matches(text, pattern, 1)?.into_iter().next().unwrap_or(Value::Null)))
        })
    }),
    form("$regexFindAll", "all matches", |name, operand, scope| {
        compile(name, operand, scope, |text, pattern| Ok(Some(array(matches(text, pattern, usize::MAX)?))))
    }),
];

type Answer = fn(&str, &Pattern) -> Result<Out>;

fn compile(name: &str, operand: Ref<'_>, scope: &mut Scope, answer: Answer) -> Result<Expr> {
    let object = object_operand(name, operand, &["input", "regex", "options"], (51103, 31024))?;
    let Some(input) = field(object, "input") else { bail!(31022, "{name} requires 'input' parameter") };
    let Some(regex) = field(object, "regex") else { bail!(31023, "{name} requires 'regex' parameter") };
    let input = parse_expression(input, scope)?;
    let regex = parse_expression(regex, scope)?;
    let options = field(object, "options").map(|options| parse_expression(options, scope)).transpose()?;
    // Almost always a constant: compiled once.
    let ready = match (&regex, &options) {
        (Expr::Constant(regex), None) => pattern(name, regex.clone(), None)?,
        (Expr::Constant(regex), Some(Expr::Constant(options))) => {
            pattern(name, regex.clone(), Some(options.clone()))?
        }
        _ => None,
    };
    let name = name.to_string();
    Ok(Expr::form(move |env: &mut Env<'_>| {
        let fresh;
        let input = input.eval(env)?;
        let found = match &ready {
            Some(pattern) => Some(pattern),
            None => {
                let options = options.as_ref().map(|options| options.eval(env)).transpose()?;
                fresh = pattern(&name, regex.eval(env)?, options)?;
                fresh.as_ref()
            }
        };
        let text = match input {
            None | Some(Value::Null | Value::Undefined) => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => bail!(
                51104,
                "{name} needs 'input' to be of type string, not {}",
                type_name(other.as_raw_bson_ref())
            ),
        };
        match (text, found) {
            (Some(text), Some(pattern)) => answer(&text, pattern),
            _ => Ok(Some(match name.as_str() {
                "$regexMatch" => Value::Boolean(false),
                "$regexFindAll" => array([]),
                _ => Value::Null,
            })),
        }
    }))
}

fn pattern(name: &str, regex: Out, options: Option<Out>) -> Result<Option<Pattern>> {
    let options = match options {
        None | Some(None | Some(Value::Null | Value::Undefined)) => None,
        Some(Some(Value::String(options))) => Some(options),
        Some(Some(_)) => bail!(51106, "{name} needs 'options' to be of type string"),
    };
    match regex {
        None | Some(Value::Null | Value::Undefined) => Ok(None),
        Some(Value::String(source)) => {
            if source.contains('\0') {
                bail!(51109, "{name}: regular expression cannot contain an embedded null byte");
            }
            let options = options.unwrap_or_default();
            if options.contains('\0') {
                bail!(51110, "{name}: regular expression options cannot contain an embedded null byte");
            }
            invalid(name, Pattern::new(&source, &options))
        }
        Some(Value::RegularExpression(regex)) => {
            let own = regex.options.as_str();
            if options.is_some() && !own.is_empty() {
                bail!(51107, "{name}: found regex option(s) specified in both 'regex' and 'option' fields");
            }
            invalid(name, Pattern::new(regex.pattern.as_str(), options.as_deref().unwrap_or(own)))
        }
        Some(_) => bail!(51105, "{name} needs 'regex' to be of type string or regex"),
    }
}

/// Expressions give a number of their own for a bad pattern.
fn invalid(name: &str, pattern: Result<Pattern>) -> Result<Option<Pattern>> {
    match pattern {
        Ok(pattern) => Ok(Some(pattern)),
        Err(error) if error.code == 51091 => bail!(51111, "Invalid Regex in {name}: {}", error.message),
        Err(error) => Err(error),
    }
}

fn matches(text: &str, pattern: &Pattern, limit: usize) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for captures in pattern.regex.captures_iter(text).take(limit) {
        let captures = captures.map_err(Pattern::gave_up)?;
        let Some(whole) = captures.get(0) else { continue };
        // The search ends with the text: nothing is found after its last letter.
        if whole.start() == text.len() && !text.is_empty() {
            break;
        }
        let index = text.get(..whole.start()).unwrap_or_default().chars().count();
        let groups = (1..captures.len()).map(|group| match captures.get(group) {
            Some(part) => Value::String(part.as_str().to_string()),
            None => Value::Null,
        });
        let mut object = RawDocumentBuf::new();
        put(&mut object, "match", whole.as_str());
        put(&mut object, "idx", index as i32);
        put(&mut object, "captures", array(groups));
        found.push(Value::Document(object));
    }
    Ok(found)
}
