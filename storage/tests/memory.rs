//! The memory store keeps the contract.

use std::sync::Arc;

use mayfly_storage::{
    MemoryStore, conformance,
    store::{Batch, Key, Put, Slot, Space, Store},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conformance() {
    conformance::run_all(|| async { Arc::new(MemoryStore::new()) as Arc<dyn Store> }).await;
}

/// A fork has the content of its moment and goes its own way.
#[tokio::test]
async fn forks_are_independent() {
    let key = |name: u8| Key { space: Space::Small, slot: Slot(0), bytes: vec![name] };
    let put = |name| Batch {
        puts: vec![Put { key: key(name), value: vec![name], marks: vec![] }],
        ..Batch::default()
    };
    let store = MemoryStore::new();
    store.commit(put(1)).await.unwrap();
    let fork = store.fork();
    store.commit(put(2)).await.unwrap();
    fork.commit(put(3)).await.unwrap();
    for (name, in_store, in_fork) in [(1, true, true), (2, true, false), (3, false, true)] {
        assert_eq!(store.get(&key(name)).await.unwrap().is_some(), in_store);
        assert_eq!(fork.get(&key(name)).await.unwrap().is_some(), in_fork);
    }
}
