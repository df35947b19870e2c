//! Promises to the processes that share a store, which hold for a store of one process too.

use std::sync::Arc;

use super::*;
use crate::store::COMMON_SLOT;

/// A batch may rely on the version that a common row has, also when the floor was raised to it, and not on an
/// older one.
pub async fn floors_let_present_versions_through(store: Arc<dyn Store>) {
    let rules = Key { slot: COMMON_SLOT, ..small("rules") };
    let slot = small("").slot;
    let relying = |on: u64| Batch {
        guards: vec![version(rules.clone(), on)],
        puts: vec![put(small("row"), b"")],
        ..Batch::default()
    };
    for present in 3..6_u64 {
        good(store.raise_floor(&[slot], present).await);
        write(&*store, [(rules.clone(), present.to_be_bytes().as_slice())]).await;
        commit(&*store, relying(present)).await;
        expect_conflict(store.commit(relying(present - 1)).await, &rules);
        assert!(store.floor(slot) <= present, "no floor is above what was asked for");
        assert_eq!(store.floor(Slot(9)), 0, "another slot");
    }
}

/// A store of one process has all its background work to itself.
pub async fn background_work_has_an_owner(store: Arc<dyn Store>) {
    if !store.is_shared() {
        assert!((0..9).all(|slot| store.tends(Slot(slot))));
    }
    store.say(7).await;
}
