//! Golden scripts: what filters, updates, expressions and stages answer, one line after another.
//!
//! ```text
//! # A comment.
//! docs [{_id: 1, a: 1}, {_id: 2, a: [1, 2]}]
//! > match {a: 1}
//! 1 2
//! ```
//!
//! Every command starts from the documents of the last `docs` line, so cases do not touch each other. The
//! answers were given by MongoDB 8.2: `UPDATE=1 MONGOD=host:port` writes them into the files, `MONGOD=host:port`
//! alone compares them with a server, and the fast set compares them with this crate.

use std::path::{Path, PathBuf};

use crate::literal;
use crate::oracle::Oracle;
use crate::subject::{Command, Ours, Subject};

/// What a script says after a command, or wherever nothing is asked.
struct Case {
    /// The command, without its mark.
    command: String,
    line: usize,
    answer: Vec<String>,
}

fn scripts() -> Vec<PathBuf> {
    fn list(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { list(&path, files) } else { files.push(path) }
        }
    }
    let mut files = Vec::new();
    list(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts"), &mut files);
    files.sort();
    if let Ok(only) = std::env::var("ONLY") {
        files.retain(|path| path.to_string_lossy().contains(&only));
    }
    files
}

/// Runs a script on a subject; gives back the differences and the script with the answers given now.
fn run(path: &Path, subject: &mut dyn Subject) -> (Vec<String>, String, usize) {
    let text = std::fs::read_to_string(path).expect("a script");
    let (mut differences, mut fresh, mut count) = (Vec::new(), String::new(), 0);
    let lines = text.lines().enumerate();
    let mut case: Option<Case> = None;
    let mut finish = |case: Option<Case>, subject: &mut dyn Subject, fresh: &mut String| {
        let Some(case) = case else { return };
        count += 1;
        let answer = subject.answer(&Command::parse(&case.command));
        if answer != case.answer {
            differences.push(format!(
                "{}:{}: {}\n  expected {}\n  answered {}",
                path.file_name().unwrap_or_default().to_string_lossy(),
                case.line,
                case.command,
                case.answer.join("\n           "),
                answer.join("\n           ")
            ));
        }
        for line in answer {
            *fresh += &format!("{line}\n");
        }
    };
    for (number, line) in lines {
        if let Some(command) = line.strip_prefix("> ") {
            finish(case.take(), subject, &mut fresh);
            fresh += &format!("{line}\n");
            case = Some(Case { command: command.to_string(), line: number + 1, answer: Vec::new() });
        } else if line.is_empty() || line.starts_with('#') || line.starts_with("docs ") {
            finish(case.take(), subject, &mut fresh);
            fresh += &format!("{line}\n");
            if let Some(rest) = line.strip_prefix("docs ") {
                let (name, list) = rest.trim().split_at(rest.trim().find('[').expect("documents"));
                let name = if name.trim().is_empty() { "c" } else { name.trim() };
                let (documents, _) = literal::parse(list);
                let documents = documents.as_array().expect("an array").into_iter();
                let documents =
                    documents.map(|d| d.expect("a value").as_document().expect("a document").to_owned());
                subject.load(name, documents.collect());
            }
        } else if let Some(case) = &mut case {
            case.answer.push(line.to_string());
        } else {
            panic!("{}:{}: neither a command nor an answer", path.display(), number + 1);
        }
    }
    finish(case, subject, &mut fresh);
    (differences, fresh, count)
}

#[test]
fn scripts_answer_as_written() {
    let (mut differences, mut count) = (Vec::new(), 0);
    for path in scripts() {
        let (found, _, cases) = run(&path, &mut Ours::default());
        differences.extend(found);
        count += cases;
    }
    assert!(
        differences.is_empty(),
        "{} of {count} cases differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(count > 0, "there are scripts");
}

/// On demand: the same scripts on a real server. With `UPDATE` set its answers become the expected ones.
#[test]
#[ignore = "needs a MongoDB at MONGOD"]
fn scripts_answer_as_a_real_server_does() {
    let mut oracle = Oracle::connect().expect("MONGOD names a server");
    let mut differences = Vec::new();
    for path in scripts() {
        let (found, fresh, _) = run(&path, &mut oracle);
        if std::env::var("UPDATE").is_ok() {
            std::fs::write(&path, fresh).expect("the script can be written");
        } else {
            differences.extend(found);
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// On demand: what the server at MONGOD answers to the commands in the file PROBE.
#[test]
#[ignore = "needs a MongoDB at MONGOD and a file PROBE"]
fn probe() {
    let mut oracle = Oracle::connect().expect("MONGOD names a server");
    let path = PathBuf::from(std::env::var("PROBE").expect("PROBE names a script"));
    print!("{}", run(&path, &mut oracle).1);
}
