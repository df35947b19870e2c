//! Spatial indexes, and the kind of space they are in.

use mayfly_engine::ContainerDefinition;
use mayfly_value::path::PathPattern;
use serde_json::Value;

use super::{items, member, path_of, text};
use crate::error::ApiError;

const TYPES: [&str; 4] = ["Point", "LineString", "Polygon", "MultiPolygon"];

/// Checks the indexes and the configuration.
pub fn check(definition: &ContainerDefinition) -> Result<(), ApiError> {
    let flat = match definition.others.get("geospatialConfig") {
        None => false,
        Some(config) => match text(config, "type")?.to_ascii_lowercase().as_str() {
            "geography" => false,
            "geometry" => true,
            other => {
                return Err(ApiError::bad_request(format!(
                    "The geospatial type '{other}' is neither 'Geography' nor 'Geometry'."
                )));
            }
        },
    };
    for index in items(definition.indexing.others.get("spatialIndexes"))? {
        let path = path_of(index)?;
        PathPattern::parse(path).map_err(|error| {
            ApiError::bad_request(format!(
                "The spatial index path '{path}' could not be accepted: {error}. Please ensure that the path is a \
                 valid path."
            ))
        })?;
        check_types(path, items(index.get("types"))?)?;
        match (flat, index.get("boundingBox")) {
            (true, bounds) => check_bounds(path, bounds)?,
            (false, None | Some(Value::Null)) => {}
            (false, Some(_)) => {
                return Err(ApiError::bad_request(format!(
                    "The spatial index path '{path}' cannot have a 'boundingBox' where geospatial data is of type \
                     Geography: only Geometry has bounds."
                )));
            }
        }
    }
    Ok(())
}

fn check_types(path: &str, types: &[Value]) -> Result<(), ApiError> {
    if types.is_empty() {
        return Err(ApiError::bad_request(format!(
            "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for \
             the path '{path}'."
        )));
    }
    for name in types {
        let name = name.as_str().ok_or_else(ApiError::invalid_input)?;
        if !TYPES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(ApiError::bad_request(format!(
                "The spatial data type '{name}' of the path '{path}' is none of {}.",
                TYPES.join(", ")
            )));
        }
    }
    Ok(())
}

/// A plane has no ends of its own, so its index must say how far it reaches.
fn check_bounds(path: &str, bounds: Option<&Value>) -> Result<(), ApiError> {
    let side = |name| bounds.and_then(|bounds| member(bounds, name)).and_then(Value::as_f64);
    match (side("xmin"), side("ymin"), side("xmax"), side("ymax")) {
        (Some(left), Some(low), Some(right), Some(high)) if left < right && low < high => Ok(()),
        _ => Err(ApiError::bad_request(format!(
            "The spatial index path '{path}' needs a 'boundingBox' with xmin, ymin, xmax and ymax where geospatial data \
             is of type Geometry."
        ))),
    }
}
