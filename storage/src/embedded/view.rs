//! Reading: a moment of both trees, and pages of it.
//!
//! The trees take in a group key by key. Reading them as they are would show half of it. So the committer, which alone
//! knows when a group is complete, leaves a [`Moment`] behind after each one, and every read, also a single get, is of
//! the latest moment.
//!
//! A moment keeps the layers that the trees had then (`layers.rs`): later ones may lack what is merged away and what it still
//! shows. Pages are read from their blocks (`rows.rs`), or backward row by row (`backward.rs`).
//!
//! A single row is looked for among those that were read lately (`hot.rs`) first.
//!
//! Holds: a read sees each group whole or not at all, and waits for no lock that is held during a sync.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::block_in_place,
};

use super::{
    backward::Backward,
    hot::HotRows,
    layers::Layers,
    rows::{Asked, Fill, Of, Rows},
    seen::Sight,
    trees::{PerSpace, Trees, failed},
};
use crate::{
    Result,
    batch::{check_key, check_scan},
    store::{BoxFuture, Direction, Keep, Key, KeyRange, MayHold, Page, PageLimit, Sieved, Snapshot, Space},
};

/// Pages above this many rows leave the runtime's worker first, or they would hold it for milliseconds: a row takes
/// 0.5 to 4 µs (bench). Smaller ones are done before another thread could take over.
const INLINE_ROWS_MAX: usize = 1024;

/// Rows that a page has room for from the start, and what their keys are about as long as: enough for most questions, and
/// little to make in vain.
const ROWS_AT_FIRST: usize = 16;
const KEY_BYTES: usize = 64;

/// Rows whose keys share a buffer: whoever keeps a row of a page keeps this many keys, and not all.
const KEYS_TOGETHER: usize = 64;

/// Rows that a moment remembers, and how long their values may be: there is a moment for each group of writes.
const KNOWN_PLACES: usize = 8;
const KNOWN_BYTES_MAX: usize = 64;

/// The latest complete group.
#[derive(Clone)]
pub struct Moment(Arc<Latest>);

struct Latest {
    trees: Trees,
    /// Of the tree that has documents.
    hot: HotRows,
    /// Every read takes it, and so no read writes anything to do so: processors would take it from each other.
    present: ArcSwap<Present>,
    /// Held by who writes a group. False while one is half written, and for good if that failed.
    is_whole: Mutex<bool>,
}

/// A moment.
struct Present {
    /// One more than that of the moment before.
    number: u64,
    sight: Sight,
    layers: PerSpace<Arc<Layers>>,
    /// Rows of the small tree that were looked for at this moment, the first for each place. Nearly every read looks for
    /// the counter of its slot.
    known: [OnceLock<Known>; KNOWN_PLACES],
}

/// A row that was found, or was not there.
struct Known {
    key: Box<[u8]>,
    value: Option<Box<[u8]>>,
}

impl Present {
    /// Where a row is, if it is known.
    fn known_at(&self, key: &[u8]) -> &OnceLock<Known> {
        let sum = key.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        &self.known[sum % KNOWN_PLACES]
    }

    fn of(trees: &Trees, number: u64) -> Self {
        // Before the number: nothing in them may be later than what is seen.
        let layers = PerSpace { small: trees.layers.small.keep(), large: trees.layers.large.keep() };
        let sight = trees.seen.at(trees.visible_seqno());
        let known = [const { OnceLock::new() }; KNOWN_PLACES];
        Self { number, sight, layers, known }
    }
}

impl Latest {
    fn find(&self, at: &Present, space: Space, key: &[u8]) -> Result<Option<lsm_tree::Slice>> {
        self.trees.get_from(at.layers.of(space), space, key, at.sight.seqno())
    }
}

impl Moment {
    /// The present. Only for who knows that no group is half written. Keeps at most so many bytes of rows that were read.
    pub fn of(trees: Trees, hot_bytes: u64) -> Self {
        let present = ArcSwap::from_pointee(Present::of(&trees, 1));
        let hot = HotRows::new(hot_bytes);
        Self(Arc::new(Latest { trees, hot, present, is_whole: Mutex::new(true) }))
    }

    /// Has a group written, from when it has its number on, and moves on to the present. Only for the committer, which says
    /// what it writes.
    pub fn write(&self, group: impl FnOnce(&dyn Fn(Space, &[u8])) -> Result<()>) -> Result<()> {
        let mut is_whole = self.0.is_whole.lock();
        *is_whole = false;
        let next = self.latest().number + 1;
        group(&|space, key| self.note(space, key, next))?;
        *is_whole = true;
        self.advance();
        Ok(())
    }

    /// Moves on to the present, if no group is under way, which would do it. For when layers have changed and nobody writes:
    /// they are cheaper to read than those of the moment, which are freed with it.
    pub fn catch_up(&self) {
        if self.0.is_whole.try_lock().is_some_and(|is_whole| *is_whole) {
            self.advance();
        }
    }

    fn advance(&self) {
        let number = self.latest().number + 1;
        self.0.present.store(Arc::new(Present::of(&self.0.trees, number)));
    }

    /// Has a key looked for in the trees the next time: somebody knew something else about it than they have. Only for the
    /// committer.
    pub fn doubt(&self, key: &Key) {
        self.note(key.space, &key.bytes, self.latest().number + 1);
    }

    /// Has all keys looked for in the trees: rows were dropped without a write, and the present is after that.
    pub fn forget_read(&self) {
        self.0.hot.forget_before(self.latest().number);
    }

    fn note(&self, space: Space, key: &[u8], at: u64) {
        if space == Space::Large {
            self.0.hot.wrote(key, at);
        }
    }

    /// The value at `key`.
    pub fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        self.get_at(&self.latest(), key, Fill::Caches)
    }

    /// The values at two keys, of the same moment.
    pub fn get_both(&self, [first, second]: &[Key; 2]) -> Result<[Option<Bytes>; 2]> {
        let at = self.latest();
        Ok([self.get_at(&at, first, Fill::Caches)?, self.get_at(&at, second, Fill::Caches)?])
    }

    fn get_at(&self, at: &Present, key: &Key, fill: Fill) -> Result<Option<Bytes>> {
        check_key(key)?;
        match key.space {
            Space::Large => self.get_large(at, &key.bytes, fill),
            Space::Small => self.get_small(at, &key.bytes),
        }
    }

    fn get_large(&self, at: &Present, key: &[u8], fill: Fill) -> Result<Option<Bytes>> {
        if let Some(value) = self.0.hot.find(key, at.number) {
            return Ok(Some(value));
        }
        let value = self.0.find(at, Space::Large, key)?.map(Bytes::from);
        if let Some(value) = value.as_ref().filter(|_| fill == Fill::Caches) {
            self.0.hot.keep(key, at.number, value);
        }
        Ok(value)
    }

    fn get_small(&self, at: &Present, key: &[u8]) -> Result<Option<Bytes>> {
        let known = at.known_at(key);
        if let Some(row) = known.get().filter(|row| *row.key == *key) {
            // A copy: these are a few bytes, and who counts its users is written by all processors.
            return Ok(row.value.as_deref().map(Bytes::copy_from_slice));
        }
        let value = self.0.find(at, Space::Small, key)?;
        if value.as_ref().is_none_or(|value| value.len() <= KNOWN_BYTES_MAX) {
            let _ = known.set(Known { key: key.into(), value: value.as_deref().map(Into::into) });
        }
        Ok(value.map(Bytes::from))
    }

    /// The present value of a row of the large tree, if somebody has read it lately.
    pub fn lately_read(&self, key: &Key) -> Option<Bytes> {
        let is_large = key.space == Space::Large;
        is_large.then(|| self.0.hot.find(&key.bytes, self.latest().number)).flatten()
    }

    /// A view that stays at this moment.
    pub fn view(&self) -> View {
        View { at: self.0.present.load_full(), moment: self.clone(), fill: Fill::Caches }
    }

    /// The same for work that reads many rows once.
    pub fn background_view(&self) -> View {
        View { fill: Fill::Nothing, ..self.view() }
    }

    /// For as long as a look takes.
    fn latest(&self) -> impl Deref<Target = Arc<Present>> {
        self.0.present.load()
    }
}

/// Both trees as they were at one moment.
pub struct View {
    at: Arc<Present>,
    moment: Moment,
    fill: Fill,
}

impl View {
    /// The keys of `range` in ascending order, at most `rows_max`, and whether there are more. Fetches no values.
    pub fn keys(&self, range: &KeyRange, rows_max: usize) -> Result<(Vec<Bytes>, bool)> {
        check_scan(range, rows_max)?;
        let (mut keys, mut more) = (Vec::new(), false);
        if range.is_empty() {
            return Ok((keys, more));
        }
        self.by_blocks(range, None, |rows| {
            while rows.has_next()? {
                if keys.len() == rows_max {
                    more = true;
                    break;
                }
                keys.push(Bytes::copy_from_slice(rows.key()));
                rows.advance()?;
            }
            Ok(())
        })?;
        Ok((keys, more))
    }

    /// The first rows of `range`, at most `rows`.
    pub fn first(&self, range: &KeyRange, rows: usize) -> Result<Vec<(Bytes, Bytes)>> {
        let limit = PageLimit { rows, bytes: usize::MAX };
        Ok(self.scan(range, Direction::Forward, limit)?.rows)
    }

    fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        self.moment.get_at(&self.at, key, self.fill)
    }

    fn scan(&self, range: &KeyRange, direction: Direction, limit: PageLimit) -> Result<Page> {
        check_scan(range, limit.rows)?;
        let mut page = Page::default();
        // The library asserts that a range is the right way round.
        if range.is_empty() {
            return Ok(page);
        }
        match direction {
            Direction::Forward => self.by_blocks(range, None, |rows| fill_from(&mut page, rows, limit))?,
            Direction::Reverse => fill(&mut page, self.backward(range), limit)?,
        }
        Ok(page)
    }

    fn sieve(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&MayHold<'_>>,
        keep: &mut Keep<'_>,
    ) -> Result<Sieved> {
        check_scan(range, limit.rows)?;
        let mut sieved = Sieved::default();
        if direction == Direction::Forward {
            if !range.is_empty() {
                self.by_blocks(range, may_hold, |rows| sieve_from(&mut sieved, rows, limit, keep))?;
            }
            return Ok(sieved);
        }
        Ok(Sieved::of(self.scan(range, direction, limit)?, keep))
    }

    /// Gives `walk` the rows of a range, from the blocks of the tables, which `may_hold` is asked about.
    fn by_blocks(
        &self,
        range: &KeyRange,
        may_hold: Option<&MayHold<'_>>,
        walk: impl FnOnce(&mut Rows<'_>) -> lsm_tree::Result<()>,
    ) -> Result<()> {
        let of = Of { tree: self.moment.0.trees.tree(range.space), seqno: self.at.sight.seqno() };
        let asked = Asked { start: &range.start, end: range.end.as_deref(), may_hold, fill: self.fill };
        let rows = Rows::new(of, self.at.layers.of(range.space), asked);
        rows.and_then(|mut rows| walk(&mut rows)).map_err(|error| failed(error.into()))
    }

    fn backward<'a>(&'a self, range: &'a KeyRange) -> Backward<'a> {
        let (tree, layers) = (self.moment.0.trees.tree(range.space), self.at.layers.of(range.space));
        Backward::new(tree, layers, self.at.sight.seqno(), &range.start, range.end.as_deref())
    }
}

/// Takes rows until the limit, and one more without its value to know whether there are more.
fn fill(page: &mut Page, rows: Backward<'_>, limit: PageLimit) -> Result<()> {
    let mut bytes = 0;
    for row in rows {
        if !page.rows.is_empty() && limit.is_reached(page.rows.len(), bytes) {
            // An error here is one of the next page.
            page.more = true;
            return Ok(());
        }
        let (key, value) = row.map_err(|error| failed(error.into()))?;
        bytes += key.len() + value.len();
        page.rows.push((key, value));
    }
    Ok(())
}

/// The same, with keys that share buffers.
fn fill_from(page: &mut Page, rows: &mut Rows<'_>, limit: PageLimit) -> lsm_tree::Result<()> {
    let room = limit.rows.min(ROWS_AT_FIRST);
    page.rows.reserve(room);
    let (mut bytes, mut keys, mut ends) = (0, Vec::with_capacity(room * KEY_BYTES), Vec::with_capacity(room));
    while rows.has_next()? {
        if !page.rows.is_empty() && limit.is_reached(page.rows.len(), bytes) {
            page.more = true;
            break;
        }
        let before = keys.len();
        let value = rows.take(&mut keys)?;
        bytes += keys.len() - before + value.len();
        page.rows.push((Bytes::new(), value));
        ends.push(keys.len());
        if ends.len() == KEYS_TOGETHER {
            give_keys(page, std::mem::take(&mut keys), &mut ends);
        }
    }
    give_keys(page, keys, &mut ends);
    Ok(())
}

/// Keeps some of the rows up to the limit. Of the others nothing is made.
fn sieve_from(
    sieved: &mut Sieved,
    rows: &mut Rows<'_>,
    limit: PageLimit,
    keep: &mut Keep<'_>,
) -> lsm_tree::Result<()> {
    let mut bytes = 0;
    while rows.has_next()? {
        let key = rows.key();
        let (len, kept) = match rows.value_in_place() {
            Some(value) => {
                let is_kept = keep(key, value, rows.is_possible());
                (value.len(), is_kept.then(|| rows.value()).transpose()?)
            }
            None => {
                let value = rows.value()?;
                (value.len(), keep(key, &value, true).then_some(value))
            }
        };
        sieved.rows.extend(kept.map(|value| (Bytes::copy_from_slice(key), value)));
        sieved.met += 1;
        bytes += key.len() + len;
        if limit.is_reached(sieved.met, bytes) {
            let last = Bytes::copy_from_slice(key);
            rows.advance()?;
            sieved.cut_after = rows.has_next()?.then_some(last);
            break;
        }
        rows.advance()?;
    }
    Ok(())
}

/// Gives the last rows of a page their keys.
fn give_keys(page: &mut Page, keys: Vec<u8>, ends: &mut Vec<usize>) {
    let keys = Bytes::from(keys);
    let first = page.rows.len() - ends.len();
    let mut start = 0;
    for ((key, _), end) in page.rows[first..].iter_mut().zip(ends.drain(..)) {
        *key = keys.slice(start..end);
        start = end;
    }
}

/// Runs `work` where it may take its time: beside the runtime's workers if it is long and there are several.
pub fn unhurried<T>(rows_max: usize, work: impl FnOnce() -> T) -> T {
    let has_workers =
        || Handle::try_current().is_ok_and(|on| on.runtime_flavor() == RuntimeFlavor::MultiThread);
    if rows_max > INLINE_ROWS_MAX && has_workers() { block_in_place(work) } else { work() }
}

impl Snapshot for View {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.get(key) })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        let get_all = move || {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(key)?);
            }
            Ok(values)
        };
        Box::pin(async move { unhurried(keys.len(), get_all) })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(async move { unhurried(limit.rows, || self.scan(range, direction, limit)) })
    }

    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        may_hold: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        let sieve = move || self.sieve(range, direction, limit, may_hold, keep);
        Box::pin(async move { unhurried(limit.rows, sieve) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{embedded::EmbeddedOptions, store::Slot};

    /// So few that rows are pushed out.
    const HOT_BYTES: u64 = 100_000;

    /// What few values are made of, so that most blocks have none.
    const MARK: u8 = b'M';
    const MARK_EVERY: u64 = 97;

    /// What happens to a tree between two looks at it.
    #[derive(Clone, Debug)]
    enum Step {
        /// Values of these lengths at these keys; none deletes.
        Write(Vec<(u16, Option<usize>)>),
        /// Keys that follow each other, as many as fill several blocks.
        WriteMany(u16, u16),
        /// Begins another memtable.
        Seal,
        /// Makes tables of memtables.
        Flush,
        /// Merges all tables into the lowest level.
        Merge,
        /// Layers are another, and nobody writes.
        CatchUp,
        TakeView,
        /// Rows from one key to another, at most so many.
        Scan(u16, Option<u16>, PageLimit),
        /// Some rows from a key on, one by one.
        Get(u16, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = || 0..400_u16;
        let len = prop_oneof![3 => (0..60_usize).prop_map(Some), 1 => (900..3000_usize).prop_map(Some),
            1 => (8100..9000_usize).prop_map(Some), 2 => Just(None)];
        let rows = prop_oneof![1..10_usize, Just(10_000)];
        let bytes = prop_oneof![Just(usize::MAX), 0..5000_usize];
        let limit = (rows, bytes).prop_map(|(rows, bytes)| PageLimit { rows, bytes });
        prop_oneof![
            6 => proptest::collection::vec((key(), len), 1..20).prop_map(Step::Write),
            2 => (key(), 1..300_u16).prop_map(|(from, count)| Step::WriteMany(from, count)),
            2 => Just(Step::Seal),
            3 => Just(Step::Flush),
            1 => Just(Step::Merge),
            1 => Just(Step::CatchUp),
            3 => Just(Step::TakeView),
            8 => (key(), 1..40_u16).prop_map(|(from, count)| Step::Get(from, count)),
            8 => (key(), proptest::option::of(key()), limit).prop_map(|(start, end, limit)| Step::Scan(start, end, limit)),
        ]
    }

    fn key_of(number: u16) -> Vec<u8> {
        // Some are the beginnings of others.
        format!("key {:0width$}", number / 4, width = 2 + usize::from(number % 4)).into_bytes()
    }

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    struct World {
        _folder: tempfile::TempDir,
        trees: Trees,
        moment: Moment,
        views: Vec<View>,
        /// What is there now, and what each view was there for: in both trees the same.
        model: Model,
        shown: Vec<Model>,
        /// Written once more with each value.
        count: u64,
        /// Rows that were said not to be kept before they were looked at.
        denied: usize,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let trees = Trees::open(folder.path(), folder.path(), &EmbeddedOptions::default()).unwrap();
            let moment = Moment::of(trees.clone(), HOT_BYTES);
            let (views, model) = (vec![moment.view()], Model::new());
            let shown = vec![model.clone()];
            Self { _folder: folder, trees, moment, views, model, shown, count: 0, denied: 0 }
        }

        fn write(&mut self, rows: impl Iterator<Item = (u16, Option<usize>)>) {
            // A key is written once in a group.
            let rows: BTreeMap<_, _> = rows.map(|(number, len)| (key_of(number), len)).collect();
            let mut values = Vec::new();
            for (key, len) in rows {
                self.count += 1;
                let filler = if self.count.is_multiple_of(MARK_EVERY) { MARK } else { b'v' };
                let value = len.map(|len| [&self.count.to_be_bytes()[..], &vec![filler; len]].concat());
                match &value {
                    Some(value) => self.model.insert(key.clone(), value.clone()),
                    None => self.model.remove(&key),
                };
                values.push((key, value));
            }
            let group = |wrote: &dyn Fn(Space, &[u8])| {
                let seqno = self.trees.next_seqno();
                for (key, value) in &values {
                    for space in [Space::Large, Space::Small] {
                        wrote(space, key);
                        let (key, value) = (Bytes::from(key.clone()), value.clone().map(Bytes::from));
                        self.trees.apply(space, key, value, seqno);
                    }
                }
                self.trees.publish(seqno);
                Ok(())
            };
            self.moment.write(group).unwrap();
        }

        /// Every view finds each row as it was at that moment, in whatever order they are asked.
        fn get(&self, numbers: impl DoubleEndedIterator<Item = u16> + Clone) {
            let present = (&self.moment.view(), &self.model);
            let views = || self.views.iter().zip(&self.shown);
            for (view, shown) in views().rev().chain([present]).chain(views()) {
                // Once more the other way round: by then some are known.
                for number in numbers.clone().chain(numbers.clone().rev()) {
                    for space in [Space::Large, Space::Small] {
                        let key = Key { space, slot: Slot(0), bytes: key_of(number) };
                        let expected = shown.get(&key.bytes).map(Vec::as_slice);
                        assert_eq!(view.get(&key).unwrap().as_deref(), expected, "{number}");
                    }
                }
            }
        }

        fn seal(&self) {
            self.trees.seal(Space::Large);
            self.trees.seal(Space::Small);
        }

        fn flush(&self) {
            self.seal();
            while self.trees.flush_oldest(Space::Large).unwrap()
                | self.trees.flush_oldest(Space::Small).unwrap()
            {}
        }

        fn run(&mut self, step: Step) {
            match step {
                Step::Write(rows) => self.write(rows.into_iter()),
                Step::WriteMany(from, count) => {
                    self.write((from..from + count).map(|number| (number, Some(30))))
                }
                Step::Seal => self.seal(),
                Step::Flush => self.flush(),
                Step::Merge => {
                    self.flush();
                    self.trees.merge_all(Space::Large).unwrap();
                }
                Step::CatchUp => self.moment.catch_up(),
                Step::TakeView => {
                    self.views.extend([self.moment.view(), self.moment.background_view()]);
                    self.shown.extend([self.model.clone(), self.model.clone()]);
                }
                Step::Scan(start, end, limit) => self.compare(start, end, limit),
                Step::Get(from, count) => self.get(from..from + count),
            }
        }

        /// Every view shows what was there at its moment, both ways.
        fn compare(&mut self, start: u16, end: Option<u16>, limit: PageLimit) {
            let (space, slot) = (Space::Large, Slot(0));
            let range = KeyRange { space, slot, start: key_of(start), end: end.map(key_of) };
            if range.is_empty() {
                return;
            }
            for (view, shown) in self.views.iter().zip(&self.shown) {
                let rows = || {
                    let rows = shown.iter().filter(|(key, _)| range.contains(key));
                    rows.map(|(key, value)| (Bytes::from(key.clone()), Bytes::from(value.clone())))
                };
                let expected = page_of(&mut rows(), limit);
                let backward = page_of(&mut rows().rev(), limit);
                for (direction, expected) in
                    [(Direction::Forward, &expected), (Direction::Reverse, &backward)]
                {
                    let page = view.scan(&range, direction, limit).unwrap();
                    assert_eq!(page.rows, expected.rows);
                    assert_eq!(page.more, expected.more);
                }
                let (keys, more) = view.keys(&range, limit.rows).unwrap();
                assert!(keys.into_iter().eq(rows().take(limit.rows).map(|(key, _)| key)));
                assert_eq!(more, rows().count() > limit.rows);
                // A single byte of it may be anywhere.
                let is_marked = |bytes: &[u8]| bytes.windows(4).any(|some| some == [MARK; 4]);
                for may_hold in [None, Some(&is_marked as &MayHold<'_>)] {
                    let mut denied = 0;
                    // By the key and the value, so that both have to be right.
                    let mut keep = |key: &[u8], value: &[u8], is_possible: bool| {
                        denied += usize::from(!is_possible);
                        is_possible
                            && (may_hold.is_none() || is_marked(value))
                            && key.len() % 2 == value.len() % 2
                    };
                    let page = Page { rows: expected.rows.clone(), more: expected.more };
                    let of_page = Sieved::of(page, &mut keep);
                    let in_place =
                        view.sieve(&range, Direction::Forward, limit, may_hold, &mut keep).unwrap();
                    assert_eq!(in_place.rows, of_page.rows);
                    assert_eq!((in_place.met, in_place.cut_after), (of_page.met, of_page.cut_after));
                    self.denied += denied;
                }
            }
        }
    }

    /// Rows up to the limit.
    fn page_of(rows: &mut dyn Iterator<Item = (Bytes, Bytes)>, limit: PageLimit) -> Page {
        let (mut page, mut bytes) = (Page::default(), 0);
        for (key, value) in rows {
            if !page.rows.is_empty() && limit.is_reached(page.rows.len(), bytes) {
                page.more = true;
                break;
            }
            bytes += key.len() + value.len();
            page.rows.push((key, value));
        }
        page
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn every_view_shows_what_was_there_at_its_moment(steps in proptest::collection::vec(step(), 1..60)) {
            let mut world = World::new();
            for step in steps {
                world.run(step);
            }
            world.compare(0, None, PageLimit { rows: 10_000, bytes: usize::MAX });
            world.get(0..700);
        }
    }

    #[test]
    fn a_block_that_cannot_hold_what_is_wanted_is_told_from_others() {
        let mut world = World::new();
        let all = PageLimit { rows: 10_000, bytes: usize::MAX };
        world.run(Step::WriteMany(0, 300));
        world.run(Step::Merge);
        // The moment is of before the merge.
        world.run(Step::CatchUp);
        (world.views, world.shown) = (vec![world.moment.view()], vec![world.model.clone()]);
        world.compare(0, None, all);
        assert!(world.denied > 0 && world.denied < 300, "{}", world.denied);
    }

    /// Every block of data of the tree, and every row, is read; what stays in the caches are blocks of indexes.
    #[test]
    fn background_work_leaves_the_caches_as_they_are() {
        let mut world = World::new();
        for from in (0..6000).step_by(300) {
            world.run(Step::WriteMany(from, 300));
        }
        world.run(Step::Merge);
        world.moment.catch_up();
        let cached = |world: &World| world.trees.db.cache_size();
        let all = KeyRange::prefix(Space::Large, Slot(0), b"key".to_vec());
        let read = |view: &View| {
            let limit = PageLimit { rows: 10_000, bytes: usize::MAX };
            let page = view.scan(&all, Direction::Forward, limit).unwrap();
            let mut keep = |_: &[u8], _: &[u8], _: bool| true;
            let sieved = view.sieve(&all, Direction::Forward, limit, None, &mut keep).unwrap();
            assert_eq!(sieved.rows, page.rows);
            page.rows
        };
        let before = cached(&world);
        let rows = read(&world.moment.background_view());
        let indexes = cached(&world) - before;
        read(&world.moment.background_view());
        assert_eq!(cached(&world), before + indexes, "the second walk finds the indexes of the first");
        read(&world.moment.view());
        let blocks = cached(&world) - before - indexes;
        assert!(blocks > rows.len() as u64 * 30 && indexes * 20 < blocks, "{indexes}, {blocks}");

        let key = Key { space: Space::Large, slot: Slot(0), bytes: rows[0].0.to_vec() };
        let is_kept = |world: &World| world.moment.0.hot.find(&key.bytes, u64::MAX - 1).is_some();
        world.moment.background_view().get(&key).unwrap();
        assert!(!is_kept(&world));
        world.moment.view().get(&key).unwrap();
        assert!(is_kept(&world));
    }

    #[test]
    fn a_group_that_failed_is_never_moved_on_to() {
        let mut world = World::new();
        let before = world.moment.latest().sight.seqno();
        world.moment.write(|_| Err(crate::Error::Poisoned)).unwrap_err();
        let seqno = world.trees.next_seqno();
        world.trees.apply(Space::Large, "half".into(), Some("a group".into()), seqno);
        world.flush();
        world.compare(0, None, PageLimit { rows: 1, bytes: 1 });
        world.moment.catch_up();
        assert_eq!(world.moment.latest().sight.seqno(), before);
    }
}
