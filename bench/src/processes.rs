//! What Linux tells about a process: CPU time, memory, children.

use std::{fs, io, os::unix::fs::MetadataExt as _, path::Path};

/// Clock ticks per second in `/proc`: always 100 on Linux.
const TICKS: f64 = 100.0;

/// What `stat` counts blocks in, whatever the file system's are.
const BLOCK_BYTES: u64 = 512;

/// The fields of a process's state after its name: the state itself is the first.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Seconds of CPU a process has used so far; `None` where the system does not tell.
pub fn cpu_seconds(pid: u32) -> Option<f64> {
    let fields = stat(pid)?;
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

/// Seconds of CPU that children of a process had used by the time they ended; `None` where the system does not tell.
pub fn ended_children_seconds(pid: u32) -> Option<f64> {
    let fields = stat(pid)?;
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS)
}

/// The processes that `pid` started and that are still there.
pub fn children(pid: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |child: u32| stat(child)?.get(1)?.parse::<u32>().ok();
    all.filter(|child| parent(*child) == Some(pid)).collect()
}

/// A size in the status of a process, such as `VmRSS:`.
pub fn status_bytes(pid: u32, name: &str) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other(format!("no {name}")))
}

/// Makes the peak of a process's memory what it has now.
pub fn forget_peak_memory(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// Bytes that the files of a folder take up on the disk. A file that goes meanwhile counts nothing.
pub fn disk_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    });
    bytes.sum()
}
