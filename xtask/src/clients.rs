//! The `clients` group: the Java and Go SDKs over http and https, MongoDB's drivers for Java, Go and Rust, and Spring
//! Data MongoDB, against the release binary.
//!
//! Their tests are small on purpose: what the protocol means is tested with the Python and JavaScript SDKs (`sdk`); these
//! show that clients with other habits get along.

mod go;
mod java;
mod rust;

use crate::{
    server,
    servers::Servers,
    shell::{Count, Result},
};

/// Installs the SDKs, starts the servers, runs the programs.
pub fn run() -> Result<String> {
    let java = java::install()?;
    server::build()?;
    let servers = Servers::start("clients")?;
    let mut count = Count::default();
    count.add(go::run(&servers)?);
    count.add(java.run(&servers)?);
    count.add(rust::run(&servers)?);
    servers.stop()?;
    Ok(count.to_string())
}
