//! DISTINCT: each value once.

use std::collections::HashSet;

use super::memory::Memory;
use crate::error::EvalError;
use crate::value::Value;
use crate::value::key::key_of;

/// The keys of the values seen.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    seen: HashSet<Vec<u8>>,
}

impl Distinct {
    /// Whether the value was not there yet; from now on it is.
    pub(crate) fn is_new(&mut self, value: &Value<'_>, memory: &mut Memory) -> Result<bool, EvalError> {
        let key = key_of(value);
        let size = size_of::<Vec<u8>>() + key.len();
        let is_new = self.seen.insert(key);
        if is_new {
            memory.take(size)?;
        }
        Ok(is_new)
    }
}
