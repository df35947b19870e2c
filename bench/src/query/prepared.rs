//! Just enough of PostgreSQL's protocol to run a prepared statement and count its rows: what `http` is for the other servers,
//! so that the comparison is one of servers and not of their clients.

use std::{io, net::Ipv4Addr};

use bytes::{Buf as _, BufMut as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Version 3.0 of the protocol.
const VERSION: i32 = 3 << 16;

/// Values come in binary form, as most drivers want them.
const BINARY: i16 = 1;

/// A connection with one statement.
pub struct Prepared {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Prepared {
    /// Connects as a user who needs no password, and prepares a statement.
    pub async fn new(port: u16, user: &str, sql: &str) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        stream.set_nodelay(true)?;
        let mut prepared = Self { stream, request: Vec::new(), answer: Vec::with_capacity(8192) };
        let request = &mut prepared.request;
        let parameters = format!("user\0{user}\0database\0postgres\0\0");
        request.put_i32(8 + parameters.len() as i32);
        request.put_i32(VERSION);
        request.put_slice(parameters.as_bytes());
        prepared.exchange().await?;
        message(&mut prepared.request, b'P', |parse| {
            parse.put_slice(b"\0");
            parse.put_slice(sql.as_bytes());
            parse.put_slice(b"\0");
            // The server finds the types out.
            parse.put_i16(0);
        });
        message(&mut prepared.request, b'S', |_| {});
        prepared.exchange().await?;
        Ok(prepared)
    }

    /// Runs it, with a number if it wants one; gives how many rows came.
    pub async fn run(&mut self, parameter: Option<usize>) -> io::Result<usize> {
        message(&mut self.request, b'B', |bind| {
            // No names of portal and statement; parameters as text.
            bind.put_slice(b"\0\0");
            bind.put_i16(0);
            bind.put_i16(parameter.is_some().into());
            if let Some(parameter) = parameter {
                let text = parameter.to_string();
                bind.put_i32(text.len() as i32);
                bind.put_slice(text.as_bytes());
            }
            bind.put_i16(1);
            bind.put_i16(BINARY);
        });
        message(&mut self.request, b'E', |execute| {
            execute.put_slice(b"\0");
            // All rows.
            execute.put_i32(0);
        });
        message(&mut self.request, b'S', |_| {});
        self.exchange().await
    }

    /// Sends what is to be sent, and reads until the server is ready again; gives how many rows came.
    async fn exchange(&mut self) -> io::Result<usize> {
        self.stream.write_all(&self.request).await?;
        self.request.clear();
        self.answer.clear();
        let (mut rows, mut seen) = (0, 0);
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while let Some(mut head) = self.answer.get(seen..seen + 5) {
                let (kind, length) = (head.get_u8(), head.get_u32() as usize);
                let end = seen + 1 + length;
                let Some(body) = self.answer.get(seen + 5..end) else { break };
                match kind {
                    b'D' => rows += 1,
                    b'Z' => return Ok(rows),
                    b'E' => return Err(io::Error::other(String::from_utf8_lossy(body).into_owned())),
                    _ => {}
                }
                seen = end;
            }
        }
    }
}

/// Adds a message: its kind, its length, its body.
fn message(request: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    request.push(kind);
    let start = request.len();
    request.put_i32(0);
    body(request);
    let length = (request.len() - start) as i32;
    request[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
