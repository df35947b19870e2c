//! A container's definition between the protocol's JSON and the engine's form.
//!
//! What is left out is filled with the service's defaults; what the engine only keeps is echoed as it came. Whether a
//! definition can be right is the engine's to say; for policies that it only keeps, the files below this one do.

pub mod computed;
pub mod encryption;
pub mod fixed;
pub mod full_text;
pub mod spatial;
pub mod vectors;

use mayfly_engine::{
    CompositePath, ContainerDefinition, DefaultTtl, IndexingMode, IndexingPolicy, ROOT_PATTERN, TextLanguages,
};
use mayfly_value::partition::{KeyDefinition, KeyKind};
use serde_json::{Map, Value, json};

use crate::error::ApiError;

const ETAG_PATTERN: &str = "/\"_etag\"/?";

/// Members that the engine keeps as data and the protocol echoes.
const KEPT: [&str; 9] = [
    "computedProperties",
    "conflictResolutionPolicy",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "geospatialConfig",
    "clientEncryptionPolicy",
    "analyticalStorageTtl",
    "ttlPropertyPath",
    "materializedViewDefinition",
];

/// Indexes of an indexing policy that are kept as data.
const KEPT_INDEXES: [&str; 3] = ["spatialIndexes", "vectorIndexes", "fullTextIndexes"];

type Object = Map<String, Value>;

/// Reads the body of a create or replace.
pub fn from_json(body: &Object) -> Result<ContainerDefinition, ApiError> {
    let name = match body.get("id") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(ApiError::invalid_input()),
        None => return Err(ApiError::missing_properties(&["id"])),
    };
    let partition_key = match body.get("partitionKey") {
        Some(Value::Object(definition)) => partition_key(definition)?,
        None | Some(Value::Null) => {
            return Err(ApiError::missing_properties(&["partitionKey"]));
        }
        Some(_) => return Err(ApiError::invalid_input()),
    };
    if body.contains_key("ttlPropertyPath") {
        return Err(ApiError::not_implemented("The container property ttlPropertyPath"));
    }
    let mut others = others(body)?;
    // Clients take no version for the first one, and are shown what they sent: with a version, or without.
    if partition_key.version == 1 && body["partitionKey"]["version"].is_null() {
        let mut shown = partition_key_json(&partition_key);
        shown.as_object_mut().map(|shown| shown.remove("version"));
        others.insert("partitionKey".into(), shown);
    }
    let mut definition = ContainerDefinition {
        name,
        partition_key,
        indexing: match body.get("indexingPolicy") {
            Some(Value::Object(policy)) => indexing(policy)?,
            None | Some(Value::Null) => IndexingPolicy::default(),
            Some(_) => return Err(ApiError::invalid_input()),
        },
        unique_keys: unique_keys(body.get("uniqueKeyPolicy"))?,
        default_ttl: default_ttl(body.get("defaultTtl"))?,
        log_minutes: log_minutes(body.get("changeFeedPolicy"))?,
        collection: None,
        index_rules: Vec::new(),
        others,
    };
    spatial::check(&definition)?;
    vectors::check(&definition)?;
    definition.indexing.languages = full_text::check(&definition)?;
    computed::check(&definition)?;
    Ok(definition)
}

fn others(body: &Object) -> Result<Object, ApiError> {
    let mut others = kept(body, &KEPT);
    match others.get("conflictResolutionPolicy") {
        None => {}
        Some(Value::Object(policy)) => {
            let policy = fixed::conflict_resolution(policy)?;
            others.insert("conflictResolutionPolicy".into(), policy);
        }
        Some(_) => return Err(ApiError::invalid_input()),
    }
    Ok(others)
}

/// A member that is there and not null.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// A member that must be text.
fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    member(object, name).and_then(Value::as_str).ok_or_else(ApiError::invalid_input)
}

/// The path of an entry of a policy.
fn path_of(entry: &Value) -> Result<&str, ApiError> {
    text(entry, "path")
}

/// The items of a list; none if it is not there.
fn items(list: Option<&Value>) -> Result<&[Value], ApiError> {
    match list {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(ApiError::invalid_input()),
    }
}

/// Writes a definition with its defaults filled in.
pub fn to_json(definition: &ContainerDefinition) -> Object {
    let mut object = Object::new();
    object.insert("id".into(), json!(definition.name));
    object.insert("indexingPolicy".into(), indexing_json(&definition.indexing));
    object.insert("partitionKey".into(), partition_key_json(&definition.partition_key));
    if !definition.unique_keys.is_empty() {
        let keys: Vec<_> = definition.unique_keys.iter().map(|paths| json!({ "paths": paths })).collect();
        object.insert("uniqueKeyPolicy".into(), json!({ "uniqueKeys": keys }));
    }
    if let Some(ttl) = definition.default_ttl {
        object.insert("defaultTtl".into(), json!(i64::from(ttl)));
    }
    if let Some(minutes) = definition.log_minutes {
        object.insert("changeFeedPolicy".into(), json!({ "retentionDuration": minutes }));
    }
    object.insert("conflictResolutionPolicy".into(), fixed::default_conflict_resolution());
    object.insert("geospatialConfig".into(), json!({ "type": "Geography" }));
    object.extend(definition.others.clone());
    object
}

fn partition_key(object: &Object) -> Result<KeyDefinition, ApiError> {
    let mut object = object.clone();
    let kind = if paths_len(&object) > 1 { "MultiHash" } else { "Hash" };
    object.entry("kind").or_insert(json!(kind));
    let multi = object.get("kind").and_then(Value::as_str) == Some("MultiHash");
    // Clients hash by the version they read back. One that was left out is the service's old default.
    object.entry("version").or_insert(json!(if multi { 2 } else { 1 }));
    // The SDK for Java writes the name of its enumeration.
    if let Some(number) = match object.get("version").and_then(Value::as_str) {
        Some("V1") => Some(1),
        Some("V2") => Some(2),
        _ => None,
    } {
        object.insert("version".into(), json!(number));
    }
    object.retain(|name, _| ["paths", "kind", "version"].contains(&name.as_str()));
    let definition: KeyDefinition = serde_json::from_value(Value::Object(object)).map_err(|error| {
        ApiError::bad_request(format!("The partition key definition is invalid: {error}"))
    })?;
    Ok(definition)
}

fn paths_len(object: &Object) -> usize {
    object.get("paths").and_then(Value::as_array).map_or(0, Vec::len)
}

fn partition_key_json(definition: &KeyDefinition) -> Value {
    let kind = match definition.kind {
        KeyKind::Hash => "Hash",
        KeyKind::MultiHash => "MultiHash",
    };
    let paths: Vec<_> = definition.paths.iter().map(|path| path.written()).collect();
    json!({ "paths": paths, "kind": kind, "version": definition.version })
}

fn indexing(object: &Object) -> Result<IndexingPolicy, ApiError> {
    let mode = match object.get("indexingMode") {
        None | Some(Value::Null) => IndexingMode::Consistent,
        Some(mode) => match mode.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("consistent") => IndexingMode::Consistent,
            Some("lazy") => IndexingMode::Lazy,
            Some("none") => IndexingMode::None,
            _ => return Err(ApiError::bad_request(format!("The indexing mode {mode} is invalid."))),
        },
    };
    let automatic = match object.get("automatic") {
        None | Some(Value::Null) => mode != IndexingMode::None,
        // Indexing what is asked for one by one is history: the service says true where there is an index at all.
        Some(Value::Bool(automatic)) => *automatic || mode != IndexingMode::None,
        Some(_) => return Err(ApiError::invalid_input()),
    };
    let (mut included, mut excluded) =
        (patterns(object, "includedPaths")?, patterns(object, "excludedPaths")?);
    if mode == IndexingMode::None {
        (included, excluded) = (Vec::new(), Vec::new());
    } else {
        if included.is_empty() && excluded.is_empty() {
            included.push(ROOT_PATTERN.into());
        }
        if !included.iter().chain(&excluded).any(|pattern| pattern == ETAG_PATTERN) {
            excluded.push(ETAG_PATTERN.into());
        }
    }
    Ok(IndexingPolicy {
        mode,
        automatic,
        included,
        excluded,
        composites: composites(object.get("compositeIndexes"))?,
        vectors: vectors::coded_paths(object.get("vectorIndexes"))?,
        texts: full_text::paths(object.get("fullTextIndexes"))?,
        // The full-text policy, which is not a part of this one, names them.
        languages: TextLanguages::default(),
        others: kept(object, &KEPT_INDEXES),
    })
}

fn patterns(object: &Object, name: &str) -> Result<Vec<String>, ApiError> {
    let list = match object.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(ApiError::invalid_input()),
    };
    // The bare slash is how the oldest clients write the root.
    let path = |item: &Value| match item.get("path").and_then(Value::as_str) {
        Some("/") => Some(ROOT_PATTERN.to_owned()),
        path => path.map(str::to_owned),
    };
    list.iter().map(|item| path(item).ok_or_else(ApiError::invalid_input)).collect()
}

fn composites(list: Option<&Value>) -> Result<Vec<Vec<CompositePath>>, ApiError> {
    let Some(list) = list.filter(|list| !list.is_null()) else { return Ok(Vec::new()) };
    let invalid = ApiError::invalid_input;
    let part = |part: &Value| {
        let path = part.get("path").and_then(Value::as_str).ok_or_else(invalid)?.to_owned();
        let descending = match part.get("order").and_then(Value::as_str) {
            None | Some("ascending") => false,
            Some("descending") => true,
            Some(_) => return Err(invalid()),
        };
        Ok(CompositePath { path, descending })
    };
    let index = |index: &Value| index.as_array().ok_or_else(invalid)?.iter().map(part).collect();
    list.as_array().ok_or_else(invalid)?.iter().map(index).collect()
}

fn indexing_json(policy: &IndexingPolicy) -> Value {
    let mode = match policy.mode {
        IndexingMode::Consistent => "consistent",
        IndexingMode::Lazy => "lazy",
        IndexingMode::None => "none",
    };
    let paths = |patterns: &[String]| patterns.iter().map(|path| json!({ "path": path })).collect::<Vec<_>>();
    let mut object = Object::new();
    object.insert("indexingMode".into(), json!(mode));
    object.insert("automatic".into(), json!(policy.automatic));
    object.insert("includedPaths".into(), json!(paths(&policy.included)));
    object.insert("excludedPaths".into(), json!(paths(&policy.excluded)));
    if !policy.composites.is_empty() {
        let order = |descending| if descending { "descending" } else { "ascending" };
        let part = |part: &CompositePath| json!({ "path": part.path, "order": order(part.descending) });
        let index = |parts: &Vec<CompositePath>| parts.iter().map(part).collect::<Vec<_>>();
        let composites: Vec<_> = policy.composites.iter().map(index).collect();
        object.insert("compositeIndexes".into(), json!(composites));
    }
    object.extend(policy.others.clone());
    Value::Object(object)
}

fn unique_keys(policy: Option<&Value>) -> Result<Vec<Vec<String>>, ApiError> {
    let Some(keys) = policy.and_then(|policy| policy.get("uniqueKeys")).filter(|keys| !keys.is_null()) else {
        return Ok(Vec::new());
    };
    let invalid = ApiError::invalid_input;
    let text = |path: &Value| path.as_str().map(str::to_owned).ok_or_else(invalid);
    let paths = |key: &Value| {
        key.get("paths").and_then(Value::as_array).ok_or_else(invalid)?.iter().map(text).collect()
    };
    keys.as_array().ok_or_else(invalid)?.iter().map(paths).collect()
}

/// `null` means absent: off.
pub fn default_ttl(value: Option<&Value>) -> Result<Option<DefaultTtl>, ApiError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let ttl = value.as_i64().and_then(|n| DefaultTtl::try_from(n).ok());
    ttl.map(Some).ok_or_else(|| ApiError::invalid_default_ttl(&value.to_string()))
}

fn log_minutes(policy: Option<&Value>) -> Result<Option<u32>, ApiError> {
    let duration = policy.and_then(|policy| policy.get("retentionDuration")).filter(|d| !d.is_null());
    let Some(duration) = duration else { return Ok(None) };
    match duration.as_u64().and_then(|minutes| u32::try_from(minutes).ok()) {
        Some(0) => Ok(None),
        Some(minutes) => Ok(Some(minutes)),
        None => Err(ApiError::bad_request(format!("The change feed retention {duration} is invalid."))),
    }
}

fn kept(object: &Object, names: &[&str]) -> Object {
    let wanted = |name: &&&str| object.get(**name).is_some_and(|value| !value.is_null());
    names.iter().filter(wanted).map(|name| ((*name).to_owned(), object[*name].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_key_is_shown_as_it_was_sent() {
        let shown = |key: Value| {
            let body = json!({ "id": "c", "partitionKey": key });
            to_json(&from_json(body.as_object().unwrap()).unwrap())["partitionKey"].clone()
        };
        assert_eq!(shown(json!({ "paths": ["/a"] })), json!({ "paths": ["/a"], "kind": "Hash" }));
        for version in [1, 2] {
            let sent = json!({ "paths": ["/a"], "kind": "Hash", "version": version });
            assert_eq!(shown(sent.clone()), sent);
        }
        let hierarchical = json!({ "paths": ["/a", "/b"], "kind": "MultiHash", "version": 2 });
        assert_eq!(shown(json!({ "paths": ["/a", "/b"] })), hierarchical);
    }
}
