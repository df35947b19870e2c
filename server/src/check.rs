//! `mayfly check`: walk a data directory that no server is using, and report whatever does not agree.
//!
//! The walk itself is the engine's; here are the arguments, the report and the exit code.
//!
//! Holds: a check changes no document. Opening the store recovers its journal, as a start of the server would.

use std::{path::Path, sync::Arc};

use mayfly_engine::{Engine, Error, Report};
use mayfly_storage::embedded::{EmbeddedOptions, EmbeddedStore};

use crate::data_dir;

/// What a check found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Everything agrees.
    Sound(Report),
    /// Orphans or disagreements, one line each.
    Faulty(Vec<String>),
    /// There is nothing to check, or no way to; says why.
    NotChecked(String),
}

impl Verdict {
    /// 0 sound, 1 faulty, 2 not checked.
    pub fn exit_code(&self) -> u8 {
        match self {
            Verdict::Sound(_) => 0,
            Verdict::Faulty(_) => 1,
            Verdict::NotChecked(_) => 2,
        }
    }
}

/// Checks a data directory.
pub async fn check(data_dir: &Path) -> Verdict {
    let path = data_dir::store(data_dir);
    if !path.is_dir() {
        return Verdict::NotChecked(format!("there is no Mayfly data in {}", data_dir.display()));
    }
    match walk(&path).await {
        Ok(report) if report.is_clean() => Verdict::Sound(report),
        Ok(report) => Verdict::Faulty(report.problems),
        Err(Error::Corrupt(what)) => Verdict::Faulty(vec![what.into()]),
        Err(error) => Verdict::NotChecked(error.to_string()),
    }
}

async fn walk(path: &Path) -> Result<Report, Error> {
    let store = EmbeddedStore::open(path, EmbeddedOptions::default()).map_err(Error::Unavailable)?;
    // Entries of an index are compared with what its definition makes of the documents.
    let engine = Engine::builder(Arc::new(store)).predicates(Arc::new(mayfly_mongo::Filters));
    engine.open().await?.check().await
}
