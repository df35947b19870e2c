//! The same documents in PostgreSQL, through its own protocol: one connection and prepared statements for each client, a row of
//! `jsonb` for each document. It syncs before it acknowledges, as it does by itself. Once with no index but the one of the id,
//! and once with all paths indexed, as Mayfly has them: by an inverted index for equality, which can do less and costs less
//! than its other kinds.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    io,
    path::Path,
    time::{Duration, Instant},
};

use tokio_postgres::{Client, NoTls};

use super::{
    Operation,
    requests::{DOCUMENTS, Requests},
};
use crate::{
    latency::{Latencies, Summary},
    postgres::{Postgres, drive},
};

const TABLES: &str = "CREATE TABLE kept (id text PRIMARY KEY, doc jsonb NOT NULL);
    CREATE TABLE created (id text PRIMARY KEY, doc jsonb NOT NULL);";

const INDEXES: &str = "CREATE INDEX ON kept USING gin (doc jsonb_path_ops);
    CREATE INDEX ON created USING gin (doc jsonb_path_ops);";

/// A running server with the documents that are read and replaced.
pub struct Rows {
    runtime: tokio::runtime::Runtime,
    server: Postgres,
    /// They stay: a connection that ends takes along the count of what it has cost.
    clients: Vec<Client>,
    /// What it is called in the table.
    pub name: &'static str,
}

impl Rows {
    /// Starts it with the programs in `folder`, for so many connections at most, with an index of all paths or without.
    pub fn start(folder: &Path, connections: usize, is_indexed: bool) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (server, clients) = runtime.block_on(async {
            let server =
                Postgres::start_with(folder, &["max_connections=200"]).await.map_err(io::Error::other)?;
            server.client.batch_execute(TABLES).await.map_err(io::Error::other)?;
            if is_indexed {
                server.client.batch_execute(INDEXES).await.map_err(io::Error::other)?;
            }
            let insert = server
                .client
                .prepare("INSERT INTO kept VALUES ($1, $2::text::jsonb)")
                .await
                .map_err(io::Error::other)?;
            let requests = Requests::new(Operation::Replace);
            for n in 0..DOCUMENTS {
                let (id, document) = requests.document(0, n);
                server.client.execute(&insert, &[&id, &document]).await.map_err(io::Error::other)?;
            }
            let mut clients = Vec::new();
            for _ in 0..connections {
                let (client, connection) =
                    tokio_postgres::connect(&server.tcp_url(), NoTls).await.map_err(io::Error::other)?;
                drive(connection);
                clients.push(client);
            }
            Ok::<_, io::Error>((server, clients))
        })?;
        let name = if is_indexed { "PostgreSQL, all paths indexed" } else { "PostgreSQL" };
        Ok(Self { runtime, server, clients, name })
    }

    /// Seconds of CPU that its processes have used so far.
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.server.cpu_seconds()
    }

    /// Runs so many connections for a while.
    pub fn run(
        &self,
        requests: &Requests,
        operation: Operation,
        connections: usize,
        time: Duration,
    ) -> io::Result<(Summary, u64)> {
        self.runtime.block_on(async {
            let start = Instant::now();
            let all = self.clients[..connections]
                .iter()
                .enumerate()
                .map(|(number, client)| one(client, requests, operation, number, start + time));
            let mut latencies = Latencies::default();
            for some in futures_util::future::try_join_all(all).await.map_err(io::Error::other)? {
                latencies.extend(some);
            }
            let answered = latencies.len() as u64;
            Ok((latencies.summary(start.elapsed()), answered))
        })
    }
}

async fn one(
    client: &Client,
    requests: &Requests,
    operation: Operation,
    number: usize,
    end: Instant,
) -> Result<Latencies, tokio_postgres::Error> {
    let statement = client
        .prepare(match operation {
            Operation::Read => "SELECT doc::text FROM kept WHERE id = $1",
            Operation::Create => "INSERT INTO created VALUES ($1, $2::text::jsonb)",
            Operation::Replace => "UPDATE kept SET doc = $2::text::jsonb WHERE id = $1",
        })
        .await?;
    let (mut latencies, mut n) = (Latencies::default(), 0);
    while Instant::now() < end {
        let (id, document) = requests.document(number, n);
        let begun = Instant::now();
        match operation {
            Operation::Read => {
                let row = client.query_one(&statement, &[&id]).await?;
                row.try_get::<_, &str>(0)?;
            }
            _ => {
                client.execute(&statement, &[&id, &document]).await?;
            }
        }
        latencies.push(begun.elapsed());
        n += 1;
    }
    Ok(latencies)
}
