//! The `mongo-tools` group: mongodump, mongorestore, mongoexport and mongoimport, there and back.
//!
//! What was dumped is restored into another server and both are asked for everything: documents, indexes, options, views. The
//! tools are those of `tests/mongo-tools`, packed by somebody for npm, so they only run when this group is asked for by name;
//! `MONGO_TOOLS` names a folder with others.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    needs, sdk,
    server::{self, Server},
    shell::{Result, root, run_tests, target},
};

/// Installs the tools, starts two servers, carries everything from one to the other.
pub fn run() -> Result<String> {
    let tools = tools()?;
    let tests = root().join("tests/mongo-python");
    let python = sdk::python_with(&tests.join("requirements.txt"), "mongo-python-venv")?;
    server::build()?;
    let work = target().join("mongo-tools");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let (from, to) = (
        Server::start_with_mongo(&["--store", "memory"])?,
        Server::start_with_mongo(&["--store", "memory"])?,
    );
    let mut suite = Command::new(python);
    suite.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(root().join("tests/mongo-tools"));
    suite
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("MAYFLY_TEST_TOOLS", tools)
        .env("MAYFLY_TEST_WORK", &work)
        .env("MAYFLY_TEST_MONGO", format!("mongodb://localhost:{}/", from.mongo_port))
        .env("MAYFLY_TEST_MONGO_OTHER", format!("mongodb://localhost:{}/", to.mongo_port));
    let count = run_tests(&mut suite, sdk::pytest)?;
    from.stop()?;
    to.stop()?;
    Ok(count.to_string())
}

/// The folder with the tools.
fn tools() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("MONGO_TOOLS") {
        return Ok(given.into());
    }
    let folder = root().join("tests/mongo-tools");
    sdk::install_javascript(&folder)?;
    let tools = folder.join("node_modules/distribution-linux-mongo-command-line-tools");
    // A package has no executable files.
    for name in ["mongodump", "mongorestore", "mongoexport", "mongoimport"] {
        needs::set_executable(&tools.join(name))?;
    }
    Ok(tools)
}
