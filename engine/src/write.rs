//! Changing documents: the one write path. Points, batches, MongoDB's statements and its transactions all come through
//! [`Engine::commit_operations`].
//!
//! A write works on a [`WriteSet`] for each logical partition that it names: it reads the stored records, applies the
//! operations to them in order, and commits the difference of all sets in one batch. The guards are the rows of the
//! containers and the version of each record it relied on; if one of them has moved, everything is read and decided
//! again.
//!
//! ```text
//!   operations ──▶ WriteSet { id → stored, after } ──▶ BatchBuilder ──▶ Batch ──▶ commit ──▶ outcomes
//!                     ▲                                                            │ conflict
//!                     └────────────────────── read again ◀─────────────────────────┘
//! ```
//!
//! The first attempt relies on guards as far as it can: creates read nothing, and nothing reads who owns a unique value.
//! If that fails, the next attempt checks each operation in turn ([`Look::Everything`]), so that the operation that is
//! refused is the first that cannot be done.
//!
//! An expired record that is still stored counts as absent; what is written in its place removes all that is left of it
//! in the same batch. The same goes for an expired owner of a unique value.

mod batch_builder;
mod operation;
mod unique;
mod write_set;

use std::sync::Arc;

use mayfly_storage::{Error as StoreError, store::Batch};
use mayfly_value::partition::PartitionKey;

pub(crate) use batch_builder::{BatchBuilder, Before, Change, unique_row_owner};
pub use operation::{
    Decide, Decision, Effect, InvalidTtl, Modify, Operation, Outcome, Part, Receipt, Refused, Results,
    StatementList, Statements, Transaction,
};
pub use unique::UniqueRow;
use write_set::{Built, Refusals, WriteSet};

use crate::{
    clock::Timestamp,
    container::Container,
    engine::Engine,
    error::{Error, Result},
    keys::Family,
};

/// After so many lost races the caller is better served by an answer.
const ATTEMPTS_MAX: usize = 50;

/// What an attempt reads before it commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    /// Nothing: the guards will tell.
    Nowhere,
    /// The records that operations name.
    Records,
    /// Also who owns each unique value, and whether each document can be indexed, operation by operation.
    Everything,
}

/// What all parts of a write have in common.
struct Terms<'a> {
    refusals: Refusals,
    invalid_ttl: InvalidTtl,
    receipt: Option<&'a Receipt>,
}

/// The operations of a write on one logical partition.
struct Target<'a> {
    container: Arc<Container>,
    key: &'a PartitionKey,
    operations: &'a [Operation],
}

impl Engine {
    /// Runs operations on documents of one logical partition: all of them or none.
    ///
    /// `key` is the partition key the caller names; every document must have it. Unique values are compared at the end:
    /// two documents may swap theirs.
    pub async fn transact(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operations: &[Operation],
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> std::result::Result<Transaction, Refused> {
        let target = Target { container: container.clone(), key, operations };
        let terms = Terms { refusals: Refusals::Abort, invalid_ttl, receipt: None };
        let done = self.commit_operations(vec![target], &terms, now).await?;
        let done = done.into_iter().next().ok_or_else(|| Error::internal("no answer"))?;
        Ok(done.into_transaction()?)
    }

    /// Like [`Engine::transact`] on several containers at once: all parts or none. Each part is of another container.
    pub async fn transact_parts(
        &self,
        parts: &[Part],
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> std::result::Result<Vec<Transaction>, Refused> {
        let targets = parts.iter().map(|part| Target {
            container: part.container.clone(),
            key: &part.key,
            operations: &part.operations,
        });
        let targets: Vec<_> = targets.collect();
        let mut containers: Vec<u32> = targets.iter().map(|target| target.container.id).collect();
        containers.sort_unstable();
        if containers.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::internal("two parts of a transaction are of one container").into());
        }
        let terms = Terms { refusals: Refusals::Abort, invalid_ttl, receipt: None };
        let done = self.commit_operations(targets, &terms, now).await?;
        done.into_iter().map(|part| Ok(part.into_transaction()?)).collect()
    }

    /// Runs operations on documents of one logical partition, each for itself: one that is refused changes nothing and
    /// is answered with why. All that is done is one commit.
    pub async fn run_statements(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        list: &StatementList<'_>,
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> Result<Statements> {
        let target = Target { container: container.clone(), key, operations: list.operations };
        let refusals = if list.ordered { Refusals::Stop } else { Refusals::Skip };
        let terms = Terms { refusals, invalid_ttl, receipt: list.receipt };
        let done =
            self.commit_operations(vec![target], &terms, now).await.map_err(|refused| refused.error)?;
        done.into_iter().next().ok_or_else(|| Error::internal("no answer"))
    }

    /// Runs one operation; answers with the slot's sequence number too.
    pub async fn write(
        &self,
        container: &Arc<Container>,
        key: &PartitionKey,
        operation: Operation,
        invalid_ttl: InvalidTtl,
        now: Timestamp,
    ) -> Result<(Outcome, u64)> {
        let done = self.transact(container, key, std::slice::from_ref(&operation), invalid_ttl, now).await;
        let done = done.map_err(|refused| refused.error)?;
        let outcome = done.outcomes.into_iter().next().ok_or_else(|| Error::internal("no outcome"))?;
        Ok((outcome, done.lsn))
    }

    /// Carries out the operations of all targets in one commit.
    async fn commit_operations(
        &self,
        mut targets: Vec<Target<'_>>,
        terms: &Terms<'_>,
        now: Timestamp,
    ) -> std::result::Result<Vec<Statements>, Refused> {
        let mut now = now;
        let creates = |target: &Target<'_>| {
            target.operations.iter().all(|operation| matches!(operation, Operation::Create { .. }))
        };
        let mut look = if targets.iter().all(creates) { Look::Nowhere } else { Look::Records };
        for _ in 0..ATTEMPTS_MAX {
            let mut sets = Vec::with_capacity(targets.len());
            for target in &targets {
                let partition = target.container.locate(target.key)?;
                sets.push(WriteSet::new(self, target, partition, terms, look, now));
            }
            match apply(&mut sets, &targets, look).await {
                Ok(()) => {}
                Err(Trouble::LookAgain) => {
                    look = Look::Everything;
                    continue;
                }
                Err(Trouble::Refused(refused)) => return Err(refused),
            }
            let note = terms.receipt.and_then(|receipt| {
                let set = sets.first()?;
                Some((receipt, (receipt.note)(&set.results)?))
            });
            if !sets.iter().any(WriteSet::has_changes) && note.is_none() {
                let mut done = Vec::with_capacity(sets.len());
                for set in sets {
                    let lsn = self.counter(set.shard()).await?.seq;
                    done.push(Statements { results: set.results, lsn });
                }
                return Ok(done);
            }
            if self.is_read_only() {
                return Err(Error::ReadOnly.into());
            }
            match self.build(&mut sets, note, now)? {
                Joined::Batch(batch) => match self.store().commit(batch).await {
                    Ok(committed) => {
                        let mut numbers = committed.counters.iter().map(|counter| counter.seq);
                        let mut done = Vec::with_capacity(sets.len());
                        for (place, set) in sets.into_iter().enumerate() {
                            // A receipt alone is a step in the sequence too.
                            let advanced = set.has_changes() || place == 0 && terms.receipt.is_some();
                            let lsn = match advanced {
                                true => numbers.next().unwrap_or(0),
                                false => self.counter(set.shard()).await?.seq,
                            };
                            done.push(set.committed(lsn));
                        }
                        return Ok(done);
                    }
                    Err(StoreError::Stale { stamp }) => {
                        self.timeline().observe(stamp);
                        now = now.max(Timestamp::from_seconds(stamp));
                    }
                    Err(StoreError::Conflict { key }) => match Family::of(&key.bytes) {
                        Some(Family::Container) => {
                            for target in &mut targets {
                                if target.container.guard().key == key {
                                    target.container = self.renewed(&target.container).await?;
                                }
                            }
                        }
                        Some(Family::Unique | Family::SecondaryUnique) => look = Look::Everything,
                        _ => look = look.max(Look::Records),
                    },
                    Err(error) => return Err(Error::from(error).into()),
                },
                Joined::LookAgain if look == Look::Everything => {
                    return Err(Error::internal("a batch that was checked cannot be built").into());
                }
                Joined::LookAgain => look = Look::Everything,
                Joined::Narrow(place) => {
                    self.narrow_coverage(&targets[place].container, &sets[place].bodies()).await?;
                    targets[place].container = self.renewed(&targets[place].container).await?;
                }
            }
        }
        Err(Error::Contention.into())
    }

    /// One batch of all sets.
    fn build(
        &self,
        sets: &mut [WriteSet<'_>],
        mut note: Option<(&Receipt, Vec<u8>)>,
        now: Timestamp,
    ) -> Result<Joined> {
        // All of a write happens at one moment.
        let mut moment = None;
        let mut whole = Batch::default();
        for (place, set) in sets.iter_mut().enumerate() {
            let moment = || *moment.get_or_insert_with(|| self.next_moment(now));
            match set.build(note.take(), moment)? {
                Built::Batch(part) => join(&mut whole, part)?,
                Built::LookAgain => return Ok(Joined::LookAgain),
                Built::Narrow => return Ok(Joined::Narrow(place)),
            }
        }
        Ok(Joined::Batch(whole))
    }
}

/// What became of the batches of all sets.
enum Joined {
    Batch(Batch),
    /// One of them cannot be made; which operation is to blame is found by looking at everything.
    LookAgain,
    /// The coverage of this set's container does not hold for what is to be written.
    Narrow(usize),
}

/// Why operations could not be applied.
enum Trouble {
    /// The refusal may not be that of the first operation that cannot be done.
    LookAgain,
    Refused(Refused),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

async fn apply(
    sets: &mut [WriteSet<'_>],
    targets: &[Target<'_>],
    look: Look,
) -> std::result::Result<(), Trouble> {
    for (part, target) in targets.iter().enumerate() {
        let set = &mut sets[part];
        set.load(target.operations).await?;
        let mut refused = set.apply(target.operations).await?;
        if look == Look::Everything
            && let Some(earlier) = set.first_violation().await?
        {
            refused = Some(earlier);
        }
        if let Some((operation, error)) = refused {
            let is_first = part == 0 && operation == 0 && set.is_transaction();
            return Err(match look == Look::Everything || is_first {
                true => Trouble::Refused(Refused { part, operation, error }),
                false => Trouble::LookAgain,
            });
        }
    }
    Ok(())
}

/// Adds a batch to another; its marks point at its own counters.
fn join(whole: &mut Batch, part: Batch) -> Result<()> {
    let shift = u8::try_from(whole.advances.len());
    let shift = shift.map_err(|_| Error::bad_request("a transaction touches too many collections"))?;
    if shift == 0 && whole.guards.is_empty() {
        *whole = part;
        return Ok(());
    }
    whole.guards.extend(part.guards);
    whole.deletes.extend(part.deletes);
    whole.advances.extend(part.advances);
    whole.puts.extend(part.puts.into_iter().map(|mut put| {
        put.marks.iter_mut().for_each(|mark| mark.advance += shift);
        put
    }));
    Ok(())
}
