//! A directory from before there was a log: the journal in it is the library's.
//!
//! What is in that journal is put into tables, and the journal is emptied before anything is logged. It must not stay as it
//! is: the library reads it at every opening, and would put what was deleted long ago back into a tree whose tables
//! have nothing younger.
//!
//! Holds: a crash at any moment leaves a directory that this version and the one before it can open.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use super::{
    directory::{Directory, sync_folder, unusable},
    reclaim::{FLUSH_LOOKS_MAX, comes_true},
    trees::{Trees, failed},
};
use crate::{Result, store::Space};

/// Makes `directory` one of the present format. `trees` are those in it.
pub fn renew(path: &Path, directory: &mut Directory, trees: Trees) -> Result<()> {
    let cannot = |what: &dyn std::fmt::Display| {
        unusable(path, format_args!("cannot be brought to the present format: {what}. Nothing is lost"))
    };
    for space in [Space::Small, Space::Large] {
        // What it read from its journal is in its own memtables, which its worker flushes.
        trees.of.of(space).rotate_memtable().map_err(failed)?;
        if !comes_true(FLUSH_LOOKS_MAX, || trees.of.of(space).sealed_memtable_count() == 0) {
            return Err(cannot(&"a flush does not end"));
        }
    }
    drop(trees);
    empty_journals(&directory.tree()).and_then(|()| directory.raise_format()).map_err(|error| cannot(&error))
}

/// Leaves one empty journal: without any, the library would count from the beginning.
fn empty_journals(tree: &Path) -> io::Result<()> {
    let mut journals: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(tree)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse().ok());
        journals.extend(name.map(|name| (name, path)));
    }
    journals.sort_unstable();
    let last = journals.pop();
    // Oldest first: what is left at any moment are the latest.
    for (_, path) in journals {
        fs::remove_file(path)?;
        sync_folder(tree)?;
    }
    if let Some((_, path)) = last {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(0)?;
        file.sync_all()?;
    }
    Ok(())
}
