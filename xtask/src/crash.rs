//! The `crash` group: SIGKILL at random moments, and nothing that was acknowledged may be lost.
//!
//! ```text
//!   start ─▶ verify what the rounds before left ─▶ writers at work ─▶ SIGKILL ─▶ maybe `mayfly check` ─▶ start …
//! ```
//!
//! Each writer owns its documents and has one request under way at a time, so after a kill it knows of each document
//! what it must be: as last acknowledged, or as the one unanswered request would have made it. Every answer carries the
//! server's second, so whether a document should be there or have expired is exact in both directions.
//!
//! A kill takes the process and not the machine: what the operating system had been given is still there. Durability
//! against a power cut is the business of `fsync` and of the store's own tests.
//!
//! `MAYFLY_CRASH_SECONDS` makes it longer (30), `MAYFLY_CRASH_SEED` repeats a choice of moments and operations.

mod ledger;
mod random;
pub mod writer;

use std::{
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    client::Client,
    machine::{self, Stopwatch},
    server::{self, Server},
    shell::{self, Result, failure, target},
};
pub use ledger::Tally;
use random::Random;
use writer::Writer;

const WRITERS: u64 = 4;

pub const DATABASE: &str = "crash";

/// The containers, and what is special about each.
pub const KEPT: &str = "kept";
pub const BRIEF: &str = "brief";
pub const PAIRS: &str = "pairs";

/// The default of [`BRIEF`], in seconds.
pub const BRIEF_TTL: u64 = 2;

pub fn run() -> Result<String> {
    let seconds = number_of("MAYFLY_CRASH_SECONDS").unwrap_or(30);
    let seed = number_of("MAYFLY_CRASH_SEED").unwrap_or_else(|| machine::unix_time().as_nanos() as u64);
    server::build()?;
    println!("seed {seed}: MAYFLY_CRASH_SEED={seed} repeats this choice of moments and operations");
    let data_dir = target().join("crash");
    if data_dir.exists() {
        std::fs::remove_dir_all(&data_dir)?;
    }
    let mut driver = Driver {
        random: Random::new(seed),
        data_dir: &data_dir,
        writers: (0..WRITERS).map(|number| Writer::new(number, seed)).collect(),
        last_second: AtomicU64::new(0),
    };
    let watch = Stopwatch::start();
    let mut kills = 0;
    while watch.elapsed() < Duration::from_secs(seconds) {
        driver.round(kills == 0)?;
        kills += 1;
    }
    let tally = driver.last_round()?;
    Ok(format!("{kills} kills, {tally}, 0 faults, seed {seed}"))
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

struct Driver<'a> {
    random: Random,
    data_dir: &'a Path,
    writers: Vec<Writer>,
    /// The latest second any answer carried. Time may not go back, whatever happens to the server.
    last_second: AtomicU64,
}

impl Driver<'_> {
    /// Starts on what is there, verifies it, writes, kills.
    fn round(&mut self, first: bool) -> Result<()> {
        let server = self.start()?;
        if first {
            create_containers(server.port)?;
        }
        self.verify(server.port)?;
        let moment = Duration::from_millis(self.random.between(50, 1500));
        self.write_until_killed(server, moment)?;
        // Half of the time the next start does the recovery, half of the time the check.
        if self.random.one_in(2) { self.check() } else { Ok(()) }
    }

    /// Verifies a last time, stops in good order, checks.
    fn last_round(&mut self) -> Result<Tally> {
        let server = self.start()?;
        self.verify(server.port)?;
        server.stop()?;
        self.check()?;
        let mut tally = Tally::default();
        self.writers.iter().for_each(|writer| tally.add(&writer.tally));
        Ok(tally)
    }

    fn start(&self) -> Result<Server> {
        Server::start(&["--data-dir".as_ref(), self.data_dir.as_os_str()])
    }

    fn check(&self) -> Result<()> {
        shell::run(Command::new(server::binary()).arg("check").arg("--data-dir").arg(self.data_dir))
    }

    fn verify(&mut self, port: u16) -> Result<()> {
        let mut client = Client::connect(port)?;
        let last = *self.last_second.get_mut();
        let second = client.get(&format!("/dbs/{DATABASE}/colls/{KEPT}"))?.second;
        if second < last {
            return failure(format!("time went back from {last} to {second} over a restart"));
        }
        for writer in &mut self.writers {
            writer.verify(&mut client)?;
        }
        writer::verify_list(&mut client, &self.writers)
    }

    fn write_until_killed(&mut self, server: Server, moment: Duration) -> Result<()> {
        let (port, killed, faults) = (server.port, AtomicBool::new(false), Mutex::new(Vec::new()));
        let (killed, faults, last_second) = (&killed, &faults, &self.last_second);
        thread::scope(|scope| {
            for writer in &mut self.writers {
                scope.spawn(move || {
                    let ended = writer.write(port, last_second);
                    // A connection that breaks before the kill is a fault of its own.
                    let fault = match ended {
                        Err(fault) => Some(fault),
                        Ok(broken) if !killed.load(Ordering::Acquire) => Some(broken),
                        Ok(_) => None,
                    };
                    if let Ok(mut faults) = faults.lock() {
                        faults.extend(fault);
                    }
                });
            }
            machine::sleep(moment);
            killed.store(true, Ordering::Release);
            server.kill()
        })?;
        let fault = faults.lock().ok().and_then(|mut faults| faults.pop());
        fault.map_or(Ok(()), Err)
    }
}

pub fn create_containers(port: u16) -> Result<()> {
    let mut client = Client::connect(port)?;
    let mut create = |path: &str, body: serde_json::Value| {
        let answer = client.send("POST", path, &[], body.to_string().as_bytes())?;
        if answer.status == 201 { Ok(()) } else { failure(format!("{path}: {}", answer.status)) }
    };
    create("/dbs", json!({ "id": DATABASE }))?;
    let key = json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 });
    let colls = format!("/dbs/{DATABASE}/colls");
    let unique = json!({ "uniqueKeys": [{ "paths": ["/label"] }] });
    create(&colls, json!({ "id": KEPT, "partitionKey": key, "uniqueKeyPolicy": unique }))?;
    create(&colls, json!({ "id": BRIEF, "partitionKey": key, "defaultTtl": BRIEF_TTL }))?;
    create(&colls, json!({ "id": PAIRS, "partitionKey": key }))
}
