//! The servers that suites of real clients run against.
//!
//! Three serve every language: one in memory with a clock that the tests move, so that a TTL of a month takes no longer
//! than one of a second; one on disk with the machine's clock, for the few tests that wait; and one that holds containers
//! to their request units and takes Entra tokens. What a suite needs to know it finds in its environment.

use std::{fs, path::PathBuf, process::Command};

use mayfly_cosmos::auth::EMULATOR_KEY;

use crate::{
    client::Client,
    server::{self, Server},
    shell::{self, Result, target},
};

/// The three of them.
pub struct Servers {
    in_memory: Server,
    on_disk: Server,
    limited: Server,
    /// The certificate of the server in memory; the others are reached over plain HTTP.
    ca_file: PathBuf,
    data_dir: PathBuf,
}

impl Servers {
    /// Starts them; what they leave behind goes under `target/NAME`.
    pub fn start(name: &str) -> Result<Self> {
        let work = target().join(name);
        if work.exists() {
            fs::remove_dir_all(&work)?;
        }
        fs::create_dir_all(&work)?;
        let data_dir = work.join("data");
        let in_memory = Server::start_with_mongo(&["--store", "memory", "--dev-clock"])?;
        let on_disk = Server::start(&["--data-dir".as_ref(), data_dir.as_os_str()])?;
        let limited = Server::start(&["--store", "memory", "--dev-clock", "--throttle", "--dev-entra"])?;
        let ca_file = work.join("ca.pem");
        let answer = Client::connect(in_memory.port)?.get("/_explorer/emulator.pem")?;
        fs::write(&ca_file, answer.body)?;
        Ok(Self { in_memory, on_disk, limited, ca_file, data_dir })
    }

    /// Tells a suite where everything is.
    pub fn described<'a>(&self, suite: &'a mut Command) -> &'a mut Command {
        let (memory, disk) = (self.in_memory.port, self.on_disk.port);
        suite
            .env("MAYFLY_TEST_KEY", EMULATOR_KEY)
            .env("MAYFLY_TEST_HTTP", format!("http://localhost:{memory}/"))
            .env("MAYFLY_TEST_HTTPS", format!("https://localhost:{memory}/"))
            .env("MAYFLY_TEST_MONGO", format!("mongodb://localhost:{}/", self.in_memory.mongo_port))
            .env("MAYFLY_TEST_CA", &self.ca_file)
            .env("MAYFLY_TEST_DISK", format!("http://localhost:{disk}/"))
            .env("MAYFLY_TEST_LIMITED", format!("http://localhost:{}/", self.limited.port))
    }

    /// Stops them, and has the data directory checked.
    pub fn stop(self) -> Result<()> {
        self.in_memory.stop()?;
        self.on_disk.stop()?;
        self.limited.stop()?;
        shell::run(Command::new(server::binary()).arg("check").arg("--data-dir").arg(self.data_dir))
    }
}
