//! A store on servers of the PostgreSQL family: any number of nodes may share it.
//!
//! ```text
//!   get ──────────────▶ one statement
//!   snapshot ─────────▶ snapshot.rs: a transaction that only reads
//!   commit ──▶ queue.rs: batches that wait ──▶ group.rs: one statement ──▶ mayfly_commit in functions.sql
//!   commit of a purge ──▶ removal.rs: mayfly_remove, then a turn in the queue, then mayfly_removed ──▶ vacuum.rs
//!                                       map.rs: which server holds the slot          server.rs: connections
//! ```
//!
//! One table of slots, keys and values. A commit holds the row of its slot to its end, so commits to a slot come one
//! after the other on whatever node they began; that is what makes guards, counters and the order of a feed right, and
//! nothing here decides it but the server. What waits meanwhile, for whatever slots of a server, goes as one statement.
//!
//! A row of another slot can be guarded by its version only, and it is the slot's *floor* that is looked at: whoever
//! changes such a row raises the floor of the slots that rely on it first ([`Peers::raise_floor`]). So a commit never
//! needs two servers.
//!
//! Holds: what was acknowledged was committed by the server that holds the slot, under the epoch that it has there.

mod across;
mod changed;
mod group;
mod listening;
mod map;
mod moving;
mod queue;
mod removal;
mod schema;
mod server;
mod snapshot;
mod tending;
mod time;
mod tls;
mod transaction;
mod vacuum;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use deadpool_postgres::Object;
use parking_lot::{Mutex, RwLock};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, oneshot},
    task::JoinSet,
};
use tokio_postgres::{Row, types::ToSql};

use self::{
    group::{slots_of, stored_key},
    listening::Heard,
    map::{Map, Place},
    queue::Queues,
    server::Server,
    snapshot::{PostgresSnapshot, bounds},
    tending::Tending,
};
use crate::{
    Error, Result,
    batch::{check_batch, check_key, check_scan},
    peers::Peers,
    store::{Batch, BoxFuture, COMMON_SLOT, Committed, Key, KeyRange, Slot, Snapshot, Stats, Store, Urgency},
    upkeep::{Cleared, DeadRows, Upkeep},
};
pub use moving::{Member, Placed};
pub use time::ServerTime;

/// Attempts to follow a group that moves while it is asked for: ten seconds, as for a server that is away. Between the last
/// step of a move and the map there is only the mover, which may be slow.
const MOVES_MAX: u32 = 50;

/// Lets a move go on before the next attempt, longer and longer.
async fn pause_for_move(attempt: u32) {
    server::pause(Duration::from_millis(u64::from(20 * (attempt + 1)).min(250))).await;
}

/// Keys that one statement of a clear removes.
const CLEAR_KEYS_MAX: usize = 2000;

/// Keys that one call of a discard removes: the caller says between two of them whether others have to go first.
const DISCARD_KEYS_MAX: usize = 5 * CLEAR_KEYS_MAX;

/// Batches of the background under way at a time: others need connections too.
const BACKGROUND_MAX: usize = 4;

const GET: &str = "SELECT s.epoch, s.floor, kv.v FROM mayfly_slot s \
    LEFT JOIN mayfly_kv kv ON kv.slot = s.slot AND kv.k = $2 WHERE s.slot = $1";
const GET_BOTH: &str = "SELECT s.epoch, s.floor, kv.k, kv.v FROM mayfly_slot s \
    LEFT JOIN mayfly_kv kv ON kv.slot = s.slot AND kv.k IN ($2, $3) WHERE s.slot = $1";
const PEEK: &str = "SELECT s.epoch, s.floor, kv.k, kv.v FROM mayfly_slot s \
    LEFT JOIN mayfly_kv kv ON kv.slot = s.slot AND kv.k >= $2 AND kv.k < $3 WHERE s.slot = $1 ORDER BY kv.k LIMIT $4";
const GROUP: &str = "SELECT epoch, owned FROM mayfly_group WHERE grp = $1";
const RAISE: &str = "SELECT mayfly_raise($1, $2, $3, $4)";
const CLEAR: &str = "SELECT * FROM mayfly_clear($1, $2, $3, $4, $5, $6, $7, $8)";

/// A store that many nodes share.
pub struct PostgresStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    control: Arc<Server>,
    map: RwLock<Arc<Map>>,
    /// The highest floor that was seen of each slot.
    floors: RwLock<HashMap<Slot, u64>>,
    queues: Queues,
    /// Turns for batches of the background.
    background: Semaphore,
    tending: Tending,
    tallies: Tallies,
    /// What other nodes say.
    heard: Arc<Heard>,
    /// Held by whoever moves groups, or takes in a server.
    moves: tokio::sync::Mutex<()>,
    tasks: Mutex<JoinSet<()>>,
    runtime: Handle,
}

/// See [`Stats`].
#[derive(Default)]
struct Tallies {
    commits: AtomicU64,
    groups: AtomicU64,
    conflicts: AtomicU64,
}

impl PostgresStore {
    /// Opens the store at an address such as `postgres://user:password@host/database`, making its tables if there are
    /// none. Several hosts of one address are a server and its standbys.
    pub async fn open(url: &str) -> Result<Self> {
        let control = Arc::new(Server::new(url)?);
        schema::prepare(&control, true).await?;
        let map = schema::load_map(&control).await?;
        let inner = Inner {
            control,
            map: RwLock::new(Arc::new(map)),
            floors: RwLock::default(),
            queues: Queues::default(),
            background: Semaphore::new(BACKGROUND_MAX),
            tending: Tending::default(),
            tallies: Tallies::default(),
            heard: Arc::default(),
            moves: tokio::sync::Mutex::default(),
            tasks: Mutex::default(),
            runtime: Handle::current(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The clock that all nodes go by.
    pub fn time(&self) -> ServerTime {
        ServerTime::new(self.inner.control.clone())
    }

    /// Has the server pass on what other nodes say, for [`PostgresStore::told`] and [`Store::heard`].
    pub fn listen(&self) {
        self.inner.spawn(listening::listen(self.inner.control.clone(), self.inner.heard.clone()));
    }

    /// Ends when another node, or this one, has changed rows of the common slot since this was last called. Where the
    /// server does not pass such word on it never ends: look now and then as well.
    pub async fn told(&self) {
        self.inner.heard.told.notified().await;
    }

    /// Takes or renews this node's part of the background work: call every few seconds. How many groups of slots it has.
    pub async fn renew_tending(&self, node: &str) -> Result<usize> {
        self.inner.tending.renew(&self.inner.control, node).await
    }

    async fn clear(&self, range: &KeyRange, limit: usize) -> Result<Cleared> {
        check_scan(range, limit)?;
        let mut cleared = Cleared { keys: 0, more: false };
        if range.is_empty() {
            return Ok(cleared);
        }
        let (start, end) = bounds(range);
        loop {
            let step = (limit - cleared.keys).min(CLEAR_KEYS_MAX);
            let done = self.inner.clear_step(range.slot, &start, &end, step).await?;
            cleared.keys += done.keys;
            cleared.more = done.more;
            if !done.more || cleared.keys >= limit {
                return Ok(cleared);
            }
        }
    }
}

/// What one statement of a clear did.
struct ClearStep {
    keys: usize,
    more: bool,
}

impl Inner {
    fn place(&self, slot: Slot) -> Place {
        self.map.read().place(slot)
    }

    /// The place of everything, if it is one.
    fn only_place(&self) -> Option<Place> {
        let map = self.map.read();
        let first = map.places.first()?;
        map.places.iter().all(|place| place.number == first.number).then(|| first.clone())
    }

    /// The servers that hold anything.
    fn held_servers(&self) -> Vec<Arc<Server>> {
        let map = self.map.read();
        let servers = map.places.iter().map(|place| (place.number, place.server.clone()));
        servers.collect::<std::collections::BTreeMap<_, _>>().into_values().collect()
    }

    /// Runs a task that the store owns.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Does something in a task of the store's, so that it comes to its end though nobody waits for it any
    /// more.
    async fn to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.spawn(async move { drop(reply.send(work.await)) });
        answer.await.unwrap_or(Err(Error::Poisoned))
    }

    /// Refuses an answer of a server that does not hold the slot. `row` is the epoch and floor it has for it.
    async fn check_held(
        &self,
        slot: Slot,
        place: &Place,
        row: Option<(i64, i64)>,
        connection: &Object,
    ) -> Result<()> {
        let held = match row {
            Some((epoch, floor)) => {
                self.saw_floor(slot, floor);
                epoch == place.epoch
            }
            // Never written to here; the group says whether that means anything.
            None => {
                let ask = async {
                    let statement = connection.prepare_cached(GROUP).await?;
                    connection.query_opt(&statement, &[&place.group]).await
                };
                let group = ask.await.map_err(|error| place.server.failed(&error))?;
                group.is_some_and(|row| row.get::<_, i64>(0) == place.epoch && row.get(1))
            }
        };
        if held {
            return Ok(());
        }
        self.reload_map().await?;
        Err(Error::Moved)
    }

    fn saw_floor(&self, slot: Slot, floor: i64) {
        let floor = u64::try_from(floor).unwrap_or(0);
        if floor > self.floors.read().get(&slot).copied().unwrap_or(0) {
            let mut floors = self.floors.write();
            let known = floors.entry(slot).or_default();
            *known = floor.max(*known);
        }
    }

    async fn reload_map(&self) -> Result<()> {
        let known = self.map.read().clone();
        let map = schema::reload_map(&self.control, &known).await?;
        *self.map.write() = Arc::new(map);
        Ok(())
    }

    async fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        check_key(key)?;
        let stored = stored_key(key);
        let rows = self.rows(key.slot, GET, &[&stored]).await?;
        let value: Option<&[u8]> = rows.first().and_then(|row| row.get(2));
        Ok(value.map(Bytes::copy_from_slice))
    }

    async fn get_both(&self, keys: &[Key; 2]) -> Result<[Option<Bytes>; 2]> {
        keys.iter().try_for_each(check_key)?;
        let stored = keys.each_ref().map(stored_key);
        let rows = self.rows(keys[0].slot, GET_BOTH, &[&stored[0], &stored[1]]).await?;
        Ok(stored.map(|asked| {
            let is_asked = |row: &&Row| row.get::<_, Option<&[u8]>>(2) == Some(&asked[..]);
            rows.iter().find(is_asked).map(|row| Bytes::copy_from_slice(row.get(3)))
        }))
    }

    async fn peek(&self, range: &KeyRange, rows: usize) -> Result<Vec<(Bytes, Bytes)>> {
        check_scan(range, rows)?;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let ((start, end), limit) = (bounds(range), i64::try_from(rows).unwrap_or(i64::MAX));
        let rows = self.rows(range.slot, PEEK, &[&start, &end, &limit]).await?;
        let pair = |row: &Row| {
            // The row of a slot without keys in the range has none.
            let (key, value): (&[u8], &[u8]) = (row.get::<_, Option<_>>(2)?, row.get(3));
            Some((Bytes::copy_from_slice(&key[1..]), Bytes::copy_from_slice(value)))
        };
        Ok(rows.iter().filter_map(pair).collect())
    }

    /// What a statement reads in a slot, from the server that holds it. Its first parameter is the slot, and the rows begin with
    /// the slot's epoch and floor.
    async fn rows(&self, slot: Slot, text: &str, others: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        let number = i64::from(slot.0);
        let parameters: Vec<&(dyn ToSql + Sync)> =
            [&number as _].into_iter().chain(others.iter().copied()).collect();
        for attempt in 0..MOVES_MAX {
            let place = self.place(slot);
            let (rows, connection) = place
                .server
                .read(async |connection: Object| {
                    let statement = connection.prepare_cached(text).await?;
                    Ok((connection.query(&statement, &parameters).await?, connection))
                })
                .await?;
            let held = rows.first().map(|row| (row.get(0), row.get(1)));
            match self.check_held(slot, &place, held, &connection).await {
                Ok(()) => return Ok(rows),
                Err(Error::Moved) => pause_for_move(attempt).await,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Moved)
    }

    async fn clear_step(
        self: &Arc<Self>,
        slot: Slot,
        start: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Result<ClearStep> {
        // The function can choose by the beginning of values, which nobody asks for.
        let (lead, through) = (None::<&[u8]>, None::<&[u8]>);
        let (number, limit) = (i64::from(slot.0), limit as i64);
        for attempt in 0..MOVES_MAX {
            let place = self.place(slot);
            let row = place
                .server
                .write(async |connection: Object| {
                    let statement = connection.prepare_cached(CLEAR).await?;
                    connection
                        .query_one(
                            &statement,
                            &[&number, &place.group, &place.epoch, &start, &end, &limit, &lead, &through],
                        )
                        .await
                })
                .await?;
            if row.get(0) {
                let keys = usize::try_from(row.get::<_, i64>(1)).unwrap_or_default();
                vacuum::deleted(self, &place.server, keys);
                return Ok(ClearStep { keys, more: row.get(3) });
            }
            self.reload_map().await?;
            pause_for_move(attempt).await;
        }
        Err(Error::Moved)
    }
}

impl Inner {
    /// Raises the floor of slots, server by server.
    async fn raise_floor(&self, slots: &[Slot], floor: u64) -> Result<()> {
        let floor = i64::try_from(floor).map_err(|_| Error::Invalid("a floor beyond all versions"))?;
        let mut left: Vec<Slot> = slots.to_vec();
        // In one order everywhere: two that raise the floors of the same slots do not wait for each other.
        left.sort_unstable();
        for attempt in 0..MOVES_MAX {
            let Some(first) = left.first() else { return Ok(()) };
            let place = self.place(*first);
            let of_place = |slot: &Slot| self.place(*slot).number == place.number;
            let (here, elsewhere): (Vec<Slot>, Vec<Slot>) = left.iter().partition(|slot| of_place(slot));
            let numbers: Vec<i64> = here.iter().map(|slot| i64::from(slot.0)).collect();
            let places: Vec<Place> = here.iter().map(|slot| self.place(*slot)).collect();
            let groups: Vec<i32> = places.iter().map(|place| place.group).collect();
            let epochs: Vec<i64> = places.iter().map(|place| place.epoch).collect();
            let row = place
                .server
                .write(async |connection: Object| {
                    let statement = connection.prepare_cached(RAISE).await?;
                    connection.query_one(&statement, &[&numbers, &groups, &epochs, &floor]).await
                })
                .await?;
            if row.get(0) {
                here.iter().for_each(|slot| self.saw_floor(*slot, floor));
                left = elsewhere;
            } else {
                self.reload_map().await?;
                pause_for_move(attempt).await;
            }
        }
        Err(Error::Moved)
    }
}

impl Store for PostgresStore {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(self.inner.get(key))
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(self.inner.get_both(keys))
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(self.inner.peek(range, rows))
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async move {
            let snapshot = PostgresSnapshot::open(self.inner.clone()).await?;
            Ok(Arc::new(snapshot) as Arc<dyn Snapshot>)
        })
    }

    /// The caches are the server's.
    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        self.snapshot()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(async move {
            check_batch(&batch)?;
            // Changes that are counted are such as others want to know of; the time horizon is none.
            let is_counted = !batch.advances.is_empty();
            match slots_of(&batch)[..] {
                [COMMON_SLOT] if is_counted => {
                    // Others are told though who made the change has left.
                    let store = self.inner.clone();
                    let told = async move {
                        let committed = queue::commit(&store, COMMON_SLOT, batch).await?;
                        let control = store.control.clone();
                        store.spawn(async move { listening::say(&control).await });
                        Ok(committed)
                    };
                    self.inner.to_completion(told).await
                }
                [] => {
                    self.inner.tallies.commits.fetch_add(1, Relaxed);
                    Ok(Committed::default())
                }
                [slot] => queue::commit(&self.inner, slot, batch).await,
                _ => across::commit_across(&self.inner, batch).await,
            }
        })
    }

    fn stats(&self) -> Stats {
        let tallies = &self.inner.tallies;
        Stats {
            disk_bytes: 0,
            commits: tallies.commits.load(Relaxed),
            groups: tallies.groups.load(Relaxed),
            conflicts: tallies.conflicts.load(Relaxed),
        }
    }
}

impl Upkeep for PostgresStore {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(self.clear(range, limit))
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        // A commit is as durable as the server makes it by the time it answers.
        Box::pin(async { Ok(()) })
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            for server in self.inner.held_servers() {
                vacuum::vacuum(&server).await;
            }
            Ok(())
        })
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async {
            let mut is_done = false;
            for server in self.inner.held_servers() {
                is_done |= vacuum::shrink_when_idle(&server).await;
            }
            Ok(is_done)
        })
    }

    /// Rows are deleted one by one: vacuum gives their space back.
    fn discard<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            for range in ranges {
                if self.clear(range, DISCARD_KEYS_MAX).await?.more {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// A vacuum looks at no values, so it has no use for this.
    fn forget(&self, _: Arc<dyn DeadRows>) {}

    fn forgets_up_to(&self) -> usize {
        0
    }

    fn forgotten_bytes(&self) -> u64 {
        0
    }
}

impl Peers for PostgresStore {
    fn is_shared(&self) -> bool {
        true
    }

    fn raise_floor<'a>(&'a self, slots: &'a [Slot], floor: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.inner.raise_floor(slots, floor))
    }

    fn say(&self, word: u64) -> BoxFuture<'_, ()> {
        Box::pin(listening::say_word(&self.inner.control, word))
    }

    fn heard(&self, word: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.heard.word(word))
    }

    fn tends(&self, slot: Slot) -> bool {
        self.inner.tending.has(map::group_of(slot))
    }

    fn floor(&self, slot: Slot) -> u64 {
        self.inner.floors.read().get(&slot).copied().unwrap_or(0)
    }
}

/// Whether somebody waits for a batch.
fn is_urgent(batch: &Batch) -> bool {
    batch.urgency == Urgency::Foreground
}
