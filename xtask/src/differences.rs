//! `cargo xtask differences`: random documents, filters, updates and pipelines, to us and to a real MongoDB.
//!
//! The program is `tests/differences/run.py`, with the driver of the `mongo` group. MongoDB is not ours to bring along: `--mongod`
//! names its program, or the address of one that runs (and may lose the database `differences`). All other arguments go to
//! the program.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::{
    machine,
    needs::{self, Need},
    sdk,
    server::{self, Server},
    shell::{self, Result, failure, root, target},
};

/// How long a MongoDB may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts what is needed and compares.
pub fn run(arguments: &[&str]) -> Result<()> {
    let (mut mongod, mut rest) = (std::env::var("MONGOD").ok(), Vec::new());
    let mut words = arguments.iter();
    while let Some(&word) = words.next() {
        match word {
            "--mongod" => mongod = words.next().map(|&path| path.to_owned()),
            other => rest.push(other),
        }
    }
    let Some(mongod) = mongod else {
        return failure(
            "`--mongod` or `MONGOD` names the program mongod 8.2, or the address of one: host:port",
        );
    };
    needs::have(&[Need::Python])?;
    let python = sdk::python_with(&root().join("tests/mongo-python/requirements.txt"), "mongo-python-venv")?;
    server::build()?;
    let (_running, address) = match Path::new(&mongod).is_file() {
        true => Mongod::start(Path::new(&mongod)).map(|(running, address)| (Some(running), address))?,
        false => (None, mongod),
    };
    let mayfly = Server::start_with_mongo(&["--store", "memory"])?;
    let mut program = Command::new(python);
    program.arg(root().join("tests/differences/run.py"));
    program.args(["--mayfly", &format!("mongodb://localhost:{}/", mayfly.mongo_port)]);
    program.args(["--mongod", &format!("mongodb://{address}/?directConnection=true")]);
    let done = shell::run(program.args(rest).env("PYTHONDONTWRITEBYTECODE", "1"));
    mayfly.stop()?;
    done
}

/// A MongoDB of our own, on a free port, until it is dropped.
struct Mongod(Child);

impl Mongod {
    fn start(program: &Path) -> Result<(Self, String)> {
        let folder = target().join("differences");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["--bind_ip", "127.0.0.1", "--port", &port.to_string(), "--dbpath"]).arg(&folder);
        command.args(["--wiredTigerCacheSizeGB", "0.25", "--logpath"]).arg(folder.join("log"));
        let mut started = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
        let address = format!("127.0.0.1:{port}");
        let deadline = machine::unix_time() + PATIENCE;
        while TcpStream::connect(&address).is_err() {
            if let Some(status) = started.0.try_wait()? {
                return failure(format!(
                    "{}: {status}; see {}",
                    program.display(),
                    folder.join("log").display()
                ));
            }
            if machine::unix_time() > deadline {
                return failure(format!("{} does not start", program.display()));
            }
            machine::sleep(Duration::from_millis(50));
        }
        Ok((started, address))
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
