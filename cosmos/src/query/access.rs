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

mod candidates;
mod order;
mod partition;
mod pick;
mod specs;
mod vectors;
mod walks;
mod words;

pub use partition::narrowed;
pub use specs::Indexes;
pub use vectors::ByVector;
pub use words::{Ranks, VectorRank};

use mayfly_engine::{Access, Container, Direction, Engine, HashRange, Timestamp};
use mayfly_sql::{Hints, PathStep, Plan, Ties, ast::Direction as Sort};
use mayfly_value::keycode::{self, PathStep as KeyStep};
use serde_json::Value as Json;

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
    /// Paths whose values the entries of the index have, if it pays to look at them before the documents are read.
    pub entry_paths: Vec<Vec<String>>,
    /// The full-text and vector indexes that rank the rows.
    pub ranks: Option<Ranks>,
    /// The vector index that tells which documents are nearest.
    pub by_vector: Option<ByVector>,
    /// Whether the walk is in the order that the query asks for.
    pub serves_order: bool,
    /// The indexes that are used.
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

    pub(super) fn new(access: Access, direction: Direction, serves_order: bool) -> Self {
        let (reading, entry_paths, indexes) = (Reading::Documents, Vec::new(), Indexes::default());
        let (ranks, by_vector, choice) = (None, None, NO_INDEX);
        Self { access, direction, reading, entry_paths, ranks, by_vector, serves_order, indexes, choice }
    }
}

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

/// The choice of a page, for the page after it whose filter is another one. A number may mean another index
/// then, so only a walk in the order of the query is kept: it does not depend on the filter. Rows with equal
/// sort keys go the same way as before.
pub fn with_another_filter(choice: u8) -> u8 {
    if choice & IN_ORDER != 0 { choice } else { NO_INDEX }
}

/// Chooses how `plan` finds its documents in `scope`. `choice` is that of the page before.
pub async fn choose(
    engine: &Engine,
    container: &Container,
    plan: &Plan,
    scope: &HashRange,
    choice: Option<u8>,
    now: Timestamp,
) -> Result<AccessPlan, ApiError> {
    let (computed, resumed) = (computed_names(container), choice.is_some());
    let planner = Planner { container, hints: plan.hints(), scope, computed, resumed, now };
    planner.check_order()?;
    if let Some(access) = planner.ranked(plan) {
        return Ok(access);
    }
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
    planner.by_vector(engine, plan, &mut access).await?;
    Ok(access)
}

/// The names of a container's computed properties: no index has them.
fn computed_names(container: &Container) -> Vec<&str> {
    let computed = container.definition().others.get("computedProperties").and_then(Json::as_array);
    computed.into_iter().flatten().filter_map(|property| property.get("name")?.as_str()).collect()
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

struct Planner<'a> {
    container: &'a Container,
    hints: &'a Hints,
    scope: &'a HashRange,
    computed: Vec<&'a str>,
    /// Whether this is not the first page. Documents that an index does not cover came after the first one then, and
    /// need not be in the answer.
    resumed: bool,
    now: Timestamp,
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
}
