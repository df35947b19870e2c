//! The tests inside the crate azure_data_cosmos, which speak HTTP/2. The first build takes minutes.

use std::{fs, path::PathBuf, process::Command};

use mayfly_cosmos::auth::EMULATOR_KEY;

use super::{
    expected::{Ended, Outcome},
    work,
};
use crate::shell::{self, Failure, Result, cargo};

const CRATE: &str = "azure_data_cosmos";
const VERSION: &str = "1.1.0-beta.1";

/// Modules that test the client alone, or what only Azure has.
const LEFT_OUT: [&str; 4] =
    ["cosmos_fault_injection", "cosmos_aad", "cosmos_proxy", "cosmos_backup_endpoints"];

/// Builds and runs them. The certificate is not checked: the SDK cannot be told of another.
pub fn run(port: u16) -> Result<Vec<Ended>> {
    let source = fetch()?;
    let mut suite = cargo(&["test", "--locked", "--test", "emulator", "--features"]);
    suite.arg("key_auth,control_plane,fault_injection,unstable_patch").current_dir(&source);
    suite.args(["--", "--test-threads", "2"]);
    for module in LEFT_OUT {
        suite.args(["--skip", module]);
    }
    suite.env("CARGO_TARGET_DIR", work()?.join("rust-target")).env("CARGO_PROFILE_DEV_DEBUG", "0");
    suite.env("RUSTFLAGS", "--cfg=test_category=\"emulator\"").env("DATABASE_NAME", "conformance");
    let account = format!("AccountEndpoint=https://localhost:{port}/;AccountKey={EMULATOR_KEY};");
    suite.env("AZURE_COSMOS_CONNECTION_STRING", account).env("AZURE_COSMOS_TEST_MODE", "required");
    suite.env("AZURE_COSMOS_ALLOW_INVALID_CERT", "true");
    let mut ended = Vec::new();
    // Failures are expected; what counts is in the lines.
    let _ = shell::run_tests(&mut suite, |line| {
        ended.extend(read(line));
        None
    });
    match ended.is_empty() {
        true => Err(Failure(format!("{CRATE}: no test was run"))),
        false => Ok(ended),
    }
}

/// The crate's source, in a place where it can be built.
fn fetch() -> Result<PathBuf> {
    let folder = work()?.join(format!("{CRATE}-{VERSION}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    // Cargo fetches what a package depends on, so there has to be one.
    let asking = work()?.join("asking");
    fs::create_dir_all(asking.join("src"))?;
    fs::write(asking.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"asking\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [dependencies]\n{CRATE} = \"={VERSION}\"\n"
    );
    fs::write(asking.join("Cargo.toml"), manifest)?;
    let told = cargo(&["metadata", "--format-version", "1"]).current_dir(&asking).output()?;
    let told: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let package = told["packages"].as_array().into_iter().flatten().find(|package| package["name"] == CRATE);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.ok_or_else(|| Failure(format!("{CRATE} {VERSION} cannot be fetched")))?;
    let source = PathBuf::from(manifest).parent().map(PathBuf::from).unwrap_or_default();
    // Under another name until it is whole.
    let partly = folder.with_extension("partly");
    if partly.is_dir() {
        fs::remove_dir_all(&partly)?;
    }
    shell::run(Command::new("cp").arg("-r").arg(source).arg(&partly))?;
    // It stands below our workspace and is no part of it.
    let manifest = partly.join("Cargo.toml");
    fs::write(&manifest, fs::read_to_string(&manifest)? + "\n[workspace]\n")?;
    fs::rename(partly, &folder)?;
    Ok(folder)
}

/// `test emulator_tests::cosmos_batch::batch_create ... ok`
fn read(line: &str) -> Option<Ended> {
    let (test, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let outcome = match result.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "ignored" => Outcome::Skipped,
        _ => Outcome::Failed,
    };
    Some(Ended { test: format!("rust::{}", test.trim_end()), outcome, said: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_test_program_says() {
        let outcome = |line: &str| read(line).map(|ended| (ended.test, ended.outcome));
        assert_eq!(outcome("test a::b ... ok"), Some(("rust::a::b".into(), Outcome::Passed)));
        assert_eq!(outcome("test a::b ... FAILED"), Some(("rust::a::b".into(), Outcome::Failed)));
        assert_eq!(outcome("test a::b ... ignored, why"), Some(("rust::a::b".into(), Outcome::Skipped)));
        assert_eq!(outcome("test result: ok. 1 passed"), None);
    }
}
