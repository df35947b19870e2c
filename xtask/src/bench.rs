//! `cargo xtask bench NAME [ARGS]`: builds and runs one benchmark. `docs/performance.md` says what they measure.

use std::{ffi::OsString, path::Path};

use crate::{
    needs, server,
    shell::{self, Result, cargo, failure, root},
};

/// Those that run the server's binary, which is another package's.
const MEASURES_SERVER: [&str; 8] =
    ["beside", "churn", "connections", "growth", "mongo", "query", "rest", "start"];

/// Runs the binary `name` of the crate `bench/`.
pub fn run(name: &str, arguments: &[&str]) -> Result<()> {
    check_name(name)?;
    let mut prepared = Vec::new();
    if MEASURES_SERVER.contains(&name) && !arguments.contains(&"--mayfly") {
        prepared.extend(["--mayfly".into(), server::build()?.into()]);
    }
    if matches!(name, "rest" | "query") {
        prepared.extend(peer());
    }
    start(name, &prepared, arguments)
}

/// Runs a bench that measures the server with this one, and without the peer.
pub fn run_with(server: &Path, name: &str, arguments: &[&str]) -> Result<()> {
    start(name, &["--mayfly".into(), server.into()], arguments)
}

fn start(name: &str, prepared: &[OsString], arguments: &[&str]) -> Result<()> {
    let command = cargo(&["run", "--release", "--package", "mayfly-bench", "--bin", name, "--"]);
    let mut command = needs::with_node(command);
    shell::run(command.args(prepared).args(arguments))
}

fn check_name(name: &str) -> Result<()> {
    if !root().join("bench/Cargo.toml").is_file() {
        return failure("there is no crate `bench/` in this version, so there are no benchmarks");
    }
    let known = binaries()?;
    if !known.iter().any(|binary| binary == name) {
        return failure(format!("there is no benchmark `{name}`; there are: {}", known.join(", ")));
    }
    Ok(())
}

/// The flag that names the JavaScript peer, where there is npm.
fn peer() -> Vec<OsString> {
    let folder = root().join("bench/peer");
    let mut npm = needs::npm();
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&folder);
    if !folder.join("node_modules").is_dir() && shell::run(&mut npm).is_err() {
        println!("no npm, no peer");
        return Vec::new();
    }
    vec!["--peer".into(), folder.into()]
}

/// The names of the crate's binaries: those its manifest lists, and the files of `src/bin`.
fn binaries() -> Result<Vec<String>> {
    let manifest: toml::Table = std::fs::read_to_string(root().join("bench/Cargo.toml"))?.parse()?;
    let listed = manifest.get("bin").and_then(toml::Value::as_array).into_iter().flatten();
    let listed = listed.filter_map(|bin| Some(bin.get("name")?.as_str()?.to_owned()));
    let files = std::fs::read_dir(root().join("bench/src/bin")).into_iter().flatten().flatten();
    let files = files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<_> = listed.chain(files).collect();
    names.sort();
    names.dedup();
    Ok(names)
}
