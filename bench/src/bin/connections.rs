//! What an idle connection of the MongoDB protocol costs: many that said `hello` and one command, and then nothing.
//!
//! ```text
//! cargo xtask bench connections
//! ```

use std::{path::PathBuf, time::Duration};

use bson::doc;
use clap::Parser;
use mayfly_bench::{mongo::Client, processes, rest::servers::Server};
use mayfly_engine::clock::pause;

#[derive(Parser)]
struct Options {
    /// Connections to open; the system's limit of open files must allow twice as many
    #[arg(long, default_value_t = 5_000)]
    connections: usize,
    /// The port to use
    #[arg(long, default_value_t = 27_219)]
    port: u16,
    /// The server's binary; the one beside this program unless said otherwise
    #[arg(long)]
    mayfly: Option<PathBuf>,
}

/// How long the server has to come to rest before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let beside = std::env::current_exe().ok().map(|bench| bench.with_file_name("mayfly"));
    let Some(binary) = options.mayfly.or(beside).filter(|path| path.is_file()) else {
        println!("there is no server beside this bench: `cargo build --release --package mayfly` makes one");
        std::process::exit(1);
    };
    let server = Server::mayfly_for_mongo(&binary, options.port).expect("the server starts");
    let resident = || processes::status_bytes(server.process(), "VmRSS:").expect("the system tells") as f64;
    // The first few make what all of them share.
    let mut open: Vec<Client> = (0..100).map(|_| connect(options.port)).collect();
    pause(IDLE).await;
    let before = resident();
    open.extend((0..options.connections).map(|_| connect(options.port)));
    pause(IDLE).await;
    let each = (resident() - before) / options.connections as f64 / 1024.0;
    println!("{} idle connections: {each:.1} KB of memory each (goal: 20)", options.connections);
    drop(open);
}

/// A connection as a driver opens it, that has been used once.
fn connect(port: u16) -> Client {
    let mut client = Client::connect(port).expect("the server takes another connection");
    let driver = doc! { "name": "bench", "version": "1.0.0" };
    let about =
        doc! { "application": { "name": "connections" }, "driver": driver, "os": { "type": "Linux" } };
    client.run(&doc! { "hello": 1, "client": about, "$db": "admin" });
    client.run(&doc! { "find": "c", "filter": { "_id": 1 }, "$db": "bench" });
    client
}
