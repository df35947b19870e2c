//! How much memory the process takes, where the system says so.

/// Bytes in memory; none where `/proc` is not there.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_takes_memory() {
        assert!(super::resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
