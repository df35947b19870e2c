//! How much memory the process takes, and how much of the machine's the store may use for what it has read.
//!
//! The store may use a sixteenth: what fits there need not be read, checked and unpacked again, and most is left to the
//! system's file cache and to other programs. It is taken as it is needed, not at the start.

use std::fs;

/// As much as a small machine can spare.
const CACHE_MB_MIN: u64 = 64;

/// More was not measured.
const CACHE_MB_MAX: u64 = 1024;

/// What the store's cache gets on this machine unless someone says otherwise.
pub fn cache_mb() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| kilobytes_of(&text, "MemTotal:"));
    // A container may have less than its machine.
    let allowed = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let allowed = allowed.and_then(|text| text.trim().parse::<u64>().ok());
    let megabytes = machine.map(|kilobytes| kilobytes >> 10).into_iter();
    share_of(megabytes.chain(allowed.map(|bytes| bytes >> 20)).min())
}

fn share_of(memory_mb: Option<u64>) -> u64 {
    (memory_mb.unwrap_or(0) / 16).clamp(CACHE_MB_MIN, CACHE_MB_MAX)
}

/// The number on the line that begins with `name`, in the form of the system's own reports.
fn kilobytes_of(report: &str, name: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Bytes in memory; none where `/proc` is not there.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    kilobytes_of(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_a_share_of_the_memory() {
        assert_eq!(kilobytes_of("MemTotal:       16384 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(16384));
        assert_eq!(kilobytes_of("nothing", "MemTotal:"), None);
        assert_eq!(share_of(None), CACHE_MB_MIN);
        assert_eq!(share_of(Some(8 << 10)), 512);
        assert_eq!(share_of(Some(1 << 20)), CACHE_MB_MAX);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_takes_memory() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
