//! The servers that are compared, each a process of its own, so that its CPU time can be told from the load's.

use std::{
    cell::Cell,
    io::{self, BufRead as _, BufReader},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::processes;

/// Between two looks at a server that is starting or ending, and how many there are at most.
const PAUSE: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 200;

/// A running server.
pub struct Server {
    child: Child,
    /// What it is called in the table.
    pub name: &'static str,
    /// Where it listens, on the loopback address.
    pub port: u16,
    /// Where it listens for MongoDB's protocol, if that was asked for beside HTTP.
    pub mongo_port: Option<u16>,
    _files: Option<tempfile::TempDir>,
}

impl Server {
    /// Mayfly's release binary on files of its own.
    pub fn mayfly(binary: &Path) -> io::Result<Self> {
        Self::mayfly_with(binary, &[])
    }

    /// The same with more flags.
    pub fn mayfly_with(binary: &Path, flags: &[&str]) -> io::Result<Self> {
        let files = tempfile::tempdir()?;
        let mut command = Command::new(binary);
        command
            .args(["--port", "0", "--mongo-port", "0", "--log-level", "warn", "--data-dir"])
            .arg(files.path())
            .args(flags);
        let mut server = Self::start("Mayfly", &mut command, |line| {
            line.strip_prefix("Endpoint ")?.trim().trim_end_matches('/').rsplit(':').next()?.parse().ok()
        })?;
        server._files = Some(files);
        Ok(server)
    }

    /// Mayfly's release binary with the MongoDB protocol on `port`, which is then the server's.
    pub fn mayfly_for_mongo(binary: &Path, port: u16) -> io::Result<Self> {
        let files = tempfile::tempdir()?;
        let mut command = Command::new(binary);
        let port_text = port.to_string();
        command
            .args(["--port", "0", "--mongo-port", &port_text, "--log-level", "warn", "--data-dir"])
            .arg(files.path());
        let mut server =
            Self::start("Mayfly", &mut command, |line| line.starts_with("Started").then_some(port))?;
        server._files = Some(files);
        Ok(server)
    }

    /// Mayfly's release binary with both protocols on files that belong to the caller, who may start it there again.
    pub fn mayfly_on(binary: &Path, files: &Path, flags: &[String]) -> io::Result<Self> {
        let mongo_port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(binary);
        command
            .args([
                "--port",
                "0",
                "--mongo-port",
                &mongo_port.to_string(),
                "--log-level",
                "warn",
                "--data-dir",
            ])
            .arg(files)
            .args(flags);
        let http_port = Cell::new(None);
        let mut server = Self::start("Mayfly", &mut command, |line| {
            if let Some(url) = line.strip_prefix("Endpoint ") {
                http_port.set(url.trim().trim_end_matches('/').rsplit(':').next()?.parse().ok());
            }
            http_port.get().filter(|_| line.starts_with("Started"))
        })?;
        server.mongo_port = Some(mongo_port);
        Ok(server)
    }

    /// Ends it as a crash would.
    pub fn crash(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// This program again, as the bare server.
    pub fn bare() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        Self::start("bare hyper", command.arg("--serve-bare"), |line| line.trim().parse().ok())
    }

    /// The JavaScript server that `npm ci` put into `folder`.
    pub fn peer(folder: &Path, port: u16) -> io::Result<Self> {
        let program: PathBuf = folder.join("node_modules/@vercel/cosmosdb-server/lib/cli.js");
        let mut command = Command::new("node");
        command.arg(program).args(["--no-ssl", "--host", "127.0.0.1", "--port", &port.to_string()]);
        Self::start("cosmosdb-server", &mut command, |line| line.contains("Ready").then_some(port))
    }

    /// Starts a program and waits for the line that tells its port.
    fn start(
        name: &'static str,
        command: &mut Command,
        port: impl Fn(&str) -> Option<u16>,
    ) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        let mut server = Self { child, name, port: 0, mongo_port: None, _files: None };
        let mut lines = BufReader::new(stdout).lines();
        for line in lines.by_ref() {
            if let Some(port) = port(&line?) {
                server.port = port;
                // It may go on talking, and would stop if nobody listened.
                let listener = std::thread::Builder::new().name("bench-listen".into());
                listener.spawn(move || lines.for_each(drop))?;
                server.wait_until_it_answers()?;
                return Ok(server);
            }
        }
        Err(io::Error::other(format!("{name} did not start")))
    }

    fn wait_until_it_answers(&self) -> io::Result<()> {
        let mut tries = 0;
        while let Err(error) = std::net::TcpStream::connect(("127.0.0.1", self.port)) {
            tries += 1;
            if tries > LOOKS_MAX {
                return Err(error);
            }
            std::thread::park_timeout(PAUSE);
        }
        Ok(())
    }

    /// Seconds of CPU it has used so far; `None` where the system does not tell.
    pub fn cpu_seconds(&self) -> Option<f64> {
        processes::cpu_seconds(self.child.id())
    }

    /// Its resident memory, from which on a new peak is looked for.
    pub fn forget_peak_memory(&self) -> io::Result<u64> {
        processes::forget_peak_memory(self.child.id())?;
        processes::status_bytes(self.child.id(), "VmRSS:")
    }

    /// The most resident memory it had since the last peak was forgotten.
    pub fn peak_memory(&self) -> io::Result<u64> {
        processes::status_bytes(self.child.id(), "VmHWM:")
    }

    /// Its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    /// Asks it to end before it is made to: one that counts what it does writes that down at its end.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        for _ in 0..LOOKS_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::park_timeout(PAUSE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
