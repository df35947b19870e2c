//! Load: connections that send one request after the other and wait for each answer, all on one thread, so that most of the
//! machine is left to the server.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::{
    io,
    time::{Duration, Instant},
};

use futures_util::{TryStreamExt as _, stream::FuturesUnordered};

use super::requests::Requests;
use crate::{
    http::Connection,
    latency::{Latencies, Summary},
};

/// What a run gave.
pub struct Outcome {
    /// Latencies and rate.
    pub summary: Summary,
    /// Answers of any kind.
    pub answered: u64,
    /// Answers that were not 2xx, as they came.
    pub refused: Vec<String>,
}

/// Runs `connections` connections against a port for a while.
pub fn run(port: u16, requests: &Requests, connections: usize, time: Duration) -> io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = Instant::now();
    // Not joined: that would look at all connections whenever one has an answer.
    let all = (0..connections).map(|connection| one(port, requests, connection, start + time));
    let all = all.collect::<FuturesUnordered<_>>();
    let done: Vec<_> = runtime.block_on(all.try_collect())?;
    let elapsed = start.elapsed();
    let mut latencies = Latencies::default();
    let mut refused = Vec::new();
    for (some, not_done) in done {
        latencies.extend(some);
        refused.extend(not_done);
    }
    let answered = latencies.len() as u64;
    Ok(Outcome { summary: latencies.summary(elapsed), answered, refused })
}

/// Sends what has to be there, in order; whatever is there already is fine.
pub fn prepare(port: u16, requests: &Requests) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = Connection::new(port);
        for request in requests.preparation() {
            let status = connection.exchange(&request).await?;
            if !matches!(status, 200..300 | 409) {
                return Err(io::Error::other(format!("the server answers {status} to its preparation")));
            }
        }
        Ok(())
    })
}

async fn one(
    port: u16,
    requests: &Requests,
    number: usize,
    end: Instant,
) -> io::Result<(Latencies, Vec<String>)> {
    let mut connection = Connection::new(port);
    let (mut latencies, mut refused) = (Latencies::default(), Vec::new());
    let (mut n, mut request) = (0, Vec::new());
    while Instant::now() < end {
        requests.make(number, n, &mut request);
        let begun = Instant::now();
        let status = connection.exchange(&request).await?;
        latencies.push(begun.elapsed());
        if !(200..300).contains(&status) {
            refused.push(String::from_utf8_lossy(connection.answer()).into_owned());
        }
        n += 1;
    }
    Ok((latencies, refused))
}
