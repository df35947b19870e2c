//! `cargo xtask test patroni`: a pair of PostgreSQL servers that Patroni and etcd look after, as in production, and nodes
//! that write to it while it fails over.
//!
//! The leader is killed together with its Patroni, as when a machine dies. The standby takes over once the leader's lease in
//! etcd has run out; the dead one comes back as its standby, and then the same happens the other way round. It takes
//! minutes, nearly all of them waiting for leases.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::json;

use super::{
    load::{Load, Meanwhile},
    node,
};
use crate::{
    crash::create_containers,
    machine,
    postgres::{folder, programs, unprivileged},
    server,
    shell::{Result, failure},
    signal::{self, Signal},
};

/// How often, a second apart, something that has to come is looked for. A lease lasts for 20 seconds.
const ATTEMPTS: u32 = 120;

/// Fails over there and back under load.
pub fn run() -> Result<String> {
    let programs = programs()?;
    server::build()?;
    let etcd = Etcd::start()?;
    let mut first = Member::new("a", &etcd, &programs)?;
    let mut second = Member::new("b", &etcd, &programs)?;
    first.start()?;
    first.wait_for("primary")?;
    second.start()?;
    second.wait_for("sync")?;
    let store = format!(
        "postgres://mayfly@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write&connect_timeout=2",
        first.port, second.port
    );
    let (one, other) = (node(&store, "one")?, node(&store, "other")?);
    create_containers(one.port)?;
    let ports = [one.port, other.port];
    let mut load = Load::new();
    for (leader, standby) in [("a", "b"), ("b", "a")] {
        let (dies, follows) = if leader == "a" { (&mut first, &second) } else { (&mut second, &first) };
        load.write(&ports, Meanwhile::Breaks, || {
            dies.kill()?;
            follows.wait_for("primary")
        })?;
        println!("{standby} has taken over from {leader}");
        load.verify(one.port)?;
        load.verify(other.port)?;
        dies.start()?;
        dies.wait_for("sync")?;
        load.write(&ports, Meanwhile::Holds, || Ok(()))?;
        load.verify(other.port)?;
    }
    one.stop()?;
    other.stop()?;
    Ok(format!("2 failovers, {}", load.tally()))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Where Patroni keeps who leads.
struct Etcd {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Etcd {
    fn start() -> Result<Self> {
        let (folder, port, peers) = (folder("etcd")?, free_port()?, free_port()?);
        let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
        let mut command = unprivileged(Path::new("etcd"));
        command.args(["--name", "only", "--data-dir"]).arg(folder.join("data"));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("only={peers}")]);
        let log = fs::File::create(folder.join("log"))?;
        let process = command.current_dir(&folder).stdout(Stdio::null()).stderr(log).spawn()?;
        let etcd = Self { process, folder, port };
        for _ in 0..ATTEMPTS {
            if status(port, "/health").is_some_and(|status| status == 200) {
                return Ok(etcd);
            }
            machine::sleep(Duration::from_secs(1));
        }
        failure("etcd did not start")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        end(&mut self.process);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A server of the pair, with its Patroni.
struct Member {
    folder: PathBuf,
    /// Where PostgreSQL is, and where Patroni tells how it is.
    port: u16,
    status_port: u16,
    process: Option<Child>,
}

impl Member {
    fn new(name: &str, etcd: &Etcd, programs: &Path) -> Result<Self> {
        let (folder, port, status_port) = (folder(&format!("patroni-{name}"))?, free_port()?, free_port()?);
        let here = |port: u16| format!("127.0.0.1:{port}");
        // Nobody is asked for the password, but Patroni makes no user without one.
        let user = json!({ "username": "mayfly", "password": "mayfly" });
        let settings = json!({
            "scope": "mayfly",
            "name": name,
            "restapi": { "listen": here(status_port), "connect_address": here(status_port) },
            "etcd3": { "host": here(etcd.port) },
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 2,
                    "retry_timeout": 5,
                    "synchronous_mode": true,
                    "postgresql": { "use_pg_rewind": true, "parameters": { "max_connections": 200, "wal_log_hints": "on" } },
                },
                "initdb": [{ "auth": "trust" }, { "username": "mayfly" }, "no-sync"],
            },
            "postgresql": {
                "listen": here(port),
                "connect_address": here(port),
                "data_dir": folder.join("data"),
                "bin_dir": programs,
                "pgpass": folder.join("pgpass"),
                "authentication": { "superuser": user, "replication": user, "rewind": user },
                "parameters": { "unix_socket_directories": folder },
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
            },
        });
        // YAML, of which JSON is a part.
        fs::write(folder.join("patroni.yml"), settings.to_string())?;
        Ok(Self { folder, port, status_port, process: None })
    }

    fn start(&mut self) -> Result<()> {
        let mut command = unprivileged(Path::new("patroni"));
        command.arg(self.folder.join("patroni.yml")).current_dir(&self.folder).env("HOME", &self.folder);
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        self.process = Some(command.stdout(Stdio::null()).stderr(log).spawn()?);
        Ok(())
    }

    /// Waits until Patroni says that this one is what it should be: `primary`, or `sync` for a standby that commits wait for.
    fn wait_for(&self, role: &str) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if status(self.status_port, &format!("/{role}")) == Some(200) {
                return Ok(());
            }
            machine::sleep(Duration::from_secs(1));
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let tail: Vec<_> = log.lines().rev().take(20).collect();
        failure(format!(
            "it did not become {role}:\n{}",
            tail.into_iter().rev().collect::<Vec<_>>().join("\n")
        ))
    }

    /// The number of the PostgreSQL's process.
    fn postgres(&self) -> Result<u32> {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let number = file.lines().next().unwrap_or_default().to_owned();
        // A number in an old file may be somebody else's by now.
        let command = fs::read_to_string(format!("/proc/{number}/cmdline"))?;
        match command.contains(&*self.folder.to_string_lossy()) {
            true => Ok(number.parse()?),
            false => failure("PostgreSQL does not run"),
        }
    }

    /// The machine dies: Patroni and PostgreSQL at once, without a chance to do anything.
    fn kill(&mut self) -> Result<()> {
        let postgres = self.postgres()?;
        let Some(mut process) = self.process.take() else { return failure("it does not run") };
        let patroni = child_or_self(process.id());
        let told = (signal::send(patroni, Signal::Kill), signal::send(postgres, Signal::Kill));
        process.wait()?;
        told.0.and(told.1)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // In good order: Patroni stops its PostgreSQL.
            end(process);
        }
        // It has taken its file with it, unless Patroni was gone before.
        if let Ok(postgres) = self.postgres() {
            let _ = signal::send(postgres, Signal::Kill);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Ends a process that was started as another user, and waits for it.
fn end(process: &mut Child) {
    let _ = signal::send(child_or_self(process.id()), Signal::Terminate);
    let _ = process.wait();
}

/// The program behind `runuser`, or the process itself where there is none.
fn child_or_self(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_runuser =
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "runuser");
    children
        .split_whitespace()
        .next()
        .and_then(|child| child.parse().ok())
        .filter(|_| is_runuser)
        .unwrap_or(pid)
}

/// The status that a path is answered with, if anybody answers.
fn status(port: u16, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    std::str::from_utf8(&head).ok()?.rsplit(' ').next()?.parse().ok()
}
