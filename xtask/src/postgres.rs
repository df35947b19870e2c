//! PostgreSQL servers of our own: made in a temporary folder, on loopback, gone at the end.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    machine,
    scale::certificates::Certificates,
    server::free_port,
    shell::{Failure, Result, failure},
    signal::{self, Signal},
};

/// How often, a tenth of a second apart, a server that starts is asked whether it has: a minute, for busy machines.
const ATTEMPTS: u32 = 600;

/// The folder with `initdb` and `postgres`: that of the newest version that is installed.
pub fn programs() -> Result<PathBuf> {
    installed().ok_or_else(|| Failure("PostgreSQL is not installed".into()))
}

pub fn installed() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file());
    found.sort();
    found.pop()
}

/// A running server. Dropping it stops it and removes what it kept.
pub struct Postgres {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes and starts one. `settings` are lines such as `fsync=off`.
    pub fn start(programs: &Path, name: &str, settings: &[&str]) -> Result<Self> {
        Self::serve(programs, Self::made(programs, name)?, settings)
    }

    /// A folder with what a new server needs.
    fn made(programs: &Path, name: &str) -> Result<PathBuf> {
        let folder = folder(name)?;
        let data = folder.join("data");
        let mut initdb = unprivileged(&programs.join("initdb"));
        initdb.arg("-D").arg(&data).args([
            "-U",
            "mayfly",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale",
            "C",
            "--no-sync",
        ]);
        let made = initdb.current_dir(&folder).output()?;
        if !made.status.success() {
            return failure(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
        }
        Ok(folder)
    }

    /// Makes and starts one that speaks TLS to whoever wants it.
    pub fn start_encrypted(programs: &Path, name: &str, certificates: &Certificates) -> Result<Self> {
        let folder = Self::made(programs, name)?;
        // Written by the server's user itself: it takes no key that others could have read.
        for (file, text) in [("server.crt", &certificates.certificate), ("server.key", &certificates.key)] {
            let mut write = unprivileged(Path::new("sh"));
            write.args(["-c", "umask 077 && cat > \"$0\""]).arg(folder.join("data").join(file));
            let mut child = write.stdin(Stdio::piped()).spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(text.as_bytes())?;
            }
            if !child.wait()?.success() {
                return failure("the certificate could not be given to the server");
            }
        }
        Self::serve(programs, folder, &["ssl=on"])
    }

    fn serve(programs: &Path, folder: PathBuf, settings: &[&str]) -> Result<Self> {
        let data = folder.join("data");
        let port = free_port()?;
        let mut command = unprivileged(&programs.join("postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-p", &port.to_string()]);
        // What a killed process has written is there, synced or not; that of a machine is PostgreSQL's business.
        let always = ["listen_addresses=127.0.0.1", "max_connections=400", "fsync=off"];
        for setting in always.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        let log = fs::File::create(folder.join("log"))?;
        let process = command.current_dir(&folder).stdout(Stdio::null()).stderr(log).spawn()?;
        let server = Self { process, folder, port };
        for _ in 0..ATTEMPTS {
            let mut ask = Command::new(programs.join("pg_isready"));
            let asked = ask.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status()?;
            if asked.success() {
                return Ok(server);
            }
            machine::sleep(Duration::from_millis(100));
        }
        failure(format!("PostgreSQL did not start; {}", server.folder.join("log").display()))
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("postgres://mayfly@127.0.0.1:{}/postgres", self.port)
    }

    /// The address of this server or its standby, whichever takes writes.
    pub fn address_with(&self, standby: &Self) -> String {
        let (one, other) = (self.port, standby.port);
        format!(
            "postgres://mayfly@127.0.0.1:{one},127.0.0.1:{other}/postgres?target_session_attrs=read-write&connect_timeout=2"
        )
    }

    /// A copy of this server that follows it. Each commit waits for it from here on.
    pub fn standby(&self, programs: &Path, name: &str) -> Result<Self> {
        let folder = folder(name)?;
        let data = folder.join("data");
        let mut copy = unprivileged(&programs.join("pg_basebackup"));
        copy.args([
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            "mayfly",
            "-R",
            "-c",
            "fast",
            "-D",
        ]);
        let copied = copy.arg(&data).current_dir(&folder).output()?;
        if !copied.status.success() {
            return failure(format!("pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr)));
        }
        let standby = Self::serve(programs, folder, &[])?;
        self.sql(programs, "ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.sql(programs, "SELECT pg_reload_conf()")?;
        for _ in 0..ATTEMPTS {
            if self.sql(programs, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")?
                == "1"
            {
                return Ok(standby);
            }
            machine::sleep(Duration::from_millis(100));
        }
        failure("the standby does not follow")
    }

    /// Runs a statement and gives its first value.
    pub fn sql(&self, programs: &Path, statement: &str) -> Result<String> {
        let mut psql = Command::new(programs.join("psql"));
        psql.args([
            "-X",
            "-A",
            "-t",
            "-h",
            "127.0.0.1",
            "-p",
            &self.port.to_string(),
            "-U",
            "mayfly",
            "-d",
            "postgres",
        ]);
        let asked = psql.args(["-c", statement]).output()?;
        match asked.status.success() {
            true => Ok(String::from_utf8_lossy(&asked.stdout).trim().to_owned()),
            false => failure(format!("{statement}: {}", String::from_utf8_lossy(&asked.stderr))),
        }
    }

    /// SIGKILL to the server itself; it gets no chance to do anything.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::Kill)
    }

    /// To the server and not to `runuser` around it, which may have been started where signals are ignored.
    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        signal::send(pid.lines().next().unwrap_or_default().parse()?, signal)
    }

    /// Makes a standby take writes.
    pub fn promote(&self, programs: &Path) -> Result<()> {
        let answer = self.sql(programs, "SELECT pg_promote(true, 30)")?;
        if answer == "t" { Ok(()) } else { failure(format!("the standby was not promoted: {answer}")) }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It is gone already where it was killed; `runuser` ends with it either way.
        let _ = self.signal(Signal::Interrupt);
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// An empty folder for a server.
pub fn folder(name: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("mayfly-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    // Its user has to reach it; as anybody but root that is ourselves.
    let _ = Command::new("chown").arg("postgres").arg(&folder).stderr(Stdio::null()).status();
    Ok(folder)
}

/// PostgreSQL refuses to run as root; as root, its own user is taken.
pub fn unprivileged(program: &Path) -> Command {
    if signal::is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        return command;
    }
    Command::new(program)
}
