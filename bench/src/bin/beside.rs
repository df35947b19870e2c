//! Point reads beside clients that ask for much: what queries of milliseconds do to requests of microseconds.
//!
//! ```text
//! cargo xtask bench beside
//! cargo xtask bench beside --clients 0,8 --seconds 5
//! ```

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use clap::Parser;
use futures_util::{TryStreamExt as _, stream::FuturesUnordered};
use mayfly_bench::{
    http::Connection,
    latency::Summary,
    median,
    query::{
        client::{self, Client},
        questions::{QUESTIONS, Question},
    },
    rest::{Operation, load, requests::Requests, servers::Server},
};

#[derive(Parser)]
struct Options {
    /// Documents that are queried
    #[arg(long, default_value_t = 30_000)]
    documents: usize,
    /// Clients that query, each with one connection, one measurement for each number
    #[arg(long, value_delimiter = ',', default_value = "0,1,4")]
    clients: Vec<usize>,
    /// Connections that read
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How long each measurement takes
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Measurements of each kind; the median is shown
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
}

/// What is asked beside, by the beginnings of their names.
const LONG: [&str; 2] = ["GROUP BY", "full scan"];

fn main() -> io::Result<()> {
    let options = Options::parse();
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let server = Server::mayfly(options.mayfly.as_ref().unwrap_or(&beside))?;
    runtime()?.block_on(client::load(server.port, options.documents));
    load::prepare(server.port, &Requests::new(Operation::Create))?;
    println!("| beside | clients | reads/s | p50 ms | p99 ms | queries/s |");
    println!("|---|---|---|---|---|---|");
    for question in
        QUESTIONS.iter().filter(|question| LONG.iter().any(|long| question.name.starts_with(long)))
    {
        for &clients in &options.clients {
            let runs: io::Result<Vec<_>> =
                (0..options.runs).map(|_| measure(server.port, question, clients, &options)).collect();
            let runs = runs?;
            let of = |figure: fn(&(Summary, f64)) -> f64| median(runs.iter().map(figure).collect());
            println!(
                "| {} | {clients} | {:.0} | {:.2} | {:.2} | {:.1} |",
                question.name,
                of(|(reads, _)| reads.per_second),
                of(|(reads, _)| reads.p50.as_secs_f64() * 1000.0),
                of(|(reads, _)| reads.p99.as_secs_f64() * 1000.0),
                of(|(_, queries)| *queries),
            );
        }
    }
    Ok(())
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Reads for a while, and how many queries were answered per second meanwhile.
fn measure(
    port: u16,
    question: &'static Question,
    clients: usize,
    options: &Options,
) -> io::Result<(Summary, f64)> {
    let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let asking = {
        let (is_over, answered) = (is_over.clone(), answered.clone());
        let ask = move || {
            let all = (0..clients).map(|_| keep_asking(port, question, &is_over, &answered));
            runtime()?.block_on(all.collect::<FuturesUnordered<_>>().try_collect::<()>())
        };
        thread::Builder::new().name("bench-ask".into()).spawn(ask)?
    };
    let time = Duration::from_secs(options.seconds);
    let outcome = load::run(port, &Requests::new(Operation::Read), options.connections, time)?;
    let queries = answered.load(Relaxed) as f64 / time.as_secs_f64();
    is_over.store(true, Relaxed);
    asking.join().map_err(|_| io::Error::other("a client that asks has panicked"))??;
    match outcome.refused.first() {
        None => Ok((outcome.summary, queries)),
        Some(first) => Err(io::Error::other(format!("a read was refused:\n{first}"))),
    }
}

async fn keep_asking(
    port: u16,
    question: &Question,
    is_over: &AtomicBool,
    answered: &AtomicU64,
) -> io::Result<()> {
    let (mut client, mut connection) = (Client::connect(port).await, Connection::new(port));
    let mut n = 0;
    while !is_over.load(Relaxed) {
        let status = connection.exchange(&client.question(question.cosmos, n)).await?;
        if status != 200 {
            return Err(io::Error::other(format!("a query was answered with {status}")));
        }
        answered.fetch_add(1, Relaxed);
        n = (n + 1) % question.parameters.max(1);
    }
    Ok(())
}
