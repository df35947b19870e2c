//! One writer: its documents, its requests, and how it finds them again.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use super::{
    BRIEF, DATABASE, KEPT, PAIRS,
    ledger::{Entry, Tally, Version},
    random::Random,
};
use crate::{
    client::{Answer, Client},
    shell::{Failure, Result, failure},
};

/// Documents of one writer in each container. Few enough that most writes hit one that is there.
const DOCUMENTS: u64 = 24;

/// Documents written together in one batch.
const BATCH: u64 = 3;

pub struct Writer {
    name: String,
    random: Random,
    version: u64,
    kept: BTreeMap<String, Entry>,
    brief: BTreeMap<String, Entry>,
    /// The version that all documents of the batch have.
    batch: Entry,
    batches: bool,
    pub tally: Tally,
}

impl Writer {
    pub fn new(number: u64, seed: u64) -> Self {
        let name = format!("w{number}");
        let documents = || (0..DOCUMENTS).map(|n| (format!("{name}-{n}"), Entry::default())).collect();
        Self {
            random: Random::new(seed ^ (number + 1)),
            version: 0,
            kept: documents(),
            brief: documents(),
            batch: Entry::default(),
            batches: true,
            tally: Tally::default(),
            name,
        }
    }

    /// Writes until the connection breaks, which it gives back; an error is a wrong answer.
    pub fn write(&mut self, port: u16, last_second: &AtomicU64) -> Result<Failure> {
        let broken = self.write_until(port, last_second, &|| false)?;
        broken.map_or_else(|| failure("a writer that nobody stopped"), Ok)
    }

    /// Writes until the connection breaks, or until it is told to stop.
    pub fn write_until(
        &mut self,
        port: u16,
        last_second: &AtomicU64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Failure>> {
        let mut client = Client::connect(port)?;
        while !stopped() {
            let answered = match self.random.between(0, 9) {
                0 | 1 if self.batches => self.write_batch(&mut client)?,
                n => self.write_one(&mut client, n < 6)?,
            };
            match answered {
                Ok(second) => last_second.fetch_max(second, Ordering::AcqRel),
                Err(broken) => return Ok(Some(broken)),
            };
        }
        Ok(None)
    }

    /// One operation on one document. The inner error is a broken connection.
    fn write_one(&mut self, client: &mut Client, kept: bool) -> Result<std::result::Result<u64, Failure>> {
        let id = format!("{}-{}", self.name, self.random.between(0, DOCUMENTS - 1));
        let (container, documents) = if kept { (KEPT, &mut self.kept) } else { (BRIEF, &mut self.brief) };
        let Some(entry) = documents.get_mut(&id) else { return failure("no such document") };
        self.version += 1;
        let ttl = if kept { 0 } else { [0, 0, -1, 1, 3][self.random.between(0, 4) as usize] };
        let next = Version { number: self.version, ttl, ts: 0 };
        let padding = self.random.between(0, 1500) as usize;
        let body = document(&id, &self.name, &next, padding).to_string();
        let (docs, doc) = (path(container, None), path(container, Some(&id)));
        let key = format!("[\"{}\"]", self.name);
        let key = ("x-ms-documentdb-partitionkey", key.as_str());
        let upsert = [key, ("x-ms-documentdb-is-upsert", "true")];
        type Request<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8]);
        let (request, wanted): (Request<'_>, _) = match self.random.between(0, 9) {
            0 | 1 => (("POST", &docs, &[key], body.as_bytes()), Some(next)),
            2 | 3 => (("PUT", &doc, &[key], body.as_bytes()), Some(next)),
            4 => (("DELETE", &doc, &[key], b""), None),
            _ => (("POST", &docs, &upsert, body.as_bytes()), Some(next)),
        };
        entry.attempted = Some(wanted);
        let (verb, path, headers, body) = request;
        let answer = match client.send(verb, path, headers, body) {
            Ok(answer) => answer,
            Err(broken) => return Ok(Err(broken)),
        };
        if answer.status == 503 {
            return Ok(Err(unavailable(&answer)));
        }
        let known = format!("{entry:?}");
        let fault = |what: &str| {
            Failure(format!("{verb} {path}: {} at {}, {what}: {known}", answer.status, answer.second))
        };
        match answer.status {
            200 | 201 => {
                let ts = answer.json()?["_ts"].as_u64().ok_or_else(|| fault("no _ts"))?;
                entry.acknowledge(wanted.map(|version| Version { ts, ..version }));
            }
            204 => entry.acknowledge(None),
            // Refused because of what is there, or is not: the answer tells which.
            404 | 409 => {
                let found = entry.acknowledged.filter(|_| answer.status == 409);
                if answer.status == 409 && found.is_none() {
                    return Err(fault("nothing should be in the way"));
                }
                entry.attempted = None;
                entry.settle(found, answer.second, !kept).map_err(|what| fault(&what))?;
                self.tally.expired += u64::from(found.is_none() && !kept);
            }
            _ => return Err(fault(&String::from_utf8_lossy(&answer.body))),
        }
        self.tally.writes += u64::from(answer.status < 300);
        Ok(Ok(answer.second))
    }

    /// The same version of several documents, in one batch.
    fn write_batch(&mut self, client: &mut Client) -> Result<std::result::Result<u64, Failure>> {
        self.version += 1;
        let next = Version { number: self.version, ttl: 0, ts: 0 };
        let operations: Vec<_> = (0..BATCH)
            .map(|n| {
                let body = document(&format!("{}-{n}", self.name), &self.name, &next, 100);
                json!({ "operationType": "Upsert", "resourceBody": body })
            })
            .collect();
        let key = format!("[\"{}\"]", self.name);
        let headers = [
            ("x-ms-documentdb-partitionkey", key.as_str()),
            ("x-ms-cosmos-is-batch-request", "true"),
            ("x-ms-cosmos-batch-atomic", "true"),
        ];
        let body = Value::from(operations).to_string();
        self.batch.attempted = Some(Some(next));
        let answer = match client.send("POST", &path(PAIRS, None), &headers, body.as_bytes()) {
            Ok(answer) => answer,
            Err(broken) => return Ok(Err(broken)),
        };
        match answer.status {
            503 => return Ok(Err(unavailable(&answer))),
            200 => {
                self.batch.acknowledge(Some(next));
                self.tally.batches += 1;
            }
            // A server without batches; everything else is still worth testing.
            501 => {
                self.batches = false;
                self.batch.attempted = None;
            }
            status => return failure(format!("batch: {status} {}", String::from_utf8_lossy(&answer.body))),
        }
        Ok(Ok(answer.second))
    }

    /// Reads every document and compares.
    pub fn verify(&mut self, client: &mut Client) -> Result<()> {
        let key = format!("[\"{}\"]", self.name);
        for (container, documents) in [(KEPT, &mut self.kept), (BRIEF, &mut self.brief)] {
            for (id, entry) in documents {
                let before = entry.acknowledged;
                let (found, answer) = read(client, container, id, &key)?;
                let settled = entry.settle(found, answer.second, container == BRIEF);
                settled.map_err(|what| Failure(format!("{container}/{id}: {what}")))?;
                self.tally.expired +=
                    u64::from(container == BRIEF && before.is_some() && entry.acknowledged.is_none());
                self.tally.reads += 1;
            }
        }
        let mut versions = Vec::new();
        for n in 0..BATCH {
            let (found, _) = read(client, PAIRS, &format!("{}-{n}", self.name), &key)?;
            // All of a batch has one second, which says nothing here.
            versions.push(found.map(|version| Version { ts: 0, ..version }));
        }
        if versions.iter().any(|version| *version != versions[0]) {
            return failure(format!("a batch of {} is not whole: {versions:?}", self.name));
        }
        let settled = self.batch.settle(versions[0], 0, false);
        settled.map_err(|what| Failure(format!("the batch of {}: {what}", self.name)))
    }
}

/// The server cannot say what became of the request, which is as if it had broken the connection.
fn unavailable(answer: &Answer) -> Failure {
    Failure(format!("503: {}", String::from_utf8_lossy(&answer.body)))
}

/// The list must show exactly what the point reads showed.
pub fn verify_list(client: &mut Client, writers: &[Writer]) -> Result<()> {
    let mut listed = BTreeMap::new();
    let mut continuation: Option<String> = None;
    loop {
        let token = continuation.take();
        let headers: Vec<_> = token.iter().map(|token| ("x-ms-continuation", token.as_str())).collect();
        let page = client.send("GET", &path(KEPT, None), &headers, b"")?;
        for item in page.json()?["Documents"].as_array().into_iter().flatten() {
            let id = item["id"].as_str().unwrap_or_default().to_owned();
            listed.insert(id, item["version"].as_u64());
        }
        continuation = page.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    let known = writers.iter().flat_map(|writer| &writer.kept);
    let known: BTreeMap<_, _> =
        known.filter_map(|(id, entry)| Some((id.clone(), Some(entry.acknowledged?.number)))).collect();
    match listed == known {
        true => Ok(()),
        false => failure(format!("the list shows {listed:?}, point reads {known:?}")),
    }
}

fn read(client: &mut Client, container: &str, id: &str, key: &str) -> Result<(Option<Version>, Answer)> {
    let answer =
        client.send("GET", &path(container, Some(id)), &[("x-ms-documentdb-partitionkey", key)], b"")?;
    let found = match answer.status {
        404 => None,
        200 => {
            let body = answer.json()?;
            let number = |name: &str| body[name].as_i64();
            let ttl = number("ttl").unwrap_or(0);
            let (Some(version), Some(ts)) = (number("version"), number("_ts")) else {
                return failure(format!("{container}/{id} is damaged: {body}"));
            };
            Some(Version { number: version as u64, ttl, ts: ts as u64 })
        }
        status => return failure(format!("GET {container}/{id}: {status}")),
    };
    Ok((found, answer))
}

fn path(container: &str, id: Option<&str>) -> String {
    let docs = format!("/dbs/{DATABASE}/colls/{container}/docs");
    id.map_or(docs.clone(), |id| format!("{docs}/{id}"))
}

fn document(id: &str, partition: &str, version: &Version, padding: usize) -> Value {
    let mut document = json!({
        "id": id,
        "pk": partition,
        "version": version.number,
        // Unique in its partition, and another one with each version.
        "label": format!("{id}:{}", version.number),
        "padding": "x".repeat(padding),
    });
    if version.ttl != 0 {
        document["ttl"] = json!(version.ttl);
    }
    document
}
