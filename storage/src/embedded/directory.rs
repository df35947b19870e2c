//! The data directory: is it ours, do we know its format, is it free.
//!
//! ```text
//!   MAYFLY      "MAYFLY 2\n": ours, and the format of what is beside it
//!   lock        held while a process has the directory open
//!   tree/       the trees
//!   log/        the log, made when the store is opened
//!   tree.new/   the same while a first start is making it
//! ```
//!
//! A first start makes `tree.new`, then writes `MAYFLY`, then renames `tree.new` to `tree`. So after a crash in
//! between, `tree.new` alone is unfinished and can go, and `tree.new` beside `MAYFLY` is complete and only waits
//! for its name. Nothing that ever held data is removed.
//!
//! Holds: a directory that is refused is left exactly as it was.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{Error, Result};

/// The format this version writes. Raised whenever an older version could not read what we write.
pub const FORMAT: u32 = 2;

/// The format before there was a log (`former.rs`).
const FORMER: u32 = 1;

const VERSION_FILE: &str = "MAYFLY";
const VERSION_FILE_NEW: &str = "MAYFLY.new";
const LOCK_FILE: &str = "lock";
const TREE: &str = "tree";
const LOG: &str = "log";
const TREE_NEW: &str = "tree.new";

/// What may lie in a directory that nothing was stored in yet. `lost+found` is in the root of a fresh volume.
const UNFINISHED: [&str; 4] = [VERSION_FILE_NEW, LOCK_FILE, TREE_NEW, "lost+found"];

/// A data directory that this process holds.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    is_former: bool,
    /// Let go when dropped, also by a process that is killed.
    _lock: File,
}

/// What a look at a directory shows.
enum Look {
    /// Nothing was ever stored here.
    Fresh,
    /// A store, complete, of this format.
    Ours(u32),
    /// A store whose last step of creation is missing.
    Unnamed(u32),
}

impl Directory {
    /// Takes hold of the directory at `path`; `make` fills a new tree folder if it is a fresh one.
    pub fn open(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let cannot = |error| {
            unusable(path, format_args!("cannot be opened: {error}. Check the path and its permissions"))
        };
        // Looked at before anything is written, so that a foreign directory stays untouched.
        look(path)?;
        fs::create_dir_all(path).map_err(cannot)?;
        let mut directory = Self { path: path.to_owned(), is_former: false, _lock: lock(path)? };
        // And again under the lock: another process may have been quicker.
        match look(path)? {
            Look::Fresh => directory.create(make)?,
            Look::Unnamed(format) => {
                directory.is_former = format == FORMER;
                directory.name_tree().map_err(cannot)?;
            }
            Look::Ours(format) => directory.is_former = format == FORMER,
        }
        Ok(directory)
    }

    /// Where the trees are.
    pub fn tree(&self) -> PathBuf {
        self.path.join(TREE)
    }

    /// Where the log is.
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Whether it is of the format before this one.
    pub fn is_former(&self) -> bool {
        self.is_former
    }

    /// Raises the format to the one this version writes.
    pub fn raise_format(&mut self) -> io::Result<()> {
        self.write_version()?;
        self.is_former = false;
        Ok(())
    }

    /// Bytes that all files take on disk. Counts blocks where the system tells, as the library's journal is sparse.
    pub fn disk_bytes(&self) -> u64 {
        let mut bytes = 0;
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            // Files come and go meanwhile; one that is gone takes no room.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) => bytes += allocated(&metadata),
                    Err(_) => {}
                }
            }
        }
        bytes
    }

    fn create(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let cannot = |error| {
            unusable(
                &self.path,
                format_args!("cannot be set up: {error}. Check its permissions and free space"),
            )
        };
        let tree_new = self.path.join(TREE_NEW);
        match fs::remove_dir_all(&tree_new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
        make(&tree_new)?;
        self.write_version().map_err(cannot)?;
        self.name_tree().map_err(cannot)
    }

    fn write_version(&self) -> io::Result<()> {
        let new = self.path.join(VERSION_FILE_NEW);
        let mut file = File::create(&new)?;
        file.write_all(format!("{VERSION_FILE} {FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        fs::rename(new, self.path.join(VERSION_FILE))?;
        sync_folder(&self.path)
    }

    fn name_tree(&self) -> io::Result<()> {
        fs::rename(self.path.join(TREE_NEW), self.tree())?;
        sync_folder(&self.path)
    }
}

/// An [`Error::Unusable`] about `path`.
pub fn unusable(path: &Path, what: std::fmt::Arguments<'_>) -> Error {
    Error::Unusable(format!("the data directory {} {what}", path.display()))
}

/// Reads, never writes.
fn look(path: &Path) -> Result<Look> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Look::Fresh),
        Err(error) => {
            return Err(unusable(
                path,
                format_args!("cannot be read: {error}. Check the path and its permissions"),
            ));
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unusable(path, format_args!("cannot be read: {error}")))?;
        names.push(entry.file_name());
    }
    let has = |name: &str| names.iter().any(|found| found == name);

    if has(VERSION_FILE) {
        let format = check_version(path)?;
        return match (has(TREE), has(TREE_NEW)) {
            (true, _) => Ok(Look::Ours(format)),
            (false, true) => Ok(Look::Unnamed(format)),
            (false, false) => Err(damaged(path, "its folder `tree` is missing")),
        };
    }
    if names.iter().all(|found| UNFINISHED.iter().any(|name| found == name)) {
        return Ok(Look::Fresh);
    }
    Err(unusable(
        path,
        format_args!(
            "is not empty and not one of Mayfly's (it has no file `{VERSION_FILE}`). Choose an empty directory or \
             one that does not exist yet; nothing was changed"
        ),
    ))
}

fn check_version(path: &Path) -> Result<u32> {
    let text = fs::read(path.join(VERSION_FILE))
        .map_err(|error| damaged(path, &format!("its file `{VERSION_FILE}` cannot be read: {error}")))?;
    let format = std::str::from_utf8(&text).ok().and_then(|text| {
        text.strip_prefix(VERSION_FILE)?.strip_prefix(' ')?.strip_suffix('\n')?.parse().ok()
    });
    match format {
        Some(known @ FORMER..=FORMAT) => Ok(known),
        Some(newer) if newer > FORMAT => Err(unusable(
            path,
            format_args!(
                "was made by a newer version of Mayfly (format {newer}, this one knows {FORMAT}). Use that version; \
                 nothing was changed"
            ),
        )),
        _ => Err(damaged(path, &format!("its file `{VERSION_FILE}` does not say what it should"))),
    }
}

/// A directory that is ours but not whole.
pub fn damaged(path: &Path, what: &str) -> Error {
    unusable(path, format_args!("is damaged: {what}. Restore it from a backup"))
}

/// That another process, or a store or snapshot in this one, still has the directory.
pub fn in_use(path: &Path) -> Error {
    unusable(path, format_args!("is in use by another process. Stop that one, or choose another directory"))
}

fn lock(path: &Path) -> Result<File> {
    let cannot = |error| unusable(path, format_args!("cannot be locked: {error}. Check its permissions"));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK_FILE))
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(in_use(path)),
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

/// Makes what files are in `folder` durable, where a folder can be opened as a file at all.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    // In units of 512 bytes, whatever the file system's block size.
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}
