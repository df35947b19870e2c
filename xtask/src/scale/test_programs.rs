//! The test programs of the workspace, to be run one by one with what each of them needs.
//!
//! They are built as the `unit` group builds them: a selection of packages would unify features differently and build
//! everything anew.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::shell::{Failure, Result, cargo, failure, root};

/// Sources and programs.
pub struct TestPrograms(Vec<(PathBuf, PathBuf)>);

impl TestPrograms {
    /// Builds whatever is not built.
    pub fn build() -> Result<Self> {
        let mut command = cargo(&["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"]);
        let built = command.stderr(Stdio::inherit()).output()?;
        if !built.status.success() {
            return failure("the tests could not be built");
        }
        let text = String::from_utf8_lossy(&built.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = |message: Value| {
            let of = |value: &Value| value.as_str().map(PathBuf::from);
            Some((of(&message["target"]["src_path"])?, of(&message["executable"])?))
        };
        Ok(Self(messages.filter_map(program).collect()))
    }

    /// A program by the folder of its crate and its name, which is `lib` for the tests beside the code, to be
    /// run where cargo would run it.
    pub fn command(&self, folder: &str, name: &str) -> Result<Command> {
        let home = root().join(folder);
        let sources = ["tests/NAME.rs", "tests/NAME/main.rs", "src/NAME.rs"];
        let sources = sources.map(|source| home.join(source.replace("NAME", name)));
        let found = self.0.iter().find(|(source, _)| sources.contains(source));
        let (_, program) = found.ok_or_else(|| Failure(format!("there is no test {name} in {folder}")))?;
        let mut command = Command::new(program);
        command.current_dir(home);
        Ok(command)
    }
}
