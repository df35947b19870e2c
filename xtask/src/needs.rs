//! What tests and tasks need from the machine, and how it is got where it is missing.
//!
//! A machine with Rust and a C compiler is enough to begin with. A [`Need`] that the machine meets, in a
//! version that is new enough, is taken as it is. Otherwise it is installed: from Debian with apt-get, as
//! root or with sudo; Node.js from PyPI and Go from the module proxy, below `target/`, because Debian's are
//! too old. Nothing else in `xtask` installs programs, so this file is the whole list. `cargo xtask test
//! --bare` proves it in a directory that has nothing (`bare`).
//!
//! Packages that a suite names (`requirements.txt`, `package-lock.json`, `go.mod`, `pom.xml`) are its own
//! business.

mod debian;
mod go;
mod node;

use std::{path::PathBuf, process::Command};

use crate::shell::{Result, cargo, failure, run};
pub use go::{go, set_executable};
pub use node::{node, npm, with_node};

/// A program, or a few that come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Rustfmt,
    Clippy,
    Python,
    Node,
    Go,
    Java,
    Maven,
    Chromium,
    Postgres,
    Etcd,
    Patroni,
    ProfileMerger,
    Debootstrap,
}

/// The oldest Python that the suites' packages run on.
const PYTHON_MIN: (u32, u32) = (3, 10);

/// What puts the counts of `cargo xtask dist` together, as Debian has it.
pub const PROFILE_MERGER: &str = "llvm-profdata-19";

impl Need {
    /// For people.
    fn name(self) -> &'static str {
        match self {
            Self::Rustfmt => "rustfmt",
            Self::Clippy => "clippy",
            Self::Python => "Python 3.10 or later, with venv",
            Self::Node => "Node.js 20.19 or later, with npm",
            Self::Go => "Go 1.25 or later",
            Self::Java => "a Java compiler",
            Self::Maven => "Maven",
            Self::Chromium => "Chromium",
            Self::Postgres => "PostgreSQL",
            Self::Etcd => "etcd",
            Self::Patroni => "Patroni",
            Self::ProfileMerger => PROFILE_MERGER,
            Self::Debootstrap => "debootstrap",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Rustfmt => answers(&mut cargo(&["fmt", "--version"])),
            Self::Clippy => answers(&mut cargo(&["clippy", "--version"])),
            Self::Python => {
                let (major, minor) = PYTHON_MIN;
                let test =
                    format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
                answers(python().args(["-c", &test]))
            }
            Self::Node => node::is_there(),
            Self::Go => go::is_there(),
            Self::Java => answers(Command::new("javac").arg("-version")),
            Self::Maven => answers(Command::new("mvn").arg("--version")),
            Self::Chromium => answers(Command::new(chromium()).arg("--version")),
            Self::Postgres => crate::postgres::installed().is_some(),
            Self::Etcd => answers(Command::new("etcd").arg("--version")),
            Self::Patroni => answers(Command::new("patroni").arg("--version")),
            Self::ProfileMerger => answers(Command::new(PROFILE_MERGER).arg("--version")),
            Self::Debootstrap => answers(Command::new("debootstrap").arg("--version")),
        }
    }

    /// What is needed to get it, besides what `debian_packages` says.
    fn requires(self) -> &'static [Self] {
        match self {
            Self::Node => &[Self::Python],
            _ => &[],
        }
    }

    /// The Debian packages that it is, or that it is got with.
    fn debian_packages(self) -> &'static [&'static str] {
        match self {
            Self::Rustfmt | Self::Clippy | Self::Node => &[],
            Self::Python => &["python3", "python3-venv"],
            Self::Go if go::can_fetch() => &[],
            Self::Go => &["golang-go", "ca-certificates"],
            Self::Java => &["default-jdk-headless"],
            Self::Maven => &["maven"],
            Self::Chromium => &["chromium"],
            Self::Postgres => &["postgresql"],
            Self::Etcd => &["etcd-server"],
            // Its interpreter is Debian's: PostgreSQL's user can run that one, wherever ours is.
            Self::Patroni => &["patroni", "python3-etcd"],
            Self::ProfileMerger => &["llvm-19"],
            Self::Debootstrap => &["debootstrap"],
        }
    }

    /// What is left to do once the Debian packages are there.
    fn finish(self) -> Result<()> {
        match self {
            Self::Rustfmt => run(Command::new("rustup").args(["component", "add", "rustfmt"])),
            Self::Clippy => run(Command::new("rustup").args(["component", "add", "clippy"])),
            Self::Node => node::install(),
            Self::Go => go::install(),
            _ => Ok(()),
        }
    }
}

/// Sees to it that all of these are there.
pub fn have(needs: &[Need]) -> Result<()> {
    let mut missing = Vec::new();
    for &need in needs {
        if missing.contains(&need) || need.is_there() {
            continue;
        }
        let before = need.requires().iter().copied();
        missing.extend(before.filter(|base| !needs.contains(base) && !base.is_there()));
        missing.push(need);
    }
    if missing.is_empty() {
        return Ok(());
    }
    // What others are got with comes first.
    missing.sort_by_key(|need| !need.requires().is_empty());
    let names: Vec<_> = missing.iter().map(|need| need.name()).collect();
    println!("missing: {}", names.join("; "));
    let mut packages: Vec<_> = missing.iter().flat_map(|need| need.debian_packages()).copied().collect();
    packages.dedup();
    if !packages.is_empty() {
        debian::install(&packages)?;
    }
    for need in missing {
        need.finish()?;
        if !need.is_there() {
            return failure(format!("{} is needed, and what could be installed is not it", need.name()));
        }
    }
    Ok(())
}

/// The Python that environments are made with.
pub fn python() -> Command {
    Command::new("python3")
}

/// The browser: Debian's, or the one that `CHROMIUM` names.
pub fn chromium() -> PathBuf {
    std::env::var_os("CHROMIUM").map_or_else(|| "chromium".into(), PathBuf::from)
}

/// Whether a program runs and is content.
fn answers(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// The first two numbers of a version: `v20.19.5`, `go1.25.5`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim_start_matches(|letter: char| !letter.is_ascii_digit()).split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(version("v20.19.5\n"), Some((20, 19)));
        assert_eq!(version("go1.25.5"), Some((1, 25)));
        assert_eq!(version("go1.26"), Some((1, 26)));
        assert_eq!(version("none"), None);
    }
}
