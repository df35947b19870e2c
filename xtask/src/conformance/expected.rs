//! Which tests fail, and why that is known: `tests/conformance/expected.toml`.

use std::{collections::BTreeMap, fs};

use super::folder;
use crate::shell::{Count, Result, failure};

/// How a test ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its name, with the file it is in.
    pub test: String,
    pub outcome: Outcome,
    /// What it said when it failed.
    pub said: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// How the reason of a test begins that passes or fails as it pleases.
const VARIES: &str = "varies: ";

/// Known failures: the reason by the test's name.
pub struct Expected(BTreeMap<String, String>);

/// How many passed and failed; those that were skipped are neither.
pub fn count(tests: &[Ended]) -> Count {
    let number = |outcome| tests.iter().filter(|test| test.outcome == outcome).count() as u64;
    Count { passed: number(Outcome::Passed), failed: number(Outcome::Failed) }
}

impl Expected {
    pub fn read() -> Result<Self> {
        Ok(Self(toml::from_str(&fs::read_to_string(folder().join("expected.toml"))?)?))
    }

    /// Fails if a test ended otherwise than the list says.
    pub fn compare(&self, tests: &[Ended]) -> Result<()> {
        let problems = self.problems(tests);
        problems.iter().for_each(|problem| println!("{problem}"));
        let known = tests.iter().filter(|test| test.outcome == Outcome::Failed).count();
        match problems.len() {
            0 if tests.is_empty() => failure("no test was run"),
            0 => {
                println!("{} as expected, {known} known failures among them", count(tests));
                Ok(())
            }
            n => failure(format!("{n} tests did not end as tests/conformance/expected.toml says")),
        }
    }

    fn problems(&self, tests: &[Ended]) -> Vec<String> {
        let problem = |test: &Ended| match (test.outcome, self.0.get(&test.test)) {
            (Outcome::Failed, None) => Some(format!("failed: {}\n        {}", test.test, test.said)),
            (Outcome::Passed, Some(reason)) if !reason.starts_with(VARIES) => {
                Some(format!("passes now, take it off the list: {} ({reason})", test.test))
            }
            _ => None,
        };
        tests.iter().filter_map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_failure_and_a_failure_that_is_gone_are_problems() {
        let expected =
            Expected(BTreeMap::from([("known".into(), "why".into()), ("gone".into(), "why".into())]));
        let ended = |test: &str, outcome| Ended { test: test.into(), outcome, said: "because".into() };
        let tests = [
            ended("good", Outcome::Passed),
            ended("known", Outcome::Failed),
            ended("gone", Outcome::Passed),
            ended("new", Outcome::Failed),
            ended("left out", Outcome::Skipped),
        ];
        assert_eq!(
            expected.problems(&tests),
            ["passes now, take it off the list: gone (why)", "failed: new\n        because"]
        );
        assert_eq!(count(&tests), Count { passed: 2, failed: 2 });
    }
}
