//! What one node hands out works on the other: session tokens, continuations, positions in the change feed, resource tokens.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::node;
use crate::{
    client::{Answer, Client},
    postgres::Postgres,
    shell::{Result, failure},
};

const DOCUMENTS: u64 = 60;
const ITEMS: &str = "/dbs/db/colls/c/docs";

/// Two nodes on a server that take turns in all that a client does.
pub fn tokens_work_on_any_node(postgres: &Postgres) -> Result<String> {
    let (one, other) = (node(&postgres.address(), "one")?, node(&postgres.address(), "other")?);
    let mut pair = Pair { clients: [Client::connect(one.port)?, Client::connect(other.port)?], turn: 0 };
    pair.made("/dbs", &[], json!({ "id": "db" }))?;
    let key = json!({ "paths": ["/p"], "kind": "Hash", "version": 2 });
    // Throughput for four slots.
    pair.made(
        "/dbs/db/colls",
        &[("x-ms-offer-throughput", "40000")],
        json!({ "id": "c", "partitionKey": key }),
    )?;
    pair.sessions()?;
    let ordered = pair.query("SELECT VALUE c.n FROM c ORDER BY c.n DESC")?;
    if ordered != (0..DOCUMENTS).rev().collect::<Vec<_>>() {
        return failure(format!("pages of two nodes are not in order: {ordered:?}"));
    }
    let mut streamed = pair.query("SELECT VALUE c.n FROM c")?;
    streamed.sort_unstable();
    if streamed != (0..DOCUMENTS).collect::<Vec<_>>() {
        return failure(format!("pages of two nodes are not whole: {streamed:?}"));
    }
    let ranges = pair.changes()?;
    pair.resource_token()?;
    drop(pair);
    one.stop()?;
    other.stop()?;
    Ok(format!("{DOCUMENTS} documents in {ranges} ranges"))
}

/// A connection to each of two nodes.
struct Pair {
    clients: [Client; 2],
    turn: usize,
}

impl Pair {
    /// The node that was not asked last.
    fn next(&mut self) -> &mut Client {
        self.turn += 1;
        &mut self.clients[self.turn % 2]
    }

    fn made(&mut self, path: &str, headers: &[(&str, &str)], body: Value) -> Result<Answer> {
        let answer = self.next().send("POST", path, headers, body.to_string().as_bytes())?;
        if answer.status == 201 { Ok(answer) } else { failure(format!("{path}: {answer:?}")) }
    }

    /// A document that one node made is read on the other at once, by the session token of the write.
    fn sessions(&mut self) -> Result<()> {
        for number in 0..DOCUMENTS {
            let partition = json!([format!("p{number}")]).to_string();
            let body = json!({ "id": format!("{number}"), "p": format!("p{number}"), "n": number });
            let made = self.made(ITEMS, &[("x-ms-documentdb-partitionkey", &partition)], body)?;
            let session = made.header("x-ms-session-token").unwrap_or_default().to_owned();
            let headers = [
                ("x-ms-documentdb-partitionkey", &partition[..]),
                ("x-ms-consistency-level", "Session"),
                ("x-ms-session-token", &session),
            ];
            let read = self.next().send("GET", &format!("{ITEMS}/{number}"), &headers, b"")?;
            if session.is_empty() || read.status != 200 {
                return failure(format!("document {number} by session {session:?}: {read:?}"));
            }
        }
        Ok(())
    }

    /// All rows of a query, a page by each node in turn.
    fn query(&mut self, text: &str) -> Result<Vec<u64>> {
        let body = json!({ "query": text }).to_string();
        let (mut rows, mut continuation) = (Vec::new(), None::<String>);
        loop {
            let mut headers = vec![
                ("content-type", "application/query+json"),
                ("x-ms-documentdb-isquery", "True"),
                ("x-ms-documentdb-query-enablecrosspartition", "True"),
                ("x-ms-max-item-count", "7"),
            ];
            headers.extend(continuation.as_deref().map(|token| ("x-ms-continuation", token)));
            let page = self.next().send("POST", ITEMS, &headers, body.as_bytes())?;
            let found = page.json()?["Documents"].as_array().cloned();
            let Some(found) = found.filter(|_| page.status == 200) else {
                return failure(format!("{text}: {page:?}"));
            };
            rows.extend(found.iter().filter_map(Value::as_u64));
            match page.header("x-ms-continuation") {
                Some(token) => continuation = Some(token.to_owned()),
                None => return Ok(rows),
            }
        }
    }

    /// The change feed of every range, each page by the other node; how many ranges there are.
    fn changes(&mut self) -> Result<usize> {
        let ranges = self.next().get("/dbs/db/colls/c/pkranges")?.json()?;
        let ranges: Vec<String> = ranges["PartitionKeyRanges"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|range| Some(range["id"].as_str()?.to_owned()))
            .collect();
        let mut seen = BTreeSet::new();
        for range in &ranges {
            let mut after = String::new();
            loop {
                let mut headers = vec![
                    ("a-im", "Incremental feed"),
                    ("x-ms-documentdb-partitionkeyrangeid", &range[..]),
                    ("x-ms-max-item-count", "5"),
                ];
                if !after.is_empty() {
                    headers.push(("if-none-match", &after[..]));
                }
                let page = self.next().send("GET", ITEMS, &headers, b"")?;
                let etag = page.header("etag").unwrap_or_default().to_owned();
                match page.status {
                    304 => break,
                    200 => {}
                    _ => return failure(format!("the feed of range {range}: {page:?}")),
                }
                for document in page.json()?["Documents"].as_array().into_iter().flatten() {
                    if !seen.insert(document["n"].as_u64()) {
                        return failure(format!("twice in the feed: {document}"));
                    }
                }
                after = etag;
            }
        }
        if ranges.len() > 1 && seen.len() as u64 == DOCUMENTS {
            return Ok(ranges.len());
        }
        failure(format!("{} changes in ranges {ranges:?}", seen.len()))
    }

    /// A permission that one node gave is one on the other.
    fn resource_token(&mut self) -> Result<()> {
        self.made("/dbs/db/users", &[], json!({ "id": "u" }))?;
        let read = json!({ "id": "read", "permissionMode": "Read", "resource": "dbs/db/colls/c" });
        let made = self.made("/dbs/db/users/u/permissions", &[], read)?.json()?;
        let token = made["_token"].as_str().unwrap_or_default().to_owned();
        let partition = [("x-ms-documentdb-partitionkey", r#"["p7"]"#)];
        let client = self.next();
        let read = client.send_as(&token, "GET", &format!("{ITEMS}/7"), &partition, b"")?;
        let written = client.send_as(&token, "DELETE", &format!("{ITEMS}/7"), &partition, b"")?;
        match (read.status, written.status) {
            (200, 403) => Ok(()),
            _ => failure(format!("by a resource token of the other node: {read:?}, {written:?}")),
        }
    }
}
