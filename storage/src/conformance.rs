//! The suite every backend passes: one function per promise of the contract.
//!
//! A backend's test is one call of [`run_all`] with a way to make an empty store, and one of
//! [`survives_reopening`] with a way to open the same place again. A promise that fails panics with what was
//! expected; the name of the promise is printed before it runs.
//!
//! Holds: every promise starts on an empty store and uses nothing but the contract.

mod counting;
mod crowd;
mod guarding;
mod looking;
mod peers;
mod reading;
mod refusing;
mod upkeep;

use std::{future::Future, sync::Arc};

use bytes::Bytes;

use crate::{
    Error, Result,
    store::{
        Advance, Batch, BoxFuture, Committed, Direction, Expect, Guard, Key, KeyRange, Page, PageLimit, Put,
        Slot, Space, Store, Urgency,
    },
    upkeep::Withered,
};

/// A promise, to be checked on an empty store.
type Promise = fn(Arc<dyn Store>) -> BoxFuture<'static, ()>;

macro_rules! promises {
    ($($module:ident: $($name:ident),+;)+) => {
        /// Every promise with its name.
        const PROMISES: &[(&str, Promise)] = &[
            $($((stringify!($name), |store| Box::pin($module::$name(store)))),+),+
        ];
    };
}

promises! {
    reading: put_get_delete, empty_values, keys_are_ordered, spaces_are_apart, prefix_ranges, empty_ranges,
        pages_forward, pages_reverse, pages_by_bytes, snapshots_do_not_change,
        background_snapshots_show_the_same, get_many_keeps_order, slots_answer_for_their_keys;
    looking: get_both_keeps_order, get_both_is_of_the_latest, first_rows_as_they_are, first_rows_of_a_range,
        a_sieve_keeps_rows_of_the_same_page, a_sieve_asks_about_old_and_new_rows;
    guarding: guard_absent, guard_version, guard_on_short_values, conflict_writes_nothing, guard_on_a_counter,
        one_batch_is_one_change, empty_batch, background_batches;
    upkeep: clear_in_steps, withered_rows_go, withered_rows_may_go_early, sync_returns, upkeep_changes_no_answer;
    peers: floors_let_present_versions_through, background_work_has_an_owner;
    counting: advances_count, marks_in_keys_and_values, several_advances, tallies_add_up, stale_stamps,
        refused_batches_take_no_number, cleared_counters_start_again;
    crowd: no_lost_update, numbers_are_dense_and_in_order, readers_see_whole_batches;
    refusing: bad_keys, keys_written_twice, bad_marks, bad_scans, not_a_counter;
}

/// Checks every promise, each on a store from `make`.
pub async fn run_all<Made: Future<Output = Arc<dyn Store>>>(make: impl Fn() -> Made) {
    for (name, promise) in PROMISES {
        println!("promise: {name}");
        promise(make().await).await;
    }
}

/// Checks that a store opened again holds everything. `open` opens the same place each time, at first empty; the
/// store before is dropped by then.
pub async fn survives_reopening<Made: Future<Output = Arc<dyn Store>>>(open: impl Fn() -> Made) {
    let rounds = 4u64;
    for round in 0..rounds {
        let store = open().await;
        for earlier in 0..round {
            expect_get(&*store, &small(&format!("round {earlier}")), Some(&earlier.to_be_bytes())).await;
            expect_get(&*store, &large(&format!("round {earlier}")), Some(&[earlier as u8; 3000])).await;
        }
        let deleted = round.checked_sub(2).map(|past| small(&format!("deleted {past}")));
        if let Some(deleted) = &deleted {
            expect_get(&*store, deleted, None).await;
        }
        let committed = commit(
            &*store,
            Batch {
                puts: vec![
                    put(small(&format!("round {round}")), &round.to_be_bytes()),
                    put(large(&format!("round {round}")), &[round as u8; 3000]),
                    put(small(&format!("deleted {round}")), b"soon"),
                ],
                deletes: round
                    .checked_sub(1)
                    .map(|past| small(&format!("deleted {past}")))
                    .into_iter()
                    .collect(),
                advances: vec![advance("counter", round, [1, -1])],
                ..Batch::default()
            },
        )
        .await;
        assert_eq!(committed.counters[0].seq, round + 1);
        assert_eq!(committed.counters[0].tally, [round as i64 + 1, -(round as i64) - 1]);
    }
}

fn small(bytes: &str) -> Key {
    Key { space: Space::Small, slot: Slot(7), bytes: bytes.as_bytes().to_vec() }
}

fn large(bytes: &str) -> Key {
    Key { space: Space::Large, ..small(bytes) }
}

fn put(key: Key, value: &[u8]) -> Put {
    Put { key, value: value.to_vec(), marks: vec![] }
}

fn advance(counter: &str, stamp: u64, tally: [i64; 2]) -> Advance {
    Advance { counter: small(counter), stamp, tally }
}

fn absent(key: Key) -> Guard {
    Guard { key, expect: Expect::Absent }
}

fn version(key: Key, version: u64) -> Guard {
    Guard { key, expect: Expect::Version(version) }
}

/// All small keys from `start` to before `end`.
fn range(start: &str, end: &str) -> KeyRange {
    KeyRange {
        space: Space::Small,
        slot: Slot(7),
        start: start.as_bytes().to_vec(),
        end: Some(end.as_bytes().to_vec()),
    }
}

fn rows(rows: usize) -> PageLimit {
    PageLimit { rows, bytes: usize::MAX }
}

fn good<T>(result: Result<T>) -> T {
    result.expect("the store answers")
}

async fn commit(store: &dyn Store, batch: Batch) -> Committed {
    good(store.commit(batch).await)
}

async fn write(store: &dyn Store, puts: impl IntoIterator<Item = (Key, &[u8])>) {
    let puts = puts.into_iter().map(|(key, value)| put(key, value)).collect();
    commit(store, Batch { puts, ..Batch::default() }).await;
}

async fn expect_get(store: &dyn Store, key: &Key, expected: Option<&[u8]>) {
    assert_eq!(good(store.get(key).await).as_deref(), expected, "{key:?}");
    let snapshot = good(store.snapshot().await);
    assert_eq!(good(snapshot.get(key).await).as_deref(), expected, "{key:?} in a snapshot");
}

async fn scan(store: &dyn Store, range: &KeyRange, direction: Direction, limit: PageLimit) -> Page {
    good(good(store.snapshot().await).scan(range, direction, limit).await)
}

fn keys(page: &Page) -> Vec<&str> {
    page.rows.iter().map(|(key, _)| text(key)).collect()
}

fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).expect("the suite writes text keys")
}

fn expect_conflict(result: Result<Committed>, at: &Key) {
    match result {
        Err(Error::Conflict { key }) => assert_eq!(key, *at),
        other => panic!("expected a conflict at {at:?}, got {other:?}"),
    }
}

fn expect_invalid<T: std::fmt::Debug>(result: Result<T>) {
    let is_refused = matches!(result, Err(Error::Invalid(_) | Error::KeyTooLong { .. }));
    assert!(is_refused, "expected to be refused as invalid, got {result:?}");
}

fn background(batch: Batch) -> Batch {
    Batch { urgency: Urgency::Background, ..batch }
}
