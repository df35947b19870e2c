//! What a node costs over PostgreSQL itself: the same keys by a hand-written client and by the engine, with 1, 2 and 3 nodes.
//!
//! ```text
//! cargo xtask bench scale
//! cargo xtask bench scale --documents 5000 --runs 1
//! ```

use std::{sync::Arc, time::Duration};

use clap::Parser;
use mayfly_bench::{
    documents::{container, container_in_slots, create, id, key},
    median,
    postgres::{self, Postgres},
    replay::Remembering,
    spread,
};
use mayfly_engine::{AdjustableClock, Clock, Container, Engine, InvalidTtl, Timestamp};
use mayfly_storage::{PostgresStore, store::Batch};
use tokio_postgres::{Client, NoTls, Statement};

#[derive(Parser)]
struct Options {
    /// Documents written and read in each run
    #[arg(long, default_value_t = 10_000)]
    documents: usize,
    /// Runs of each measurement; the middle one is told
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Clients at a time
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Slots of the container
    #[arg(long, default_value_t = 8)]
    slots: u32,
}

const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let Some(programs) = postgres::programs(None) else {
        println!("no PostgreSQL is installed here");
        return;
    };
    let server = Postgres::start_with(&programs, &["max_connections=300", "shared_buffers=512MB"]).await;
    let server = server.expect("a private PostgreSQL");
    println!(
        "{} documents of 1 KB with ten indexed leaves, {} clients, {} slots, synced commits, median of {}",
        options.documents, options.clients, options.slots, options.runs
    );
    let by_hand = Measured::of(&options, &server, |run| by_hand_writes(&options, &server, run)).await;
    println!("write, by hand         {by_hand}");
    for nodes in 1..=3 {
        let measured = Measured::of(&options, &server, |run| writes(&options, &server, nodes, run)).await;
        println!("write, {nodes} node(s)       {measured}, {:.0} % of by hand", measured.share(&by_hand));
    }
    let cluster = Cluster::open(&server, 3, "read").await;
    let target = container_in_slots(&cluster.nodes[0], "r", options.slots, NOW).await;
    mayfly_bench::documents::load(&cluster.nodes[0], &target, options.documents, NOW).await;
    server.client.batch_execute("VACUUM ANALYZE \"read\".mayfly_kv").await.expect("it can be analyzed");
    let by_hand = Measured::of(&options, &server, |_| by_hand_reads(&options, &server)).await;
    println!("read, by hand          {by_hand}");
    for nodes in 1..=3 {
        let measured = Measured::of(&options, &server, |_| reads(&options, &cluster, nodes, &target)).await;
        println!("read, {nodes} node(s)        {measured}, {:.0} % of by hand", measured.share(&by_hand));
    }
}

/// Operations per second, and what the database server spent on one.
struct Measured {
    per_second: f64,
    server: Duration,
}

impl Measured {
    async fn of<W: Future<Output = f64>>(
        options: &Options,
        server: &Postgres,
        run: impl Fn(usize) -> W,
    ) -> Self {
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for number in 0..options.runs {
            let before = server.cpu_seconds();
            rates.push(run(number).await);
            let cpu = server.cpu_seconds().zip(before).map_or(f64::NAN, |(after, before)| after - before);
            costs.push(cpu / options.documents as f64);
        }
        Self { per_second: median(rates), server: Duration::from_secs_f64(median(costs).max(0.0)) }
    }

    fn share(&self, other: &Self) -> f64 {
        self.per_second / other.per_second * 100.0
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:7.0}/s, {:4} µs of the server each", self.per_second, self.server.as_micros())
    }
}

async fn connections(server: &Postgres, count: usize, text: &str) -> Arc<Vec<(Client, Statement)>> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let (client, connection) =
            tokio_postgres::connect(&server.socket_url(), NoTls).await.expect("a connection");
        mayfly_bench::postgres::drive(connection);
        let statement = client.prepare(text).await.expect("a statement");
        connections.push((client, statement));
    }
    Arc::new(connections)
}

/// The keys of one insert, as a client by hand would send them.
struct Rows {
    slot: i64,
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

fn rows(batch: &Batch, number: u64) -> Rows {
    let filled = batch.puts.iter().cloned().map(|put| {
        let counters: Vec<_> = batch
            .advances
            .iter()
            .map(|_| mayfly_storage::store::Counter { seq: number, ..Default::default() })
            .collect();
        put.filled(&counters)
    });
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    let mut slot = 0;
    for (key, value) in filled {
        slot = i64::from(key.slot.0);
        keys.push(key.bytes);
        values.push(value);
    }
    Rows { slot, keys, values }
}

/// One statement for the keys of one document: no guards, no counter, no order.
async fn by_hand_writes(options: &Options, server: &Postgres, run: usize) -> f64 {
    let table = format!("bare_{run}");
    let made = format!(
        "DROP TABLE IF EXISTS {table}; \
         CREATE TABLE {table} (slot int8, k bytea, v bytea NOT NULL, PRIMARY KEY (slot, k))"
    );
    server.client.batch_execute(&made).await.expect("a table");
    let text = format!(
        "INSERT INTO {table} (slot, k, v) SELECT $1, p.k, p.v FROM unnest($2::bytea[], $3::bytea[]) AS p(k, v) \
         ON CONFLICT (slot, k) DO UPDATE SET v = excluded.v"
    );
    let batches = recorded(options).await;
    let rows: Arc<Vec<Rows>> = Arc::new((1..).zip(&batches).map(|(n, batch)| rows(batch, n)).collect());
    let connections = connections(server, options.clients, &text).await;
    let clients = options.clients;
    spread(options.documents, clients, move |n| {
        let (connections, rows) = (connections.clone(), rows.clone());
        async move {
            let (client, statement) = &connections[n % clients];
            let row = &rows[n];
            client.execute(statement, &[&row.slot, &row.keys, &row.values]).await.expect("an insert");
        }
    })
    .await
}

/// The batches that the inserts make.
async fn recorded(options: &Options) -> Vec<Batch> {
    let store = Arc::new(Remembering::default());
    let clock = Arc::new(AdjustableClock::frozen(NOW));
    let engine = Engine::builder(store.clone()).clock(clock).open().await.expect("a new engine");
    let target = container(&engine, "w", None, NOW).await;
    store.take();
    for n in 0..options.documents {
        engine.write(&target, &key(n), create(n), InvalidTtl::Refuse, NOW).await.expect("a new document");
    }
    store.take()
}

/// Engines that share a schema of the server.
struct Cluster {
    nodes: Vec<Engine>,
}

impl Cluster {
    async fn open(server: &Postgres, nodes: usize, schema: &str) -> Self {
        let made = format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE; CREATE SCHEMA \"{schema}\"");
        server.client.batch_execute(&made).await.expect("a schema");
        let url = format!("{}&options=-csearch_path%3D{schema}", server.socket_url());
        let mut cluster = Self { nodes: Vec::new() };
        for _ in 0..nodes {
            let store = PostgresStore::open(&url).await.expect("a store");
            let clock: Arc<dyn Clock> = Arc::new(AdjustableClock::frozen(NOW));
            let engine = Engine::builder(Arc::new(store)).clock(clock).open().await.expect("an engine");
            cluster.nodes.push(engine);
        }
        cluster
    }
}

async fn writes(options: &Options, server: &Postgres, nodes: usize, run: usize) -> f64 {
    let cluster = Cluster::open(server, nodes, &format!("write_{nodes}_{run}")).await;
    let target = container_in_slots(&cluster.nodes[0], "w", options.slots, NOW).await;
    let engines = Arc::new(cluster.nodes);
    for engine in engines.iter() {
        engine.refresh().await.expect("the catalog is there");
    }
    spread(options.documents, options.clients, move |n| {
        let (engine, target) = (engines[n % nodes].clone(), target.clone());
        async move {
            let target = current(&engine, &target);
            let done = engine.write(&target, &key(n), create(n), InvalidTtl::Refuse, NOW).await;
            done.expect("a new document");
        }
    })
    .await
}

/// The container as this node has it by now, which is how requests begin: writes have changed what its indexes cover.
fn current(engine: &Engine, container: &Container) -> Arc<Container> {
    engine.container_by_id(container.id).expect("the container is there")
}

/// Any documents, in an order that is none.
fn place(n: usize, count: usize) -> usize {
    n.wrapping_mul(7919) % count
}

async fn by_hand_reads(options: &Options, server: &Postgres) -> f64 {
    let text = "SELECT v FROM \"read\".mayfly_kv WHERE slot = $1 AND k = $2";
    // Records are the keys of the second space.
    let found = server
        .client
        .query("SELECT slot, k FROM \"read\".mayfly_kv WHERE substr(k, 1, 1) = '\\x01' ORDER BY slot, k", &[])
        .await
        .expect("the keys");
    let keys: Arc<Vec<(i64, Vec<u8>)>> = Arc::new(found.iter().map(|row| (row.get(0), row.get(1))).collect());
    assert!(keys.len() >= options.documents, "{} records", keys.len());
    let connections = connections(server, options.clients, text).await;
    let (clients, count) = (options.clients, options.documents);
    spread(count, clients, move |n| {
        let (connections, keys) = (connections.clone(), keys.clone());
        async move {
            let (client, statement) = &connections[n % clients];
            let (slot, key) = &keys[place(n, count)];
            let row = client.query_one(statement, &[slot, key]).await.expect("a row");
            assert!(!row.get::<_, &[u8]>(0).is_empty());
        }
    })
    .await
}

async fn reads(options: &Options, cluster: &Cluster, nodes: usize, target: &Arc<Container>) -> f64 {
    let engines = Arc::new(cluster.nodes.clone());
    for engine in engines.iter() {
        engine.refresh().await.expect("the catalog is there");
    }
    let (target, count) = (target.clone(), options.documents);
    spread(count, options.clients, move |n| {
        let (engine, target) = (engines[n % nodes].clone(), target.clone());
        async move {
            let n = place(n, count);
            let target = current(&engine, &target);
            let found = engine.read(&target, &key(n), &id(n), NOW).await.expect("a read");
            assert!(found.is_some(), "document {n}");
        }
    })
    .await
}
