//! From what a filter says about a value to ranges of index keys.
//!
//! A key may hold less than a value: doubles for integers, the start of a long text. Where that matters the range is
//! wider than the span, and says so.

use std::ops::Bound;

use mayfly_engine::ValueRange;
use mayfly_sql::{
    Value,
    hints::{Bounded, Span},
    value::Kind,
};
use mayfly_value::{
    keycode::{self, STRING_BYTES_MAX},
    order::Order,
};

/// Ranges of keys, and whether they hold exactly the values of the spans they were made from.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// Ascending, none overlaps another.
    pub ranges: Vec<ValueRange>,
    /// Whether nothing else is in them.
    pub exact: bool,
    /// Whether each is one whole value.
    pub single: bool,
}

/// The ranges of some spans; none if an index has no place for one of them.
pub fn ranges(spans: &[Span]) -> Option<Ranges> {
    let mut exact = true;
    let single = spans.iter().all(|span| matches!(span, Span::Value(_)));
    let mut all = Vec::new();
    for span in spans {
        let (range, is_exact) = range(span)?;
        exact &= is_exact;
        all.push(range);
    }
    let ranges = if single { distinct(all) } else { merged(all) };
    Some(Ranges { ranges, exact, single })
}

impl Ranges {
    /// The values that are in both.
    pub fn and(self, other: Ranges) -> Ranges {
        let exact = self.exact && other.exact;
        let (few, many) = if other.single { (other, self) } else { (self, other) };
        let single = few.single;
        let many: Vec<_> = many.ranges.into_iter().map(bytes_of).collect();
        let mut ranges = Vec::new();
        for range in few.ranges {
            let (start, end) = bytes_of(range.clone());
            for (low, high) in &many {
                let start = start.clone().max(low.clone());
                let end = match (&end, high) {
                    (Some(a), Some(b)) => Some(a.min(b).clone()),
                    (a, b) => a.as_ref().or(b.as_ref()).cloned(),
                };
                if end.as_ref().is_some_and(|end| start >= *end) {
                    continue;
                }
                ranges.push(if single { range.clone() } else { range_of((start, end)) });
            }
        }
        ranges.dedup();
        Ranges { ranges, exact, single }
    }
}

/// The only value of some spans.
pub fn one(spans: &[Span]) -> Option<(Vec<u8>, bool)> {
    match spans {
        [Span::Value(value)] => encoded(value),
        _ => None,
    }
}

fn range(span: &Span) -> Option<(ValueRange, bool)> {
    match span {
        Span::Value(value) => encoded(value).map(|(bytes, exact)| (ValueRange::one(bytes), exact)),
        Span::Between { low, high } => between(low, high),
        Span::StartsWith(prefix) => {
            // Without the two bytes that end a string.
            let (mut bytes, exact) = encoded(&Value::string(prefix.as_str()))?;
            bytes.truncate(bytes.len() - 2);
            Some((beginning_with(bytes), exact))
        }
        Span::Kind(kind) => {
            let sample = match kind {
                Kind::Null => Value::Null,
                Kind::Bool => Value::Bool(false),
                Kind::Number => Value::Int(0),
                Kind::String => Value::string(""),
                Kind::Undefined | Kind::Array | Kind::Object => return None,
            };
            Some((beginning_with(vec![*encoded(&sample)?.0.first()?]), true))
        }
    }
}

/// All values whose bytes begin so.
fn beginning_with(bytes: Vec<u8>) -> ValueRange {
    let high = end_of(&bytes).map_or(Bound::Unbounded, Bound::Excluded);
    ValueRange { low: Bound::Included(bytes), high }
}

/// The first bytes after all that begin with `bytes`.
fn end_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let last = bytes.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = bytes.get(..=last)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

fn between(low: &Bounded, high: &Bounded) -> Option<(ValueRange, bool)> {
    let end = |bounded: &Bounded| match bounded {
        Bounded::Inclusive(value) => encoded(value).map(|(bytes, exact)| Some((bytes, exact, true))),
        Bounded::Exclusive(value) => encoded(value).map(|(bytes, exact)| Some((bytes, exact, false))),
        Bounded::Open => Some(None),
    };
    let (low, high) = (end(low)?, end(high)?);
    let kind = *low.as_ref().or(high.as_ref())?.0.first()?;
    if low.iter().chain(&high).any(|(bytes, ..)| bytes.first() != Some(&kind)) {
        return None;
    }
    let exact = low.iter().chain(&high).all(|(_, exact, _)| *exact);
    // A value that its key does not hold whole is taken in, whatever it compares to.
    let bound = |(bytes, exact, inclusive): (Vec<u8>, bool, bool)| match inclusive || !exact {
        true => Bound::Included(bytes),
        false => Bound::Excluded(bytes),
    };
    let low = low.map_or(Bound::Included(vec![kind]), bound);
    let high = high.map_or(Bound::Excluded(vec![kind + 1]), bound);
    Some((ValueRange { low, high }, exact))
}

/// A scalar as index keys have it, and whether the key says all about it.
fn encoded(value: &Value<'_>) -> Option<(Vec<u8>, bool)> {
    /// Integers from 2^53 on share doubles.
    const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;
    let exact = match value {
        Value::Null | Value::Bool(_) => true,
        Value::Int(_) | Value::Double(_) => value.as_f64().is_some_and(|number| number.abs() < EXACT_BELOW),
        Value::String(text) => text.len() <= STRING_BYTES_MAX,
        Value::Undefined | Value::Array(_) | Value::Object(_) => return None,
    };
    let mut bytes = Vec::new();
    keycode::push_value(&mut bytes, value.to_bson()?.as_raw_bson_ref(), Order::Cosmos);
    Some((bytes, exact))
}

/// The key bytes of a sort key that an index holds whole.
pub fn key_bytes(value: &Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::Undefined => {
            let mut bytes = Vec::new();
            keycode::push_undefined(&mut bytes, Order::Cosmos);
            Some(bytes)
        }
        value => encoded(value).filter(|(_, exact)| *exact).map(|(bytes, _)| bytes),
    }
}

fn distinct(mut all: Vec<ValueRange>) -> Vec<ValueRange> {
    all.sort_by(|a, b| start(a).cmp(start(b)));
    all.dedup();
    all
}

fn start(range: &ValueRange) -> &[u8] {
    match &range.low {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
        Bound::Unbounded => &[],
    }
}

/// One range where several overlap.
fn merged(all: Vec<ValueRange>) -> Vec<ValueRange> {
    if all.len() == 1 {
        return all;
    }
    let mut spans: Vec<(Vec<u8>, Option<Vec<u8>>)> = all.into_iter().map(bytes_of).collect();
    spans.retain(|(start, end)| end.as_ref().is_none_or(|end| start < end));
    spans.sort();
    let mut merged: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some((_, last)) if last.as_ref().is_none_or(|last| start <= *last) => {
                if last.is_some() && end.as_ref().is_none_or(|end| Some(end) > last.as_ref()) {
                    *last = end;
                }
            }
            _ => merged.push((start, end)),
        }
    }
    merged.into_iter().map(range_of).collect()
}

fn range_of((start, end): (Vec<u8>, Option<Vec<u8>>)) -> ValueRange {
    ValueRange { low: Bound::Included(start), high: end.map_or(Bound::Unbounded, Bound::Excluded) }
}

/// A range as its first bytes and the first bytes after it.
fn bytes_of(range: ValueRange) -> (Vec<u8>, Option<Vec<u8>>) {
    let start = match range.low {
        Bound::Included(bytes) => bytes,
        Bound::Excluded(bytes) => end_of(&bytes).unwrap_or(bytes),
        Bound::Unbounded => Vec::new(),
    };
    let end = match range.high {
        Bound::Included(bytes) => end_of(&bytes),
        Bound::Excluded(bytes) => Some(bytes),
        Bound::Unbounded => None,
    };
    (start, end)
}

/// The ranges of a component of a composite index, after the components before it.
pub fn component(before: &[u8], range: &ValueRange, descending: bool) -> ValueRange {
    let put = |bytes: &[u8]| {
        let mut all = before.to_vec();
        all.extend(bytes.iter().map(|byte| if descending { !*byte } else { *byte }));
        all
    };
    let bound = |bound: &Bound<Vec<u8>>| match bound {
        Bound::Included(bytes) => Bound::Included(put(bytes)),
        Bound::Excluded(bytes) => Bound::Excluded(put(bytes)),
        Bound::Unbounded => Bound::Included(before.to_vec()),
    };
    let (low, high) = (bound(&range.low), bound(&range.high));
    match descending {
        true => ValueRange { low: high, high: low },
        false => ValueRange { low, high },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: i64) -> Value<'static> {
        Value::Int(n)
    }

    fn open_to(high: i64) -> Span {
        Span::Between { low: Bounded::Open, high: Bounded::Exclusive(number(high)) }
    }

    #[test]
    fn overlapping_ranges_become_one() {
        let above = Span::Between { low: Bounded::Inclusive(number(5)), high: Bounded::Open };
        let found = ranges(&[above, open_to(7), Span::Value(number(6))]).unwrap();
        assert_eq!(found.ranges.len(), 1);
        assert!(found.exact && !found.single);
        let apart = ranges(&[Span::Value(number(9)), open_to(7), Span::StartsWith("a".into())]).unwrap();
        assert_eq!(apart.ranges.len(), 3);
    }

    #[test]
    fn equal_values_are_looked_for_once() {
        let found =
            ranges(&[Span::Value(number(2)), Span::Value(number(1)), Span::Value(Value::Double(2.0))]);
        let found = found.unwrap();
        assert_eq!(found.ranges.len(), 2);
        assert!(found.single);
    }

    #[test]
    fn two_conditions_leave_what_is_in_both() {
        let above = |n| Span::Between { low: Bounded::Inclusive(number(n)), high: Bounded::Open };
        let at = |span: Span| ranges(&[span]).unwrap();
        let both = at(above(3)).and(at(open_to(5)));
        let [range] = &both.ranges[..] else { panic!("{both:?}") };
        let inside = |n| {
            let bytes = encoded(&number(n)).unwrap().0;
            let (start, end) = bytes_of(range.clone());
            bytes >= start && end.is_none_or(|end| bytes < end)
        };
        assert_eq!([2, 3, 4, 5].map(inside), [false, true, true, false]);
        assert!(at(above(5)).and(at(open_to(5))).ranges.is_empty());
        let some = ranges(&[1, 4, 9].map(|n| Span::Value(number(n)))).unwrap().and(at(above(3)));
        assert!(some.single && some.exact);
        assert_eq!(some.ranges.len(), 2);
        assert!(at(Span::Kind(Kind::String)).and(at(open_to(5))).ranges.is_empty());
    }

    #[test]
    fn what_a_key_does_not_hold_whole_is_taken_in() {
        let above = |low| Span::Between { low: Bounded::Exclusive(low), high: Bounded::Open };
        assert!(!ranges(&[above(number(1 << 60))]).unwrap().exact);
        assert!(ranges(&[above(number(1 << 40))]).unwrap().exact);
        assert!(!ranges(&[Span::StartsWith("x".repeat(600))]).unwrap().exact);
        assert!(ranges(&[Span::Value(Value::array([]))]).is_none());
    }
}
