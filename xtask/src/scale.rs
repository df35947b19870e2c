//! `cargo xtask test scale`: what has to hold when several nodes share PostgreSQL servers.
//!
//! First the tests that are ignored elsewhere because they need a server; then tests that run elsewhere, unchanged, with
//! every store in them on PostgreSQL; then the scripts of the MongoDB protocol, over the wire, and the suites of the drivers
//! for Python. What one node hands out is used on another, as `equal` says. Last, whole nodes and servers are killed under
//! load, and slots moved from the shell, as `failures` and `slots` say.

pub mod certificates;
mod drivers;
mod equal;
mod failures;
mod load;
pub mod patroni;
mod slots;
mod test_programs;

use std::{ffi::OsStr, process::Command};

use crate::{
    postgres::{Postgres, programs},
    server::{self, Server},
    shell::{Count, Result, failure, run_tests, target},
    test::libtest,
};
use certificates::Certificates;
use test_programs::TestPrograms;

/// Variables that say where the servers are, as `mayfly_testkit::postgres` reads them.
const ADDRESSES: [&str; 3] = ["MAYFLY_TEST_POSTGRES", "MAYFLY_TEST_POSTGRES_2", "MAYFLY_TEST_POSTGRES_3"];

/// Folders of crates, and test programs with tests that need a server.
const TESTS: [(&str, &str); 4] =
    [("storage", "lib"), ("storage", "postgres"), ("engine", "postgres"), ("server", "postgres")];

/// Tests that every store has to pass: the folder of a crate with a test program `it`, and which of its tests. What becomes of
/// the disk is PostgreSQL's business.
const SAME_TESTS: [(&str, &[&str]); 2] = [
    ("engine", &["scripts::", "ttl_contract::", "races::", "--skip", "ttl_16_disk_space_comes_back"]),
    ("cosmos", &[]),
];

/// Starts the servers and runs the tests.
pub fn run() -> Result<String> {
    let programs = programs()?;
    let mut servers = Vec::new();
    for name in ["scale-1", "scale-2", "scale-3"] {
        servers.push(Postgres::start(&programs, name, &[])?);
    }
    let certificates = Certificates::generate()?;
    let encrypted = Postgres::start_encrypted(&programs, "scale-tls", &certificates)?;
    let describe = |command: &mut Command| {
        for (variable, server) in ADDRESSES.iter().zip(&servers) {
            command.env(variable, server.address());
        }
        command
            .env("MAYFLY_TEST_POSTGRES_TLS", encrypted.address().replace("127.0.0.1", "localhost"))
            .env("MAYFLY_TEST_POSTGRES_CA", &certificates.authority)
            .env("MAYFLY_TEST_POSTGRES_OTHER_CA", &certificates.other_authority);
    };
    let tests = TestPrograms::build()?;
    let mut sum = Count::default();
    for (folder, program) in TESTS {
        let mut command = tests.command(folder, program)?;
        describe(command.arg("--ignored"));
        sum.add(run_tests(&mut command, libtest)?);
    }
    let mut same = Count::default();
    for (folder, which) in SAME_TESTS {
        let mut command = tests.command(folder, "it")?;
        describe(command.args(which));
        same.add(run_tests(&mut command, libtest)?);
    }
    server::build()?;
    same.add(mongo_scripts(&servers, &tests)?);
    let (drivers, equal) = match &servers[..] {
        [_, second, third] => (drivers::run(second)?, equal::tokens_work_on_any_node(third)?),
        _ => return failure("three servers were started"),
    };
    drop((servers, encrypted));
    let (nodes, failover) = (failures::nodes(&programs)?, failures::failover(&programs)?);
    let moves = slots::moved_from_the_shell(&programs)?;
    Ok(format!(
        "{sum}; unchanged on PostgreSQL: {same}; drivers: {drivers}; equal nodes: {equal}; nodes killed: {nodes}; server killed: {failover}; slots moved: {moves}"
    ))
}

/// The golden scripts of the MongoDB protocol, asked of a node over the wire.
fn mongo_scripts(servers: &[Postgres], tests: &TestPrograms) -> Result<Count> {
    let Some(postgres) = servers.first() else { return Ok(Count::default()) };
    let node = node(&postgres.address(), "mongo")?;
    let mut command = tests.command("mongo", "it")?;
    command.args(["--ignored", "scripts::scripts_answer_as_a_real_server_does"]);
    let count = run_tests(command.env("MONGOD", format!("127.0.0.1:{}", node.mongo_port)), libtest)?;
    node.stop()?;
    Ok(count)
}

/// A node on a store, which speaks both protocols. What it keeps itself goes under `target/scale/NAME`.
fn node(store: &str, name: &str) -> Result<Server> {
    node_with(store, name, &[])
}

/// The same, with more arguments.
fn node_with(store: &str, name: &str, arguments: &[&str]) -> Result<Server> {
    let data_dir = target().join("scale").join(name);
    let mut all: Vec<&OsStr> =
        vec!["--store".as_ref(), store.as_ref(), "--data-dir".as_ref(), data_dir.as_os_str()];
    all.extend(arguments.iter().map(|argument| OsStr::new(*argument)));
    Server::start_with_mongo(&all)
}
