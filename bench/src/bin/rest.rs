//! Requests per second, latencies and CPU per operation over HTTP, beside a bare server and a peer.
//!
//! ```text
//! cargo xtask bench rest
//! cargo xtask bench rest --connections 16 --seconds 10 --operations read
//! cargo xtask bench rest --connections 16 --postgres /usr/lib/postgresql/15/bin
//! cargo xtask bench rest --connections 16 --seconds 0.5 --runs 40 --before BINARY
//! ```
//!
//! Every server is its own process; the servers and the numbers of connections take turns, so that what else the machine does,
//! and what a server has stored by then, hits all of them alike.

use std::{io, path::PathBuf, time::Duration};

use clap::Parser;
use mayfly_bench::{
    latency::Summary,
    median,
    rest::{
        Operation, bare,
        load::{self, Outcome},
        postgres::Rows,
        requests::Requests,
        servers::Server,
    },
};

/// The place of the bare server among those compared.
const BARE: usize = 1;

#[derive(Parser)]
struct Options {
    /// Connections at a time, one measurement for each number
    #[arg(long, value_delimiter = ',', default_value = "1,8,16,64")]
    connections: Vec<usize>,
    /// How long each measurement takes
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Measurements of each kind; medians are shown: of figures, and of their ratios to those taken in the same turn. Many
    /// short ones tell more than few long ones where the machine has other work
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only these
    #[arg(long, value_enum, value_delimiter = ',', default_value = "read,create,replace")]
    operations: Vec<Operation>,
    /// The folder where `npm ci` was run for the peer; without it there is no peer
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The port the peer gets
    #[arg(long, default_value_t = 18_599)]
    peer_port: u16,
    /// The folder of PostgreSQL's programs; without it, it is not compared with
    #[arg(long)]
    postgres: Option<PathBuf>,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
    /// A binary of another version, which takes turns too
    #[arg(long)]
    before: Option<PathBuf>,
    /// Be the bare server: how this program starts it
    #[arg(long, hide = true)]
    serve_bare: bool,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    if options.serve_bare {
        return serve_bare();
    }
    let beside = std::env::current_exe()?.with_file_name(format!("mayfly{}", std::env::consts::EXE_SUFFIX));
    let mut servers = vec![Server::mayfly(options.mayfly.as_ref().unwrap_or(&beside))?, Server::bare()?];
    if let Some(binary) = &options.before {
        let mut before = Server::mayfly(binary)?;
        before.name = "Mayfly before";
        servers.push(before);
    }
    if let Some(folder) = &options.peer {
        servers.push(Server::peer(folder, options.peer_port)?);
    }
    for server in &servers {
        load::prepare(server.port, &Requests::new(Operation::Create))?;
    }
    let mut rivals: Vec<Rival> = servers.into_iter().map(Rival::Http).collect();
    if let Some(folder) = &options.postgres {
        let connections = options.connections.iter().copied().max().unwrap_or(1);
        for is_indexed in [false, true] {
            rivals.push(Rival::Postgres(Box::new(Rows::start(folder, connections, is_indexed)?)));
        }
    }
    println!("| operation | connections | server | requests/s | p50 ms | p99 ms | CPU µs | of bare |");
    println!("|---|---|---|---|---|---|---|---|");
    for &operation in &options.operations {
        compare(&rivals, operation, &options)?;
    }
    Ok(())
}

fn serve_bare() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bare::serve());
    Ok(())
}

/// Measures all servers in turns and prints a line for each and each number of connections.
fn compare(servers: &[Rival], operation: Operation, options: &Options) -> io::Result<()> {
    let time = Duration::from_secs_f64(options.seconds);
    let mut rounds = Vec::new();
    for run in 0..options.runs {
        let mut round = Vec::new();
        for &connections in &options.connections {
            let mut all: Vec<_> = servers.iter().enumerate().collect();
            // Who comes first changes: what the one before has left to do is done in the time of the next.
            all.rotate_left(run % servers.len());
            let mut measured = Vec::new();
            for (number, server) in all {
                measured.push((number, measure(server, operation, connections, time)?));
            }
            measured.sort_by_key(|(number, _)| *number);
            round.push(measured.into_iter().map(|(_, figures)| figures).collect::<Vec<_>>());
        }
        rounds.push(round);
    }
    for (place, connections) in options.connections.iter().enumerate() {
        let of = |server: usize, figure: fn(&Figures) -> f64| {
            median(rounds.iter().map(|round| figure(&round[place][server])).collect())
        };
        for (number, server) in servers.iter().enumerate() {
            let of_bare = rounds.iter().map(|round| {
                let [this, bare] = [number, BARE].map(|server| round[place][server].per_second);
                this / bare
            });
            println!(
                "| {} | {connections} | {} | {:.0} | {:.2} | {:.2} | {:.1} | {:.2} |",
                format!("{operation:?}").to_lowercase(),
                server.name(),
                of(number, |figures| figures.per_second),
                of(number, |figures| figures.p50_ms),
                of(number, |figures| figures.p99_ms),
                of(number, |figures| figures.cpu_us),
                median(of_bare.collect()),
            );
        }
    }
    Ok(())
}

struct Figures {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    cpu_us: f64,
}

/// What is compared.
enum Rival {
    Http(Server),
    Postgres(Box<Rows>),
}

impl Rival {
    fn name(&self) -> &'static str {
        match self {
            Self::Http(server) => server.name,
            Self::Postgres(rows) => rows.name,
        }
    }

    fn cpu_seconds(&self) -> Option<f64> {
        match self {
            Self::Http(server) => server.cpu_seconds(),
            Self::Postgres(rows) => rows.cpu_seconds(),
        }
    }

    /// Runs the load; says how many operations it was.
    fn run(&self, operation: Operation, connections: usize, time: Duration) -> io::Result<(Summary, u64)> {
        let requests = Requests::new(operation);
        let server = match self {
            Self::Postgres(rows) => return rows.run(&requests, operation, connections, time),
            Self::Http(server) => server,
        };
        let Outcome { summary, answered, refused } = load::run(server.port, &requests, connections, time)?;
        match refused.first() {
            None => Ok((summary, answered)),
            Some(first) => Err(io::Error::other(format!(
                "{} refused {} of {answered} requests, the first with:\n{first}",
                server.name,
                refused.len()
            ))),
        }
    }
}

fn measure(rival: &Rival, operation: Operation, connections: usize, time: Duration) -> io::Result<Figures> {
    let before = rival.cpu_seconds();
    let (summary, done) = rival.run(operation, connections, time)?;
    let cpu = rival.cpu_seconds().zip(before).map_or(f64::NAN, |(after, before)| after - before);
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    Ok(Figures {
        per_second: summary.per_second,
        p50_ms: ms(summary.p50),
        p99_ms: ms(summary.p99),
        cpu_us: cpu * 1e6 / done.max(1) as f64,
    })
}
