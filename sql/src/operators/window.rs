//! Windows: a page of the rows of a query that has to see all documents, without keeping all rows.
//!
//! Every row has a [`Place`] among all rows: its sort keys, then what tells rows with equal keys apart. Places do not
//! depend on which other documents there are, nor on the order in which they come. So a page is the lowest rows after
//! the place where the page before ended: rows of documents that did not change are given once each, whatever
//! happens to the others in between, and no more rows are kept than one page has.
//!
//! | query | sort keys | then |
//! |---|---|---|
//! | ORDER BY | those of the query | the document, its rows in their order |
//! | GROUP BY | the group keys | |
//! | DISTINCT | the row itself | |

use std::cmp::Ordering;

use bson::{RawBinaryRef, RawBsonRef, spec::BinarySubtype};
use mayfly_value::digest::{LEN, digest};

use super::memory::Memory;
use super::stage::Progress;
use crate::ast::Direction;
use crate::error::EvalError;
use crate::value::Value;
use crate::value::compare::order;
use crate::value::key::write_key;

/// Where a row stands among all rows of its query.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its sort keys.
    pub keys: Vec<Value<'static>>,
    /// What comes after them, compared as bytes.
    pub tie: Vec<u8>,
}

/// Which rows a page has.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Only rows after this place.
    pub after: Option<After>,
    /// At most so many rows.
    pub rows: usize,
    /// About so many bytes of them.
    pub bytes: usize,
    /// What the pages before have skipped and given.
    pub progress: Progress,
    /// Whether documents come in the order of the query already.
    pub in_order: bool,
    /// Which way rows with equal keys go.
    pub ties: Ties,
}

/// What rows come after.
#[derive(Debug, Clone)]
pub enum After {
    /// This place.
    Place(Place),
    /// The row whose tie has this digest: its place was too long to be written down. All rows are kept to find it.
    Digest([u8; LEN]),
}

/// Which way rows with equal sort keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ties {
    /// By document.
    #[default]
    Forward,
    /// The other way round.
    Reverse,
}

/// A page of rows.
#[derive(Debug)]
pub struct WindowPage<'p> {
    /// The rows.
    pub rows: Vec<Value<'p>>,
    /// Where the next page starts; none if there is none.
    pub next: Option<Place>,
    /// With this page.
    pub progress: Progress,
    /// Whether a sort key was not one that an index holds whole.
    pub inexact: bool,
    /// Whether the row that the page starts after is gone, and with it the place.
    pub lost: bool,
}

impl Place {
    /// What stands for a place that is too long to be written down.
    pub fn digest(&self) -> [u8; LEN] {
        digest(RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Generic, bytes: &self.tie }))
    }
}

/// Keeps the lowest rows after a place.
#[derive(Debug)]
pub(crate) struct Collector {
    directions: Vec<Direction>,
    /// Equal rows only once.
    distinct: bool,
    window: Window,
    after: Option<Place>,
    /// How many rows are wanted, those that are skipped included.
    wanted: usize,
    rows: Vec<Collected>,
    /// Bytes of `rows`.
    bytes: usize,
    /// The highest place that can still be in the page, once there are more rows than wanted.
    ceiling: Option<Place>,
    /// The document whose rows come, and how many came.
    document: Vec<u8>,
    row_of_document: u32,
    inexact: bool,
    taken: u64,
}

#[derive(Debug)]
struct Collected {
    place: Place,
    row: Value<'static>,
    size: usize,
}

/// Rows beyond the wanted ones that are kept before the highest are dropped: a sort takes them all.
const SLACK: usize = 64;

impl Collector {
    pub(crate) fn new(
        directions: Vec<Direction>,
        distinct: bool,
        window: Window,
        left: RowsLeft,
    ) -> Collector {
        let rows = left.limit.map_or(window.rows as u64, |limit| limit.min(window.rows as u64));
        let wanted = usize::try_from(rows.saturating_add(left.offset)).unwrap_or(usize::MAX);
        let after = match &window.after {
            Some(After::Place(place)) => Some(place.clone()),
            _ => None,
        };
        Collector {
            directions,
            distinct,
            window,
            after,
            wanted,
            rows: Vec::new(),
            bytes: 0,
            ceiling: None,
            document: Vec::new(),
            row_of_document: 0,
            inexact: false,
            taken: 0,
        }
    }

    /// How many rows were kept, for a while at least.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// From now on rows are those of this document.
    pub(crate) fn begin(&mut self, document: &[u8]) {
        self.document.clear();
        self.document.extend_from_slice(document);
        self.row_of_document = 0;
    }

    /// Whether further documents cannot change the page.
    pub(crate) fn is_done(&self) -> bool {
        self.wanted == 0 || (self.window.in_order && self.ceiling.is_some())
    }

    pub(crate) fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// Whether a row with these keys can be in the page. If not, it need not be made.
    pub(crate) fn admits(&self, keys: &[Value<'_>]) -> bool {
        let low = self.after.as_ref();
        low.is_none_or(|low| self.compare_keys(keys, &low.keys) != Ordering::Less)
            && self
                .ceiling
                .as_ref()
                .is_none_or(|high| self.compare_keys(keys, &high.keys) != Ordering::Greater)
    }

    /// The next row of the document is not in the page.
    pub(crate) fn pass_over(&mut self) {
        self.row_of_document += 1;
    }

    /// Takes the next row of the document, which weighs `size`.
    pub(crate) fn add(
        &mut self,
        keys: Vec<Value<'static>>,
        row: Value<'_>,
        size: usize,
        memory: &mut Memory,
    ) -> Result<(), EvalError> {
        let mut tie = Vec::new();
        if !self.distinct {
            tie.reserve_exact(self.document.len() + size_of::<u32>());
            tie.extend_from_slice(&self.document);
            tie.extend_from_slice(&self.row_of_document.to_be_bytes());
            self.row_of_document += 1;
        }
        self.put(Place { keys, tie }, row, size, memory)
    }

    /// Takes a row whose keys are all there is to its place.
    pub(crate) fn put(
        &mut self,
        place: Place,
        row: Value<'_>,
        size: usize,
        memory: &mut Memory,
    ) -> Result<(), EvalError> {
        self.inexact |= !place.keys.iter().all(is_exact);
        let after = self.after.as_ref();
        if after.is_some_and(|after| self.compare(&place, after) != Ordering::Greater)
            || self.ceiling.as_ref().is_some_and(|high| self.compare(&place, high) != Ordering::Less)
        {
            return Ok(());
        }
        if self.window.in_order && self.is_full() {
            self.ceiling = Some(place);
            return Ok(());
        }
        let keys: usize = place.keys.iter().map(Value::size).sum();
        let size = size_of::<Collected>() + keys + place.tie.len() + size;
        memory.take(size)?;
        self.bytes += size;
        self.taken += 1;
        self.rows.push(Collected { place, row: row.into_owned(), size });
        let many = self.wanted.saturating_mul(2).saturating_add(SLACK);
        let is_much = self.rows.len() > many || self.bytes > self.window.bytes.saturating_mul(2);
        if is_much && !self.window.in_order && !self.is_searching() {
            self.cut_down(memory);
        }
        Ok(())
    }

    /// Whether the place to start after is to be found among all rows.
    fn is_searching(&self) -> bool {
        matches!(self.window.after, Some(After::Digest(_)))
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.wanted || self.bytes > self.window.bytes
    }

    /// Sorts, and drops what cannot be in the page.
    fn cut_down(&mut self, memory: &mut Memory) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.compare(&a.place, &b.place));
        if self.distinct {
            rows.dedup_by(|b, a| {
                let same = self.compare(&a.place, &b.place) == Ordering::Equal;
                if same {
                    memory.give_back(b.size);
                    self.bytes -= b.size;
                }
                same
            });
        }
        let mut bytes = 0;
        let fits = rows.iter().take_while(|row| {
            let first = bytes == 0;
            bytes += row.size;
            first || bytes <= self.window.bytes
        });
        let keep = fits.count().min(self.wanted);
        if keep < rows.len() {
            let dropped: usize = rows.iter().skip(keep).map(|row| row.size).sum();
            memory.give_back(dropped);
            self.bytes -= dropped;
            let lowest = rows.drain(keep..).next();
            self.ceiling = lowest.map(|row| row.place);
        }
        self.rows = rows;
    }

    /// The page.
    pub(crate) fn finish<'p>(
        mut self,
        offset: u64,
        limit: Option<u64>,
        memory: &mut Memory,
    ) -> WindowPage<'p> {
        let lost = !self.find_start();
        if !self.window.in_order {
            self.cut_down(memory);
        }
        let mut progress = self.window.progress;
        let mut page = Vec::new();
        let mut last = None;
        for Collected { place, row, .. } in self.rows {
            if progress.skipped < offset {
                progress.skipped += 1;
            } else if limit.is_none_or(|limit| progress.given < limit) {
                progress.given += 1;
                page.push(row);
            }
            last = Some(place);
        }
        let is_over = limit.is_some_and(|limit| progress.given >= limit);
        let next = if is_over || self.ceiling.is_none() { None } else { last };
        WindowPage { rows: page, next, progress, inexact: self.inexact, lost }
    }

    /// Drops the rows up to the one whose digest is known; false if it is not there.
    fn find_start(&mut self) -> bool {
        let Some(After::Digest(digest)) = self.window.after else { return true };
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.compare(&a.place, &b.place));
        match rows.iter().position(|row| row.place.digest() == digest) {
            Some(found) => {
                self.rows = rows.split_off(found + 1);
                true
            }
            None => false,
        }
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let ties = || match self.window.ties {
            Ties::Forward => a.tie.cmp(&b.tie),
            Ties::Reverse => b.tie.cmp(&a.tie),
        };
        self.compare_keys(&a.keys, &b.keys).then_with(ties)
    }

    fn compare_keys(&self, a: &[Value<'_>], b: &[Value<'_>]) -> Ordering {
        compare_keys(&self.directions, a, b)
    }
}

/// What is left of OFFSET and LIMIT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsLeft {
    pub offset: u64,
    pub limit: Option<u64>,
}

fn compare_keys(directions: &[Direction], a: &[Value<'_>], b: &[Value<'_>]) -> Ordering {
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        let by_key = directed(order(a, b), directions.get(place));
        if by_key != Ordering::Equal {
            return by_key;
        }
    }
    Ordering::Equal
}

/// The order of places that are all in their keys.
pub(crate) fn compare_places(a: &Place, b: &Place) -> Ordering {
    compare_keys(&[], &a.keys, &b.keys)
}

fn directed(ordering: Ordering, direction: Option<&Direction>) -> Ordering {
    match direction {
        Some(Direction::Descending) => ordering.reverse(),
        _ => ordering,
    }
}

/// The sort keys of a group or of a distinct row. Long ones go by a digest, after all others: a place has to fit a
/// continuation, and groups only need *an* order.
pub(crate) fn place_keys(values: &[Value<'_>]) -> Vec<Value<'static>> {
    const BYTES_MAX: usize = 400;
    let size: usize = values.iter().map(Value::size).sum();
    if size <= BYTES_MAX {
        return std::iter::once(Value::Int(0)).chain(values.iter().cloned().map(Value::into_owned)).collect();
    }
    let mut key = Vec::new();
    values.iter().for_each(|value| write_key(value, &mut key));
    let digest = digest(RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::Generic, bytes: &key }));
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![Value::Int(1), Value::string(text)]
}

/// Whether an index key holds the whole value.
fn is_exact(value: &Value<'_>) -> bool {
    /// Integers from 2^53 on share doubles.
    const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Undefined | Value::Null | Value::Bool(_) => true,
        Value::Int(_) | Value::Double(_) => value.as_f64().is_some_and(|number| number.abs() < EXACT_BELOW),
        Value::String(text) => text.len() <= mayfly_value::keycode::STRING_BYTES_MAX,
        Value::Array(_) | Value::Object(_) => false,
    }
}
