//! Keeping the last of the disk for purge.
//!
//! A store on a full disk cannot write, and what cannot write cannot delete either. So before the disk is full the
//! engine is told to refuse writes; purge goes on and frees it, and writes are taken again when there is room.

use std::path::Path;

use mayfly_engine::Engine;

/// Below this, writes are refused. Purge needs room for its journal and for the compaction that gives space back.
const RESERVE_BYTES: u64 = 128 << 20;

/// Writes are taken again from here on; above the reserve, so that the answer does not flicker.
const RELEASE_BYTES: u64 = 192 << 20;

/// What is free on the disk that holds `path`.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Looks at the disk that holds `path` and tells the engine.
pub fn watch(engine: &Engine, path: &Path) {
    let Some(free) = free_bytes(path) else { return };
    if let Some(read_only) = verdict(engine.is_read_only(), free) {
        match read_only {
            true => tracing::error!(free_mb = free >> 20, "the disk is nearly full: writes are refused"),
            false => tracing::info!(free_mb = free >> 20, "the disk has room again: writes are taken"),
        }
        engine.set_read_only(read_only);
    }
}

/// Whether to change to read-only (`true`) or back (`false`).
fn verdict(is_read_only: bool, free_bytes: u64) -> Option<bool> {
    match is_read_only {
        false if free_bytes < RESERVE_BYTES => Some(true),
        true if free_bytes >= RELEASE_BYTES => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_stop_below_the_reserve_and_start_again_above_the_release() {
        assert_eq!(verdict(false, RESERVE_BYTES), None);
        assert_eq!(verdict(false, RESERVE_BYTES - 1), Some(true));
        assert_eq!(verdict(true, RELEASE_BYTES - 1), None);
        assert_eq!(verdict(true, RELEASE_BYTES), Some(false));
    }
}
