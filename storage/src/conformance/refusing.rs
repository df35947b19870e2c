//! Promises about requests that the contract does not allow: refused, nothing written, the store goes on.

use super::*;
use crate::{
    batch::VALUE_BYTES_MAX,
    store::{KEY_BYTES_MAX, MarkAt, SeqMark},
};

/// The store still takes a good batch.
async fn goes_on(store: &dyn Store) {
    commit(store, Batch { deletes: vec![small("nothing")], ..Batch::default() }).await;
}

pub async fn bad_keys(store: Arc<dyn Store>) {
    let store = &*store;
    let long = Key { bytes: vec![1; KEY_BYTES_MAX + 1], ..small("") };
    for key in [small(""), long] {
        for batch in [
            Batch { guards: vec![absent(key.clone())], ..Batch::default() },
            Batch { puts: vec![put(key.clone(), b"")], ..Batch::default() },
            Batch { deletes: vec![key.clone()], ..Batch::default() },
            Batch {
                advances: vec![Advance { counter: key.clone(), stamp: 0, tally: [0, 0] }],
                ..Batch::default()
            },
        ] {
            expect_invalid(store.commit(batch).await);
        }
        expect_invalid(store.get(&key).await);
        let snapshot = good(store.snapshot().await);
        expect_invalid(snapshot.get(&key).await);
        expect_invalid(store.get_both(&[small("a"), key.clone()]).await);
        expect_invalid(snapshot.get_many(&[small("a"), key]).await);
    }
    let huge = Put { key: large("a"), value: vec![0; VALUE_BYTES_MAX + 1], marks: vec![] };
    expect_invalid(store.commit(Batch { puts: vec![huge], ..Batch::default() }).await);
    goes_on(store).await;
}

pub async fn keys_written_twice(store: Arc<dyn Store>) {
    let store = &*store;
    let a = || put(small("a"), b"x");
    for batch in [
        Batch { puts: vec![a(), put(small("b"), b"x"), a()], ..Batch::default() },
        Batch { puts: vec![a()], deletes: vec![small("a")], ..Batch::default() },
        Batch { deletes: vec![small("a"), small("a")], ..Batch::default() },
        Batch { puts: vec![a()], advances: vec![advance("a", 0, [0, 0])], ..Batch::default() },
        Batch { deletes: vec![small("a")], advances: vec![advance("a", 0, [0, 0])], ..Batch::default() },
        Batch { advances: vec![advance("a", 0, [0, 0]), advance("a", 1, [0, 0])], ..Batch::default() },
    ] {
        expect_invalid(store.commit(batch).await);
    }
    expect_get(store, &small("a"), None).await;
    expect_get(store, &small("b"), None).await;
    // The same bytes in both spaces are two keys.
    commit(store, Batch { puts: vec![a(), put(large("a"), b"x")], ..Batch::default() }).await;
}

pub async fn bad_marks(store: Arc<dyn Store>) {
    let store = &*store;
    let marked = |advance, at| Batch {
        puts: vec![Put { key: small("12345678"), value: vec![0; 16], marks: vec![SeqMark { advance, at }] }],
        advances: vec![super::advance("counter", 0, [0, 0])],
        ..Batch::default()
    };
    for (advance, at) in [
        (1, MarkAt::Key(0)),
        (0, MarkAt::Key(1)),
        (0, MarkAt::Key(u32::MAX)),
        (0, MarkAt::Value(9)),
        (0, MarkAt::Value(16)),
    ] {
        expect_invalid(store.commit(marked(advance, at)).await);
    }
    commit(store, marked(0, MarkAt::Key(0))).await;
    commit(store, marked(0, MarkAt::Value(8))).await;
}

pub async fn bad_scans(store: Arc<dyn Store>) {
    let snapshot = good(store.snapshot().await);
    let none = PageLimit { rows: 0, bytes: 100 };
    expect_invalid(snapshot.scan(&range("a", "b"), Direction::Forward, none).await);
    expect_invalid(store.clear(&range("a", "b"), 0).await);
    let long = KeyRange { start: vec![1; 100_000], ..range("", "b") };
    expect_invalid(snapshot.scan(&long, Direction::Reverse, rows(1)).await);
    expect_invalid(store.clear(&long, 1).await);
    let long = KeyRange { end: Some(vec![1; 100_000]), ..range("", "b") };
    expect_invalid(snapshot.scan(&long, Direction::Forward, rows(1)).await);
    goes_on(&*store).await;
}

/// Advancing a row that holds something else is refused, and the row stays.
pub async fn not_a_counter(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), b"text".as_slice())]).await;
    let batch = Batch { advances: vec![advance("a", 0, [0, 0])], ..Batch::default() };
    expect_invalid(store.commit(batch).await);
    expect_get(&*store, &small("a"), Some(b"text")).await;
    goes_on(&*store).await;
}
