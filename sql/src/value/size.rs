//! How large a value is, for the limits of a query.

use super::{Array, DEPTH_MAX, Object, Value};

/// What is wrong with the size of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oversize {
    TooLarge,
    TooDeep,
}

impl Value<'_> {
    /// About how many bytes the value takes in memory, for limits.
    pub fn size(&self) -> usize {
        let content = match self {
            Value::String(text) => text.len(),
            Value::Array(array) => array.size(),
            Value::Object(object) => object.size(),
            _ => 0,
        };
        size_of::<Value<'_>>() + content
    }

    /// Checks the size of a value that a query has built.
    ///
    /// Values share their parts, so a query that doubles a value at each step (`[x, x]`) makes one that is
    /// small in memory and endless to print. The walk stops as soon as it knows.
    pub(crate) fn check_size(&self, bytes_max: usize) -> Result<(), Oversize> {
        let mut left = bytes_max;
        self.spend(&mut left, 0)
    }

    fn spend(&self, left: &mut usize, depth: usize) -> Result<(), Oversize> {
        if depth >= DEPTH_MAX {
            return Err(Oversize::TooDeep);
        }
        let content = match self {
            // Their parts are counted below.
            Value::Array(Array::Items(_)) | Value::Object(Object::Members(_)) => 0,
            Value::Array(array) => array.size(),
            Value::Object(object) => object.size(),
            Value::String(text) => text.len(),
            _ => 0,
        };
        *left = left.checked_sub(size_of::<Value<'_>>() + content).ok_or(Oversize::TooLarge)?;
        match self {
            Value::Array(Array::Items(items)) => {
                items.iter().try_for_each(|item| item.spend(left, depth + 1))
            }
            Value::Object(Object::Members(members)) => members.iter().try_for_each(|(name, value)| {
                *left = left.checked_sub(name.len()).ok_or(Oversize::TooLarge)?;
                value.spend(left, depth + 1)
            }),
            _ => Ok(()),
        }
    }
}
