//! Makes the tables and functions, and reads the map of slots.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio_postgres::error::SqlState;

use super::{
    map::{GROUPS, Map, Place},
    server::{self, Server, pause},
    transaction::Transaction,
};
use crate::{Error, Result};

const SCHEMA: &str = include_str!("schema.sql");
const FUNCTIONS: &str = include_str!("functions.sql");

/// The version of `schema.sql` and `functions.sql`. Those before had the same tables. Functions of theirs stay where they
/// are, for nodes that have not been replaced yet.
const VERSION: i32 = 4;
const SAME_TABLES: std::ops::Range<i32> = 1..VERSION;

/// Nodes that start together make the tables together; one of them wins and the others look again.
const ATTEMPTS: u32 = 20;

/// Makes sure that a server has the tables. A server that starts with the store holds all groups, another none.
pub async fn prepare(server: &Server, holds_all: bool) -> Result<()> {
    let mut attempt = 0;
    loop {
        let connection = server.connection().await?;
        let text = match connection.query_opt("SELECT version FROM mayfly_schema", &[]).await {
            Ok(Some(row)) if row.get::<_, i32>(0) == VERSION => return Ok(()),
            Ok(Some(row)) if SAME_TABLES.contains(&row.get::<_, i32>(0)) => {
                format!("{FUNCTIONS}; UPDATE mayfly_schema SET version = {VERSION}")
            }
            Ok(_) => {
                return Err(Error::Unusable(format!(
                    "{}: its tables are of another version of Mayfly",
                    server.name
                )));
            }
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                let tables = SCHEMA
                    .replace("$OWNED", if holds_all { "true" } else { "false" })
                    .replace("$GROUPS", &GROUPS.to_string())
                    .replace("$VERSION", &VERSION.to_string());
                format!("{FUNCTIONS}; {tables}")
            }
            Err(error) => return Err(server.failed(&error)),
        };
        let made = async {
            let transaction = Transaction::begin(connection, "BEGIN").await?;
            transaction.batch_execute(&text).await?;
            transaction.commit().await
        };
        match made.await {
            Ok(()) => return Ok(()),
            Err(error) if attempt >= ATTEMPTS => {
                return Err(Error::Unusable(format!(
                    "{}: the tables cannot be made: {}",
                    server.name,
                    server::text(&error)
                )));
            }
            Err(_) => {
                attempt += 1;
                pause(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Reads the map for the first time. The first server is the one with the map itself.
pub async fn load_map(control: &Arc<Server>) -> Result<Map> {
    read_map(control, HashMap::from([(1, control.clone())])).await
}

/// Reads the map again; servers that are known keep their connections.
pub async fn reload_map(control: &Arc<Server>, known: &Map) -> Result<Map> {
    let mut servers = HashMap::from([(1, control.clone())]);
    servers.extend(known.places.iter().map(|place| (place.number, place.server.clone())));
    read_map(control, servers).await
}

async fn read_map(control: &Arc<Server>, mut servers: HashMap<i32, Arc<Server>>) -> Result<Map> {
    let (urls, rows) = control
        .read(async |connection: deadpool_postgres::Object| {
            let urls = connection.query("SELECT id, url FROM mayfly_server", &[]).await?;
            let rows =
                connection.query("SELECT grp, server, epoch FROM mayfly_map ORDER BY grp", &[]).await?;
            Ok((urls, rows))
        })
        .await?;
    for row in &urls {
        let number: i32 = row.get(0);
        if let std::collections::hash_map::Entry::Vacant(free) = servers.entry(number) {
            free.insert(Arc::new(Server::new(row.get(1))?));
        }
    }
    let place = |row: &tokio_postgres::Row| {
        let number: i32 = row.get(1);
        let server = servers.get(&number).cloned();
        let server =
            server.ok_or_else(|| Error::Unusable("the map names a server that is not there".into()))?;
        Ok(Place { server, number, group: row.get(0), epoch: row.get(2) })
    };
    let places = rows.iter().map(place).collect::<Result<Vec<_>>>()?;
    if places.len() != GROUPS as usize + 1 {
        return Err(Error::Unusable(format!("{}: the map of slots is not whole", control.name)));
    }
    Ok(Map { places })
}
