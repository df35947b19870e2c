//! Killing under load what a cluster consists of: a node, and the database server.
//!
//! The writers and what they know are those of the `crash` group: after whatever happened, each document is as last
//! acknowledged or as the one unanswered request would have made it; what has expired stays gone; time does not go back.

use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    client::Client,
    crash::{
        DATABASE, KEPT, Tally, create_containers,
        writer::{Writer, verify_list},
    },
    machine,
    postgres::Postgres,
    server::{self, Server},
    shell::{Result, failure, target},
};

const WRITERS: u64 = 4;
const SEED: u64 = 7;

/// How long writers are at work before something is killed.
const WORK: Duration = Duration::from_millis(2500);

/// Two nodes on one server, one of which is killed, twice.
pub fn nodes(programs: &Path) -> Result<String> {
    server::build()?;
    let postgres = Postgres::start(programs, "scale-nodes", &[])?;
    let store = postgres.address();
    let mut load = Load::new();
    let survivor = node(&store, "survivor")?;
    create_containers(survivor.port)?;
    for _ in 0..2 {
        let victim = node(&store, "victim")?;
        let ports = [victim.port, survivor.port];
        load.write(&ports, || victim.kill())?;
        // Everything that either of them acknowledged is seen by the one that is left.
        load.verify(survivor.port)?;
    }
    survivor.stop()?;
    Ok(load.tally())
}

/// A server with a synchronous standby, which takes over when the server is killed.
pub fn failover(programs: &Path) -> Result<String> {
    server::build()?;
    let primary = Postgres::start(programs, "scale-primary", &[])?;
    let standby = primary.standby(programs, "scale-standby")?;
    let mut load = Load::new();
    let store = primary.address_with(&standby);
    let (one, other) = (node(&store, "one")?, node(&store, "other")?);
    create_containers(one.port)?;
    load.write(&[one.port, other.port], || {
        primary.kill()?;
        standby.promote(programs)
    })?;
    load.verify(one.port)?;
    load.verify(other.port)?;
    // And it goes on.
    load.write(&[one.port, other.port], || Ok(()))?;
    load.verify(other.port)?;
    one.stop()?;
    other.stop()?;
    Ok(load.tally())
}

fn node(store: &str, name: &str) -> Result<Server> {
    let data_dir = target().join("scale").join(name);
    Server::start(&["--store".as_ref(), store.as_ref(), "--data-dir".as_ref(), data_dir.as_os_str()])
}

/// Writers, and what must hold of what they wrote.
struct Load {
    writers: Vec<Writer>,
    last_second: AtomicU64,
}

impl Load {
    fn new() -> Self {
        let writers = (0..WRITERS).map(|number| Writer::new(number, SEED)).collect();
        Self { writers, last_second: AtomicU64::new(0) }
    }

    /// Writers at work on nodes by turns, and something that happens meanwhile. A writer whose connection breaks, or that
    /// is told that the store is away, stops.
    fn write(&mut self, ports: &[u16], happen: impl FnOnce() -> Result<()>) -> Result<()> {
        let (begun, over, faults) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(Vec::new()));
        let (begun, over, faults, last_second) = (&begun, &over, &faults, &self.last_second);
        thread::scope(|scope| {
            for (writer, port) in self.writers.iter_mut().zip(ports.iter().cycle()) {
                scope.spawn(move || {
                    let fault = match writer.write_until(*port, last_second, &|| over.load(Ordering::Acquire))
                    {
                        Err(fault) => Some(fault),
                        // Before anything happened nothing may break.
                        Ok(Some(broken)) if !begun.load(Ordering::Acquire) => Some(broken),
                        Ok(_) => None,
                    };
                    if let Ok(mut faults) = faults.lock() {
                        faults.extend(fault);
                    }
                });
            }
            machine::sleep(WORK);
            begun.store(true, Ordering::Release);
            let done = happen();
            over.store(true, Ordering::Release);
            done
        })?;
        let fault = faults.lock().ok().and_then(|mut faults| faults.pop());
        fault.map_or(Ok(()), Err)
    }

    fn verify(&mut self, port: u16) -> Result<()> {
        let mut client = Client::connect(port)?;
        let last = *self.last_second.get_mut();
        let second = client.get(&format!("/dbs/{DATABASE}/colls/{KEPT}"))?.second;
        if second < last {
            return failure(format!("time went back from {last} to {second}"));
        }
        for writer in &mut self.writers {
            writer.verify(&mut client)?;
        }
        verify_list(&mut client, &self.writers)
    }

    fn tally(&self) -> String {
        let mut tally = Tally::default();
        self.writers.iter().for_each(|writer| tally.add(&writer.tally));
        tally.to_string()
    }
}
