//! What a slot says about itself, and walks over all its rows: for whoever works through a snapshot.

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
