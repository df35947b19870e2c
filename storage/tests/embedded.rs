//! The embedded store keeps the contract, survives, groups, and refuses what is not its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use mayfly_storage::{
    Compression, Durability, EmbeddedOptions, EmbeddedStore, Error, conformance,
    store::{
        Advance, Batch, Direction, Expect, Guard, Key, KeyRange, PageLimit, Put, Slot, Space, Store, Urgency,
    },
    upkeep::{DeadRows, Upkeep, Verdict},
};
use tempfile::TempDir;
use tokio::task::JoinSet;

const MODES: [Durability; 3] =
    [Durability::Fsync, Durability::Interval(Duration::from_millis(5)), Durability::None];

fn open(path: &Path) -> EmbeddedStore {
    open_as(path, Durability::Fsync)
}

fn open_as(path: &Path, durability: Durability) -> EmbeddedStore {
    EmbeddedStore::open(path, EmbeddedOptions { durability, ..EmbeddedOptions::default() }).unwrap()
}

fn key(bytes: &str) -> Key {
    Key { space: Space::Large, slot: Slot(0), bytes: bytes.as_bytes().to_vec() }
}

fn put(bytes: &str) -> Batch {
    Batch { puts: vec![Put { key: key(bytes), value: b"value".to_vec(), marks: vec![] }], ..Batch::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conformance() {
    let folder = TempDir::new().unwrap();
    for (round, durability) in MODES.into_iter().enumerate() {
        let count = std::sync::atomic::AtomicUsize::new(0);
        conformance::run_all(|| {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let path = folder.path().join(format!("{round} {number}"));
            async move { Arc::new(open_as(&path, durability)) as Arc<dyn Store> }
        })
        .await;
    }
}

/// The contract also holds where there is no second worker to move work to.
#[tokio::test]
async fn conformance_on_one_thread() {
    let folder = TempDir::new().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    conformance::run_all(|| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(number.to_string());
        async move { Arc::new(open_as(&path, Durability::None)) as Arc<dyn Store> }
    })
    .await;
}

#[tokio::test]
async fn survives_reopening() {
    for durability in MODES {
        let folder = TempDir::new().unwrap();
        conformance::survives_reopening(|| {
            let store = open_as(folder.path(), durability);
            async { Arc::new(store) as Arc<dyn Store> }
        })
        .await;
    }
}

/// Closing writes and syncs what waits.
#[tokio::test]
async fn closing_loses_nothing() {
    let folder = TempDir::new().unwrap();
    for durability in MODES {
        let store = open_as(folder.path(), durability);
        store.commit(Batch { urgency: Urgency::Background, ..put("a") }).await.unwrap();
        store.close().unwrap();
    }
    assert!(open(folder.path()).get(&key("a")).await.unwrap().is_some());
}

/// What a killed process leaves is what the system has at that moment: every acknowledged batch, in every mode.
#[tokio::test]
async fn a_killed_process_loses_nothing() {
    for durability in [Durability::Fsync, Durability::Interval(Duration::from_secs(3600)), Durability::None] {
        let (folder, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let store = open_as(folder.path(), durability);
        for number in 0..100 {
            let urgency = if number % 3 == 0 { Urgency::Background } else { Urgency::Foreground };
            store.commit(Batch { urgency, ..put(&number.to_string()) }).await.unwrap();
        }
        copy_all(folder.path(), copy.path()).unwrap();
        let killed = open(copy.path());
        for number in 0..100 {
            assert!(
                killed.get(&key(&number.to_string())).await.unwrap().is_some(),
                "{number} in {durability:?}"
            );
        }
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy_all(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A flush that ends while a batch is being applied must not make half of it visible. The batches are large, so
/// that there are many flushes and much time for one to end at the wrong moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_stay_whole_during_flushes() {
    const KEYS: u16 = 1000;
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_as(folder.path(), Durability::None));
    let at = |number: u16| Key { bytes: number.to_be_bytes().to_vec(), ..key("") };
    let all = move |version: u64| {
        let value = [&version.to_be_bytes()[..], &[0; 300]].concat();
        let puts =
            (0..KEYS).map(|number| Put { key: at(number), value: value.clone(), marks: vec![] }).collect();
        Batch { puts, ..Batch::default() }
    };
    store.commit(all(0)).await.unwrap();
    let writer = store.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        for version in 1..=400 {
            writer.commit(all(version)).await.unwrap();
        }
    });
    while tasks.try_join_next().is_none() {
        let snapshot = store.snapshot().await.unwrap();
        let values = snapshot.get_many(&[at(0), at(KEYS / 2), at(KEYS - 1)]).await.unwrap();
        assert!(values.windows(2).all(|pair| pair[0] == pair[1]), "half a batch is visible");
        tokio::task::yield_now().await;
    }
}

/// Values that do not compress, the same for the same number.
fn noise(number: u64) -> Vec<u8> {
    let mut state = number + 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..250).flat_map(next).collect()
}

const NOISES: u64 = 10_000;

fn noise_at(space: Space, number: u64) -> Key {
    Key { space, slot: Slot(0), bytes: number.to_be_bytes().to_vec() }
}

/// Some 25 MB of values and their entries, and then only those whose number divides by `keep`.
async fn fill_and_delete(store: &EmbeddedStore, keep: u64) {
    let numbers: Vec<u64> = (0..NOISES).collect();
    for some in numbers.chunks(500) {
        let large = some.iter().map(|number| (noise_at(Space::Large, *number), noise(*number)));
        let small = some.iter().map(|number| (noise_at(Space::Small, *number), vec![1]));
        let puts = large.chain(small).map(|(key, value)| Put { key, value, marks: vec![] }).collect();
        store.commit(Batch { puts, ..Batch::default() }).await.unwrap();
    }
    for some in numbers.chunks(500) {
        let gone = some.iter().filter(|number| !number.is_multiple_of(keep));
        let both = |number: &u64| [Space::Small, Space::Large].map(|space| noise_at(space, *number));
        let deletes = gone.flat_map(both).collect();
        store.commit(Batch { deletes, urgency: Urgency::Background, ..Batch::default() }).await.unwrap();
    }
}

async fn must_hold(store: &EmbeddedStore, keep: u64) {
    for number in 0..NOISES {
        let (small, large) = (noise_at(Space::Small, number), noise_at(Space::Large, number));
        assert_eq!(store.get(&small).await.unwrap().is_some(), number.is_multiple_of(keep), "{number}");
        let expected = number.is_multiple_of(keep).then(|| noise(number).into());
        assert_eq!(store.get(&large).await.unwrap(), expected, "{number}");
    }
}

/// Space comes back: of everything, of everything but one in a thousand, and of a half. What lives stays.
#[tokio::test]
async fn deleted_space_comes_back() {
    for (keep, share) in [(u64::MAX, 20), (1000, 20), (2, 2)] {
        let folder = TempDir::new().unwrap();
        let store = open_as(folder.path(), Durability::None);
        fill_and_delete(&store, keep).await;
        let before = store.stats().disk_bytes;
        store.reclaim().await.unwrap();
        let after = store.stats().disk_bytes;
        assert!(after < before / share, "{after} bytes after {before}, every {keep}th is kept");
        must_hold(&store, keep).await;
        drop(store);
        must_hold(&open(folder.path()), keep).await;
    }
}

/// Rows whose keys begin with `a` and whose values are at most this.
struct Through(u64);

impl DeadRows for Through {
    fn judge(&self, _: Space, key: &[u8], value: &[u8]) -> Verdict {
        let number = value.try_into().map(u64::from_be_bytes);
        match number.is_ok_and(|number| key.starts_with(b"a") && number <= self.0) {
            true => Verdict::Drop,
            false => Verdict::Keep,
        }
    }

    fn may_be_in(&self, _: &KeyRange) -> bool {
        true
    }
}

/// A row that was read, and is kept for the next who reads it, is gone for who was refused because of it; and a value that lies
/// in a file of its own stays, whatever is said about its row.
#[tokio::test]
async fn dead_rows_that_were_read_go_too() {
    let folder = TempDir::new().unwrap();
    let store = open_as(folder.path(), Durability::None);
    for (name, number) in [("a1", 5_u64), ("a2", 6), ("b1", 5)] {
        let put = Put { key: key(name), value: number.to_be_bytes().to_vec(), marks: vec![] };
        store.commit(Batch { puts: vec![put], ..Batch::default() }).await.unwrap();
    }
    let is_there = async |name: &str| store.get(&key(name)).await.unwrap().is_some();
    assert!(is_there("a1").await && is_there("a2").await && is_there("b1").await);
    store.forget(Arc::new(Through(5)));
    store.reclaim().await.unwrap();
    assert_eq!(store.forgotten_bytes(), 8);
    // Who relies on what reads still show is served.
    let guarded = |version| {
        let guard = Guard { key: key("a1"), expect: Expect::Version(version) };
        Batch { guards: vec![guard], ..put("c1") }
    };
    store.commit(guarded(5)).await.unwrap();
    assert!(matches!(store.commit(guarded(6)).await, Err(Error::Conflict { .. })));
    assert!(!is_there("a1").await && is_there("a2").await && is_there("b1").await);
}

const ROWS: u32 = 50_000;

/// So many rows of 240 bytes that do not compress.
async fn store_of_rows(folder: &Path) -> EmbeddedStore {
    let options = EmbeddedOptions {
        compression: Compression::None,
        durability: Durability::None,
        ..EmbeddedOptions::default()
    };
    let store = EmbeddedStore::open(folder, options).unwrap();
    for numbers in (0..ROWS).collect::<Vec<_>>().chunks(500) {
        let row = |number: &u32| Put {
            key: Key { space: Space::Large, slot: Slot(0), bytes: number.to_be_bytes().to_vec() },
            value: number.to_be_bytes().repeat(60),
            marks: vec![],
        };
        let puts = numbers.iter().map(row).collect();
        store.commit(Batch { puts, ..Batch::default() }).await.unwrap();
    }
    store
}

fn range_of_rows(from: u32, to: u32) -> KeyRange {
    KeyRange {
        space: Space::Large,
        slot: Slot(0),
        start: from.to_be_bytes().to_vec(),
        end: Some(to.to_be_bytes().to_vec()),
    }
}

async fn count_rows(store: &EmbeddedStore) -> usize {
    let limit = PageLimit { rows: 100_000, bytes: usize::MAX };
    let snapshot = store.snapshot().await.unwrap();
    snapshot.scan(&range_of_rows(0, ROWS), Direction::Forward, limit).await.unwrap().rows.len()
}

/// Bytes of all tables in the directory, those included that nobody needs any more.
fn table_bytes(folder: &Path) -> u64 {
    let names = names(&folder.join("tree"));
    let tables = names.iter().filter(|path| path.components().any(|part| part.as_os_str() == "tables"));
    tables
        .filter_map(|path| fs::metadata(path).ok())
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

/// Ranges of many rows go with their tables, or with a merge where other rows are in the same tables, and those of few one by
/// one. Their space is back when the discard is done.
#[tokio::test]
async fn discarded_space_comes_back() {
    for (from, to, left) in [(0_u32, ROWS, 0_usize), (0, 30_000, 20_000), (10, 100, 49_910)] {
        let folder = TempDir::new().unwrap();
        let store = store_of_rows(folder.path()).await;
        assert!(!store.discard(&[range_of_rows(from, to)]).await.unwrap());
        assert_eq!(count_rows(&store).await, left);
        let bytes = table_bytes(folder.path());
        assert!(bytes < left as u64 * 280 + 100_000, "{bytes} bytes for {left} rows");
        drop(store);
        let store = open(folder.path());
        assert_eq!(count_rows(&store).await, left);
    }
}

/// A reader from before the discard keeps what it shows. When it has left, an idle store lets go of it.
#[tokio::test]
async fn discarded_space_comes_back_when_readers_have_left() {
    let folder = TempDir::new().unwrap();
    let store = store_of_rows(folder.path()).await;
    let reader = store.snapshot().await.unwrap();
    store.discard(&[range_of_rows(0, ROWS)]).await.unwrap();
    assert_eq!(count_rows(&store).await, 0);
    for _ in 0..5 {
        store.compact_when_idle().await.unwrap();
    }
    assert!(table_bytes(folder.path()) > 1_000_000, "the reader may look at it");
    drop(reader);
    let mut looks = 0;
    // A table for each flush, of one row that nobody can ask for, is left until there are enough for a merge.
    while table_bytes(folder.path()) > 500_000 {
        store.compact_when_idle().await.unwrap();
        looks += 1;
        assert!(looks < 20, "{} bytes after {looks} looks", table_bytes(folder.path()));
    }
    // Then it is at rest.
    for _ in 0..5 {
        store.compact_when_idle().await.unwrap();
    }
    for _ in 0..5 {
        assert!(!store.compact_when_idle().await.unwrap());
    }
}

fn names(path: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| names(&path).into_iter().chain([path])).collect()
}

/// While space is given back, commits and reads go on; and what a killed process leaves at any of several moments is
/// right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reclaiming_disturbs_nobody() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_as(folder.path(), Durability::None));
    fill_and_delete(&store, 10).await;
    let mut reclaims = JoinSet::new();
    let (mut count, mut next_copy) = (0, 8);
    let mut killed = Vec::new();
    // On a busy machine a reclaim may be over before much was committed beside it.
    for _ in 0..50 {
        if count > 10 && !killed.is_empty() {
            break;
        }
        for _ in 0..2 {
            // The second one finds the first at work.
            let store = store.clone();
            reclaims.spawn(async move { store.reclaim().await.unwrap() });
        }
        while !reclaims.is_empty() {
            store.commit(put(&format!("meanwhile {count}"))).await.unwrap();
            count += 1;
            let old = noise_at(Space::Large, 10 * (count % 100));
            assert!(store.get(&old).await.unwrap().is_some());
            if count >= next_copy {
                let copy = TempDir::new().unwrap();
                // A killed process leaves one moment. No file came or went meanwhile, so neither did the copy take more.
                let before = names(folder.path());
                let copied = copy_all(folder.path(), copy.path());
                if copied.is_ok() && names(folder.path()) == before {
                    killed.push((copy, count));
                    next_copy *= 4;
                }
            }
            while reclaims.try_join_next().is_some() {}
        }
    }
    assert!(count > 10, "{count} commits during a reclaim");
    assert!(!killed.is_empty());
    must_hold(&store, 10).await;
    for (copy, count) in killed {
        let store = open(copy.path());
        must_hold(&store, 10).await;
        for number in 0..count {
            assert!(store.get(&key(&format!("meanwhile {number}"))).await.unwrap().is_some(), "{number}");
        }
    }
}

/// A closed store has let go of its directory, and a reclaim that is cut off by it says so.
#[tokio::test]
async fn a_store_can_be_closed_during_a_reclaim() {
    let folder = TempDir::new().unwrap();
    let store = open_as(folder.path(), Durability::None);
    fill_and_delete(&store, u64::MAX).await;
    // Started and not waited for.
    drop(tokio::time::timeout(Duration::from_millis(20), store.reclaim()).await);
    store.close().unwrap();
    let reopened = loop {
        match EmbeddedStore::open(folder.path(), EmbeddedOptions::default()) {
            Ok(store) => break store,
            Err(Error::Unusable(message)) => assert!(message.contains("in use"), "{message}"),
            Err(other) => panic!("{other}"),
        }
        tokio::task::yield_now().await;
    };
    must_hold(&reopened, u64::MAX).await;
}

/// With many writers there are fewer journal writes than commits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_are_grouped() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open(folder.path()));
    let mut writers = JoinSet::new();
    for writer in 0..32 {
        let store = store.clone();
        writers.spawn(async move {
            for round in 0..20 {
                let counter = Key { space: Space::Small, ..key("counter") };
                let batch = Batch {
                    advances: vec![Advance { counter, stamp: 0, tally: [1, 0] }],
                    ..put(&format!("{writer} {round}"))
                };
                store.commit(batch).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let stats = store.stats();
    assert_eq!(stats.commits, 640);
    assert!(stats.groups < 320, "{} groups", stats.groups);
    assert!(stats.disk_bytes > 0 && stats.disk_bytes < 64 * 1024 * 1024, "{} bytes", stats.disk_bytes);
}

/// A steady stream of clients does not keep a background batch from running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn background_does_not_starve() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open_as(folder.path(), Durability::None));
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let store = store.clone();
        clients.spawn(async move {
            loop {
                store.commit(put(&client.to_string())).await.unwrap();
            }
        });
    }
    for round in 0..50 {
        store.commit(Batch { urgency: Urgency::Background, ..put(&format!("b {round}")) }).await.unwrap();
    }
    clients.shutdown().await;
}

#[tokio::test]
async fn a_second_opening_is_refused() {
    let folder = TempDir::new().unwrap();
    let first = open(folder.path());
    assert!(refusal(folder.path()).contains("in use"));
    first.commit(put("a")).await.unwrap();
    // A snapshot keeps the files, and so the directory, after its store is gone.
    let snapshot = first.snapshot().await.unwrap();
    drop(first);
    assert!(refusal(folder.path()).contains("in use"));
    assert!(snapshot.get(&key("a")).await.unwrap().is_some());
    drop(snapshot);
    open(folder.path());
}

/// A name, how to make a directory unusable, and what its refusal says.
type Case = (&'static str, fn(&Path), &'static str);

/// An unusable directory is refused with advice, and is byte for byte what it was.
#[test]
fn unusable_directories_are_left_alone() {
    let cases: [Case; 9] = [
        ("foreign", |path| fs::write(path.join("notes.txt"), "mine").unwrap(), "not one of Mayfly's"),
        ("foreign folder", |path| fs::create_dir(path.join("tree")).unwrap(), "not one of Mayfly's"),
        ("newer", |path| rewrite(path, "MAYFLY 3\n"), "newer version"),
        ("older than any", |path| rewrite(path, "MAYFLY 0\n"), "damaged"),
        ("garbage", |path| rewrite(path, "\u{0}\u{1}nonsense"), "damaged"),
        ("empty version file", |path| rewrite(path, ""), "damaged"),
        ("cut version file", |path| rewrite(path, "MAYFLY 2"), "damaged"),
        ("version file missing", version_file_missing, "not one of Mayfly's"),
        ("tree missing", tree_missing, "damaged"),
    ];
    for (name, prepare, expected) in cases {
        let folder = TempDir::new().unwrap();
        prepare(folder.path());
        let before = contents(folder.path());
        let message = refusal(folder.path());
        assert!(message.contains(expected), "{name}: {message}");
        assert_eq!(contents(folder.path()), before, "{name} is untouched");
    }
}

fn rewrite(path: &Path, version: &str) {
    drop(open(path));
    fs::write(path.join("MAYFLY"), version).unwrap();
}

fn version_file_missing(path: &Path) {
    drop(open(path));
    fs::remove_file(path.join("MAYFLY")).unwrap();
}

fn tree_missing(path: &Path) {
    drop(open(path));
    fs::remove_dir_all(path.join("tree")).unwrap();
}

/// A path that is a file, and damage inside the trees, are refused without a panic.
#[test]
fn damage_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refusal(&file).contains("cannot be"));

    for victim in ["version", "keyspaces/1/current", "keyspaces/0/current"] {
        let path = folder.path().join(victim.replace('/', " "));
        drop(open(&path));
        fs::write(path.join("tree").join(victim), [0xAB; 40]).unwrap();
        let message = refusal(&path);
        assert!(message.contains("damaged") || message.contains("cannot be opened"), "{victim}: {message}");
    }
}

/// Bytes of the log that are not those that were synced are refused, and left as they are.
#[tokio::test]
async fn a_damaged_log_is_refused() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    for number in 0..10 {
        store.commit(put(&number.to_string())).await.unwrap();
    }
    store.close().unwrap();
    let log = folder.path().join("log/1");
    let mut bytes = fs::read(&log).unwrap();
    bytes[100] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let message = refusal(folder.path());
    assert!(message.contains("damaged: its log"), "{message}");
    assert_eq!(fs::read(&log).unwrap(), bytes);
}

/// A directory from before there was a log opens, loses nothing, and what is deleted then stays deleted.
#[tokio::test]
async fn the_former_format_is_brought_up_to_date() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    let small = |name: &str| Key { space: Space::Small, ..key(name) };
    for times_opened in [1, 2] {
        let folder = TempDir::new().unwrap();
        copy_all(&fixture, folder.path()).unwrap();
        for _ in 1..times_opened {
            drop(open(folder.path()));
        }
        let store = open(folder.path());
        assert_eq!(fs::read(folder.path().join("MAYFLY")).unwrap(), b"MAYFLY 2\n");
        assert_eq!(store.get(&small("table")).await.unwrap().as_deref(), Some(&b"small"[..]));
        assert_eq!(store.get(&small("journal")).await.unwrap().as_deref(), Some(&b"small"[..]));
        assert_eq!(store.get(&key("table")).await.unwrap().as_deref(), Some(&[7; 2000][..]));
        assert_eq!(store.get(&key("journal")).await.unwrap().as_deref(), Some(&[8; 2000][..]));
        assert!(store.get(&small("gone")).await.unwrap().is_none());
        let advance = Advance { counter: small("counter"), stamp: 5, tally: [0, 0] };
        let advanced = store.commit(Batch { advances: vec![advance], ..Batch::default() }).await.unwrap();
        assert_eq!((advanced.counters[0].seq, advanced.counters[0].tally), (2, [1, 2]));

        let all = ["table", "journal", "counter"];
        let deletes = all.iter().flat_map(|name| [small(name), key(name)]).collect();
        store.commit(Batch { deletes, ..Batch::default() }).await.unwrap();
        store.reclaim().await.unwrap();
        store.close().unwrap();
        let store = open(folder.path());
        for name in all {
            assert!(store.get(&small(name)).await.unwrap().is_none(), "{name}");
            assert!(store.get(&key(name)).await.unwrap().is_none(), "{name}");
        }
    }
}

/// A directory from when values of a kilobyte lay in files of their own, as a killed process left it: it opens, loses
/// nothing, and what is written anew lies in blocks.
#[tokio::test]
async fn a_former_layout_is_renewed_as_it_is_rewritten() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-2");
    let folder = TempDir::new().unwrap();
    copy_all(&fixture, folder.path()).unwrap();
    let small = |name: &str| Key { space: Space::Small, ..key(name) };
    let row = |number: u8| key(&format!("row {number:03}"));
    let separate = || contents(&folder.path().join("tree/keyspaces/2/blobs")).len();
    for compression in [Compression::Lz4, Compression::None, Compression::Lz4] {
        let options = EmbeddedOptions { compression, ..EmbeddedOptions::default() };
        let store = EmbeddedStore::open(folder.path(), options).unwrap();
        for (name, value) in [("table", vec![7; 2000]), ("log", vec![8; 2000]), ("vast", vec![5; 20_000])] {
            assert_eq!(store.get(&key(name)).await.unwrap().as_deref(), Some(&value[..]), "{name}");
        }
        assert_eq!(store.get(&key("replaced")).await.unwrap().as_deref(), Some(&[9; 1500][..]));
        for name in ["table", "log"] {
            assert_eq!(store.get(&small(name)).await.unwrap().as_deref(), Some(&b"small"[..]), "{name}");
        }
        assert!(store.get(&small("gone")).await.unwrap().is_none());
        for number in 0..30 {
            assert_eq!(store.get(&row(number)).await.unwrap().as_deref(), Some(&[number; 1200][..]));
        }
        store.reclaim().await.unwrap();
        store.close().unwrap();
    }
    assert_eq!(separate(), 1, "what is not written anew stays where it is");

    let store = open(folder.path());
    let puts = (0..30).map(|number| Put { key: row(number), value: vec![number; 1200], marks: vec![] });
    let others = [
        ("table", vec![7; 2000]),
        ("log", vec![8; 2000]),
        ("replaced", vec![9; 1500]),
        ("vast", vec![5; 7000]),
    ];
    let others = others.map(|(name, value)| Put { key: key(name), value, marks: vec![] });
    store.commit(Batch { puts: puts.chain(others).collect(), ..Batch::default() }).await.unwrap();
    // The first merge finds out that nobody refers to the file any more; the next one lets it go.
    for _ in 0..2 {
        store.reclaim().await.unwrap();
    }
    assert_eq!(separate(), 0, "all values lie in blocks");
    assert_eq!(store.get(&row(29)).await.unwrap().as_deref(), Some(&[29; 1200][..]));
    assert_eq!(store.get(&key("vast")).await.unwrap().as_deref(), Some(&[5; 7000][..]));
}

/// The library once forgot what a snapshot sees beside one of an empty store, depending on their numbers.
#[tokio::test]
async fn snapshots_are_kept_beside_one_of_an_empty_store() {
    let all = KeyRange::prefix(Space::Large, Slot(0), b"key".to_vec());
    let limit = PageLimit { rows: 10, bytes: usize::MAX };
    for before in 1..=12_u8 {
        let folder = TempDir::new().unwrap();
        let store = open_as(folder.path(), Durability::None);
        let _empty = store.snapshot().await.unwrap();
        let write = async |value: u8| {
            let value = Put { key: key("key"), value: vec![value], marks: vec![] };
            store.commit(Batch { puts: vec![value], ..Batch::default() }).await.unwrap();
        };
        for value in 1..=before {
            write(value).await;
        }
        let snapshot = store.snapshot().await.unwrap();
        for _ in 0..2 {
            write(0).await;
            store.reclaim().await.unwrap();
        }
        let page = snapshot.scan(&all, Direction::Reverse, limit).await.unwrap();
        assert_eq!(page.rows[0].1[..], [before]);
    }
}

/// A tree that is hardly written to does not keep the log from being let go.
#[tokio::test]
async fn the_log_stays_short() {
    let folder = TempDir::new().unwrap();
    let store = open_as(folder.path(), Durability::None);
    let small = Key { space: Space::Small, ..key("once") };
    let once = Put { key: small.clone(), value: vec![1], marks: vec![] };
    store.commit(Batch { puts: vec![once], ..Batch::default() }).await.unwrap();
    for round in 0..200_u64 {
        let at = |number: u64| noise_at(Space::Large, number);
        let value = |number: u64| noise(number).repeat(2);
        let puts =
            (0..200).map(|number| Put { key: at(number), value: value(round + number), marks: vec![] });
        store.commit(Batch { puts: puts.collect(), ..Batch::default() }).await.unwrap();
    }
    let log = folder.path().join("log");
    let bytes: u64 = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 120 * 1024 * 1024, "{bytes} bytes");
    let copy = TempDir::new().unwrap();
    store.close().unwrap();
    copy_all(folder.path(), copy.path()).unwrap();
    let store = open(copy.path());
    assert!(store.get(&small).await.unwrap().is_some());
    for number in 0..200 {
        let value = store.get(&noise_at(Space::Large, number)).await.unwrap();
        assert_eq!(value.as_deref(), Some(&noise(199 + number).repeat(2)[..]), "{number}");
    }
}

/// A first start that was cut short is finished or begun again by the next.
#[tokio::test]
async fn creation_can_be_interrupted_anywhere() {
    let cases: [fn(&Path); 3] = [
        |path| {
            fs::create_dir_all(path.join("tree.new/keyspaces")).unwrap();
            fs::write(path.join("tree.new/0.jnl"), "").unwrap();
            fs::write(path.join("lock"), "").unwrap();
        },
        |path| {
            version_file_missing(path);
            // Made after the file that was not written.
            fs::remove_dir_all(path.join("log")).unwrap();
            fs::rename(path.join("tree"), path.join("tree.new")).unwrap();
            fs::write(path.join("MAYFLY.new"), "MAY").unwrap();
        },
        |path| {
            drop(open(path));
            fs::rename(path.join("tree"), path.join("tree.new")).unwrap();
        },
    ];
    for interrupt in cases {
        let folder = TempDir::new().unwrap();
        interrupt(folder.path());
        let store = open(folder.path());
        store.commit(put("a")).await.unwrap();
        drop(store);
        assert!(open(folder.path()).get(&key("a")).await.unwrap().is_some());
    }
}

fn refusal(path: &Path) -> String {
    match EmbeddedStore::open(path, EmbeddedOptions::default()) {
        Err(Error::Unusable(message)) => message,
        Err(other) => panic!("refused as {other:?}"),
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

/// Every file under `path` with its bytes, and every folder.
fn contents(path: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        let name = entry.display().to_string();
        if entry.is_dir() {
            found.insert(name, None);
            found.extend(contents(&entry));
        } else {
            found.insert(name, Some(fs::read(&entry).unwrap()));
        }
    }
    found
}
