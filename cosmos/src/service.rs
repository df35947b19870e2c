//! From an HTTP request to an HTTP response: the path every request takes.
//!
//! 1. `Address::parse`: which resource.
//! 2. `routes::find`: which row of the table.
//! 3. `auth::verify`: who signed it.
//! 4. The body is read, up to its limit.
//! 5. `Engine::now`: the time it is answered at, once.
//! 6. The row's handler.
//! 7. Headers that every answer has.
//!
//! An error at any step becomes a body in the protocol's shape, and is logged here if it is ours.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::Body as HttpBody,
    header::{AUTHORIZATION, DATE, HOST},
    http::request::Parts,
};
use mayfly_engine::{Clock as _, Engine, SystemClock, clock::Stopwatch, ids};
use tokio::time::timeout;
use tracing::error;

use crate::{
    address::Address,
    auth::{self, Credential, Keys, SignedRequest},
    call::Call,
    error::ApiError,
    headers, http_date,
    reply::{Body, Reply},
    resource_token::{self, Grant},
    routes::{self, Route},
};

/// The most a request may weigh. A document of 2 MB and its envelope fit.
const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024 + 64 * 1024;

/// How long a body may take. The largest one needs less than half of it on a line of one megabit a second.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

const GATEWAY_VERSION: &str = "version=2.14.0";

/// The REST front-end.
#[derive(Clone)]
pub struct Cosmos {
    engine: Engine,
    keys: Keys,
}

/// What was done, for logs and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The route's name; `Unknown` when there was none.
    pub operation: &'static str,
}

impl Cosmos {
    /// A front-end over `engine` that lets in whoever has one of `keys`.
    pub fn new(engine: Engine, keys: Keys) -> Self {
        Self { engine, keys }
    }

    /// Answers a request. `scheme` is how the client reached us: `http` or `https`.
    pub async fn serve<B>(&self, request: Request<B>, scheme: &str) -> (Response<Body>, Served)
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let watch = Stopwatch::start();
        let (parts, body) = request.into_parts();
        let activity_id = self.activity_id(&parts.headers);
        let mut served = Served { operation: "Unknown" };
        let answer = self.answer(&parts, body, scheme, &activity_id, &mut served).await;
        let mut reply = answer.unwrap_or_else(|error| {
            if error.status >= 500 && error.status != 501 {
                error!(activity_id, operation = served.operation, status = error.status, "{}", error.message);
            }
            Reply::error(&error, &activity_id)
        });
        reply.set(&headers::ACTIVITY_ID, &activity_id);
        reply.set_default(&headers::REQUEST_CHARGE, 1);
        reply.set(&headers::GATEWAY_VERSION, GATEWAY_VERSION);
        reply.set(&headers::SERVICE_VERSION, GATEWAY_VERSION);
        reply.set(&headers::SCHEMA_VERSION, "1.19");
        reply.set(&headers::NUMBER_OF_READ_REGIONS, 0);
        reply.set(&headers::REQUEST_DURATION_MS, format!("{:.3}", watch.elapsed().as_secs_f64() * 1000.0));
        (reply.into_response(), served)
    }

    async fn answer<B>(
        &self,
        parts: &Parts,
        body: B,
        scheme: &str,
        activity_id: &str,
        served: &mut Served,
    ) -> Result<Reply, ApiError>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let address = Address::parse(parts.uri.path())?;
        let route = routes::find(&parts.method, &address, &parts.headers)?;
        served.operation = route.name;
        // The client signs with its own clock, so the machine's is the one to compare with, even where the engine's
        // can be set.
        let grant = self.let_in(parts, &address, route, SystemClock.now().seconds())?;
        refuse_triggers(&parts.headers)?;
        let body = read_body(body).await?;
        let now = self.engine.now().await?;
        let base_url = format!("{scheme}://{}/", host(parts));
        let call = Call {
            engine: &self.engine,
            address: &address,
            headers: &parts.headers,
            body: &body,
            now,
            base_url: &base_url,
            activity_id,
            keys: &self.keys,
            grant: grant.as_ref(),
        };
        let handler = route.handler.ok_or_else(|| ApiError::not_implemented(route.name))?;
        let mut reply = handler(&call).await?;
        if reply.status() != StatusCode::NOT_MODIFIED {
            reply.set_default(&DATE, http_date::format(now.seconds()));
        }
        Ok(reply)
    }

    /// Lets in whoever signed with a key of the account, or has a token of a permission that covers the request. The
    /// grant is what a token is confined to.
    fn let_in(
        &self,
        parts: &Parts,
        address: &Address,
        route: &Route,
        clock_seconds: u64,
    ) -> Result<Option<Grant>, ApiError> {
        let text = |name| headers::text(&parts.headers, name);
        if let Some(header) = text(&AUTHORIZATION)?
            && let Credential::Resource(token) = auth::credential(header)?
        {
            let grant = resource_token::verify(&self.keys, &token, clock_seconds)?;
            let key = text(&headers::PARTITION_KEY)?;
            return match grant.allows(address, route.intent, key) {
                true => Ok(Some(grant)),
                false => Err(resource_token::forbidden()),
            };
        }
        let request = SignedRequest {
            verb: parts.method.as_str(),
            path: parts.uri.path(),
            authorization: text(&AUTHORIZATION)?,
            x_ms_date: text(&headers::DATE)?,
            date: text(&DATE)?,
            intent: route.intent,
        };
        auth::verify(&self.keys, &request, clock_seconds)?;
        Ok(None)
    }

    /// The client's id of the request if it is one, else one of ours.
    fn activity_id(&self, headers: &HeaderMap) -> String {
        let given = headers.get(&headers::ACTIVITY_ID).and_then(|value| value.to_str().ok());
        let plain = |id: &&str| id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        given.filter(plain).map_or_else(|| ids::to_uuid(self.engine.ids().unique()), str::to_owned)
    }
}

/// The authority the client used, so that the endpoints we advertise are ones it can reach.
fn host(parts: &Parts) -> String {
    let by_header = parts.headers.get(HOST).and_then(|value| value.to_str().ok());
    let by_uri = parts.uri.authority().map(|authority| authority.as_str());
    by_header.or(by_uri).unwrap_or("localhost:8081").to_owned()
}

/// Triggers are kept, not run. A write that counts on one is refused rather than done without it.
fn refuse_triggers(headers: &HeaderMap) -> Result<(), ApiError> {
    for name in [&headers::PRE_TRIGGER_INCLUDE, &headers::POST_TRIGGER_INCLUDE] {
        if headers::text(headers, name)?.is_some_and(|triggers| !triggers.trim().is_empty()) {
            return Err(ApiError::not_implemented("Running triggers"));
        }
    }
    Ok(())
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match timeout(BODY_TIMEOUT, Limited::new(body, REQUEST_BYTES_MAX).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ApiError::too_large()),
        Ok(Err(_)) => Err(ApiError::bad_request("The request body could not be read.")),
        Err(_) => Err(ApiError::new(408, 0, "The request body took too long to arrive.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body of which nothing ever comes.
    struct Silent;

    impl HttpBody for Silent {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_given_up() {
        assert_eq!(read_body(Silent).await.unwrap_err().status, 408);
    }

    #[test]
    fn a_request_that_counts_on_a_trigger_is_refused() {
        let with = |value: &'static str| {
            HeaderMap::from_iter([(
                headers::PRE_TRIGGER_INCLUDE.clone(),
                hyper::header::HeaderValue::from_static(value),
            )])
        };
        assert!(refuse_triggers(&HeaderMap::new()).is_ok());
        assert!(refuse_triggers(&with("")).is_ok());
        assert_eq!(refuse_triggers(&with("t1")).unwrap_err().status, 501);
    }
}
