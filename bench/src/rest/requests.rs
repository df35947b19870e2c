//! Requests as bytes, signed beforehand, so that the load costs little beside the server.

use mayfly_cosmos::{
    auth::{EMULATOR_KEY, Key, payload},
    http_date,
};
use mayfly_engine::{Clock as _, SystemClock, Timestamp};

use super::Operation;
use crate::documents;

/// Documents that are read and replaced.
pub const DOCUMENTS: usize = 2000;

const DATABASE: &str = "bench";

/// Where documents are read and replaced, and where they are created.
pub const KEPT: &str = "kept";
const CREATED: &str = "created";

/// The requests of one operation.
pub struct Requests {
    operation: Operation,
    signer: Signer,
    /// Made once; creating makes each anew, for each has its id.
    ready: Vec<Vec<u8>>,
    /// Set apart from the creations of other runs.
    run: u64,
}

impl Requests {
    /// Requests of this operation, dated now.
    pub fn new(operation: Operation) -> Self {
        let now = SystemClock.now();
        let mut requests = Self { operation, signer: Signer::at(now), ready: Vec::new(), run: now.0 };
        requests.ready = match operation {
            Operation::Create => Vec::new(),
            _ => (0..DOCUMENTS).map(|n| requests.of_document(n)).collect(),
        };
        requests
    }

    /// The request number `n` of connection `connection`.
    pub fn make(&self, connection: usize, n: usize, into: &mut Vec<u8>) {
        into.clear();
        match self.operation {
            Operation::Create => {
                into.extend_from_slice(&self.creation(CREATED, n, &self.new_id(connection, n)))
            }
            _ => into.extend_from_slice(&self.ready[kept(connection, n)]),
        }
    }

    /// The id and the text of the document that request is about.
    pub fn document(&self, connection: usize, n: usize) -> (String, String) {
        match self.operation {
            Operation::Create => {
                let id = self.new_id(connection, n);
                let text = documents::text(n).replacen(&format!("{n:08}"), &id, 1);
                (id, text)
            }
            _ => {
                let n = kept(connection, n);
                (format!("{n:08}"), documents::text(n))
            }
        }
    }

    fn new_id(&self, connection: usize, n: usize) -> String {
        format!("{:x}-{connection}-{n}", self.run)
    }

    /// What has to be there first, in order.
    pub fn preparation(&self) -> Vec<Vec<u8>> {
        let mut all = vec![self.request("POST", "dbs", "", "/dbs", "", &format!(r#"{{"id":"{DATABASE}"}}"#))];
        for name in [KEPT, CREATED] {
            let body =
                format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#);
            let (link, path) = (format!("dbs/{DATABASE}"), format!("/dbs/{DATABASE}/colls"));
            all.push(self.request("POST", "colls", &link, &path, "", &body));
        }
        all.extend((0..DOCUMENTS).map(|n| self.creation(KEPT, n, &format!("{n:08}"))));
        all
    }

    fn of_document(&self, n: usize) -> Vec<u8> {
        let link = format!("dbs/{DATABASE}/colls/{KEPT}/docs/{n:08}");
        let (verb, body) = match self.operation {
            Operation::Replace => ("PUT", documents::text(n)),
            _ => ("GET", String::new()),
        };
        self.request(verb, "docs", &link, &format!("/{link}"), &partition_key(n), &body)
    }

    fn creation(&self, container: &str, n: usize, id: &str) -> Vec<u8> {
        let owner = format!("dbs/{DATABASE}/colls/{container}");
        let body = documents::text(n).replacen(&format!("{n:08}"), id, 1);
        self.request("POST", "docs", &owner, &format!("/{owner}/docs"), &partition_key(n), &body)
    }

    fn request(&self, verb: &str, kind: &str, link: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
        self.signer.request(verb, kind, link, path, headers, body)
    }
}

/// Signs requests with the emulator's key.
pub struct Signer {
    key: Key,
    date: String,
}

impl Signer {
    /// One for requests of this moment.
    pub fn at(now: Timestamp) -> Self {
        let key = Key::from_base64(EMULATOR_KEY).expect("the emulator's key");
        Self { key, date: http_date::format(now.seconds()) }
    }

    /// A request as it is sent; each of the `headers` ends its line.
    pub fn request(
        &self,
        verb: &str,
        kind: &str,
        link: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Vec<u8> {
        let signature = self.key.sign(&payload(verb, kind, link, Some(&self.date), None));
        // Servers differ in whether they decode the header; an encoded one suits all.
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2018-12-31\r\nx-ms-date: {}\r\n\
             authorization: type%3Dmaster%26ver%3D1.0%26sig%3D{signature}\r\naccept: application/json\r\n\
             {headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.date,
            body.len()
        )
        .into_bytes()
    }
}

/// Which of the kept documents is next: a step that has no factor in common with the count visits all of them.
fn kept(connection: usize, n: usize) -> usize {
    (connection * 127 + n * 1009) % DOCUMENTS
}

fn partition_key(n: usize) -> String {
    format!("x-ms-documentdb-partitionkey: [\"p{}\"]\r\n", n % documents::PARTITIONS)
}
