//! The log: every group is a record here before it is in the trees, and durable once its record is synced.
//!
//! The library has a journal of its own, and it is left empty. A sync of that one is dear: the file is made sparse, so each sync
//! allocates blocks too and waits for the file system's own journal. Here blocks that were
//! written once are written again: files are filled with zeros ahead of the records, and used anew when nobody needs
//! what is in them. The library's batches cost as much again as what they do to the trees.
//!
//! ```text
//!   log/1   ▓▓▓▓▓▓▓▓▓▓  a record: checksum, length, number, floor, synced, seqno (8 bytes each), and the writes
//!   log/2   ▓▓▓▓▒▒▒▒▒▒  records are numbered without gaps; bytes of an earlier use do not go on with the next number
//!   log/3   ░░░░        zeros that were written ahead
//! ```
//!
//! The *floor* is the lowest number that is needed: what is below is in the trees' tables. The highest floor that is
//! found at an opening holds, so a file may be used anew once a synced record has a floor above all that is in it.
//! *Synced* is the last number that was durable when the record was written: a record that cannot be read and was
//! durable once is damage, and one that was not is the end of the log.
//!
//! Holds: a file is synced before the next one is begun, so that only the end of the last can be missing after a
//! lost machine; and the bytes behind the last record of a log that is continued are zeros.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_64;

use super::directory::sync_folder;
use crate::store::Space;

/// A file is left when it has this many bytes: small enough that few are needed beyond what is alive, large enough that the
/// change is rare.
const FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Zeros that are written ahead in one go, at least and at most: as many as there are records in the file, so that a small
/// store stays small.
const AHEAD_BYTES: (u64, u64) = (64 * 1024, 1024 * 1024);

/// Six numbers; the checksum is of all that follows it.
const HEAD_BYTES: usize = 6 * NUMBER_BYTES;
const NUMBER_BYTES: usize = size_of::<u64>();

/// The log of an open store.
pub struct Log {
    folder: PathBuf,
    /// The file that is being written.
    current: Option<Current>,
    /// All others: those before the current one, and those that can be used anew.
    others: Vec<Part>,
    /// The number of the next record.
    next: u64,
    floor: u64,
    /// The floor that the last record says.
    written_floor: u64,
    /// The last number that is durable, and the highest floor that is.
    synced: u64,
    synced_floor: u64,
    /// The record that is being made.
    record: Vec<u8>,
}

struct Current {
    part: Part,
    file: File,
    /// Where the next record goes.
    end: u64,
}

/// A file of the log.
struct Part {
    name: u64,
    /// The number of its last record; 0 if it has none.
    last: u64,
    /// Its length, all of it written.
    bytes: u64,
}

impl Log {
    /// Writes the record that was begun, if there was none an empty one, and makes it durable if `sync` says so.
    /// Returns its number.
    pub fn append(&mut self, seqno: u64, sync: bool) -> io::Result<u64> {
        let number = self.next;
        if self.record.is_empty() {
            self.record.resize(HEAD_BYTES, 0);
        }
        let length = (self.record.len() - HEAD_BYTES) as u64;
        let head = [length, number, self.floor, self.synced, seqno];
        for (field, value) in self.record[NUMBER_BYTES..].chunks_exact_mut(NUMBER_BYTES).zip(head) {
            field.copy_from_slice(&value.to_be_bytes());
        }
        let checksum = xxh3_64(&self.record[NUMBER_BYTES..]);
        self.record[..NUMBER_BYTES].copy_from_slice(&checksum.to_be_bytes());
        let record = std::mem::take(&mut self.record);
        let written = self.write(&record);
        self.record = record;
        self.record.clear();
        written?;
        self.written_floor = self.floor;
        self.next += 1;
        if sync {
            self.sync()?;
        }
        Ok(number)
    }

    /// Adds to the record that is being made: a value, or a delete.
    pub fn add(&mut self, space: Space, key: &[u8], value: Option<&[u8]>) {
        if self.record.is_empty() {
            self.record.resize(HEAD_BYTES, 0);
        }
        push_write(&mut self.record, space, key, value);
    }

    /// Makes everything that was appended durable.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.synced + 1 < self.next {
            if let Some(current) = &self.current {
                current.file.sync_data()?;
            }
            self.synced = self.next - 1;
            self.synced_floor = self.written_floor;
        }
        Ok(())
    }

    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Records below `floor` are not needed any more. To be told before an append, which writes it down.
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
    }

    /// Bytes of the files that are needed.
    pub fn live_bytes(&self) -> u64 {
        let others = self.others.iter().filter(|part| part.last >= self.floor).map(|part| part.bytes);
        others.sum::<u64>() + self.current.as_ref().map_or(0, |current| current.end)
    }

    /// Gives files back that are not needed, and begins a new one.
    pub fn shrink(&mut self) -> io::Result<()> {
        self.leave_current()?;
        self.current = Some(self.create()?);
        self.append(0, true)?;
        for part in self.others.extract_if(.., |part| part.last < self.synced_floor) {
            fs::remove_file(self.folder.join(part.name.to_string()))?;
        }
        Ok(())
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let length = record.len() as u64;
        if self.current.as_ref().is_some_and(|current| current.end > 0 && current.end + length > FILE_BYTES) {
            self.leave_current()?;
        }
        let number = self.next;
        let current = match &mut self.current {
            Some(current) => current,
            none => none.insert(Self::begin(&self.folder, &mut self.others, self.synced_floor)?),
        };
        current.file.write_all(record)?;
        current.end += length;
        current.part.last = number;
        if current.end > current.part.bytes {
            let room = FILE_BYTES.saturating_sub(current.end);
            let ahead = current.end.clamp(AHEAD_BYTES.0, AHEAD_BYTES.1).min(room);
            current.file.write_all(&zeros(ahead))?;
            current.file.seek(SeekFrom::Start(current.end))?;
            current.part.bytes = current.end + ahead;
        }
        Ok(())
    }

    /// Ends the current file.
    fn leave_current(&mut self) -> io::Result<()> {
        self.sync()?;
        self.others.extend(self.current.take().map(|current| current.part));
        Ok(())
    }

    /// Begins a file that is not needed any more anew, or makes one.
    fn begin(folder: &Path, others: &mut Vec<Part>, synced_floor: u64) -> io::Result<Current> {
        let Some(at) = others.iter().position(|part| part.last < synced_floor) else {
            return create(folder, others);
        };
        let part = others.swap_remove(at);
        let file = OpenOptions::new().write(true).open(folder.join(part.name.to_string()))?;
        Ok(Current { part: Part { last: 0, ..part }, file, end: 0 })
    }

    fn create(&self) -> io::Result<Current> {
        create(&self.folder, &self.others)
    }
}

/// Makes the file with the next free name.
fn create(folder: &Path, others: &[Part]) -> io::Result<Current> {
    let name = others.iter().map(|part| part.name).max().unwrap_or(0) + 1;
    let file = OpenOptions::new().write(true).create_new(true).open(folder.join(name.to_string()))?;
    sync_folder(folder)?;
    Ok(Current { part: Part { name, last: 0, bytes: 0 }, file, end: 0 })
}

/// What the last process left in a log, to be put into the trees.
pub struct Left {
    folder: PathBuf,
    /// The files that are needed, in order.
    names: Vec<u64>,
    floor: u64,
    /// The highest seqno of a record.
    pub seqno: Option<u64>,
}

/// A group, as it was written.
pub struct Record<'a> {
    pub number: u64,
    pub seqno: u64,
    pub writes: Vec<Written<'a>>,
}

/// A key, and its value if it was not deleted.
type Written<'a> = (Space, &'a [u8], Option<&'a [u8]>);

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its log is not whole at record {0}")]
    Damaged(u64),
}

/// What was found in a file.
struct Found {
    part: Part,
    first: u64,
    floor: u64,
    seqno: u64,
    end: usize,
    /// Whether something other than zeros follows.
    has_tail: bool,
}

impl Log {
    /// Opens the log in `folder`, making it if it is not there. Nothing may be appended before what is left is in the trees.
    pub fn open(folder: &Path) -> Result<(Self, Left), Broken> {
        if !folder.is_dir() {
            fs::create_dir(folder)?;
            folder.parent().map_or(Ok(()), sync_folder)?;
        }
        let mut found = Vec::new();
        let mut headless = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // What has another name was not made by us.
            let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let bytes = fs::read(entry.path())?;
            match look_through(name, &bytes) {
                Some(one) => found.push(one),
                None => headless.push(entry.path()),
            }
        }
        let floor = found.iter().map(|one| one.floor).max().unwrap_or(1);
        let (mut live, idle): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.part.last >= floor);
        live.sort_unstable_by_key(|one| one.first);
        let mut next = floor;
        for (at, one) in live.iter().enumerate() {
            // The first may begin before the floor; the others go on where the one before them ended.
            if one.first > next || (at > 0 && one.first != next) {
                return Err(Broken::Damaged(next));
            }
            next = one.part.last + 1;
        }
        for path in headless {
            // Its first record never got here, or is damaged. In the one case what follows may look like records, and is none.
            check_behind(&fs::read(&path)?, next)?;
            fs::remove_file(path)?;
        }
        let left = Left {
            folder: folder.to_owned(),
            names: live.iter().map(|one| one.part.name).collect(),
            floor,
            seqno: live.iter().map(|one| one.seqno).max(),
        };
        let current = match live.pop() {
            Some(last) => Some(resume(folder, last, next)?),
            None => None,
        };
        for one in &live {
            // A killed process may have left it to the system.
            OpenOptions::new().write(true).open(folder.join(one.part.name.to_string()))?.sync_data()?;
        }
        let others = live.into_iter().chain(idle).map(|one| one.part).collect();
        let log = Self {
            folder: folder.to_owned(),
            current,
            others,
            next,
            floor,
            written_floor: floor,
            synced: next - 1,
            synced_floor: floor,
            record: Vec::new(),
        };
        Ok((log, left))
    }
}

/// Goes on with the last file of a log. What is behind its end is made zeros, lest something in it looks like the next record.
fn resume(folder: &Path, last: Found, next: u64) -> Result<Current, Broken> {
    let path = folder.join(last.part.name.to_string());
    let mut file = OpenOptions::new().write(true).open(&path)?;
    let end = last.end as u64;
    if last.has_tail {
        let bytes = fs::read(&path)?;
        let tail = bytes.get(last.end..).unwrap_or_default();
        check_behind(tail, next)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(&zeros(tail.len() as u64))?;
    }
    file.sync_data()?;
    file.seek(SeekFrom::Start(end))?;
    Ok(Current { part: last.part, file, end })
}

/// Refuses what follows the end of a log if the record `next`, which cannot be read, was durable when something in there was
/// written.
fn check_behind(bytes: &[u8], next: u64) -> Result<(), Broken> {
    let is_after = |head: &Head| head.number > next && (next..head.number).contains(&head.synced);
    let begins_at = |at: usize| {
        let rest = bytes.get(at..).unwrap_or_default();
        // The numbers first: they are nearly always wrong, and no checksum has to be made.
        Head::read(rest).filter(is_after).is_some() && record_at(rest).is_some()
    };
    if (0..bytes.len()).any(begins_at) { Err(Broken::Damaged(next)) } else { Ok(()) }
}

fn zeros(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).unwrap_or_default()]
}

impl Left {
    /// Gives all groups that are needed to `apply`, in order.
    pub fn replay<E: From<Broken>>(
        self,
        mut apply: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for name in self.names {
            let bytes = fs::read(self.folder.join(name.to_string())).map_err(Broken::Io)?;
            let mut rest = bytes.as_slice();
            let mut expected = None;
            while let Some((head, writes)) = record_at(rest) {
                if expected.is_some_and(|expected| expected != head.number) {
                    break;
                }
                if head.number >= self.floor {
                    let writes = read_writes(writes).ok_or(Broken::Damaged(head.number))?;
                    apply(Record { number: head.number, seqno: head.seqno, writes })?;
                }
                expected = Some(head.number + 1);
                rest = &rest[HEAD_BYTES + writes.len()..];
            }
        }
        Ok(())
    }
}

/// The records of a file, if it has any.
fn look_through(name: u64, bytes: &[u8]) -> Option<Found> {
    let (head, _) = record_at(bytes)?;
    let part = Part { name, last: head.number, bytes: bytes.len() as u64 };
    let mut found = Found { part, first: head.number, floor: 0, seqno: 0, end: 0, has_tail: false };
    while let Some((head, writes)) = record_at(&bytes[found.end..]) {
        if found.end > 0 && head.number != found.part.last + 1 {
            break;
        }
        found.part.last = head.number;
        found.floor = found.floor.max(head.floor);
        found.seqno = found.seqno.max(head.seqno);
        found.end += HEAD_BYTES + writes.len();
    }
    found.has_tail = bytes[found.end..].iter().any(|byte| *byte != 0);
    Some(found)
}

struct Head {
    checksum: u64,
    length: u64,
    number: u64,
    floor: u64,
    synced: u64,
    seqno: u64,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (fields, _) = head.as_chunks::<NUMBER_BYTES>();
        let field = |at: usize| fields.get(at).map(|bytes| u64::from_be_bytes(*bytes));
        Some(Self {
            checksum: field(0)?,
            length: field(1)?,
            number: field(2)?,
            floor: field(3)?,
            synced: field(4)?,
            seqno: field(5)?,
        })
    }
}

/// The whole record that begins here, as its head and its writes.
fn record_at(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let head = Head::read(bytes)?;
    let length = usize::try_from(head.length).ok()?;
    let whole = bytes.get(..HEAD_BYTES.checked_add(length)?)?;
    let is_whole = head.number > 0 && xxh3_64(&whole[NUMBER_BYTES..]) == head.checksum;
    is_whole.then_some((head, &whole[HEAD_BYTES..]))
}

const PUT: u8 = 1;
const LARGE: u8 = 2;

/// A write: what it is u8, the key's length u16, a value's u32, then the key and the value.
fn push_write(out: &mut Vec<u8>, space: Space, key: &[u8], value: Option<&[u8]>) {
    let large = if space == Space::Large { LARGE } else { 0 };
    // Longer keys and values are refused, by us and by the library.
    let key_bytes = u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes();
    match value {
        None => {
            out.push(large);
            out.extend_from_slice(&key_bytes);
            out.extend_from_slice(key);
        }
        Some(value) => {
            out.push(large | PUT);
            out.extend_from_slice(&key_bytes);
            out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
    }
}

fn read_writes(mut bytes: &[u8]) -> Option<Vec<Written<'_>>> {
    let mut writes = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        let space = if kind & LARGE == 0 { Space::Small } else { Space::Large };
        let (key_bytes, rest) = rest.split_first_chunk()?;
        let key_bytes = usize::from(u16::from_be_bytes(*key_bytes));
        let (value_bytes, rest) = match kind & PUT {
            0 => (None, rest),
            _ => {
                let (value_bytes, rest) = rest.split_first_chunk()?;
                (Some(usize::try_from(u32::from_be_bytes(*value_bytes)).ok()?), rest)
            }
        };
        let (key, rest) = rest.split_at_checked(key_bytes)?;
        let (value, rest) = match value_bytes {
            None => (None, rest),
            Some(value_bytes) => {
                rest.split_at_checked(value_bytes).map(|(value, rest)| (Some(value), rest))?
            }
        };
        writes.push((space, key, value));
        bytes = rest;
    }
    Some(writes)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// What a log gives back when it is opened: the numbers, and the keys, one to a record.
    fn open(folder: &Path) -> Result<(Log, Vec<(u64, String)>), Broken> {
        let (log, left) = Log::open(folder)?;
        let mut groups = Vec::new();
        left.replay(|record| {
            let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
            groups.extend(record.writes.iter().map(|(_, key, _)| (record.number, name(key))));
            Ok::<_, Broken>(())
        })?;
        Ok((log, groups))
    }

    fn groups(folder: &Path) -> Vec<(u64, String)> {
        open(folder).unwrap().1
    }

    fn append(log: &mut Log, key: &str, value_bytes: usize, sync: bool) {
        log.add(Space::Small, key.as_bytes(), Some(&vec![7; value_bytes]));
        log.append(1, sync).unwrap();
    }

    fn named(names: &[(u64, &str)]) -> Vec<(u64, String)> {
        names.iter().map(|(number, name)| (*number, (*name).to_owned())).collect()
    }

    /// Three records of 100 bytes of value in one file, and where each ends.
    fn three(folder: &Path, sync: bool) -> Vec<usize> {
        let (mut log, _) = open(folder).unwrap();
        let mut ends = Vec::new();
        for name in ["a", "b", "c"] {
            append(&mut log, name, 100, sync);
            ends.push(usize::try_from(log.current.as_ref().unwrap().end).unwrap());
        }
        ends
    }

    fn change(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let path = folder.join("1");
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn what_was_appended_comes_back() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("log");
        let (mut log, nothing) = open(&path).unwrap();
        assert!(nothing.is_empty());
        log.add(Space::Small, b"put", Some(b"value"));
        log.add(Space::Large, b"gone", None);
        log.add(Space::Large, b"empty", Some(b""));
        assert_eq!(log.append(17, true).unwrap(), 1);
        drop(log);
        let (log, left) = Log::open(&path).unwrap();
        assert_eq!((log.next(), left.seqno), (2, Some(17)));
        let check = |record: Record<'_>| {
            assert_eq!((record.number, record.seqno), (1, 17));
            let (put, gone) =
                ((Space::Small, &b"put"[..], Some(&b"value"[..])), (Space::Large, &b"gone"[..], None));
            assert_eq!(record.writes, [put, gone, (Space::Large, &b"empty"[..], Some(&b""[..]))]);
            Ok::<_, Broken>(())
        };
        left.replay(check).unwrap();
    }

    /// However much of the last record is missing, the log ends before it and goes on there.
    #[test]
    fn a_torn_end_is_left_out() {
        for sync in [true, false] {
            let folder = TempDir::new().unwrap();
            let ends = three(folder.path(), sync);
            let whole = fs::read(folder.path().join("1")).unwrap();
            for cut in ends[1]..ends[2] {
                // The file is shorter, or the bytes are the zeros that were there before.
                for is_short in [true, false] {
                    change(folder.path(), |bytes| {
                        bytes.clone_from(&whole);
                        if is_short { bytes.truncate(cut) } else { bytes[cut..].fill(0) }
                    });
                    let (mut log, found) = open(folder.path()).unwrap();
                    assert_eq!(found, named(&[(1, "a"), (2, "b")]), "{cut}");
                    append(&mut log, "d", 90, true);
                    drop(log);
                    assert_eq!(groups(folder.path()), named(&[(1, "a"), (2, "b"), (3, "d")]), "{cut}");
                }
            }
        }
    }

    /// A record that was durable and is not what it was: damage. The last one cannot be told from one that was torn.
    #[test]
    fn a_flipped_bit_is_found() {
        let folder = TempDir::new().unwrap();
        let ends = three(folder.path(), true);
        let whole = fs::read(folder.path().join("1")).unwrap();
        for at in 0..ends[2] {
            change(folder.path(), |bytes| {
                bytes.clone_from(&whole);
                bytes[at] ^= 0x10;
            });
            let opened = open(folder.path());
            if at < ends[1] {
                assert!(matches!(opened, Err(Broken::Damaged(_))), "{at}");
            } else {
                assert_eq!(opened.unwrap().1, named(&[(1, "a"), (2, "b")]), "{at}");
            }
        }
    }

    /// A lost machine may keep a later record and lose an earlier one that was not synced either. The later one never comes
    /// back, also if the log goes on with records of the same numbers and lengths.
    #[test]
    fn what_follows_a_hole_is_gone() {
        for hole in [0, 1] {
            let folder = TempDir::new().unwrap();
            let ends = three(folder.path(), false);
            let begin = if hole == 0 { 0 } else { ends[0] };
            change(folder.path(), |bytes| bytes[begin + 20..ends[hole]].fill(0));
            let kept = if hole == 0 { vec![] } else { vec![(1, "a")] };
            let (mut log, found) = open(folder.path()).unwrap();
            assert_eq!(found, named(&kept));
            append(&mut log, "x", 100, true);
            drop(log);
            let expected = [kept, vec![(hole as u64 + 1, "x")]].concat();
            assert_eq!(groups(folder.path()), named(&expected));
        }
    }

    const MEGABYTE: usize = 1024 * 1024;

    fn files(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    /// Files are used anew, and what they held before is not taken for records.
    #[test]
    fn files_are_used_anew() {
        let folder = TempDir::new().unwrap();
        let (mut log, _) = open(folder.path()).unwrap();
        for number in 1..=100_u64 {
            // The last ten are needed, whatever their mode.
            log.raise_floor(number.saturating_sub(10));
            append(&mut log, &number.to_string(), MEGABYTE, number.is_multiple_of(3));
            if number.is_multiple_of(13) {
                drop(log);
                let (opened, found) = open(folder.path()).unwrap();
                let expected: Vec<_> =
                    (number.saturating_sub(10).max(1)..=number).map(|one| (one, one.to_string())).collect();
                assert_eq!(found, expected);
                log = opened;
            }
        }
        assert!(files(folder.path()).len() <= 4, "{:?}", files(folder.path()));
        assert!(log.live_bytes() < 32 * MEGABYTE as u64, "{} bytes", log.live_bytes());

        log.raise_floor(101);
        log.shrink().unwrap();
        assert_eq!(files(folder.path()).len(), 1);
        assert!(log.live_bytes() < 1000);
        append(&mut log, "after", 1, true);
        drop(log);
        assert_eq!(groups(folder.path()), named(&[(102, "after")]));
    }

    /// A file that is missing, or whose head is damaged, is not passed over.
    #[test]
    fn a_missing_file_is_found() {
        for victim in ["1", "2", "3"] {
            for is_gone in [true, false] {
                let folder = TempDir::new().unwrap();
                let (mut log, _) = open(folder.path()).unwrap();
                for number in 0..20 {
                    append(&mut log, &number.to_string(), MEGABYTE, true);
                }
                drop(log);
                let path = folder.path().join(victim);
                if is_gone {
                    fs::remove_file(path).unwrap();
                } else {
                    let mut bytes = fs::read(&path).unwrap();
                    bytes[40] ^= 1;
                    fs::write(&path, bytes).unwrap();
                }
                // Without its last file the log looks like one that ended before.
                let is_found = victim != "3" || !is_gone;
                assert_eq!(matches!(open(folder.path()), Err(Broken::Damaged(_))), is_found, "{victim}");
            }
        }
    }
}
