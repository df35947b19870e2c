//! Values: what an expression computes with.
//!
//! A value mostly borrows: strings, arrays and objects of a stored document point into its BSON bytes, those
//! of a query point into the plan. Only what a query builds itself (`{a: c.x}`, `CONCAT(...)`) is allocated,
//! behind an `Arc`, so that cloning is cheap everywhere.
//!
//! - [`mod@array`] and [`object`]: the two kinds of containers, borrowed or owned.
//! - [`compare`]: equality and the operators `<`, `<=` ..., and the order of `ORDER BY`.
//! - [`key`]: bytes that are equal exactly for equal values, for DISTINCT and GROUP BY.
//! - [`json`]: JSON text out; [`convert`]: from and to BSON; `size.rs`: how large a value is.
//!
//! Holds: `Undefined` is never an item of an array nor a member of an object; the constructors drop it.

pub mod array;
pub mod compare;
pub mod convert;
pub mod json;
pub mod key;
pub mod number;
pub mod object;
mod size;

use std::borrow::Cow;

pub use array::Array;
pub use object::{Document, Member, Object};
pub(crate) use size::Oversize;

/// How deep a walk over a value goes. Documents nest at most 200 levels, expressions as many again; what
/// lies deeper was not written by a front-end and is treated as empty.
pub(crate) const DEPTH_MAX: usize = 512;

/// The result of an expression.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// No value: a missing property, or an operation that makes no sense for its operands.
    Undefined,
    /// JSON's null, which is a value.
    Null,
    /// true or false.
    Bool(bool),
    /// A number written as an integer: kept exactly.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// Text.
    String(Cow<'a, str>),
    /// An array.
    Array(Array<'a>),
    /// An object, or a whole document.
    Object(Object<'a>),
}

/// What kind of value it is, in the order ORDER BY puts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// See [`Value::Undefined`].
    Undefined,
    /// See [`Value::Null`].
    Null,
    /// See [`Value::Bool`].
    Bool,
    /// An integer or a double: to a query both are one type.
    Number,
    /// See [`Value::String`].
    String,
    /// See [`Value::Array`].
    Array,
    /// See [`Value::Object`].
    Object,
}

impl<'a> Value<'a> {
    /// Text, borrowed or owned.
    pub fn string(text: impl Into<Cow<'a, str>>) -> Value<'a> {
        Value::String(text.into())
    }

    /// An array of the items that are defined.
    pub fn array(items: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
        Value::Array(Array::of(items))
    }

    /// An object of the members that are defined, in this order. Of two members with one name the last wins.
    pub fn object<N: Into<Cow<'a, str>>>(members: impl IntoIterator<Item = (N, Value<'a>)>) -> Value<'a> {
        Value::Object(Object::of(members))
    }

    /// The type a query sees.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Undefined => Kind::Undefined,
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) | Value::Double(_) => Kind::Number,
            Value::String(_) => Kind::String,
            Value::Array(_) => Kind::Array,
            Value::Object(_) => Kind::Object,
        }
    }

    /// Whether there is a value at all.
    pub fn is_defined(&self) -> bool {
        !matches!(self, Value::Undefined)
    }

    /// Whether this is exactly `true`: what WHERE and `?:` ask for.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as a double, if it is a number. Integers beyond 2^53 are rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Double(value) => Some(*value),
            _ => None,
        }
    }

    /// The number as an integer, if it is one without a fraction that fits 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            Value::Double(value) => number::exact_i64(*value),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array<'a>> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// `value.name`: undefined unless this is an object that has the property.
    pub fn property(&self, name: &str) -> Value<'a> {
        match self {
            Value::Object(object) => object.get(name),
            _ => Value::Undefined,
        }
    }

    /// `value[index]`: undefined unless this is an array that is long enough.
    pub fn item(&self, index: usize) -> Value<'a> {
        match self {
            Value::Array(array) => array.get(index),
            _ => Value::Undefined,
        }
    }

    /// The same value, pointing into `self`: owned text and bytes are not copied.
    pub fn borrow(&self) -> Value<'_> {
        match self {
            Value::Undefined => Value::Undefined,
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(*value),
            Value::Int(value) => Value::Int(*value),
            Value::Double(value) => Value::Double(*value),
            Value::String(text) => Value::String(Cow::Borrowed(text)),
            Value::Array(array) => Value::Array(array.borrow()),
            Value::Object(object) => Value::Object(object.borrow()),
        }
    }

    /// The same value on its own: it may outlive the document it was read from.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Undefined => Value::Undefined,
            Value::Null => Value::Null,
            Value::Bool(value) => Value::Bool(value),
            Value::Int(value) => Value::Int(value),
            Value::Double(value) => Value::Double(value),
            Value::String(text) => Value::String(Cow::Owned(text.into_owned())),
            Value::Array(array) => Value::Array(array.into_owned()),
            Value::Object(object) => Value::Object(object.into_owned()),
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Value::String(Cow::Borrowed(value))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Value::String(Cow::Owned(value))
    }
}

/// None is undefined: the usual answer of a function whose argument has the wrong type.
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Undefined, Into::into)
    }
}
