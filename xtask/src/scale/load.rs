//! Writers at work on nodes, and what must hold of what they wrote.
//!
//! The writers and what they know are those of the `crash` group: after whatever happened, each document is as last
//! acknowledged or as the one unanswered request would have made it; what has expired stays gone; time does not go back.

use std::{
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
        DATABASE, KEPT, Tally,
        writer::{Writer, verify_list},
    },
    machine,
    shell::{Result, failure},
};

const WRITERS: u64 = 4;
const SEED: u64 = 7;

/// How long writers are at work before something happens.
const WORK: Duration = Duration::from_millis(2500);

/// What writers may meet while something happens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// Connections that break and stores that are away.
    Breaks,
    /// Nothing: every request is answered.
    Holds,
}

/// Writers, and what must hold of what they wrote.
pub struct Load {
    writers: Vec<Writer>,
    last_second: AtomicU64,
}

impl Load {
    pub fn new() -> Self {
        let writers = (0..WRITERS).map(|number| Writer::new(number, SEED)).collect();
        Self { writers, last_second: AtomicU64::new(0) }
    }

    /// Writers at work on nodes by turns, and something that happens meanwhile. A writer whose connection breaks, or that
    /// is told that the store is away, stops; unless nothing may break.
    pub fn write(
        &mut self,
        ports: &[u16],
        meanwhile: Meanwhile,
        happen: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (begun, over, faults) = (AtomicBool::new(false), AtomicBool::new(false), Mutex::new(Vec::new()));
        let (begun, over, faults, last_second) = (&begun, &over, &faults, &self.last_second);
        thread::scope(|scope| {
            for (writer, port) in self.writers.iter_mut().zip(ports.iter().cycle()) {
                scope.spawn(move || {
                    let fault = match writer.write_until(*port, last_second, &|| over.load(Ordering::Acquire))
                    {
                        Err(fault) => Some(fault),
                        // Before anything happened nothing may break.
                        Ok(Some(broken))
                            if meanwhile == Meanwhile::Holds || !begun.load(Ordering::Acquire) =>
                        {
                            Some(broken)
                        }
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

    pub fn verify(&mut self, port: u16) -> Result<()> {
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

    pub fn tally(&self) -> String {
        let mut tally = Tally::default();
        self.writers.iter().for_each(|writer| tally.add(&writer.tally));
        tally.to_string()
    }
}
