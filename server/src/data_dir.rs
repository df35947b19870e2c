//! What lies in a data directory.
//!
//! ```text
//!   store/   the embedded store
//!   tls/     the local certificate authority and the server's certificate
//! ```
//!
//! Holds: a directory with anything else in it is refused before a byte is written to it.

use std::path::{Path, PathBuf};

/// What may be there. `lost+found` is in the root of a fresh volume.
const KNOWN: [&str; 3] = ["store", "tls", "lost+found"];

/// Where the embedded store is.
pub fn store(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

/// Where certificates are.
pub fn tls(data_dir: &Path) -> PathBuf {
    data_dir.join("tls")
}

/// Refuses a directory that somebody else uses; the text says what to do.
pub fn check(data_dir: &Path) -> Result<(), String> {
    let entries = match std::fs::read_dir(data_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(format!("the data directory {} cannot be read: {error}", data_dir.display()));
        }
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !KNOWN.iter().any(|known| name == *known) {
            return Err(format!(
                "{} is not a Mayfly data directory: it holds `{}`. Nothing was changed. Give an empty or new \
                 directory with --data-dir",
                data_dir.display(),
                name.to_string_lossy()
            ));
        }
    }
    Ok(())
}
