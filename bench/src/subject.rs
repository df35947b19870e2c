//! A server that a long load is put on: Mayfly on files, Mayfly on PostgreSQL, or MongoDB. What it costs is asked of the
//! system, in the same way for each.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use mayfly_engine::clock::Stopwatch;

use crate::{
    mongo::Client,
    mongod::Mongod,
    postgres::{self, Postgres},
    processes,
    rest::servers::Server,
};

/// Where Mayfly keeps documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Store {
    /// In files.
    Embedded,
    /// On a PostgreSQL of its own, whose disk and CPU count as Mayfly's.
    Postgres,
}

/// A server that can be started, any number of times.
#[derive(Clone, Debug)]
pub enum Kind {
    /// This binary of Mayfly.
    Mayfly {
        /// What it is called.
        name: &'static str,
        /// The program.
        binary: PathBuf,
        /// Its store.
        store: Store,
        /// More flags for it.
        flags: Vec<String>,
    },
    /// A MongoDB server of this binary.
    MongoDb {
        /// The program.
        binary: PathBuf,
        /// The port it gets.
        port: u16,
    },
}

impl Kind {
    /// What it is called in the table.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mayfly { name, .. } => name,
            Self::MongoDb { .. } => "MongoDB",
        }
    }

    /// Starts one with nothing in it.
    pub fn start(&self) -> io::Result<Subject> {
        match self {
            Self::MongoDb { binary, port } => {
                let server = runtime()?.block_on(Mongod::start(binary, *port))?;
                Ok(Subject { running: Running::MongoDb { server, port: *port } })
            }
            Self::Mayfly { binary, store, flags, .. } => {
                let files = tempfile::tempdir()?;
                let mut flags = flags.clone();
                let postgres = match store {
                    Store::Embedded => None,
                    Store::Postgres => {
                        let behind = Behind::start()?;
                        flags.extend(["--store".into(), behind.server.tcp_url()]);
                        Some(Box::new(behind))
                    }
                };
                let server = Server::mayfly_on(binary, files.path(), &flags)?;
                let binary = binary.clone();
                Ok(Subject { running: Running::Mayfly { server, binary, flags, files, postgres } })
            }
        }
    }
}

/// A server that runs.
pub struct Subject {
    running: Running,
}

enum Running {
    Mayfly {
        // Ends before what it stands on.
        server: Server,
        binary: PathBuf,
        flags: Vec<String>,
        files: tempfile::TempDir,
        postgres: Option<Box<Behind>>,
    },
    MongoDb {
        server: Mongod,
        port: u16,
    },
}

/// A PostgreSQL and what drives its client.
struct Behind {
    server: Postgres,
    _runtime: tokio::runtime::Runtime,
}

impl Behind {
    fn start() -> io::Result<Self> {
        let programs =
            postgres::programs(None).ok_or_else(|| io::Error::other("no PostgreSQL is installed"))?;
        let runtime = runtime()?;
        let server = runtime.block_on(Postgres::start_with(&programs, &["max_connections=200"]));
        Ok(Self { server: server.map_err(io::Error::other)?, _runtime: runtime })
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

impl Subject {
    /// A connection for MongoDB's protocol.
    pub fn client(&self) -> io::Result<Client> {
        match &self.running {
            Running::Mayfly { server, .. } => {
                Client::connect(server.mongo_port.ok_or_else(|| io::Error::other("no port for MongoDB"))?)
            }
            Running::MongoDb { port, .. } => Client::connect(*port),
        }
    }

    /// Where it listens for HTTP; nowhere if it is MongoDB.
    pub fn http_port(&self) -> Option<u16> {
        match &self.running {
            Running::Mayfly { server, .. } => Some(server.port),
            Running::MongoDb { .. } => None,
        }
    }

    /// Seconds of CPU that it, and what it stands on, have used so far.
    pub fn cpu_seconds(&self) -> f64 {
        let behind = match &self.running {
            Running::Mayfly { postgres: Some(behind), .. } => behind.server.cpu_seconds(),
            _ => Some(0.0),
        };
        processes::cpu_seconds(self.process())
            .zip(behind)
            .map_or(f64::NAN, |(server, behind)| server + behind)
    }

    /// Bytes of its files, or of those it stands on. Without PostgreSQL's journal.
    pub fn disk_bytes(&self) -> u64 {
        processes::disk_bytes(self.data()).saturating_sub(self.journal_bytes())
    }

    /// Bytes of the journal of the PostgreSQL that it stands on. How long that is is for who runs it to set
    /// (`max_wal_size`, 1 GB unless set), and whatever is written fills it.
    pub fn journal_bytes(&self) -> u64 {
        match &self.running {
            Running::Mayfly { postgres: Some(behind), .. } => {
                processes::disk_bytes(&behind.server.data().join("data/pg_wal"))
            }
            _ => 0,
        }
    }

    fn data(&self) -> &Path {
        match &self.running {
            Running::Mayfly { postgres: Some(behind), .. } => behind.server.data(),
            Running::Mayfly { files, .. } => files.path(),
            Running::MongoDb { server, .. } => server.data(),
        }
    }

    /// Its resident memory, without what it stands on.
    pub fn resident_bytes(&self) -> u64 {
        processes::status_bytes(self.process(), "VmRSS:").unwrap_or(0)
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        match &self.running {
            Running::Mayfly { server, .. } => server.process(),
            Running::MongoDb { server, .. } => server.process(),
        }
    }

    /// Ends Mayfly as a crash would and starts it on the same files; says how long that took from the start to the line
    /// that tells of it. MongoDB goes on.
    pub fn restart_after_crash(self) -> io::Result<(Self, Duration)> {
        let Running::Mayfly { server, binary, flags, files, postgres } = self.running else {
            return Ok((self, Duration::ZERO));
        };
        server.crash()?;
        let watch = Stopwatch::start();
        let server = Server::mayfly_on(&binary, files.path(), &flags)?;
        let took = watch.elapsed();
        Ok((Self { running: Running::Mayfly { server, binary, flags, files, postgres } }, took))
    }
}
