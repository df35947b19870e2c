//! A small HTTP client for the binary's own commands: one request, signed with the account key.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use mayfly_cosmos::{address::Address, auth, headers, http_date, path::Path};
use mayfly_engine::{Clock, SystemClock};
use serde_json::Value;
use tokio::net::TcpStream;

/// The most an answer may weigh.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A running server, and the key to it.
#[derive(Clone, Debug)]
pub struct Client {
    authority: String,
    key_text: String,
    key: auth::Key,
}

/// Why a command could not be carried out. Shown to the person who gave it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClientError(pub String);

impl Client {
    /// A client of the server at `endpoint`, an `http://` URL.
    pub fn new(endpoint: &str, key: &str) -> Result<Self, ClientError> {
        let authority = endpoint.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let authority = authority.filter(|rest| !rest.is_empty() && !rest.contains('/'));
        let authority = authority.ok_or_else(|| {
            ClientError(format!("the endpoint `{endpoint}` is not like http://localhost:8081"))
        })?;
        let parsed = auth::Key::from_base64(key).map_err(|error| ClientError(error.to_string()))?;
        Ok(Self { authority: authority.to_owned(), key_text: key.trim().to_owned(), key: parsed })
    }

    /// Asks the administration for something.
    pub async fn administration(&self, path: &str) -> Result<Value, ClientError> {
        let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {}", self.key_text));
        self.send(request.body(Full::default())).await
    }

    /// Sends a request of the protocol.
    pub async fn resource(&self, verb: &str, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let date = http_date::format(SystemClock.now().seconds());
        let parsed = Path::parse(path).map_err(|error| ClientError(error.to_string()))?;
        let address = Address::from_path(&parsed).map_err(|error| ClientError(error.to_string()))?;
        let payload =
            auth::payload(verb, address.resource_type(), &address.resource_link(), Some(&date), None);
        let token = format!("type=master&ver=1.0&sig={}", self.key.sign(&payload));
        let token = percent_encoding::utf8_percent_encode(&token, percent_encoding::NON_ALPHANUMERIC);
        let request = Request::builder()
            .method(verb)
            .uri(path)
            .header(header::AUTHORIZATION, token.to_string())
            .header(&headers::DATE, date);
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        self.send(request.body(Full::new(body))).await
    }

    async fn send(
        &self,
        request: Result<Request<Full<Bytes>>, hyper::http::Error>,
    ) -> Result<Value, ClientError> {
        let failed = |error: &dyn std::fmt::Display| {
            ClientError(format!("no answer from http://{}/: {error}. Is the server running?", self.authority))
        };
        let mut request = request.map_err(|error| failed(&error))?;
        let host = self.authority.parse().map_err(|error: header::InvalidHeaderValue| failed(&error))?;
        request.headers_mut().insert(header::HOST, host);
        let stream = TcpStream::connect(&self.authority).await.map_err(|error| failed(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| failed(&error))?.to_bytes();
            Ok((status, body))
        };
        // The connection has to be driven for the exchange to get anywhere; it ends with it.
        let (status, body) = tokio::select! {
            exchanged = exchange => exchanged?,
            ended = connection => {
                return Err(failed(&ended.err().map_or("the connection was closed".into(), |e| e.to_string())));
            }
        };
        let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        match status {
            StatusCode::OK => Ok(value),
            status => {
                let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
                let message = message.split("\r\n").next().unwrap_or_default();
                Err(ClientError(format!("the server answered {status}: {message}")))
            }
        }
    }
}
