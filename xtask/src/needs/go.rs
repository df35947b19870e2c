//! Go: the machine's, or else one from the module proxy in `target/go`.
//!
//! The SDK wants a newer Go than distributions have. An old one can fetch a new one from the same place as
//! every module, and the sum written here says that it is the right one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::shell::{Failure, Result, failure, target};

/// What the SDK asks for, as major and minor.
const GO_MIN: (u32, u32) = (1, 25);

/// The Go to fetch where there is an older one, and the sum of its files in the form of `go.sum`.
const TOOLCHAIN: &str = "golang.org/toolchain@v0.0.1-go1.25.5.linux-amd64";
const TOOLCHAIN_SUM: &str = "h1:IkknVKy/4hLMR+ZwWfP4Oqhjz2sKqNtEXz1meP8P3Nc=";

/// The one that was fetched, once it is usable.
fn fetched() -> PathBuf {
    target().join("go/usable/bin/go")
}

pub fn is_there() -> bool {
    version_of(&mut go()).is_some_and(|version| version >= GO_MIN)
}

/// Whether there is a Go that can fetch another.
pub fn can_fetch() -> bool {
    version_of(&mut command(Path::new("go"))).is_some()
}

/// `go`, by what `go.mod` and `go.sum` say and nothing else.
pub fn go() -> Command {
    if fetched().is_file() { command(&fetched()) } else { command(Path::new("go")) }
}

fn command(go: &Path) -> Command {
    let mut command = Command::new(go);
    // `go.sum` has the sums of everything; no other authority need be asked.
    command.env("GOSUMDB", "off").env("GOTOOLCHAIN", "local").env_remove("GOROOT");
    command
}

/// `go version go1.25.5 linux/amd64`
fn version_of(go: &mut Command) -> Option<(u32, u32)> {
    let output = go.arg("version").output().ok()?;
    super::version(String::from_utf8_lossy(&output.stdout).split_ascii_whitespace().nth(2)?)
}

/// Fetches it with the old one.
pub fn install() -> Result<()> {
    if is_there() {
        return Ok(());
    }
    println!("installing from Go's module proxy, below {}: {TOOLCHAIN}", target().display());
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
    let usable = cache.join("usable");
    if usable.exists() {
        fs::remove_dir_all(&usable)?;
    }
    // Moved last: what is there is whole.
    Ok(fs::rename(folder, usable)?)
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
pub fn set_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
pub fn set_executable(_: &Path) -> Result<()> {
    Ok(())
}
