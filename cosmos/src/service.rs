//! From an HTTP request to an HTTP response: the path every request takes.
//!
//! 1. `Path::parse` and `Address::from_path`: which resource.
//! 2. `routes::find`: which row of the table.
//! 3. `auth::verify`: who signed it.
//! 4. The body is read, up to its limit.
//! 5. `Engine::now`: the time it is answered at, once.
//! 6. `session::check`: whether it asks for more than there is; `Throttle::admit`: whether it is within its budget.
//! 7. The row's handler.
//! 8. Headers that every answer has.
//!
//! An error at any step becomes a body in the protocol's shape, and is logged here if it is ours.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{
    Method, StatusCode,
    body::Body as HttpBody,
    header::{AUTHORIZATION, DATE, HOST},
    http::request::Parts,
};
use mayfly_engine::{Clock as _, Engine, SystemClock, charge, clock::Stopwatch, ids};
use mayfly_value::json::write_int;
use tokio::time::timeout;
use tracing::error;

use crate::{
    aad,
    address::Address,
    auth::{self, Credential, Keys, SignedRequest},
    call::Call,
    error::ApiError,
    handlers,
    headers::{self, Headers},
    http_date,
    path::Path,
    raw_head::RawHead,
    reply::Reply,
    resource_token::{self, Grant},
    routes::{self, Route},
    session,
    throttle::{Budget, Throttle},
};

/// Attempts at a request while other nodes change the catalog.
const CATALOG_ATTEMPTS: usize = 5;

/// Attempts at a refusal within one second.
const SECOND_ATTEMPTS: usize = 3;

/// The most a request may weigh. A document of 2 MB and its envelope fit.
const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024 + 64 * 1024;

/// Enough for the largest body at a few hundred kilobits per second.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Throughput buckets that a request may name.
const THROUGHPUT_BUCKETS: std::ops::RangeInclusive<i64> = 1..=5;

/// The REST front-end.
#[derive(Clone)]
pub struct Cosmos {
    engine: Engine,
    keys: Keys,
    any_entra_token: bool,
    /// None where request units are only counted.
    throttle: Option<Arc<Throttle>>,
    body_timeout: Duration,
}

/// Who is let in, and how much they may do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The account's keys.
    pub keys: Keys,
    /// Let in whoever brings a token of the form Entra ID gives out, without checking who made it.
    pub any_entra_token: bool,
    /// Refuse what goes beyond the provisioned request units.
    pub throttle: bool,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
}

impl Options {
    /// Keys only, and no limits.
    pub fn new(keys: Keys) -> Self {
        Self { keys, any_entra_token: false, throttle: false, body_timeout: BODY_TIMEOUT }
    }
}

/// What a request asks for, apart from its body.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path and what follows it, still encoded.
    pub target: &'a str,
    /// The host in the address itself, where there is one.
    pub authority: Option<&'a str>,
    /// The headers.
    pub headers: Headers<'a>,
}

impl<'a> Head<'a> {
    /// Of a request that hyper has read.
    pub fn of(parts: &'a Parts) -> Self {
        Self {
            method: &parts.method,
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
            authority: parts.uri.authority().map(|authority| authority.as_str()),
            headers: Headers::of(&parts.headers),
        }
    }

    /// Of one that was read as it came.
    pub fn raw(head: &'a RawHead) -> Self {
        Self { method: head.method(), target: head.target(), authority: None, headers: Headers::raw(head) }
    }

    /// The authority the client used, so that the endpoints we advertise are ones it can reach.
    fn host(&self) -> &'a str {
        self.headers.get_text(&HOST).or(self.authority).unwrap_or("localhost:8081")
    }
}

/// What was done, for logs and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The route's name; `Unknown` when there was none.
    pub operation: &'static str,
    /// What it has cost, in request units.
    pub charge: f64,
    /// How long it took.
    pub took: Duration,
}

impl Cosmos {
    /// A front-end over `engine`.
    pub fn new(engine: Engine, options: Options) -> Self {
        Self {
            engine,
            keys: options.keys,
            any_entra_token: options.any_entra_token,
            throttle: options.throttle.then(Arc::default),
            body_timeout: options.body_timeout,
        }
    }

    /// Answers a request, which came when `watch` was started. `scheme` is how the client reached us: `http` or `https`.
    pub async fn serve<B>(&self, head: Head<'_>, body: B, scheme: &str, watch: Stopwatch) -> (Reply, Served)
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let _busy = self.engine.load().enter();
        let activity_id = self.activity_id(&head.headers);
        let mut served = Served { operation: "Unknown", charge: 0.0, took: Duration::ZERO };
        // Its state is some kilobytes, and every future around it would hold and move them: once for each layer.
        let answer = Box::pin(self.answer(&head, body, scheme, &activity_id, &mut served)).await;
        let mut reply = answer.unwrap_or_else(|error| refusal(&error, &activity_id, served.operation));
        reply.set_text(&headers::ACTIVITY_ID, &activity_id);
        (served.charge, served.took) = (reply.charge(), watch.elapsed());
        reply.set_written(&headers::REQUEST_DURATION_MS, |out| write_milliseconds(served.took, out));
        (reply, served)
    }

    async fn answer<B>(
        &self,
        head: &Head<'_>,
        body: B,
        scheme: &str,
        activity_id: &str,
        served: &mut Served,
    ) -> Result<Reply, ApiError>
    where
        B: HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let headers = &head.headers;
        let path = Path::parse(head.target).map_err(|_| ApiError::unknown_route())?;
        let address = Address::from_path(&path)?;
        let route = routes::find(head.method, &address, headers)?;
        served.operation = route.name;
        // The client signs with its own clock, so the machine's is the one to compare with, even where the engine's
        // can be set.
        let grant = self.let_in(head.method, headers, &path, &address, route, SystemClock.now().seconds())?;
        refuse_triggers(headers)?;
        refuse_unknown_bucket(headers)?;
        let body = match body.is_end_stream() {
            true => Bytes::new(),
            false => {
                timeout(self.body_timeout, read_body(body)).await.map_err(|_| ApiError::body_too_slow())??
            }
        };
        let host = head.host();
        let base_url_len = [scheme, "://", host, "/"].map(str::len).iter().sum();
        let location = [scheme, "://", host, "/", head.target.trim_start_matches('/')].concat();
        let mut call = Call {
            engine: &self.engine,
            address: &address,
            headers: *headers,
            body: &body,
            now: self.engine.now().await?,
            base_url: &location[..base_url_len],
            activity_id,
            keys: &self.keys,
            grant: grant.as_ref(),
        };
        let mut reply = self.within_its_second(&mut call, route).await?;
        session::stamp(&call, &mut reply).await?;
        if reply.status() != StatusCode::NOT_MODIFIED {
            reply.set_written(&headers::HTTP_DATE, |out| http_date::push(call.now.seconds(), out));
        }
        reply.set_text(&headers::CONTENT_LOCATION, &location);
        Ok(reply)
    }

    /// Answers; and again if it found something missing or in the way and another second has begun meanwhile, as it has where
    /// the store was waited for or another node is ahead. What has expired since may be the reason, so the answer is made
    /// right for the second that it bears. Nothing was written that could be written twice.
    async fn within_its_second(&self, call: &mut Call<'_>, route: &Route) -> Result<Reply, ApiError> {
        let mut attempt = 0;
        loop {
            let answer = self.by_current_catalog(call, route).await;
            let status = answer.as_ref().map_or_else(|error| error.status, |reply| reply.status().as_u16());
            if !matches!(status, 404 | 409 | 412) || attempt == SECOND_ATTEMPTS {
                return answer;
            }
            let later = self.engine.now().await?;
            if later.seconds() == call.now.seconds() {
                return answer;
            }
            call.now = later;
            attempt += 1;
        }
    }

    /// Answers by the catalog as it is. Where several nodes share a store, this one's may be old: what it is asked about
    /// the catalog itself is looked up first, and what it refuses is tried again if another node has changed something.
    async fn by_current_catalog(&self, call: &Call<'_>, route: &Route) -> Result<Reply, ApiError> {
        // Boxed, as what most requests have no need of.
        if !handlers::is_item_route(call.address) {
            Box::pin(self.engine.refresh()).await?;
        }
        let mut attempt = 0;
        loop {
            let known = self.engine.catalog_version();
            let answer = match session::check(call, route.intent).await {
                Ok(()) => self.within_budget(call, route).await,
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if self.engine.is_shared() && attempt < CATALOG_ATTEMPTS => {
                    Box::pin(self.engine.refresh()).await?;
                    if self.engine.catalog_version() == known && !error.is_retry() {
                        return Err(error);
                    }
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Runs the handler, if there is budget left for it, and takes out what it has cost.
    async fn within_budget(&self, call: &Call<'_>, route: &Route) -> Result<Reply, ApiError> {
        let handler = route.handler.ok_or_else(|| ApiError::not_implemented(route.name))?;
        let Some(throttle) = &self.throttle else { return handler(call).await };
        let Some(budget) = Budget::of(call)? else { return handler(call).await };
        throttle.admit(&budget, call.now)?;
        // A refusal has cost something too: what it had to look up.
        let reply = handler(call).await.unwrap_or_else(|error| refusal(&error, call.activity_id, route.name));
        throttle.spend(&budget, reply.charge(), call.now);
        Ok(reply)
    }

    /// Lets in whoever signed with a key of the account, or has a token of a permission that covers the request. The
    /// grant is what a token is confined to.
    fn let_in(
        &self,
        method: &Method,
        headers: &Headers<'_>,
        path: &Path<'_>,
        address: &Address<'_>,
        route: &Route,
        clock_seconds: u64,
    ) -> Result<Option<Grant>, ApiError> {
        let text = |name| headers::text(headers, name);
        let authorization = text(&AUTHORIZATION)?;
        // Most bring a signature, which `verify` reads itself.
        let other = authorization.filter(|header| !auth::is_signature(header));
        match other.map(auth::credential).transpose()? {
            Some(Credential::Resource(token)) => {
                let grant = resource_token::verify(&self.keys, &token, clock_seconds)?;
                let key = text(&headers::PARTITION_KEY)?;
                return match grant.allows(address, route.intent, key) {
                    true => Ok(Some(grant)),
                    false => Err(resource_token::forbidden()),
                };
            }
            Some(Credential::Aad(token)) if self.any_entra_token => {
                aad::check(&token, clock_seconds)?;
                return Ok(None);
            }
            _ => {}
        }
        let request = SignedRequest {
            verb: method.as_str(),
            path,
            authorization,
            x_ms_date: text(&headers::DATE)?,
            date: text(&DATE)?,
            intent: route.intent,
        };
        auth::verify(&self.keys, &request, clock_seconds)?;
        Ok(None)
    }

    /// The client's id of the request if it is one, else one of ours.
    fn activity_id(&self, headers: &Headers<'_>) -> String {
        let given = headers.get_text(&headers::ACTIVITY_ID);
        let plain = |id: &&str| id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        given.filter(plain).map_or_else(|| ids::to_uuid(self.engine.ids().unique()), str::to_owned)
    }
}

/// The answer that says what went wrong, and a line in the log if it is our fault.
fn refusal(error: &ApiError, activity_id: &str, operation: &str) -> Reply {
    if error.status >= 500 && error.status != 501 {
        error!(activity_id, operation, status = error.status, "{}", error.message);
    }
    let charge = match error.status {
        401 | 403 | 429 => 0.0,
        _ => charge::MISS,
    };
    Reply::error(error, activity_id).charged(charge)
}

/// Triggers are kept, not run. A write that counts on one is refused rather than done without it.
fn refuse_triggers(headers: &Headers<'_>) -> Result<(), ApiError> {
    for name in [&headers::PRE_TRIGGER_INCLUDE, &headers::POST_TRIGGER_INCLUDE] {
        if headers::text(headers, name)?.is_some_and(|triggers| !triggers.trim().is_empty()) {
            return Err(ApiError::not_implemented("Running triggers"));
        }
    }
    Ok(())
}

/// Buckets share out a budget among workloads. There is one budget here, so which bucket does not matter.
fn refuse_unknown_bucket(headers: &Headers<'_>) -> Result<(), ApiError> {
    match headers::integer(headers, &headers::THROUGHPUT_BUCKET)? {
        Some(bucket) if !THROUGHPUT_BUCKETS.contains(&bucket) => {
            Err(headers::invalid(&headers::THROUGHPUT_BUCKET))
        }
        _ => Ok(()),
    }
}

/// Appends a time as text, to the microsecond.
fn write_milliseconds(time: Duration, out: &mut Vec<u8>) {
    write_int(time.as_millis() as i64, out);
    let micros = time.subsec_micros() % 1000;
    let digit = |of: u32| b'0' + (micros / of % 10) as u8;
    out.extend([b'.', digit(100), digit(10), digit(1)]);
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, REQUEST_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large()),
        Err(_) => Err(ApiError::bad_request("The request body could not be read.")),
    }
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;

    use super::*;

    #[test]
    fn a_duration_is_told_to_the_microsecond() {
        for (micros, text) in
            [(0, "0.000"), (7, "0.007"), (1_020, "1.020"), (999_999, "999.999"), (12_345_678, "12345.678")]
        {
            let mut written = Vec::new();
            write_milliseconds(Duration::from_micros(micros), &mut written);
            assert_eq!(written, text.as_bytes());
        }
    }

    #[test]
    fn a_request_that_counts_on_a_trigger_is_refused() {
        let with = |value: &'static str| {
            HeaderMap::from_iter([(
                headers::PRE_TRIGGER_INCLUDE.clone(),
                hyper::header::HeaderValue::from_static(value),
            )])
        };
        assert!(refuse_triggers(&Headers::of(&HeaderMap::new())).is_ok());
        assert!(refuse_triggers(&Headers::of(&with(""))).is_ok());
        assert_eq!(refuse_triggers(&Headers::of(&with("t1"))).unwrap_err().status, 501);
    }
}
