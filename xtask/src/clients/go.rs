//! The Go program: `tests/e2e-go`.
//!
//! The SDK wants a newer Go than distributions have. Where there is only an old one, it fetches the new one from the same
//! place as every module, and the sum written here says that it is the right one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    servers::Servers,
    shell::{Count, Failure, Result, failure, need, root, run_tests, target},
};

/// What the SDK asks for, as major and minor.
const GO_MIN: (u32, u32) = (1, 25);

/// The Go to fetch where there is an older one, and the sum of its files in the form of `go.sum`.
const TOOLCHAIN: &str = "golang.org/toolchain@v0.0.1-go1.25.5.linux-amd64";
const TOOLCHAIN_SUM: &str = "h1:IkknVKy/4hLMR+ZwWfP4Oqhjz2sKqNtEXz1meP8P3Nc=";

/// A Go that can build the tests.
pub struct Go(PathBuf);

/// Finds one, or gets one.
pub fn install() -> Result<Go> {
    need("go", "version", &["golang", "ca-certificates"])?;
    let version = Command::new("go").arg("version").output()?.stdout;
    match minor_of(&String::from_utf8_lossy(&version)) {
        Some(version) if version >= GO_MIN => Ok(Go("go".into())),
        _ => fetch(),
    }
}

impl Go {
    /// Runs the tests.
    pub fn run(&self, servers: &Servers) -> Result<Count> {
        let mut suite = command(&self.0);
        suite.args(["test", "-count=1", "-v", "./..."]).current_dir(root().join("tests/e2e-go"));
        run_tests(servers.described(&mut suite), results)
    }
}

fn command(go: &Path) -> Command {
    let mut command = Command::new(go);
    // `go.sum` has the sums of everything; no other authority need be asked.
    command.env("GOSUMDB", "off").env("GOTOOLCHAIN", "local").env_remove("GOROOT");
    command
}

/// `go version go1.25.5 linux/amd64`
fn minor_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_ascii_whitespace().nth(2)?.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn fetch() -> Result<Go> {
    let cache = target().join("go");
    fs::create_dir_all(&cache)?;
    let mut download = command(Path::new("go"));
    download.args(["mod", "download", "-json", TOOLCHAIN]).current_dir(&cache);
    // Writable, for it has to be put right below.
    let answer = download.env("GOMODCACHE", &cache).env("GOFLAGS", "-modcacherw").output()?;
    let told: serde_json::Value = serde_json::from_slice(&answer.stdout)?;
    if told["Sum"] != TOOLCHAIN_SUM {
        return failure(format!("{TOOLCHAIN} is not what it should be: {told}"));
    }
    let folder = told["Dir"].as_str().ok_or_else(|| Failure(format!("{TOOLCHAIN}: {told}")))?;
    make_usable(Path::new(folder))?;
    Ok(Go(Path::new(folder).join("bin/go")))
}

/// A module's archive has neither executable files nor a `go.mod` below its root.
fn make_usable(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            make_usable(&path)?;
        } else if entry.file_name() == "_go.mod" {
            fs::rename(&path, path.with_file_name("go.mod"))?;
        } else if path.components().any(|part| part.as_os_str() == "bin" || part.as_os_str() == "tool") {
            set_executable(&path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn set_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn set_executable(_: &Path) -> Result<()> {
    Ok(())
}

/// `    --- PASS: TestItems/HTTPS (0.04s)`
fn results(line: &str) -> Option<Count> {
    let (result, _) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    match result {
        "PASS" => Some(Count { passed: 1, failed: 0 }),
        "FAIL" => Some(Count { passed: 0, failed: 1 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_says() {
        assert_eq!(minor_of("go version go1.25.5 linux/amd64"), Some((1, 25)));
        assert_eq!(minor_of("command not found"), None);
        assert_eq!(results("    --- PASS: TestItems/HTTPS (0.04s)"), Some(Count { passed: 1, failed: 0 }));
        assert_eq!(results("--- FAIL: TestItems (0.04s)"), Some(Count { passed: 0, failed: 1 }));
        assert_eq!(results("=== RUN   TestItems"), None);
    }
}
