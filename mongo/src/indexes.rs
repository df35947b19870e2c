//! Index definitions: what a client may ask for, what is kept, and what is shown.
//!
//! A definition is kept as the client gave it, with its numbers settled, beside the terms of the engine. An index on
//! `_ts` with `expireAfterSeconds` is the collection's default time to live and nothing else.

use bson::{Bson, Document, RawDocument, doc};
use mayfly_engine::collection::{FieldKind, IndexField, IndexRule};

use crate::{
    collation::Collation,
    collations,
    failure::{Failure, Result},
    index_kinds::{Settled, settle},
    namespace::{Collection, id_index},
    path::is_reference_part,
    service::to_raw,
};

/// Options of an index that are understood, or kept because tools send them.
const OPTIONS: &[&str] = &[
    "key",
    "name",
    "v",
    "unique",
    "sparse",
    "partialFilterExpression",
    "expireAfterSeconds",
    "hidden",
    "collation",
    "wildcardProjection",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
    "coarsestIndexedLevel",
    "finestIndexedLevel",
    "storageEngine",
    "background",
    "ns",
    "dropDups",
    "clustered",
    "prepareUnique",
];

/// Options that are taken and forgotten.
const FORGOTTEN: &[&str] = &["ns", "dropDups", "storageEngine"];

/// Indexes of a collection at most, the one on `_id` included.
pub const INDEXES_MAX: usize = 64;

const FIELDS_MAX: usize = 32;

/// An index that is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The engine's terms.
    pub rule: IndexRule,
    /// The definition as it is shown.
    pub spec: Document,
    /// Seconds of a TTL index.
    pub expire_after: Option<i64>,
}

fn cannot(message: impl Into<String>) -> Failure {
    Failure::new(67, message)
}

/// Reads one entry of `createIndexes`.
pub fn parse(spec: &Document, lenient: bool) -> Result<Wanted> {
    for name in spec.keys() {
        if !OPTIONS.contains(&name.as_str()) && !lenient {
            let message =
                format!("The field '{name}' is not valid for an index specification. Specification: {spec}");
            return Err(Failure::new(197, message));
        }
    }
    let key = match spec.get("key") {
        Some(Bson::Document(key)) => key,
        Some(_) => return Err(Failure::new(14, "The field 'key' must be an object")),
        None => {
            return Err(Failure::new(9, "The 'key' field is a required property of an index specification"));
        }
    };
    let name = match spec.get("name") {
        Some(Bson::String(name)) if !name.is_empty() && name != "*" => name.clone(),
        Some(Bson::String(name)) => return Err(cannot(format!("index name '{name}' is not valid"))),
        Some(_) => return Err(Failure::new(14, "The field 'name' must be a string")),
        None => {
            return Err(Failure::new(9, "The 'name' field is a required property of an index specification"));
        }
    };
    match spec.get("v").map(version) {
        None | Some(Some(1 | 2)) => {}
        _ => {
            return Err(cannot(format!(
                "Invalid index specification {spec}; cannot create an index with that v"
            )));
        }
    }
    if spec.get_document("storageEngine").is_ok_and(Document::is_empty) {
        let message =
            "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options.";
        return Err(cannot(message));
    }
    let Settled { key, fields, options } = settle(key, key_fields(key)?, spec)?;
    let flag = |name: &str| match spec.get(name) {
        None => Ok(false),
        Some(Bson::Boolean(value)) => Ok(*value),
        Some(Bson::Int32(value)) => Ok(*value != 0),
        Some(Bson::Int64(value)) => Ok(*value != 0),
        Some(Bson::Double(value)) => Ok(*value != 0.0),
        Some(_) => {
            Err(Failure::new(14, format!("The field '{name}' has value, which is not convertible to bool")))
        }
    };
    let (unique, sparse) = (flag("unique")?, flag("sparse")?);
    let partial = match spec.get("partialFilterExpression") {
        None => Vec::new(),
        Some(Bson::Document(filter)) => to_raw(filter).into_bytes(),
        Some(_) => return Err(Failure::new(14, "The field 'partialFilterExpression' must be an object")),
    };
    if sparse && !partial.is_empty() {
        return Err(cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
    }
    let on_id = fields.len() == 1 && fields[0].path == "_id";
    if on_id && (sparse || !partial.is_empty()) {
        return Err(Failure::new(197, "_id index cannot be a sparse or partial index"));
    }
    let hashed = fields.iter().filter(|field| field.kind == FieldKind::Hashed).count();
    if hashed > 1 {
        let message = format!(
            "A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {key}"
        );
        return Err(Failure::new(31303, message));
    }
    if hashed > 0 && unique {
        return Err(Failure::new(
            16764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        ));
    }
    let is_default = fields.len() == 1 && fields[0].path == "_ts";
    let expire_after = match spec.get("expireAfterSeconds") {
        None => None,
        Some(value) => Some(expire_after(value, is_default)?),
    };
    if expire_after.is_some() {
        if on_id {
            return Err(Failure::new(
                197,
                "The field 'expireAfterSeconds' is not valid for an _id index specification.",
            ));
        }
        if fields.len() > 1 {
            return Err(cannot("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        if fields[0].kind == FieldKind::Derived {
            return Err(cannot(
                "TTL indexes are on one field of dates: places, texts and all paths have none",
            ));
        }
    }
    let collation = match spec.get("collation") {
        None => None,
        Some(Bson::Document(collation)) => collations::parse(collation)?,
        Some(_) => return Err(Failure::new(14, "The field 'collation' must be an object")),
    };
    let mut shown = doc! { "v": 2, "key": key, "name": &name };
    for (option, value) in spec {
        if !shown.contains_key(option)
            && !FORGOTTEN.contains(&option.as_str())
            && OPTIONS.contains(&option.as_str())
        {
            shown.insert(option, value.clone());
        }
    }
    match &collation {
        Some(collation) => shown.insert("collation", collation.spec().clone()),
        None => shown.remove("collation"),
    };
    for option in ["unique", "sparse", "hidden"] {
        if shown.contains_key(option) {
            match flag(option)? {
                true => shown.insert(option, true),
                false => shown.remove(option),
            };
        }
    }
    if let Some(seconds) = expire_after {
        shown.insert("expireAfterSeconds", seconds as i32);
    }
    shown.extend(options);
    let is_derived = fields.iter().any(|field| field.kind == FieldKind::Derived);
    let rule = IndexRule {
        number: 0,
        name,
        folded: collation.is_some() && !is_derived,
        fields,
        unique,
        sparse,
        filter: partial,
        date_rule: None,
        is_default_ttl: is_default && expire_after.is_some(),
        building: false,
        spec: to_raw(&shown).into_bytes(),
    };
    Ok(Wanted { rule, spec: shown, expire_after })
}

/// The collation that a kept definition names.
pub fn collation(spec: &RawDocument) -> Option<Collation> {
    let collation = spec.get_document("collation").ok()?;
    collations::parse(&Document::try_from(collation).ok()?).ok()?
}

/// The number of a version, if it is one.
fn version(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) if number.fract() == 0.0 => Some(*number as i64),
        _ => None,
    }
}

fn key_fields(key: &Document) -> Result<Vec<IndexField>> {
    if key.is_empty() {
        return Err(cannot("Index keys cannot be empty."));
    }
    if key.len() > FIELDS_MAX {
        return Err(Failure::new(13103, "too many compound keys"));
    }
    let mut fields = Vec::new();
    for (path, value) in key {
        let number = match value {
            Bson::Int32(number) => Some(f64::from(*number)),
            Bson::Int64(number) => Some(*number as f64),
            Bson::Double(number) => Some(*number),
            _ => None,
        };
        let wildcard = path == "$**" || path.ends_with(".$**");
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return Err(cannot("Index keys cannot be an empty field."));
        }
        let names = path.strip_suffix(".$**").or(path.strip_suffix("$**")).unwrap_or(path);
        let is_part = |(at, name): (usize, &str)| at > 0 && is_reference_part(name);
        if names.split('.').enumerate().any(|part| part.1.starts_with('$') && !is_part(part)) {
            return Err(cannot(format!(
                "Index key contains an illegal field name: field name starts with '$'.{path}"
            )));
        }
        let kind = match (number, value) {
            (Some(number), _) if number == 0.0 || number.is_nan() => {
                return Err(cannot("Values in the index key pattern cannot be 0."));
            }
            (Some(_), _) if wildcard => FieldKind::Derived,
            (Some(number), _) if number > 0.0 => FieldKind::Up,
            (Some(_), _) => FieldKind::Down,
            (None, Bson::String(plugin)) => match plugin.as_str() {
                "hashed" | "2dsphere" | "2d" if wildcard => {
                    return Err(cannot(format!("An index of all paths cannot be '{plugin}'")));
                }
                "text" if names.split('.').any(|name| name.starts_with('$')) => {
                    return Err(cannot("a text index has no fields whose names begin with '$'"));
                }
                "hashed" => FieldKind::Hashed,
                "text" | "2dsphere" | "2d" => FieldKind::Derived,
                other => return Err(cannot(format!("Unknown index plugin '{other}'"))),
            },
            (None, other) => {
                let message = format!(
                    "Values in v:2 index key pattern cannot be of type {:?}. Only numbers > 0, numbers < 0, and strings \
                     are allowed.",
                    other.element_type()
                );
                return Err(cannot(message));
            }
        };
        fields.push(IndexField { path: path.clone(), kind });
    }
    Ok(fields)
}

/// Seconds of a TTL index: whole numbers of 31 bits; −1 on `_ts`, where it says that documents speak for themselves.
pub fn expire_after(value: &Bson, is_default: bool) -> Result<i64> {
    let number = match value {
        Bson::Int32(number) => f64::from(*number),
        Bson::Int64(number) => *number as f64,
        Bson::Double(number) => *number,
        Bson::Decimal128(number) => number.to_string().parse().unwrap_or(f64::NAN),
        other => {
            let message = format!(
                "TTL index 'expireAfterSeconds' option must be numeric, but received a type of {:?}",
                other.element_type()
            );
            return Err(cannot(message));
        }
    };
    if number.is_nan() {
        return Err(cannot("TTL index 'expireAfterSeconds' option must not be NaN"));
    }
    if is_default && number == -1.0 {
        return Ok(-1);
    }
    if is_default && number.trunc() == 0.0 {
        return Err(cannot("TTL index on '_ts': 'expireAfterSeconds' must be -1 or at least 1"));
    }
    if number < 0.0 {
        return Err(cannot("TTL index 'expireAfterSeconds' option cannot be less than 0"));
    }
    if number > f64::from(i32::MAX) {
        return Err(cannot(
            "TTL index 'expireAfterSeconds' option must be within the range of a 32-bit integer",
        ));
    }
    Ok(number as i64)
}

/// All indexes of a collection as clients see them.
pub fn shown(collection: &Collection) -> Vec<Document> {
    let mut shown = vec![match collection.options().get_document("clusteredIndex") {
        Ok(clustered) => {
            let mut shown = clustered.clone();
            shown.insert("clustered", true);
            shown
        }
        Err(_) => id_index(),
    }];
    let rules = &collection.container.definition().index_rules;
    // The default may have been changed through Cosmos: then the index says what holds now, or is not there.
    let default = collection.container.definition().default_ttl.map(|default| i64::from(default) as i32);
    for rule in rules {
        let mut spec = Document::from_reader(rule.spec.as_slice()).unwrap_or_default();
        if rule.is_default_ttl {
            let Some(seconds) = default else { continue };
            spec.insert("expireAfterSeconds", seconds);
        }
        shown.push(spec);
    }
    if let (Some(seconds), false) = (default, rules.iter().any(|rule| rule.is_default_ttl)) {
        shown.push(doc! { "v": 2, "key": { "_ts": 1 }, "name": "_ts_1", "expireAfterSeconds": seconds });
    }
    shown
}

/// Whether two key patterns are the same: same fields in the same order, numbers by their direction.
pub fn same_key(a: &Document, b: &Document) -> bool {
    let direction = |value: &Bson| match value {
        Bson::Int32(number) => Bson::Boolean(*number > 0),
        Bson::Int64(number) => Bson::Boolean(*number > 0),
        Bson::Double(number) => Bson::Boolean(*number > 0.0),
        other => other.clone(),
    };
    a.len() == b.len()
        && a.iter().zip(b).all(|((left, a), (right, b))| left == right && direction(a) == direction(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: Document) -> i32 {
        parse(&spec, false).map_or_else(|failure| failure.code, |_| 0)
    }

    #[test]
    fn definitions_are_refused_with_their_codes() {
        let with = |name: &str, value: Bson| {
            let mut spec = doc! { "key": { "a": 1 }, "name": "a_1" };
            spec.insert(name, value);
            code(spec)
        };
        assert_eq!(code(doc! { "key": { "a": 1 } }), 9);
        assert_eq!(code(doc! { "key": {}, "name": "x" }), 67);
        assert_eq!(code(doc! { "key": { "a": 0 }, "name": "x" }), 67);
        assert_eq!(code(doc! { "key": { "a": "magic" }, "name": "x" }), 67);
        assert_eq!(with("colour", 1.into()), 197);
        assert_eq!(with("v", 3.into()), 67);
        assert_eq!(with("storageEngine", doc! {}.into()), 67);
        assert_eq!(code(doc! { "key": { "a": "hashed", "b": "hashed" }, "name": "x" }), 31303);
        for (path, expected) in [("a.$b", 67), ("$a", 67), ("a.$**", 0), ("$**", 0), ("$a.$**", 67)] {
            let mut key = Document::new();
            key.insert(path, 1);
            assert_eq!(code(doc! { "key": key, "name": "x" }), expected, "{path}");
        }
        assert_eq!(code(doc! { "key": { "_id": 1 }, "name": "x", "expireAfterSeconds": 1 }), 197);
        assert_eq!(code(doc! { "key": { "a": 1, "b": 1 }, "name": "x", "expireAfterSeconds": 1 }), 67);
        for fine in
            [Bson::Int32(0), Bson::Int64(5), Bson::Double(3600.0), Bson::Double(1.5), Bson::Double(-0.0)]
        {
            assert_eq!(with("expireAfterSeconds", fine.clone()), 0, "{fine}");
        }
        for wrong in [Bson::Int64(1 << 31), Bson::Int32(-1), Bson::Double(f64::NAN), "10".into(), true.into()]
        {
            assert_eq!(with("expireAfterSeconds", wrong.clone()), 67, "{wrong}");
        }
        assert_eq!(
            parse(&doc! { "key": { "a": 1 }, "name": "x", "expireAfterSeconds": 1.5 }, false)
                .unwrap()
                .expire_after,
            Some(1)
        );
        assert_eq!(code(doc! { "key": { "_ts": 1 }, "name": "x", "expireAfterSeconds": -1 }), 0);
        assert_eq!(code(doc! { "key": { "_ts": 1 }, "name": "x", "expireAfterSeconds": 0 }), 67);
    }
}
