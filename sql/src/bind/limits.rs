//! TOP, OFFSET and LIMIT.

use super::Binder;
use crate::ast::{Count, CountKind, QueryTree};
use crate::error::{SqlError, SyntaxError};

/// Counts stay below 2^32.
const COUNT_MAX: i64 = u32::MAX as i64;

impl Binder<'_> {
    /// TOP and OFFSET LIMIT together: how many rows to skip and how many to give.
    pub(super) fn limits(&mut self, tree: &QueryTree) -> Result<(u64, Option<u64>), SqlError> {
        const NOT_INTEGER: &str = "The count value provided for a TOP clause must be an integer.";
        if let Some(top) = &tree.select.top {
            if let Some(clause) = &tree.offset_limit {
                let message = "The TOP clause cannot be combined with the OFFSET LIMIT clause.";
                return Err(SqlError::uncoded(message, clause.span));
            }
            let count = match self.count(&top.count)? {
                Some(count) if count <= COUNT_MAX => u64::try_from(count).ok(),
                _ => None,
            };
            return match count {
                Some(count) => Ok((0, Some(count))),
                None => Err(SqlError::new("SC2060", NOT_INTEGER, top.count.span)),
            };
        }
        match &tree.offset_limit {
            Some(clause) => {
                let offset = self.bounded_count(&clause.offset, "SC2062", "OFFSET")?;
                let limit = self.bounded_count(&clause.limit, "SC2061", "LIMIT")?;
                Ok((offset, Some(limit)))
            }
            None => Ok((0, None)),
        }
    }

    fn bounded_count(&self, count: &Count, code: &'static str, clause: &str) -> Result<u64, SqlError> {
        let too_large = || {
            let message = format!("The {clause} count value exceeds the maximum allowed value.");
            SqlError::new(code, message, count.span)
        };
        if let CountKind::Double(_) = count.kind {
            let written = self.text_of(count.span);
            let is_integer = written.bytes().all(|byte| byte.is_ascii_digit());
            return Err(match is_integer {
                true => too_large(),
                false => SyntaxError::Near(written.to_owned()).at(count.span),
            });
        }
        match self.count(count)? {
            Some(value) if value > COUNT_MAX => Err(too_large()),
            value => value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| {
                let message = format!("The {clause} count value must be a non-negative integer.");
                SqlError::uncoded(message, count.span)
            }),
        }
    }

    /// The integer a count is, if it is one.
    fn count(&self, count: &Count) -> Result<Option<i64>, SqlError> {
        match &count.kind {
            CountKind::Integer(value) => Ok(Some(*value)),
            CountKind::Double(_) => Ok(None),
            CountKind::Parameter(name) => Ok(self.parameter(name, count.span)?.as_i64()),
        }
    }
}
