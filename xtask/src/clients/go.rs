//! The Go program: `tests/e2e-go`.

use crate::{
    needs,
    servers::Servers,
    shell::{Count, Result, root, run_tests},
};

/// Runs the tests.
pub fn run(servers: &Servers) -> Result<Count> {
    let mut suite = needs::go();
    suite.args(["test", "-count=1", "-v", "./..."]).current_dir(root().join("tests/e2e-go"));
    run_tests(servers.described(&mut suite), results)
}

/// `    --- PASS: TestItems/HTTPS (0.04s)`
fn results(line: &str) -> Option<Count> {
    let (result, _) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    match result {
        "PASS" => Some(Count { passed: 1, failed: 0 }),
        "FAIL" => Some(Count { passed: 0, failed: 1 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_says() {
        assert_eq!(results("    --- PASS: TestItems/HTTPS (0.04s)"), Some(Count { passed: 1, failed: 0 }));
        assert_eq!(results("--- FAIL: TestItems (0.04s)"), Some(Count { passed: 0, failed: 1 }));
        assert_eq!(results("=== RUN   TestItems"), None);
    }
}
