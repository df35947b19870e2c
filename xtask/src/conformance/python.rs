//! The tests of azure-cosmos. They are not in the package that is installed, but in the archive it is made from; pip
//! fetches both. `tests/conformance/python` has what the tests need to run here.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use mayfly_cosmos::auth::EMULATOR_KEY;
use serde_json::Value;

use super::{
    expected::{Ended, Outcome},
    folder, work,
};
use crate::{
    sdk,
    shell::{self, Failure, Result},
};

/// For one test. One of them takes a minute by design.
const TEST_SECONDS: u32 = 90;

/// How files of the old version are named in the list.
const LEGACY: &str = "legacy/";

/// A version of the SDK with its tests.
struct Sdk {
    python: PathBuf,
    tests: PathBuf,
}

/// Runs the files one by one, for each makes its own database.
pub fn run(port: u16, files: &[String]) -> Result<Vec<Ended>> {
    let current = Sdk::install("")?;
    let legacy = match files.iter().any(|file| file.starts_with(LEGACY)) {
        true => Some(Sdk::install("-legacy")?),
        false => None,
    };
    let mut ended = Vec::new();
    for file in files {
        match (file.strip_prefix(LEGACY), &legacy) {
            (Some(old), Some(sdk)) => {
                let mut tests = sdk.run(port, old)?;
                tests.iter_mut().for_each(|test| test.test.insert_str(0, LEGACY));
                ended.extend(tests);
            }
            _ => ended.extend(current.run(port, file)?),
        }
    }
    Ok(ended)
}

impl Sdk {
    /// The version that `requirements{suffix}.txt` names.
    fn install(suffix: &str) -> Result<Self> {
        let ours = folder().join("python");
        let requirements = ours.join(format!("requirements{suffix}.txt"));
        let python = sdk::python_with(&requirements, &format!("conformance-venv{suffix}"))?;
        let folder = work()?.join(format!("source{suffix}"));
        if !folder.is_dir() {
            fetch(&python, &ours.join(format!("sources{suffix}.txt")), &folder)?;
        }
        // The archive holds one folder, and the tests are in one of two below it.
        let inside = fs::read_dir(&folder)?.flatten().map(|entry| entry.path()).find(|path| path.is_dir());
        let tests = inside.iter().flat_map(|inside| [inside.join("tests"), inside.join("test")]);
        let tests = tests.into_iter().find(|path| path.is_dir());
        let tests = tests.ok_or_else(|| Failure(format!("no tests in {}", folder.display())))?;
        Ok(Self { python, tests })
    }

    fn run(&self, port: u16, file: &str) -> Result<Vec<Ended>> {
        let ours = folder().join("python");
        let results = work()?.join("results.jsonl");
        fs::write(&results, "")?;
        let mut suite = Command::new(&self.python);
        suite.args(["-m", "pytest", "-q", "--tb=no", "-p", "conformance_plugin", "--rootdir", ".", "-c"]);
        suite.arg(ours.join("pytest.ini")).arg(format!("--timeout={TEST_SECONDS}")).arg(file);
        suite.current_dir(&self.tests).env("PYTHONPATH", &ours).env("PYTHONDONTWRITEBYTECODE", "1");
        suite.env("ACCOUNT_HOST", format!("http://localhost:{port}/")).env("ACCOUNT_KEY", EMULATOR_KEY);
        suite.env("CONFORMANCE_RESULTS", &results).env("no_proxy", "*");
        // Failures are expected; what counts is in the file.
        let _ = shell::run(&mut suite);
        let ended: Vec<_> = fs::read_to_string(&results)?.lines().filter_map(read).collect();
        match ended.is_empty() {
            true => Err(Failure(format!("{file}: no test was run"))),
            false => Ok(ended),
        }
    }
}

fn read(line: &str) -> Option<Ended> {
    let line: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| line[name].as_str().map(str::to_owned);
    let outcome = match line["outcome"].as_str()? {
        "passed" => Outcome::Passed,
        "skipped" => Outcome::Skipped,
        _ => Outcome::Failed,
    };
    Some(Ended { test: text("test")?, outcome, said: text("said")? })
}

/// Downloads an archive, whose hash the list of sources gives, and unpacks it.
fn fetch(python: &Path, sources: &Path, folder: &Path) -> Result<()> {
    let archives = work()?.join("archives");
    if archives.is_dir() {
        fs::remove_dir_all(&archives)?;
    }
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        ":all:",
    ]);
    shell::run(pip.arg("--require-hashes").arg("--requirement").arg(sources).arg("--dest").arg(&archives))?;
    let archive = fs::read_dir(&archives)?.flatten().map(|entry| entry.path()).next();
    let archive = archive.ok_or_else(|| Failure("pip downloaded nothing".into()))?;
    // Under another name until it is whole.
    let partly = folder.with_extension("partly");
    if partly.is_dir() {
        fs::remove_dir_all(&partly)?;
    }
    shell::run(Command::new(python).args(["-m", "tarfile", "--extract"]).arg(archive).arg(&partly))?;
    Ok(fs::rename(partly, folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_plugin_writes() {
        let ended = read(r#"{"test": "test_a.py::test_b", "outcome": "failed", "said": "no"}"#).unwrap();
        assert_eq!(
            (ended.test.as_str(), ended.outcome, ended.said.as_str()),
            ("test_a.py::test_b", Outcome::Failed, "no")
        );
        assert!(read("").is_none());
    }
}
