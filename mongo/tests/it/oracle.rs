//! A real MongoDB to compare with: commands over a plain socket, nothing else.
//!
//! Set `MONGOD` to an address. Nothing in the fast set of tests needs it.

use std::io::{Read, Write};
use std::net::TcpStream;

use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf};
use mayfly_value::bson;

pub struct Oracle {
    stream: TcpStream,
}

/// The database everything happens in.
const DATABASE: &str = "mayfly_oracle";

impl Oracle {
    /// Connects to the server that `MONGOD` names; none if it is not set.
    pub fn connect() -> Option<Oracle> {
        let address = std::env::var("MONGOD").ok()?;
        let stream = TcpStream::connect(&address).expect("a server listens at MONGOD");
        stream.set_nodelay(true).expect("a socket");
        Some(Oracle { stream })
    }

    /// Runs a command and gives back the reply, whether it succeeded or not.
    pub fn run(&mut self, mut command: RawDocumentBuf) -> RawDocumentBuf {
        if !matches!(command.get("$db"), Ok(Some(_))) {
            command.append(cstr!("$db"), DATABASE);
        }
        let body = command.as_bytes();
        let mut message = Vec::with_capacity(body.len() + 21);
        for word in [body.len() as i32 + 21, 1, 0, 2013, 0] {
            message.extend(word.to_le_bytes());
        }
        message.push(0);
        message.extend(body);
        self.stream.write_all(&message).expect("the server takes the command");
        let mut header = [0; 21];
        self.stream.read_exact(&mut header).expect("the server answers");
        let length = i32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
        let mut reply = vec![0; length - header.len()];
        self.stream.read_exact(&mut reply).expect("a whole answer");
        RawDocumentBuf::from_bytes(reply).expect("a document")
    }

    /// Makes the collection hold exactly these documents.
    pub fn load(&mut self, collection: &str, documents: &[RawDocumentBuf]) {
        let mut delete = RawDocumentBuf::new();
        delete.append(cstr!("delete"), collection);
        let mut all = RawDocumentBuf::new();
        all.append(cstr!("q"), RawDocumentBuf::new());
        all.append(cstr!("limit"), 0);
        delete.append(cstr!("deletes"), RawArrayBuf::from_iter([all]));
        self.run(delete);
        if documents.is_empty() {
            return;
        }
        let mut insert = RawDocumentBuf::new();
        insert.append(cstr!("insert"), collection);
        insert.append(
            cstr!("documents"),
            RawArrayBuf::from_iter(documents.iter().map(|d| d.as_ref() as &RawDocument)),
        );
        let reply = self.run(insert);
        assert!(reply.get("writeErrors").expect("a reply").is_none(), "{reply:?}");
    }
}
