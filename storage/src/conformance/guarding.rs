//! Promises about guards and about a batch being one change.

use super::*;

pub async fn guard_absent(store: Arc<dyn Store>) {
    let store = &*store;
    for key in [small("a"), large("a")] {
        let insert = || Batch {
            guards: vec![absent(key.clone())],
            puts: vec![put(key.clone(), b"here")],
            ..Batch::default()
        };
        commit(store, insert()).await;
        expect_conflict(store.commit(insert()).await, &key);
        commit(store, Batch { deletes: vec![key.clone()], ..Batch::default() }).await;
        commit(store, insert()).await;
        expect_get(store, &key, Some(b"here")).await;
    }
}

pub async fn guard_version(store: Arc<dyn Store>) {
    let store = &*store;
    for key in [small("a"), large("a")] {
        let value = |version: u64| [&version.to_be_bytes()[..], &[b'x'; 2000]].concat();
        let replace = |from, to| Batch {
            guards: vec![version(key.clone(), from)],
            puts: vec![put(key.clone(), &value(to))],
            ..Batch::default()
        };
        // Nothing there has no version, not even zero.
        expect_conflict(store.commit(replace(0, 1)).await, &key);
        write(store, [(key.clone(), value(1).as_slice())]).await;
        commit(store, replace(1, u64::MAX)).await;
        expect_conflict(store.commit(replace(1, 2)).await, &key);
        commit(store, replace(u64::MAX, 0)).await;
        commit(store, replace(0, 3)).await;
        expect_get(store, &key, Some(&value(3))).await;
        // A guard on a key that the batch deletes.
        let delete =
            Batch { guards: vec![version(key.clone(), 3)], deletes: vec![key.clone()], ..Batch::default() };
        commit(store, delete.clone()).await;
        expect_conflict(store.commit(delete).await, &key);
    }
}

/// A value that has no eight bytes has no version.
pub async fn guard_on_short_values(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), [0; 7].as_slice())]).await;
    let guard = |expected| Batch { guards: vec![version(small("a"), expected)], ..Batch::default() };
    expect_conflict(store.commit(guard(0)).await, &small("a"));
    write(&*store, [(small("a"), [0; 8].as_slice())]).await;
    commit(&*store, guard(0)).await;
    expect_conflict(store.commit(guard(1)).await, &small("a"));
}

/// The first guard that does not hold is named, and nothing of the batch is there.
pub async fn conflict_writes_nothing(store: Arc<dyn Store>) {
    let store = &*store;
    write(store, [(small("a"), b"old".as_slice()), (small("b"), b"old")]).await;
    let refused = Batch {
        guards: vec![absent(small("none")), absent(small("b")), absent(small("a"))],
        puts: vec![put(small("a"), b"new"), put(large("c"), b"new")],
        deletes: vec![small("b")],
        advances: vec![advance("counter", 1, [1, 1])],
        ..Batch::default()
    };
    let before = store.stats().conflicts;
    expect_conflict(store.commit(refused).await, &small("b"));
    assert_eq!(store.stats().conflicts, before + 1);
    expect_get(store, &small("a"), Some(b"old")).await;
    expect_get(store, &small("b"), Some(b"old")).await;
    expect_get(store, &large("c"), None).await;
    expect_get(store, &small("counter"), None).await;
}

/// A counter row is a row: its version is its sequence, and it is absent before the first advance.
pub async fn guard_on_a_counter(store: Arc<dyn Store>) {
    let store = &*store;
    let step = |guard| Batch {
        guards: vec![guard],
        advances: vec![advance("counter", 5, [0, 0])],
        ..Batch::default()
    };
    expect_conflict(store.commit(step(version(small("counter"), 0))).await, &small("counter"));
    commit(store, step(absent(small("counter")))).await;
    expect_conflict(store.commit(step(absent(small("counter")))).await, &small("counter"));
    commit(store, step(version(small("counter"), 1))).await;
    expect_conflict(store.commit(step(version(small("counter"), 1))).await, &small("counter"));
    let third = commit(store, step(version(small("counter"), 2))).await;
    expect_get(store, &small("counter"), Some(&third.counters[0].encode())).await;
}

/// Puts, deletes and advances in both spaces come together.
pub async fn one_batch_is_one_change(store: Arc<dyn Store>) {
    let store = &*store;
    write(store, [(small("b"), b"old".as_slice()), (large("b"), b"old")]).await;
    let before = good(store.snapshot().await);
    commit(
        store,
        Batch {
            guards: vec![absent(small("a"))],
            puts: vec![put(small("a"), b"new"), put(large("a"), b"new")],
            deletes: vec![small("b"), large("b")],
            advances: vec![advance("counter", 1, [0, 0])],
            ..Batch::default()
        },
    )
    .await;
    for (key, expected) in [
        (small("a"), Some(b"new".as_slice())),
        (large("a"), Some(b"new")),
        (small("b"), None),
        (large("b"), None),
    ] {
        expect_get(store, &key, expected).await;
    }
    assert!(good(before.get(&small("counter")).await).is_none());
    assert!(good(store.get(&small("counter")).await).is_some());
}

pub async fn empty_batch(store: Arc<dyn Store>) {
    assert_eq!(commit(&*store, Batch::default()).await, Committed::default());
    assert_eq!(commit(&*store, background(Batch::default())).await, Committed::default());
    // Guards alone are a question.
    commit(&*store, Batch { guards: vec![absent(small("a"))], ..Batch::default() }).await;
    expect_conflict(
        store.commit(Batch { guards: vec![version(small("a"), 1)], ..Batch::default() }).await,
        &small("a"),
    );
}

/// Background batches keep every promise but speed and durability.
pub async fn background_batches(store: Arc<dyn Store>) {
    let store = &*store;
    let insert = |name: &str| {
        background(Batch {
            guards: vec![absent(small(name))],
            puts: vec![put(small(name), b"x")],
            advances: vec![advance("counter", 0, [1, 0])],
            ..Batch::default()
        })
    };
    assert_eq!(commit(store, insert("a")).await.counters[0].seq, 1);
    expect_get(store, &small("a"), Some(b"x")).await;
    expect_conflict(store.commit(insert("a")).await, &small("a"));
    assert_eq!(commit(store, Batch { urgency: Urgency::Foreground, ..insert("b") }).await.counters[0].seq, 2);
    assert_eq!(commit(store, insert("c")).await.counters[0].seq, 3);
}
