//! What the server counts, in the text form that Prometheus reads.
//!
//! Requests by operation and class of status, how long they took, connections. Other parts add their own lines
//! as a `MetricsSource`.
//!
//! Holds: labels are words of this program, never of a request, so neither names of documents nor a flood of
//! series can get in.

use crate::connection::Scheme;
use crate::samples::Sample;
use mayfly_engine::PerThread;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency buckets in seconds: a point read takes a fraction of the first, a large query
/// page the last.
pub const BUCKETS_SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Classes of status, by their first digit.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Operations of people and scripts who look after the server.
const NOT_CLIENTS: [&str; 3] = ["server", "none", "Administration"];

/// A part of the server that has something to report.
pub trait MetricsSource {
    /// Appends lines in the Prometheus text form. Names start with `mayfly_`; labels hold no user data.
    fn render(&self, out: &mut String);
}

/// The server's own counts.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: PerThread<Mutex<Requests>>,
    connections_http: AtomicU64,
    connections_https: AtomicU64,
    connections_open: AtomicI64,
    handshake_failures: AtomicU64,
    panics: AtomicU64,
}

/// What is counted for every request, behind one lock for each thread.
#[derive(Debug, Default)]
struct Requests {
    by_operation: BTreeMap<&'static str, Operation>,
    throttled: u64,
    charge: f64,
}

#[derive(Debug, Default)]
struct Operation {
    by_class: [u64; CLASSES.len()],
    /// Requests that took at most the bound, and longer than the one before; the last has no bound.
    by_duration: [u64; BUCKETS_SECONDS.len() + 1],
    seconds: f64,
}

impl Requests {
    fn add(&mut self, other: &Self) {
        for (name, operation) in &other.by_operation {
            let sum = self.by_operation.entry(name).or_default();
            add_each(&mut sum.by_class, &operation.by_class);
            add_each(&mut sum.by_duration, &operation.by_duration);
            sum.seconds += operation.seconds;
        }
        self.throttled += other.throttled;
        self.charge += other.charge;
    }
}

fn add_each(sums: &mut [u64], counts: &[u64]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

impl Metrics {
    /// Counts a request, and what it was charged in request units. `operation` is a word of the protocol like `read_item`.
    pub fn request(&self, operation: &'static str, status: u16, took: Duration, charge: f64) {
        let seconds = took.as_secs_f64();
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        let bucket = BUCKETS_SECONDS.iter().take_while(|bound| seconds > **bound).count();
        let mut requests = self.requests.mine().lock();
        let counts = requests.by_operation.entry(operation).or_default();
        counts.by_class[class] += 1;
        counts.by_duration[bucket] += 1;
        counts.seconds += seconds;
        requests.charge += charge;
        requests.throttled += u64::from(status == 429);
    }

    /// What all threads have counted.
    fn requests(&self) -> Requests {
        let mut sum = Requests::default();
        for requests in self.requests.all() {
            sum.add(&requests.lock());
        }
        sum
    }

    /// Adds up what clients asked for.
    pub fn add_to(&self, sample: &mut Sample) {
        let requests = self.requests();
        for (_, operation) in requests.by_operation.iter().filter(|(name, _)| !NOT_CLIENTS.contains(name)) {
            let [_, _, _, refused, failed] = operation.by_class;
            sample.requests += operation.by_class.iter().sum::<u64>();
            sample.refused += refused;
            sample.failed += failed;
            add_each(&mut sample.by_duration, &operation.by_duration);
        }
        sample.throttled = requests.throttled;
        sample.charge = requests.charge;
    }

    /// Counts a connection whose scheme is known, as open until the result is dropped.
    pub fn connection(self: &Arc<Self>, scheme: Scheme) -> OpenConnection {
        let total = match scheme {
            Scheme::Http => &self.connections_http,
            Scheme::Https => &self.connections_https,
        };
        total.fetch_add(1, Ordering::Relaxed);
        self.connections_open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    /// Counts a TLS handshake that the client or we gave up.
    pub fn handshake_failed(&self) {
        self.handshake_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a bug that was answered with 500.
    pub fn handler_panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection that is counted as open, however it ends.
#[derive(Debug)]
pub struct OpenConnection(Arc<Metrics>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MetricsSource for Metrics {
    fn render(&self, out: &mut String) {
        let requests = self.requests();
        head(out, "mayfly_requests_total", "counter", "Requests answered, by operation and class of status.");
        for (name, operation) in &requests.by_operation {
            for (class, count) in CLASSES.iter().zip(operation.by_class).filter(|(_, count)| *count > 0) {
                line(
                    out,
                    &format!("mayfly_requests_total{{operation=\"{name}\",status=\"{class}\"}}"),
                    count,
                );
            }
        }
        head(out, "mayfly_request_duration_seconds", "histogram", "Time from request to response head.");
        for (name, operation) in &requests.by_operation {
            operation.render_durations(name, out);
        }
        head(out, "mayfly_connections_total", "counter", "Connections accepted, by scheme.");
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        line(out, "mayfly_connections_total{scheme=\"http\"}", load(&self.connections_http));
        line(out, "mayfly_connections_total{scheme=\"https\"}", load(&self.connections_https));
        let open = self.connections_open.load(Ordering::Relaxed);
        single(out, "mayfly_connections_open", "gauge", "Connections open now.", open);
        let failures = load(&self.handshake_failures);
        single(out, "mayfly_tls_handshake_failures_total", "counter", "TLS handshakes given up.", failures);
        let panics = load(&self.panics);
        single(out, "mayfly_handler_panics_total", "counter", "Bugs that were answered with 500.", panics);
        let charge = requests.charge;
        single(out, "mayfly_request_units_total", "counter", "Request units charged.", charge);
        let throttled = requests.throttled;
        single(out, "mayfly_throttled_total", "counter", "Requests answered with 429.", throttled);
    }
}

impl Operation {
    fn render_durations(&self, name: &str, out: &mut String) {
        let metric = "mayfly_request_duration_seconds";
        let mut count = 0;
        for (bound, in_bucket) in BUCKETS_SECONDS.iter().zip(self.by_duration) {
            count += in_bucket;
            line(out, &format!("{metric}_bucket{{operation=\"{name}\",le=\"{bound}\"}}"), count);
        }
        count += self.by_duration[BUCKETS_SECONDS.len()];
        line(out, &format!("{metric}_bucket{{operation=\"{name}\",le=\"+Inf\"}}"), count);
        line(out, &format!("{metric}_sum{{operation=\"{name}\"}}"), self.seconds);
        line(out, &format!("{metric}_count{{operation=\"{name}\"}}"), count);
    }
}

/// A metric of one value, with its description.
pub fn single(out: &mut String, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
    head(out, name, kind, help);
    line(out, name, value);
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(out: &mut String, series: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{series} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_count_is_added_up() {
        let metrics = Metrics::default();
        std::thread::scope(|scope| {
            for (status, charge) in [(200, 1.0), (200, 2.5), (429, 0.0)] {
                let metrics = &metrics;
                scope.spawn(move || metrics.request("read_item", status, Duration::from_micros(300), charge));
            }
        });
        let mut text = String::new();
        metrics.render(&mut text);
        for line in [
            "mayfly_requests_total{operation=\"read_item\",status=\"2xx\"} 2",
            "mayfly_requests_total{operation=\"read_item\",status=\"4xx\"} 1",
            "mayfly_request_duration_seconds_count{operation=\"read_item\"} 3",
            "mayfly_request_units_total 3.5",
            "mayfly_throttled_total 1",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let mut sample = Sample::default();
        metrics.add_to(&mut sample);
        assert_eq!((sample.requests, sample.refused, sample.throttled, sample.charge), (3, 1, 1, 3.5));
    }

    #[test]
    fn requests_are_counted_by_operation_class_and_time() {
        let metrics = Metrics::default();
        metrics.request("read_item", 200, Duration::from_micros(300), 1.0);
        metrics.request("read_item", 404, Duration::from_millis(3), 1.0);
        metrics.request("query_items", 200, Duration::from_secs(9), 3.5);
        let mut text = String::new();
        metrics.render(&mut text);
        for line in [
            "mayfly_requests_total{operation=\"read_item\",status=\"2xx\"} 1",
            "mayfly_requests_total{operation=\"read_item\",status=\"4xx\"} 1",
            "mayfly_request_duration_seconds_bucket{operation=\"read_item\",le=\"0.0005\"} 1",
            "mayfly_request_duration_seconds_bucket{operation=\"read_item\",le=\"0.0025\"} 1",
            "mayfly_request_duration_seconds_bucket{operation=\"read_item\",le=\"0.005\"} 2",
            "mayfly_request_duration_seconds_bucket{operation=\"query_items\",le=\"5\"} 0",
            "mayfly_request_duration_seconds_bucket{operation=\"query_items\",le=\"+Inf\"} 1",
            "mayfly_request_duration_seconds_count{operation=\"read_item\"} 2",
            "mayfly_request_units_total 5.5",
            "mayfly_connections_open 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn a_sample_counts_clients_only() {
        let metrics = Metrics::default();
        metrics.request("ReadItem", 200, Duration::from_micros(300), 2.5);
        metrics.request("ReadItem", 429, Duration::from_micros(300), 1.0);
        metrics.request("Administration", 200, Duration::from_secs(9), 0.0);
        metrics.request("server", 500, Duration::from_secs(9), 0.0);
        let mut sample = Sample::default();
        metrics.add_to(&mut sample);
        assert_eq!((sample.requests, sample.refused, sample.throttled, sample.failed), (2, 1, 1, 0));
        assert_eq!((sample.charge, sample.by_duration[0]), (3.5, 2));
    }

    #[test]
    fn every_series_is_described_once() {
        let mut text = String::new();
        Metrics::default().render(&mut text);
        let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(names.len(), 8, "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("mayfly_")), "{text}");
    }
}
