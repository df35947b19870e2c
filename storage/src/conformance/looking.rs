//! Promises about reads that a store may answer by a shorter way than a snapshot and a scan: two keys at
//! once, the first rows of a range, and rows that pass a filter. The shorter way shows what the longer one
//! does.

use std::sync::Arc;

use super::*;
use crate::store::{MayHold, Sieved, Snapshot};

/// Two keys are read in the order they are asked for, whether they are there or not.
pub async fn get_both_keeps_order(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), b"1".as_slice()), (small("b"), b"2"), (large("a"), b"3")]).await;
    for (asked, expected) in [
        ([large("a"), small("b")], [Some(b"3".as_slice()), Some(b"2")]),
        ([small("b"), small("a")], [Some(b"2"), Some(b"1")]),
        ([small("none"), small("a")], [None, Some(b"1")]),
        ([small("a"), large("none")], [Some(b"1"), None]),
        ([small("b"), small("b")], [Some(b"2"), Some(b"2")]),
        ([large("none"), small("none")], [None, None]),
    ] {
        let found = good(store.get_both(&asked).await);
        assert_eq!(found.each_ref().map(Option::as_deref), expected, "{asked:?}");
    }
}

/// Whatever was kept from an earlier read, two keys are read as they are now, after writes and deletes and
/// after the store was put in order.
pub async fn get_both_is_of_the_latest(store: Arc<dyn Store>) {
    let (record, counter) = (large("record"), small("counter"));
    let asked = [record.clone(), counter.clone()];
    for round in 0..4_u8 {
        let (new, old) = ([round; 600], [round; 8]);
        write(&*store, [(record.clone(), new.as_slice()), (counter.clone(), old.as_slice())]).await;
        for _ in 0..3 {
            let found = good(store.get_both(&asked).await);
            assert_eq!(found.each_ref().map(Option::as_deref), [Some(new.as_slice()), Some(old.as_slice())]);
        }
        if round == 2 {
            good(store.reclaim().await);
        }
        commit(&*store, Batch { deletes: vec![record.clone()], ..Batch::default() }).await;
        for _ in 0..3 {
            let found = good(store.get_both(&asked).await);
            assert_eq!(found.each_ref().map(Option::as_deref), [None, Some(old.as_slice())]);
        }
    }
}

/// Without a snapshot: the same rows as with one.
pub async fn first_rows_as_they_are(store: Arc<dyn Store>) {
    let all = KeyRange::prefix(Space::Small, small("").slot, b"k".to_vec());
    assert!(good(store.peek(&all, 10).await).is_empty());
    write(&*store, ["j", "k2", "k1", "k3", "l"].map(|key| (small(key), key.as_bytes()))).await;
    for (limit, expected) in [(1, &["k1"][..]), (2, &["k1", "k2"]), (10, &["k1", "k2", "k3"])] {
        let found = good(store.peek(&all, limit).await);
        let keys: Vec<_> =
            found.iter().map(|(key, _)| std::str::from_utf8(key).unwrap_or_default()).collect();
        assert_eq!(keys, expected);
        assert!(found.iter().all(|(key, value)| key == value), "each key has its own value");
    }
    commit(&*store, Batch { deletes: vec![small("k1")], ..Batch::default() }).await;
    assert_eq!(good(store.peek(&all, 10).await).len(), 2);
    assert!(store.peek(&all, 0).await.is_err());
}

/// A range ends where it says, in either space, before and after the store was put in order.
pub async fn first_rows_of_a_range(store: Arc<dyn Store>) {
    for key in [small as fn(&str) -> Key, large] {
        write(&*store, ["a", "b", "c", "d"].map(|name| (key(name), name.as_bytes()))).await;
    }
    for _ in 0..2 {
        for space in [Space::Small, Space::Large] {
            let of = |start, end| KeyRange { space, ..range(start, end) };
            for (start, end, expected) in [
                ("a", "c", &["a", "b"][..]),
                ("b", "d", &["b", "c"]),
                ("b", "b", &[]),
                ("d", "a", &[]),
                ("e", "f", &[]),
            ] {
                let found = good(store.peek(&of(start, end), 10).await);
                let found: Vec<_> = found.iter().map(|(key, _)| text(key)).collect();
                assert_eq!(found, expected, "{start}..{end} in {space:?}");
            }
            let endless = KeyRange { end: None, ..of("c", "") };
            assert_eq!(good(store.peek(&endless, 10).await).len(), 2, "{space:?}");
        }
        good(store.reclaim().await);
    }
}

/// A sieve of a range, and what it met.
async fn sieved(
    snapshot: &dyn Snapshot,
    range: &KeyRange,
    direction: Direction,
    limit: PageLimit,
    may_hold: Option<&MayHold<'_>>,
    is_kept: &(dyn Fn(&[u8]) -> bool + Sync),
) -> (Sieved, Vec<(Bytes, Bytes)>) {
    let mut met = Vec::new();
    let mut keep = |key: &[u8], value: &[u8], is_possible: bool| {
        met.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        assert!(is_possible || (may_hold.is_some() && !is_kept(value)), "denied, but it is kept");
        is_possible && is_kept(value)
    };
    let sieved = good(snapshot.sieve(range, direction, limit, may_hold, &mut keep).await);
    (sieved, met)
}

/// Expects what a scan of the same page shows, and the same place to go on.
async fn expect_sieved(
    snapshot: &dyn Snapshot,
    range: &KeyRange,
    limits: &[PageLimit],
    may_hold: &MayHold<'_>,
    is_kept: &(dyn Fn(&[u8]) -> bool + Sync),
) {
    for direction in [Direction::Forward, Direction::Reverse] {
        for limit in limits {
            let page = good(snapshot.scan(range, direction, *limit).await);
            for may_hold in [None, Some(may_hold)] {
                let (sieved, met) = sieved(snapshot, range, direction, *limit, may_hold, is_kept).await;
                assert_eq!((sieved.met, &met), (page.rows.len(), &page.rows), "{direction:?} {limit:?}");
                let last = page.rows.last().map(|(key, _)| key.clone());
                assert_eq!(sieved.cut_after, last.filter(|_| page.more), "{direction:?} {limit:?}");
                let kept = page.rows.iter().filter(|(_, value)| is_kept(value));
                assert_eq!(sieved.rows, kept.cloned().collect::<Vec<_>>(), "{direction:?} {limit:?}");
            }
        }
    }
}

/// What is kept of a page is what a scan of the same page shows, and so is where to go on.
pub async fn a_sieve_keeps_rows_of_the_same_page(store: Arc<dyn Store>) {
    let keys: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
    write(&*store, keys.iter().map(|key| (large(key), key.as_bytes()))).await;
    commit(&*store, Batch { deletes: vec![large("k03"), large("k20")], ..Batch::default() }).await;
    write(&*store, [(large("k07"), b"odd".as_slice())]).await;
    let all = KeyRange::prefix(Space::Large, large("").slot, b"k".to_vec());
    let snapshot = good(store.snapshot().await);
    let limits = [rows(1), rows(10), rows(38), rows(100), PageLimit { rows: 100, bytes: 60 }];
    let is_kept = |value: &[u8]| value == b"odd" || value.ends_with(b"5");
    let may_hold = |bytes: &[u8]| bytes.contains(&b'5') || bytes.windows(3).any(|some| some == b"odd");
    expect_sieved(&*snapshot, &all, &limits, &may_hold, &is_kept).await;
    let nothing = KeyRange { end: Some(all.start.clone()), ..all };
    expect_sieved(&*snapshot, &nothing, &limits, &may_hold, &is_kept).await;
    expect_invalid(snapshot.sieve(&nothing, Direction::Forward, rows(0), None, &mut |_, _, _| true).await);
}

/// Rows that a store has side by side, in blocks it asks about at once, and newer ones over them: a row that
/// came after, changed or went is met as it is at the snapshot.
pub async fn a_sieve_asks_about_old_and_new_rows(store: Arc<dyn Store>) {
    let mark = |number: usize| if number.is_multiple_of(97) { b'M' } else { b'-' };
    let value = |number: usize, mark: u8| [&[mark; 60][..], &number.to_be_bytes()].concat();
    let key = |number: usize| large(&format!("k{number:04}"));
    let puts = |numbers: &mut dyn Iterator<Item = (usize, u8)>| -> Vec<Put> {
        numbers.map(|(number, mark)| put(key(number), &value(number, mark))).collect()
    };
    commit(&*store, Batch { puts: puts(&mut (0..600).map(|n| (n, mark(n)))), ..Batch::default() }).await;
    good(store.reclaim().await);
    let before = good(store.snapshot().await);
    // Marked rows that are not marked any more, others that are, one that is gone, some that are new.
    let changes = [(97, b'-'), (100, b'M'), (291, b'-'), (333, b'M'), (700, b'M'), (701, b'-')];
    let deletes = vec![key(194), key(334)];
    commit(&*store, Batch { puts: puts(&mut changes.into_iter()), deletes, ..Batch::default() }).await;
    let all = KeyRange::prefix(Space::Large, large("").slot, b"k".to_vec());
    let limits = [rows(7), rows(250), rows(1000), PageLimit { rows: 1000, bytes: 9000 }];
    let is_kept = |value: &[u8]| value.first() == Some(&b'M');
    let may_hold = |bytes: &[u8]| bytes.windows(60).any(|some| some == [b'M'; 60]);
    for round in 0..2 {
        let after = good(store.snapshot().await);
        for (snapshot, expected) in
            [(&before, &[0, 97, 194, 291, 388, 485, 582][..]), (&after, &[0, 100, 333, 388, 485, 582, 700])]
        {
            expect_sieved(&**snapshot, &all, &limits, &may_hold, &is_kept).await;
            let (kept, _) =
                sieved(&**snapshot, &all, Direction::Forward, rows(1000), Some(&may_hold), &is_kept).await;
            let kept: Vec<_> = kept.rows.iter().map(|(key, _)| text(key).to_owned()).collect();
            let expected: Vec<_> = expected.iter().map(|number| format!("k{number:04}")).collect();
            assert_eq!(kept, expected, "round {round}");
        }
        good(store.reclaim().await);
    }
}
