//! Computed properties: their names, and queries that make one value of a document.

use mayfly_engine::ContainerDefinition;
use mayfly_sql::{ComputedProperty, Query, SqlError, computed::COMPUTED_PROPERTIES_MAX};
use serde_json::Value;

use super::{items, member};
use crate::{error::ApiError, resource::SYSTEM_PROPERTIES};

/// Checks the properties.
pub fn check(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let properties = items(definition.others.get("computedProperties"))?;
    if properties.len() > COMPUTED_PROPERTIES_MAX {
        return Err(ApiError::bad_request(format!(
            "A container has at most {COMPUTED_PROPERTIES_MAX} computed properties."
        )));
    }
    let mut names: Vec<&str> = Vec::with_capacity(properties.len());
    for (index, property) in properties.iter().enumerate() {
        let name = named(property, "name")?;
        if name == "id" || SYSTEM_PROPERTIES.contains(&name) {
            return Err(ApiError::bad_request(format!(
                "The system property name '{name}' cannot be used as a computed property name."
            )));
        }
        if names.contains(&name) {
            return Err(ApiError::bad_request(format!(
                "Computed property name '{name}' cannot be used in multiple definitions."
            )));
        }
        if has_spatial_index(definition, name) {
            return Err(ApiError::bad_request(format!(
                "Computed property '{name}' at index ({index}) has a spatial index. Remove the spatial index on this path."
            )));
        }
        let query = named(property, "query")?;
        check_query(index, query)?;
        ComputedProperty::parse(name, query).map_err(ApiError::bad_request)?;
        names.push(name);
    }
    Ok(())
}

fn named<'a>(property: &'a Value, name: &str) -> Result<&'a str, ApiError> {
    if !property.is_object() {
        return Err(ApiError::invalid_input());
    }
    match member(property, name).map(Value::as_str) {
        Some(Some(text)) if !text.is_empty() => Ok(text),
        Some(None) => Err(ApiError::invalid_input()),
        _ => {
            Err(ApiError::bad_request(format!("Computed property '{name}' is either empty or unspecified.")))
        }
    }
}

fn has_spatial_index(definition: &ContainerDefinition, name: &str) -> bool {
    let indexes = definition.indexing.others.get("spatialIndexes").and_then(Value::as_array);
    let first = |path: &str| {
        path.trim_start_matches('/').split('/').next().map(|segment| segment.trim_matches('"') == name)
    };
    let over = |index: &Value| index.get("path").and_then(Value::as_str).and_then(first);
    indexes.into_iter().flatten().any(|index| over(index).unwrap_or(false))
}

fn check_query(index: usize, text: &str) -> Result<(), ApiError> {
    let malformed = |error: SqlError| {
        ApiError::bad_request(format!(
            "Computed property at index ({index}) has a malformed query: '{text}' Error details: '{}'",
            error.to_json()
        ))
    };
    let plan = Query::parse(text).map_err(malformed)?.bind(&[]).map_err(malformed)?;
    match plan.info().has_select_value {
        true => Ok(()),
        false => Err(ApiError::bad_request(format!(
            "Required VALUE expression missing from computed property query '{text}' at index ({index})."
        ))),
    }
}
