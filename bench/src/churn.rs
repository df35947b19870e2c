//! What is known of documents that live for a moment: when they came, and so when each of them should have gone.
//!
//! Writers count what was acknowledged; the count is noted many times a second. Documents come and go in about the same
//! order, so a count of documents that are gone tells how late the server is, and a count of documents that have ever
//! been there tells how old the server's own figures are.

use std::{
    io::{Error, Read as _, Result, Write as _},
    net::{Ipv4Addr, TcpStream},
};

/// How many documents had been inserted when.
#[derive(Debug, Default)]
pub struct Ledger(Vec<(f64, u64)>);

impl Ledger {
    /// Notes that so many were inserted by a moment, in seconds since the start.
    pub fn note(&mut self, at: f64, inserted: u64) {
        self.0.push((at, inserted));
    }

    /// How many were inserted by a moment.
    pub fn inserted_by(&self, at: f64) -> u64 {
        let after = self.0.partition_point(|(noted, _)| *noted <= at);
        after.checked_sub(1).map_or(0, |last| self.0[last].1)
    }

    /// When so many had been inserted; `None` if that is still to come.
    pub fn when(&self, inserted: u64) -> Option<f64> {
        let first = self.0.partition_point(|(_, noted)| *noted < inserted);
        self.0.get(first).map(|(at, _)| *at)
    }

    /// How late the removal of documents is that live so long, if so many of them are gone.
    pub fn lag_seconds(&self, gone: u64, life_seconds: f64, now: f64) -> f64 {
        self.when(gone + 1).map_or(0.0, |came| (now - came - life_seconds).max(0.0))
    }
}

/// What a server tells about its documents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Living documents and those that have expired, whether removed or not: all that have ever been there.
    pub ever: u64,
    /// Removed because they had expired.
    pub purged: u64,
    /// Expired and not removed.
    pub backlog: u64,
    /// How long the oldest of them has waited.
    pub lag_seconds: u64,
}

impl Told {
    /// By the metrics of the server at this port.
    pub fn by_metrics(port: u16) -> Result<Self> {
        let text = get(port, "/metrics")?;
        let of = |name: &str| {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).collect::<Vec<_>>()
        };
        let sum = |name: &str| of(name).into_iter().sum::<u64>();
        Ok(Self {
            ever: sum("mayfly_documents") + sum("mayfly_ttl_expired_total"),
            purged: sum("mayfly_ttl_purged_total"),
            backlog: sum("mayfly_ttl_backlog"),
            lag_seconds: of("mayfly_ttl_lag_seconds").into_iter().max().unwrap_or(0),
        })
    }
}

/// The text that a server answers to a plain request.
fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200 ") {
        true => Ok(answer),
        false => Err(Error::other(format!("{path} answers {}", answer.lines().next().unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_knows_who_is_late() {
        let mut ledger = Ledger::default();
        for second in 0..=10 {
            ledger.note(f64::from(second), second as u64 * 100);
        }
        assert_eq!(ledger.inserted_by(3.5), 300);
        assert_eq!(ledger.when(301), Some(4.0));
        assert_eq!(ledger.when(1001), None);
        // The first that is left came after 4 s, should have gone after 6, and it is 10.
        assert_eq!(ledger.lag_seconds(300, 2.0, 10.0), 4.0);
        assert_eq!(ledger.lag_seconds(1000, 2.0, 10.0), 0.0);
    }
}
