//! What a slot says about itself, and walks over all its rows or over several slots: for whoever works through a snapshot.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use bytes::Bytes;
use mayfly_storage::store::{Counter, Direction, KeyRange, PageLimit, Snapshot};

use crate::{
    error::{Error, Result},
    keys::{Family, Shard, be_u64},
};

/// The commit through which every document of a slot has its entries of `epoch`.
pub(crate) async fn indexed_through(snapshot: &dyn Snapshot, shard: Shard, epoch: u32) -> Result<u64> {
    let row = snapshot.get(&shard.single(Family::IndexPosition)).await?;
    let row = row.filter(|row| row.len() == 16 && be_u64(row) == u64::from(epoch));
    Ok(row.map_or(0, |row| be_u64(&row[8..])))
}

/// The last commit of a slot.
pub(crate) async fn last_commit(snapshot: &dyn Snapshot, shard: Shard) -> Result<u64> {
    Ok(counter(snapshot, shard, Family::Counter).await?.seq)
}

pub(super) async fn counter(snapshot: &dyn Snapshot, shard: Shard, family: Family) -> Result<Counter> {
    match snapshot.get(&shard.single(family)).await? {
        Some(row) => Counter::decode(&row).ok_or(Error::Corrupt("a counter cannot be read")),
        None => Ok(Counter::default()),
    }
}

/// Waits for several at once; what they gave, in their order.
pub(crate) async fn together<T, F: Future<Output = T>>(mut futures: Vec<F>) -> Vec<T> {
    // Most walks are of one slot.
    if futures.len() == 1
        && let Some(only) = futures.pop()
    {
        return vec![only.await];
    }
    enum Either<T, F> {
        Under(Pin<Box<F>>),
        Done(T),
    }
    let all = futures.into_iter().map(|future| Either::Under(Box::pin(future)));
    let mut all: Vec<Either<T, F>> = all.collect();
    poll_fn(|context| {
        let mut waits = false;
        for one in &mut all {
            if let Either::Under(future) = one {
                match future.as_mut().poll(context) {
                    Poll::Ready(given) => *one = Either::Done(given),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let given = all.into_iter().filter_map(|one| match one {
        Either::Done(given) => Some(given),
        Either::Under(_) => None,
    });
    given.collect()
}

/// Walks all rows of `range`, page by page, on one snapshot.
pub(crate) async fn each_row(
    snapshot: &dyn Snapshot,
    mut range: KeyRange,
    visit: &mut (dyn FnMut(&[u8], &Bytes) -> Result<()> + Send),
) -> Result<()> {
    loop {
        let limit = PageLimit { rows: 1000, bytes: 4 << 20 };
        let page = snapshot.scan(&range, Direction::Forward, limit).await?;
        for (key, value) in &page.rows {
            visit(key, value)?;
        }
        match page.rows.last() {
            Some((key, _)) if page.more => range.start = [&key[..], &[0]].concat(),
            _ => return Ok(()),
        }
    }
}
