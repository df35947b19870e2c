//! What a container says about searching its documents: vectors, full text, computed properties. Whether it can be
//! right.
//!
//! The engine keeps these policies as data, because it does not search. The sentences are those that SDKs' own tests
//! look for.

use mayfly_engine::ContainerDefinition;
use mayfly_sql::{ComputedProperty, computed::COMPUTED_PROPERTIES_MAX};
use mayfly_value::path::Path;
use serde_json::Value;

use crate::error::ApiError;

const DATA_TYPES: [&str; 4] = ["float32", "float16", "int8", "uint8"];
const DISTANCE_FUNCTIONS: [&str; 3] = ["cosine", "dotproduct", "euclidean"];
const INDEX_TYPES: [&str; 3] = ["flat", "quantizedFlat", "diskANN"];
const LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/// The longest vector, and the longest that an index without quantization takes.
const DIMENSIONS_MAX: i64 = 4096;
const FLAT_DIMENSIONS_MAX: i64 = 505;

/// A quantized vector has at most this many bytes, and at most one for each dimension.
const QUANTIZATION_BYTES_MAX: i64 = 512;

const SEARCH_LIST_MIN: i64 = 25;
const SEARCH_LIST_MAX: i64 = 500;
const SHARD_PATHS_MAX: usize = 1;

/// Checks a definition on its own.
pub fn check(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let embeddings = embeddings(definition)?;
    for embedding in &embeddings {
        embedding.check()?;
    }
    for index in list(definition.indexing.others.get("vectorIndexes"))? {
        check_vector_index(index, &embeddings)?;
    }
    check_full_text(definition)?;
    check_computed(definition)
}

/// Checks what a replacement changes: a vector policy stays as it was for the paths it has.
pub fn check_replacement(old: &ContainerDefinition, new: &ContainerDefinition) -> Result<(), ApiError> {
    let kept = |old: &[Value], new: &[Value]| {
        let same_path = |index: &&Value| new.iter().find(|other| other.get("path") == index.get("path"));
        old.iter().all(|index| same_path(&index).is_none_or(|other| other == index))
    };
    let indexes = |definition: &ContainerDefinition| definition.indexing.others.get("vectorIndexes").cloned();
    let (old_indexes, new_indexes) = (indexes(old), indexes(new));
    if !kept(list(old_indexes.as_ref())?, list(new_indexes.as_ref())?) {
        return Err(ApiError::bad_request(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace.",
        ));
    }
    if !kept(embedding_list(old)?, embedding_list(new)?) {
        return Err(ApiError::bad_request(
            "Paths in existing embedding policy cannot be modified in Collection Replace.",
        ));
    }
    Ok(())
}

/// One entry of the vector embedding policy.
struct VectorEmbedding<'a> {
    path: &'a str,
    data_type: &'a str,
    dimensions: i64,
    distance_function: &'a str,
}

impl<'a> VectorEmbedding<'a> {
    fn read(entry: &'a Value) -> Option<Self> {
        Some(Self {
            path: entry.get("path")?.as_str()?,
            data_type: entry.get("dataType")?.as_str()?,
            dimensions: entry.get("dimensions")?.as_i64()?,
            distance_function: entry.get("distanceFunction")?.as_str()?,
        })
    }

    fn check(&self) -> Result<(), ApiError> {
        let refuse =
            |what: String| Err(ApiError::bad_request(format!("The Vector Embedding Policy has {what}")));
        if Path::parse(self.path).is_err() {
            return refuse(format!("an invalid Path:{}.", self.path));
        }
        if !DATA_TYPES.contains(&self.data_type) {
            let known = DATA_TYPES.join(", ");
            return refuse(format!("an invalid DataType:{}. It must be one of {known}.", self.data_type));
        }
        if !DISTANCE_FUNCTIONS.contains(&self.distance_function) {
            let known = DISTANCE_FUNCTIONS.join(", ");
            let name = self.distance_function;
            return refuse(format!("an invalid DistanceFunction:{name}. It must be one of {known}."));
        }
        match self.dimensions {
            dimensions if dimensions > DIMENSIONS_MAX => refuse(format!(
                "Dimensions:{dimensions} which is more than the maximum supported value {DIMENSIONS_MAX}."
            )),
            dimensions if dimensions < 1 => {
                refuse(format!("Dimensions:{dimensions} which is less than the minimum supported value 1."))
            }
            _ => Ok(()),
        }
    }
}

fn embedding_list(definition: &ContainerDefinition) -> Result<&[Value], ApiError> {
    let policy = definition.others.get("vectorEmbeddingPolicy");
    list(policy.and_then(|policy| policy.get("vectorEmbeddings")))
}

fn embeddings(definition: &ContainerDefinition) -> Result<Vec<VectorEmbedding<'_>>, ApiError> {
    let entries = embedding_list(definition)?.iter();
    entries.map(|entry| VectorEmbedding::read(entry).ok_or_else(ApiError::invalid_input)).collect()
}

fn check_vector_index(index: &Value, embeddings: &[VectorEmbedding<'_>]) -> Result<(), ApiError> {
    let refuse = |what: String| Err(ApiError::bad_request(format!("The Vector Indexing Policy{what}")));
    let text = |name: &str| index.get(name).and_then(Value::as_str).ok_or_else(ApiError::invalid_input);
    let (path, kind) = (text("path")?, text("type")?);
    if !INDEX_TYPES.contains(&kind) {
        return refuse(format!(
            "'s Index Type::{kind} is invalid. It must be one of {}.",
            INDEX_TYPES.join(", ")
        ));
    }
    let Some(embedding) = embeddings.iter().find(|embedding| embedding.path == path) else {
        return refuse(format!("'s path::{path} not matching in Embedding's path."));
    };
    if kind == "flat" && embedding.dimensions > FLAT_DIMENSIONS_MAX {
        return refuse(format!(
            "'s path::{path} has {} dimensions; an index of type flat takes at most {FLAT_DIMENSIONS_MAX}.",
            embedding.dimensions
        ));
    }
    let number = |name: &str, low: i64, high: i64| match index.get(name).filter(|value| !value.is_null()) {
        None => Ok(()),
        Some(value) => match value.as_i64() {
            Some(value) if (low..=high).contains(&value) => Ok(()),
            Some(value) => {
                let name = format!("{}{}", name[..1].to_ascii_uppercase(), &name[1..]);
                refuse(format!(
                    " parameter {name} value :: {value} is out of range. The allowed range is between {low} and {high}."
                ))
            }
            None => Err(ApiError::invalid_input()),
        },
    };
    number("quantizationByteSize", 1, embedding.dimensions.min(QUANTIZATION_BYTES_MAX))?;
    number("indexingSearchListSize", SEARCH_LIST_MIN, SEARCH_LIST_MAX)?;
    let shards = list(index.get("vectorIndexShardKey"))?;
    for shard in shards {
        let shard = shard.as_str().ok_or_else(ApiError::invalid_input)?;
        if Path::parse(shard).is_err() {
            return refuse(format!(" has an invalid Shard Path: {shard}."));
        }
    }
    if shards.len() > SHARD_PATHS_MAX {
        return Err(ApiError::bad_request(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: {SHARD_PATHS_MAX}.",
            shards.len()
        )));
    }
    Ok(())
}

fn check_full_text(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let policy = definition.others.get("fullTextPolicy");
    let language = |language: Option<&Value>| match language.filter(|language| !language.is_null()) {
        None => Ok(()),
        Some(Value::String(language)) if LANGUAGES.contains(&language.as_str()) => Ok(()),
        Some(language) => Err(ApiError::bad_request(format!(
            "The Full Text Policy contains an unsupported language {language}. Supported languages are: {}.",
            LANGUAGES.join(", ")
        ))),
    };
    language(policy.and_then(|policy| policy.get("defaultLanguage")))?;
    let path_of = |entry: &Value| entry.get("path").and_then(Value::as_str).map(str::to_owned);
    let mut paths = Vec::new();
    for entry in list(policy.and_then(|policy| policy.get("fullTextPaths")))? {
        let path = path_of(entry).ok_or_else(ApiError::invalid_input)?;
        if Path::parse(&path).is_err() {
            return Err(ApiError::bad_request(format!(
                "The Full Text Policy contains an invalid Path: {path}"
            )));
        }
        language(entry.get("language"))?;
        paths.push(path);
    }
    for index in list(definition.indexing.others.get("fullTextIndexes"))? {
        let path = path_of(index).ok_or_else(ApiError::invalid_input)?;
        if Path::parse(&path).is_err() {
            return Err(ApiError::bad_request(format!(
                "The Full Text Indexing Policy contains an invalid Path: {path}"
            )));
        }
        if policy.is_some() && !paths.contains(&path) {
            return Err(ApiError::bad_request(format!(
                "The path of the Full Text Index {path} does not match the path specified in the Full Text Policy"
            )));
        }
    }
    Ok(())
}

fn check_computed(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let properties = list(definition.others.get("computedProperties"))?;
    if properties.len() > COMPUTED_PROPERTIES_MAX {
        return Err(ApiError::bad_request(format!(
            "A container has at most {COMPUTED_PROPERTIES_MAX} computed properties."
        )));
    }
    let mut names = Vec::new();
    for property in properties {
        let text =
            |name: &str| property.get(name).and_then(Value::as_str).ok_or_else(ApiError::invalid_input);
        let (name, query) = (text("name")?, text("query")?);
        ComputedProperty::parse(name, query).map_err(ApiError::bad_request)?;
        if names.contains(&name) {
            return Err(ApiError::bad_request(format!("The computed property '{name}' is defined twice.")));
        }
        names.push(name);
    }
    Ok(())
}

/// The items of a list; none if there is none.
fn list(value: Option<&Value>) -> Result<&[Value], ApiError> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(ApiError::invalid_input()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy;

    fn definition(others: Value) -> Result<ContainerDefinition, ApiError> {
        let mut body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"] } });
        let (Value::Object(body), Value::Object(others)) = (&mut body, others) else { panic!("no objects") };
        body.extend(others);
        policy::from_json(body)
    }

    #[track_caller]
    fn check_refused(others: Value, expected: &str) {
        let message = definition(others).unwrap_err().message;
        assert!(message.contains(expected), "{message}");
    }

    fn vectors(index: Value) -> Value {
        json!({
            "vectorEmbeddingPolicy": { "vectorEmbeddings": [
                { "path": "/v", "dataType": "float32", "dimensions": 256, "distanceFunction": "cosine" },
            ] },
            "indexingPolicy": { "includedPaths": [{ "path": "/*" }], "vectorIndexes": [index] },
        })
    }

    #[test]
    fn a_vector_index_fits_its_embedding() {
        assert!(definition(vectors(json!({ "path": "/v", "type": "flat" }))).is_ok());
        assert!(
            definition(vectors(json!({ "path": "/v", "type": "diskANN", "indexingSearchListSize": 25 })))
                .is_ok()
        );
        check_refused(
            vectors(json!({ "path": "/w", "type": "flat" })),
            "/w not matching in Embedding's path",
        );
        check_refused(vectors(json!({ "path": "/v", "type": "notFlat" })), "Index Type::notFlat is invalid");
        check_refused(
            vectors(json!({ "path": "/v", "type": "quantizedFlat", "quantizationByteSize": 0 })),
            "QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
        );
        check_refused(
            vectors(json!({ "path": "/v", "type": "diskANN", "indexingSearchListSize": 5 })),
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        );
        check_refused(
            vectors(json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": ["country"] })),
            "has an invalid Shard Path: country.",
        );
        check_refused(
            vectors(json!({ "path": "/v", "type": "diskANN", "vectorIndexShardKey": ["/a", "/b"] })),
            "Vector Indexing Policy: 2 exceeds the maximum: 1.",
        );
    }

    #[test]
    fn an_embedding_has_a_known_type_and_function() {
        let embedding = |data_type: &str, dimensions: i64, function: &str| {
            json!({ "vectorEmbeddingPolicy": { "vectorEmbeddings": [
                { "path": "/v", "dataType": data_type, "dimensions": dimensions, "distanceFunction": function },
            ] } })
        };
        assert!(definition(embedding("uint8", 4096, "euclidean")).is_ok());
        check_refused(embedding("float33", 3, "cosine"), "has an invalid DataType");
        check_refused(embedding("float32", 8000, "cosine"), "Dimensions:8000 which is more than the maximum");
        check_refused(embedding("float32", -1, "cosine"), "The Vector Embedding Policy has Dimensions:-1");
        check_refused(embedding("float32", 3, "paces"), "has an invalid DistanceFunction:paces");
    }

    #[test]
    fn a_vector_policy_stays_for_the_paths_it_has() {
        let flat = definition(vectors(json!({ "path": "/v", "type": "flat" }))).unwrap();
        let quantized = definition(vectors(json!({ "path": "/v", "type": "quantizedFlat" }))).unwrap();
        assert!(check_replacement(&flat, &flat).is_ok());
        let message = check_replacement(&flat, &quantized).unwrap_err().message;
        assert!(message.contains("vector indexing policy cannot be modified"), "{message}");
    }

    #[test]
    fn full_text_is_in_a_language_that_is_known() {
        let text = |language: &str, path: &str, index: &str| {
            json!({
                "fullTextPolicy": { "defaultLanguage": "en-US", "fullTextPaths": [{ "path": path, "language": language }] },
                "indexingPolicy": { "includedPaths": [{ "path": "/*" }], "fullTextIndexes": [{ "path": index }] },
            })
        };
        assert!(definition(text("fr-FR", "/t", "/t")).is_ok());
        check_refused(text("spa-SPA", "/t", "/t"), "unsupported language");
        check_refused(
            text("en-US", "abstract", "/t"),
            "The Full Text Policy contains an invalid Path: abstract",
        );
        check_refused(text("en-US", "/t", "abstract"), "invalid Path: abstract");
        check_refused(text("en-US", "/t", "/other"), "does not match");
    }

    #[test]
    fn a_computed_property_is_an_expression() {
        let computed = |list: Value| json!({ "computedProperties": list });
        assert!(definition(computed(json!([{ "name": "a", "query": "SELECT VALUE c.x FROM c" }]))).is_ok());
        check_refused(computed(json!({ "name": "a" })), "One of the specified inputs is invalid");
        check_refused(computed(json!([{ "name": "a" }])), "One of the specified inputs is invalid");
        check_refused(computed(json!([{ "name": "a", "query": "SELECT 1" }])), "computed property 'a'");
        let twice = json!({ "name": "a", "query": "SELECT VALUE 1 FROM c" });
        check_refused(computed(json!([twice, twice])), "defined twice");
    }
}
