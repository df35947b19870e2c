//! `mayfly slots` as a person uses it, while nodes take writes: a server is taken in, gets everything, gives half of it back.

use std::{path::Path, process::Command};

use super::{
    load::{Load, Meanwhile},
    node,
};
use crate::{
    crash::create_containers,
    postgres::Postgres,
    server,
    shell::{Result, failure},
};

/// Two nodes on one server, and a second server that comes and goes.
pub fn moved_from_the_shell(programs: &Path) -> Result<String> {
    let first = Postgres::start(programs, "scale-slots-1", &[])?;
    let second = Postgres::start(programs, "scale-slots-2", &[])?;
    let store = first.address();
    let (one, other) = (node(&store, "one")?, node(&store, "other")?);
    create_containers(one.port)?;
    let slots = |arguments: &[&str]| slots(&store, arguments);
    let mut load = Load::new();
    load.write(&[one.port, other.port], Meanwhile::Holds, || {
        shows(&slots(&["show"])?, &[256])?;
        slots(&["add", &second.address()])?;
        shows(&slots(&["show"])?, &[256, 0])?;
        // Everything there is, so whatever is written to moves.
        shows(&slots(&["move", "--to", "2", "--groups", "0-255"])?, &[0, 256])?;
        shows(&slots(&["move", "--to", "1"])?, &[128, 128])
    })?;
    load.verify(one.port)?;
    load.verify(other.port)?;
    if slots(&["add", &second.address()]).is_ok() {
        return failure("a server was taken in twice");
    }
    one.stop()?;
    other.stop()?;
    Ok(load.tally())
}

/// Runs the command and gives what it says.
fn slots(store: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(server::binary());
    let asked = command.arg("slots").args(arguments).env("MAYFLY_STORE", store).output()?;
    match asked.status.success() {
        true => Ok(String::from_utf8_lossy(&asked.stdout).into_owned()),
        false => failure(format!("mayfly slots {arguments:?}: {}", String::from_utf8_lossy(&asked.stderr))),
    }
}

/// Insists on how many groups each server has, in the order of their numbers.
fn shows(text: &str, groups: &[usize]) -> Result<()> {
    let columns = text.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap_or_default());
    let found: Vec<usize> = columns.filter_map(|column| column.parse().ok()).collect();
    if found == groups { Ok(()) } else { failure(format!("groups {groups:?} were wanted:\n{text}")) }
}
