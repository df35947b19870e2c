//! Debian packages, by apt-get: as root, or with sudo.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    shell::{Result, failure},
    signal,
};

/// Installs packages without what they merely recommend.
pub fn install(packages: &[&str]) -> Result<()> {
    static UPDATED: AtomicBool = AtomicBool::new(false);
    let list = packages.join(" ");
    if !super::answers(Command::new("apt-get").arg("--version")) {
        return failure(format!("this machine has no apt-get; install by hand what Debian has as: {list}"));
    }
    if !signal::is_root() && !super::answers(Command::new("sudo").arg("-V")) {
        return failure(format!(
            "only root can install packages, and there is no sudo; as root: apt-get install {list}"
        ));
    }
    println!("installing from Debian: {list}");
    if !UPDATED.swap(true, Ordering::Relaxed) {
        apt_get(&["update"])?;
    }
    apt_get(&[&["install", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(if signal::is_root() { "env" } else { "sudo" });
    if !signal::is_root() {
        command.arg("env");
    }
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "--yes"]).args(arguments);
    // Thousands of lines that nobody reads, unless it fails.
    println!("$ apt-get {}", arguments.join(" "));
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    failure(format!("`apt-get {}`: {}", arguments.join(" "), output.status))
}
