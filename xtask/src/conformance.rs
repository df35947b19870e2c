//! `cargo xtask conformance [SUITE…]`: the tests that SDKs ship, against Mayfly.
//!
//! Nothing of them is kept here but their names: they come from the packages, unchanged. `tests/conformance/suites.toml`
//! says which files make a suite, `tests/conformance/expected.toml` which tests fail and why that is known. A failure that is not listed
//! is an error, and so is a listed one that passes: the list tells the truth or the task fails.

mod expected;
mod python;
mod rust;

use std::{collections::BTreeMap, fs, path::PathBuf};

use crate::{
    needs::{self, Need},
    server::{self, Server},
    shell::{Result, failure, root, target},
};
use expected::{Ended, Expected};

/// The suite of the Rust SDK; the others are of the Python SDK.
const RUST: &str = "rust";

/// The suite that `cargo xtask test` runs. All of its files are in other suites too.
const QUICK: &str = "quick";

fn folder() -> PathBuf {
    root().join("tests/conformance")
}

/// Runs these suites, or all of them, and says what did not end as expected.
pub fn run(suites: &[&str]) -> Result<()> {
    let known = suites_of_python()?;
    let all = || known.keys().map(String::as_str).filter(|name| *name != QUICK).chain([RUST]).collect();
    let suites: Vec<&str> = if suites.is_empty() { all() } else { suites.to_vec() };
    if let Some(unknown) = suites.iter().find(|name| **name != RUST && !known.contains_key(**name)) {
        return failure(format!("there is no suite `{unknown}`; there are: {QUICK}, {}", all().join(", ")));
    }
    needs::have(&[Need::Python])?;
    server::build()?;
    let mut lines = Vec::new();
    let mut ended = Vec::new();
    for suite in suites {
        let tests = match known.get(suite) {
            Some(files) => with_server(|port| python::run(port, files))?,
            None => with_server(rust::run)?,
        };
        lines.push(format!("{suite:12} {}", expected::count(&tests)));
        ended.extend(tests);
    }
    println!();
    lines.iter().for_each(|line| println!("{line}"));
    Expected::read()?.compare(&ended)
}

/// The quick suite, as a group of `cargo xtask test`.
pub fn quick() -> Result<String> {
    run(&[QUICK])?;
    Ok("as expected".into())
}

fn suites_of_python() -> Result<BTreeMap<String, Vec<String>>> {
    Ok(toml::from_str(&fs::read_to_string(folder().join("suites.toml"))?)?)
}

/// A fresh server for each suite, so that none meets what another left.
fn with_server(tests: impl FnOnce(u16) -> Result<Vec<Ended>>) -> Result<Vec<Ended>> {
    let server = Server::start(&["--store", "memory"])?;
    let ended = tests(server.port)?;
    server.stop()?;
    Ok(ended)
}

/// Where everything goes that the suites need.
fn work() -> Result<PathBuf> {
    let folder = target().join("conformance");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
