//! Vector embeddings and the indexes over them.
//!
//! Both are kept as data; what can be said about them without looking at a document is checked here, in the service's
//! words.

use mayfly_engine::ContainerDefinition;
use mayfly_value::path::Path;
use serde_json::Value;

use super::{items, member, path_of, text};
use crate::error::ApiError;

const DIMENSIONS_MAX: i64 = 4096;
/// The `flat` index keeps vectors as they are, which is good for small ones only.
const FLAT_DIMENSIONS_MAX: i64 = 505;
const QUANTIZATION_BYTES_MAX: i64 = 512;
const SEARCH_LIST: std::ops::RangeInclusive<i64> = 25..=500;
const SHARD_PATHS_MAX: usize = 1;

/// The paths of indexes that keep codes of vectors. The `flat` one compares vectors as they are.
pub fn coded_paths(indexes: Option<&Value>) -> Result<Vec<String>, ApiError> {
    let mut paths: Vec<String> = Vec::new();
    for index in items(indexes)? {
        let path = path_of(index)?;
        let is_flat = text(index, "type")?.eq_ignore_ascii_case("flat");
        // Twice the same is once, and what is no path to one vector is compared without an index.
        if !is_flat && Path::parse(path).is_ok() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    Ok(paths)
}

/// Checks both policies.
pub fn check(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let embeddings = embeddings(definition)?;
    for (number, embedding) in embeddings.iter().enumerate() {
        check_embedding(embedding)?;
        let path = path_of(embedding)?;
        if embeddings[..number].iter().any(|other| other.get("path") == embedding.get("path")) {
            return Err(ApiError::bad_request(format!(
                "The Vector Embedding Policy has the path {path} more than once."
            )));
        }
    }
    for index in indexes(definition)? {
        check_index(index, embeddings)?;
    }
    Ok(())
}

/// Refuses to change what there is; more may be added.
pub fn check_replacement(present: &ContainerDefinition, next: &ContainerDefinition) -> Result<(), ApiError> {
    let kept = embeddings(next)?;
    if embeddings(present)?.iter().any(|embedding| !kept.contains(embedding)) {
        return Err(ApiError::bad_request(
            "Paths in existing embedding policy cannot be modified in Collection Replace",
        ));
    }
    let kept = indexes(next)?;
    let changed = |index: &Value| kept.iter().any(|other| other["path"] == index["path"] && other != index);
    match indexes(present)?.iter().any(changed) {
        true => Err(ApiError::bad_request(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace",
        )),
        false => Ok(()),
    }
}

fn embeddings(definition: &ContainerDefinition) -> Result<&[Value], ApiError> {
    match definition.others.get("vectorEmbeddingPolicy") {
        None => Ok(&[]),
        Some(policy @ Value::Object(_)) => items(policy.get("vectorEmbeddings")),
        Some(_) => Err(ApiError::invalid_input()),
    }
}

fn indexes(definition: &ContainerDefinition) -> Result<&[Value], ApiError> {
    items(definition.indexing.others.get("vectorIndexes"))
}

fn check_embedding(embedding: &Value) -> Result<(), ApiError> {
    let path = path_of(embedding)?;
    if !path.starts_with('/') || path.len() < 2 {
        return Err(ApiError::bad_request(format!(
            "The Vector Embedding Policy has an invalid Path: {path}."
        )));
    }
    let data_type = text(embedding, "dataType")?;
    if !["float32", "float16", "uint8", "int8"].contains(&data_type.to_ascii_lowercase().as_str()) {
        return Err(ApiError::bad_request(format!(
            "The Vector Embedding Policy has an invalid DataType:{data_type}."
        )));
    }
    let dimensions = whole(embedding, "dimensions")?.ok_or_else(ApiError::invalid_input)?;
    if dimensions > DIMENSIONS_MAX {
        return Err(ApiError::bad_request(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is more than the maximum supported value: \
             {DIMENSIONS_MAX}."
        )));
    }
    if dimensions < 1 {
        return Err(ApiError::bad_request(format!(
            "The Vector Embedding Policy has Dimensions:{dimensions} which is less than the minimum supported value: 1."
        )));
    }
    let distance = text(embedding, "distanceFunction")?;
    if !["cosine", "euclidean", "dotproduct"].contains(&distance.to_ascii_lowercase().as_str()) {
        return Err(ApiError::bad_request(format!(
            "The Vector Embedding Policy has an invalid DistanceFunction:{distance}."
        )));
    }
    member(embedding, "embeddingSource").map_or(Ok(()), check_source)
}

/// Where the service would get the vectors from. Kept only: clients bring their vectors.
fn check_source(source: &Value) -> Result<(), ApiError> {
    if !["ApiKey", "Entra"].contains(&text(source, "authType")?) {
        return Err(ApiError::bad_request(
            "The auth type provided in the embedding source of vector policy is invalid.",
        ));
    }
    text(source, "endpoint")?;
    text(source, "deploymentName")?;
    match items(source.get("sourcePaths"))? {
        [] => Err(ApiError::bad_request("The embedding source of vector policy has no source paths.")),
        _ => Ok(()),
    }
}

fn check_index(index: &Value, embeddings: &[Value]) -> Result<(), ApiError> {
    let path = path_of(index)?;
    let embedding = embeddings.iter().find(|embedding| embedding.get("path") == index.get("path"));
    let embedding = embedding.ok_or_else(|| {
        ApiError::bad_request(format!(
            "The Vector Indexing Policy's path::{path} not matching in Embedding's path."
        ))
    })?;
    let dimensions = whole(embedding, "dimensions")?.unwrap_or(0);
    let kind = text(index, "type")?;
    match kind.to_ascii_lowercase().as_str() {
        "flat" if dimensions > FLAT_DIMENSIONS_MAX => {
            return Err(ApiError::bad_request(format!(
                "The Vector Indexing Policy has an index of type flat over {dimensions} dimensions, where at most \
                 {FLAT_DIMENSIONS_MAX} are supported."
            )));
        }
        "flat" | "quantizedflat" | "diskann" => {}
        _ => {
            return Err(ApiError::bad_request(format!(
                "The Vector Indexing Policy's Index Type::{kind} is invalid."
            )));
        }
    }
    let bytes_max = dimensions.min(QUANTIZATION_BYTES_MAX);
    in_range(index, "quantizationByteSize", "QuantizationByteSize", 1..=bytes_max)?;
    in_range(index, "indexingSearchListSize", "IndexingSearchListSize", SEARCH_LIST)?;
    check_shards(items(index.get("vectorIndexShardKey"))?)
}

fn in_range(
    index: &Value,
    name: &str,
    shown: &str,
    range: std::ops::RangeInclusive<i64>,
) -> Result<(), ApiError> {
    match whole(index, name)? {
        Some(value) if !range.contains(&value) => Err(ApiError::bad_request(format!(
            "The Vector Indexing Policy parameter {shown} value :: {value} is out of range. The allowed range is \
             between {} and {}.",
            range.start(),
            range.end()
        ))),
        _ => Ok(()),
    }
}

fn check_shards(paths: &[Value]) -> Result<(), ApiError> {
    if paths.len() > SHARD_PATHS_MAX {
        return Err(ApiError::bad_request(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: \
             {SHARD_PATHS_MAX}.",
            paths.len()
        )));
    }
    for path in paths {
        let path = path.as_str().ok_or_else(ApiError::invalid_input)?;
        if !path.starts_with('/') {
            return Err(ApiError::bad_request(format!(
                "The Vector Indexing Policy has an invalid Shard Path: {path}."
            )));
        }
    }
    Ok(())
}

/// A whole number, if the member is there.
fn whole(object: &Value, name: &str) -> Result<Option<i64>, ApiError> {
    match member(object, name) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(ApiError::invalid_input),
    }
}
