//! `cargo xtask test [GROUP]`: what must hold before anything is merged, and all that CI runs.

use std::time::Duration;

use crate::{
    clients, conformance, crash, docs,
    machine::Stopwatch,
    mongo, mongo_tools,
    needs::{self, Need},
    portal, scale, sdk,
    shell::{Count, Failure, Result, cargo, run, run_tests},
    tidy,
};

struct Group {
    name: &'static str,
    what: &'static str,
    needs: &'static [Need],
    run: fn() -> Result<String>,
    runs: Runs,
}

/// When a group runs if all are asked for.
enum Runs {
    Always,
    /// Another group runs the same tests.
    Within(&'static str),
    /// It takes long, or machines differ too much in what they offer: only by its name.
    Asked,
}

static GROUPS: [Group; 11] = [
    Group {
        name: "unit",
        what: "formatting, lints, tidy, all Rust tests",
        needs: &[Need::Rustfmt, Need::Clippy],
        run: unit,
        runs: Runs::Always,
    },
    Group { name: "scripts", what: "golden scripts", needs: &[], run: scripts, runs: Runs::Within("unit") },
    Group {
        name: "crash",
        what: "kill -9 under load, again and again",
        needs: &[],
        run: crash::run,
        runs: Runs::Always,
    },
    Group {
        name: "scale",
        what: "several nodes on PostgreSQL servers",
        needs: &[Need::Postgres, Need::Python],
        run: scale::run,
        runs: Runs::Always,
    },
    Group {
        name: "patroni",
        what: "nodes on a pair that Patroni fails over, minutes long",
        needs: &[Need::Postgres, Need::Etcd, Need::Patroni],
        run: scale::patroni::run,
        runs: Runs::Asked,
    },
    Group {
        name: "sdk",
        what: "the Python and JavaScript SDKs",
        needs: &[Need::Python, Need::Node],
        run: sdk::run,
        runs: Runs::Always,
    },
    Group {
        name: "mongo",
        what: "MongoDB's drivers for Python and JavaScript, mongoose",
        needs: &[Need::Python, Need::Node],
        run: mongo::run,
        runs: Runs::Always,
    },
    Group {
        name: "mongo-tools",
        what: "mongodump, mongorestore, mongoexport, mongoimport",
        needs: &[Need::Python, Need::Node],
        run: mongo_tools::run,
        runs: Runs::Asked,
    },
    Group {
        name: "clients",
        what: "the Java and Go SDKs, MongoDB's drivers for Java, Go and Rust, Spring Data",
        needs: &[Need::Go, Need::Java, Need::Maven],
        run: clients::run,
        runs: Runs::Always,
    },
    Group {
        name: "conformance",
        what: "quick tests of the Python SDK's own",
        needs: &[Need::Python],
        run: conformance::quick,
        runs: Runs::Always,
    },
    Group {
        name: "portal",
        what: "the web portal, in a browser",
        needs: &[Need::Node, Need::Chromium],
        run: portal::test,
        runs: Runs::Always,
    },
];

/// Every group, the quick ones first. What cannot be had is said before any of them runs.
pub fn all() -> Result<()> {
    needs(None)?;
    let mut lines = Vec::new();
    for group in &GROUPS {
        match group.runs {
            Runs::Within(other) => lines.push(format!("{:11} in {other}", group.name)),
            Runs::Asked => lines.push(format!("{0:11} not run: `cargo xtask test {0}` does", group.name)),
            Runs::Always => lines.push(timed(group)?),
        }
    }
    println!("\nAll groups passed.");
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// One group by name.
pub fn group(name: &str) -> Result<()> {
    println!("\n{}", timed(find(name)?)?);
    Ok(())
}

/// Installs what a group needs, or what all need that run when all are asked for.
pub fn needs(name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        return needs::have(find(name)?.needs);
    }
    let all = GROUPS.iter().filter(|group| matches!(group.runs, Runs::Always));
    needs::have(&all.flat_map(|group| group.needs).copied().collect::<Vec<_>>())
}

fn find(name: &str) -> Result<&'static Group> {
    let found = GROUPS.iter().find(|group| group.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
        Failure(format!("there is no test group `{name}`; there are: {}", names.join(", ")))
    })
}

fn timed(group: &Group) -> Result<String> {
    println!("\n== {}: {}\n", group.name, group.what);
    let watch = Stopwatch::start();
    needs::have(group.needs)?;
    let summary = (group.run)()?;
    Ok(format!("{:11} {summary} ({})", group.name, minutes(watch.elapsed())))
}

fn minutes(time: Duration) -> String {
    format!("{}:{:02} min", time.as_secs() / 60, time.as_secs() % 60)
}

fn unit() -> Result<String> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::run()?;
    docs::check()?;
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    // Always the whole workspace: a selection would unify features differently and build everything anew.
    Ok(run_tests(&mut cargo(&["test", "--workspace", "--quiet", "--no-fail-fast"]), libtest)?.to_string())
}

/// The scripts are tests like others, in modules called `scripts`.
fn scripts() -> Result<String> {
    Ok(run_tests(&mut cargo(&["test", "--workspace", "--test", "it", "--", "scripts"]), libtest)?.to_string())
}

/// `test result: ok. 12 passed; 0 failed; …`
pub fn libtest(line: &str) -> Option<Count> {
    let (passed, rest) = line.strip_prefix("test result: ")?.split_once(". ")?.1.split_once(" passed; ")?;
    Some(Count { passed: passed.parse().ok()?, failed: rest.split_once(" failed")?.0.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_cargo_test_says() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(libtest(line), Some(Count { passed: 12, failed: 3 }));
        assert_eq!(libtest("running 12 tests"), None);
    }
}
