//! Every key family of `engine/src/keys.rs` has its row in `docs/format.md`, with its byte.

use std::fs;

use crate::shell::{Result, root};

/// Compares the two files.
pub fn check(problems: &mut Vec<String>) -> Result<()> {
    let keys = fs::read_to_string(root().join("engine/src/keys.rs"))?;
    let document = fs::read_to_string(root().join("docs/format.md"))?;
    let families = families(&keys);
    if families.is_empty() {
        problems
            .push("engine/src/keys.rs: no families found; has the enum been written in another way?".into());
    }
    for (name, byte) in families {
        if !document.contains(&format!("| {byte} | `{name}` |")) {
            problems.push(format!("docs/format.md: the table of families has no row for `{name}`, {byte}"));
        }
    }
    Ok(())
}

/// `Name = 0x10,` in lines of their own: names and the digits of their bytes.
fn families(source: &str) -> Vec<(&str, &str)> {
    let variants = source.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = 0x"));
    variants.filter(|(name, _)| name.chars().all(char::is_alphanumeric)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_found() {
        let source = "pub enum Family {\n    /// One.\n    Feed = 0x10,\n}\nconst A: u8 = 0x80;\n";
        assert_eq!(families(source), [("Feed", "10")]);
    }
}
