//! Where a query has to look: the choice of an access path.
//!
//! What the filter says about the partition key narrows the scope to a logical partition; what it says about indexed
//! paths gives index ranges, single or composite. Of several the one with the fewest entries is taken, by a look at
//! the index, and the others are looked up for each candidate where that pays. All may be wider than the filter, never
//! narrower: the filter itself is evaluated on every document.
//!
//! Where an index is known to list every document, it also serves ORDER BY, and answers without the documents where it
//! holds all that the query reads. [`AccessPlan`] says what was chosen, for whoever runs or explains the query.
//!
//! Holds: the same choice number gives the same walk, so a continuation can go on with it.

use mayfly_engine::{
    Access, Container, Direction, Engine, HashRange, IndexAccess, IndexName, IndexingMode, Lookup, Reliance,
    ValueRange,
};
use mayfly_sql::{
    Hints, Paging, PathStep, Plan, Ties, Value,
    ast::Direction as Sort,
    hints::{Hint, Span, Summary},
};
use mayfly_value::{
    keycode::{self, PathStep as KeyStep},
    partition::{Component, PartitionKey},
    path::Path,
};
use serde_json::Value as Json;

use super::spans;
use crate::{error::ApiError, resource::SYSTEM_PROPERTIES};

/// How a query finds its documents.
#[derive(Debug)]
pub struct AccessPlan {
    /// The walk.
    pub access: Access,
    /// Which way.
    pub direction: Direction,
    /// What is read on it.
    pub reading: Reading,
    /// Whether the walk is in the order that the query asks for.
    pub serves_order: bool,
    /// The indexes that are used, and those that would have helped.
    pub indexes: Indexes,
    /// Names the choice in continuations.
    pub choice: u8,
}

/// What is read on a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Whole documents.
    Documents,
    /// The entries of the index: it holds these paths, which are all that the query reads.
    Entries(Vec<Vec<String>>),
    /// Only how many entries there are.
    EntryCount,
    /// Only how many documents there are.
    DocumentCount,
    /// Only the ends of the index.
    Ends(Vec<Vec<String>>),
}

/// Indexes as an explanation names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// Paths whose index is used, such as `/name/?`.
    pub single: Vec<String>,
    /// Composite indexes that are used: `/name ASC`, `/age DESC`.
    pub composite: Vec<Vec<String>>,
    /// Paths in the filter that are not indexed.
    pub potential_single: Vec<String>,
    /// Composite indexes that would serve the filter better.
    pub potential_composite: Vec<Vec<String>>,
}

impl Indexes {
    /// Whether an index is used that has this path, such as `/name`.
    pub fn uses(&self, path: &str) -> bool {
        let is_it = |spec: &str| {
            spec.strip_prefix(path).is_some_and(|rest| matches!(rest, "/?" | "/[]/?" | " ASC" | " DESC"))
        };
        self.single.iter().chain(self.composite.iter().flatten()).any(|spec| is_it(spec))
    }
}

impl AccessPlan {
    /// Which way rows with equal sort keys go: with the walk that was chosen, or as the first sort key does.
    pub fn ties(&self, hints: &Hints) -> Ties {
        let reverse = match self.choice & IN_ORDER != 0 {
            true => self.choice & REVERSED != 0,
            false => matches!(hints.order.first(), Some((_, Sort::Descending))),
        };
        if reverse { Ties::Reverse } else { Ties::Forward }
    }

    /// The same query without the help of an index: for rows whose order an index does not tell.
    pub fn without_index(&self, scope: &HashRange) -> Self {
        let plain = Self::new(Access::Records(scope.clone()), Direction::Forward, false);
        Self { choice: self.choice, ..plain }
    }
}

/// The scope that the filter's conditions on the partition key leave of `scope`, and whether they pin it.
pub fn narrowed(container: &Container, hints: &Hints, scope: HashRange) -> (HashRange, bool) {
    let definition = &container.definition().partition_key;
    let mut components = Vec::new();
    for path in &definition.paths {
        match hints.all.iter().find_map(|hint| pinned(hint, path.segments())) {
            Some(component) => components.push(component),
            None => break,
        }
    }
    if components.is_empty() {
        return (scope, false);
    }
    let whole = components.len() == definition.paths.len();
    let (start, end) = definition.prefix_range(&PartitionKey(components));
    let end = match (scope.end, end) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    (HashRange { start: scope.start.max(start), end }, whole)
}

/// The names of a path that leads through properties alone.
fn names(path: &[PathStep]) -> Option<Vec<&str>> {
    path.iter()
        .map(|step| match step {
            PathStep::Name(name) => Some(name.as_str()),
            PathStep::Item(_) => None,
        })
        .collect()
}

/// The one value that a hint allows at a partition key's path.
fn pinned(hint: &Hint, segments: &[String]) -> Option<Component> {
    let names = names(&hint.path)?;
    if hint.of_item || names.len() != segments.len() || !names.iter().zip(segments).all(|(a, b)| a == b) {
        return None;
    }
    match &hint.spans[..] {
        [Span::Value(value)] => match value {
            Value::Null => Some(Component::Null),
            Value::Bool(value) => Some(Component::Bool(*value)),
            Value::Int(value) => Some(Component::Number(*value as f64)),
            Value::Double(value) => Some(Component::Number(*value)),
            Value::String(value) => Some(Component::String(value.clone().into_owned())),
            _ => None,
        },
        _ => None,
    }
}

/// Entries counted to tell access paths apart: more than a page of documents is many.
const ESTIMATE_MAX: usize = 256;

/// Up to so many documents are sorted rather than walked through in order: about as many as a walk would have to look
/// at to find a page of those that pass.
const SORT_MAX: usize = 1000;

/// Choices from here on walk in the order of the query.
const IN_ORDER: u8 = 0x40;
/// Of those, the ones that walk backwards.
const REVERSED: u8 = 0x01;
/// Set when candidates are looked up in the other indexes, too.
const LOOKED_UP: u8 = 0x80;
/// No index is used.
const NO_INDEX: u8 = 0x3F;
/// An index is used that the filter says nothing about, because it holds what the query reads.
const COVERING: u8 = 0x3E;

/// Chooses how `plan` finds its documents in `scope`. `choice` is that of the page before.
pub async fn choose(
    engine: &Engine,
    container: &Container,
    plan: &Plan,
    scope: &HashRange,
    choice: Option<u8>,
) -> Result<AccessPlan, ApiError> {
    let (computed, resumed) = (computed_names(container), choice.is_some());
    let planner = Planner { container, hints: plan.hints(), scope, computed, resumed };
    planner.check_order()?;
    let mut found = planner.candidates();
    let ordered = planner.ordered(plan);
    let choice = match choice {
        Some(choice) => choice,
        None => planner.pick(engine, plan, &found, ordered.as_ref()).await?,
    };
    let mut access = match (choice & IN_ORDER != 0, usize::from(choice & NO_INDEX)) {
        // What no index serves any more is sorted.
        (true, _) => ordered.unwrap_or_else(|| planner.documents()),
        (false, place) if place == usize::from(NO_INDEX) => planner.documents(),
        (false, place) if place == usize::from(COVERING) => planner.covering(plan),
        (false, place) if place < found.len() => planner.by_candidate(plan, found.swap_remove(place), choice),
        _ => return Err(ApiError::invalid_continuation()),
    };
    access.choice = choice;
    access.indexes.potential_single = planner.unindexed();
    access.indexes.potential_composite = planner.missing_composites(&access);
    Ok(access)
}

/// The names of a container's computed properties: no index has them.
fn computed_names(container: &Container) -> Vec<&str> {
    let computed = container.definition().others.get("computedProperties").and_then(Json::as_array);
    computed.into_iter().flatten().filter_map(|property| property.get("name")?.as_str()).collect()
}

struct Planner<'a> {
    container: &'a Container,
    hints: &'a Hints,
    scope: &'a HashRange,
    computed: Vec<&'a str>,
    /// Whether this is not the first page. Documents that an index does not cover came after the first one then, and
    /// need not be in the answer.
    resumed: bool,
}

/// An index that the filter can use.
#[derive(Clone, Debug)]
struct Candidate {
    index: IndexName,
    ranges: Vec<ValueRange>,
    /// Whether it has exactly what its hints say.
    exact: bool,
    /// Whether each range is one value.
    single: bool,
    /// The hints it serves.
    hints: Vec<usize>,
    /// The paths of the index.
    paths: Vec<Vec<String>>,
}

impl<'a> Planner<'a> {
    /// The segments of a path that an index may have: nothing that the server adds or computes.
    fn stored(&self, path: &'a [PathStep]) -> Option<Vec<&'a str>> {
        let names = names(path)?;
        let first = *names.first()?;
        let is_added = SYSTEM_PROPERTIES.contains(&first) || self.computed.contains(&first);
        if is_added { None } else { Some(names) }
    }

    /// The indexed path of a hint.
    fn index_path(&self, path: &'a [PathStep], of_item: bool) -> Option<Vec<u8>> {
        let names = self.stored(path)?;
        let mut steps: Vec<_> = names.into_iter().map(KeyStep::Property).collect();
        steps.extend(of_item.then_some(KeyStep::Item));
        self.container.is_indexed(&steps).then(|| keycode::encode_path(&steps))
    }

    /// Refuses an order that no index of the container has, as the service does.
    fn check_order(&self) -> Result<(), ApiError> {
        let refused = |text: &str| {
            let errors = serde_json::json!({ "Errors": [text] });
            Err(ApiError::bad_request(format!("Message: {errors}")))
        };
        match &self.hints.order[..] {
            [] => Ok(()),
            [(path, _)] => {
                let steps: Vec<_> = path
                    .iter()
                    .map(|step| match step {
                        PathStep::Name(name) => KeyStep::Property(name),
                        PathStep::Item(_) => KeyStep::Item,
                    })
                    .collect();
                let always = matches!(&steps[..], [KeyStep::Property("id" | "_ts")]);
                let has_index = self.container.definition().indexing.mode != IndexingMode::None;
                match self.container.is_indexed(&steps) || (always && has_index) {
                    true => Ok(()),
                    false => {
                        refused("The index path corresponding to the specified order-by item is excluded.")
                    }
                }
            }
            order => match self.container.composite_indexes().any(|parts| walks(&parts, order).is_some()) {
                true => Ok(()),
                false => refused(
                    "The order by query does not have a corresponding composite index that it can be served from.",
                ),
            },
        }
    }

    /// The indexes that the filter can use, in the order of the filter, then composite ones.
    fn candidates(&self) -> Vec<Candidate> {
        /// Choices are numbers of six bits.
        const CANDIDATES_MAX: usize = 32;
        let single = self.hints.all.iter().enumerate().filter_map(|(place, hint)| {
            let path = self.index_path(&hint.path, hint.of_item)?;
            let ranges = spans::ranges(&hint.spans)?;
            Some(Candidate {
                index: IndexName::Path(path),
                ranges: ranges.ranges,
                exact: ranges.exact && hint.exact,
                single: ranges.single,
                hints: vec![place],
                paths: vec![names(&hint.path)?.into_iter().map(str::to_owned).collect()],
            })
        });
        let composite = self.container.composite_indexes().enumerate();
        let composite =
            composite.filter_map(|(number, parts)| self.composite(number as u16, &parts, 2).map(|(c, _)| c));
        single.chain(composite).take(CANDIDATES_MAX).collect()
    }

    /// A composite index whose first parts the filter fixes, and the next of which it may bound: `least` parts at
    /// least. Also says how many parts are fixed.
    fn composite(
        &self,
        number: u16,
        parts: &[(&[String], bool)],
        least: usize,
    ) -> Option<(Candidate, usize)> {
        let mut prefix = Vec::new();
        let (mut used, mut exact, mut fixed) = (Vec::new(), true, 0);
        let mut range = None;
        for (segments, descending) in parts {
            let about = |hint: &&(usize, &Hint)| {
                let is_path = self.stored(&hint.1.path).is_some_and(|names| names.iter().eq(segments.iter()));
                is_path && !hint.1.of_item
            };
            let hints: Vec<_> = self.hints.all.iter().enumerate().collect();
            let hints: Vec<_> = hints.iter().filter(about).collect();
            let one = hints.iter().find_map(|(place, hint)| {
                spans::one(&hint.spans).map(|(bytes, whole)| (*place, bytes, whole && hint.exact))
            });
            if let Some((place, bytes, whole)) = one {
                prefix.extend(bytes.iter().map(|byte| if *descending { !*byte } else { *byte }));
                used.push(place);
                exact &= whole;
                fixed += 1;
                continue;
            }
            if let Some((place, hint)) = hints.first()
                && let Some(found) = spans::ranges(&hint.spans)
            {
                used.push(*place);
                exact &= found.exact && hint.exact;
                let mut ranges: Vec<_> =
                    found.ranges.iter().map(|range| spans::component(&prefix, range, *descending)).collect();
                if *descending {
                    ranges.reverse();
                }
                range = Some(ranges);
            }
            break;
        }
        let covered = fixed + usize::from(range.is_some());
        if covered < least {
            return None;
        }
        let ranges = range.unwrap_or_else(|| match prefix.is_empty() {
            true => vec![ValueRange::all()],
            false => vec![ValueRange::one(prefix)],
        });
        let paths = parts.iter().map(|(segments, _)| segments.to_vec()).collect();
        let index = IndexName::Composite(number);
        Some((Candidate { index, ranges, exact, single: false, hints: used, paths }, fixed))
    }

    /// A walk in the order of the query.
    fn ordered(&self, plan: &Plan) -> Option<AccessPlan> {
        if plan.paging() != Paging::Sorted || self.hints.order.is_empty() {
            return None;
        }
        let [_slot] = self.scope.slots(self.container)[..] else { return None };
        if let [(path, sort)] = &self.hints.order[..]
            && matches!(&path[..], [PathStep::Name(name)] if name == "_ts")
        {
            let direction = direction(*sort);
            return Some(AccessPlan::new(Access::Writes(self.scope.clone()), direction, true));
        }
        let epoch = self.container.complete_index()?;
        self.ordered_by_path(plan, epoch).or_else(|| self.ordered_by_composite(plan, epoch))
    }

    fn ordered_by_path(&self, plan: &Plan, epoch: u32) -> Option<AccessPlan> {
        let [(path, sort)] = &self.hints.order[..] else { return None };
        let encoded = self.index_path(path, false)?;
        let own = self.hints.all.iter().position(|hint| hint.path == *path && !hint.of_item);
        let own_ranges = own.and_then(|place| spans::ranges(&self.hints.all[place].spans));
        // Without a value in the filter's ranges a document is not asked for, so those that lack one do not matter.
        let (ranges, relies) = match own_ranges {
            Some(ranges) => (ranges.ranges, Reliance::Complete { epoch }),
            None => (vec![ValueRange::all()], self.covered(&encoded, epoch)?),
        };
        let names: Vec<String> = names(path)?.into_iter().map(str::to_owned).collect();
        let index = self.index(IndexName::Path(encoded), ranges, relies);
        let mut access = AccessPlan::new(Access::Index(index), direction(*sort), true);
        access.indexes.single.push(path_spec(&names));
        self.cover(plan, &mut access, vec![names]);
        Some(access)
    }

    fn ordered_by_composite(&self, plan: &Plan, epoch: u32) -> Option<AccessPlan> {
        let composites = self.container.composite_indexes().enumerate();
        let mut usable = composites.filter_map(|(number, parts)| {
            let (candidate, fixed) = self.composite(number as u16, &parts, 0)?;
            // The parts that the filter fixes do not change the order.
            let order = &self.hints.order;
            let direction = walks(&parts, order).or_else(|| walks(parts.get(fixed..)?, order))?;
            Some((candidate, direction, parts_spec(&parts)))
        });
        let (candidate, direction, spec) = usable.next()?;
        let index = self.index(candidate.index, candidate.ranges, Reliance::Complete { epoch });
        let mut access = AccessPlan::new(Access::Index(index), direction, true);
        access.indexes.composite.push(spec);
        self.cover(plan, &mut access, candidate.paths);
        Some(access)
    }

    /// What may be relied on if every document has an entry with its whole value at a path.
    fn covered(&self, path: &[u8], epoch: u32) -> Option<Reliance> {
        match (self.resumed, self.container.covers(path)) {
            (true, _) => Some(Reliance::Complete { epoch }),
            (false, true) => Some(Reliance::Covered { epoch }),
            (false, false) => None,
        }
    }

    /// The walk over all documents of the scope.
    fn documents(&self) -> AccessPlan {
        AccessPlan::new(Access::Records(self.scope.clone()), Direction::Forward, false)
    }

    fn index(&self, index: IndexName, ranges: Vec<ValueRange>, relies: Reliance) -> IndexAccess {
        IndexAccess { index, ranges, also: Vec::new(), within: self.scope.clone(), relies }
    }

    /// Takes the entries for the documents, if they hold all that the query reads.
    fn cover(&self, plan: &Plan, access: &mut AccessPlan, paths: Vec<Vec<String>>) {
        let Some(reads) = &self.hints.reads else { return };
        let is_held = |read: &Vec<PathStep>| {
            names(read).is_some_and(|names| paths.iter().any(|path| path.iter().eq(names.iter())))
        };
        let apart = |path: &Vec<String>| {
            !paths.iter().any(|other| other.len() > path.len() && other.starts_with(path))
        };
        if plan.reads_documents() && reads.iter().all(is_held) && paths.iter().all(apart) {
            access.reading = Reading::Entries(paths);
        }
    }

    /// Which of the ways is best.
    async fn pick(
        &self,
        engine: &Engine,
        plan: &Plan,
        found: &[Candidate],
        ordered: Option<&AccessPlan>,
    ) -> Result<u8, ApiError> {
        let is_partition = !self.scope.is_all();
        let is_direct = |access: &AccessPlan| match &access.access {
            Access::Index(index) => index.ranges != [ValueRange::all()],
            _ => false,
        };
        // Walking a whole index for one partition's share of it does not pay.
        let ordered = ordered.filter(|access| !is_partition || is_direct(access));
        let in_order = |ordered: Option<&AccessPlan>| {
            let reversed = ordered.is_some_and(|access| access.direction == Direction::Reverse);
            IN_ORDER | if reversed { REVERSED } else { 0 }
        };
        if ordered.is_some_and(|access| found.is_empty() || is_direct(access)) {
            return Ok(in_order(ordered));
        }
        if found.is_empty() {
            let covers = self.covering(plan).reading != Reading::Documents;
            return Ok(if covers { COVERING } else { NO_INDEX });
        }
        // A range over all partitions is not worth it for one, unless it is small.
        let is_sure = |candidate: &Candidate| {
            !is_partition || (candidate.single && matches!(candidate.index, IndexName::Path(_)))
        };
        if let ([candidate], None) = (found, ordered)
            && is_sure(candidate)
        {
            return Ok(0);
        }
        let paths: Vec<_> = found
            .iter()
            .map(|candidate| self.index(candidate.index.clone(), candidate.ranges.clone(), Reliance::Nothing))
            .collect();
        let most = if ordered.is_some() { SORT_MAX } else { ESTIMATE_MAX };
        let estimates = engine.estimate(self.container, &paths, most).await?;
        let rank = |candidate: &Candidate| match (candidate.single, &candidate.index) {
            (_, IndexName::Composite(_)) => 0,
            (true, _) => 1,
            (false, _) => 2,
        };
        let best = found.iter().zip(&estimates).enumerate();
        let best = best.min_by_key(|(_, (candidate, estimate))| (**estimate, rank(candidate)));
        let Some((place, (candidate, estimate))) = best else { return Ok(NO_INDEX) };
        if *estimate >= most && ordered.is_some() {
            return Ok(in_order(ordered));
        }
        if *estimate >= most && !is_sure(candidate) {
            return Ok(NO_INDEX);
        }
        let looked_up = *estimate >= ESTIMATE_MAX && plan.reads_documents();
        Ok(place as u8 | if looked_up { LOOKED_UP } else { 0 })
    }

    /// The walk of a candidate.
    fn by_candidate(&self, plan: &Plan, candidate: Candidate, choice: u8) -> AccessPlan {
        let mut index = self.index(candidate.index.clone(), candidate.ranges, Reliance::Nothing);
        let mut served = candidate.hints.clone();
        let mut indexes = Indexes::default();
        if choice & LOOKED_UP != 0 {
            for (place, hint) in
                self.hints.all.iter().enumerate().filter(|(n, _)| !candidate.hints.contains(n))
            {
                let path = self.index_path(&hint.path, hint.of_item);
                if let (Some(path), Some((value, true))) = (path, spans::one(&hint.spans)) {
                    index.also.push(Lookup { index: IndexName::Path(path), value });
                    served.extend(hint.exact.then_some(place));
                    indexes.single.extend(hint_spec(hint));
                }
            }
        }
        let is_exact = self.hints.exact
            && candidate.exact
            && (0..self.hints.all.len()).all(|place| served.contains(&place));
        match &candidate.index {
            IndexName::Path(_) => {
                let hints = candidate.hints.iter().filter_map(|place| self.hints.all.get(*place));
                indexes.single.extend(hints.filter_map(hint_spec));
            }
            IndexName::Composite(number) => {
                let spec = self.container.composite_indexes().nth(usize::from(*number));
                indexes.composite.extend(spec.map(|parts| parts_spec(&parts)));
            }
        }
        indexes.single.sort();
        indexes.single.dedup();
        let mut access = AccessPlan::new(Access::Index(index), Direction::Forward, false);
        access.indexes = indexes;
        if let Some(epoch) = self.container.complete_index() {
            let of_item = candidate.hints.iter().any(|place| self.hints.all[*place].of_item);
            match &self.hints.summary {
                Some(Summary::Count) if is_exact => access.reading = Reading::EntryCount,
                Some(Summary::Lowest(path) | Summary::Highest(path)) if is_exact && !of_item => {
                    let held = names(path).is_some_and(
                        |names| matches!(&candidate.paths[..], [one] if one.iter().eq(names.iter())),
                    );
                    let alone = matches!(&access.access, Access::Index(index) if index.also.is_empty());
                    match held && alone && matches!(candidate.index, IndexName::Path(_)) {
                        true => access.reading = Reading::Ends(candidate.paths),
                        false => self.cover(plan, &mut access, candidate.paths),
                    }
                }
                _ if !of_item => self.cover(plan, &mut access, candidate.paths),
                _ => {}
            }
            if let (Access::Index(index), true) = (&mut access.access, access.reading != Reading::Documents) {
                index.relies = Reliance::Complete { epoch };
            }
        }
        access
    }

    /// The walk over all documents of the scope, or over an index that holds what the query reads of them.
    fn covering(&self, plan: &Plan) -> AccessPlan {
        let documents = self.documents();
        if self.hints.summary == Some(Summary::Count) && self.hints.exact && self.hints.all.is_empty() {
            return AccessPlan { reading: Reading::DocumentCount, ..documents };
        }
        if !self.scope.is_all() || self.scope.slots(self.container).len() != 1 || !plan.reads_documents() {
            return documents;
        }
        let (Some(epoch), Some([path])) = (self.container.complete_index(), self.hints.reads.as_deref())
        else {
            return documents;
        };
        let Some(encoded) = self.index_path(path, false) else { return documents };
        let (Some(relies), Some(names)) = (self.covered(&encoded, epoch), names(path)) else {
            return documents;
        };
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let index = self.index(IndexName::Path(encoded), vec![ValueRange::all()], relies);
        let mut access = AccessPlan::new(Access::Index(index), Direction::Forward, false);
        access.indexes.single.push(path_spec(&names));
        let is_end = matches!(&self.hints.summary, Some(Summary::Lowest(_) | Summary::Highest(_)));
        access.reading = match is_end && self.hints.exact && self.hints.all.is_empty() {
            true => Reading::Ends(vec![names]),
            false => Reading::Entries(vec![names]),
        };
        access
    }

    /// Paths of the filter that are not indexed.
    fn unindexed(&self) -> Vec<String> {
        let hints = self.hints.all.iter();
        let missing = hints.filter(|hint| {
            self.stored(&hint.path).is_some() && self.index_path(&hint.path, hint.of_item).is_none()
        });
        missing.filter_map(hint_spec).collect()
    }

    /// A composite index over the filter's paths, equalities first, if there are several and none is used.
    fn missing_composites(&self, access: &AccessPlan) -> Vec<Vec<String>> {
        let scalar = self.hints.all.iter().filter(|hint| !hint.of_item && self.stored(&hint.path).is_some());
        let (equal, other): (Vec<_>, Vec<_>) = scalar.partition(|hint| spans::one(&hint.spans).is_some());
        let paths = equal.into_iter().chain(other.into_iter().take(1));
        let mut spec: Vec<String> = Vec::new();
        for hint in paths {
            let path = hint_spec(hint).map(|path| path.trim_end_matches("/?").to_owned() + " ASC");
            spec.extend(path.filter(|path| !spec.contains(path)));
        }
        if spec.len() > 1 && access.indexes.composite.is_empty() { vec![spec] } else { Vec::new() }
    }
}

impl AccessPlan {
    fn new(access: Access, direction: Direction, serves_order: bool) -> Self {
        let (reading, indexes) = (Reading::Documents, Indexes::default());
        Self { access, direction, reading, serves_order, indexes, choice: NO_INDEX }
    }
}

fn direction(sort: Sort) -> Direction {
    match sort {
        Sort::Ascending => Direction::Forward,
        Sort::Descending => Direction::Reverse,
    }
}

/// Which way the parts of a composite index have to be walked for an order, if they are the same paths.
fn walks(parts: &[(&[String], bool)], order: &[(Vec<PathStep>, Sort)]) -> Option<Direction> {
    let mut way = None;
    if parts.len() != order.len() {
        return None;
    }
    for ((segments, descending), (path, sort)) in parts.iter().zip(order) {
        if !names(path)?.iter().eq(segments.iter()) {
            return None;
        }
        let this = match *descending == (*sort == Sort::Descending) {
            true => Direction::Forward,
            false => Direction::Reverse,
        };
        if way.is_some_and(|way| way != this) {
            return None;
        }
        way = Some(this);
    }
    way
}

fn path_spec(names: &[String]) -> String {
    Path::from_segments(names.iter().map(String::as_str)).map_or_else(String::new, |path| format!("{path}/?"))
}

fn hint_spec(hint: &Hint) -> Option<String> {
    let path = Path::from_segments(names(&hint.path)?)?;
    Some(if hint.of_item { format!("{path}/[]/?") } else { format!("{path}/?") })
}

fn parts_spec(parts: &[(&[String], bool)]) -> Vec<String> {
    let spec = |(segments, descending): &(&[String], bool)| {
        let path = Path::from_segments(segments.iter().map(String::as_str));
        let path = path.map_or_else(String::new, |path| path.to_string());
        format!("{path} {}", if *descending { "DESC" } else { "ASC" })
    };
    parts.iter().map(spec).collect()
}
