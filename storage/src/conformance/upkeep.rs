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

/// Rows of the small space are dead if their values begin with 3 and a number up to this.
struct Through(u64);

impl DeadRows for Through {
    fn judge(&self, space: Space, _: &[u8], value: &[u8]) -> Verdict {
        let number =
            value.get(1..9).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).map(u64::from_be_bytes);
        match (space, value.first(), number) {
            (Space::Small, Some(3), Some(number)) if number <= self.0 => Verdict::Drop,
            _ => Verdict::Keep,
        }
    }

    fn may_be_in(&self, range: &KeyRange) -> bool {
        range.space == Space::Small
    }
}

fn numbered(lead: u8, number: u64) -> Vec<u8> {
    [&[lead][..], &number.to_be_bytes(), b"rest"].concat()
}

/// Dead rows may go from the announcement on, and do where the store forgets; others never do. What counts is what a key
/// holds now.
pub async fn dead_rows_go(store: Arc<dyn Store>) {
    let store = &*store;
    let names: Vec<String> = (0..50).map(|number| format!("w{number:02}")).collect();
    let puts = names.iter().zip(0..).map(|(name, number)| put(small(name), &numbered(3, number)));
    commit(store, Batch { puts: puts.collect(), ..Batch::default() }).await;
    let others = [(small("w2x"), numbered(4, 1)), (small("w3x"), vec![3, 0]), (large("w04"), numbered(3, 1))];
    let puts =
        others.iter().map(|(key, value)| Put { key: key.clone(), value: value.clone(), marks: vec![] });
    commit(store, Batch { puts: puts.collect(), ..Batch::default() }).await;
    // One that was dead and is written again, and one that becomes dead.
    let again = vec![put(small("w05"), &numbered(3, 70)), put(small("w40"), &numbered(3, 2))];
    commit(store, Batch { puts: again, ..Batch::default() }).await;
    store.forget(Arc::new(Through(4)));
    store.forget(Arc::new(Through(19)));
    good(store.reclaim().await);
    let found = scan(store, &range("w", "x"), Direction::Forward, rows(100)).await;
    let is_dead = |key: &str| (key < "w20" && key != "w05") || key == "w40";
    let left: Vec<&str> = keys(&found).into_iter().filter(|key| !is_dead(key)).collect();
    assert_eq!(left.len(), 50 - 20 + 2);
    if store.forgets_up_to() >= numbered(3, 0).len() {
        assert_eq!(keys(&found), left);
    }
    for (key, value) in &others {
        expect_get(store, key, Some(value)).await;
    }
    expect_get(store, &small("w05"), Some(&numbered(3, 70))).await;
}

/// A dead row that goes does not uncover what its key held before, and a key that held one can be written again.
pub async fn dead_rows_uncover_nothing(store: Arc<dyn Store>) {
    let store = &*store;
    for value in [numbered(4, 1), numbered(3, 1)] {
        commit(store, Batch { puts: vec![put(small("a"), &value)], ..Batch::default() }).await;
        good(store.reclaim().await);
    }
    store.forget(Arc::new(Through(5)));
    good(store.reclaim().await);
    if store.forgets_up_to() > 0 {
        expect_get(store, &small("a"), None).await;
    }
    commit(store, Batch { puts: vec![put(small("a"), b"new")], ..Batch::default() }).await;
    good(store.reclaim().await);
    expect_get(store, &small("a"), Some(b"new")).await;
}

/// A discard takes all of its ranges, in both spaces, and nothing beside them.
pub async fn discarded_ranges_go(store: Arc<dyn Store>) {
    let store = &*store;
    let names: Vec<String> = (0..60).map(|number| format!("d{number:02}")).collect();
    let keys_of = |name: &String| [small(name), large(name)];
    let puts = || names.iter().flat_map(keys_of).map(|key| put(key, &[7; 300])).collect();
    commit(store, Batch { puts: puts(), ..Batch::default() }).await;
    good(store.reclaim().await);
    commit(store, Batch { puts: puts(), ..Batch::default() }).await;
    let ranges = [
        range("d10", "d20"),
        range("d30", "d31"),
        range("d59", "d0"),
        KeyRange { space: Space::Large, ..range("d00", "d50") },
    ];
    while good(store.discard(&ranges).await) {}
    let found = scan(store, &range("d", "e"), Direction::Forward, rows(100)).await;
    let is_left = |name: &&str| !("d10".."d20").contains(name) && *name != "d30";
    assert_eq!(keys(&found), names.iter().map(String::as_str).filter(is_left).collect::<Vec<_>>());
    let all = KeyRange { space: Space::Large, ..range("d", "e") };
    assert_eq!(keys(&scan(store, &all, Direction::Forward, rows(100)).await), names[50..]);
    expect_get(store, &large("d00"), None).await;
    commit(store, Batch { puts: puts(), ..Batch::default() }).await;
    good(store.reclaim().await);
    assert_eq!(scan(store, &all, Direction::Forward, rows(100)).await.rows.len(), 60);
    while good(store.discard(&[]).await) {}
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
