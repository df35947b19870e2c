//! Calls that are dropped before they end, at every poll in turn, by a client that leaves or a server that
//! stops. Whatever the moment, no connection stays in a transaction, nothing is locked, and the same call,
//! sent again, comes to its end.

use std::{pin::Pin, sync::Arc, time::Duration};

use mayfly_storage::{
    PostgresStore, Result,
    peers::Peers,
    store::{Advance, Batch, Counter, Direction, Key, KeyRange, PageLimit, Slot, Space, Store},
    upkeep::Upkeep,
};
use mayfly_testkit::{
    cancel::cut,
    postgres::{empty_address, empty_address_on},
};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use crate::{feed, step, step_of_two};

/// Nothing here takes a hundredth of it, unless it waits for a lock that nobody will let go.
const PATIENCE: Duration = Duration::from_secs(10);

/// The group of the slot of `step(0)`.
const GROUP: u32 = 7 * 97 % 256;

type Called = Pin<Box<dyn Future<Output = Result<()>>>>;

/// A store, another one on the same server, as another node has it, and somebody who sees all connections.
struct Subject {
    store: Arc<PostgresStore>,
    other: PostgresStore,
    observer: Client,
    name: String,
}

impl Subject {
    async fn new() -> Self {
        let address = empty_address().await;
        // The schema's name is one that nobody else has.
        let name = address.rsplit_once("%3D").unwrap().1.to_owned();
        let address = format!("{address}&application_name={name}");
        let (observer, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        #[expect(clippy::disallowed_methods, reason = "it ends with its client")]
        tokio::spawn(async move { drop(connection.await) });
        let open = async || PostgresStore::open(&address).await.unwrap();
        let subject = Self { store: Arc::new(open().await), other: open().await, observer, name };
        subject.other.commit(step_of_two(0, 1)).await.unwrap();
        subject
    }

    /// Nothing is in the way of another node.
    async fn must_be_free(&self, at: &str) {
        let counter = Key { space: Space::Small, slot: Slot(0), bytes: b"probe".to_vec() };
        let advances = vec![Advance { counter, stamp: 0, tally: [0, 0] }];
        for batch in [step_of_two(0, 1), step(0).1, Batch { advances, ..Batch::default() }] {
            let committed = timeout(PATIENCE, self.other.commit(batch)).await;
            committed.unwrap_or_else(|_| panic!("{at}: a slot is locked")).unwrap();
        }
        let idle = "SELECT count(*) FROM pg_stat_activity \
                    WHERE application_name = $1 AND state LIKE 'idle in transaction%'";
        let ended = async {
            while self.observer.query_one(idle, &[&self.name]).await.unwrap().get::<_, i64>(0) > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, ended).await.unwrap_or_else(|_| panic!("{at}: a transaction was left open"));
    }
}

struct Case {
    name: &'static str,
    call: fn(Arc<PostgresStore>) -> Called,
}

macro_rules! case {
    ($name:literal, $call:expr) => {
        Case { name: $name, call: |store| Box::pin($call(store)) }
    };
}

type S = Arc<PostgresStore>;

fn key(number: u32) -> Key {
    step(number).1.advances[0].counter.clone()
}

fn everything(number: u32) -> KeyRange {
    KeyRange::prefix(Space::Small, step(number).0, Vec::new())
}

const CASES: &[Case] = &[
    case!("get", |store: S| async move { store.get(&key(0)).await.map(drop) }),
    case!("get_both", |store: S| async move {
        store.get_both(&[key(0), Key { bytes: b"none".to_vec(), ..key(0) }]).await.map(drop)
    }),
    case!("peek", |store: S| async move { store.peek(&everything(0), 10).await.map(drop) }),
    case!("snapshot", |store: S| async move {
        let snapshot = store.snapshot().await?;
        snapshot.get(&key(0)).await?;
        snapshot.get_many(&[key(0), key(1)]).await?;
        let limit = PageLimit { rows: 10, bytes: 1000 };
        snapshot.scan(&everything(1), Direction::Forward, limit).await.map(drop)
    }),
    case!("commit", |store: S| async move { store.commit(step(0).1).await.map(drop) }),
    case!("commit to two slots", |store: S| async move { store.commit(step_of_two(0, 1)).await.map(drop) }),
    case!("commit to a new slot and another", |store: S| async move {
        store.commit(step_of_two(0, 2)).await.map(drop)
    }),
    case!("commit that says so", |store: S| async move {
        let counter = Key { space: Space::Small, slot: Slot(0), bytes: b"counter".to_vec() };
        let advances = vec![Advance { counter, stamp: 0, tally: [0, 0] }];
        store.commit(Batch { advances, ..Batch::default() }).await.map(drop)
    }),
    case!("clear", |store: S| async move { store.clear(&everything(2), 100).await.map(drop) }),
    case!("discard", |store: S| async move { store.discard(&[everything(2)]).await.map(drop) }),
    case!("raise_floor", |store: S| async move { store.raise_floor(&[step(0).0, step(1).0], 1).await }),
    case!("say", |store: S| async move {
        store.say(7).await;
        Ok(())
    }),
    case!("renew_tending", |store: S| async move { store.renew_tending("node").await.map(drop) }),
    case!("time", |store: S| async move { store.time().ask().await.map(drop) }),
    case!("members", |store: S| async move { store.members().await.map(drop) }),
];

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn every_call_is_cut_at_every_poll() {
    let subject = Subject::new().await;
    for case in CASES {
        for polls in 0.. {
            let at = format!("{} after {polls} polls", case.name);
            let ended = cut((case.call)(subject.store.clone()), polls).await;
            subject.must_be_free(&at).await;
            let again = timeout(PATIENCE, (case.call)(subject.store.clone())).await;
            again.unwrap_or_else(|_| panic!("{at}: again, it waits for ever")).unwrap();
            if let Some(done) = ended {
                done.unwrap_or_else(|error| panic!("{at}: {error}"));
                break;
            }
        }
    }
}

/// A group goes back and forth between two servers, by moves of which each is given up a poll later. What was
/// acknowledged is there, once and in order.
#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_move_is_cut_at_every_poll() {
    let subject = Subject::new().await;
    let second = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
    let (mover, other) = (&subject.store, &subject.other);
    mover.add_server(&second).await.unwrap();
    let mut acknowledged = feed(other, 0).await;
    for polls in 0.. {
        let at = format!("after {polls} polls");
        let place = || mover.placed()[GROUP as usize].server;
        let to = 3 - place();
        let ended = cut(mover.move_group(GROUP, to), polls).await;
        let committed = timeout(PATIENCE, other.commit(step(0).1)).await;
        let committed = committed.unwrap_or_else(|_| panic!("{at}: the slot is locked")).unwrap();
        acknowledged.push(committed.counters[0].seq);
        let again = timeout(PATIENCE, mover.move_group(GROUP, to)).await;
        again.unwrap_or_else(|_| panic!("{at}: the move does not come to its end")).unwrap();
        assert_eq!(place(), to, "{at}");
        acknowledged.push(other.commit(step(0).1).await.unwrap().counters[0].seq);
        assert_eq!(acknowledged, (1..=acknowledged.len() as u64).collect::<Vec<_>>(), "{at}");
        for store in [&**mover, other] {
            assert_eq!(feed(store, 0).await, acknowledged, "{at}");
        }
        if let Some(done) = ended {
            done.unwrap();
            println!("{polls} polls");
            break;
        }
    }
}

/// A server that was taken in by a call that was given up is not taken in a second time: that would be two
/// servers, and a move from one to the other would find its own rows to be thrown away.
#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_server_is_taken_in_once() {
    let subject = Subject::new().await;
    for polls in 0.. {
        let address = empty_address_on(&std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap()).await;
        let before = subject.store.members().await.unwrap().len();
        let ended = cut(subject.store.add_server(&address), polls).await;
        subject.must_be_free("add_server").await;
        let again = timeout(PATIENCE, subject.store.add_server(&address)).await;
        let number = again.expect("it comes to its end").unwrap();
        let members = subject.other.members().await.unwrap();
        assert_eq!(members.len(), before + 1, "after {polls} polls");
        assert_eq!(members.last().unwrap().number, number, "after {polls} polls");
        if let Some(done) = ended {
            assert_eq!(done.unwrap(), number);
            break;
        }
    }
}

/// Other nodes are told of a change of the catalog though whoever made it has left.
#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_change_that_was_made_is_told() {
    let subject = Subject::new().await;
    let told = async || timeout(PATIENCE, subject.other.told()).await;
    subject.other.listen();
    told().await.expect("that it listens");
    let counter = Key { space: Space::Small, slot: Slot(0), bytes: b"counter".to_vec() };
    for polls in 1.. {
        let advances = vec![Advance { counter: counter.clone(), stamp: 0, tally: [0, 0] }];
        let change = Batch { advances, ..Batch::default() };
        let ended = cut(subject.store.commit(change), polls).await;
        // Once it is queued it is made.
        told().await.unwrap_or_else(|_| panic!("after {polls} polls nobody is told"));
        let row = subject.other.get(&counter).await.unwrap().unwrap();
        assert_eq!(Counter::decode(&row).unwrap().seq, polls as u64);
        if ended.is_some() {
            break;
        }
    }
}
