//! Killing under load what a cluster consists of: a node, and the database server.

use std::path::Path;

use super::{
    load::{Load, Meanwhile},
    node,
};
use crate::{crash::create_containers, postgres::Postgres, server, shell::Result};

/// Two nodes on one server, one of which is killed, twice.
pub fn nodes(programs: &Path) -> Result<String> {
    server::build()?;
    let postgres = Postgres::start(programs, "scale-nodes", &[])?;
    let store = postgres.address();
    let mut load = Load::new();
    let survivor = node(&store, "survivor")?;
    create_containers(survivor.port)?;
    for _ in 0..2 {
        let victim = node(&store, "victim")?;
        let ports = [victim.port, survivor.port];
        load.write(&ports, Meanwhile::Breaks, || victim.kill())?;
        // Everything that either of them acknowledged is seen by the one that is left.
        load.verify(survivor.port)?;
    }
    survivor.stop()?;
    Ok(load.tally())
}

/// A server with a synchronous standby, which takes over when the server is killed.
pub fn failover(programs: &Path) -> Result<String> {
    server::build()?;
    let primary = Postgres::start(programs, "scale-primary", &[])?;
    let standby = primary.standby(programs, "scale-standby")?;
    let mut load = Load::new();
    let store = primary.address_with(&standby);
    let (one, other) = (node(&store, "one")?, node(&store, "other")?);
    create_containers(one.port)?;
    load.write(&[one.port, other.port], Meanwhile::Breaks, || {
        primary.kill()?;
        standby.promote(programs)
    })?;
    load.verify(one.port)?;
    load.verify(other.port)?;
    // And it goes on.
    load.write(&[one.port, other.port], Meanwhile::Holds, || Ok(()))?;
    load.verify(other.port)?;
    one.stop()?;
    other.stop()?;
    Ok(load.tally())
}
