//! A Mayfly of our own: the release binary on a free port, until it is stopped, killed or dropped.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    shell::{Failure, Result, cargo, failure, run, target},
    signal::{self, Signal},
};

/// Names a binary to run instead of the release that is built otherwise.
const BINARY: &str = "MAYFLY_BINARY";

/// Builds the release binary.
pub fn build() -> Result<PathBuf> {
    if std::env::var_os(BINARY).is_some() {
        return Ok(binary());
    }
    run(&mut cargo(&["build", "--release", "--package", "mayfly"]))?;
    Ok(binary())
}

/// Where the release binary is.
pub fn binary() -> PathBuf {
    if let Some(given) = std::env::var_os(BINARY) {
        return given.into();
    }
    target().join("release").join(file_name())
}

/// What the binary is called.
pub fn file_name() -> String {
    format!("mayfly{}", std::env::consts::EXE_SUFFIX)
}

/// A running server.
pub struct Server {
    child: Child,
    pub port: u16,
    /// The port of the MongoDB protocol, where it was asked for.
    pub mongo_port: u16,
}

impl Server {
    /// Starts a server with these arguments and waits until it answers. Its log goes to standard error.
    pub fn start<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Self> {
        Self::start_on(0, arguments)
    }

    /// Starts a server that speaks the MongoDB protocol as well.
    pub fn start_with_mongo<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Self> {
        Self::start_on(free_port()?, arguments)
    }

    fn start_on<S: AsRef<OsStr>>(mongo_port: u16, arguments: &[S]) -> Result<Self> {
        let mut command = Command::new(binary());
        command.args(["--port", "0", "--mongo-port", &mongo_port.to_string(), "--log-level", "warn"]);
        command.args(arguments);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MAYFLY_"))
        {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Failure("no standard output".into()))?;
        let mut server = Self { child, port: 0, mongo_port };
        // The start-up text says which port it was; its last line says that the server is ready.
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            if let Some(url) = line.strip_prefix("Endpoint ") {
                let port = url.trim().trim_end_matches('/').rsplit(':').next();
                server.port = port.unwrap_or_default().parse()?;
            }
            if line.trim_end() == "Started" {
                return Ok(server);
            }
        }
        failure(format!("the server did not start: {}", server.child.wait()?))
    }

    /// SIGKILL: it gets no chance to do anything.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM: it must end by itself, and well.
    pub fn stop(mut self) -> Result<()> {
        signal::send(self.child.id(), Signal::Terminate)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { failure(format!("the server ended with {status}")) }
    }
}

/// A task that fails leaves no server behind.
impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A port for a server that has to be told one. Not one of those that the system gives to whoever connects somewhere: the
/// clients of a test take many, and would have it before the server does.
pub fn free_port() -> Result<u16> {
    const FIRST: u32 = 22_000;
    const COUNT: u32 = 8_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Tasks that run side by side begin at different ones.
        let next = std::process::id().wrapping_mul(61).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + next % COUNT)?;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    failure("there is no free port")
}
