//! Promises about counters: numbers, stamps, tallies and marks.

use super::*;
use crate::store::{Counter, MarkAt, SeqMark};

fn at_key(advance: u8, at: u32) -> SeqMark {
    SeqMark { advance, at: MarkAt::Key(at) }
}

fn at_value(advance: u8, at: u32) -> SeqMark {
    SeqMark { advance, at: MarkAt::Value(at) }
}

/// The first number is 1, each next one is one more, and the row says what was answered.
pub async fn advances_count(store: Arc<dyn Store>) {
    for expected in 1..=5 {
        let batch = Batch { advances: vec![advance("counter", 10, [0, 0])], ..Batch::default() };
        let committed = commit(&*store, batch).await;
        assert_eq!(committed.counters, [Counter { seq: expected, stamp: 10, tally: [0, 0] }]);
        expect_get(&*store, &small("counter"), Some(&committed.counters[0].encode())).await;
    }
    // Counters may live among the large rows, and know nothing of each other.
    let other = Advance { counter: large("counter"), stamp: 0, tally: [0, 0] };
    let committed = commit(&*store, Batch { advances: vec![other], ..Batch::default() }).await;
    assert_eq!(committed.counters[0].seq, 1);
}

/// Several marks in one key and one value, at both ends; the bytes around stay.
pub async fn marks_in_keys_and_values(store: Arc<dyn Store>) {
    for seq in 1..=3u64 {
        let marked = Put {
            key: small("feed/________/________"),
            value: b"________ and ________".to_vec(),
            marks: vec![at_key(0, 5), at_key(0, 14), at_value(0, 0), at_value(0, 13)],
        };
        let plain =
            Put { key: small(&format!("plain {seq}")), value: vec![0xEE; 24], marks: vec![at_value(0, 8)] };
        let batch = Batch {
            puts: vec![marked, plain],
            advances: vec![advance("counter", 0, [0, 0])],
            ..Batch::default()
        };
        assert_eq!(commit(&*store, batch).await.counters[0].seq, seq);

        let number = seq.to_be_bytes();
        let key = Key { bytes: [b"feed/", &number[..], b"/", &number].concat(), ..small("") };
        expect_get(&*store, &key, Some(&[&number[..], b" and ", &number].concat())).await;
        let plain = [&[0xEE; 8], &number[..], &[0xEE; 8]].concat();
        expect_get(&*store, &small(&format!("plain {seq}")), Some(&plain)).await;
    }
    expect_get(&*store, &small("feed/________/________"), None).await;
    // Numbers in keys sort as numbers.
    let page = scan(&*store, &range("feed/", "feed0"), Direction::Forward, rows(10)).await;
    let found: Vec<u8> = page.rows.iter().map(|(key, _)| key[12]).collect();
    assert_eq!(found, [1, 2, 3]);
}

/// Each mark takes the number of its own advance; answers stand in the order of the advances.
pub async fn several_advances(store: Arc<dyn Store>) {
    let store = &*store;
    for _ in 0..4 {
        commit(store, Batch { advances: vec![advance("second", 0, [0, 0])], ..Batch::default() }).await;
    }
    // Equal bytes that get different numbers are different keys.
    let same_bytes =
        |mark, value: &[u8]| Put { key: small("k________"), value: value.to_vec(), marks: vec![mark] };
    let both = Put { key: small("both"), value: vec![0; 16], marks: vec![at_value(1, 0), at_value(0, 8)] };
    let committed = commit(
        store,
        Batch {
            puts: vec![same_bytes(at_key(0, 1), b"first"), same_bytes(at_key(1, 1), b"second"), both],
            advances: vec![advance("first", 3, [0, 0]), advance("second", 4, [0, 0])],
            ..Batch::default()
        },
    )
    .await;
    let numbers: Vec<(u64, u64)> = committed.counters.iter().map(|row| (row.seq, row.stamp)).collect();
    assert_eq!(numbers, [(1, 3), (5, 4)]);
    let key = |seq: u64| Key { bytes: [b"k", &seq.to_be_bytes()[..]].concat(), ..small("") };
    expect_get(store, &key(1), Some(b"first")).await;
    expect_get(store, &key(5), Some(b"second")).await;
    expect_get(store, &small("both"), Some(&[5u64.to_be_bytes(), 1u64.to_be_bytes()].concat())).await;
}

pub async fn tallies_add_up(store: Arc<dyn Store>) {
    let mut expected = [0, 0];
    for tally in [[1, 1000], [1, 24], [0, -500], [-2, -524], [i64::MAX, i64::MIN], [i64::MIN, i64::MAX]] {
        let batch = Batch { advances: vec![advance("counter", 0, tally)], ..Batch::default() };
        expected = [expected[0] + tally[0], expected[1] + tally[1]];
        assert_eq!(commit(&*store, batch).await.counters[0].tally, expected);
    }
}

/// Equal stamps pass, smaller ones are told the counter's, and nothing of the batch is there.
pub async fn stale_stamps(store: Arc<dyn Store>) {
    let store = &*store;
    let step = |stamp| Batch {
        puts: vec![put(small("a"), &u64::to_be_bytes(stamp))],
        advances: vec![advance("other", u64::MAX, [0, 0]), advance("counter", stamp, [0, 0])],
        ..Batch::default()
    };
    commit(store, step(5)).await;
    commit(store, step(5)).await;
    commit(store, step(9)).await;
    for stamp in [0, 8] {
        match store.commit(step(stamp)).await {
            Err(Error::Stale { stamp }) => assert_eq!(stamp, 9),
            other => panic!("expected a stale stamp, got {other:?}"),
        }
    }
    expect_get(store, &small("a"), Some(&9u64.to_be_bytes())).await;
    let committed = commit(store, step(9)).await;
    assert_eq!(committed.counters[0].seq, 4, "a refused batch raises no counter of its own");
    assert_eq!(committed.counters[1].seq, 4);
}

pub async fn refused_batches_take_no_number(store: Arc<dyn Store>) {
    let store = &*store;
    let insert = |name: &str| Batch {
        guards: vec![absent(small(name))],
        puts: vec![put(small(name), b"x")],
        advances: vec![advance("counter", 0, [1, 0])],
        ..Batch::default()
    };
    commit(store, insert("a")).await;
    expect_conflict(store.commit(insert("a")).await, &small("a"));
    let committed = commit(store, insert("b")).await;
    assert_eq!(committed.counters[0], Counter { seq: 2, stamp: 0, tally: [2, 0] });
}

/// A range that is cleared takes its counters along, also those a store remembers.
pub async fn cleared_counters_start_again(store: Arc<dyn Store>) {
    let store = &*store;
    let step = || Batch { advances: vec![advance("counter", 7, [1, 0])], ..Batch::default() };
    commit(store, step()).await;
    commit(store, step()).await;
    good(store.clear(&range("a", "z"), 10).await);
    expect_get(store, &small("counter"), None).await;
    let committed = commit(store, step()).await;
    assert_eq!(committed.counters[0], Counter { seq: 1, stamp: 7, tally: [1, 0] });
    expect_get(store, &small("counter"), Some(&committed.counters[0].encode())).await;
}
