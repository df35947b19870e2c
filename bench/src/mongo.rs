//! A client of the MongoDB protocol that is just enough for a bench: one connection, one command at a time, no driver.

use std::{
    io::{Error, Read, Result, Write},
    net::{Ipv4Addr, TcpStream},
};

use bson::{Document, RawDocument, RawDocumentBuf, doc};

/// `OP_MSG` of the wire protocol.
const MESSAGE: u32 = 2013;
const HEADER_BYTES: usize = 16;
/// Flag bits and the kind of the first section, which is the command.
const MESSAGE_HEAD: [u8; 5] = [0; 5];
/// The kind of a section that is documents, and the name of the field that they stand for.
const DOCUMENTS: u8 = 1;
const DOCUMENTS_NAME: &[u8] = b"documents\0";

/// A connection.
pub struct Client {
    stream: TcpStream,
    /// The session whose writes are numbered, and the last number.
    numbered: Option<(bson::Binary, i64)>,
}

impl Client {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, numbered: None })
    }

    /// Runs a command that must succeed, and everything it writes with it.
    pub fn run(&mut self, command: &Document) -> Document {
        let body = RawDocumentBuf::try_from(command).expect("a command");
        let answer = self.send(&[body.as_bytes()]).expect("the server answers");
        assert!(is_done(&answer), "{command}: {answer}");
        answer
    }

    /// Numbers all inserts from here on, in a session of its own, as drivers do.
    pub fn number_writes(&mut self, session: u64) {
        let bytes = u128::from(session).to_be_bytes().to_vec();
        self.numbered = Some((bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes }, 0));
    }

    /// Inserts documents that lie one after the other in `documents`, sent beside the command as drivers do. It waits for
    /// the journal.
    pub fn insert(&mut self, collection: &str, documents: &[u8]) -> Document {
        let concern = doc! { "w": 1, "j": true };
        let mut command = doc! { "insert": collection, "writeConcern": concern, "$db": "bench" };
        if let Some((session, number)) = &mut self.numbered {
            *number += 1;
            command.extend(doc! { "lsid": { "id": session.clone() }, "txnNumber": *number });
        }
        let body = RawDocumentBuf::try_from(&command).expect("a command");
        let section_bytes = size_of::<u32>() + DOCUMENTS_NAME.len() + documents.len();
        let mut section = Vec::with_capacity(1 + section_bytes);
        section.push(DOCUMENTS);
        section.extend_from_slice(&(section_bytes as u32).to_le_bytes());
        section.extend_from_slice(DOCUMENTS_NAME);
        section.extend_from_slice(documents);
        let answer = self.send(&[body.as_bytes(), &section]).expect("the server answers");
        assert!(is_done(&answer), "insert: {answer}");
        answer
    }

    /// The documents of a collection that are still there.
    pub fn count(&mut self, collection: &str) -> u64 {
        let answer = self.run(&doc! { "count": collection, "$db": "bench" });
        number(answer.get("n"))
    }

    /// Sends a message of these parts and waits for the answer.
    fn send(&mut self, parts: &[&[u8]]) -> Result<Document> {
        let length = HEADER_BYTES + MESSAGE_HEAD.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut message = Vec::with_capacity(length);
        for word in [length as u32, 1, 0, MESSAGE] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.extend_from_slice(&MESSAGE_HEAD);
        parts.iter().for_each(|part| message.extend_from_slice(part));
        self.stream.write_all(&message)?;
        let mut head = [0; HEADER_BYTES];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut answer = vec![0; length.saturating_sub(HEADER_BYTES)];
        self.stream.read_exact(&mut answer)?;
        let document = answer.get(MESSAGE_HEAD.len()..).and_then(|bytes| RawDocument::from_bytes(bytes).ok());
        document.and_then(|raw| Document::try_from(raw).ok()).ok_or_else(|| Error::other("no document"))
    }
}

fn is_done(answer: &Document) -> bool {
    answer.get("ok").and_then(bson::Bson::as_f64) == Some(1.0) && !answer.contains_key("writeErrors")
}

/// A count, whichever type of number the server chose.
pub fn number(value: Option<&bson::Bson>) -> u64 {
    let whole = value.and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()).or(n.as_f64().map(|n| n as i64)));
    whole.unwrap_or(0) as u64
}
