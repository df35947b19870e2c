//! A store in a directory of this machine: log-structured trees from the fjall library, and a committer of ours.
//!
//! ```text
//!   get, snapshot ───────────────▶ view.rs ──────────────▶ trees.rs (small, large): layers.rs
//!                  pages ──▶ rows.rs, blocks.rs, backward.rs ──▶ │
//!   commit, clear, sync ──▶ committer.rs, queue.rs, group.rs ──▶ log.rs, then │
//!   reclaim, compact_when_idle ──▶ reclaim.rs, settling.rs ──▶ │
//!                               flushing.rs, merging.rs ──▶ │
//!                                            directory.rs: whose directory is it, is it free
//!                                            layout.rs: how rows lie in files, also in an older directory
//! ```
//!
//! Reads go straight to the trees on the caller's thread. Writes go through one thread that joins whatever waits
//! into one record of the log and one sync; that thread is also what makes guards cheap, as nobody else writes.
//!
//! Holds: what was acknowledged survives a killed process in every mode, and a lost machine as far as
//! [`Durability`] says. After a failed write the store only reads.

mod backward;
mod blocks;
mod committer;
mod dead_rows;
mod directory;
mod flushing;
mod former;
mod group;
mod hot;
mod layers;
mod layout;
mod log;
mod merging;
mod queue;
mod reclaim;
mod retire;
mod rows;
mod seen;
mod settling;
mod trees;
mod unflushed;
mod view;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use fjall::AbstractTree;
use parking_lot::Mutex;

use self::{
    committer::{Committer, Logged},
    directory::Directory,
    log::{Broken, Log, Record},
    reclaim::Reclaim,
    settling::Settling,
    trees::Trees,
    unflushed::Unflushed,
    view::Moment,
};
use crate::{
    Result,
    batch::check_scan,
    peers::Unshared,
    store::{Batch, BoxFuture, Committed, Key, KeyRange, Snapshot, Space, Stats, Store, Urgency},
    upkeep::{Cleared, DeadRows, Upkeep},
};

/// Keys that one batch of a clear removes: small enough that clients hardly notice one in their group.
const CLEAR_KEYS_MAX: usize = 512;

/// What a lost machine may lose. A killed process loses nothing that was acknowledged in any mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that a client waited for: one sync per group of commits.
    #[default]
    Fsync,
    /// What was acknowledged in about this last stretch of time.
    Interval(Duration),
    /// What the operating system has not written by itself.
    None,
}

/// How files are compressed. May be another one at each opening: what is written from then on goes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all: for documents that are compressed or encrypted already.
    None,
    /// Fast, and half of what text takes.
    #[default]
    Lz4,
}

/// How to run an embedded store.
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// What a lost machine may lose.
    pub durability: Durability,
    /// How files are compressed.
    pub compression: Compression,
    /// Memory for blocks, values and rows that were read. Filled as needed, not at once.
    pub cache_bytes: u64,
}

impl Default for EmbeddedOptions {
    /// A cache that leaves room on a small machine, as large as PostgreSQL's; the system's own file cache stands behind
    /// it, but a block from there is copied and checked again each time.
    fn default() -> Self {
        Self {
            durability: Durability::default(),
            compression: Compression::default(),
            cache_bytes: 128 * 1024 * 1024,
        }
    }
}

impl EmbeddedOptions {
    /// The part of the cache for rows that are asked for one by one. Blocks are for whoever goes through many, and for
    /// keys. Of a block that is read for one row, the others are mostly of no use; so half is for rows.
    fn hot_bytes(&self) -> u64 {
        self.cache_bytes / 2
    }

    fn block_bytes(&self) -> u64 {
        self.cache_bytes - self.hot_bytes()
    }
}

/// A store in a directory. One process at a time.
///
/// Dropping it writes and syncs what waits. A [`Snapshot`] keeps the directory held until it is dropped too,
/// and so does an [`Upkeep::reclaim`] that nobody waited for until it ends.
pub struct EmbeddedStore {
    // In the order of dropping: the writer ends before the trees close before the directory is let go.
    committer: Committer,
    moment: Moment,
    trees: Trees,
    directory: Directory,
    /// Held by whoever gives space back.
    reclaiming: Arc<Mutex<()>>,
    settling: Mutex<Settling>,
}

impl EmbeddedStore {
    /// Opens the store in `path`, making it if the directory is absent or empty.
    ///
    /// A directory that is not ours, of a newer format, damaged, or open elsewhere is refused as
    /// [`Error::Unusable`](crate::Error::Unusable), and left as it is.
    pub fn open(path: &Path, options: EmbeddedOptions) -> Result<Self> {
        let open = |folder: &Path| Trees::open(path, folder, &options);
        let mut directory = Directory::open(path, |folder| open(folder).map(drop))?;
        if directory.is_former() {
            let trees = open(&directory.tree())?;
            former::renew(path, &mut directory, trees)?;
        }
        let trees = open(&directory.tree())?;
        let logged = recover(path, &directory.log(), &trees)?;
        let moment = Moment::of(trees.clone(), options.hot_bytes());
        let committer =
            Committer::start(trees.clone(), moment.clone(), logged, options.durability).map_err(|error| {
                directory::unusable(
                    path,
                    format_args!("cannot be written to: no thread could be started: {error}"),
                )
            })?;
        Ok(Self {
            committer,
            moment,
            trees,
            directory,
            reclaiming: Arc::default(),
            settling: Mutex::default(),
        })
    }

    /// Writes and syncs what waits, closes the files, and says whether all of it is safe.
    pub fn close(self) -> Result<()> {
        self.committer.close()
    }

    /// The folder with the trees, for tools that look at files.
    pub fn tree_path(&self) -> PathBuf {
        self.directory.tree()
    }

    fn reclaiming(&self) -> Reclaim {
        Reclaim {
            trees: self.trees.clone(),
            moment: self.moment.clone(),
            inlet: self.committer.inlet(),
            turn: self.reclaiming.clone(),
        }
    }

    async fn clear(&self, range: &KeyRange, limit: usize) -> Result<Cleared> {
        let (keys, more) = view::unhurried(limit, || self.moment.view().keys(range, limit))?;
        let of_range = |key: &Bytes| Key { space: range.space, slot: range.slot, bytes: key.to_vec() };
        for some in keys.chunks(CLEAR_KEYS_MAX) {
            let deletes = some.iter().map(of_range).collect();
            self.committer
                .commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() })
                .await?;
        }
        Ok(Cleared { keys: keys.len(), more })
    }
}

/// Opens the log and puts into the trees what their tables do not have.
fn recover(path: &Path, folder: &Path, trees: &Trees) -> Result<Logged> {
    let refuse = |broken| match broken {
        Broken::Io(error) => directory::unusable(
            path,
            format_args!("cannot be opened: its log: {error}. Check its permissions and free space"),
        ),
        Broken::Damaged(_) => directory::damaged(path, &broken.to_string()),
    };
    let (log, left) = Log::open(folder).map_err(refuse)?;
    let mut unflushed = Unflushed::default();
    if let Some(seqno) = left.seqno {
        trees.go_on_after(seqno);
    }
    let flushed = [Space::Small, Space::Large].map(|space| trees.flushed_seqno(space));
    let flushed = |space| flushed[usize::from(space == Space::Large)];
    let replayed = left.replay::<Broken>(|record: Record<'_>| {
        for (space, key, value) in record.writes {
            if flushed(space).is_none_or(|flushed| record.seqno > flushed) {
                unflushed.wrote(space, record.number);
                trees.apply(
                    space,
                    Bytes::copy_from_slice(key),
                    value.map(Bytes::copy_from_slice),
                    record.seqno,
                );
            }
        }
        for space in [Space::Small, Space::Large] {
            if trees.is_full(space) && trees.seal(space) {
                unflushed.sealed(space);
            }
        }
        Ok(())
    });
    replayed.map(|()| Logged { log, unflushed }).map_err(refuse)
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Bytes>>> {
        Box::pin(async move { self.moment.get(key) })
    }

    fn get_both<'a>(&'a self, keys: &'a [Key; 2]) -> BoxFuture<'a, Result<[Option<Bytes>; 2]>> {
        Box::pin(async move { self.moment.get_both(keys) })
    }

    fn peek<'a>(&'a self, range: &'a KeyRange, rows: usize) -> BoxFuture<'a, Result<Vec<(Bytes, Bytes)>>> {
        Box::pin(async move { view::unhurried(rows, || self.moment.view().first(range, rows)) })
    }

    fn snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async move { Ok(Arc::new(self.moment.view()) as Arc<dyn Snapshot>) })
    }

    fn background_snapshot(&self) -> BoxFuture<'_, Result<Arc<dyn Snapshot>>> {
        Box::pin(async move { Ok(Arc::new(self.moment.background_view()) as Arc<dyn Snapshot>) })
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Committed>> {
        Box::pin(self.committer.commit(batch))
    }

    fn stats(&self) -> Stats {
        let tallies = self.committer.tallies();
        Stats {
            disk_bytes: self.directory.disk_bytes(),
            commits: tallies.commits.load(Relaxed),
            groups: tallies.groups.load(Relaxed),
            conflicts: tallies.conflicts.load(Relaxed),
        }
    }
}

impl Upkeep for EmbeddedStore {
    fn clear<'a>(&'a self, range: &'a KeyRange, limit: usize) -> BoxFuture<'a, Result<Cleared>> {
        Box::pin(self.clear(range, limit))
    }

    fn sync(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.committer.sync())
    }

    fn reclaim(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.reclaiming().run())
    }

    fn compact_when_idle(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let worth = self.settling.lock().look(&self.trees);
            match worth.is_nothing() {
                true => Ok(false),
                false => self.reclaiming().settle(worth).await.map(|()| true),
            }
        })
    }

    fn discard<'a>(&'a self, ranges: &'a [KeyRange]) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            ranges.iter().try_for_each(|range| check_scan(range, 1))?;
            self.reclaiming().discard(ranges.to_vec()).await.map(|()| false)
        })
    }

    fn forget(&self, dead: Arc<dyn DeadRows>) {
        self.trees.forgetting.forget(dead);
    }

    /// Longer values lie in files of their own, and so may some that an earlier version wrote. Where there is no such file,
    /// there are none of either.
    fn forgets_up_to(&self) -> usize {
        let bytes_min = match self.trees.of.large.tree.blob_file_count() {
            0 => trees::SEPARATE_BYTES_MIN,
            _ => trees::SEPARATED_BEFORE_BYTES_MIN,
        };
        bytes_min as usize - 1
    }

    fn forgotten_bytes(&self) -> u64 {
        self.trees.forgetting.dropped_bytes()
    }
}

/// The directory is locked: one process at a time.
impl Unshared for EmbeddedStore {}
