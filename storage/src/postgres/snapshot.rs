//! A view that does not change: a transaction that only reads, on a connection of its own.
//!
//! With one server it begins when the snapshot is taken. With several it begins on each when it is first asked, so what
//! two servers show may be of two moments; one slot is always of one.
//!
//! Holds: nothing is read from a server that does not hold the slot any more. A snapshot that finds out fails, and
//! whoever wanted it takes another.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use deadpool_postgres::Object;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::{
    Inner,
    group::{stored, stored_key},
    map::Place,
    transaction::Transaction,
};
use crate::{
    Error, Result,
    batch::{check_key, check_scan},
    store::{BoxFuture, Direction, Keep, Key, KeyRange, MayHold, Page, PageLimit, Sieved, Slot, Snapshot},
};

/// Rows that are asked for at a time: a page's limit of bytes cannot be told to the server.
const ROWS_MAX: usize = 1000;

/// Rows that are asked for first when the page is limited by bytes.
const ROWS_FIRST: usize = 100;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";
const HELD: &str = "SELECT epoch, floor FROM mayfly_slot WHERE slot = $1";
const FORWARD: &str =
    "SELECT k, v FROM mayfly_kv WHERE slot = $1 AND k >= $2 AND k < $3 ORDER BY k ASC LIMIT $4";
const REVERSE: &str =
    "SELECT k, v FROM mayfly_kv WHERE slot = $1 AND k >= $2 AND k < $3 ORDER BY k DESC LIMIT $4";
const MANY: &str = "SELECT k, v FROM mayfly_kv WHERE slot = $1 AND k = ANY ($2)";

/// Open transactions, one per server that was asked.
pub struct PostgresSnapshot {
    store: Arc<Inner>,
    views: Mutex<HashMap<i32, Arc<OnceCell<View>>>>,
    /// Slots that were found where the map says.
    held: Mutex<HashSet<Slot>>,
}

struct View {
    /// None only while it goes.
    transaction: Option<Transaction>,
    store: Arc<Inner>,
}

impl View {
    fn client(&self) -> Result<&Object> {
        self.transaction.as_deref().ok_or(Error::Poisoned)
    }
}

/// Ends the transaction in the background, then gives the connection back.
impl Drop for View {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            self.store.spawn(async move { drop(transaction.rollback().await) });
        }
    }
}

impl PostgresSnapshot {
    pub async fn open(store: Arc<Inner>) -> Result<Self> {
        let snapshot = Self { store, views: Mutex::default(), held: Mutex::default() };
        if let Some(place) = snapshot.store.only_place() {
            snapshot.view(&place).await?;
        }
        Ok(snapshot)
    }

    async fn view(&self, place: &Place) -> Result<Arc<OnceCell<View>>> {
        let cell = self.views.lock().entry(place.number).or_default().clone();
        cell.get_or_try_init(|| async {
            let mut attempt = 0;
            loop {
                match Transaction::begin(place.server.long_connection().await?, BEGIN).await {
                    Ok(begun) => {
                        return Ok(View { transaction: Some(begun), store: self.store.clone() });
                    }
                    // A connection that broke while it lay in the pool.
                    Err(_) if attempt < 3 => attempt += 1,
                    Err(error) => return Err(place.server.failed(&error)),
                }
            }
        })
        .await?;
        Ok(cell)
    }

    /// The place of a slot, once it is known to be there.
    async fn enter(&self, slot: Slot) -> Result<(Place, Arc<OnceCell<View>>)> {
        let place = self.store.place(slot);
        let view = self.view(&place).await?;
        if self.held.lock().contains(&slot) {
            return Ok((place, view));
        }
        let client = opened(&view)?.client()?;
        let number = i64::from(slot.0);
        let ask = async {
            let statement = client.prepare_cached(HELD).await?;
            client.query_opt(&statement, &[&number]).await
        };
        let row = ask.await.map_err(|error| place.server.failed(&error))?;
        let row = row.map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)));
        self.store.check_held(slot, &place, row, client).await?;
        self.held.lock().insert(slot);
        Ok((place, view))
    }

    async fn many(&self, slot: Slot, keys: Vec<Vec<u8>>) -> Result<HashMap<Vec<u8>, Bytes>> {
        let (place, view) = self.enter(slot).await?;
        let client = opened(&view)?.client()?;
        let ask = async {
            let statement = client.prepare_cached(MANY).await?;
            client.query(&statement, &[&i64::from(slot.0), &keys]).await
        };
        let rows = ask.await.map_err(|error| place.server.failed(&error))?;
        Ok(rows.iter().map(|row| (row.get(0), Bytes::copy_from_slice(row.get(1)))).collect())
    }

    async fn page(&self, range: &KeyRange, direction: Direction, limit: PageLimit) -> Result<Page> {
        let mut page = Page::default();
        let mut take = |key: &[u8], value: &[u8]| {
            page.rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        };
        let (_, more) = self.walk(range, direction, limit, &mut take).await?;
        page.more = more;
        Ok(page)
    }

    /// Gives `take` the rows of a page: how many there were, and whether there are more.
    async fn walk(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: PageLimit,
        take: &mut (dyn FnMut(&[u8], &[u8]) + Send),
    ) -> Result<(usize, bool)> {
        check_scan(range, limit.rows)?;
        if range.is_empty() {
            return Ok((0, false));
        }
        let (place, view) = self.enter(range.slot).await?;
        let client = opened(&view)?.client()?;
        let (mut start, mut end) = bounds(range);
        let (mut taken, mut bytes) = (0, 0);
        let mut wanted = if limit.bytes == usize::MAX { ROWS_MAX } else { ROWS_FIRST };
        loop {
            // One more than fits says whether there is more.
            let asked = limit.rows.saturating_sub(taken).saturating_add(1).min(wanted);
            let text = if direction == Direction::Forward { FORWARD } else { REVERSE };
            let ask = async {
                let statement = client.prepare_cached(text).await?;
                client.query(&statement, &[&i64::from(range.slot.0), &start, &end, &(asked as i64)]).await
            };
            let rows = ask.await.map_err(|error| place.server.failed(&error))?;
            for row in &rows {
                if taken > 0 && limit.is_reached(taken, bytes) {
                    return Ok((taken, true));
                }
                let (key, value): (&[u8], &[u8]) = (row.get(0), row.get(1));
                bytes += key.len() - 1 + value.len();
                taken += 1;
                take(&key[1..], value);
            }
            let Some(last) = rows.last().filter(|_| rows.len() == asked) else { return Ok((taken, false)) };
            let last: Vec<u8> = last.get(0);
            match direction {
                Direction::Forward => start = [&last[..], &[0]].concat(),
                Direction::Reverse => end = last,
            }
            wanted = ROWS_MAX;
        }
    }
}

fn opened(view: &OnceCell<View>) -> Result<&View> {
    view.get().ok_or(Error::Poisoned)
}

/// The ends of a range as the table has keys. Past every key of a space is the start of the next.
pub fn bounds(range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
    let end = match &range.end {
        Some(end) => stored(range.space, end),
        None => vec![super::group::space_byte(range.space) + 1],
    };
    (stored(range.space, &range.start), end)
}

impl Snapshot for PostgresSnapshot {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move {
            check_key(key)?;
            Ok(self.many(key.slot, vec![stored_key(key)]).await?.into_values().next())
        })
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Bytes>>>> {
        Box::pin(async move {
            keys.iter().try_for_each(check_key)?;
            let mut by_slot: HashMap<Slot, Vec<Vec<u8>>> = HashMap::new();
            for key in keys {
                by_slot.entry(key.slot).or_default().push(stored_key(key));
            }
            // Slots of one server share a connection, and their statements go one behind the other without waiting.
            let asked =
                by_slot.into_iter().map(async |(slot, asked)| Ok((slot, self.many(slot, asked).await?)));
            let found: HashMap<_, _> = join_all(asked).await.into_iter().collect::<Result<_>>()?;
            let value = |key: &Key| found.get(&key.slot)?.get(&stored_key(key)).cloned();
            Ok(keys.iter().map(value).collect())
        })
    }

    fn scan<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
    ) -> BoxFuture<'a, Result<Page>> {
        Box::pin(self.page(range, direction, limit))
    }

    /// All rows come over the network, so `may_hold` would save nothing.
    fn sieve<'a>(
        &'a self,
        range: &'a KeyRange,
        direction: Direction,
        limit: PageLimit,
        _: Option<&'a MayHold<'_>>,
        keep: &'a mut Keep<'_>,
    ) -> BoxFuture<'a, Result<Sieved>> {
        Box::pin(async move {
            let (mut rows, mut last) = (Vec::new(), Vec::new());
            let mut take = |key: &[u8], value: &[u8]| {
                last.clear();
                last.extend_from_slice(key);
                if keep(key, value, true) {
                    rows.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
                }
            };
            let (met, more) = self.walk(range, direction, limit, &mut take).await?;
            Ok(Sieved { rows, met, cut_after: more.then(|| last.into()) })
        })
    }
}
