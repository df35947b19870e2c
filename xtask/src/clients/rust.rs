//! The Rust program: `tests/e2e-rust`. A workspace of its own, because the driver brings its own versions of much that we use.

use crate::{
    servers::Servers,
    shell::{Count, Result, cargo, root, run_tests, target},
};

/// Runs the tests, one after the other: they share a clock.
pub fn run(servers: &Servers) -> Result<Count> {
    let mut suite = cargo(&["test", "--quiet", "--locked", "--target-dir"]);
    suite
        .arg(target().join("e2e-rust"))
        .args(["--", "--test-threads=1"])
        .current_dir(root().join("tests/e2e-rust"));
    run_tests(servers.described(&mut suite), results)
}

/// `test result: ok. 4 passed; 0 failed; …`
fn results(line: &str) -> Option<Count> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ").map(|part| part.split(' ').next().unwrap_or_default().parse());
    Some(Count { passed: counts.next()?.ok()?, failed: counts.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_says() {
        let line =
            "test result: ok. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.12s";
        assert_eq!(results(line), Some(Count { passed: 4, failed: 1 }));
        assert_eq!(results("running 4 tests"), None);
    }
}
