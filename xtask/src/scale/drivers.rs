//! The Python suites of the `sdk` and `mongo` groups, on a node whose store is PostgreSQL, with another beside it.
//!
//! Such a node goes by the clock of the database server, which no test can move: tests that would are skipped, and shown
//! by the contract about time to live instead, which runs on this store too. Two more nodes let nobody in without a key.

use std::{fs, process::Command};

use mayfly_cosmos::auth::EMULATOR_KEY;

use super::{node, node_with};
use crate::{
    client::Client,
    mongo::KEY,
    postgres::Postgres,
    sdk,
    server::Server,
    shell::{Count, Result, root, run_tests, target},
};

/// The folders of the suites, and of the environments that their own groups make for them.
const SUITES: [(&str, &str); 2] =
    [("tests/sdk-python", "sdk-python-venv"), ("tests/mongo-python", "mongo-python-venv")];

/// Runs the suites.
pub fn run(postgres: &Postgres) -> Result<Count> {
    let (node, other) = (node(&postgres.address(), "drivers")?, node(&postgres.address(), "drivers-other")?);
    let limited = Server::start(&["--store", "memory", "--dev-clock", "--throttle", "--dev-entra"])?;
    let (locked, locked_other) = (
        node_with(&postgres.address(), "drivers-locked", &["--key", KEY])?,
        node_with(&postgres.address(), "drivers-locked-other", &["--key", KEY])?,
    );
    // Beside the nodes' own folders, in which they would not know it.
    let ca_file = target().join("scale/drivers-ca.pem");
    fs::write(&ca_file, Client::connect(node.port)?.get("/_explorer/emulator.pem")?.body)?;
    let mut sum = Count::default();
    for (folder, environment) in SUITES {
        let folder = root().join(folder);
        let mut suite = Command::new(sdk::python_with(&folder.join("requirements.txt"), environment)?);
        suite.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(folder);
        suite
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("MAYFLY_TEST_SHARED", "1")
            .env("MAYFLY_TEST_KEY", EMULATOR_KEY)
            .env("MAYFLY_TEST_CA", &ca_file)
            .env("MAYFLY_TEST_HTTP", format!("http://localhost:{}/", node.port))
            .env("MAYFLY_TEST_HTTPS", format!("https://localhost:{}/", node.port))
            .env("MAYFLY_TEST_DISK", format!("http://localhost:{}/", node.port))
            .env("MAYFLY_TEST_LIMITED", format!("http://localhost:{}/", limited.port))
            .env("MAYFLY_TEST_MONGO", format!("mongodb://localhost:{}/", node.mongo_port))
            .env("MAYFLY_TEST_MONGO_OTHER", format!("mongodb://localhost:{}/", other.mongo_port))
            .env("MAYFLY_TEST_MONGO_LOCKED", format!("mongodb://localhost:{}/", locked.mongo_port))
            .env(
                "MAYFLY_TEST_MONGO_LOCKED_OTHER",
                format!("mongodb://localhost:{}/", locked_other.mongo_port),
            )
            .env("MAYFLY_TEST_MONGO_LOCKED_KEY", KEY);
        sum.add(run_tests(&mut suite, sdk::pytest)?);
    }
    node.stop()?;
    other.stop()?;
    limited.stop()?;
    locked.stop()?;
    locked_other.stop()?;
    Ok(sum)
}
