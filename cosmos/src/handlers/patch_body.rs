//! The body of a PATCH: operations, and the condition they depend on.
//!
//! SDKs send an object with both, or a bare array of operations.

use std::sync::Arc;

use bson::Bson;
use mayfly_engine::{
    Container, Engine, Error, Modify, Record, Timestamp,
    patch::{self, OPERATIONS_MAX, PatchOperation, Pointer},
};
use mayfly_sql::{Context, Document, EvalError, Plan, Query, SqlError};
use mayfly_value::{
    json::{self, JsonLimits},
    partition::KeyDefinition,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::item_body;
use crate::{
    call::Call,
    error::ApiError,
    raw_value::some_value,
    resource::{self, SYSTEM_PROPERTIES},
};

#[derive(Deserialize)]
struct Whole<'a> {
    condition: Option<String>,
    #[serde(borrow)]
    operations: Vec<Step<'a>>,
}

#[derive(Deserialize)]
struct Step<'a> {
    op: String,
    path: String,
    from: Option<String>,
    #[serde(borrow, default, deserialize_with = "some_value")]
    value: Option<&'a RawValue>,
}

/// Reads a patch for a document of `container`, whose partition key it may not touch.
pub fn parse(
    call: &Call<'_>,
    container: &Arc<Container>,
    slot: u16,
    text: &[u8],
) -> Result<Modify, ApiError> {
    let key = &container.definition().partition_key;
    let (condition, steps) = match first_byte(text) {
        Some(b'[') => (None, serde_json::from_slice::<Vec<Step<'_>>>(text).map_err(malformed)?),
        _ => {
            let whole: Whole<'_> = serde_json::from_slice(text).map_err(malformed)?;
            (whole.condition, whole.operations)
        }
    };
    if steps.is_empty() || steps.len() > OPERATIONS_MAX {
        return Err(ApiError::bad_request(format!(
            "A patch has from 1 to {OPERATIONS_MAX} operations; this one has {}.",
            steps.len()
        )));
    }
    let operations = steps.iter().map(|step| operation(step, key)).collect::<Result<Vec<_>, _>>()?;
    let condition = condition.filter(|condition| !condition.trim().is_empty());
    let Some(condition) = condition else {
        return Ok(Arc::new(move |record| patch::apply(record.body(), &operations)));
    };
    let condition = Condition::parse(&condition, call, container, slot)?;
    Ok(Arc::new(move |record| match condition.holds(record)? {
        true => patch::apply(record.body(), &operations),
        false => Err(Error::PreconditionFailed),
    }))
}

/// A filter on the document as it is before the patch: `from c where …`.
struct Condition {
    plan: Plan,
    engine: Engine,
    container: Arc<Container>,
    slot: u16,
    now: Timestamp,
}

impl Condition {
    fn parse(text: &str, call: &Call<'_>, container: &Arc<Container>, slot: u16) -> Result<Self, ApiError> {
        let refused = |error: SqlError| ApiError::bad_request(format!("Message: {}", error.to_json()));
        let query = Query::parse(&format!("SELECT VALUE true {text}")).map_err(refused)?;
        let plan = query.bind(&[]).map_err(refused)?;
        Ok(Self { plan, engine: call.engine.clone(), container: container.clone(), slot, now: call.now })
    }

    fn holds(&self, record: &Record) -> Result<bool, Error> {
        let failed = |error: EvalError| Error::bad_request(error.to_string());
        let mut run = self.plan.run(Context::new(self.now.0 as i64, self.now.0)).map_err(failed)?;
        let system = resource::SystemProperties::new(&self.engine, &self.container).of(self.slot, record);
        let rows = run.push(&Document { body: record.body(), system: &system }).map_err(failed)?;
        Ok(!rows.is_empty())
    }
}

fn first_byte(text: &[u8]) -> Option<u8> {
    text.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("The patch is invalid: {error}."))
}

fn operation(step: &Step<'_>, key: &KeyDefinition) -> Result<PatchOperation, ApiError> {
    let to = pointer(&step.path, key)?;
    Ok(match step.op.to_ascii_lowercase().as_str() {
        "add" => PatchOperation::Add(to, value(step)?),
        "set" => PatchOperation::Set(to, value(step)?),
        "replace" => PatchOperation::Replace(to, value(step)?),
        "remove" => PatchOperation::Remove(to),
        "incr" | "increment" => match value(step)? {
            by @ (Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_)) => PatchOperation::Increment(to, by),
            _ => return Err(ApiError::bad_request("The value of an increment must be a number.")),
        },
        "move" => {
            let from = step.from.as_deref();
            let from = from.ok_or_else(|| ApiError::bad_request("A move needs the property 'from'."))?;
            PatchOperation::Move { from: pointer(from, key)?, to }
        }
        other => return Err(ApiError::bad_request(format!("There is no patch operation '{other}'."))),
    })
}

fn value(step: &Step<'_>) -> Result<Bson, ApiError> {
    let text = step
        .value
        .ok_or_else(|| ApiError::bad_request(format!("The patch operation '{}' needs a value.", step.op)))?;
    let value =
        json::parse_value(text.get().as_bytes(), JsonLimits::default()).map_err(item_body::refused)?;
    Bson::try_from(value).map_err(|_| ApiError::invalid_input())
}

fn pointer(path: &str, key: &KeyDefinition) -> Result<Pointer, ApiError> {
    let pointer = Pointer::parse(path)?;
    let segments = pointer.segments();
    let root = segments.first().map(String::as_str).unwrap_or_default();
    let is_key = key.paths.iter().any(|path| {
        let both = path.segments().len().min(segments.len());
        path.segments()[..both] == segments[..both]
    });
    if root == "id" || SYSTEM_PROPERTIES.contains(&root) || is_key {
        return Err(ApiError::bad_request(format!(
            "A patch cannot change '{path}': ids, partition keys and system properties stay as they are."
        )));
    }
    Ok(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_a_value() {
        let step = |text| serde_json::from_str::<Step<'_>>(text).unwrap();
        assert_eq!(value(&step(r#"{"op":"set","path":"/a","value":null}"#)), Ok(Bson::Null));
        assert_eq!(value(&step(r#"{"op":"set","path":"/a","value":[1]}"#)).map(|_| ()), Ok(()));
        assert!(value(&step(r#"{"op":"set","path":"/a"}"#)).is_err());
    }
}
