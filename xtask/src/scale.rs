//! `cargo xtask test scale`: what has to hold when several nodes share PostgreSQL servers.
//!
//! The tests are those that are ignored elsewhere because they need a server. Three are started for them. Then whole nodes
//! and servers are killed under load, as `failures` says.

mod failures;

use crate::{
    postgres::{Postgres, programs},
    shell::{Count, Result, cargo, run_tests},
    test::libtest,
};

/// Variables that say where the three servers are, as `mayfly_testkit::postgres` reads them.
const ADDRESSES: [&str; 3] = ["MAYFLY_TEST_POSTGRES", "MAYFLY_TEST_POSTGRES_2", "MAYFLY_TEST_POSTGRES_3"];

/// The tests that need a server: crate and test program.
const TESTS: [(&str, &str); 3] =
    [("mayfly-storage", "postgres"), ("mayfly-engine", "postgres"), ("mayfly", "postgres")];

/// Starts the servers and runs the tests.
pub fn run() -> Result<String> {
    let programs = programs()?;
    let mut servers = Vec::new();
    for name in ["scale-1", "scale-2", "scale-3"] {
        servers.push(Postgres::start(&programs, name, &[])?);
    }
    let mut sum = Count::default();
    for (package, test) in TESTS {
        let mut command = cargo(&["test", "--package", package, "--test", test, "--", "--ignored"]);
        for (variable, server) in ADDRESSES.iter().zip(&servers) {
            command.env(variable, server.address());
        }
        command.env("MAYFLY_TEST_POSTGRES_PROGRAMS", &programs);
        sum.add(run_tests(&mut command, libtest)?);
    }
    drop(servers);
    let (nodes, failover) = (failures::nodes(&programs)?, failures::failover(&programs)?);
    Ok(format!("{sum}; nodes killed: {nodes}; server killed: {failover}"))
}
