//! How rows lie in the files of a tree, and how an older directory comes to it.
//!
//! The library writes a tree's options down when it makes the tree, in a tree of its own (`keyspaces/0`), and goes by
//! those at every later opening. So they are compared with what this version wants before the library opens them, and
//! changed where they differ. Files that are there stay as they are: each table says how its blocks are compressed.
//! Merges write them anew, in the present layout.
//!
//! ```text
//!   "n" tree u64          the tree's name
//!   "c" tree u64 option   the option's value, in the library's encoding (little-endian)
//! ```
//!
//! Holds: options change in one step, whole or not at all, and any version of this format reads what any of them wrote.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use fjall::{
    AbstractTree, CompressionType, KeyspaceCreateOptions, KvSeparationOptions, SeqNo,
    config::{BlockSizePolicy, CompressionPolicy},
};
use lsm_tree::{Guard, SequenceNumberCounter, coding::Encode};

use super::Compression;

/// Where the library keeps the options of all trees, and the lock it takes.
const OPTIONS_TREE: [&str; 2] = ["keyspaces", "0"];
const LOCK_FILE: &str = "lock";

/// What we decide about the files of a tree. All else is the library's choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    pub compression: Compression,
    /// Rows of about so many bytes are compressed, read and checked together.
    pub block_bytes: u32,
    /// Whether large values lie in files of their own.
    pub separation: Option<Separation>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Separation {
    /// Values from here on.
    pub bytes_min: u32,
    /// The share of holes at which such a file is written anew.
    pub holes_share_max: f32,
    /// How many of those files, oldest first.
    pub share_of_files: f32,
}

impl Layout {
    /// The options of a tree that is made.
    pub fn apply(&self, options: KeyspaceCreateOptions) -> KeyspaceCreateOptions {
        let separation = self.separation.map(|separation| {
            KvSeparationOptions::default()
                .compression(self.compression.of_library())
                .separation_threshold(separation.bytes_min)
                .staleness_threshold(separation.holes_share_max)
                .age_cutoff(separation.share_of_files)
        });
        options
            .data_block_size_policy(BlockSizePolicy::all(self.block_bytes))
            .data_block_compression_policy(self.compression.by_level())
            .with_kv_separation(separation)
    }

    /// The same as the library writes it down.
    fn written(&self) -> Vec<(&'static str, Vec<u8>)> {
        // Lists, one for each level; the last entry is for all below.
        let levels = self.compression.by_level();
        let compression = levels.iter().flat_map(Encode::encode_into_vec);
        let compression = std::iter::once(levels.len() as u8).chain(compression).collect();
        let mut written = vec![
            ("data_block_size_policy", [&[1][..], &self.block_bytes.to_le_bytes()].concat()),
            ("data_block_compression_policy", compression),
        ];
        if let Some(separation) = self.separation {
            written.extend([
                ("blob_compression", self.compression.of_library().encode_into_vec()),
                ("blob_separation_threshold", separation.bytes_min.to_le_bytes().to_vec()),
                ("blob_staleness_threshold", separation.holes_share_max.to_le_bytes().to_vec()),
                ("blob_age_cutoff", separation.share_of_files.to_le_bytes().to_vec()),
            ]);
        }
        written
    }
}

impl Compression {
    /// What is flushed is not compressed: it is merged soon, and that would be a tenth of the CPU of a replace.
    fn by_level(self) -> CompressionPolicy {
        CompressionPolicy::new([CompressionType::None, self.of_library()])
    }

    fn of_library(self) -> CompressionType {
        match self {
            Self::None => CompressionType::None,
            Self::Lz4 => CompressionType::Lz4,
        }
    }
}

/// Has the library open the trees in `folder` with these layouts, by their names. Whether any was another one.
pub fn renew(folder: &Path, layouts: &[(&str, Layout)]) -> fjall::Result<bool> {
    let options_tree = folder.join(OPTIONS_TREE[0]).join(OPTIONS_TREE[1]);
    if !options_tree.join("current").try_exists()? {
        // It is being made.
        return Ok(false);
    }
    // Nobody else may have it open: a snapshot of a store that is closed has.
    let lock = File::options().write(true).open(folder.join(LOCK_FILE))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => fjall::Error::Locked,
        TryLockError::Error(error) => fjall::Error::Io(error),
    })?;
    let (seqno, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
    let tree = lsm_tree::Config::new(&options_tree, seqno.clone(), visible)
        .data_block_compression_policy(CompressionPolicy::disabled())
        .open()?;
    let mut changes = Vec::new();
    for row in tree.prefix("n", SeqNo::MAX, None) {
        let (key, name) = row.into_inner()?;
        let layout = layouts.iter().find(|(wanted, _)| *wanted.as_bytes() == *name);
        for (option, value) in layout.map(|(_, layout)| layout.written()).unwrap_or_default() {
            let key = [b"c", &key[1..], option.as_bytes()].concat();
            match tree.get(&key, SeqNo::MAX)? {
                Some(found) if *found == *value => {}
                Some(_) => changes.push((key, value)),
                // The library would not go by it.
                None => return Err(io::Error::other(format!("no option {option} of a tree")).into()),
            }
        }
    }
    if changes.is_empty() {
        return Ok(false);
    }
    changes.sort_unstable();
    // Newer than what is there.
    seqno.fetch_max(tree.get_highest_persisted_seqno().unwrap_or(0) + 1);
    let mut rows = tree.ingestion()?;
    for (key, value) in changes {
        rows.write(key, value)?;
    }
    rows.finish()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{EmbeddedOptions, trees::Trees};

    fn open(folder: &Path, compression: Compression) -> Trees {
        let options = EmbeddedOptions { compression, ..EmbeddedOptions::default() };
        Trees::open(folder, folder, &options).unwrap()
    }

    fn assert_is_compressed(trees: &Trees, compression: Compression) {
        for tree in [&trees.of.small, &trees.of.large] {
            assert_eq!(tree.tree.tree_config().data_block_compression_policy, compression.by_level());
        }
        let separation = trees.of.large.tree.tree_config().kv_separation_opts.clone().unwrap();
        assert_eq!(separation.compression, compression.of_library());
    }

    /// What we write down of a layout is what the library does: else this would change options that are right.
    #[test]
    fn a_layout_is_changed_if_it_is_another_one_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), Compression::Lz4));
        let separation = Separation { bytes_min: 7000, holes_share_max: 0.25, share_of_files: 0.5 };
        let small = Layout { compression: Compression::None, block_bytes: 9000, separation: None };
        let large = Layout { separation: Some(separation), ..small };
        let layouts = [("small", small), ("large", large)];
        assert!(renew(folder.path(), &layouts).unwrap());
        assert!(!renew(folder.path(), &layouts).unwrap());

        let made = tempfile::tempdir().unwrap();
        let db = fjall::Database::builder(made.path()).open().unwrap();
        for (name, layout) in layouts {
            db.keyspace(name, || layout.apply(KeyspaceCreateOptions::default())).unwrap();
        }
        let is_in_use = matches!(renew(made.path(), &layouts), Err(fjall::Error::Locked));
        assert!(is_in_use);
        drop(db);
        assert!(!renew(made.path(), &layouts).unwrap(), "the library writes it down in the same way");
    }

    #[test]
    fn compression_may_be_another_one_at_each_opening() {
        let folder = tempfile::tempdir().unwrap();
        let stored = |trees: &Trees| trees.of.large.get("key").unwrap().map(|value| value.to_vec());
        for round in 0..6_u8 {
            let compression = if round % 2 == 0 { Compression::Lz4 } else { Compression::None };
            let trees = open(folder.path(), compression);
            assert_is_compressed(&trees, compression);
            let before = round.checked_sub(1).map(|before| vec![before; 6000]);
            assert_eq!(stored(&trees), before);
            trees.of.large.insert("key", [round; 6000]).unwrap();
            trees.of.large.rotate_memtable_and_wait().unwrap();
            trees.of.large.major_compact().unwrap();
            let version = trees.of.large.tree.current_version();
            let table = version.iter_tables().next().unwrap();
            assert_eq!(table.metadata.data_block_compression, compression.of_library());
            assert_eq!(table.metadata.file_size > 6000, compression == Compression::None);
        }
    }
}
