//! Speaks the MongoDB protocol: messages as drivers make them, to be sent whole or in part.

use crate::harness::PATIENCE;
use bson::{Document, doc};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Flags of a message.
pub const MORE_TO_COME: u32 = 1 << 1;
pub const EXHAUST_ALLOWED: u32 = 1 << 16;

const HEADER_LEN: usize = 16;
const REPLY: i32 = 1;
const QUERY: i32 = 2004;
const MSG: i32 = 2013;

/// The database of commands that name none.
pub const DATABASE: &str = "d";

/// A command as one document.
pub fn message(command: &Document, flags: u32) -> Vec<u8> {
    let mut payload = flags.to_le_bytes().to_vec();
    payload.push(0);
    payload.extend(of_database(command).to_vec().unwrap());
    framed(MSG, payload)
}

/// A command whose documents stand beside it, as drivers send those of a write.
pub fn message_with(command: &Document, name: &str, documents: &[Document]) -> Vec<u8> {
    let mut section = [name.as_bytes(), &[0]].concat();
    documents.iter().for_each(|document| section.extend(document.to_vec().unwrap()));
    let mut payload = vec![0; 5];
    payload.extend(of_database(command).to_vec().unwrap());
    payload.push(1);
    payload.extend((section.len() as i32 + 4).to_le_bytes());
    payload.extend(section);
    framed(MSG, payload)
}

/// The old form, in which drivers ask who is there.
pub fn query(command: &Document) -> Vec<u8> {
    let mut payload = vec![0; 4];
    payload.extend(b"admin.$cmd\0");
    payload.extend(0_i32.to_le_bytes());
    payload.extend((-1_i32).to_le_bytes());
    payload.extend(command.to_vec().unwrap());
    framed(QUERY, payload)
}

fn of_database(command: &Document) -> Document {
    let mut command = command.clone();
    if !command.contains_key("$db") {
        command.insert("$db", DATABASE);
    }
    command
}

fn framed(opcode: i32, payload: Vec<u8>) -> Vec<u8> {
    let words = [(HEADER_LEN + payload.len()) as i32, 1, 0, opcode];
    words.iter().flat_map(|word| word.to_le_bytes()).chain(payload).collect()
}

/// A connection.
pub struct MongoClient(TcpStream);

impl MongoClient {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Sends bytes, and does not wait.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Reads so many bytes.
    pub async fn read(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        timeout(PATIENCE, self.0.read_exact(&mut bytes)).await.expect("the server answers").unwrap();
        bytes
    }

    /// The bytes of the next answer.
    pub async fn answer(&mut self) -> Vec<u8> {
        let mut answer = self.read(HEADER_LEN).await;
        let length = i32::from_le_bytes(*answer.first_chunk().unwrap()) as usize;
        answer.extend(self.read(length - HEADER_LEN).await);
        answer
    }

    /// Runs a command, whatever comes of it.
    pub async fn ask(&mut self, command: &Document) -> Document {
        self.send(&message(command, 0)).await;
        document_in(&self.answer().await)
    }

    /// Runs a command that goes well.
    pub async fn must(&mut self, command: &Document) -> Document {
        let reply = self.ask(command).await;
        assert!(is_good(&reply), "{command}: {reply}");
        reply
    }
}

/// The document in the bytes of an answer.
pub fn document_in(answer: &[u8]) -> Document {
    let opcode = i32::from_le_bytes(answer[12..16].try_into().unwrap());
    let before = if opcode == REPLY { 20 } else { 5 };
    Document::from_reader(&answer[HEADER_LEN + before..]).unwrap()
}

/// Whether a command did all that it was told to.
pub fn is_good(reply: &Document) -> bool {
    let failed = ["writeErrors", "writeConcernError"].into_iter().any(|name| reply.contains_key(name));
    reply.get_f64("ok").ok() == Some(1.0) && !failed
}

/// The first documents of a cursor.
pub fn first_batch(reply: &Document) -> Vec<Document> {
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|row| row.as_document().unwrap().clone()).collect()
}

/// A command as one of a session's.
pub fn in_session(mut command: Document, session: u32, number: i64) -> Document {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&session.to_be_bytes());
    let uuid = bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: id.to_vec() };
    command.extend(doc! { "lsid": { "id": uuid }, "txnNumber": number });
    command
}
