//! Adding servers, and moving groups of slots between them while they are used.
//!
//! ```text
//!   mark ──▶ copy everything ──▶ copy what was written meanwhile, again and again ──▶ hold ─▶ the rest ─▶ hand over
//!            └────────────── reads and writes go on, at the old place ─────────────┘ └─ writes wait ─┘
//! ```
//!
//! While a group is marked, each commit writes down which keys it touched. The last step holds the rows of the group's
//! slots at the old place, so nothing can be written there; when it lets go, the old place refuses the group and the new
//! one has it under the next epoch.
//!
//! Holds: at no time do two servers take writes for one slot, whatever fails in between. A move that did not come to its
//! end is begun again, or found to have ended, by the next one.

use std::sync::Arc;

use deadpool_postgres::Object;

use super::{
    PostgresStore,
    map::{CATALOG_GROUP, GROUPS, Place},
    schema,
    server::Server,
    transaction::Transaction,
};
use crate::{Error, Result};

/// Rows copied at a time.
const ROWS_MAX: i64 = 1000;

/// Written keys that are worth another round before writes are held.
const KEYS_LEFT: usize = 200;

/// Rounds of catching up; a group that is written to faster than it is copied is held with more left to do.
const ROUNDS_MAX: usize = 20;

/// More than there are servers.
const SERVERS_MAX: i64 = 1 << 16;

/// The epoch under which a server gets a group. It is that server's alone: of a move that was given up
/// another server may have been told that the group is there, and it must not be taken for the one that has
/// it.
fn next_epoch(epoch: i64, server: i32) -> i64 {
    (epoch / SERVERS_MAX + 1) * SERVERS_MAX + i64::from(server)
}

/// A group of slots and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its number.
    pub group: u32,
    /// The number of its server.
    pub server: i32,
    /// Raised by every move.
    pub epoch: i64,
}

/// A server of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number; 1 is where the catalog is.
    pub number: i32,
    /// Where it is, without what is secret.
    pub name: String,
    /// Groups that it holds.
    pub groups: usize,
    /// Rows that it holds, as far as its statistics know.
    pub rows: i64,
    /// Whether the way to it is encrypted.
    pub is_encrypted: bool,
}

type Sql = std::result::Result<(), tokio_postgres::Error>;

impl PostgresStore {
    /// The servers and what each holds.
    pub async fn members(&self) -> Result<Vec<Member>> {
        self.inner.reload_map().await?;
        let placed = self.placed();
        let mut members = Vec::new();
        for (number, server) in self.servers().await? {
            let groups = placed.iter().filter(|placed| placed.server == number).count();
            let rows = server
                .read(async |connection: Object| {
                    connection
                        .query_one(
                            "SELECT greatest(reltuples, 0)::int8, \
                                    coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) \
                             FROM pg_class WHERE oid = 'mayfly_kv'::regclass",
                            &[],
                        )
                        .await
                })
                .await?;
            let (rows, is_encrypted) = (rows.get(0), rows.get(1));
            members.push(Member { number, name: server.name.clone(), groups, rows, is_encrypted });
        }
        Ok(members)
    }

    /// Where every group is, as far as is known here; that of the catalog left out, which does not move.
    pub fn placed(&self) -> Vec<Placed> {
        let map = self.inner.map.read();
        let places = map.places.iter().take(GROUPS as usize);
        places
            .map(|place| Placed { group: place.group as u32, server: place.number, epoch: place.epoch })
            .collect()
    }

    async fn servers(&self) -> Result<Vec<(i32, Arc<Server>)>> {
        let rows = self
            .inner
            .control
            .read(async |connection: Object| {
                connection.query("SELECT id, url FROM mayfly_server ORDER BY id", &[]).await
            })
            .await?;
        let mut servers = vec![(1, self.inner.control.clone())];
        for row in rows {
            servers.push((row.get(0), Arc::new(Server::new(row.get(1))?)));
        }
        Ok(servers)
    }

    /// Takes in another server, which must be empty. It holds nothing until groups are moved to it. Its
    /// number, which is the one that it has if it was taken in before.
    pub async fn add_server(&self, url: &str) -> Result<i32> {
        let (store, url) = (Self { inner: self.inner.clone() }, url.to_owned());
        self.inner
            .to_completion(async move {
                let _turn = store.inner.moves.lock().await;
                store.take_in(&url).await
            })
            .await
    }

    async fn take_in(&self, url: &str) -> Result<i32> {
        let server = Server::new(url)?;
        schema::prepare(&server, false).await?;
        let holds = server
            .read(async |connection: Object| {
                connection.query_one("SELECT count(*) FROM mayfly_group WHERE owned", &[]).await
            })
            .await?;
        if holds.get::<_, i64>(0) > 0 {
            return Err(Error::Unusable(format!("{}: it belongs to a store already", server.name)));
        }
        let row = self
            .inner
            .control
            .write(async |connection: Object| {
                connection
                    .query_one(
                        // One that is there twice would be two, and what moves from one to the other is gone:
                        // the target of a move forgets what it has.
                        "WITH taken AS (INSERT INTO mayfly_server (id, url) \
                             SELECT coalesce(max(id), 1) + 1, $1 FROM mayfly_server \
                             HAVING count(*) FILTER (WHERE url = $1) = 0 RETURNING id) \
                         SELECT id FROM taken UNION ALL SELECT id FROM mayfly_server WHERE url = $1",
                        &[&url],
                    )
                    .await
            })
            .await?;
        Ok(row.get(0))
    }

    /// Moves a group of slots to a server while both are in use. Once begun it comes to its end, though
    /// nobody waits for it any more: commits to a group that is half on its way are more work, and to one
    /// that has been handed over and is not in the map they are refused.
    pub async fn move_group(&self, group: u32, to: i32) -> Result<()> {
        if group >= CATALOG_GROUP {
            return Err(Error::Invalid("there is no such group of slots to move"));
        }
        let store = Self { inner: self.inner.clone() };
        self.inner
            .to_completion(async move {
                // One that is sent again waits for the first, and finds it done.
                let _turn = store.inner.moves.lock().await;
                store.bring(group, to).await
            })
            .await
    }

    /// The move itself. Wherever it stops it holds nothing, and the next one goes on from what it finds.
    async fn bring(&self, group: u32, to: i32) -> Result<()> {
        let servers = self.servers().await?;
        let Some((_, target)) = servers.iter().find(|(number, _)| *number == to) else {
            return Err(Error::Unusable(format!("there is no server {to}; add it first")));
        };
        let from = loop {
            self.inner.reload_map().await?;
            let from = self.inner.map.read().places[group as usize].clone();
            match self.handed_over(&from, &servers).await? {
                Some((found, epoch)) => self.publish(&from, found, epoch).await?,
                None => break from,
            }
        };
        if from.number == to {
            return Ok(());
        }
        let epoch = next_epoch(from.epoch, to);
        let moving = Moving { from: &from, target, group: group as i32, epoch };
        moving.mark().await?;
        moving.copy_everything().await?;
        for _ in 0..ROUNDS_MAX {
            let source = from.server.connection().await?;
            if moving.catch_up(&source).await? < KEYS_LEFT {
                break;
            }
        }
        moving.hand_over().await?;
        self.publish(&from, to, epoch).await?;
        moving.clean_up().await
    }

    /// The server that a move has brought a group to without coming to write it into the map, and the epoch.
    async fn handed_over(&self, from: &Place, servers: &[(i32, Arc<Server>)]) -> Result<Option<(i32, i64)>> {
        let (epoch, owned) = state_of(&from.server, from.group).await?;
        if (epoch, owned) == (from.epoch, true) {
            return Ok(None);
        }
        // The old place has written down to whom it let go.
        for (number, server) in servers {
            if state_of(server, from.group).await? == (epoch, true) {
                return Ok(Some((*number, epoch)));
            }
        }
        Err(Error::Unusable(format!("no server has group {} of the slots", from.group)))
    }

    /// Writes into the map where a group is now.
    async fn publish(&self, from: &Place, to: i32, epoch: i64) -> Result<()> {
        self.inner
            .control
            .write(async |connection: Object| {
                connection
                    .execute(
                        "UPDATE mayfly_map SET server = $2, epoch = $3 WHERE grp = $1 AND epoch < $3",
                        &[&from.group, &to, &epoch],
                    )
                    .await
            })
            .await?;
        self.inner.reload_map().await
    }
}

/// The last epoch that a server knows of a group, and whether it has it.
async fn state_of(server: &Server, group: i32) -> Result<(i64, bool)> {
    let row = server
        .read(async |connection: Object| {
            connection.query_one("SELECT epoch, owned FROM mayfly_group WHERE grp = $1", &[&group]).await
        })
        .await?;
    Ok((row.get(0), row.get(1)))
}

/// A group on its way.
struct Moving<'a> {
    from: &'a Place,
    target: &'a Arc<Server>,
    group: i32,
    /// The group's at the target.
    epoch: i64,
}

impl Moving<'_> {
    /// From here on each commit to the group writes down its keys. The target forgets what an earlier attempt left.
    async fn mark(&self) -> Result<()> {
        let group = self.group;
        self.target
            .write(async |connection: Object| {
                connection
                    .batch_execute(&format!(
                        "DELETE FROM mayfly_kv WHERE slot IN (SELECT slot FROM mayfly_slot WHERE grp = {group}); \
                         DELETE FROM mayfly_slot WHERE grp = {group}; \
                         UPDATE mayfly_group SET owned = false, moving = false WHERE grp = {group}"
                    ))
                    .await
            })
            .await?;
        self.from
            .server
            .write(async |connection: Object| {
                connection
                    // One transaction, as any text of several statements; a refusal ends it. Slots are taken in their
                    // order, as by commits to several of them.
                    .batch_execute(&format!(
                        "DELETE FROM mayfly_moved WHERE grp = {group}; \
                         UPDATE mayfly_group SET moving = true WHERE grp = {group}; \
                         SELECT 1 FROM mayfly_slot WHERE grp = {group} ORDER BY slot FOR UPDATE; \
                         UPDATE mayfly_slot SET moving = true WHERE grp = {group}"
                    ))
                    .await
            })
            .await
    }

    async fn copy_everything(&self) -> Result<()> {
        let source = self.from.server.connection().await?;
        let target = self.target.connection().await?;
        let copied = async {
            let slots = source
                .query("SELECT slot FROM mayfly_slot WHERE grp = $1 ORDER BY slot", &[&self.group])
                .await?;
            for row in slots {
                self.copy_slot(&source, &target, row.get(0)).await?;
            }
            Sql::Ok(())
        };
        copied.await.map_err(|error| self.from.server.failed(&error))
    }

    async fn copy_slot(&self, source: &Object, target: &Object, slot: i64) -> Sql {
        self.announce_slot(target, slot).await?;
        let mut after: Vec<u8> = Vec::new();
        loop {
            let page = source
                .query(
                    "SELECT k, v FROM mayfly_kv WHERE slot = $1 AND k > $2 ORDER BY k LIMIT $3",
                    &[&slot, &after, &ROWS_MAX],
                )
                .await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.get(0);
            let keys: Vec<&[u8]> = page.iter().map(|row| row.get(0)).collect();
            let values: Vec<&[u8]> = page.iter().map(|row| row.get(1)).collect();
            put(target, slot, &keys, &values).await?;
        }
    }

    /// A slot that the target does not hold yet, so that what was copied of it is found again.
    async fn announce_slot(&self, target: &Object, slot: i64) -> Sql {
        target
            .execute(
                "INSERT INTO mayfly_slot (slot, grp, epoch, floor, moving) VALUES ($1, $2, -1, 0, false) \
                 ON CONFLICT (slot) DO NOTHING",
                &[&slot, &self.group],
            )
            .await
            .map(|_| ())
    }

    /// Copies what was written since it was last looked at; how many keys that was.
    async fn catch_up(&self, source: &Object) -> Result<usize> {
        let target = self.target.connection().await?;
        let copied = async {
            // Forgotten first and read then: whatever is written after that is written down again.
            let written = source
                .query("DELETE FROM mayfly_moved WHERE grp = $1 RETURNING slot, k", &[&self.group])
                .await?;
            let mut by_slot: std::collections::BTreeMap<i64, Vec<Vec<u8>>> =
                std::collections::BTreeMap::new();
            for row in &written {
                by_slot.entry(row.get(0)).or_default().push(row.get(1));
            }
            for (slot, keys) in by_slot {
                self.announce_slot(&target, slot).await?;
                for some in keys.chunks(ROWS_MAX as usize) {
                    let some = some.to_vec();
                    let there = source
                        .query("SELECT k, v FROM mayfly_kv WHERE slot = $1 AND k = ANY ($2)", &[&slot, &some])
                        .await?;
                    target
                        .execute("DELETE FROM mayfly_kv WHERE slot = $1 AND k = ANY ($2)", &[&slot, &some])
                        .await?;
                    let keys: Vec<&[u8]> = there.iter().map(|row| row.get(0)).collect();
                    let values: Vec<&[u8]> = there.iter().map(|row| row.get(1)).collect();
                    put(&target, slot, &keys, &values).await?;
                }
            }
            Ok::<_, tokio_postgres::Error>(written.len())
        };
        copied.await.map_err(|error| self.from.server.failed(&error))
    }

    /// The only part during which writes to the group wait. Given up before its end, the old place goes on as
    /// if nothing had been.
    async fn hand_over(&self) -> Result<()> {
        let failed = |error: tokio_postgres::Error| self.from.server.failed(&error);
        let (group, epoch) = (self.group, self.epoch);
        let connection = self.from.server.long_connection().await?;
        let source = Transaction::begin(connection, "BEGIN").await.map_err(failed)?;
        let held = source
            .query_opt(
                "SELECT epoch FROM mayfly_group WHERE grp = $1 AND owned AND epoch = $2 FOR UPDATE",
                &[&group, &self.from.epoch],
            )
            .await
            .map_err(failed)?;
        if held.is_none() {
            return Err(Error::Moved);
        }
        let slots = source
            .query("SELECT slot, floor FROM mayfly_slot WHERE grp = $1 ORDER BY slot FOR UPDATE", &[&group])
            .await
            .map_err(failed)?;
        self.catch_up(&source).await?;
        let numbers: Vec<i64> = slots.iter().map(|row| row.get(0)).collect();
        let floors: Vec<i64> = slots.iter().map(|row| row.get(1)).collect();
        let target = self.target.connection().await?;
        let taken = async {
            target
                .execute(
                    "INSERT INTO mayfly_slot (slot, grp, epoch, floor, moving) \
                     SELECT s.n, $1, $2, s.f, false FROM unnest($3::int8[], $4::int8[]) AS s(n, f) \
                     ON CONFLICT (slot) DO UPDATE SET epoch = excluded.epoch, floor = excluded.floor",
                    &[&group, &epoch, &numbers, &floors],
                )
                .await?;
            target
                .execute(
                    "UPDATE mayfly_group SET owned = true, epoch = $2, moving = false WHERE grp = $1",
                    &[&group, &epoch],
                )
                .await
        };
        taken.await.map_err(|error| self.target.failed(&error))?;
        // Nobody writes there yet: no map says so before the old place has let go.
        source
            .batch_execute(&format!(
                "UPDATE mayfly_group SET owned = false, epoch = {epoch}, moving = false WHERE grp = {group}; \
                 UPDATE mayfly_slot SET epoch = -1, moving = false WHERE grp = {group}"
            ))
            .await
            .map_err(failed)?;
        source.commit().await.map_err(failed)
    }

    /// Removes the rows at the old place. Its slots stay as rows that refuse.
    async fn clean_up(&self) -> Result<()> {
        let source = self.from.server.connection().await?;
        let cleaned = async {
            let slots = source.query("SELECT slot FROM mayfly_slot WHERE grp = $1", &[&self.group]).await?;
            for row in slots {
                let slot: i64 = row.get(0);
                loop {
                    let gone = source
                        .execute(
                            "DELETE FROM mayfly_kv WHERE slot = $1 AND k IN \
                             (SELECT k FROM mayfly_kv WHERE slot = $1 ORDER BY k LIMIT $2)",
                            &[&slot, &ROWS_MAX],
                        )
                        .await?;
                    if gone == 0 {
                        break;
                    }
                }
            }
            Sql::Ok(())
        };
        cleaned.await.map_err(|error| self.from.server.failed(&error))
    }
}

async fn put(target: &Object, slot: i64, keys: &[&[u8]], values: &[&[u8]]) -> Sql {
    target
        .execute(
            "INSERT INTO mayfly_kv (slot, k, v) SELECT $1, p.k, p.v FROM unnest($2::bytea[], $3::bytea[]) AS p(k, v) \
             ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v",
            &[&slot, &keys, &values],
        )
        .await
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mayfly_testkit::{
        cancel::cut,
        postgres::{empty_address, empty_address_on},
    };
    use tokio::time::timeout;

    use super::*;
    use crate::store::{
        Advance, Batch, Direction, Key, KeyRange, MarkAt, PageLimit, Put, SeqMark, Slot, Space, Store,
    };

    /// Nothing here takes a hundredth of it, unless it waits for a lock that nobody will let go.
    const PATIENCE: Duration = Duration::from_secs(10);

    const SLOT: Slot = Slot(7 * 4096);

    fn key(bytes: &[u8]) -> Key {
        Key { space: Space::Small, slot: SLOT, bytes: bytes.to_vec() }
    }

    /// Adds one entry to the slot's feed.
    fn step() -> Batch {
        let marks = vec![SeqMark { advance: 0, at: MarkAt::Key(5) }];
        let entry = Put { key: key(b"feed/________"), value: vec![0; 100], marks };
        let advances = vec![Advance { counter: key(b"counter"), stamp: 1, tally: [1, 0] }];
        Batch { puts: vec![entry], advances, ..Batch::default() }
    }

    async fn feed(store: &PostgresStore) -> Vec<u64> {
        let range = KeyRange::prefix(Space::Small, SLOT, b"feed/".to_vec());
        let limit = PageLimit { rows: 100_000, bytes: usize::MAX };
        loop {
            let snapshot = store.snapshot().await.unwrap();
            match snapshot.scan(&range, Direction::Forward, limit).await {
                Ok(page) => {
                    let number = |key: &[u8]| u64::from_be_bytes(key[5..].try_into().unwrap());
                    return page.rows.iter().map(|(key, _)| number(key)).collect();
                }
                Err(Error::Moved) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A group goes back and forth between two servers, and each time the mover stops a poll later, as it
    /// does when its process ends. It holds nothing, the next move comes to its end, and what was
    /// acknowledged is there, once and in order.
    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn a_mover_may_stop_at_every_poll() {
        let second = std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap();
        let (address, second) = (empty_address().await, empty_address_on(&second).await);
        let mover = PostgresStore::open(&address).await.unwrap();
        let other = PostgresStore::open(&address).await.unwrap();
        let group = super::super::map::group_of(SLOT);
        mover.add_server(&second).await.unwrap();
        let mut acknowledged = Vec::new();
        for polls in 0.. {
            let at = format!("after {polls} polls");
            let to = 3 - mover.placed()[group as usize].server;
            let ended = cut(mover.bring(group, to), polls).await;
            // Between two servers the group is nowhere until the next move has found it.
            let both =
                timeout(PATIENCE, async { tokio::join!(other.commit(step()), mover.move_group(group, to)) });
            let (committed, moved) = both.await.unwrap_or_else(|_| panic!("{at}: the slot is locked"));
            moved.unwrap_or_else(|error| panic!("{at}: {error}"));
            acknowledged.push(committed.unwrap().counters[0].seq);
            assert_eq!(mover.placed()[group as usize].server, to, "{at}");
            acknowledged.push(other.commit(step()).await.unwrap().counters[0].seq);
            assert_eq!(acknowledged, (1..=acknowledged.len() as u64).collect::<Vec<_>>(), "{at}");
            for store in [&mover, &other] {
                assert_eq!(feed(store).await, acknowledged, "{at}");
            }
            if let Some(done) = ended {
                done.unwrap();
                assert!(polls > 30, "a move takes {polls} polls");
                break;
            }
        }
    }

    /// A mover stopped after it had told one server that the group is there, and before the old place had let
    /// go. The next one brings the group to another server and stops before that is in the map. The group is
    /// where it was brought.
    #[tokio::test]
    #[ignore = "needs PostgreSQL"]
    async fn a_server_that_was_told_too_early_has_nothing() {
        let elsewhere = std::env::var("MAYFLY_TEST_POSTGRES_2").unwrap();
        let mover = PostgresStore::open(&empty_address().await).await.unwrap();
        let group = super::super::map::group_of(SLOT);
        for number in [2, 3] {
            assert_eq!(mover.add_server(&empty_address_on(&elsewhere).await).await.unwrap(), number);
        }
        let servers = mover.servers().await.unwrap();
        let has = async |number: usize| state_of(&servers[number - 1].1, group as i32).await.unwrap().1;
        let stop_once = async |to: usize, stays: bool| {
            for polls in 0.. {
                let ended = timeout(PATIENCE, cut(mover.bring(group, to as i32), polls)).await;
                assert!(ended.expect("nothing is locked").is_none(), "it could not be stopped in time");
                if has(to).await && has(1).await == stays {
                    return;
                }
            }
        };
        mover.commit(step()).await.unwrap();
        stop_once(2, true).await;
        for _ in 0..3 {
            mover.commit(step()).await.unwrap();
        }
        stop_once(3, false).await;
        mover.move_group(group, 3).await.unwrap();
        assert_eq!(feed(&mover).await, [1, 2, 3, 4]);
    }
}
