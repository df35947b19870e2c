//! How long an empty server takes to be there, and how much memory it has when nobody asks for anything.
//!
//! ```text
//! cargo xtask bench start
//! ```

use std::{
    io::{BufRead, BufReader},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use clap::Parser;
use mayfly_bench::{median, processes};
use mayfly_engine::clock::{Stopwatch, pause};

#[derive(Parser)]
struct Options {
    /// The server to start; the one that was built beside this bench if not given
    #[arg(long)]
    mayfly: Option<PathBuf>,
    /// Starts, each in a new directory
    #[arg(long, default_value_t = 7)]
    runs: usize,
}

/// How long after the start memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let beside = std::env::current_exe().ok().map(|bench| bench.with_file_name("mayfly"));
    let Some(binary) = options.mayfly.or(beside).filter(|path| path.is_file()) else {
        println!("there is no server beside this bench: `cargo build --release --package mayfly` makes one");
        std::process::exit(1);
    };
    println!("start: {} empty servers, to the line `Started`", options.runs);
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    for run in 1..=options.runs {
        let (took, resident) = start(&binary).await;
        println!("  run {run}: {took:.0} ms, {resident:.1} MB");
        times.push(took);
        sizes.push(resident);
    }
    let largest = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    println!("  started after {:.0} ms, at most {:.0} (goal: 300)", median(times.clone()), largest(&times));
    println!("  {:.1} MB resident, at most {:.1} (goal: 60)", median(sizes.clone()), largest(&sizes));
}

/// Milliseconds to the start, and megabytes a moment later.
async fn start(binary: &Path) -> (f64, f64) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let port = free_port().to_string();
    let watch = Stopwatch::start();
    let child = Command::new(binary)
        .args(["serve", "--port", &port, "--mongo-port", "0", "--data-dir"])
        .arg(dir.path().join("data"))
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn();
    let mut server = Running(child.expect("the server can be run"));
    let lines = BufReader::new(server.0.stdout.take().expect("its output is ours")).lines();
    let started = lines.map_while(Result::ok).any(|line| line.trim() == "Started");
    let took = watch.elapsed();
    assert!(started, "the server ended before it started");
    pause(IDLE).await;
    let resident = processes::status_bytes(server.0.id(), "VmRSS:").map_or(f64::NAN, |bytes| bytes as f64);
    (took.as_secs_f64() * 1000.0, resident / 1_048_576.0)
}

/// Stops the server whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.local_addr().expect("its address").port()
}
