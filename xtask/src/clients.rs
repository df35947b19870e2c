//! The `clients` group: the Java and Go SDKs against the release binary, over http and https.
//!
//! Their tests are small on purpose: what the protocol means is tested with the Python and JavaScript SDKs (`sdk`); these
//! show that clients with other habits get along. What is missing on the machine is installed with apt-get, as in
//! `.ci/run`.

mod go;
mod java;

use std::process::Command;

use crate::{
    server,
    servers::Servers,
    shell::{self, Count, Result, failure},
};

/// Installs the SDKs, starts the servers, runs both programs.
pub fn run() -> Result<String> {
    let (go, java) = (go::install()?, java::install()?);
    server::build()?;
    let servers = Servers::start("clients")?;
    let mut count = Count::default();
    count.add(go.run(&servers)?);
    count.add(java.run(&servers)?);
    servers.stop()?;
    Ok(count.to_string())
}

/// Installs Debian packages unless a program answers.
fn need(program: &str, argument: &str, packages: &[&str]) -> Result<()> {
    if Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    println!("missing: {program}; installing {}", packages.join(" "));
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "env" } else { "sudo" });
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet", "--yes"]).args(arguments);
        shell::run(&mut command)
    };
    let installed = apt(&["update"]).and_then(|()| {
        let install = ["install", "--no-install-recommends"];
        apt(&[&install[..], packages].concat())
    });
    match installed {
        Ok(()) => Ok(()),
        Err(error) => failure(format!("{program} is missing and could not be installed: {error}")),
    }
}
