//! Documents that live for a moment, written without a pause: whether purge keeps up, and what that costs.
//!
//! ```text
//! cargo xtask bench churn
//! cargo xtask bench churn --seconds 600
//! cargo xtask bench churn --protocol rest --rule own --before BINARY
//! cargo xtask bench churn --rule date --mongod /usr/bin/mongod
//! ```
//!
//! Each server runs once with time to live and once without, each time with nothing in it at first. A reader reads
//! living documents of another collection: first alone, then beside the writers. What is printed is one page; `--raw`
//! writes down every second. Lag is found from outside: documents go in the order in which they came.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    fs::File,
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bson::doc;
use clap::Parser;
use mayfly_bench::{
    bulk::{self, Expiry, Maker, Text},
    churn::{Ledger, Told},
    documents,
    http::Connection,
    latency::{Latencies, Summary},
    median,
    mongo::{Client, number},
    rest::{
        Operation, load,
        requests::{DOCUMENTS, Requests, Signer},
    },
    subject::{Kind, Store, Subject},
};
use mayfly_engine::{Clock as _, SystemClock};
use serde_json::json;

#[derive(Parser)]
struct Options {
    /// How long writers write; the goals are about 600
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Writers, each with a connection
    #[arg(long, default_value_t = 2)]
    writers: usize,
    /// Documents written at a time; over REST in transactional batches of 100
    #[arg(long, default_value_t = 500)]
    batch: usize,
    /// How long a document lives, in seconds
    #[arg(long, default_value_t = 5)]
    life: i32,
    /// Bytes of the text in a document
    #[arg(long, default_value_t = 100)]
    text: usize,
    /// How documents come and are read
    #[arg(long, value_enum, default_value = "mongo")]
    protocol: Protocol,
    /// What makes them expire
    #[arg(long, value_enum, default_value = "ts")]
    rule: Rule,
    /// Where Mayfly keeps them
    #[arg(long, value_enum, default_value = "embedded")]
    store: Store,
    /// How often everything is done; medians are shown
    #[arg(long, default_value_t = 1)]
    turns: usize,
    /// How long the reader reads alone
    #[arg(long, default_value_t = 5)]
    alone: u64,
    /// How long to wait at most, once the writers have left, until what they wrote is gone
    #[arg(long, default_value_t = 120)]
    settle: u64,
    /// Leave out the runs without time to live
    #[arg(long)]
    no_control: bool,
    /// Leave out Mayfly, to see the peer alone
    #[arg(long)]
    peer_only: bool,
    /// A file for a line of JSON every second
    #[arg(long)]
    raw: Option<PathBuf>,
    /// A MongoDB server binary to compare with; it knows `--rule date` only
    #[arg(long, env = "MAYFLY_BENCH_MONGOD")]
    mongod: Option<PathBuf>,
    /// The port that one listens on
    #[arg(long, default_value_t = 27_317)]
    port: u16,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
    /// A binary of another version, which takes turns too
    #[arg(long)]
    before: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    Mongo,
    Rest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Rule {
    /// The container's default: a TTL index on `_ts`
    Ts,
    /// A `ttl` in each document
    Own,
    /// A TTL index on a date in each document
    Date,
}

/// What documents are inserted into; the reader has another.
const CHURNED: &str = "churned";
const READ: &str = "kept";
/// The most operations that a transactional batch may have.
const REST_BATCH: usize = 100;
/// How often the count of what came is noted, and how often the server is looked at.
const NOTE_EVERY: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Between two reads, so that the reader is no load by itself.
const READ_PAUSE: Duration = Duration::from_millis(1);
/// What the disk may hold beyond three times what lives; within a part of it, it counts as back.
const DISK_ALLOWANCE: u64 = 300_000_000;
const DISK_BACK: u64 = 64_000_000;

fn main() -> io::Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let mut kinds = Vec::new();
    if !options.peer_only {
        let mayfly = |name, binary| Kind::Mayfly { name, binary, store: options.store, flags: Vec::new() };
        kinds.push(mayfly("Mayfly", options.mayfly.clone().unwrap_or(beside)));
        kinds.extend(options.before.clone().map(|binary| mayfly("Mayfly before", binary)));
    }
    let peer_can = options.rule == Rule::Date && options.protocol == Protocol::Mongo;
    if let Some(binary) = options.mongod.clone().filter(|_| peer_can) {
        kinds.push(Kind::MongoDb { binary, port: options.port });
    }
    if options.rule == Rule::Date && options.protocol == Protocol::Rest {
        return Err(io::Error::other("a TTL index on a date is made over MongoDB's protocol"));
    }
    let mut raw = options.raw.as_ref().map(File::create).transpose()?;
    let mut runs: Vec<Both> = kinds.iter().map(|_| Both::default()).collect();
    for turn in 0..options.turns {
        // Who comes first changes: the machine has moods.
        let mut order: Vec<_> = (0..kinds.len()).collect();
        order.rotate_left(turn % kinds.len().max(1));
        for which in order {
            let modes = if turn % 2 == 0 { [false, true] } else { [true, false] };
            for expires in modes {
                if !expires && options.no_control {
                    continue;
                }
                let run = run(&kinds[which], expires, &options, raw.as_mut())?;
                if expires { &mut runs[which].with } else { &mut runs[which].without }.push(run);
            }
        }
    }
    page(&kinds, &runs, &options);
    Ok(())
}

/// The runs of one server.
#[derive(Default)]
struct Both {
    with: Vec<Run>,
    without: Vec<Run>,
}

/// What one run showed.
struct Run {
    rate: f64,
    cpu_us: f64,
    alone: Summary,
    beside: Summary,
    samples: Vec<Sample>,
    document_bytes: u64,
    after: After,
}

/// One second.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: f64,
    inserted: u64,
    living: u64,
    told: Told,
    age: f64,
    lag: f64,
    disk: u64,
    /// Of the server below, beside the disk.
    journal: u64,
    resident: u64,
    cpu: f64,
}

/// Seconds after the writers left; `None` if it did not come to that.
#[derive(Clone, Copy, Debug, Default)]
struct After {
    empty: Option<f64>,
    disk_back: Option<f64>,
    disk: u64,
}

/// What the threads of a run have in common.
struct Stage {
    start: Instant,
    inserted: AtomicU64,
    is_over: AtomicBool,
    ledger: Mutex<Ledger>,
}

fn run(kind: &Kind, expires: bool, options: &Options, raw: Option<&mut File>) -> io::Result<Run> {
    let subject = kind.start()?;
    let life = f64::from(options.life);
    let expiry = match (options.rule, expires) {
        // A date is there either way: it is the index that makes the difference.
        (Rule::Date, _) => Expiry::Date,
        (Rule::Own, true) => Expiry::Ttl(options.life),
        _ => Expiry::None,
    };
    let maker = Maker::new(Text::Words, options.text, expiry);
    prepare(&subject, expires, options)?;
    let before = settled(&subject)?;
    let disk_before = subject.disk_bytes();
    let alone = {
        let end = Instant::now() + Duration::from_secs(options.alone);
        read(&subject, options.protocol, || Instant::now() < end)?
    };
    let stage = Stage {
        start: Instant::now(),
        inserted: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        ledger: Mutex::default(),
    };
    let cpu_before = subject.cpu_seconds();
    let (beside, mut samples, elapsed, cpu) = thread::scope(|scope| {
        let (stage, maker, subject) = (&stage, &maker, &subject);
        let writers: Vec<_> = (0..options.writers)
            .map(|writer| scope.spawn(move || write(subject, maker, writer as u64, stage, options)))
            .collect();
        let noting = scope.spawn(move || {
            while !stage.is_over.load(Relaxed) {
                stage.note();
                thread::sleep(NOTE_EVERY);
            }
        });
        let reader = scope.spawn(move || read(subject, options.protocol, || !stage.is_over.load(Relaxed)));
        let mut samples = Vec::new();
        let time = Duration::from_secs(options.seconds);
        while stage.start.elapsed() < time {
            thread::sleep(LOOK_EVERY.min(time.saturating_sub(stage.start.elapsed())));
            samples.push(stage.sample(subject, before, life)?);
        }
        stage.is_over.store(true, Relaxed);
        let elapsed = stage.start.elapsed().as_secs_f64();
        for writer in writers {
            writer.join().expect("a writer does not panic")?;
        }
        let cpu = subject.cpu_seconds() - cpu_before;
        noting.join().expect("noting does not panic");
        Ok::<_, io::Error>((reader.join().expect("a reader does not panic")?, samples, elapsed, cpu))
    })?;
    stage.note();
    let inserted = stage.inserted.load(Relaxed) as f64;
    let after = match expires {
        true => clear(&subject, &stage, before, disk_before, options, &mut samples)?,
        false => After::default(),
    };
    if let Some(raw) = raw {
        for sample in &samples {
            writeln!(raw, "{}", line(kind, expires, sample, maker.document_bytes()))?;
        }
    }
    Ok(Run {
        rate: inserted / elapsed,
        cpu_us: cpu * 1e6 / inserted,
        alone,
        beside,
        samples,
        document_bytes: maker.document_bytes() as u64,
        after,
    })
}

impl Stage {
    fn note(&self) {
        let mut ledger = self.ledger.lock().expect("nobody panics with it");
        ledger.note(self.start.elapsed().as_secs_f64(), self.inserted.load(Relaxed));
    }

    fn sample(&self, subject: &Subject, before: Told, life: f64) -> io::Result<Sample> {
        let mut told = told(subject)?;
        told.ever = told.ever.saturating_sub(before.ever);
        told.purged = told.purged.saturating_sub(before.purged);
        let at = self.start.elapsed().as_secs_f64();
        let inserted = self.inserted.load(Relaxed);
        let ledger = self.ledger.lock().expect("nobody panics with it");
        let living = inserted - ledger.inserted_by(at - life);
        // MongoDB does not tell what has expired and is still there.
        if subject.http_port().is_none() {
            told.backlog = (inserted - living).saturating_sub(told.purged);
        }
        let is_behind = told.ever < inserted && subject.http_port().is_some();
        let age = is_behind.then(|| ledger.when(told.ever + 1)).flatten().map_or(0.0, |then| at - then);
        let lag = ledger.lag_seconds(told.purged, life, at);
        drop(ledger);
        let (disk, resident, cpu) = (subject.disk_bytes(), subject.resident_bytes(), subject.cpu_seconds());
        let journal = subject.journal_bytes();
        Ok(Sample { at, inserted, living, told, age, lag, disk, journal, resident, cpu })
    }
}

/// What the server tells of its documents.
fn told(subject: &Subject) -> io::Result<Told> {
    match subject.http_port() {
        Some(port) => Told::by_metrics(port),
        None => {
            let status = subject.client()?.run(&doc! { "serverStatus": 1, "$db": "admin" });
            let ttl = status.get_document("metrics").and_then(|metrics| metrics.get_document("ttl"));
            let purged = ttl.map_or(0, |ttl| number(ttl.get("deletedDocuments")));
            Ok(Told { purged, ..Told::default() })
        }
    }
}

/// What it tells once it has noticed all that was prepared.
fn settled(subject: &Subject) -> io::Result<Told> {
    let start = Instant::now();
    loop {
        let now = told(subject)?;
        let is_known = subject.http_port().is_none() || now.ever >= DOCUMENTS as u64;
        if is_known || start.elapsed() > Duration::from_secs(30) {
            return Ok(now);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Makes both collections and what is read.
fn prepare(subject: &Subject, expires: bool, options: &Options) -> io::Result<()> {
    if options.protocol == Protocol::Rest {
        let port = subject.http_port().ok_or_else(|| io::Error::other("MongoDB does not speak REST"))?;
        load::prepare(port, &Requests::new(Operation::Create))?;
        let ttl = match (options.rule, expires) {
            (Rule::Ts, true) => format!(r#","defaultTtl":{}"#, options.life),
            (Rule::Own, true) => r#","defaultTtl":-1"#.to_owned(),
            _ => String::new(),
        };
        let body = format!(
            r#"{{"id":"{CHURNED}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{ttl}}}"#
        );
        let signer = Signer::at(SystemClock.now());
        let request = signer.request("POST", "colls", "dbs/bench", "/dbs/bench/colls", "", &body);
        return match alone()?.block_on(Connection::new(port).exchange(&request))? {
            201 => Ok(()),
            status => Err(io::Error::other(format!("the collection is answered with {status}"))),
        };
    }
    let mut client = subject.client()?;
    for first in (0..DOCUMENTS).step_by(1000) {
        let one = |n| doc! { "_id": documents::id_text(n), "text": "x".repeat(1000) };
        let some: Vec<_> = (first..first + 1000).map(one).collect();
        client.run(&doc! { "insert": READ, "documents": some, "$db": "bench" });
    }
    let (field, seconds) = match options.rule {
        Rule::Ts => ("_ts", options.life),
        Rule::Own => ("_ts", -1),
        Rule::Date => ("at", options.life),
    };
    if expires {
        let index = doc! { "key": { field: 1 }, "name": field, "expireAfterSeconds": seconds };
        client.run(&doc! { "createIndexes": CHURNED, "indexes": [index], "$db": "bench" });
        if subject.http_port().is_none() {
            client.run(&doc! { "setParameter": 1, "ttlMonitorEnabled": true, "$db": "admin" });
        }
    } else if options.rule == Rule::Date {
        let index = doc! { "key": { field: 1 }, "name": field };
        client.run(&doc! { "createIndexes": CHURNED, "indexes": [index], "$db": "bench" });
    } else {
        client.run(&doc! { "create": CHURNED, "$db": "bench" });
    }
    Ok(())
}

fn alone() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Writes until it is over.
fn write(subject: &Subject, maker: &Maker, writer: u64, stage: &Stage, options: &Options) -> io::Result<()> {
    let mut next = writer << 40;
    match options.protocol {
        Protocol::Mongo => {
            let (mut client, mut batch) = (subject.client()?, Vec::new());
            while !stage.is_over.load(Relaxed) {
                batch.clear();
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
                for n in next..next + options.batch as u64 {
                    maker.push(n, now as i64, &mut batch);
                }
                client.insert(CHURNED, &batch);
                stage.inserted.fetch_add(options.batch as u64, Relaxed);
                next += options.batch as u64;
            }
            Ok(())
        }
        Protocol::Rest => {
            let port = subject.http_port().ok_or_else(|| io::Error::other("MongoDB does not speak REST"))?;
            let (runtime, mut connection) = (alone()?, Connection::new(port));
            while !stage.is_over.load(Relaxed) {
                let count = options.batch.min(REST_BATCH) as u64;
                let request = batch_request(maker, next..next + count);
                let status = runtime.block_on(connection.exchange(&request))?;
                if status != 200 {
                    let answer = String::from_utf8_lossy(connection.answer());
                    return Err(io::Error::other(format!("a batch is answered with\n{answer}")));
                }
                stage.inserted.fetch_add(count, Relaxed);
                next += count;
            }
            Ok(())
        }
    }
}

/// A transactional batch of one logical partition.
fn batch_request(maker: &Maker, range: std::ops::Range<u64>) -> Vec<u8> {
    let partition = bulk::partition(range.start / REST_BATCH as u64);
    let steps: Vec<_> = range
        .map(|n| format!(r#"{{"operationType":"Create","resourceBody":{}}}"#, maker.json(n, &partition)))
        .collect();
    let headers = format!(
        "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n\
         x-ms-documentdb-partitionkey: [\"{partition}\"]\r\n"
    );
    let owner = format!("dbs/bench/colls/{CHURNED}");
    let body = format!("[{}]", steps.join(","));
    Signer::at(SystemClock.now()).request("POST", "docs", &owner, &format!("/{owner}/docs"), &headers, &body)
}

/// Reads living documents, each after a pause.
fn read(subject: &Subject, protocol: Protocol, go_on: impl Fn() -> bool) -> io::Result<Summary> {
    let (start, mut latencies) = (Instant::now(), Latencies::default());
    match protocol {
        Protocol::Mongo => {
            let mut client: Client = subject.client()?;
            while go_on() {
                let id = documents::id_text(latencies.len() * 1009 % DOCUMENTS);
                let find = doc! { "find": READ, "filter": { "_id": id }, "limit": 1, "singleBatch": true, "$db": "bench" };
                let begun = Instant::now();
                client.run(&find);
                latencies.push(begun.elapsed());
                thread::sleep(READ_PAUSE);
            }
        }
        Protocol::Rest => {
            let port = subject.http_port().ok_or_else(|| io::Error::other("MongoDB does not speak REST"))?;
            let (runtime, mut connection) = (alone()?, Connection::new(port));
            let (mut requests, mut made) = (Requests::new(Operation::Read), Instant::now());
            let mut request = Vec::new();
            while go_on() {
                // A signature holds for a quarter of an hour.
                if made.elapsed() > Duration::from_secs(300) {
                    (requests, made) = (Requests::new(Operation::Read), Instant::now());
                }
                requests.make(0, latencies.len(), &mut request);
                let begun = Instant::now();
                let status = runtime.block_on(connection.exchange(&request))?;
                latencies.push(begun.elapsed());
                if status != 200 {
                    return Err(io::Error::other(format!("a read is answered with {status}")));
                }
                thread::sleep(READ_PAUSE);
            }
        }
    }
    Ok(latencies.summary(start.elapsed()))
}

/// Waits until what the writers left is gone, as far as it goes.
fn clear(
    subject: &Subject,
    stage: &Stage,
    before: Told,
    disk_before: u64,
    options: &Options,
    samples: &mut Vec<Sample>,
) -> io::Result<After> {
    let (start, mut after) = (Instant::now(), After::default());
    let inserted = stage.inserted.load(Relaxed);
    while start.elapsed().as_secs() < options.settle && (after.empty.is_none() || after.disk_back.is_none()) {
        thread::sleep(LOOK_EVERY);
        let sample = stage.sample(subject, before, f64::from(options.life))?;
        let seconds = Some(start.elapsed().as_secs_f64());
        after.disk = sample.disk;
        after.empty = after.empty.or(seconds.filter(|_| sample.told.purged >= inserted));
        let is_back = sample.disk <= disk_before + DISK_BACK && after.empty.is_some();
        after.disk_back = after.disk_back.or(seconds.filter(|_| is_back));
        samples.push(sample);
    }
    Ok(after)
}

/// A second as it goes into the raw file.
fn line(kind: &Kind, expires: bool, sample: &Sample, document_bytes: usize) -> serde_json::Value {
    json!({
        "server": kind.name(), "expires": expires, "at": sample.at, "inserted": sample.inserted, "living": sample.living,
        "livingBytes": sample.living * document_bytes as u64, "ever": sample.told.ever, "purged": sample.told.purged,
        "backlog": sample.told.backlog, "lagTold": sample.told.lag_seconds, "lag": sample.lag, "metricsAge": sample.age,
        "diskBytes": sample.disk, "journalBytes": sample.journal, "residentBytes": sample.resident, "cpuSeconds": sample.cpu,
    })
}

impl Run {
    fn most(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        self.samples.iter().map(figure).fold(0.0, f64::max)
    }

    /// How much of what is allowed the disk takes at most.
    fn disk_share(&self) -> f64 {
        let allowed = |sample: &Sample| (3 * sample.living * self.document_bytes + DISK_ALLOWANCE) as f64;
        self.most(|sample| sample.disk as f64 / allowed(sample))
    }

    /// Of the documents that expired while writers wrote, how many were removed meanwhile.
    fn removed_share(&self, seconds: u64) -> f64 {
        let last = self.samples.iter().rfind(|sample| sample.at <= seconds as f64 + 1.0);
        last.map_or(f64::NAN, |last| last.told.purged as f64 / (last.inserted - last.living).max(1) as f64)
    }
}

/// What is printed.
fn page(kinds: &[Kind], runs: &[Both], options: &Options) {
    let size = runs.iter().flat_map(|both| &both.with).map(|run| run.document_bytes).next().unwrap_or(0);
    let (protocol, batch) = match options.protocol {
        Protocol::Mongo => ("MongoDB's protocol", options.batch),
        Protocol::Rest => ("REST", options.batch.min(REST_BATCH)),
    };
    println!(
        "churn: {} writers over {protocol}, {batch} documents of {size} bytes at a time, {} s, lives of {} s by {:?}, {:?}; \
         median of {}\n",
        options.writers, options.seconds, options.life, options.rule, options.store, options.turns
    );
    let names: Vec<_> = kinds.iter().map(Kind::name).collect();
    println!("| | goal | {} |", names.join(" | "));
    println!("|---|---|{}", "---|".repeat(names.len()));
    let row = |name: &str, goal: &str, figure: &dyn Fn(&Both) -> String| {
        // Without a control there is nothing to take a median of.
        let cells = runs.iter().map(figure).map(|cell| cell.replace("NaN", "not run"));
        println!("| {name} | {goal} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    type Figure = fn(&Run) -> f64;
    let of = |runs: &[Run], figure: &dyn Fn(&Run) -> f64| median(runs.iter().map(figure).collect());
    let ms = |of: Duration| of.as_secs_f64() * 1000.0;
    let rate: Figure = |run| run.rate;
    row("documents/s without TTL", "", &|both| format!("{:.0}", of(&both.without, &rate)));
    row("documents/s with TTL", "", &|both| format!("{:.0}", of(&both.with, &rate)));
    row("of the rate without", "0.8", &|both| {
        format!("{:.2}", of(&both.with, &rate) / of(&both.without, &rate))
    });
    let cpu: Figure = |run| run.cpu_us;
    row("CPU per document without, with", "", &|both| {
        format!("{:.1}, {:.1} µs", of(&both.without, &cpu), of(&both.with, &cpu))
    });
    row("removed meanwhile, of what expired", "", &|both| {
        format!("{:.2}", of(&both.with, &|run| run.removed_share(options.seconds)))
    });
    row("backlog at most", "", &|both| {
        format!("{:.0}", of(&both.with, &|run| run.most(|sample| sample.told.backlog as f64)))
    });
    row("lag at most, found from outside", "30 s", &|both| {
        format!("{:.1} s", of(&both.with, &|run| run.most(|sample| sample.lag)))
    });
    row("lag at most, as told", "30 s", &|both| {
        format!("{:.0} s", of(&both.with, &|run| run.most(|sample| sample.told.lag_seconds as f64)))
    });
    row("age of the metrics at most without, with", "2 s", &|both| {
        let age = |runs: &[Run]| of(runs, &|run| run.most(|sample| sample.age));
        format!("{:.1}, {:.1} s", age(&both.without), age(&both.with))
    });
    row("disk at most", "", &|both| {
        format!("{:.0} MB", of(&both.with, &|run| run.most(|sample| sample.disk as f64)) / 1e6)
    });
    row("of 3 × living + 300 MB", "1", &|both| format!("{:.2}", of(&both.with, &Run::disk_share)));
    if options.store == Store::Postgres {
        row("PostgreSQL's journal at most, not in these", "", &|both| {
            format!("{:.0} MB", of(&both.with, &|run| run.most(|sample| sample.journal as f64)) / 1e6)
        });
    }
    row("memory at most without, with", "", &|both| {
        let memory = |runs: &[Run]| of(runs, &|run| run.most(|sample| sample.resident as f64)) / 1e6;
        format!("{:.0}, {:.0} MB", memory(&both.without), memory(&both.with))
    });
    for (name, figure) in [
        ("reader alone: p50, p99", &|both: &Both| both.with.iter().map(|run| run.alone).collect()),
        ("beside writers without TTL", &|both: &Both| both.without.iter().map(|run| run.beside).collect()),
        ("beside writers with TTL", &|both: &Both| both.with.iter().map(|run| run.beside).collect()),
    ] as [(&str, &dyn Fn(&Both) -> Vec<Summary>); 3]
    {
        row(name, "", &|both| {
            let all = figure(both);
            let of = |part: fn(&Summary) -> Duration| {
                median(all.iter().map(|summary| ms(part(summary))).collect())
            };
            format!("{:.2}, {:.2} ms", of(|summary| summary.p50), of(|summary| summary.p99))
        });
    }
    row("p99 of its p99 without TTL", "1.5", &|both| {
        let p99 = |runs: &[Run]| of(runs, &|run| ms(run.beside.p99));
        format!("{:.2}", p99(&both.with) / p99(&both.without))
    });
    row("p99 of its p99 alone", "", &|both| {
        format!("{:.1}", of(&both.with, &|run| ms(run.beside.p99) / ms(run.alone.p99)))
    });
    let or_never = |seconds: Option<f64>| seconds.map_or(f64::INFINITY, |seconds| seconds);
    row("writers left: all is removed after", "", &|both| {
        format!("{:.0} s", of(&both.with, &|run| or_never(run.after.empty)))
    });
    row("writers left: disk is back after", "", &|both| {
        let disk = of(&both.with, &|run| run.after.disk as f64) / 1e6;
        format!("{:.0} s ({disk:.0} MB)", of(&both.with, &|run| or_never(run.after.disk_back)))
    });
}
