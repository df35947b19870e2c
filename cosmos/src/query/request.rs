//! The body of a query: a text and its parameters.

use std::sync::Arc;

use mayfly_engine::{Container, Timestamp};
use mayfly_sql::{Context, Distribution, EvalError, Plan, Query, Settings, SqlError, Value};
use mayfly_value::json::{self, JsonLimits};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{parsed, surroundings::Surroundings};
use crate::{error::ApiError, raw_value::some_value};

/// The longest query text.
const TEXT_BYTES_MAX: usize = 512 * 1024;

#[derive(Deserialize)]
struct Body<'a> {
    query: String,
    #[serde(borrow, default)]
    parameters: Option<Vec<Parameter<'a>>>,
}

#[derive(Deserialize)]
struct Parameter<'a> {
    name: String,
    #[serde(borrow, default, deserialize_with = "some_value")]
    value: Option<&'a RawValue>,
}

/// A query that can be run.
pub struct Request {
    /// As it was written.
    pub query: Arc<Query>,
    /// Ready to run.
    pub plan: Plan,
    /// What the container's functions measure by.
    pub settings: Settings,
    /// Tells this query and its parameters from others, for continuations.
    pub fingerprint: Fingerprint,
}

impl Request {
    /// Reads and compiles the body of a query over resources that are not items.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        Self::parse_in(body, Surroundings::default())
    }

    /// Reads and compiles the body of a query over the items of `container`.
    pub fn of_items(body: &[u8], container: &Container) -> Result<Self, ApiError> {
        Self::parse_in(body, Surroundings::of(container))
    }

    fn parse_in(body: &[u8], surroundings: Surroundings) -> Result<Self, ApiError> {
        let whole = fingerprint(body);
        let body: Body<'_> = serde_json::from_slice(body)
            .map_err(|error| ApiError::bad_request(format!("The query body is invalid: {error}.")))?;
        if body.query.len() > TEXT_BYTES_MAX {
            return Err(ApiError::bad_request(format!(
                "The SQL query text exceeded the maximum limit of {TEXT_BYTES_MAX} characters"
            )));
        }
        let mut parameters = Vec::new();
        for parameter in body.parameters.iter().flatten() {
            if !parameter.name.starts_with('@') {
                return Err(ApiError::invalid_parameter_name(&parameter.name));
            }
            let value = match parameter.value {
                Some(text) => {
                    let value = json::parse_value(text.get().as_bytes(), JsonLimits::default());
                    Value::from_bson(value.map_err(|error| ApiError::bad_request(error.to_string()))?)
                }
                None => Value::Undefined,
            };
            parameters.push((parameter.name.as_str(), value));
        }
        let query = parsed::parse(body.query).map_err(refused)?;
        let fingerprint = match query.without_resume_filter() {
            None => Fingerprint::exact(whole),
            Some(mut text) => {
                for parameter in body.parameters.iter().flatten() {
                    let value = parameter.value.map_or("", RawValue::get);
                    text.extend([" ", &parameter.name, "=", value]);
                }
                Fingerprint::resumable(fingerprint(text.as_bytes()), whole)
            }
        };
        let plan =
            query.bind_with(&parameters, &surroundings.computed, &surroundings.settings).map_err(refused)?;
        Ok(Self { query, plan, settings: surroundings.settings, fingerprint })
    }
}

impl Request {
    /// What a run at this time is given.
    pub fn context(&self, now: Timestamp) -> Context<'_> {
        Context::with_settings(now.0 as i64, now.0, &self.settings)
    }

    /// How a client merges the answers of several ranges, if it can.
    pub fn distribution(&self) -> Result<Distribution, EvalError> {
        self.query.distribute(&self.plan, &self.settings)
    }
}

/// A query that cannot be compiled.
fn refused(error: SqlError) -> ApiError {
    ApiError::bad_request(format!("Message: {}", error.to_json()))
}

/// A query that cannot be answered.
pub fn failed(error: EvalError) -> ApiError {
    match error {
        EvalError::Unsupported { feature } => ApiError::not_implemented(&feature),
        error => ApiError::bad_request(format!("Message: {}", error.to_json())),
    }
}

/// Tells queries apart.
#[derive(Clone, Copy, Debug)]
pub struct Fingerprint {
    /// In its upper half that of the query without its filter, if it may go on with another one.
    bits: u64,
    is_resumable: bool,
}

/// What a continuation's fingerprint says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belongs {
    /// It is of this query.
    Same,
    /// It is of this query with another condition to resume at.
    OtherFilter,
    /// It is of another query.
    Not,
}

impl Fingerprint {
    /// Of a query that goes on as it is or not at all.
    pub const fn exact(bits: u64) -> Self {
        Self { bits, is_resumable: false }
    }

    /// Of a sorted query that a client may resume with another filter.
    pub const fn resumable(without_filter: u64, whole: u64) -> Self {
        const LOWER: u64 = u32::MAX as u64;
        Self { bits: without_filter << 32 | whole & LOWER, is_resumable: true }
    }

    /// As a continuation has it.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Whether a continuation with these bits is of this query.
    pub const fn owns(self, bits: u64) -> Belongs {
        match self.bits == bits {
            true => Belongs::Same,
            false if self.is_resumable && self.bits >> 32 == bits >> 32 => Belongs::OtherFilter,
            false => Belongs::Not,
        }
    }
}

/// FNV-1a: stable across versions and machines, as continuations have to be.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
