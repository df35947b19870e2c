//! Collections: containers that follow MongoDB's rules instead of Cosmos's.
//!
//! A document is named by its `_id`, of any type, and by nothing else: all documents of a collection are one logical
//! partition. Indexes are made and dropped at any time, each with a number of its own that is never used again; a
//! number stands in the keys of its entries, so entries of a dropped index cannot be mistaken for another's.
//!
//! The engine knows neither the filter language nor what a word or a place is, nor which texts people take for equal. Where
//! an index has a filter, values that are derived from a document, or values that are compared by other rules, whoever
//! opened the engine has said how to read them ([`Predicates`]); what comes back must be a pure function of a document.

use std::sync::Arc;

use bson::{RawBson, RawBsonRef, RawDocument};
use mayfly_value::partition::PartitionKey;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Decides about a document.
pub type Predicate = Arc<dyn Fn(&RawDocument) -> bool + Send + Sync>;

/// The values of a document in a derived field, or why it cannot be in the index. None of them: it has no entries.
pub type Derive = Arc<dyn Fn(&RawDocument) -> std::result::Result<Vec<RawBson>, String> + Send + Sync>;

/// What stands in an index for a value, in the order that the index is in: the same for values that it takes for equal.
/// Nothing: the value itself.
pub type Fold = Arc<dyn Fn(RawBsonRef<'_>) -> Option<RawBson> + Send + Sync>;

/// Reads the filters of partial indexes, and the definitions of indexes with a derived field or folded values.
pub trait Predicates: Send + Sync + 'static {
    /// The filter as a function, or what is wrong with it.
    fn compile(&self, filter: &RawDocument) -> std::result::Result<Predicate, String>;

    /// What stands in the derived field of an index, by its definition.
    fn derive(&self, spec: &RawDocument) -> std::result::Result<Derive, String>;

    /// How the values of a folded index are kept, by its definition.
    fn fold(&self, spec: &RawDocument) -> std::result::Result<Fold, String>;
}

/// For engines without collections.
pub(crate) struct NoPredicates;

impl Predicates for NoPredicates {
    fn compile(&self, _: &RawDocument) -> std::result::Result<Predicate, String> {
        Err("this engine was opened without a filter language".into())
    }

    fn derive(&self, _: &RawDocument) -> std::result::Result<Derive, String> {
        Err("this engine was opened without kinds of indexes".into())
    }

    fn fold(&self, _: &RawDocument) -> std::result::Result<Fold, String> {
        Err("this engine was opened without rules of comparison".into())
    }
}

/// What makes a container a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionRules {
    /// Options that the front-end keeps, as BSON.
    #[serde(default, with = "hex_bytes")]
    pub options: Vec<u8>,
}

/// An index of a collection, or a rule that clients see as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexRule {
    /// Stands in the keys of its entries. Never used again.
    pub number: u32,
    /// What clients call it.
    pub name: String,
    /// The fields.
    pub fields: Vec<IndexField>,
    /// No two documents may have the same values.
    #[serde(default)]
    pub unique: bool,
    /// Documents without any of the fields have no entries.
    #[serde(default)]
    pub sparse: bool,
    /// Values are kept as [`Predicates::fold`] says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folded: bool,
    /// Only documents that this filter admits have entries, as BSON.
    #[serde(default, with = "hex_bytes", skip_serializing_if = "Vec::is_empty")]
    pub filter: Vec<u8>,
    /// The date rule that goes with it.
    #[serde(default)]
    pub date_rule: Option<u16>,
    /// Whether it stands for the container's default time to live and has no entries.
    #[serde(default)]
    pub is_default_ttl: bool,
    /// Documents are still being given their entries.
    #[serde(default)]
    pub building: bool,
    /// The definition as clients gave it, as BSON.
    #[serde(default, with = "hex_bytes")]
    pub spec: Vec<u8>,
}

impl IndexRule {
    /// Whether documents have entries in it.
    pub fn has_entries(&self) -> bool {
        !self.is_default_ttl && self.fields.iter().all(|field| field.kind != FieldKind::Other)
    }
}

/// One field of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexField {
    /// Where the value is: names with dots between.
    pub path: String,
    /// How it is kept.
    pub kind: FieldKind,
}

/// How the values of a field are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldKind {
    /// Ascending.
    Up,
    /// Descending.
    Down,
    /// By a hash.
    Hashed,
    /// A kind that is kept as a definition only, from before there were derived fields.
    Other,
    /// Computed by whoever opened the engine: words, places, paths. One of these in an index at most.
    Derived,
}

/// The one logical partition of a collection.
pub fn whole() -> PartitionKey {
    PartitionKey(Vec::new())
}

/// A filter of a rule, compiled; nothing if it has none.
pub(crate) fn compile_filter(filter: &[u8], predicates: &dyn Predicates) -> Result<Option<Predicate>> {
    if filter.is_empty() {
        return Ok(None);
    }
    let document = RawDocument::from_bytes(filter)?;
    predicates.compile(document).map(Some).map_err(Error::bad_request)
}

/// The function of a rule's derived field; nothing if it has none.
pub(crate) fn compile_derived(rule: &IndexRule, predicates: &dyn Predicates) -> Result<Option<Derive>> {
    if rule.fields.iter().all(|field| field.kind != FieldKind::Derived) {
        return Ok(None);
    }
    let spec = RawDocument::from_bytes(&rule.spec)?;
    predicates.derive(spec).map(Some).map_err(Error::bad_request)
}

/// How the values of a rule are kept; nothing if as they are.
pub(crate) fn compile_fold(rule: &IndexRule, predicates: &dyn Predicates) -> Result<Option<Fold>> {
    if !rule.folded {
        return Ok(None);
    }
    let spec = RawDocument::from_bytes(&rule.spec)?;
    predicates.fold(spec).map(Some).map_err(Error::bad_request)
}

/// Bytes as text of hexadecimal digits, for JSON.
mod hex_bytes {
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).map_err(D::Error::custom)?;
            u8::from_str_radix(pair, 16).map_err(D::Error::custom)
        });
        digits.collect()
    }
}
