//! A private PostgreSQL to compare with: made in a temporary folder, stopped at the end.
//!
//! Its programs are looked for where Debian puts them. It runs as it is installed; what is measured of reads alone has
//! `fsync` off while documents are loaded. Clients that are compared with clients of Mayfly come by TCP, as those do.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::{Client, NoTls};

use crate::{processes, query::prepared::Prepared};

/// Who may come without a password.
const USER: &str = "bench";

/// A running instance.
pub struct Postgres {
    server: Child,
    dir: tempfile::TempDir,
    port: u16,
    /// Connected to it by TCP.
    pub client: Client,
}

/// The folder with `initdb` and `postgres`: the one given, or the newest that is installed.
pub fn programs(given: Option<&Path>) -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = installed.map(|version| version.path().join("bin")).collect();
    found.sort();
    let mut found: Vec<_> = given.map(Path::to_owned).into_iter().chain(found.into_iter().rev()).collect();
    found.retain(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    found.into_iter().next()
}

/// PostgreSQL refuses to run as root; as root, its own user is taken.
fn command(program: &Path) -> Command {
    let id = Command::new("id").arg("-u").output().map(|output| output.stdout).unwrap_or_default();
    if String::from_utf8_lossy(&id).trim() == "0" {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

/// Serves a connection for as long as the bench runs.
pub fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static) {
    tokio::spawn(connection);
}

impl Postgres {
    /// Makes and starts an instance with the programs in `folder`, which does not wait for the disk.
    pub async fn start(folder: &Path) -> Result<Self, String> {
        Self::start_with(folder, &["fsync=off"]).await
    }

    /// Makes and starts an instance with these settings.
    pub async fn start_with(folder: &Path, options: &[&str]) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        // Its user has to reach it.
        _ = Command::new("chown").arg("postgres").arg(dir.path()).stderr(Stdio::null()).status();
        let data = dir.path().join("data");
        let mut initdb = command(&folder.join("initdb"));
        initdb.arg("-D").arg(&data).args(["-U", USER, "-A", "trust"]);
        let made = initdb.stdout(Stdio::null()).output().map_err(|error| error.to_string())?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let server = command(&folder.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-p", &port.to_string(), "-k"])
            .arg(dir.path())
            .args(options.iter().flat_map(|option| ["-c", option]))
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut last = String::new();
        for _ in 0..100 {
            match tokio_postgres::connect(&tcp_url(port), NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    return Ok(Self { server, dir, port, client });
                }
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(last)
    }

    /// Seconds of CPU that its processes have used so far, also those of connections that have ended; `None` where the system does not tell.
    pub fn cpu_seconds(&self) -> Option<f64> {
        let file = std::fs::read_to_string(self.dir.path().join("data/postmaster.pid")).ok()?;
        let first = file.lines().next()?.trim().parse().ok()?;
        // One that ends while they are counted is with the ended ones next time.
        let running = processes::children(first).into_iter().filter_map(processes::cpu_seconds).sum::<f64>();
        Some(running + processes::ended_children_seconds(first)?)
    }

    /// The folder of its files.
    pub fn data(&self) -> &Path {
        self.dir.path()
    }

    /// A statement on a connection of its own.
    pub async fn prepared(&self, sql: &str) -> io::Result<Prepared> {
        Prepared::new(self.port, USER, sql).await
    }

    /// Where it is, by a socket in the file system.
    pub fn socket_url(&self) -> String {
        format!("postgres:///postgres?user={USER}&port={}&host={}", self.port, self.dir.path().display())
    }

    /// Where it is, by TCP.
    pub fn tcp_url(&self) -> String {
        tcp_url(self.port)
    }
}

fn tcp_url(port: u16) -> String {
    format!("postgres://{USER}@127.0.0.1:{port}/postgres")
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // To the server and not to `runuser` around it, which may have been started where signals are ignored.
        let file = std::fs::read_to_string(self.dir.path().join("data/postmaster.pid")).unwrap_or_default();
        let pid = file.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            _ = kill_process(pid, Signal::INT);
        }
        _ = self.server.wait();
    }
}
