//! `$jsonSchema`: draft 4 with BSON types, for queries and for validation.
//!
//! A keyword speaks about values of its own type only: `minimum` says nothing about a string. `$ref`,
//! `default`, `format` and other keywords that MongoDB does not know are refused.

use std::collections::BTreeSet;

use bson::RawDocument;

use super::Details;
use crate::collation::Ordered;
use crate::context::Context;
use crate::error::{BAD_VALUE, FAILED_TO_PARSE, Result, TYPE_MISMATCH, bail};
use crate::number::Number;
use crate::pattern::Pattern;
use crate::values::{Ref, TYPES, Value, as_integer, field, fields, is_number, items, type_code};

/// A parsed schema: every rule must hold.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
enum Rule {
    Types(Vec<i32>),
    Enum(Vec<Value>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
    Minimum(Value, bool),
    Maximum(Value, bool),
    MultipleOf(Value),
    MinLength(i64),
    MaxLength(i64),
    Pattern(Pattern),
    MinItems(i64),
    MaxItems(i64),
    UniqueItems,
    Items { first: Vec<Schema>, rest: Option<Schema>, rest_allowed: bool },
    Required(Vec<String>),
    MinProperties(i64),
    MaxProperties(i64),
    Properties { named: Vec<(String, Schema)>, patterns: Vec<(Pattern, Schema)>, others: Others },
    DependsOn(String, Vec<String>),
    DependsOnSchema(String, Schema),
}

/// What may be said about properties that no other keyword names.
#[derive(Debug, Clone)]
enum Others {
    Allowed,
    Refused,
    Like(Box<Schema>),
}

const IGNORED: [&str; 2] = ["title", "description"];

fn wrong(keyword: &str, wanted: &str) -> crate::error::MongoError {
    crate::error::MongoError::new(TYPE_MISMATCH, format!("$jsonSchema keyword '{keyword}' must be {wanted}"))
}

fn object<'a>(keyword: &str, value: Ref<'a>) -> Result<&'a RawDocument> {
    value.as_document().ok_or_else(|| wrong(keyword, "an object"))
}

fn schemas(keyword: &str, value: Ref<'_>) -> Result<Vec<Schema>> {
    let Ref::Array(list) = value else { return Err(wrong(keyword, "an array")) };
    let schemas: Vec<_> =
        items(list).map(|item| Schema::parse(object(keyword, item)?)).collect::<Result<_>>()?;
    if schemas.is_empty() {
        bail!(BAD_VALUE, "$jsonSchema keyword '{keyword}' must be a non-empty array");
    }
    Ok(schemas)
}

fn strings(keyword: &str, value: Ref<'_>) -> Result<Vec<String>> {
    let Ref::Array(list) = value else { return Err(wrong(keyword, "an array")) };
    let names = items(list).map(|item| match item {
        Ref::String(name) => Ok(name.to_string()),
        _ => Err(wrong(keyword, "an array of strings")),
    });
    let names: Vec<_> = names.collect::<Result<_>>()?;
    let unique: BTreeSet<_> = names.iter().collect();
    if names.is_empty() || unique.len() != names.len() {
        bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{keyword}' must hold distinct strings");
    }
    Ok(names)
}

fn count(keyword: &str, value: Ref<'_>) -> Result<i64> {
    if !is_number(value) {
        return Err(wrong(keyword, "a number"));
    }
    match as_integer(value) {
        Some(count) if count >= 0 => Ok(count),
        _ => bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{keyword}' must be a non-negative integer"),
    }
}

fn flag(keyword: &str, value: Option<Ref<'_>>) -> Result<bool> {
    match value {
        None => Ok(false),
        Some(Ref::Boolean(flag)) => Ok(flag),
        Some(_) => Err(wrong(keyword, "a boolean")),
    }
}

/// Types by name. `type` knows JSON's names, `bsonType` knows those of BSON.
fn types(keyword: &str, value: Ref<'_>) -> Result<Vec<i32>> {
    let one = |value: Ref<'_>| {
        let Ref::String(name) = value else { return Err(wrong(keyword, "a string or an array of strings")) };
        match (keyword, name) {
            (_, "number") => Ok(vec![1, 16, 18, 19]),
            ("type", "boolean") => Ok(vec![8]),
            ("type", "integer") => {
                bail!(FAILED_TO_PARSE, "$jsonSchema type 'integer' is not currently supported.")
            }
            ("type", name) if !["object", "array", "string", "null"].contains(&name) => {
                bail!(BAD_VALUE, "Unknown type name alias: {name}")
            }
            (_, name) => match TYPES.iter().find(|(found, _)| *found == name) {
                Some((_, code)) => Ok(vec![*code]),
                None => bail!(BAD_VALUE, "Unknown type name alias: {name}"),
            },
        }
    };
    match value {
        Ref::Array(list) => {
            let all: Vec<_> = items(list).map(one).collect::<Result<_>>()?;
            if all.is_empty() {
                bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{keyword}' must name at least one type");
            }
            Ok(all.into_iter().flatten().collect())
        }
        value => one(value),
    }
}

impl Schema {
    pub(crate) fn parse(schema: &RawDocument) -> Result<Schema> {
        let mut rules = Vec::new();
        if field(schema, "type").is_some() && field(schema, "bsonType").is_some() {
            bail!(FAILED_TO_PARSE, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
        }
        for (keyword, value) in fields(schema) {
            rules.extend(rule(keyword, value, schema)?);
        }
        rules.extend(properties(schema)?);
        rules.extend(array_items(schema)?);
        Ok(Schema { rules })
    }

    pub(crate) fn matches(&self, value: Ref<'_>, context: &Context<'_>, details: &mut Details) -> bool {
        self.rules.iter().all(|rule| rule.holds(value, context, details))
    }
}

fn number(keyword: &str, value: Ref<'_>) -> Result<Value> {
    if is_number(value) { Ok(value.into()) } else { Err(wrong(keyword, "a number")) }
}

fn rule(keyword: &str, value: Ref<'_>, schema: &RawDocument) -> Result<Vec<Rule>> {
    Ok(vec![match keyword {
        "type" | "bsonType" => Rule::Types(types(keyword, value)?),
        "enum" => match value {
            Ref::Array(list) if items(list).next().is_some() => {
                let mut seen = BTreeSet::new();
                if !items(list).all(|item| seen.insert(Ordered(item.into(), None))) {
                    bail!(
                        FAILED_TO_PARSE,
                        "$jsonSchema keyword 'enum' array cannot contain duplicate values."
                    );
                }
                Rule::Enum(items(list).map(Value::from).collect())
            }
            Ref::Array(_) => bail!(FAILED_TO_PARSE, "$jsonSchema keyword 'enum' cannot be an empty array"),
            _ => return Err(wrong(keyword, "an array")),
        },
        "allOf" => Rule::AllOf(schemas(keyword, value)?),
        "anyOf" => Rule::AnyOf(schemas(keyword, value)?),
        "oneOf" => Rule::OneOf(schemas(keyword, value)?),
        "not" => Rule::Not(Schema::parse(object(keyword, value)?)?),
        "minimum" => Rule::Minimum(
            number(keyword, value)?,
            flag("exclusiveMinimum", field(schema, "exclusiveMinimum"))?,
        ),
        "maximum" => Rule::Maximum(
            number(keyword, value)?,
            flag("exclusiveMaximum", field(schema, "exclusiveMaximum"))?,
        ),
        "exclusiveMinimum" if field(schema, "minimum").is_none() => {
            flag(keyword, Some(value))?;
            bail!(
                FAILED_TO_PARSE,
                "$jsonSchema keyword 'minimum' must be a present if exclusiveMinimum is present"
            )
        }
        "exclusiveMaximum" if field(schema, "maximum").is_none() => {
            flag(keyword, Some(value))?;
            bail!(
                FAILED_TO_PARSE,
                "$jsonSchema keyword 'maximum' must be a present if exclusiveMaximum is present"
            )
        }
        "multipleOf" => match Number::of(value) {
            Some(step) if step.to_f64() > 0.0 => Rule::MultipleOf(value.into()),
            Some(_) => bail!(FAILED_TO_PARSE, "$jsonSchema keyword 'multipleOf' must have a positive value"),
            None => return Err(wrong(keyword, "a number")),
        },
        "minLength" => Rule::MinLength(count(keyword, value)?),
        "maxLength" => Rule::MaxLength(count(keyword, value)?),
        "pattern" => match value {
            Ref::String(source) => Rule::Pattern(Pattern::new(source, "")?),
            _ => return Err(wrong(keyword, "a string")),
        },
        "minItems" => Rule::MinItems(count(keyword, value)?),
        "maxItems" => Rule::MaxItems(count(keyword, value)?),
        "uniqueItems" if flag(keyword, Some(value))? => Rule::UniqueItems,
        "required" => Rule::Required(strings(keyword, value)?),
        "minProperties" => Rule::MinProperties(count(keyword, value)?),
        "maxProperties" => Rule::MaxProperties(count(keyword, value)?),
        "dependencies" => return fields(object(keyword, value)?).map(dependency).collect(),
        "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => return Ok(Vec::new()),
        "properties" | "patternProperties" | "additionalProperties" | "items" | "additionalItems" => {
            return Ok(Vec::new());
        }
        keyword if IGNORED.contains(&keyword) => match value {
            Ref::String(_) => return Ok(Vec::new()),
            _ => return Err(wrong(keyword, "a string")),
        },
        "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
            bail!(FAILED_TO_PARSE, "$jsonSchema keyword '{keyword}' is not currently supported")
        }
        _ => bail!(FAILED_TO_PARSE, "Unknown $jsonSchema keyword: {keyword}"),
    }])
}

fn dependency((name, value): (&str, Ref<'_>)) -> Result<Rule> {
    match value {
        Ref::Document(schema) => Ok(Rule::DependsOnSchema(name.to_string(), Schema::parse(schema)?)),
        _ => Ok(Rule::DependsOn(name.to_string(), strings("dependencies", value)?)),
    }
}

fn properties(schema: &RawDocument) -> Result<Option<Rule>> {
    let keywords = ["properties", "patternProperties", "additionalProperties"];
    let [named, patterns, others] = keywords.map(|keyword| field(schema, keyword));
    if named.is_none() && patterns.is_none() && others.is_none() {
        return Ok(None);
    }
    let parse = |keyword: &'static str, value: Option<Ref<'_>>| match value {
        None => Ok(Vec::new()),
        Some(value) => fields(object(keyword, value)?)
            .map(|(name, value)| Ok((name.to_string(), Schema::parse(object(keyword, value)?)?)))
            .collect::<Result<Vec<_>>>(),
    };
    let named = parse("properties", named)?;
    let patterns = parse("patternProperties", patterns)?.into_iter();
    let patterns = patterns.map(|(source, schema)| Ok((Pattern::new(&source, "")?, schema)));
    let patterns = patterns.collect::<Result<Vec<_>>>()?;
    let others = match others {
        None | Some(Ref::Boolean(true)) => Others::Allowed,
        Some(Ref::Boolean(false)) => Others::Refused,
        Some(Ref::Document(schema)) => Others::Like(Box::new(Schema::parse(schema)?)),
        Some(_) => return Err(wrong("additionalProperties", "an object or a boolean")),
    };
    Ok(Some(Rule::Properties { named, patterns, others }))
}

fn array_items(schema: &RawDocument) -> Result<Option<Rule>> {
    let rest = match field(schema, "additionalItems") {
        None | Some(Ref::Boolean(true)) => (None, true),
        Some(Ref::Boolean(false)) => (None, false),
        Some(Ref::Document(schema)) => (Some(Schema::parse(schema)?), true),
        Some(_) => return Err(wrong("additionalItems", "an object or a boolean")),
    };
    Ok(match field(schema, "items") {
        None => None,
        Some(Ref::Document(all)) => {
            Some(Rule::Items { first: Vec::new(), rest: Some(Schema::parse(all)?), rest_allowed: true })
        }
        Some(Ref::Array(list)) => {
            let first = items(list).map(|item| Schema::parse(object("items", item)?));
            Some(Rule::Items { first: first.collect::<Result<_>>()?, rest: rest.0, rest_allowed: rest.1 })
        }
        Some(_) => return Err(wrong("items", "an array or an object")),
    })
}

impl Rule {
    fn holds(&self, value: Ref<'_>, context: &Context<'_>, details: &mut Details) -> bool {
        match self {
            Rule::Types(types) => types.contains(&type_code(value)),
            Rule::Enum(values) => values.iter().any(|listed| context.equal(listed.as_raw_bson_ref(), value)),
            Rule::AllOf(schemas) => schemas.iter().all(|schema| schema.matches(value, context, details)),
            Rule::AnyOf(schemas) => schemas.iter().any(|schema| schema.matches(value, context, details)),
            Rule::OneOf(schemas) => {
                schemas.iter().filter(|schema| schema.matches(value, context, details)).count() == 1
            }
            Rule::Not(schema) => !schema.matches(value, context, details),
            _ => match value {
                Ref::String(text) | Ref::Symbol(text) => self.holds_of_string(text, details),
                Ref::Array(array) => {
                    let items: Vec<_> = items(array).collect();
                    self.holds_of_array(&items, context, details)
                }
                Ref::Document(object) => self.holds_of_object(object, context, details),
                value if is_number(value) => self.holds_of_number(value, context),
                _ => true,
            },
        }
    }

    fn holds_of_number(&self, value: Ref<'_>, context: &Context<'_>) -> bool {
        match self {
            Rule::Minimum(bound, exclusive) => {
                let ordering = context.compare(value, bound.as_raw_bson_ref());
                ordering.is_gt() || (ordering.is_eq() && !exclusive)
            }
            Rule::Maximum(bound, exclusive) => {
                let ordering = context.compare(value, bound.as_raw_bson_ref());
                ordering.is_lt() || (ordering.is_eq() && !exclusive)
            }
            Rule::MultipleOf(step) => match (Number::of(value), Number::of(step.as_raw_bson_ref())) {
                (Some(value), Some(step)) => value.to_decimal().remainder(step.to_decimal()).is_zero(),
                _ => true,
            },
            _ => true,
        }
    }

    fn holds_of_string(&self, text: &str, details: &mut Details) -> bool {
        match self {
            Rule::MinLength(length) => text.chars().count() as i64 >= *length,
            Rule::MaxLength(length) => text.chars().count() as i64 <= *length,
            Rule::Pattern(pattern) => pattern.is_match(text).unwrap_or_else(|error| {
                details.error.get_or_insert(error);
                false
            }),
            _ => true,
        }
    }

    fn holds_of_array(&self, items: &[Ref<'_>], context: &Context<'_>, details: &mut Details) -> bool {
        match self {
            Rule::MinItems(count) => items.len() as i64 >= *count,
            Rule::MaxItems(count) => items.len() as i64 <= *count,
            Rule::UniqueItems => {
                let unique: BTreeSet<_> =
                    items.iter().map(|item| Ordered((*item).into(), context.collation)).collect();
                unique.len() == items.len()
            }
            Rule::Items { first, rest, rest_allowed } => {
                if items.len() > first.len() && !rest_allowed {
                    return false;
                }
                items.iter().enumerate().all(|(at, item)| {
                    let schema = first.get(at).or(rest.as_ref());
                    schema.is_none_or(|schema| schema.matches(*item, context, details))
                })
            }
            _ => true,
        }
    }

    fn holds_of_object(&self, object: &RawDocument, context: &Context<'_>, details: &mut Details) -> bool {
        let has = |name: &String| field(object, name).is_some();
        match self {
            Rule::Required(names) => names.iter().all(has),
            Rule::MinProperties(count) => fields(object).count() as i64 >= *count,
            Rule::MaxProperties(count) => fields(object).count() as i64 <= *count,
            Rule::DependsOn(name, needed) => !has(name) || needed.iter().all(has),
            Rule::DependsOnSchema(name, schema) => {
                !has(name) || schema.matches(Ref::Document(object), context, details)
            }
            Rule::Properties { named, patterns, others } => fields(object).all(|(name, value)| {
                let mut known = false;
                for (_, schema) in named.iter().filter(|(found, _)| found == name) {
                    known = true;
                    if !schema.matches(value, context, details) {
                        return false;
                    }
                }
                for (pattern, schema) in patterns {
                    if pattern.is_match(name).unwrap_or(false) {
                        known = true;
                        if !schema.matches(value, context, details) {
                            return false;
                        }
                    }
                }
                known
                    || match others {
                        Others::Allowed => true,
                        Others::Refused => false,
                        Others::Like(schema) => schema.matches(value, context, details),
                    }
            }),
            _ => true,
        }
    }
}
