//! `cargo xtask tidy`: the rules of the house that neither the compiler nor clippy keeps.
//!
//! Files open by saying what they are, nothing is left half done, no file grows without end, crates depend on each other
//! downwards only, and what the documents name is there. A test runs the same, so `cargo test` keeps it too.

mod crates;
mod families;
mod names;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    docs,
    shell::{Result, failure, root},
};

/// More than this and some noun in the file wants one of its own. Tests may be as long as they like.
const LINES_MAX: usize = 900;

/// Spelled apart, or this file would be the first to be found.
const UNFINISHED: [&str; 3] = [concat!("to", "do!("), concat!("FIX", "ME"), concat!("TO", "DO")];

/// What is made, or comes from others.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", ".venv", "mayfly-data"];

/// Says everything that is wrong, or that nothing is.
pub fn run() -> Result<()> {
    let problems = problems()?;
    problems.iter().for_each(|problem| println!("{problem}"));
    match problems.len() {
        0 => {
            println!("tidy");
            Ok(())
        }
        n => failure(format!("{n} things are not tidy")),
    }
}

fn problems() -> Result<Vec<String>> {
    let mut files = Vec::new();
    list(root(), &mut files)?;
    let sources = read(&files, "rs")?;
    let documents = read(&files, "md")?;
    let mut problems = Vec::new();
    for (path, text) in &sources {
        source(path, text, &mut problems);
    }
    crates::check(&mut problems)?;
    families::check(&mut problems)?;
    names::check(&documents, &sources, &mut problems);
    if let Err(stale) = docs::check() {
        problems.push(stale.to_string());
    }
    Ok(problems)
}

fn source(path: &Path, text: &str, problems: &mut Vec<String>) {
    let shown = path.display();
    let first = text.lines().next().unwrap_or_default();
    if !first.starts_with("//!") && !first.starts_with("// Generated") {
        problems.push(format!("{shown}: does not open with `//!` and a sentence about what it is"));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = UNFINISHED.iter().find(|word| line.contains(*word)) {
            problems.push(format!("{shown}:{}: `{word}`: finish it, or describe it in an issue", number + 1));
        }
    }
    let lines = text.lines().count();
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    if lines > LINES_MAX && !is_test {
        problems.push(format!(
            "{shown}: {lines} lines; over {LINES_MAX}, look for the noun that wants to move out"
        ));
    }
}

/// All files below `folder`, by their path in the repository.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                list(&entry.path(), files)?;
            }
        } else if let Ok(inside) = entry.path().strip_prefix(root()) {
            files.push(inside.to_owned());
        }
    }
    files.sort();
    Ok(())
}

fn read(files: &[PathBuf], extension: &str) -> Result<Vec<(PathBuf, String)>> {
    let wanted = files.iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.map(|path| Ok((path.clone(), fs::read_to_string(root().join(path))?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let problems = problems().unwrap_or_else(|failure| vec![failure.to_string()]);
        assert!(problems.is_empty(), "\n{}", problems.join("\n"));
    }

    fn check_source(path: &str, text: &str, expected: usize) {
        let mut problems = Vec::new();
        source(Path::new(path), text, &mut problems);
        assert_eq!(problems.len(), expected, "{problems:?}");
    }

    #[test]
    fn sources_are_looked_at() {
        check_source("a/src/b.rs", "//! What it is.\n", 0);
        check_source("a/src/b.rs", "use std::fs;\n", 1);
        check_source("a/src/b.rs", &format!("//! What it is.\n// {}\n", UNFINISHED[1]), 1);
        let long = format!("//! What it is.\n{}", "\n".repeat(LINES_MAX));
        check_source("a/src/b.rs", &long, 1);
        check_source("a/tests/it/b.rs", &long, 0);
        check_source("a/src/b/tests.rs", &long, 0);
    }
}
