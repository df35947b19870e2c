//! Queries over documents of 1 KB, through HTTP, beside PostgreSQL and a peer with the same documents.
//!
//! ```text
//! cargo xtask bench query
//! cargo xtask bench query --documents 20000 --postgres /usr/lib/postgresql/15/bin
//! cargo xtask bench query --part memory
//! ```
//!
//! All are asked over one connection, one question after the other, in turns. PostgreSQL's statements are prepared;
//! the others get a text each time, as their clients send it. All answers are read to their end and not looked into: the
//! time is that of the servers, and a client of either kind adds its own.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    io,
    path::{Path, PathBuf},
    time::Instant,
};

use clap::Parser;
use mayfly_bench::{
    http::Connection,
    median, postgres,
    query::{
        client::{self, Client},
        prepared::Prepared,
        questions::{QUESTIONS, Question, document},
        search::{DIMENSIONS, nearest, questions},
    },
    rest::servers::Server,
};

#[derive(Parser)]
struct Options {
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_value = "speed,memory,search")]
    part: Vec<Part>,
    /// Documents of the part about speed
    #[arg(long, default_value_t = 100_000)]
    documents: usize,
    /// Documents of the part about memory
    #[arg(long, default_value_t = 1_000_000)]
    many: usize,
    /// Documents of the part about searches
    #[arg(long, default_value_t = 20_000)]
    searched: usize,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The folder with PostgreSQL's programs
    #[arg(long)]
    postgres: Option<PathBuf>,
    /// The folder where `npm ci` was run for the peer; without it there is no peer
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Documents in the peer: it takes minutes to answer with as many as the others have
    #[arg(long, default_value_t = 10_000)]
    peer_documents: usize,
    /// The port the peer gets
    #[arg(long, default_value_t = 18_598)]
    peer_port: u16,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
    /// Only questions whose name has this in it
    #[arg(long)]
    only: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Time and CPU of each question
    Speed,
    /// How much memory sorting and grouping take
    Memory,
    /// Searches among vectors and texts
    Search,
}

// On one thread: to hand a question or an answer over to another would take longer than some answers do.
#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let binary = options.mayfly.as_ref().unwrap_or(&beside);
    if options.part.contains(&Part::Speed) {
        speed(&options, binary).await?;
    }
    if options.part.contains(&Part::Memory) {
        memory(&options, binary).await?;
    }
    if options.part.contains(&Part::Search) {
        search(&options, binary).await?;
    }
    Ok(())
}

async fn load_postgres(postgres: &postgres::Postgres, count: usize) -> Result<(), tokio_postgres::Error> {
    let client = &postgres.client;
    client.batch_execute("CREATE TABLE docs (id text PRIMARY KEY, body jsonb NOT NULL)").await?;
    let insert =
        client.prepare("INSERT INTO docs SELECT b::jsonb->>'id', b::jsonb FROM unnest($1::text[]) b").await?;
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(500) {
        let bodies: Vec<String> = some.iter().map(|n| document(*n, count)).collect();
        client.execute(&insert, &[&bodies]).await?;
    }
    for path in ["user", "score", "kind"] {
        client.batch_execute(&format!("CREATE INDEX ON docs (((body->>'{path}')::int))")).await?;
    }
    client.batch_execute("VACUUM ANALYZE docs").await
}

/// A server of the REST protocol, with the documents in it.
struct Loaded {
    server: Server,
    client: Client,
    connection: Connection,
}

impl Loaded {
    async fn load(server: Server, count: usize) -> Self {
        let start = Instant::now();
        client::load(server.port, count).await;
        println!("{} has {count} documents after {:.1} s", server.name, start.elapsed().as_secs_f64());
        let (client, connection) = (Client::connect(server.port).await, Connection::new(server.port));
        Self { server, client, connection }
    }
}

async fn start_postgres(options: &Options) -> Option<postgres::Postgres> {
    let Some(folder) = postgres::programs(options.postgres.as_deref()) else {
        println!("postgresql is not installed (Debian: postgresql-15), so it is not compared with");
        return None;
    };
    let peer = postgres::Postgres::start(&folder).await.expect("a private PostgreSQL");
    let start = Instant::now();
    load_postgres(&peer, options.documents).await.expect("a load of PostgreSQL");
    println!("postgresql has them after {:.1} s", start.elapsed().as_secs_f64());
    Some(peer)
}

async fn speed(options: &Options, binary: &Path) -> io::Result<()> {
    let mut ours = Loaded::load(Server::mayfly(binary)?, options.documents).await;
    let mut peer = match &options.peer {
        Some(folder) => {
            Some(Loaded::load(Server::peer(folder, options.peer_port)?, options.peer_documents).await)
        }
        None => None,
    };
    let postgres = start_postgres(options).await;
    println!("| | Mayfly | CPU | PostgreSQL | CPU | ratio | peer | ratio |");
    println!("|---|---|---|---|---|---|---|---|");
    for question in &QUESTIONS {
        if options.only.as_ref().is_some_and(|only| !question.name.contains(only.as_str())) {
            continue;
        }
        compare(question, options, &mut ours, peer.as_mut(), postgres.as_ref()).await;
    }
    Ok(())
}

/// Asks all servers in turns and prints a line of the table.
async fn compare(
    question: &Question,
    options: &Options,
    ours: &mut Loaded,
    peer: Option<&mut Loaded>,
    postgres: Option<&postgres::Postgres>,
) {
    let found = ours.client.count_rows(question.cosmos, 7).await;
    assert_eq!(found, Ok(question.rows), "{}", question.name);
    // A server that does not know the clause refuses, or gives another number of rows.
    let mut peer = peer;
    if let Some(asked) = &mut peer
        && asked.client.count_rows(question.cosmos, 7).await != Ok(question.rows)
    {
        peer = None;
    }
    let mut prepared = match postgres {
        Some(postgres) => Some(postgres.prepared(question.sql).await.expect("a statement")),
        None => None,
    };
    let (mut our_times, mut postgres_times, mut peer_times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        our_times.push(rate_rest(question, options.seconds, ours).await);
        if let (Some(postgres), Some(prepared)) = (postgres, &mut prepared) {
            postgres_times.push(rate_postgres(question, options.seconds, postgres, prepared).await);
        }
        if let Some(peer) = &mut peer {
            peer_times.push(rate_rest(question, options.seconds, peer).await);
        }
    }
    let [(ours, our_cpu), (postgres, postgres_cpu), (peer, _)] =
        [our_times, postgres_times, peer_times].map(|times| {
            let (wall, cpu): (Vec<_>, Vec<_>) = times.into_iter().unzip();
            (median(wall) * 1e6, median(cpu) * 1e6)
        });
    println!(
        "| {} | {ours:.0} µs | {our_cpu:.0} µs | {postgres:.0} µs | {postgres_cpu:.0} µs | {:.2} | {peer:.0} µs | {:.1} |",
        question.name,
        postgres / ours,
        peer / ours,
    );
}

async fn rate_rest(question: &Question, seconds: f64, loaded: &mut Loaded) -> (f64, f64) {
    let Loaded { server, client, connection } = loaded;
    let ask = async |parameter| {
        let request = client.question(question.cosmos, parameter);
        let status = connection.exchange(&request).await.expect("an answer");
        assert_eq!(status, 200, "{}", question.name);
    };
    rate(question, seconds, || server.cpu_seconds(), ask).await
}

async fn rate_postgres(
    question: &Question,
    seconds: f64,
    postgres: &postgres::Postgres,
    prepared: &mut Prepared,
) -> (f64, f64) {
    let ask = async |parameter| {
        let parameter = (question.parameters > 0).then_some(parameter);
        let rows = prepared.run(parameter).await.expect("rows");
        assert_eq!(rows, question.rows, "{}", question.name);
    };
    rate(question, seconds, || postgres.cpu_seconds(), ask).await
}

/// Asks until the time is over; gives the seconds of one question, and those of the server's CPU.
async fn rate<W: AsyncFnMut(usize)>(
    question: &Question,
    seconds: f64,
    cpu: impl Fn() -> Option<f64>,
    mut ask: W,
) -> (f64, f64) {
    let (start, cpu_before) = (Instant::now(), cpu());
    let mut asked = 0;
    while start.elapsed().as_secs_f64() < seconds || asked == 0 {
        ask(if question.parameters == 0 { 0 } else { asked * 37 % question.parameters }).await;
        asked += 1;
    }
    let wall = start.elapsed().as_secs_f64();
    let cpu = cpu().zip(cpu_before).map_or(f64::NAN, |(after, before)| after - before);
    (wall / asked as f64, cpu / asked as f64)
}

/// Queries that have to look at all documents before they know the first row.
const LARGE: [(&str, &str); 4] = [
    ("ORDER BY from the index, LIMIT 10", "SELECT * FROM c ORDER BY c.score OFFSET 0 LIMIT 10"),
    ("ORDER BY without it, LIMIT 10", "SELECT * FROM c ORDER BY c.half DESC OFFSET 0 LIMIT 10"),
    ("GROUP BY, 100 groups", "SELECT c.kind, c.active, COUNT(1) AS n FROM c GROUP BY c.kind, c.active"),
    ("GROUP BY, as many groups as documents", "SELECT c.name, COUNT(1) AS n FROM c GROUP BY c.name"),
];

async fn memory(options: &Options, binary: &Path) -> io::Result<()> {
    // A cache that is still filling would be counted as the query's.
    let server = Server::mayfly_with(binary, &["--cache-mb", "64"])?;
    let start = Instant::now();
    client::load_in_batches(server.port, options.many).await;
    println!("Mayfly has {} documents after {:.1} s", options.many, start.elapsed().as_secs_f64());
    let mut client = Client::connect(server.port).await;
    println!("| | first page | memory before | at most | more |");
    println!("|---|---|---|---|---|");
    for (name, query) in LARGE {
        let before = server.forget_peak_memory()?;
        let start = Instant::now();
        let rows = client.count_rows(query, 0).await.expect("an answer");
        let took = start.elapsed().as_secs_f64();
        assert!(rows > 0, "{name}");
        let most = server.peak_memory()?;
        let megabytes = |bytes: u64| bytes >> 20;
        println!(
            "| {name} | {took:.2} s | {} MB | {} MB | {} MB |",
            megabytes(before),
            megabytes(most),
            megabytes(most.saturating_sub(before)),
        );
    }
    Ok(())
}

/// How many of the ten nearest vectors the index finds, and how long it takes beside comparing all.
async fn recall(client: &mut Client) {
    const SEARCHES: u64 = 50;
    let (mut found, mut times) = (0, [Vec::new(), Vec::new()]);
    for number in 0..SEARCHES {
        let mut rows = Vec::new();
        for (query, times) in nearest(number).iter().zip(&mut times) {
            let start = Instant::now();
            rows.push(client.rows(query).await);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        found += rows[0].iter().filter(|id| rows[1].contains(id)).count();
    }
    let [by_index, compared] = times.map(median);
    println!(
        "recall@10 of the vector index: {:.3}; {by_index:.1} ms, {compared:.1} ms by comparing all",
        found as f64 / (SEARCHES * 10) as f64
    );
}

async fn search(options: &Options, binary: &Path) -> io::Result<()> {
    let server = Server::mayfly(binary)?;
    let mut client = Client::connect(server.port).await;
    client.load_search(options.searched).await;
    println!("| {} documents, vectors of {DIMENSIONS} | time | CPU |", options.searched);
    println!("|---|---|---|");
    for (name, query) in questions() {
        let (mut times, mut cpu) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds.max(2) {
            let (start, before) = (Instant::now(), server.cpu_seconds());
            assert_eq!(client.count_rows(&query, 0).await, Ok(10), "{name}");
            times.push(start.elapsed().as_secs_f64() * 1e3);
            cpu.push(
                server.cpu_seconds().zip(before).map_or(f64::NAN, |(after, before)| after - before) * 1e3,
            );
        }
        println!("| {name} | {:.0} ms | {:.0} ms |", median(times), median(cpu));
    }
    recall(&mut client).await;
    Ok(())
}
