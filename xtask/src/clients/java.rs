//! The Java program: `tests/e2e-java`. Maven fetches what `pom.xml` names; `javac` and `java` do the rest.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    servers::Servers,
    shell::{self, Count, Result, root, run_tests, target},
};

/// The compiled program with all it needs.
pub struct Java {
    class_path: String,
}

fn folder() -> PathBuf {
    root().join("tests/e2e-java")
}

/// Fetches the SDK and compiles.
pub fn install() -> Result<Java> {
    let (jars, classes) = (target().join("e2e-java/jars"), target().join("e2e-java/classes"));
    fetch(&jars)?;
    fs::create_dir_all(&classes)?;
    let jars = jars.join("*").display().to_string();
    let mut compiler = Command::new("javac");
    compiler.args(["-encoding", "UTF-8", "-cp", &jars, "-d"]).arg(&classes);
    compiler.args(["Main.java", "Mongo.java", "Spring.java", "Harness.java"]).current_dir(folder());
    shell::run(&mut compiler)?;
    Ok(Java { class_path: format!("{}:{jars}", classes.display()) })
}

/// Has Maven copy the jars, unless that was done for this very `pom.xml`.
fn fetch(jars: &PathBuf) -> Result<()> {
    let wanted = fs::read_to_string(folder().join("pom.xml"))?;
    let fetched = jars.join("pom.xml");
    if fs::read_to_string(&fetched).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    if jars.exists() {
        fs::remove_dir_all(jars)?;
    }
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "dependency:copy-dependencies"]);
    maven.arg(format!("-DoutputDirectory={}", jars.display())).current_dir(folder());
    shell::run(&mut maven)?;
    fs::write(fetched, wanted)?;
    Ok(())
}

impl Java {
    /// Runs the tests.
    pub fn run(&self, servers: &Servers) -> Result<Count> {
        let mut program = Command::new("java");
        program.args(["-cp", &self.class_path, "Main"]);
        run_tests(servers.described(&mut program), total)
    }
}

/// `TOTAL 18 passed, 0 failed`
fn total(line: &str) -> Option<Count> {
    let (passed, rest) = line.strip_prefix("TOTAL ")?.split_once(" passed, ")?;
    Some(Count { passed: passed.parse().ok()?, failed: rest.strip_suffix(" failed")?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_program_says() {
        assert_eq!(total("TOTAL 18 passed, 2 failed"), Some(Count { passed: 18, failed: 2 }));
        assert_eq!(total("PASS items HTTP"), None);
    }
}
