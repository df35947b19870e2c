//! The entries of a collection's indexes: which keys a document has in each.
//!
//! An array gives one key per item. Fields below the same array are taken item by item together; two different arrays
//! in one index are refused, since every pair of items would be a key. An empty array stands as undefined, a missing
//! value as null. A derived field gives one key per value that it has.

use bson::{RawArray, RawBson, RawBsonRef, RawDocument};
use mayfly_storage::store::Key;
use mayfly_value::{digest, keycode, order::Order};

use crate::{
    collection::{Derive, FieldKind, Fold, IndexRule, Predicate},
    error::{Error, Result},
    keys::{DocumentKey, Shard},
};

/// A compiled index of a collection.
pub(crate) struct Secondary {
    pub rule: IndexRule,
    pub filter: Option<Predicate>,
    derive: Option<Derive>,
    fold: Option<Fold>,
    paths: Vec<Vec<String>>,
}

impl std::fmt::Debug for Secondary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rule.fmt(f)
    }
}

/// A key longer than this is cut: what follows has no place in it. Stores take eight kilobytes.
const KEY_BYTES_MAX: usize = 5 * 1024;

/// A long value stands in a unique row by its digest.
const UNIQUE_VALUE_BYTES_MAX: usize = 96;

/// Keys of one document in one index. More is most likely a mistake, and would make a batch without end.
const KEYS_MAX: usize = 20_000;

impl Secondary {
    pub fn new(
        rule: IndexRule,
        filter: Option<Predicate>,
        derive: Option<Derive>,
        fold: Option<Fold>,
    ) -> Self {
        let split = |path: &str| path.split('.').map(str::to_owned).collect();
        let paths = rule.fields.iter().map(|field| split(&field.path)).collect();
        Self { rule, filter, derive, fold, paths }
    }

    /// The combinations of values that a document has in this index.
    fn values<'d>(&self, body: &'d RawDocument) -> Result<Vec<Vec<Value<'d>>>> {
        if !self.rule.has_entries() || self.filter.as_ref().is_some_and(|admits| !admits(body)) {
            return Ok(Vec::new());
        }
        let start = self.paths.iter().zip(&self.rule.fields).map(|(path, field)| match field.kind {
            FieldKind::Derived => Ok(Slot { value: Value::Missing, rest: &[], array: None }),
            _ => Slot::enter(RawBsonRef::Document(body), path),
        });
        let mut found = Vec::new();
        expand(start.collect::<Result<_>>()?, &mut found)?;
        // A derived field says itself which documents have entries.
        let is_sparse = self.rule.sparse && self.derive.is_none();
        if is_sparse && found.iter().all(|key| key.iter().all(|value| *value == Value::Missing)) {
            found.clear();
        }
        Ok(found)
    }

    /// The keys of the entries, added to `keys`.
    pub fn push_entries(
        &self,
        shard: Shard,
        document: &DocumentKey,
        body: &RawDocument,
        keys: &mut Vec<Key>,
    ) -> Result<()> {
        match self.plain_entry(shard, document, body)? {
            Plain::Entry(key) => keys.push(key),
            Plain::None => {}
            Plain::Not => keys.extend(self.entries(shard, document, body)?),
        }
        Ok(())
    }

    /// The one entry of a document that has no array on the way to any field. Nearly every document is such, and a load
    /// asks for each of its indexes.
    fn plain_entry(&self, shard: Shard, document: &DocumentKey, body: &RawDocument) -> Result<Plain> {
        if self.derive.is_some() {
            return Ok(Plain::Not);
        }
        if !self.rule.has_entries() || self.filter.as_ref().is_some_and(|admits| !admits(body)) {
            return Ok(Plain::None);
        }
        let mut encoded = Vec::with_capacity(32);
        let mut is_missing = true;
        for (path, field) in self.paths.iter().zip(&self.rule.fields) {
            let slot = Slot::enter(RawBsonRef::Document(body), path)?;
            if slot.array.is_some() {
                return Ok(Plain::Not);
            }
            is_missing &= slot.value == Value::Missing;
            if encoded.len() <= KEY_BYTES_MAX {
                self.as_kept(&slot.value, |value| value.push(&mut encoded, field.kind));
            }
        }
        encoded.truncate(KEY_BYTES_MAX);
        Ok(match self.rule.sparse && is_missing {
            true => Plain::None,
            false => Plain::Entry(shard.secondary(self.rule.number, &encoded, document)),
        })
    }

    /// The keys of the entries.
    pub fn entries(&self, shard: Shard, document: &DocumentKey, body: &RawDocument) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        let combinations = self.values(body)?;
        let Some(derive) = self.derive.as_ref().filter(|_| !combinations.is_empty()) else {
            for values in combinations {
                keys.push(shard.secondary(self.rule.number, &self.encode(&values, None), document));
            }
            keys.sort_unstable();
            keys.dedup();
            return Ok(keys);
        };
        let derived = derive(body).map_err(Error::NotIndexable)?;
        if derived.len().saturating_mul(combinations.len()) > KEYS_MAX {
            return Err(Error::bad_request(format!("a document has more than {KEYS_MAX} keys in an index")));
        }
        for values in combinations {
            for value in &derived {
                keys.push(shard.secondary(self.rule.number, &self.encode(&values, Some(value)), document));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    fn encode(&self, values: &[Value<'_>], derived: Option<&RawBson>) -> Vec<u8> {
        let mut encoded = Vec::with_capacity(32);
        for (value, field) in values.iter().zip(&self.rule.fields) {
            match derived {
                Some(derived) if field.kind == FieldKind::Derived => {
                    Value::Is(derived.as_raw_bson_ref()).push(&mut encoded, FieldKind::Up);
                }
                _ => self.as_kept(value, |value| value.push(&mut encoded, field.kind)),
            }
            if encoded.len() > KEY_BYTES_MAX {
                encoded.truncate(KEY_BYTES_MAX);
                break;
            }
        }
        encoded
    }

    /// Shows a value as it is kept.
    fn as_kept(&self, value: &Value<'_>, show: impl FnOnce(Value<'_>)) {
        let folded = match (&self.fold, value) {
            (Some(fold), Value::Is(value)) => fold(*value),
            _ => None,
        };
        show(folded.as_ref().map_or(*value, |folded| Value::Is(folded.as_raw_bson_ref())));
    }

    /// The rows that no other document may have.
    pub fn unique_rows(&self, shard: Shard, body: &RawDocument) -> Result<Vec<Key>> {
        if !self.rule.unique {
            return Ok(Vec::new());
        }
        let mut rows = Vec::new();
        for values in self.values(body)? {
            let mut encoded = Vec::with_capacity(32);
            for value in &values {
                self.as_kept(value, |value| {
                    let start = encoded.len();
                    value.push(&mut encoded, FieldKind::Up);
                    if encoded.len() - start > UNIQUE_VALUE_BYTES_MAX
                        && let Value::Is(value) = value
                    {
                        encoded.truncate(start + UNIQUE_VALUE_BYTES_MAX);
                        encoded.extend_from_slice(&digest::digest(value));
                    }
                });
            }
            rows.push(shard.secondary_unique(self.rule.number, &encoded));
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }
}

/// Whether a document has one entry in an index, none, or what takes a closer look.
enum Plain {
    Entry(Key),
    None,
    Not,
}

/// A value in a key.
#[derive(Clone, Copy, PartialEq)]
enum Value<'d> {
    Is(RawBsonRef<'d>),
    Missing,
    /// An array without items.
    Nothing,
}

impl Value<'_> {
    fn push(&self, out: &mut Vec<u8>, kind: FieldKind) {
        let start = out.len();
        match self {
            Self::Is(value) => keycode::push_value(out, *value, Order::Mongo),
            Self::Missing => keycode::push_value(out, RawBsonRef::Null, Order::Mongo),
            Self::Nothing => keycode::push_undefined(out, Order::Mongo),
        }
        match kind {
            FieldKind::Up | FieldKind::Other | FieldKind::Derived => {}
            FieldKind::Down => out[start..].iter_mut().for_each(|byte| *byte = !*byte),
            FieldKind::Hashed => {
                // Of the encoding, in which equal numbers of different types are the same.
                let text: String = out[start..].iter().map(|byte| format!("{byte:02x}")).collect();
                out.truncate(start);
                out.extend_from_slice(&digest::digest(RawBsonRef::String(&text))[..8]);
            }
        }
    }
}

/// A field on its way through a document.
#[derive(Clone)]
struct Slot<'d, 'p> {
    /// Where it stands; an array if `stops` is.
    value: Value<'d>,
    rest: &'p [String],
    /// The steps to the array it stands at, which tells whether two fields stand at the same one.
    array: Option<(&'d RawArray, usize)>,
}

impl<'d, 'p> Slot<'d, 'p> {
    /// Follows a path through objects, up to its end or to an array.
    fn enter(value: RawBsonRef<'d>, path: &'p [String]) -> Result<Self> {
        let mut value = value;
        let mut rest = path;
        loop {
            match (value, rest.split_first()) {
                (RawBsonRef::Array(array), _) => {
                    let array = Some((array, array.as_bytes().as_ptr() as usize));
                    return Ok(Self { value: Value::Is(value), rest, array });
                }
                (value, None) => return Ok(Self { value: Value::Is(value), rest, array: None }),
                (RawBsonRef::Document(document), Some((name, below))) => match document.get(name)? {
                    Some(found) => (value, rest) = (found, below),
                    None => return Ok(Self { value: Value::Missing, rest: &[], array: None }),
                },
                _ => return Ok(Self { value: Value::Missing, rest: &[], array: None }),
            }
        }
    }
}

/// Takes the arrays that fields stand at apart, item by item, and collects what is then a key.
fn expand<'d>(slots: Vec<Slot<'d, '_>>, found: &mut Vec<Vec<Value<'d>>>) -> Result<()> {
    let Some((array, at)) = slots.iter().find_map(|slot| slot.array) else {
        if found.len() >= KEYS_MAX {
            return Err(Error::bad_request(format!("a document has more than {KEYS_MAX} keys in an index")));
        }
        found.push(slots.into_iter().map(|slot| slot.value).collect());
        return Ok(());
    };
    if slots.iter().any(|slot| slot.array.is_some_and(|(_, other)| other != at)) {
        return Err(Error::ParallelArrays);
    }
    let positional = |slot: &Slot<'_, '_>| {
        slot.array.is_some() && slot.rest.first().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
    };
    if slots.iter().any(positional) {
        // A number names one item; the other fields at this array are seen beside it.
        let mut next = slots;
        for slot in next.iter_mut().filter(|slot| positional(slot)) {
            let place = slot.rest[0].parse::<usize>().ok();
            let item = place.and_then(|place| array.get(place).ok().flatten());
            *slot = match item {
                Some(item) => Slot::enter_item(item, &slot.rest[1..])?,
                None => Slot { value: Value::Missing, rest: &[], array: None },
            };
        }
        return expand(next, found);
    }
    if array.is_empty() {
        let next = slots.into_iter().map(|slot| match (slot.array, slot.rest.is_empty()) {
            (Some(_), true) => Slot { value: Value::Nothing, array: None, ..slot },
            (Some(_), false) => Slot { value: Value::Missing, rest: &[], array: None },
            (None, _) => slot,
        });
        return expand(next.collect(), found);
    }
    for item in array {
        let item = item?;
        let next = slots.iter().map(|slot| match slot.array {
            Some(_) => Slot::enter_item(item, slot.rest),
            None => Ok(slot.clone()),
        });
        expand(next.collect::<Result<_>>()?, found)?;
    }
    Ok(())
}

impl<'d, 'p> Slot<'d, 'p> {
    /// An item of an array: an array inside an array is a value, and is not entered by name.
    fn enter_item(item: RawBsonRef<'d>, rest: &'p [String]) -> Result<Self> {
        match (item, rest.is_empty()) {
            (item, true) => Ok(Self { value: Value::Is(item), rest, array: None }),
            (RawBsonRef::Document(_), false) => Self::enter(item, rest),
            _ => Ok(Self { value: Value::Missing, rest: &[], array: None }),
        }
    }
}

/// The encoding of a value as it stands in an index, for the bounds of a walk.
pub fn encode_bound(value: RawBsonRef<'_>, kind: FieldKind) -> Vec<u8> {
    let mut out = Vec::new();
    Value::Is(value).push(&mut out, kind);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::IndexField;
    use bson::rawdoc;

    fn index(paths: &[&str]) -> Secondary {
        let fields =
            paths.iter().map(|path| IndexField { path: (*path).into(), kind: FieldKind::Up }).collect();
        let rule = IndexRule {
            number: 1,
            name: "i".into(),
            fields,
            unique: false,
            sparse: false,
            folded: false,
            filter: Vec::new(),
            date_rule: None,
            is_default_ttl: false,
            building: false,
            spec: Vec::new(),
        };
        Secondary::new(rule, None, None, None)
    }

    fn shown(paths: &[&str], body: &RawDocument) -> String {
        let text = |value: &Value<'_>| match value {
            Value::Is(value) => bson::Bson::try_from(*value).map_or("?".into(), |value| value.to_string()),
            Value::Missing => "missing".into(),
            Value::Nothing => "[]".into(),
        };
        match index(paths).values(body) {
            Ok(keys) => {
                let keys = keys.iter().map(|key| key.iter().map(text).collect::<Vec<_>>().join(","));
                keys.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn arrays_give_a_key_per_item() {
        assert_eq!(shown(&["a"], &rawdoc! { "a": 1 }), "1");
        assert_eq!(shown(&["a"], &rawdoc! {}), "missing");
        assert_eq!(shown(&["a"], &rawdoc! { "a": [1, 2] }), "1 2");
        assert_eq!(shown(&["a"], &rawdoc! { "a": [] }), "[]");
        assert_eq!(shown(&["a.b"], &rawdoc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 4] }), "1 2 3 missing");
        assert_eq!(shown(&["a.0"], &rawdoc! { "a": [7, 8] }), "7");
        assert_eq!(shown(&["a", "b"], &rawdoc! { "a": [1, 2], "b": 3 }), "1,3 2,3");
        assert_eq!(
            shown(&["a.x", "a.y"], &rawdoc! { "a": [{ "x": 1, "y": 2 }, { "x": 3 }] }),
            "1,2 3,missing"
        );
        assert_eq!(shown(&["a", "b"], &rawdoc! { "a": [1], "b": [2] }), "ParallelArrays");
    }
}
