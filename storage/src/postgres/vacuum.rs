//! Vacuum of the table of keys, so that the space of what was deleted is used again within seconds.
//!
//! The server's own vacuum comes by once a minute, and documents that live for seconds fill several times the space by
//! then. So whoever deletes counts, and after so many rows has the server say how much of the table is dead. What is
//! worth it is vacuumed at once: that takes a part of a microsecond for each dead row, and a look at every page of the
//! index, which is why there must be many dead rows for the living ones.
//!
//! A vacuum gives back what is free at the end of the table only, and nothing of the index. So a table that has become
//! almost empty is written anew, once nothing is deleted any more: that locks it for as long as it takes to copy what is
//! left, which must be little.
//!
//! Holds: it changes no answer, and a server of the family that knows no vacuum goes on without it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use deadpool_postgres::Object;

use super::{Inner, server::Server};

/// Rows that are deleted between two looks: some 10 MB with their entries in the index.
const LOOK_ROWS: u64 = 50_000;

/// Dead rows that are worth a vacuum: as many, and at least one for so many living ones.
const DEAD_MIN: i64 = 50_000;
const LIVING_FOR_EACH: i64 = 10;

const DEAD: &str =
    "SELECT n_dead_tup, n_live_tup FROM pg_stat_user_tables WHERE relid = 'mayfly_kv'::regclass";

/// One at a time, whichever node it is of. What is free at the end of the table goes back to the system.
const VACUUM: &str = "VACUUM (SKIP_LOCKED) mayfly_kv";

/// A table is written anew if it and its index have so many bytes and what they hold is a small part of that. To copy the
/// most that may be left takes a fraction of a second.
const SPARSE_BYTES_MIN: i64 = 64 << 20;
const SPARSE_PARTS: i64 = 4;
const LEFT_BYTES_MAX: i64 = 32 << 20;
const LEFT_ROWS_MAX: i64 = 200_000;

const SIZE: &str = "SELECT pg_total_relation_size('mayfly_kv'), \
    (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'mayfly_kv'::regclass)";

/// The server's own figure of how many rows there are is a guess, and far too high after most of them went.
const LEFT: &str = "SELECT count(*), coalesce(sum(octet_length(k) + octet_length(v)), 0)::int8 \
    FROM (SELECT k, v FROM mayfly_kv LIMIT $1) AS f";

/// Who reads waits behind it while it waits, so it does not for long.
const REWRITE: [&str; 2] = ["SET lock_timeout = '50ms'", "VACUUM (FULL) mayfly_kv"];

/// What this node has deleted on a server.
#[derive(Default)]
pub struct Vacuum {
    /// Rows since the last look.
    deleted: AtomicU64,
    is_running: AtomicBool,
    /// Rows since the table was last seen to be as small as it should be, and how many that were a moment ago.
    freed: AtomicU64,
    freed_before: AtomicU64,
}

/// Takes note of rows that were deleted, and vacuums in the background if it is time.
pub fn deleted(store: &Arc<Inner>, server: &Arc<Server>, rows: usize) {
    let state = &server.vacuum;
    state.freed.fetch_add(rows as u64, Relaxed);
    let before = state.deleted.fetch_add(rows as u64, Relaxed);
    if before + (rows as u64) < LOOK_ROWS || state.is_running.swap(true, Relaxed) {
        return;
    }
    let deleted = state.deleted.swap(0, Relaxed);
    let server = server.clone();
    store.spawn(async move {
        if is_worth_it(&server, deleted).await {
            vacuum(&server).await;
        }
        server.vacuum.is_running.store(false, Relaxed);
    });
}

/// The server's figures are of all nodes, and a second old.
async fn is_worth_it(server: &Server, deleted: u64) -> bool {
    let asked = server.read(async |connection: Object| connection.query_opt(DEAD, &[]).await).await;
    let counts = asked.ok().flatten().map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
    counts.is_some_and(|(dead, living)| {
        let dead = dead.max(i64::try_from(deleted).unwrap_or(i64::MAX));
        dead >= DEAD_MIN && dead.saturating_mul(LIVING_FOR_EACH) >= living
    })
}

/// A failure costs nothing but space: the server's own vacuum comes by.
pub async fn vacuum(server: &Server) {
    let Ok(connection) = server.long_connection().await else { return };
    _ = connection.batch_execute(VACUUM).await;
}

/// Makes the table small again if much was deleted and nothing has been for a moment. To be called every second or so while
/// nobody is being served. Whether anything was done.
pub async fn shrink_when_idle(server: &Server) -> bool {
    let state = &server.vacuum;
    let freed = state.freed.load(Relaxed);
    if freed < LOOK_ROWS || state.freed_before.swap(freed, Relaxed) != freed {
        return false;
    }
    vacuum(server).await;
    let is_small = match extent(server).await {
        Extent::Sparse => rewrite(server).await,
        Extent::Fair => true,
        Extent::Unclear => false,
    };
    if is_small {
        state.freed.fetch_sub(freed, Relaxed);
    }
    is_small
}

/// What a table takes for what it holds.
enum Extent {
    Sparse,
    Fair,
    /// Rows that are dead are still shown to somebody: they would only be copied.
    Unclear,
}

async fn extent(server: &Server) -> Extent {
    let asked = server.read(async |connection: Object| {
        let row = connection.query_one(SIZE, &[]).await?;
        let (bytes, dead): (i64, Option<i64>) = (row.get(0), row.get(1));
        if bytes < SPARSE_BYTES_MIN {
            return Ok(Extent::Fair);
        }
        let left = connection.query_one(LEFT, &[&LEFT_ROWS_MAX]).await?;
        let (rows, left): (i64, i64) = (left.get(0), left.get(1));
        let is_sparse = rows < LEFT_ROWS_MAX && left <= LEFT_BYTES_MAX && left * SPARSE_PARTS < bytes;
        Ok(match is_sparse {
            true if dead.is_some_and(|dead| dead > rows.max(1000)) => Extent::Unclear,
            true => Extent::Sparse,
            false => Extent::Fair,
        })
    });
    // One of the family that cannot be asked has nothing to be written anew.
    asked.await.unwrap_or(Extent::Fair)
}

/// Whether it was done, and not given up because somebody was about.
async fn rewrite(server: &Server) -> bool {
    let Ok(connection) = server.long_connection().await else { return false };
    // Not for anybody else: it waits for no lock for long.
    let connection = Object::take(connection);
    for statement in REWRITE {
        if connection.batch_execute(statement).await.is_err() {
            return false;
        }
    }
    true
}
