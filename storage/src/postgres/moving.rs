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
};
use crate::{Error, Result};

/// Rows copied at a time.
const ROWS_MAX: i64 = 1000;

/// Written keys that are worth another round before writes are held.
const KEYS_LEFT: usize = 200;

/// Rounds of catching up; a group that is written to faster than it is copied is held with more left to do.
const ROUNDS_MAX: usize = 20;

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

    /// Takes in another server, which must be empty. It holds nothing until groups are moved to it. Its number.
    pub async fn add_server(&self, url: &str) -> Result<i32> {
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
                        "INSERT INTO mayfly_server (id, url) \
                         SELECT coalesce(max(id), 1) + 1, $1 FROM mayfly_server RETURNING id",
                        &[&url],
                    )
                    .await
            })
            .await?;
        Ok(row.get(0))
    }

    /// Moves a group of slots to a server while both are in use.
    pub async fn move_group(&self, group: u32, to: i32) -> Result<()> {
        if group >= CATALOG_GROUP {
            return Err(Error::Invalid("there is no such group of slots to move"));
        }
        self.inner.reload_map().await?;
        let from = self.inner.map.read().places[group as usize].clone();
        let servers = self.servers().await?;
        let Some((_, target)) = servers.iter().find(|(number, _)| *number == to) else {
            return Err(Error::Unusable(format!("there is no server {to}; add it first")));
        };
        if let Some(found) = self.handed_over(&from, &servers).await? {
            self.publish(&from, found).await?;
            return Box::pin(self.move_group(group, to)).await;
        }
        if from.number == to {
            return Ok(());
        }
        let moving = Moving { from: &from, target, group: group as i32 };
        moving.mark().await?;
        moving.copy_everything().await?;
        for _ in 0..ROUNDS_MAX {
            let source = from.server.connection().await?;
            if moving.catch_up(&source).await? < KEYS_LEFT {
                break;
            }
        }
        moving.hand_over().await?;
        self.publish(&from, to).await?;
        moving.clean_up().await
    }

    /// The server that a move has brought a group to without coming to write it into the map.
    async fn handed_over(&self, from: &Place, servers: &[(i32, Arc<Server>)]) -> Result<Option<i32>> {
        if owns(&from.server, from.group).await? == Some(from.epoch) {
            return Ok(None);
        }
        for (number, server) in servers {
            if owns(server, from.group).await? == Some(from.epoch + 1) {
                return Ok(Some(*number));
            }
        }
        Err(Error::Unusable(format!("no server has group {} of the slots", from.group)))
    }

    /// Writes into the map where a group is now.
    async fn publish(&self, from: &Place, to: i32) -> Result<()> {
        let epoch = from.epoch + 1;
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

/// The epoch under which a server has a group, if it has it.
async fn owns(server: &Server, group: i32) -> Result<Option<i64>> {
    let row = server
        .read(async |connection: Object| {
            connection.query_opt("SELECT epoch FROM mayfly_group WHERE grp = $1 AND owned", &[&group]).await
        })
        .await?;
    Ok(row.map(|row| row.get(0)))
}

/// A group on its way.
struct Moving<'a> {
    from: &'a Place,
    target: &'a Arc<Server>,
    group: i32,
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

    /// The only part during which writes to the group wait.
    async fn hand_over(&self) -> Result<()> {
        let source = self.from.server.long_connection().await?;
        let done = self.hand_over_by(&source).await;
        if done.is_err() {
            // The old place goes on as if nothing had been.
            drop(Object::take(source));
        }
        done
    }

    async fn hand_over_by(&self, source: &Object) -> Result<()> {
        let failed = |error: tokio_postgres::Error| self.from.server.failed(&error);
        let (group, epoch) = (self.group, self.from.epoch + 1);
        source.batch_execute("BEGIN").await.map_err(failed)?;
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
        self.catch_up(source).await?;
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
                 UPDATE mayfly_slot SET epoch = -1, moving = false WHERE grp = {group}; COMMIT"
            ))
            .await
            .map_err(failed)
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
