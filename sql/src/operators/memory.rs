//! The memory of a query: what it keeps beyond one document.

use crate::context::Context;
use crate::error::EvalError;

/// Bytes taken so far, and the most that may be taken.
#[derive(Debug)]
pub(crate) struct Memory {
    used: usize,
    bytes_max: usize,
}

impl Memory {
    pub(crate) fn of(context: &Context<'_>) -> Memory {
        Memory { used: 0, bytes_max: context.memory_bytes_max }
    }

    /// Takes some more; the query fails if that is too much.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.bytes_max {
            return Err(EvalError::TooMuchMemory { bytes_max: self.bytes_max });
        }
        Ok(())
    }

    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
    }
}
