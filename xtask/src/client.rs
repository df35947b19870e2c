//! A client of few words: signed requests over one plain connection.
//!
//! Not an SDK, on purpose: it never retries, so a test knows exactly which requests were answered.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

use mayfly_cosmos::{
    auth::{EMULATOR_KEY, Key, payload},
    http_date,
    path::Path,
};
use serde_json::Value;

use crate::{
    machine,
    shell::{Failure, Result},
};

/// Longer than any answer takes; a server that is silent for so long has hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    key: Key,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The server's second, as it stands in the `date` header: the one the answer was decided at.
    pub second: u64,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let key = Key::from_base64(EMULATOR_KEY)?;
        Ok(Self { stream: BufReader::new(stream), key })
    }

    pub fn get(&mut self, path: &str) -> Result<Answer> {
        self.send("GET", path, &[], b"")
    }

    /// Sends a request and waits for its answer. An error says nothing about whether it was carried out.
    pub fn send(&mut self, verb: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Answer> {
        let date = http_date::format(machine::unix_time().as_secs());
        let signed = Path::parse(path)?.signing_candidates();
        let (kind, link) = signed.first().ok_or_else(|| Failure(format!("{path} cannot be signed")))?;
        let signature = self.key.sign(&payload(verb, kind, link, Some(&date), None));
        self.send_by(&format!("type=master&ver=1.0&sig={signature}"), &date, verb, path, headers, body)
    }

    /// The same by a resource token.
    pub fn send_as(
        &mut self,
        token: &str,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let date = http_date::format(machine::unix_time().as_secs());
        let encoded: String = token
            .bytes()
            .map(|byte| match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
                _ => format!("%{byte:02x}"),
            })
            .collect();
        self.send_by(&encoded, &date, verb, path, headers, body)
    }

    fn send_by(
        &mut self,
        authorization: &str,
        date: &str,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut request = format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2020-07-15\r\nx-ms-date: {date}\r\n\
             authorization: {authorization}\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        self.stream.get_mut().write_all(&bytes)?;
        self.receive()
    }

    fn receive(&mut self) -> Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| Failure("not an HTTP answer".into()))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, second: 0, headers, body: Vec::new() };
        let length = answer.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        answer.second = answer.header("date").and_then(http_date::parse).unwrap_or(0);
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(line.trim_end().to_owned())
    }
}
