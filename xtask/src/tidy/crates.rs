//! Which crate may depend on which. Cargo keeps what the manifests say; this keeps the manifests.

use std::fs;

use toml::{Table, Value};

use crate::shell::{Failure, Result, root};

/// The crates from the bottom up. What only tests use is not limited: a crate may test itself with those above it.
const MAY_USE: [(&str, &[&str]); 11] = [
    ("mayfly-value", &[]),
    ("mayfly-storage", &[]),
    ("mayfly-engine", &["mayfly-storage", "mayfly-value"]),
    ("mayfly-sql", &["mayfly-value"]),
    ("mayfly-cosmos", &["mayfly-engine", "mayfly-sql", "mayfly-value"]),
    ("mayfly-mongo", &["mayfly-engine", "mayfly-value"]),
    ("mayfly-portal", &[]),
    (
        "mayfly",
        &[
            "mayfly-cosmos",
            "mayfly-mongo",
            "mayfly-portal",
            "mayfly-engine",
            "mayfly-storage",
            "mayfly-value",
        ],
    ),
    ("mayfly-testkit", &["mayfly-engine", "mayfly-storage", "mayfly-value"]),
    (
        "mayfly-bench",
        &[
            "mayfly",
            "mayfly-cosmos",
            "mayfly-sql",
            "mayfly-engine",
            "mayfly-storage",
            "mayfly-testkit",
            "mayfly-value",
        ],
    ),
    ("mayfly-xtask", &["mayfly-cosmos", "mayfly-mongo", "mayfly-sql"]),
];

/// Looks at every member of the workspace.
pub fn check(problems: &mut Vec<String>) -> Result<()> {
    let workspace = manifest("Cargo.toml")?;
    let members = workspace.get("workspace").and_then(|table| table.get("members")).and_then(Value::as_array);
    let members = members.ok_or_else(|| Failure("Cargo.toml lists no members".into()))?;
    for member in members.iter().filter_map(Value::as_str) {
        let found = manifest(&format!("{member}/Cargo.toml"))?;
        let package = found.get("package").and_then(|table| table.get("name")).and_then(Value::as_str);
        check_crate(package.unwrap_or(member), &dependencies(&found), problems);
    }
    Ok(())
}

fn check_crate(package: &str, dependencies: &[&str], problems: &mut Vec<String>) {
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == package) else {
        problems.push(format!("{package}: say in xtask/src/tidy/crates.rs which crates it may depend on"));
        return;
    };
    for dependency in dependencies.iter().filter(|name| name.starts_with("mayfly")) {
        if !allowed.contains(dependency) {
            problems.push(format!("{package} depends on {dependency}: dependencies point down only"));
        }
    }
}

fn manifest(path: &str) -> Result<Table> {
    Ok(fs::read_to_string(root().join(path))?.parse()?)
}

/// The names in all tables of dependencies but those for tests.
fn dependencies(manifest: &Table) -> Vec<&str> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = [manifest].into_iter().chain(targets.filter_map(|(_, table)| table.as_table()));
    let named = tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|name| table.get(name)));
    named.flatten().filter_map(Value::as_table).flatten().map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_points_up_is_found() {
        let manifest: Table =
            "[dependencies]\nmayfly-engine.workspace = true\n[dev-dependencies]\nmayfly-sql = '1'\n\
                               [target.'cfg(unix)'.dependencies]\nmayfly-value = '1'\n"
                .parse()
                .unwrap();
        assert_eq!(dependencies(&manifest), ["mayfly-engine", "mayfly-value"]);
        let mut problems = Vec::new();
        check_crate("mayfly-sql", &dependencies(&manifest), &mut problems);
        assert_eq!(problems, ["mayfly-sql depends on mayfly-engine: dependencies point down only"]);
    }
}
