//! Just enough of HTTP/1.1 to send a request and find the end of its answer: what a client does is not what is measured.
//!
//! A server that closes after each answer is connected to again; that is part of its cost.

use std::{io, net::Ipv4Addr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection to a server on this machine.
pub struct Connection {
    port: u16,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects when it is first used.
    pub fn new(port: u16) -> Self {
        Self { port, stream: None, buffer: Vec::with_capacity(8192) }
    }

    /// The last answer, as it came.
    pub fn answer(&self) -> &[u8] {
        &self.buffer
    }

    /// Sends a request and reads its answer; gives the status.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await?;
                stream.set_nodelay(true)?;
                stream
            }
        };
        stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(answer) = Answer::whole(&self.buffer) {
                if !answer.closes {
                    self.stream = Some(stream);
                }
                return Ok(answer.status);
            }
        }
    }
}

struct Answer {
    status: u16,
    closes: bool,
}

impl Answer {
    /// The answer, once all of it is there. Looks at no more of the head than it has to: the load shares its processors with
    /// the server, and answers with many headers would count twice.
    fn whole(bytes: &[u8]) -> Option<Self> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
        let head = &bytes[..end];
        let status = text(head.get(9..12)?)?.parse().ok()?;
        let (mut length, mut closes) = (None, false);
        for start in memchr::memchr_iter(b'\n', head) {
            let line = &head[start + 1..];
            // Both names begin with it, and few others.
            if !line.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'c')) {
                continue;
            }
            let line = &line[..memchr::memchr(b'\r', line)?];
            let value_of = |name: &[u8]| {
                let (start, value) = line.split_at_checked(name.len())?;
                start.eq_ignore_ascii_case(name).then(|| text(value)).flatten()
            };
            if let Some(value) = value_of(b"content-length:") {
                length = value.parse::<usize>().ok();
            } else if let Some(value) = value_of(b"connection:") {
                closes = value.eq_ignore_ascii_case("close");
            }
        }
        let body = &bytes[end..];
        let is_whole = match (length, status) {
            (_, 204 | 304) => true,
            (Some(length), _) => body.len() >= length,
            // In chunks, then; the last one is empty.
            (None, _) => body.ends_with(b"0\r\n\r\n"),
        };
        is_whole.then_some(Self { status, closes })
    }
}

fn text(part: &[u8]) -> Option<&str> {
    std::str::from_utf8(part).ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let whole = |text: &str| Answer::whole(text.as_bytes()).map(|answer| (answer.status, answer.closes));
        assert_eq!(whole("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx"), None);
        assert_eq!(whole("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nxx"), Some((200, false)));
        assert_eq!(whole("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), Some((204, true)));
        assert_eq!(whole("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n"), None);
        assert_eq!(whole("HTTP/1.1 200 OK\r\n\r\n1\r\nx\r\n0\r\n\r\n"), Some((200, false)));
    }
}
