//! The `mongo` group: MongoDB's own drivers, and mongoose, against the release binary.
//!
//! Python works on a server in memory, JavaScript on one with files, so that both stores are met; each has a clock that the
//! tests move. A third server has a key of its own and lets nobody in without it.

use std::{fs, process::Command};

use mayfly_cosmos::auth::EMULATOR_KEY;

use crate::{
    client::Client,
    sdk,
    server::{self, Server},
    shell::{self, Result, root, run_tests, target},
};

/// The key of the server that is locked. Some of its characters have a meaning in URLs.
pub const KEY: &str = "c2VjcmV0L2tleSt3aXRoPz8+Pg==";

/// Installs the drivers, starts the servers, runs the suites.
pub fn run() -> Result<String> {
    let (python_folder, javascript_folder) =
        (root().join("tests/mongo-python"), root().join("tests/mongo-js"));
    let python = sdk::python_with(&python_folder.join("requirements.txt"), "mongo-python-venv")?;
    sdk::install_javascript(&javascript_folder)?;
    server::build()?;

    let work = target().join("mongo");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let data_dir = work.join("data");
    fs::create_dir_all(&work)?;
    let in_memory = Server::start_with_mongo(&["--store", "memory", "--dev-clock"])?;
    let on_disk =
        Server::start_with_mongo(&["--dev-clock".as_ref(), "--data-dir".as_ref(), data_dir.as_os_str()])?;
    let locked = Server::start_with_mongo(&["--store", "memory", "--key", KEY])?;
    let ca_file = work.join("ca.pem");
    fs::write(&ca_file, Client::connect(in_memory.port)?.get("/_explorer/emulator.pem")?.body)?;

    let describe = |suite: &mut Command, server: &Server| {
        suite
            .env("MAYFLY_TEST_KEY", EMULATOR_KEY)
            .env("MAYFLY_TEST_HTTP", format!("http://localhost:{}/", server.port))
            .env("MAYFLY_TEST_CA", &ca_file)
            .env("MAYFLY_TEST_MONGO", format!("mongodb://localhost:{}/", server.mongo_port))
            .env("MAYFLY_TEST_MONGO_LOCKED", format!("mongodb://localhost:{}/", locked.mongo_port))
            .env("MAYFLY_TEST_MONGO_LOCKED_KEY", KEY);
    };
    let mut suite = Command::new(python);
    suite.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(python_folder);
    describe(&mut suite, &in_memory);
    let mut count = run_tests(suite.env("PYTHONDONTWRITEBYTECODE", "1"), sdk::pytest)?;
    let mut suite = sdk::node_tests(&javascript_folder)?;
    describe(&mut suite, &on_disk);
    count.add(run_tests(&mut suite, sdk::node)?);

    in_memory.stop()?;
    locked.stop()?;
    on_disk.stop()?;
    shell::run(Command::new(server::binary()).arg("check").arg("--data-dir").arg(data_dir))?;
    Ok(count.to_string())
}
