//! The program: its arguments, its environment, its exit codes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Output, Stdio};

/// The program with nothing in its environment.
fn mayfly(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn printed(command: &mut Command) -> String {
    let (code, stdout, stderr) = run(command);
    assert_eq!(code, 0, "{stderr}");
    stdout
}

#[test]
fn each_layer_goes_over_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mayfly.toml");
    std::fs::write(&file, "port = 1\ndata-dir = 'from-file'\nthrottle = true\n").unwrap();
    let file = file.to_str().unwrap();
    let print = |arguments: &[&str], vars: &[(&str, &str)]| {
        printed(mayfly(arguments).arg("--print-config").envs(vars.iter().copied()))
    };
    assert!(print(&[], &[]).contains("\nport = 8081\n"));
    let config = ("MAYFLY_CONFIG", file);
    assert!(print(&["--config", file], &[]).contains("\nport = 1\n"));
    assert!(print(&[], &[config, ("PORT", "2")]).contains("\nport = 2\n"));
    assert!(print(&[], &[config, ("PORT", "2"), ("MAYFLY_PORT", "3")]).contains("\nport = 3\n"));
    let all = print(&["serve", "--port", "4"], &[config, ("PORT", "2"), ("MAYFLY_PORT", "3")]);
    for line in ["port = 4", "data-dir = \"from-file\"", "throttle = true", "dev-clock = false"] {
        assert!(all.lines().any(|l| l == line), "{line} is missing in\n{all}");
    }
}

#[test]
fn switches_take_a_value_or_none() {
    for (arguments, vars, expected) in [
        (vec!["--dev-clock"], vec![], true),
        (vec!["--dev-clock=false"], vec![("MAYFLY_DEV_CLOCK", "1")], false),
        (vec![], vec![("MAYFLY_DEV_CLOCK", "on")], true),
        (vec![], vec![("MAYFLY_DEV_CLOCK", "")], false),
    ] {
        let text = printed(mayfly(&arguments).arg("--print-config").envs(vars.clone()));
        assert!(text.contains(&format!("dev-clock = {expected}\n")), "{arguments:?} {vars:?}\n{text}");
    }
}

#[test]
fn refusals_name_the_reason_and_exit_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mayfly.toml");
    std::fs::write(&file, "prot = 8081\n").unwrap();
    for (arguments, phrase) in [
        (vec!["--config", file.to_str().unwrap()], "unknown field `prot`"),
        (vec!["--config", "/nowhere.toml"], "/nowhere.toml"),
        (vec!["--host", "0.0.0.0"], "--allow-emulator-key"),
        (vec!["--store", "postgres://u:secret@h/db", "--dev-clock"], "not agree on the time"),
        (vec!["--key", "!"], "--key"),
        (vec!["--port", "70000"], "--port"),
        (vec!["check", "--data-dir", "/nowhere"], "no Mayfly data in /nowhere"),
    ] {
        let (code, stdout, stderr) = run(&mut mayfly(&arguments));
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains(phrase), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

#[test]
fn help_shows_flags_with_their_variables_and_no_keys() {
    let help = printed(mayfly(&["--help"]).env("MAYFLY_KEY", "c2VjcmV0"));
    for phrase in ["--host", "MAYFLY_HOST", "--durability", "MAYFLY_READONLY_KEY", "check"] {
        assert!(help.contains(phrase), "{phrase} is missing in\n{help}");
    }
    assert!(!help.contains("c2VjcmV0"), "{help}");
    assert!(printed(&mut mayfly(&["--version"])).starts_with("mayfly "));
}

#[cfg(unix)]
#[test]
fn runs_until_sigterm() {
    let mut child =
        mayfly(&["--port", "0", "--mongo-port", "0", "--store", "memory", "--log-format", "json"])
            .env("ENABLE_EXPLORER", "false")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut banner = String::new();
    while !banner.ends_with("Started\r\n") {
        assert_ne!(stdout.read_line(&mut banner).unwrap(), 0, "{banner}");
    }
    // By a system call: small systems have no program `kill`.
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    for phrase in ["ENABLE_EXPLORER is an emulator setting", "stopped"] {
        assert!(log.contains(phrase), "{phrase} is missing in\n{log}");
    }
    assert!(log.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{log}");
}

/// Allocations are a part of every request's cost. Whether the allocator has taken its place is decided when the program is
/// linked, and nothing else would tell.
#[cfg(unix)]
#[test]
fn the_allocator_has_taken_its_place() {
    let (code, _, stderr) = run(mayfly(&["--version"]).env("MIMALLOC_VERBOSE", "1"));
    assert_eq!(code, 0);
    let pages = stderr.lines().find_map(|line| line.trim().strip_prefix("pages")?.trim().strip_prefix(':'));
    let peak = pages.and_then(|counts| counts.split_whitespace().next()?.parse::<u32>().ok());
    assert!(peak.is_some_and(|pages| pages > 0), "{stderr}");
}
