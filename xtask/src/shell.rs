//! Running programs: say what is run, show what it says, count what it counted.

use std::{
    fmt,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Why a task failed, for the person at the terminal.
#[derive(Debug)]
pub struct Failure(pub String);

pub type Result<T> = std::result::Result<T, Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every error of the standard library ends a task, with its text.
impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// An error with what was being done.
pub fn failure<T>(text: impl Into<String>) -> Result<T> {
    Err(Failure(text.into()))
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where everything goes that is made and not kept.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs us.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a program to its end; anything but success is a failure.
pub fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { failure(format!("`{}`: {status}", shown(command))) }
}

/// Tests that passed and tests that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
}

impl Count {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs a test program, showing its output and adding up the lines that `count` understands.
pub fn run_tests(command: &mut Command, mut count: impl FnMut(&str) -> Option<Count>) -> Result<Count> {
    println!("$ {}", shown(command));
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_run(command, &error))?;
    let mut sum = Count::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            count(&line).into_iter().for_each(|found| sum.add(found));
        }
    }
    let status = child.wait()?;
    match status.success() {
        true if sum.passed == 0 => failure(format!("`{}` ran no test", shown(command))),
        true if sum.failed == 0 => Ok(sum),
        _ => failure(format!("`{}`: {sum}; {status}", shown(command))),
    }
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words
        .map(|word| {
            let word = word.to_string_lossy();
            let path = Path::new(word.as_ref());
            // Programs by their name, files by their place in the repository.
            match path.strip_prefix(root()) {
                Ok(inside) => inside.display().to_string(),
                Err(_) if path.is_absolute() && command.get_program() == word.as_ref() => {
                    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
                }
                Err(_) => word.into_owned(),
            }
        })
        .collect();
    words.join(" ")
}

fn cannot_run(command: &Command, error: &std::io::Error) -> Failure {
    Failure(format!("`{}` cannot be run: {error}", command.get_program().to_string_lossy()))
}
