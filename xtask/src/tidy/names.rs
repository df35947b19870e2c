//! What the documents name is there: files, links, and functions written as code with `::` or `()`.
//!
//! A document says `Engine::transact` or `engine/src/write.rs`; a rename that forgets it is found here. Names are looked
//! for by their declaration anywhere in the sources, so this knows that something of that name exists, not where.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use crate::shell::root;

type Files = [(PathBuf, String)];

/// Words that stand before a declared name.
const DECLARING: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];

/// First parts of names that are not ours.
const FOREIGN: [&str; 6] = ["std", "tokio", "azure", "hyper", "proptest", "fjall"];

/// Looks at every document.
pub fn check(documents: &Files, sources: &Files, problems: &mut Vec<String>) {
    let mut declared = HashSet::new();
    sources.iter().for_each(|(path, text)| declare(path, text, &mut declared));
    for (path, text) in documents {
        for (number, line) in prose(text) {
            for name in names(line).into_iter().filter(|name| !is_declared(name, &declared)) {
                problems.push(format!("{}:{number}: there is no `{name}` in the sources", path.display()));
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for target in links(line).into_iter().filter(|target| !root().join(folder).join(target).exists())
            {
                problems.push(format!("{}:{number}: the link to `{target}` leads nowhere", path.display()));
            }
            for file in files(line).into_iter().filter(|file| !root().join(file).exists()) {
                problems.push(format!("{}:{number}: there is no file {file}", path.display()));
            }
        }
    }
}

/// The lines outside of code blocks, which may show anything.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!fence && !inside).then_some((number + 1, line))
    })
}

/// The pieces between backquotes.
fn codes(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// `a::b` and `f()`; anything with other characters is no name.
fn names(line: &str) -> Vec<&str> {
    let plain = |code: &&str| {
        let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
        code.split("::").all(word)
    };
    let candidates = codes(line).filter_map(|code| match code.strip_suffix("()") {
        // In capitals it is a function of the query language.
        Some(function) => function.contains(char::is_lowercase).then_some(function),
        None => code.contains("::").then_some(code),
    });
    candidates.filter(plain).collect()
}

/// Paths of source files, with at least one folder. Documents are linked to.
fn files(line: &str) -> Vec<&str> {
    let is_path = |code: &&str| {
        code.contains('/') && [".rs", ".toml", ".py", ".js"].iter().any(|end| code.ends_with(end))
    };
    let plain =
        |code: &&str| !code.starts_with(['/', '.', '~']) && !code.contains(['<', '{', '*', ' ', '…', 'N']);
    codes(line).filter(is_path).filter(plain).collect()
}

/// `[text](target)` within the repository.
fn links(line: &str) -> Vec<&str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let inside = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    inside.filter_map(|target| target.split('#').next()).collect()
}

fn is_declared(name: &str, declared: &HashSet<&str>) -> bool {
    let mut parts = name.split("::").peekable();
    match parts.peek() {
        Some(first) if FOREIGN.contains(first) => true,
        // A crate is declared by its folder.
        _ => parts.all(|part| declared.contains(part) || root().join(part).join("Cargo.toml").is_file()),
    }
}

/// Collects the names that a source file declares; variants and fields count.
fn declare<'a>(path: &'a Path, text: &'a str, declared: &mut HashSet<&'a str>) {
    declared.extend(path.file_stem().and_then(|stem| stem.to_str()));
    for line in text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")) {
        let mut words =
            line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!')).filter(|w| !w.is_empty());
        while let Some(word) = words.next() {
            if DECLARING.contains(&word) {
                declared.extend(words.next());
            }
        }
        let end = line.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(line.len());
        if line[end..].starts_with([',', '(', ' ', ':']) || line[end..].is_empty() {
            declared.insert(&line[..end]);
        }
        if let Some(field) = line.strip_prefix("pub ") {
            declared.extend(field.split(':').next());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_links_and_files_are_found_in_a_line() {
        let line = "`Engine::read` asks `is_live()`, see [the rules](ttl.md#rules) and `engine/src/ttl.rs`; `a + b`.";
        assert_eq!(names(line), ["Engine::read", "is_live"]);
        assert_eq!(links(line), ["ttl.md"]);
        assert_eq!(files(line), ["engine/src/ttl.rs"]);
    }

    #[test]
    fn declarations_are_found_in_a_source() {
        let mut declared = HashSet::new();
        let text =
            "pub(crate) async fn run(x: u8) {}\nenum E {\n    Variant,\n    Other(u8),\n}\n// fn not_me()\n";
        declare(Path::new("a/src/file.rs"), text, &mut declared);
        for name in ["run", "E", "Variant", "Other", "file"] {
            assert!(declared.contains(name), "{name}");
        }
        assert!(!declared.contains("not_me"));
    }

    #[test]
    fn code_blocks_are_left_alone() {
        let lines: Vec<_> = prose("a\n```\nb\n```\nc").collect();
        assert_eq!(lines, [(1, "a"), (5, "c")]);
    }
}
