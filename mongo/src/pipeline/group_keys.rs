//! Which group a key belongs to.
//!
//! Keys of the plain kinds are found by their hash. The first key of another kind (a document, a decimal, a fraction), or
//! a collation, makes all of them be compared from then on: such keys may be equal to others of a different type.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use crate::collation::{Collation, Ordered};
use crate::values::Value;

/// A key of a plain kind: equal values are the same, whatever their types.
#[derive(PartialEq, Eq, Hash)]
enum PlainKey {
    Null,
    Bool(bool),
    Whole(i64),
    Text(String),
    Date(i64),
    Id([u8; 12]),
}

impl PlainKey {
    fn is_plain(value: &Value) -> bool {
        match value {
            Value::Null | Value::Boolean(_) | Value::Int32(_) | Value::Int64(_) => true,
            Value::String(_) | Value::DateTime(_) | Value::ObjectId(_) => true,
            // Below 2^53 every whole double is one number.
            Value::Double(value) => value.fract() == 0.0 && value.abs() < 9e15,
            _ => false,
        }
    }

    fn of(value: Value) -> Self {
        match value {
            Value::Boolean(value) => Self::Bool(value),
            Value::Int32(value) => Self::Whole(value.into()),
            Value::Int64(value) => Self::Whole(value),
            Value::Double(value) => Self::Whole(value as i64),
            Value::String(text) => Self::Text(text),
            Value::DateTime(date) => Self::Date(date.timestamp_millis()),
            Value::ObjectId(id) => Self::Id(id.bytes()),
            _ => Self::Null,
        }
    }
}

/// The groups by their keys.
#[derive(Default)]
pub(super) struct GroupKeys<'a> {
    collation: Option<&'a Collation>,
    plain: HashMap<PlainKey, usize>,
    compared: BTreeMap<Ordered<'a>, usize>,
    /// In the order they came, as the first of each group had them.
    pub(super) shown: Vec<Value>,
}

impl<'a> GroupKeys<'a> {
    pub(super) fn new(collation: Option<&'a Collation>) -> Self {
        Self { collation, ..Self::default() }
    }

    /// The place of a key's group: the last one of `shown` if it is new.
    pub(super) fn place(&mut self, key: Value) -> usize {
        if self.collation.is_some() || !self.compared.is_empty() || !PlainKey::is_plain(&key) {
            return self.compared_place(key);
        }
        let next = self.shown.len();
        // Numbers are kept with their type; copying a text costs more, and it is in the map.
        let copy = (!matches!(key, Value::String(_))).then(|| key.clone());
        match self.plain.entry(PlainKey::of(key)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                let shown = match (copy, vacant.key()) {
                    (None, PlainKey::Text(text)) => Value::String(text.clone()),
                    (copy, _) => copy.unwrap_or(Value::Null),
                };
                self.shown.push(shown);
                *vacant.insert(next)
            }
        }
    }

    fn compared_place(&mut self, key: Value) -> usize {
        if self.compared.is_empty() {
            for (place, known) in self.shown.iter().enumerate() {
                self.compared.insert(Ordered(known.clone(), self.collation), place);
            }
            self.plain.clear();
        }
        let key = Ordered(key, self.collation);
        if let Some(place) = self.compared.get(&key) {
            return *place;
        }
        self.shown.push(key.0.clone());
        self.compared.insert(key, self.shown.len() - 1);
        self.shown.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(keys: &[Value]) -> Vec<usize> {
        let mut groups = GroupKeys::new(None);
        keys.iter().map(|key| groups.place(key.clone())).collect()
    }

    #[test]
    fn equal_numbers_share_a_group_whatever_their_types() {
        let (int, long, double) = (Value::Int32(5), Value::Int64(5), Value::Double(5.0));
        let (half, other) = (Value::Double(5.5), Value::Int32(6));
        assert_eq!(places(&[int, half, long, other, double]), [0, 1, 0, 2, 0]);
    }

    #[test]
    fn kinds_are_told_apart() {
        let keys = [Value::Null, Value::Boolean(false), Value::Int32(0), Value::String("0".into())];
        assert_eq!(places(&keys), [0, 1, 2, 3]);
    }
}
