//! Definitions of indexes with a derived field, settled as MongoDB shows them: a text index by its weights, an index of
//! places with its version.

use bson::{Bson, Document, doc};
use mayfly_engine::collection::{FieldKind, IndexField};

use crate::{
    failure::{Failure, Result},
    text::Language,
};

/// A key pattern as it is kept, and what is shown beside it.
pub struct Settled {
    /// As it is shown.
    pub key: Document,
    /// The engine's terms.
    pub fields: Vec<IndexField>,
    /// Options that it has although nobody gave them.
    pub options: Document,
}

/// The weights that a field of a text index may have.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1.0..=99_999.0;

fn cannot(message: impl Into<String>) -> Failure {
    Failure::new(67, message)
}

/// Settles a definition whose fields have been read.
pub fn settle(key: &Document, fields: Vec<IndexField>, spec: &Document) -> Result<Settled> {
    let plugin = |name: &str| key.values().filter(|value| value.as_str() == Some(name)).count();
    let wildcards = key.keys().filter(|path| path.ends_with("$**") && key.get_str(path).is_err()).count();
    let flag = |name: &str| match spec.get(name) {
        Some(Bson::Boolean(flag)) => *flag,
        Some(Bson::Int32(number)) => *number != 0,
        _ => false,
    };
    if wildcards == 0 && spec.contains_key("wildcardProjection") {
        return Err(cannot("The field 'wildcardProjection' is only allowed in a wildcard index"));
    }
    let kinds = plugin("2dsphere") + plugin("2d") + plugin("text").min(1) + wildcards;
    if kinds == 0 {
        return Ok(Settled { key: key.clone(), fields, options: Document::new() });
    }
    if kinds > 1 {
        return Err(cannot("an index with several fields of places, texts or all paths is not supported"));
    }
    if flag("unique") {
        return Err(cannot("an index of places, texts or all paths cannot be unique"));
    }
    let collation = spec.get_document("collation").ok();
    let is_collated = collation.is_some_and(|collation| collation.get_str("locale").ok() != Some("simple"));
    if is_collated && wildcards == 0 {
        return Err(cannot("an index of places or texts does not support a collation"));
    }
    if plugin("text") > 0 {
        return text(key, fields, spec);
    }
    let mut options = Document::new();
    if plugin("2dsphere") > 0 {
        options.insert(
            "2dsphereIndexVersion",
            spec.get("2dsphereIndexVersion").cloned().unwrap_or(Bson::Int32(3)),
        );
    }
    if plugin("2d") > 0 && fields.first().is_none_or(|field| field.kind != FieldKind::Derived) {
        return Err(cannot("2d has to be first in index"));
    }
    if let (1.., Some(projection)) = (wildcards, spec.get("wildcardProjection")) {
        check_projection(key, projection)?;
    }
    if wildcards > 0 && flag("sparse") {
        return Err(cannot("Index type 'wildcard' does not support the 'sparse' option"));
    }
    Ok(Settled { key: key.clone(), fields, options })
}

/// Refuses a `wildcardProjection` that does not say which paths are meant.
fn check_projection(key: &Document, projection: &Bson) -> Result<()> {
    let Some(projection) = projection.as_document().filter(|projection| !projection.is_empty()) else {
        return Err(Failure::new(9, "The 'wildcardProjection' field must be a non-empty object"));
    };
    if !key.contains_key("$**") {
        let message = "The field 'wildcardProjection' is only allowed when 'key' is {\"$**\": 1}";
        return Err(Failure::new(9, message));
    }
    let mut kinds = Vec::new();
    leaves(projection, "", &mut kinds);
    if kinds.windows(2).any(|two| two[0] != two[1]) {
        return Err(Failure::new(31254, "Cannot do inclusion and exclusion in one wildcardProjection"));
    }
    Ok(())
}

/// Whether each path is taken in or left out; `_id` may differ from the rest.
fn leaves(projection: &Document, before: &str, kinds: &mut Vec<bool>) {
    for (name, value) in projection {
        match value {
            Bson::Document(inner) => leaves(inner, name, kinds),
            _ if before.is_empty() && name == "_id" => {}
            Bson::Boolean(flag) => kinds.push(*flag),
            Bson::Int32(number) => kinds.push(*number != 0),
            Bson::Int64(number) => kinds.push(*number != 0),
            Bson::Double(number) => kinds.push(*number != 0.0),
            _ => kinds.push(true),
        }
    }
}

fn text(key: &Document, fields: Vec<IndexField>, spec: &Document) -> Result<Settled> {
    let is_text = |path: &str| key.get_str(path).ok() == Some("text");
    let mut weights = Document::new();
    for (path, weight) in spec.get_document("weights").into_iter().flatten() {
        let number = match weight {
            Bson::Int32(number) => f64::from(*number),
            Bson::Int64(number) => *number as f64,
            Bson::Double(number) => *number,
            _ => return Err(cannot("weight for text index needs numeric type")),
        };
        if !WEIGHTS.contains(&number) {
            return Err(cannot("text index weight must be in the exclusive interval (0,100000)"));
        }
        weights.insert(path, weight.clone());
    }
    for path in key.keys().filter(|path| is_text(path) && *path != "_fts") {
        if !weights.contains_key(path) {
            weights.insert(path, 1);
        }
    }
    if weights.is_empty() {
        return Err(cannot("a text index needs fields"));
    }
    let mut sorted: Vec<_> = weights.into_iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));

    // The fields of texts become one, where the first of them stands; they may not be apart.
    let (mut shown, mut kept, mut groups, mut within) = (Document::new(), Vec::new(), 0, false);
    for field in fields {
        if is_text(&field.path) {
            if !within {
                groups += 1;
                shown.insert("_fts", "text");
                shown.insert("_ftsx", 1);
                kept.push(IndexField { path: "_fts".into(), kind: FieldKind::Derived });
            }
            within = true;
            continue;
        }
        if field.path == "_ftsx" {
            continue;
        }
        within = false;
        shown.insert(field.path.clone(), key.get(&field.path).cloned().unwrap_or(Bson::Int32(1)));
        kept.push(field);
    }
    if groups != 1 {
        return Err(cannot("'text' fields in index must all be adjacent"));
    }
    let language = match spec.get("default_language") {
        None => "english".to_owned(),
        Some(Bson::String(name)) if Language::named(name).is_some() => name.clone(),
        Some(other) => return Err(cannot(format!("default_language is not valid: {other}"))),
    };
    let language_field = spec.get("language_override").cloned().unwrap_or_else(|| "language".into());
    let options = doc! {
        "weights": sorted.into_iter().collect::<Document>(),
        "default_language": language,
        "language_override": language_field,
        "textIndexVersion": 3,
    };
    Ok(Settled { key: shown, fields: kept, options })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::parse;

    #[test]
    fn a_text_index_is_shown_by_its_weights() {
        let spec = doc! { "key": { "k": 1, "b": "text", "a": "text" }, "name": "x", "weights": { "b": 5 } };
        let shown = parse(&spec, false).unwrap().spec;
        let expected = doc! {
            "v": 2, "key": { "k": 1, "_fts": "text", "_ftsx": 1 }, "name": "x", "weights": { "a": 1, "b": 5 },
            "default_language": "english", "language_override": "language", "textIndexVersion": 3,
        };
        assert_eq!(shown, expected);
        // What is shown can be given again, as tools do that restore.
        assert_eq!(parse(&shown, false).unwrap().spec, expected);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let code = |spec: Document| parse(&spec, false).map_or_else(|failure| failure.code, |_| 0);
        assert_eq!(code(doc! { "key": { "a": "text", "b": 1, "c": "text" }, "name": "x" }), 67);
        assert_eq!(code(doc! { "key": { "a": "text" }, "name": "x", "unique": true }), 67);
        assert_eq!(code(doc! { "key": { "a": "text" }, "name": "x", "default_language": "klingon" }), 67);
        assert_eq!(code(doc! { "key": { "a": 1, "b": "2d" }, "name": "x" }), 67);
        assert_eq!(code(doc! { "key": { "a": "2dsphere", "b": 1 }, "name": "x" }), 0);
        assert_eq!(code(doc! { "key": { "$**": 1 }, "name": "x", "wildcardProjection": { "a": 1 } }), 0);
        assert_eq!(code(doc! { "key": { "a": 1 }, "name": "x", "wildcardProjection": { "a": 1 } }), 67);
    }
}
