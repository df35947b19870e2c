//! Promises about upkeep: what it removes, and that it changes nothing else.

use std::sync::Arc;

use super::*;

/// `clear` goes in steps of its limit, says whether there is more, and stays inside its range and space.
pub async fn clear_in_steps(store: Arc<dyn Store>) {
    let store = &*store;
    let names: Vec<String> = (0..10).map(|number| format!("key {number}")).collect();
    write(store, names.iter().map(|name| (small(name), b"x".as_slice()))).await;
    write(store, [(small("kex"), b"x".as_slice()), (small("kez"), b"x"), (large("key 1"), b"x")]).await;
    let all = range("key", "kez");
    let mut steps = Vec::new();
    loop {
        let cleared = good(store.clear(&all, 4).await);
        steps.push(cleared.keys);
        if !cleared.more {
            break;
        }
    }
    assert_eq!(steps, [4, 4, 2]);
    assert!(scan(store, &all, Direction::Forward, rows(10)).await.rows.is_empty());
    assert_eq!(good(store.clear(&all, 4).await).keys, 0);
    for key in [small("kex"), small("kez"), large("key 1")] {
        expect_get(store, &key, Some(b"x")).await;
    }
    assert_eq!(good(store.clear(&range("z", "a"), 4).await).keys, 0);
}

pub async fn sync_returns(store: Arc<dyn Store>) {
    good(store.sync().await);
    write(&*store, [(small("a"), b"x".as_slice())]).await;
    commit(&*store, background(Batch { puts: vec![put(small("b"), b"x")], ..Batch::default() })).await;
    good(store.sync().await);
    let stats = store.stats();
    assert_eq!(stats.commits, 2);
    assert!(stats.groups >= 1 && stats.groups <= 2);
}

/// A sweep takes rows of its range by what they hold now: not others, and not back to what they held before.
pub async fn withered_rows_go(store: Arc<dyn Store>) {
    let store = &*store;
    let value = |lead: u8, number: u64| [&[lead][..], &number.to_be_bytes(), b"rest"].concat();
    let rows = [
        ("a1", value(0, 5)),
        ("a2", value(0, 6)),
        ("a3", value(1, 5)),
        ("a4", vec![0, 0, 0]),
        ("a5", value(1, 5)),
        ("a6", value(0, 1)),
        ("b1", value(0, 5)),
    ];
    let puts = rows.iter().map(|(key, value)| put(small(key), value)).collect();
    commit(store, Batch { puts, ..Batch::default() }).await;
    // One that was kept by its lead and is withered now; one that was withered and is written again.
    let again = vec![put(small("a5"), &value(0, 5)), put(small("a6"), &value(0, 7))];
    commit(store, Batch { puts: again, ..Batch::default() }).await;
    let range = KeyRange {
        space: Space::Small,
        slot: small("").slot,
        start: b"a".to_vec(),
        end: Some(b"b".to_vec()),
    };
    good(store.sweep(vec![Withered { range: range.clone(), lead: 0, through: 5 }]).await);
    for gone in ["a1", "a5"] {
        expect_get(store, &small(gone), None).await;
    }
    for left in [1, 2, 3, 6] {
        expect_get(store, &small(rows[left].0), Some(&rows[left].1)).await;
    }
    expect_get(store, &small("a6"), Some(&value(0, 7))).await;
    commit(store, Batch { puts: vec![put(small("a1"), b"new")], ..Batch::default() }).await;
    good(store.sweep(vec![Withered { range, lead: 0, through: 0 }]).await);
    expect_get(store, &small("a1"), Some(b"new")).await;
    expect_get(store, &small("a5"), None).await;
}

/// From the announcement on a withered row may be there or not; the others are there, and after the sweep it
/// is gone.
pub async fn withered_rows_may_go_early(store: Arc<dyn Store>) {
    let value = |number: u64| [&[3][..], &number.to_be_bytes()].concat();
    let names: Vec<String> = (0..50).map(|number| format!("w{number:02}")).collect();
    let rows_of = |from: u64| names.iter().zip(from..).map(|(name, number)| put(small(name), &value(number)));
    commit(&*store, Batch { puts: rows_of(0).collect(), ..Batch::default() }).await;
    let withered = || vec![Withered { range: range("w", "x"), lead: 3, through: 19 }];
    store.wither(withered());
    good(store.reclaim().await);
    let found = scan(&*store, &range("w", "x"), Direction::Forward, rows(100)).await;
    let left: Vec<&str> = keys(&found).into_iter().filter(|key| *key >= "w20").collect();
    assert_eq!(left, names[20..]);
    good(store.sweep(withered()).await);
    assert_eq!(keys(&scan(&*store, &range("w", "x"), Direction::Forward, rows(100)).await), names[20..]);
    // The announcement ended with its sweep: a row as it was before stays.
    commit(&*store, Batch { puts: vec![put(small("w00"), &value(5))], ..Batch::default() }).await;
    good(store.reclaim().await);
    expect_get(&*store, &small("w00"), Some(&value(5))).await;
}

/// Space is given back and tables are put in order under readers, which see what they saw.
pub async fn upkeep_changes_no_answer(store: Arc<dyn Store>) {
    let value = |round: u8| [round; 700];
    for round in 0..3_u8 {
        let puts = (0..60).map(|number| put(large(&format!("u{number:02}")), &value(round))).collect();
        commit(&*store, Batch { puts, ..Batch::default() }).await;
        let deletes = (0..20).map(|number| large(&format!("u{:02}", number * 3))).collect();
        let snapshot = good(store.snapshot().await);
        commit(&*store, Batch { deletes, ..Batch::default() }).await;
        good(store.reclaim().await);
        for _ in 0..3 {
            good(store.compact_when_idle().await);
        }
        good(store.sync().await);
        let all = KeyRange { space: Space::Large, ..range("u", "v") };
        let old = good(snapshot.scan(&all, Direction::Forward, rows(100)).await);
        let new = scan(&*store, &all, Direction::Forward, rows(100)).await;
        assert_eq!((old.rows.len(), new.rows.len()), (60, 40));
        assert!(old.rows.iter().chain(&new.rows).all(|(_, found)| **found == value(round)));
        expect_get(&*store, &large("u00"), None).await;
        expect_get(&*store, &large("u01"), Some(&value(round))).await;
    }
}
