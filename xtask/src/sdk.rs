//! The `sdk` group: the vendors' own clients against the release binary.
//!
//! Both languages are served by the same three servers; see `servers`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    needs, server,
    servers::Servers,
    shell::{self, Count, Result, root, run_tests, target},
};

/// Installs the SDKs, starts the servers, runs the suites.
pub fn run() -> Result<String> {
    let python = python_with(&python_folder().join("requirements.txt"), "sdk-python-venv")?;
    install_javascript(&javascript_folder())?;
    server::build()?;
    let servers = Servers::start("sdk")?;

    let mut suite = Command::new(python);
    suite.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(python_folder());
    let mut count = run_tests(servers.described(&mut suite).env("PYTHONDONTWRITEBYTECODE", "1"), pytest)?;

    let mut suite = node_tests(&javascript_folder())?;
    count.add(run_tests(servers.described(&mut suite), node)?);

    servers.stop()?;
    Ok(count.to_string())
}

fn python_folder() -> PathBuf {
    root().join("tests/sdk-python")
}

fn javascript_folder() -> PathBuf {
    root().join("tests/sdk-js")
}

/// A virtual environment under `target/` with exactly what a list of requirements says. Gives its interpreter.
pub fn python_with(requirements: &Path, name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    let python = folder.join("bin/python");
    // Written last, so that it vouches for the rest.
    let installed = folder.join("installed.txt");
    let wanted = fs::read_to_string(requirements)?;
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    shell::run(needs::python().args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    shell::run(pip.arg(requirements))?;
    fs::write(installed, wanted)?;
    Ok(python)
}

/// Exactly the packages of `package-lock.json`.
pub fn install_javascript(folder: &Path) -> Result<()> {
    let installed = folder.join("node_modules/.installed.json");
    let wanted = fs::read_to_string(folder.join("package-lock.json"))?;
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    let mut npm = needs::npm();
    shell::run(npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder))?;
    fs::write(installed, wanted)?;
    Ok(())
}

/// The tests of a folder, one file after the other.
pub fn node_tests(folder: &Path) -> Result<Command> {
    let mut suite = needs::node();
    suite.args(["--test", "--test-reporter=spec", "--test-concurrency=1"]).current_dir(folder);
    let files = fs::read_dir(folder)?.flatten().map(|file| file.file_name());
    let mut files: Vec<_> = files.filter(|name| name.to_string_lossy().ends_with(".test.js")).collect();
    files.sort();
    suite.args(files);
    Ok(suite)
}

/// `3 failed, 40 passed in 2.31s`
pub fn pytest(line: &str) -> Option<Count> {
    let line = line.trim_matches('=').trim();
    let (counts, _) = line.rsplit_once(" in ").filter(|(_, time)| time.contains('s'))?;
    let mut count = Count::default();
    for part in counts.split(", ") {
        let (number, what) = part.split_once(' ')?;
        match what {
            "passed" => count.passed = number.parse().ok()?,
            "failed" | "error" | "errors" => count.failed += number.parse::<u64>().ok()?,
            _ => {}
        }
    }
    Some(count)
}

/// `ℹ pass 12` and `ℹ fail 0`
pub fn node(line: &str) -> Option<Count> {
    let (what, number) = line.strip_prefix("ℹ ")?.split_once(' ')?;
    let number = number.parse().ok()?;
    match what {
        "pass" => Some(Count { passed: number, failed: 0 }),
        "fail" => Some(Count { passed: 0, failed: number }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_suites_say() {
        assert_eq!(pytest("40 passed in 2.31s"), Some(Count { passed: 40, failed: 0 }));
        assert_eq!(
            pytest("=== 1 failed, 2 passed, 1 error in 0.1s ==="),
            Some(Count { passed: 2, failed: 2 })
        );
        assert_eq!(pytest("no tests ran in 0.01s"), Some(Count::default()));
        assert_eq!(pytest("tests/test_ttl.py ...."), None);
        assert_eq!(node("ℹ pass 12"), Some(Count { passed: 12, failed: 0 }));
        assert_eq!(node("ℹ fail 1"), Some(Count { passed: 0, failed: 1 }));
        assert_eq!(node("ℹ duration_ms 12.5"), None);
    }
}
