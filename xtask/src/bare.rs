//! `cargo xtask test --bare [GROUP]`: the same command in a Debian that has Rust and a C compiler, and
//! nothing else.
//!
//! ```text
//!   debootstrap ─▶ target/bare ─▶ clone of HEAD in it ─▶ own mounts and processes, chroot ─▶ cargo xtask …
//! ```
//!
//! It proves that the two commands of the README are enough, and that `needs` names all that is needed: a
//! program that happens to be on a developer's machine is not here. The directory is kept, with what was
//! installed and built in it, so a second run is quick; deleted, it is made again. `MAYFLY_BARE` names
//! another place for it.
//!
//! Rust is the host's, mounted read-only. So are the user's settings for package registries, which therefore
//! are not copied. Processes and mounts are in namespaces of their own: they end with the command, however it
//! ends. What it takes: root, rustup, git, about 15 GB.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    needs::{self, Need},
    shell::{Failure, Result, failure, root, run, target},
    signal,
};

const RELEASE: &str = "bookworm";

/// A C compiler with what it links programs to.
const C_COMPILER: &str = "gcc,libc6-dev";

/// Where the repository is cloned to.
const CLONE: &str = "root/mayfly";

/// Settings that say how package registries and names are reached: files and folders that are copied.
const COPIED: [&str; 8] = [
    "etc/resolv.conf",
    "etc/hosts",
    "etc/apt/sources.list",
    "etc/apt/sources.list.d",
    "etc/apt/apt.conf.d",
    "etc/apt/preferences.d",
    "etc/ssl/certs/ca-certificates.crt",
    "usr/local/share/ca-certificates",
];

/// The user's own, which may hold secrets and are only mounted: below `/`, and below the home directory.
const MOUNTED: [&str; 2] = ["etc/pip.conf", "etc/npmrc"];
const MOUNTED_OF_HOME: [&str; 8] = [
    ".rustup",
    ".cargo/bin",
    ".cargo/config.toml",
    ".npmrc",
    ".config/pip",
    ".config/go/env",
    ".m2/settings.xml",
    ".gitconfig",
];

/// How the variables begin that say how package registries are reached, and our own.
const VARIABLES: [&str; 14] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "GOPROXY",
    "GONOSUMDB",
    "PIP_",
    "NPM_CONFIG_",
    "CARGO_REGISTR",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "SSL_CERT_",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "MAYFLY_",
];

/// Runs `cargo xtask` with these words, without `--bare`, in the directory.
pub fn run_in(words: &[&str]) -> Result<()> {
    if !signal::is_root() {
        return failure(
            "`--bare` makes a system of its own, which only root can: sudo -E env PATH=\"$PATH\" cargo xtask …",
        );
    }
    let bare = env::var_os("MAYFLY_BARE").map_or_else(|| target().join("bare"), PathBuf::from);
    make(&bare)?;
    copy_settings(&bare)?;
    clone(&bare)?;
    let words: Vec<_> = words.iter().filter(|word| **word != "--bare").copied().collect();
    let script = script(&bare, &format!("cd /{CLONE} && exec cargo xtask {}", words.join(" ")))?;
    println!("in {}: cargo xtask {}", bare.display(), words.join(" "));
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", &script]);
    let status = command.status()?;
    if status.success() { Ok(()) } else { failure(format!("in the bare directory: {status}")) }
}

/// Makes the system, unless it is there.
fn make(bare: &Path) -> Result<()> {
    // What debootstrap works in is gone when it has finished.
    if bare.join("etc/debian_version").is_file() && !bare.join("debootstrap").exists() {
        return Ok(());
    }
    needs::have(&[Need::Debootstrap])?;
    if bare.exists() {
        fs::remove_dir_all(bare)?;
    }
    fs::create_dir_all(bare)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={C_COMPILER}"), RELEASE]).arg(bare);
    run(debootstrap.args(mirror()))?;
    // No package may start a server that outlives its installation.
    let policy = bare.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    needs::set_executable(&policy)
}

/// The mirror that this machine takes its own packages from, if it is Debian. debootstrap knows one itself.
fn mirror() -> Option<String> {
    let lists =
        fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|file| file.path());
    let mut lists: Vec<_> = lists.chain(["/etc/apt/sources.list".into()]).collect();
    lists.retain(|path| path.extension().is_some_and(|ending| ending == "list" || ending == "sources"));
    lists.sort();
    let text: String = lists.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_ascii_whitespace).map(|word| word.trim_end_matches('/'));
    words.find(|word| word.starts_with("http") && word.ends_with("/debian")).map(str::to_owned)
}

fn copy_settings(bare: &Path) -> Result<()> {
    for path in COPIED {
        let from = Path::new("/").join(path);
        if from.exists() {
            copy(&from, &bare.join(path))?;
        }
    }
    Ok(())
}

/// Copies a file, or a folder with all in it. What packages have added meanwhile stays.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        let done = fs::copy(from, to);
        return done.map(drop).map_err(|error| Failure(format!("{}: {error}", from.display())));
    }
    for entry in fs::read_dir(from)?.flatten() {
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The commit that is checked out here; what was built of another stays, for cargo to judge.
fn clone(bare: &Path) -> Result<()> {
    let clone = bare.join(CLONE);
    let git = |arguments: &[&str]| {
        // The files belong to whoever works here, and root may look at them.
        let mut command = Command::new("git");
        command.args(["-c", "safe.directory=*"]).args(arguments).current_dir(root());
        command
    };
    let uncommitted = git(&["status", "--porcelain"]).output()?;
    if !uncommitted.stdout.is_empty() {
        println!("changes that are not committed are not tested");
    }
    let head = String::from_utf8(git(&["rev-parse", "HEAD"]).output()?.stdout)?;
    if !clone.join(".git").is_dir() {
        run(git(&["init", "--quiet"]).arg(&clone))?;
    }
    let from = root().display().to_string();
    run(git(&["fetch", "--quiet", &from, "HEAD"]).current_dir(&clone))?;
    run(git(&["checkout", "--quiet", "--force", "--detach", head.trim()]).current_dir(&clone))
}

/// What is run in the namespaces: mounts, then the command in the directory.
fn script(bare: &Path, command: &str) -> Result<String> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_else(|| "/root".into());
    let of_home = |name: &str| match name.split_once('/') {
        _ if name == ".rustup" => env::var_os("RUSTUP_HOME").map_or_else(|| home.join(name), PathBuf::from),
        Some((".cargo", rest)) => {
            env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from).join(rest)
        }
        _ => home.join(name),
    };
    let mut script = String::from("mount --make-rprivate /\n");
    let system = MOUNTED.map(|path| (Path::new("/").join(path), bare.join(path)));
    let user = MOUNTED_OF_HOME.map(|path| (of_home(path), bare.join("root").join(path)));
    for (from, to) in system.into_iter().chain(user).filter(|(from, _)| from.exists()) {
        // Something has to be there to mount it on.
        if from.is_dir() {
            fs::create_dir_all(&to)?;
        } else {
            fs::create_dir_all(to.parent().unwrap_or(&to))?;
            fs::File::options().create(true).append(true).open(&to)?;
        }
        let (from, to) = (quoted(&from), quoted(&to));
        script.push_str(&format!("mount --bind {from} {to}\nmount -o remount,bind,ro {to}\n"));
    }
    if !bare.join("root/.rustup").is_dir() {
        return failure("there is no ~/.rustup to take Rust from");
    }
    let (proc, dev, sys) = (quoted(&bare.join("proc")), quoted(&bare.join("dev")), quoted(&bare.join("sys")));
    script.push_str(&format!(
        "mount -t proc proc {proc}\nmount --rbind /dev {dev}\nmount --rbind /sys {sys}\n"
    ));
    let mut variables = String::new();
    for (name, value) in env::vars_os() {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let known = VARIABLES.iter().any(|begins| name.to_ascii_uppercase().starts_with(begins));
        // A folder of this machine.
        if known && name != "PIP_FIND_LINKS" && name != "MAYFLY_BARE" {
            variables.push_str(&format!(" {}", quoted(format!("{name}={value}").as_ref())));
        }
    }
    let path = "/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    script.push_str(&format!(
        "exec chroot {} env -i HOME=/root PATH={path} LANG=C.UTF-8 TERM=dumb{variables} sh -c {}\n",
        quoted(bare),
        quoted(command.as_ref())
    ));
    Ok(script)
}

/// For the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_gets_a_name_as_it_is() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
