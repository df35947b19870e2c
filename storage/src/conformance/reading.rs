//! Promises about reading: what is there, in which order, in which pages.

use std::sync::Arc;

use super::*;
use crate::store::KEY_BYTES_MAX;

pub async fn put_get_delete(store: Arc<dyn Store>) {
    let store = &*store;
    for key in [small("a"), large("a")] {
        expect_get(store, &key, None).await;
        write(store, [(key.clone(), b"one".as_slice())]).await;
        expect_get(store, &key, Some(b"one")).await;
        write(store, [(key.clone(), b"two".as_slice())]).await;
        expect_get(store, &key, Some(b"two")).await;
        let delete = || Batch { deletes: vec![key.clone()], ..Batch::default() };
        commit(store, delete()).await;
        expect_get(store, &key, None).await;
        // Deleting what is not there is fine.
        commit(store, delete()).await;
        expect_get(store, &key, None).await;
    }
    // The longest key and a value of some size.
    let long = Key { bytes: vec![0xFF; KEY_BYTES_MAX], ..large("") };
    let value = vec![7; 1_000_000];
    write(store, [(long.clone(), value.as_slice())]).await;
    expect_get(store, &long, Some(&value)).await;
}

pub async fn empty_values(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), [].as_slice()), (large("a"), [].as_slice())]).await;
    expect_get(&*store, &small("a"), Some(b"")).await;
    expect_get(&*store, &large("a"), Some(b"")).await;
}

/// Unsigned bytes, a prefix before what it begins.
pub async fn keys_are_ordered(store: Arc<dyn Store>) {
    let ordered: Vec<Vec<u8>> =
        vec![vec![0], vec![0, 0], vec![0, 255], vec![1], vec![127], vec![128], vec![255], vec![255, 0]];
    for space in [Space::Small, Space::Large] {
        let key = |bytes: &Vec<u8>| Key { space, slot: Slot(7), bytes: bytes.clone() };
        // Written in another order than read, and in several commits.
        for start in [5, 0, 3] {
            let some = ordered.iter().skip(start).step_by(2).chain(ordered.iter().skip(start + 1).step_by(2));
            write(&*store, some.map(|bytes| (key(bytes), bytes.as_slice()))).await;
        }
        let all = KeyRange::prefix(space, Slot(7), vec![]);
        let page = scan(&*store, &all, Direction::Forward, rows(100)).await;
        let found: Vec<Vec<u8>> = page.rows.iter().map(|(key, _)| key.to_vec()).collect();
        assert_eq!(found, ordered);
        assert!(page.rows.iter().all(|(key, value)| key == value), "each key has its own value");
        let page = scan(&*store, &all, Direction::Reverse, rows(100)).await;
        let mut found: Vec<Vec<u8>> = page.rows.iter().map(|(key, _)| key.to_vec()).collect();
        found.reverse();
        assert_eq!(found, ordered);
    }
}

pub async fn spaces_are_apart(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), b"small".as_slice()), (large("a"), b"large".as_slice())]).await;
    expect_get(&*store, &small("a"), Some(b"small")).await;
    expect_get(&*store, &large("a"), Some(b"large")).await;
    commit(&*store, Batch { deletes: vec![small("a")], ..Batch::default() }).await;
    expect_get(&*store, &small("a"), None).await;
    expect_get(&*store, &large("a"), Some(b"large")).await;
}

pub async fn prefix_ranges(store: Arc<dyn Store>) {
    let raw = |bytes: &[u8]| Key { bytes: bytes.to_vec(), ..small("") };
    let written: [&[u8]; 7] = [b"a", b"ab", b"ab\0", b"ab\xFF\xFF", b"ac", b"\xFF\xFE", b"\xFF\xFF\xFF"];
    write(&*store, written.map(|bytes| (raw(bytes), b"".as_slice()))).await;
    for (prefix, expected) in [
        (b"ab".as_slice(), &written[1..4]),
        (b"ab\xFF", &written[3..4]),
        (b"\xFF\xFF", &written[6..]),
        (b"\xFF", &written[5..]),
        (b"b", &[]),
        (b"", &written[..]),
    ] {
        let range = KeyRange::prefix(Space::Small, Slot(7), prefix.to_vec());
        for direction in [Direction::Forward, Direction::Reverse] {
            let page = scan(&*store, &range, direction, rows(100)).await;
            let mut found: Vec<&[u8]> = page.rows.iter().map(|(key, _)| &**key).collect();
            if direction == Direction::Reverse {
                found.reverse();
            }
            assert_eq!(found, expected, "prefix {prefix:?}, {direction:?}");
        }
    }
}

pub async fn empty_ranges(store: Arc<dyn Store>) {
    write(&*store, ["a", "b", "c"].map(|key| (small(key), b"".as_slice()))).await;
    for (start, end) in [("b", "b"), ("c", "a"), ("aa", "b"), ("d", "e")] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let page = scan(&*store, &range(start, end), direction, rows(1)).await;
            assert!(page.rows.is_empty() && !page.more, "{start}..{end}");
        }
    }
}

async fn ten_keys(store: &dyn Store) -> Vec<String> {
    let names: Vec<String> = (0..10).map(|number| format!("key {number}")).collect();
    write(store, names.iter().map(|name| (small(name), b"0123456789".as_slice()))).await;
    names
}

/// Pages join without gap or overlap, and `more` says exactly whether there is another row.
pub async fn pages_forward(store: Arc<dyn Store>) {
    let names = ten_keys(&*store).await;
    for size in [1, 3, 5, 9, 10, 11] {
        let mut found = Vec::new();
        let mut rest = range("key", "kez");
        loop {
            let page = scan(&*store, &rest, Direction::Forward, rows(size)).await;
            found.extend(keys(&page).into_iter().map(str::to_owned));
            assert_eq!(page.more, found.len() < 10, "after {} rows in pages of {size}", found.len());
            if !page.more {
                break;
            }
            assert_eq!(page.rows.len(), size);
            rest.start = page.rows[size - 1].0.to_vec();
            rest.start.push(0);
        }
        assert_eq!(found, names);
    }
}

pub async fn pages_reverse(store: Arc<dyn Store>) {
    let mut names = ten_keys(&*store).await;
    names.reverse();
    for size in [1, 3, 5, 9, 10, 11] {
        let mut found = Vec::new();
        let mut rest = range("key", "kez");
        loop {
            let page = scan(&*store, &rest, Direction::Reverse, rows(size)).await;
            found.extend(keys(&page).into_iter().map(str::to_owned));
            assert_eq!(page.more, found.len() < 10, "after {} rows in pages of {size}", found.len());
            if !page.more {
                break;
            }
            rest.end = Some(page.rows[size - 1].0.to_vec());
        }
        assert_eq!(found, names);
    }
}

/// A page ends with the row that reaches the limit, and has one row at least. A row here has 15 bytes.
pub async fn pages_by_bytes(store: Arc<dyn Store>) {
    ten_keys(&*store).await;
    for (bytes, expected) in [(0, 1), (1, 1), (15, 1), (16, 2), (45, 3), (46, 4), (149, 10), (1000, 10)] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let limit = PageLimit { rows: 100, bytes };
            let page = scan(&*store, &range("key", "kez"), direction, limit).await;
            assert_eq!(page.rows.len(), expected, "{bytes} bytes, {direction:?}");
            assert_eq!(page.more, expected < 10, "{bytes} bytes, {direction:?}");
        }
    }
}

/// A snapshot shows its moment in both spaces, whatever is committed or cleared later.
pub async fn snapshots_do_not_change(store: Arc<dyn Store>) {
    let store = &*store;
    write(store, [(small("a"), b"old".as_slice()), (small("b"), b"old"), (large("a"), b"old")]).await;
    let before = good(store.snapshot().await);
    commit(
        store,
        Batch {
            puts: vec![put(small("a"), b"new"), put(small("c"), b"new"), put(large("a"), b"new")],
            deletes: vec![small("b")],
            ..Batch::default()
        },
    )
    .await;
    let after = good(store.snapshot().await);
    good(store.clear(&range("a", "z"), 100).await);

    for (key, old, new) in [
        (small("a"), Some(b"old".as_slice()), Some(b"new".as_slice())),
        (small("b"), Some(b"old"), None),
        (small("c"), None, Some(b"new")),
        (large("a"), Some(b"old"), Some(b"new")),
    ] {
        assert_eq!(good(before.get(&key).await).as_deref(), old, "{key:?}");
        assert_eq!(good(after.get(&key).await).as_deref(), new, "{key:?}");
    }
    let page = |snapshot: Arc<dyn crate::store::Snapshot>| async move {
        good(snapshot.scan(&range("a", "z"), Direction::Forward, rows(10)).await)
    };
    assert_eq!(keys(&page(before).await), ["a", "b"]);
    assert_eq!(keys(&page(after).await), ["a", "c"]);
    assert!(scan(store, &range("a", "z"), Direction::Forward, rows(10)).await.rows.is_empty());
}

/// A snapshot for background work shows what any other of that moment shows, and stays at it.
pub async fn background_snapshots_show_the_same(store: Arc<dyn Store>) {
    ten_keys(&*store).await;
    write(&*store, [(large("a"), b"old".as_slice())]).await;
    let (one, other) = (good(store.snapshot().await), good(store.background_snapshot().await));
    good(store.clear(&range("key", "kez"), 100).await);
    write(&*store, [(large("a"), b"new".as_slice())]).await;
    for direction in [Direction::Forward, Direction::Reverse] {
        let of_one = good(one.scan(&range("key", "kez"), direction, rows(7)).await);
        let of_other = good(other.scan(&range("key", "kez"), direction, rows(7)).await);
        assert_eq!((&of_one.rows, of_one.more), (&of_other.rows, of_other.more), "{direction:?}");
        assert_eq!(of_one.rows.len(), 7);
    }
    for snapshot in [one, other] {
        assert_eq!(good(snapshot.get(&large("a")).await).as_deref(), Some(b"old".as_slice()));
    }
    let present = good(store.background_snapshot().await);
    assert_eq!(good(present.get(&large("a")).await).as_deref(), Some(b"new".as_slice()));
}

pub async fn get_many_keeps_order(store: Arc<dyn Store>) {
    write(&*store, [(small("a"), b"1".as_slice()), (small("b"), b"2"), (large("a"), b"3")]).await;
    let snapshot = good(store.snapshot().await);
    let asked = [large("a"), small("b"), small("none"), small("a"), small("b")];
    let found = good(snapshot.get_many(&asked).await);
    let found: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
    assert_eq!(found, [Some(b"3".as_slice()), Some(b"2"), None, Some(b"1"), Some(b"2")]);
    assert!(good(snapshot.get_many(&[]).await).is_empty());
}

/// Keys of several slots live side by side, each found under its own. As callers promise, equal bytes have equal
/// slots: here the first byte is the slot.
pub async fn slots_answer_for_their_keys(store: Arc<dyn Store>) {
    let of =
        |slot: u8, name: u8| Key { space: Space::Small, slot: Slot(slot.into()), bytes: vec![slot, name] };
    for slot in 0..4 {
        write(&*store, [(of(slot, 1), [slot].as_slice()), (of(slot, 2), [slot].as_slice())]).await;
    }
    // And one batch over two slots, which a store in one place takes.
    write(&*store, [(of(1, 3), [1].as_slice()), (of(2, 3), [2].as_slice())]).await;
    for slot in 0..4 {
        let range = KeyRange::prefix(Space::Small, Slot(slot.into()), vec![slot]);
        let page = scan(&*store, &range, Direction::Forward, rows(10)).await;
        let expected = if matches!(slot, 1 | 2) { 3 } else { 2 };
        assert_eq!(page.rows.len(), expected, "slot {slot}");
        assert!(page.rows.iter().all(|(_, value)| **value == [slot]), "slot {slot}");
    }
}
