//! Arrays: items in BSON bytes, or a list that a query built.

use std::sync::Arc;

use bson::{RawArray, RawArrayBuf};

use super::Value;

/// An array that is cheap to clone.
#[derive(Debug, Clone)]
pub enum Array<'a> {
    /// Part of a document.
    Raw(&'a RawArray),
    /// A copy of a part of a document.
    Buf(Arc<RawArrayBuf>),
    /// Built by a query. No item is undefined.
    Items(Arc<[Value<'a>]>),
}

impl<'a> Array<'a> {
    /// An array of the items that are defined.
    pub fn of(items: impl IntoIterator<Item = Value<'a>>) -> Array<'a> {
        Array::Items(items.into_iter().filter(Value::is_defined).collect())
    }

    /// The item at a position, counted from 0; undefined past the end.
    pub fn get(&self, index: usize) -> Value<'a> {
        match self {
            Array::Items(items) => items.get(index).cloned().unwrap_or(Value::Undefined),
            _ => self.iter().nth(index).unwrap_or(Value::Undefined),
        }
    }

    /// The items in order, as far as the bytes can be read.
    pub fn iter(&self) -> Box<dyn Iterator<Item = Value<'a>> + '_> {
        match self {
            Array::Raw(array) => {
                let array: &'a RawArray = array;
                Box::new(array.into_iter().map_while(Result::ok).map(Value::from_raw))
            }
            Array::Buf(array) => {
                let items = array.into_iter().map_while(Result::ok);
                Box::new(items.map(|item| Value::from_raw(item).into_owned()))
            }
            Array::Items(items) => Box::new(items.iter().cloned()),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        match self {
            Array::Raw(array) => array.into_iter().map_while(Result::ok).count(),
            Array::Buf(array) => array.into_iter().map_while(Result::ok).count(),
            Array::Items(items) => items.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self {
            Array::Raw(array) => array.is_empty(),
            Array::Buf(array) => array.is_empty(),
            Array::Items(items) => items.is_empty(),
        }
    }

    pub(crate) fn borrow(&self) -> Array<'_> {
        match self {
            Array::Raw(array) => Array::Raw(array),
            Array::Buf(array) => Array::Raw(array),
            Array::Items(items) => Array::Items(Arc::clone(items)),
        }
    }

    pub(crate) fn into_owned(self) -> Array<'static> {
        match self {
            Array::Raw(array) => Array::Buf(Arc::new(array.to_owned())),
            Array::Buf(array) => Array::Buf(array),
            Array::Items(items) => Array::Items(items.iter().cloned().map(Value::into_owned).collect()),
        }
    }

    pub(crate) fn size(&self) -> usize {
        match self {
            Array::Raw(array) => array.as_bytes().len(),
            Array::Buf(array) => array.as_bytes().len(),
            Array::Items(items) => items.iter().map(Value::size).sum(),
        }
    }
}
