//! `mayfly check`: walk a data directory that no server is using, and report whatever does not agree.
//!
//! The walk itself is the engine's; here are the arguments, the report and the exit code.
//!
//! Holds: a check changes nothing.

use std::path::Path;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything agrees.
    Sound,
    /// Orphans or disagreements, one line each.
    Faulty(Vec<String>),
    /// There is nothing to check, or no way to; says why.
    NotChecked(String),
}

impl Verdict {
    /// 0 sound, 1 faulty, 2 not checked.
    pub fn exit_code(&self) -> u8 {
        match self {
            Verdict::Sound => 0,
            Verdict::Faulty(_) => 1,
            Verdict::NotChecked(_) => 2,
        }
    }
}

/// Checks a data directory.
pub fn check(data_dir: &Path) -> Verdict {
    if !data_dir.is_dir() {
        return Verdict::NotChecked(format!("{} is not a directory", data_dir.display()));
    }
    Verdict::NotChecked("this build has no engine yet, so it cannot read the data".into())
}
