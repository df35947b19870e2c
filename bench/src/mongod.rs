//! A MongoDB server to compare with: started from a binary that is there, in a directory of its own, and stopped again.
//!
//! The few commands a bench needs go over the wire by hand, one at a time, so that no driver has to be built.

use std::{
    io::{Read, Result, Write},
    net::{Ipv4Addr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use mayfly_engine::clock::pause;

/// A running server and a connection to it.
pub struct Mongod {
    child: Child,
    stream: TcpStream,
    _dir: tempfile::TempDir,
}

/// `OP_MSG` of the wire protocol.
const MESSAGE: u32 = 2013;
const HEADER_BYTES: usize = 16;
/// Flag bits and the kind of the one section that is the command.
const MESSAGE_HEAD: [u8; 5] = [0; 5];

impl Mongod {
    /// Starts `binary` on `port`, with its TTL monitor switched off.
    pub async fn start(binary: &Path, port: u16) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut child = Command::new(binary)
            .args(["--bind_ip", "127.0.0.1", "--port", &port.to_string(), "--dbpath"])
            .arg(dir.path())
            .args(["--setParameter", "ttlMonitorEnabled=false", "--setParameter", "ttlMonitorSleepSecs=1"])
            .args(["--wiredTigerCacheSizeGB", "1"])
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()?;
        for _ in 0..300 {
            match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                Ok(stream) => return Ok(Self { child, stream, _dir: dir }),
                Err(error) => match child.try_wait()? {
                    Some(status) => {
                        return Err(std::io::Error::other(format!("it ended: {status}: {error}")));
                    }
                    None => pause(Duration::from_millis(100)).await,
                },
            }
        }
        let _ = child.kill();
        Err(std::io::Error::other("it did not answer in half a minute"))
    }

    /// Runs a command that must succeed.
    pub fn run(&mut self, command: &Document) -> Document {
        let body = RawDocumentBuf::try_from(command).expect("a command");
        let answer = self.call(body.as_bytes()).expect("the server answers");
        assert_eq!(answer.get("ok").and_then(bson::Bson::as_f64), Some(1.0), "{command}: {answer}");
        answer
    }

    /// The documents of a collection that are still there.
    pub fn count(&mut self, collection: &str) -> u64 {
        let answer = self.run(&doc! { "count": collection, "$db": "bench" });
        answer.get("n").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64())).unwrap_or(0) as u64
    }

    fn call(&mut self, body: &[u8]) -> Result<Document> {
        let length = HEADER_BYTES + MESSAGE_HEAD.len() + body.len();
        let mut message = Vec::with_capacity(length);
        for word in [length as u32, 1, 0, MESSAGE] {
            message.extend_from_slice(&word.to_le_bytes());
        }
        message.extend_from_slice(&MESSAGE_HEAD);
        message.extend_from_slice(body);
        self.stream.write_all(&message)?;
        let mut head = [0; HEADER_BYTES];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut answer = vec![0; length.saturating_sub(HEADER_BYTES)];
        self.stream.read_exact(&mut answer)?;
        let document = answer.get(MESSAGE_HEAD.len()..).and_then(|bytes| RawDocument::from_bytes(bytes).ok());
        document
            .and_then(|raw| Document::try_from(raw).ok())
            .ok_or_else(|| std::io::Error::other("no document"))
    }
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
