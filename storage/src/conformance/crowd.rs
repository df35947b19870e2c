//! Promises that only show when many write at once.

use tokio::task::JoinSet;

use super::*;
use crate::store::{MarkAt, SeqMark};

const WRITERS: u64 = 16;
const ROUNDS: u64 = 20;

/// Many read a number, add one, and commit it under a guard on what they read. None is lost.
pub async fn no_lost_update(store: Arc<dyn Store>) {
    write(&*store, [(large("number"), 0u64.to_be_bytes().as_slice())]).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for round in 0..ROUNDS {
                add_one(&*store, (writer + round) % 4 == 0).await;
            }
        });
    }
    finish(writers).await;
    expect_get(&*store, &large("number"), Some(&(WRITERS * ROUNDS).to_be_bytes())).await;
}

async fn add_one(store: &dyn Store, in_background: bool) {
    loop {
        let value = good(store.get(&large("number")).await).expect("the number is there");
        let number = u64::from_be_bytes(value[..].try_into().expect("eight bytes"));
        let batch = Batch {
            guards: vec![version(large("number"), number)],
            puts: vec![put(large("number"), &(number + 1).to_be_bytes())],
            urgency: if in_background { Urgency::Background } else { Urgency::Foreground },
            ..Batch::default()
        };
        match store.commit(batch).await {
            Ok(_) => return,
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Numbers have no gap and no double, the feed has each exactly once, and whoever sees n sees all before it.
pub async fn numbers_are_dense_and_in_order(store: Arc<dyn Store>) {
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            let mut last = 0;
            for round in 0..ROUNDS {
                let entry = Put {
                    key: small("feed/________"),
                    value: writer.to_be_bytes().to_vec(),
                    marks: vec![SeqMark { advance: 0, at: MarkAt::Key(5) }],
                };
                let batch = Batch {
                    puts: vec![entry],
                    advances: vec![advance("counter", 0, [1, 0])],
                    urgency: if round % 5 == 0 { Urgency::Background } else { Urgency::Foreground },
                    ..Batch::default()
                };
                let seq = commit(&*store, batch).await.counters[0].seq;
                assert!(seq > last, "numbers of one writer go up");
                last = seq;
                assert!(feed(&*store).await >= seq, "everything up to one's own number is visible");
            }
        });
    }
    finish(writers).await;
    assert_eq!(feed(&*store).await, WRITERS * ROUNDS);
}

/// Checks that the feed is 1, 2, 3 … without a gap, and gives its length.
async fn feed(store: &dyn Store) -> u64 {
    let page = scan(store, &range("feed/", "feed0"), Direction::Forward, rows(usize::MAX)).await;
    for (expected, (key, _)) in (1u64..).zip(&page.rows) {
        assert_eq!(key[5..], expected.to_be_bytes(), "the feed has no gap");
    }
    page.rows.len() as u64
}

/// Each batch writes the same number to rows in both spaces; no snapshot, and no pair of gets, ever sees it go
/// back or half of it.
pub async fn readers_see_whole_batches(store: Arc<dyn Store>) {
    let all = |number: u64| {
        let value = number.to_be_bytes();
        [small("a"), small("m"), small("z"), large("a"), large("z")].map(|key| put(key, &value)).to_vec()
    };
    commit(&*store, Batch { puts: all(0), ..Batch::default() }).await;
    let mut tasks = JoinSet::new();
    let total = WRITERS * ROUNDS;
    let writer = store.clone();
    tasks.spawn(async move {
        for number in 1..=total {
            commit(&*writer, Batch { puts: all(number), ..Batch::default() }).await;
        }
    });
    let reader = store.clone();
    tasks.spawn(async move {
        let mut last = 0;
        while last < total {
            // One get after another may see a later batch, never an earlier one.
            for key in [small("z"), large("z"), small("a"), large("a")] {
                let value = good(reader.get(&key).await).expect("always there");
                let number = u64::from_be_bytes(value[..].try_into().expect("eight bytes"));
                assert!(number >= last, "{number} after {last}");
                last = number;
            }
            let both = good(reader.get_both(&[large("a"), small("z")]).await);
            assert_eq!(both[0], both[1], "two moments");
            let snapshot = good(reader.snapshot().await);
            let keys = [small("a"), small("m"), small("z"), large("a"), large("z")];
            let values = good(snapshot.get_many(&keys).await);
            assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "half a batch: {values:?}");
            let page = good(snapshot.scan(&range("a", "zz"), Direction::Forward, rows(10)).await);
            assert!(page.rows.iter().all(|(_, value)| Some(value) == values[0].as_ref()));
            tokio::task::yield_now().await;
        }
    });
    finish(tasks).await;
}

async fn finish(mut tasks: JoinSet<()>) {
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no writer or reader panics");
    }
}
