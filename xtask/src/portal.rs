//! `cargo xtask portal` and the `portal` group: the web portal is built, and worked in a browser.
//!
//! The built files are committed, so that building the server needs no Node; the group fails if they are not what the
//! source builds.

use std::path::PathBuf;

use crate::{
    needs::{self, Need},
    sdk, server,
    shell::{Result, root, run, run_tests},
};

fn web() -> PathBuf {
    root().join("portal/web")
}

fn npm(script: &str) -> Result<()> {
    run(needs::npm().args(["run", "--silent", script]).env("NO_COLOR", "1").current_dir(web()))
}

/// Builds the files that the server embeds.
pub fn build() -> Result<()> {
    needs::have(&[Need::Node])?;
    sdk::install_javascript(&web())?;
    npm("types")?;
    npm("build")
}

/// Types, unit tests, fresh assets, then everything in a browser against the release binary.
pub fn test() -> Result<String> {
    sdk::install_javascript(&web())?;
    npm("types")?;
    npm("unit")?;
    npm("check")?;
    let binary = server::build()?;
    let folder = root().join("tests/portal");
    sdk::install_javascript(&folder)?;
    let mut suite = needs::node();
    suite.args(["--test", "--test-reporter=spec", "--test-concurrency=1", "portal.test.js"]);
    suite.env("MAYFLY_BINARY", binary).current_dir(folder);
    Ok(run_tests(&mut suite, sdk::node)?.to_string())
}
