//! Where to look: from a filter to ranges of `_id` or of an index.
//!
//! A plan may be wider than the filter and is never narrower. Strings are only narrowed where the index has them by the
//! collation of the query, or both have none; the values of a range are those of one type class. Indexes of words, places and all paths are asked in
//! `planner/searches.rs`.

mod order;
mod searches;

use std::ops::Bound as End;

use bson::{RawBson, RawBsonRef};
use mayfly_engine::{
    CollectionRange, DocumentId,
    collection::{FieldKind, IndexRule},
    secondary::encode_bound,
};
use mayfly_value::order::{Order, compare, type_rank};

pub use order::{in_order, is_in_place};

use crate::{
    collation::Collation,
    expression::Names,
    filter::{Bound, Condition, Filter},
    namespace::Collection,
    path::parse_index,
};

/// Where to look.
#[derive(Clone, Debug)]
pub enum Plan {
    /// At everything.
    Scan,
    /// At the documents with these ids.
    Ids(Vec<DocumentId>),
    /// At ranges of `_id`.
    IdRange(Vec<CollectionRange>),
    /// At ranges of an index.
    Index {
        /// The index's name.
        name: String,
        /// Its key pattern, as BSON.
        spec: Vec<u8>,
        /// The ranges, in order.
        ranges: Vec<CollectionRange>,
    },
}

/// The most values of an `$in` that are looked up one by one.
const VALUES_MAX: usize = 10_000;

/// Keys in an index are cut somewhere above this; what is longer does not narrow.
const PREFIX_BYTES_MAX: usize = 2048;

/// What to look at for a filter.
pub fn plan(
    collection: &Collection,
    filter: &Filter,
    collation: Option<&Collation>,
    hint: Option<&str>,
) -> Plan {
    if !collection.container.is_collection() || hint == Some("$natural") {
        return Plan::Scan;
    }
    let narrowing = filter.narrowing();
    let all: Vec<&Condition<'_>> = narrowing.all.iter().collect();
    let is_usable_anywhere = |condition: &&&Condition<'_>| collation.is_none() || plain(&condition.bound);
    let usable: Vec<&Condition<'_>> = all.iter().filter(is_usable_anywhere).copied().collect();
    if hint.is_none_or(|hint| hint == "_id_")
        && let Some(plan) = by_id(&usable)
    {
        return plan;
    }
    let mut rules = collection.container.definition().index_rules.iter().filter(|rule| is_usable(rule));
    if let Some(query) = filter.text() {
        // No other index says which documents have a word.
        let mut rules = rules.filter(|rule| rule.filter.is_empty() || has_all(rule, &usable));
        return rules.find_map(|rule| searches::by_text(rule, query, &usable)).unwrap_or(Plan::Scan);
    }
    if let Some(hint) = hint {
        // Whoever names an index gets what it holds, also if that is not everything.
        let named = rules.find(|rule| rule.name == hint);
        return named.map_or(Plan::Scan, |rule| {
            let narrowed = by_index(rule, &all, collation).map(|(_, plan)| plan);
            // A derived field has no values for most documents: nobody means only the others.
            narrowed.unwrap_or_else(|| if has_derived(rule) { Plan::Scan } else { whole(rule) })
        });
    }
    // A partial index lacks the documents that its filter does not admit. A sparse one lacks those without a value, and
    // only conditions that such documents fail make a range.
    let rules = rules.filter(|rule| rule.filter.is_empty() || has_all(rule, &usable));
    let ranked = rules.filter_map(|rule| by_index(rule, &all, collation)).max_by_key(|(score, _)| *score);
    ranked.map_or(Plan::Scan, |(_, plan)| plan)
}

/// Whether a partial index has every document that keeps the conditions.
pub(crate) fn has_all(rule: &IndexRule, given: &[&Condition<'_>]) -> bool {
    let filter = bson::RawDocument::from_bytes(&rule.filter);
    let Some(filter) = filter.ok().and_then(|filter| Filter::parse(filter, &Names::default()).ok()) else {
        return false;
    };
    let Some(needed) = filter.conditions() else { return false };
    needed.iter().all(|needed| {
        let mut same_path = given.iter().filter(|given| given.path == needed.path);
        same_path.any(|given| implies(&given.bound, &needed.bound))
    })
}

/// Whether whatever keeps one bound keeps the other.
fn implies(given: &Bound, needed: &Bound) -> bool {
    let order = |a: &RawBson, b: &RawBson| {
        let (a, b) = (a.as_raw_bson_ref(), b.as_raw_bson_ref());
        (type_rank(Order::Mongo, a) == type_rank(Order::Mongo, b)).then(|| compare(Order::Mongo, a, b))
    };
    let above = |value: &RawBson, low: &RawBson, open: bool| {
        order(value, low).is_some_and(|order| order.is_gt() || (!open && order.is_eq()))
    };
    let below = |value: &RawBson, high: &RawBson, open: bool| {
        order(value, high).is_some_and(|order| order.is_lt() || (!open && order.is_eq()))
    };
    match (given, needed) {
        (Bound::OneOf(values), Bound::Exists) => values.iter().all(is_simple),
        (Bound::Above(value, _) | Bound::Below(value, _), Bound::Exists) => is_simple(value),
        (Bound::Prefix(_) | Bound::Exists, Bound::Exists) => true,
        (Bound::OneOf(values), Bound::OneOf(needed)) => values
            .iter()
            .all(|value| needed.iter().any(|needed| order(value, needed).is_some_and(|o| o.is_eq()))),
        (Bound::OneOf(values), Bound::Above(low, inclusive)) => {
            values.iter().all(|value| is_simple(value) && above(value, low, !inclusive))
        }
        (Bound::OneOf(values), Bound::Below(high, inclusive)) => {
            values.iter().all(|value| is_simple(value) && below(value, high, !inclusive))
        }
        (Bound::Above(value, own), Bound::Above(low, inclusive)) => above(value, low, *own && !inclusive),
        (Bound::Below(value, own), Bound::Below(high, inclusive)) => below(value, high, *own && !inclusive),
        _ => false,
    }
}

/// All of an index.
fn whole(rule: &IndexRule) -> Plan {
    let all = CollectionRange::beginning_with(rule.number, Vec::new());
    Plan::Index { name: rule.name.clone(), spec: rule.spec.clone(), ranges: vec![all] }
}

/// Whether a bound means the same under every collation.
fn plain(bound: &Bound) -> bool {
    fn scalar(value: &RawBson) -> bool {
        !matches!(value, RawBson::String(_) | RawBson::Symbol(_) | RawBson::Document(_) | RawBson::Array(_))
    }
    match bound {
        Bound::OneOf(values) => values.iter().all(scalar),
        Bound::Above(value, _) | Bound::Below(value, _) => scalar(value),
        Bound::Prefix(_) => false,
        Bound::Exists | Bound::Place(_) => true,
    }
}

/// Arrays match by their items too, so a range of the value itself would miss them.
fn is_simple(value: &RawBson) -> bool {
    !matches!(value, RawBson::Array(_) | RawBson::Null | RawBson::Undefined | RawBson::RegularExpression(_))
}

fn by_id(conditions: &[&Condition<'_>]) -> Option<Plan> {
    let on_id = || conditions.iter().filter(|condition| condition.path == "_id");
    for condition in on_id() {
        if let Bound::OneOf(values) = &condition.bound
            && values.len() <= VALUES_MAX
            && values.iter().all(|value| is_simple(value) || matches!(value, RawBson::Null))
        {
            let mut ids: Vec<DocumentId> =
                values.iter().map(|value| DocumentId::value(value.as_raw_bson_ref())).collect();
            ids.sort();
            ids.dedup();
            return Some(Plan::Ids(ids));
        }
    }
    let (mut low, mut high) = (None, None);
    for condition in on_id() {
        match &condition.bound {
            Bound::Above(value, _) if is_ordered(value) => low = Some(value),
            Bound::Below(value, _) if is_ordered(value) => high = Some(value),
            _ => {}
        }
    }
    low.or(high)?;
    if let (Some(low), Some(high)) = (low, high)
        && rank(low) != rank(high)
    {
        return Some(Plan::Ids(Vec::new()));
    }
    // Both ends stay open where the class is left; the filter says exactly what belongs.
    let ends = |value: Option<&RawBson>| match value {
        Some(value) => End::Included(DocumentId::value(value.as_raw_bson_ref())),
        None => End::Unbounded,
    };
    let (low, high) = (ends(low), ends(high));
    Some(Plan::IdRange(vec![CollectionRange::Ids { low, high }]))
}

/// Whether ids stand in the order of such values. Very long texts do not.
fn is_ordered(value: &RawBson) -> bool {
    matches!(
        value,
        RawBson::Int32(_)
            | RawBson::Int64(_)
            | RawBson::Double(_)
            | RawBson::ObjectId(_)
            | RawBson::DateTime(_)
    )
}

fn rank(value: &RawBson) -> u8 {
    type_rank(Order::Mongo, value.as_raw_bson_ref())
}

/// Whether queries may look into an index.
pub(crate) fn is_usable(rule: &IndexRule) -> bool {
    let spec = bson::RawDocument::from_bytes(&rule.spec);
    let hidden = spec.is_ok_and(|spec| matches!(spec.get("hidden"), Ok(Some(RawBsonRef::Boolean(true)))));
    !rule.building && rule.has_entries() && !hidden && !counts_items(rule)
}

/// Whether a path of an index may number an item of an array: its entries do not have all that such a path may mean.
fn counts_items(rule: &IndexRule) -> bool {
    rule.fields.iter().any(|field| field.path.split('.').skip(1).any(|part| parse_index(part).is_some()))
}

/// Whether an index has a derived field, and so lacks the documents without values in it.
pub(crate) fn has_derived(rule: &IndexRule) -> bool {
    rule.fields.iter().any(|field| field.kind == FieldKind::Derived)
}

/// Whether a field of an index lies below the same name as a field before it. If an array stands there, a condition on each
/// may be kept by two of its items, and no key has both.
pub(crate) fn shares_array(rule: &IndexRule, place: usize) -> bool {
    let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    let Some(field) = rule.fields.get(place) else { return false };
    rule.fields.iter().take(place).any(|before| root(&before.path) == root(&field.path))
}

/// How the strings of a query stand in an index.
#[derive(Clone, Copy)]
enum Texts<'a> {
    AsTheyAre,
    Folded(&'a Collation),
    /// By another collation than the query's.
    Elsewhere,
}

impl<'a> Texts<'a> {
    fn of(rule: &IndexRule, collation: Option<&'a Collation>) -> Self {
        match (rule.folded, collation) {
            (false, None) => Self::AsTheyAre,
            (true, Some(collation)) if has_collation(rule, collation) => Self::Folded(collation),
            _ => Self::Elsewhere,
        }
    }

    /// Whether a condition tells where in the index to look.
    fn narrow(self, bound: &Bound) -> bool {
        match self {
            Self::AsTheyAre => true,
            // What begins with a text is no matter of collations.
            Self::Folded(_) => !matches!(bound, Bound::Prefix(_)),
            Self::Elsewhere => plain(bound),
        }
    }

    /// A value as it stands in the index.
    fn encode(self, value: &RawBson, kind: FieldKind) -> Vec<u8> {
        let value = value.as_raw_bson_ref();
        match self {
            Self::Folded(collation) => {
                let folded = collation.fold(value);
                encode_bound(folded.as_ref().map_or(value, RawBson::as_raw_bson_ref), kind)
            }
            Self::AsTheyAre | Self::Elsewhere => encode_bound(value, kind),
        }
    }
}

fn has_collation(rule: &IndexRule, collation: &Collation) -> bool {
    let spec = bson::RawDocument::from_bytes(&rule.spec).ok();
    let own = spec.and_then(|spec| bson::Document::try_from(spec.get_document("collation").ok()?).ok());
    own.as_ref() == Some(collation.spec())
}

/// The ranges of an index that a filter leaves, and how much they narrow.
fn by_index(
    rule: &IndexRule,
    conditions: &[&Condition<'_>],
    collation: Option<&Collation>,
) -> Option<(usize, Plan)> {
    let texts = Texts::of(rule, collation);
    let usable: Vec<&Condition<'_>> =
        conditions.iter().filter(|condition| texts.narrow(&condition.bound)).copied().collect();
    let conditions = &usable[..];
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut score = 0;
    let mut ranges = None;
    if has_derived(rule) {
        return searches::by_derived(rule, conditions);
    }
    for (place, field) in rule.fields.iter().enumerate() {
        if prefixes.iter().any(|prefix| prefix.len() > PREFIX_BYTES_MAX) || shares_array(rule, place) {
            break;
        }
        let mut on_field = conditions.iter().filter(|condition| condition.path == field.path);
        let equal = on_field.clone().find_map(|condition| match &condition.bound {
            Bound::OneOf(values) if values.iter().all(is_simple) => Some(values),
            _ => None,
        });
        if let Some(values) = equal {
            if prefixes.len() * values.len() > VALUES_MAX {
                break;
            }
            let encoded: Vec<Vec<u8>> = values.iter().map(|value| texts.encode(value, field.kind)).collect();
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| encoded.iter().map(move |value| [&prefix[..], &value[..]].concat()))
                .collect();
            score += 4;
            continue;
        }
        if field.kind == FieldKind::Hashed {
            break;
        }
        // One bound is enough: on an array, two bounds may be kept by two different items.
        let range = on_field.find_map(|condition| one_sided(&condition.bound, field.kind, texts));
        if let Some((low, high)) = range {
            score += 2;
            ranges = Some(
                prefixes.iter().map(|prefix| bounded(rule.number, prefix, &low, &high)).collect::<Vec<_>>(),
            );
        }
        break;
    }
    if score == 0 {
        return None;
    }
    let whole = |prefix: &Vec<u8>| CollectionRange::beginning_with(rule.number, prefix.clone());
    let mut ranges = ranges.unwrap_or_else(|| prefixes.iter().map(whole).collect());
    ranges.dedup_by(|a, b| format!("{a:?}") == format!("{b:?}"));
    Some((score, Plan::Index { name: rule.name.clone(), spec: rule.spec.clone(), ranges }))
}

type Ends = (End<Vec<u8>>, End<Vec<u8>>);

fn one_sided(bound: &Bound, kind: FieldKind, texts: Texts<'_>) -> Option<Ends> {
    let (low, high) = match bound {
        Bound::Above(value, _) if is_simple(value) => {
            (End::Included(texts.encode(value, kind)), End::Unbounded)
        }
        Bound::Below(value, _) if is_simple(value) => {
            (End::Unbounded, End::Included(texts.encode(value, kind)))
        }
        Bound::Prefix(text) if !text.is_empty() && kind == FieldKind::Up => {
            let mut from = encode_bound(RawBsonRef::String(text), kind);
            // Without the end of the text.
            from.truncate(from.len().saturating_sub(2));
            (End::Included(from.clone()), End::Included(from))
        }
        _ => return None,
    };
    Some(if kind == FieldKind::Down && !matches!(bound, Bound::Prefix(_)) {
        (high, low)
    } else {
        (low, high)
    })
}

fn bounded(number: u32, prefix: &[u8], low: &End<Vec<u8>>, high: &End<Vec<u8>>) -> CollectionRange {
    let at = |end: &End<Vec<u8>>| match end {
        End::Included(bytes) => End::Included([prefix, &bytes[..]].concat()),
        End::Excluded(bytes) => End::Excluded([prefix, &bytes[..]].concat()),
        End::Unbounded => End::Included(prefix.to_vec()),
    };
    CollectionRange::Index { number, low: at(low), high: at(high) }
}
