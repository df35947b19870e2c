//! `cargo xtask dist`: the binary that is given to people, in `target/dist`.
//!
//! It is compiled twice. The first one counts how often each of its branches is taken while the benches ask it what clients
//! ask; the second is laid out by these counts, so that what requests run lies together and what they do not is out of the
//! way. A request runs tens of thousands of instructions once each, and waits for them to be brought near as much as for
//! running them.
//!
//! `MAYFLY_BINARY=target/dist/mayfly cargo xtask …` runs tests and benches with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    bench,
    needs::{self, Need, PROFILE_MERGER},
    server,
    shell::{Failure, Result, cargo, run, target},
};

/// What the counting binary is asked: each bench, shortly.
const LESSONS: [(&str, &[&str]); 3] = [
    ("rest", &["--connections", "1,16", "--seconds", "2", "--runs", "1"]),
    ("query", &["--part", "speed", "--documents", "20000", "--rounds", "1"]),
    ("mongo", &["--seconds", "2"]),
];

/// Builds the binary.
pub fn build() -> Result<()> {
    let merger = merger()?;
    let folder = target().join("dist");
    let (counts, merged) = (folder.join("counts"), folder.join("counts.profdata"));
    if counts.is_dir() {
        fs::remove_dir_all(&counts)?;
    }
    let counting = compile(&folder.join("counting"), "generate", &counts)?;
    for (name, arguments) in LESSONS {
        bench::run_with(&counting, name, arguments)?;
    }
    run(Command::new(merger).args(["merge", "--sparse", "--output"]).args([&merged, &counts]))?;
    let guided = compile(&folder.join("guided"), "use", &merged)?;
    let binary = folder.join(server::file_name());
    fs::copy(guided, &binary)?;
    println!("built {}", binary.display());
    Ok(())
}

/// Compiles the server in a folder of its own, so that neither build undoes the other's or that of `cargo build --release`.
fn compile(folder: &Path, what: &str, profile: &Path) -> Result<PathBuf> {
    let host = compiler("-vV", "host: ")?;
    let mut command = cargo(&["build", "--release", "--package", "mayfly", "--target", &host]);
    // With a target named, what runs while building is compiled without these.
    command.env("CARGO_TARGET_DIR", folder);
    command.env("RUSTFLAGS", format!("-Cprofile-{what}={}", profile.display()));
    run(&mut command)?;
    Ok(folder.join(host).join("release").join(server::file_name()))
}

/// The compiler's own (`rustup component add llvm-tools`), or else Debian's. One of a version that cannot
/// read what the compiler counted says so.
fn merger() -> Result<PathBuf> {
    let (sysroot, host) = (compiler("--print=sysroot", "")?, compiler("-vV", "host: ")?);
    let own = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    if own.is_file() {
        return Ok(own);
    }
    needs::have(&[Need::ProfileMerger])?;
    Ok(PROFILE_MERGER.into())
}

/// What the compiler says of itself on the first line that begins like this.
fn compiler(question: &str, begins: &str) -> Result<String> {
    let output = Command::new("rustc").arg(question).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find_map(|line| line.strip_prefix(begins));
    line.map(str::to_owned).ok_or_else(|| Failure(format!("rustc {question} does not say it")))
}
