//! Throughput: what a database or container is provisioned with.
//!
//! An offer is made with its database or container. A container in a database that has throughput of its own
//! shares it and has none, unless it asks for some.

use hyper::StatusCode;
use mayfly_engine::{Engine, Error, Kept, KeptKind, Timestamp};
use serde_json::{Value, json};

use super::{Answer, list, resource as answer};
use crate::{
    address::Address,
    call::Call,
    error::ApiError,
    headers::{self, Headers},
    query::resources,
    reply::Reply,
    rid::Rid,
};

/// The name under which an offer is kept; there is one per owner.
const NAME: &str = "offer";

/// Throughput of a container that says nothing, in request units per second.
const THROUGHPUT_DEFAULT: i64 = 400;
const THROUGHPUT_MIN: i64 = 400;
const THROUGHPUT_MAX: i64 = 1_000_000;
const AUTOSCALE_MIN: i64 = 1000;

/// What a new container has a partition key range for, so that there is room to grow before one has to split.
const THROUGHPUT_PER_NEW_RANGE: i64 = 6_000;

/// What a range serves; with more than that for each, ranges split.
const THROUGHPUT_PER_RANGE: i64 = 10_000;

/// Offers have numbers below this, so that their RIDs have four characters.
const NUMBERS: u32 = 1 << 20;

/// What a request provisions, as the content of an offer.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput(Value);

impl Throughput {
    /// Reads the headers of a create.
    pub fn from_headers(headers: &Headers<'_>) -> Result<Option<Self>, ApiError> {
        let manual = headers::integer(headers, &headers::OFFER_THROUGHPUT)?;
        let autoscale = headers::text(headers, &headers::OFFER_AUTOPILOT)?;
        match (manual, autoscale) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(ApiError::bad_request(
                "x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each other.",
            )),
            (Some(units), None) => manual_content(units).map(Self).map(Some),
            (None, Some(text)) => {
                let settings = serde_json::from_str(text).map_err(|_| ApiError::invalid_input())?;
                autoscale_content(&settings).map(Self).map(Some)
            }
        }
    }

    /// What a container gets that says nothing.
    pub fn default_for_containers() -> Self {
        Self(json!({ "offerThroughput": THROUGHPUT_DEFAULT }))
    }

    /// Partition key ranges of a container that is made with so much: one for each 6,000 that are begun.
    pub fn first_ranges(&self) -> u32 {
        self.started(THROUGHPUT_PER_NEW_RANGE)
    }

    /// Partition key ranges that so much needs at the least: one for each 10,000 that are begun.
    fn least_ranges(&self) -> u32 {
        self.started(THROUGHPUT_PER_RANGE)
    }

    fn started(&self, units_each: i64) -> u32 {
        let settings = &self.0["offerAutopilotSettings"]["maxThroughput"];
        let units = settings.as_i64().or(self.0["offerThroughput"].as_i64()).unwrap_or(THROUGHPUT_DEFAULT);
        u32::try_from(units / units_each + i64::from(units % units_each > 0)).unwrap_or(1).max(1)
    }

    /// Keeps it for its owner.
    pub async fn keep(self, engine: &Engine, owner: u32, now: Timestamp) -> mayfly_engine::Result<()> {
        engine.keep(KeptKind::Offer, owner, NAME, self.0, now).await.map(drop)
    }
}

fn manual_content(units: i64) -> Result<Value, ApiError> {
    if !(THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(&units) || units % 100 != 0 {
        return Err(ApiError::offer_throughput());
    }
    Ok(json!({ "offerThroughput": units }))
}

/// The client's settings are echoed as they came: some SDKs look for members they sent.
fn autoscale_content(settings: &Value) -> Result<Value, ApiError> {
    let most = settings["maxThroughput"].as_i64().unwrap_or(0);
    if most < AUTOSCALE_MIN || most % 1000 != 0 || most > THROUGHPUT_MAX {
        return Err(ApiError::bad_request(format!(
            "Requested throughput {most} is less than required minimum throughput {AUTOSCALE_MIN}, or is not a \
             multiple of 1000 up to {THROUGHPUT_MAX}."
        )));
    }
    Ok(json!({ "offerThroughput": most / 10, "offerAutopilotSettings": settings }))
}

/// Request units per second of a database or container; the most it may scale to, if it scales by itself.
pub fn units(engine: &Engine, owner: u32) -> Option<f64> {
    let offer = engine.kept_named(KeptKind::Offer, owner, NAME).ok()?;
    let most = &offer.value["offerAutopilotSettings"]["maxThroughput"];
    most.as_f64().or(offer.value["offerThroughput"].as_f64()).filter(|units| *units > 0.0)
}

/// Whether a database has throughput of its own.
pub fn is_shared(call: &Call<'_>, database: u32) -> bool {
    call.engine.kept_named(KeptKind::Offer, database, NAME).is_ok()
}

/// `GET /offers`
pub async fn list_all(call: &Call<'_>) -> Answer {
    list(call, "", "Offers", &call.engine.all_kept(KeptKind::Offer), |offer| shape(call, offer))
}

/// `POST /offers` with a query
pub async fn query(call: &Call<'_>) -> Answer {
    let offers = call.engine.all_kept(KeptKind::Offer);
    let all: Vec<_> = offers.iter().map(|offer| shape(call, offer)).collect();
    resources::query(call, "", "Offers", &all)
}

/// `GET /offers/{rid}`
pub async fn read(call: &Call<'_>) -> Answer {
    let offer = find(call)?;
    Ok(with_minimum(answer(StatusCode::OK, &shape(call, &offer), &offer.etag().to_string()), &offer))
}

/// `PUT /offers/{rid}`
pub async fn replace(call: &Call<'_>) -> Answer {
    let offer = find(call)?;
    let body = call.json()?;
    let content = body.get("content").cloned().unwrap_or(Value::Null);
    let to_autoscale = call.flag(&headers::MIGRATE_TO_AUTOPILOT)?;
    let to_manual = call.flag(&headers::MIGRATE_TO_MANUAL)?;
    let settings = &content["offerAutopilotSettings"];
    let next = if to_autoscale {
        autoscale_content(&json!({ "maxThroughput": AUTOSCALE_MIN }))?
    } else if to_manual || settings.is_null() {
        let units = content["offerThroughput"].as_i64().ok_or_else(ApiError::offer_throughput)?;
        manual_content(units.max(if to_manual { THROUGHPUT_MIN } else { units }))?
    } else {
        autoscale_content(settings)?
    };
    let ranges = Throughput(next.clone()).least_ranges();
    let (engine, if_match, now) = (call.engine.clone(), call.if_match()?, call.now);
    // Both, also if the client leaves between the two. After the offer, so that a request that is refused
    // splits nothing; one that is sent again goes on from here.
    let replaced = call.engine.to_completion(async move {
        let offer = engine.replace_kept(KeptKind::Offer, &offer, NAME, next, if_match, now).await?;
        if let Ok(container) = engine.container_by_id(offer.owner) {
            engine.split_ranges(&container, ranges, now).await?;
        }
        Ok::<_, Error>(offer)
    });
    let offer = replaced.await?;
    Ok(with_minimum(answer(StatusCode::OK, &shape(call, &offer), &offer.etag().to_string()), &offer))
}

fn with_minimum(reply: Reply, offer: &Kept) -> Reply {
    let autoscale = !offer.value["offerAutopilotSettings"].is_null();
    reply
        .with(&headers::MIN_THROUGHPUT, if autoscale { AUTOSCALE_MIN } else { THROUGHPUT_MIN })
        .with(&headers::OFFER_REPLACE_PENDING, false)
}

fn find(call: &Call<'_>) -> Result<Kept, ApiError> {
    let Address::Offer { rid } = call.address else { return Err(ApiError::internal()) };
    let wanted = |offer: &Kept| offer_rid(offer) == rid.name().to_ascii_lowercase();
    let offers = call.engine.all_kept(KeptKind::Offer);
    offers.into_iter().find(wanted).ok_or_else(ApiError::resource_not_found)
}

fn offer_rid(offer: &Kept) -> String {
    Rid::Offer { number: offer.id % NUMBERS }.encode()
}

fn shape(call: &Call<'_>, offer: &Kept) -> Value {
    let (owner_rid, owner_path) = match call.engine.container_by_id(offer.owner) {
        Ok(container) => {
            let (db, coll) = (container.database, container.id);
            let rid = Rid::Container { db, coll }.encode();
            let path = format!("dbs/{}/colls/{rid}/", Rid::Database { db }.encode());
            (rid, path)
        }
        Err(_) => {
            let rid = Rid::Database { db: offer.owner }.encode();
            let path = format!("dbs/{rid}/");
            (rid, path)
        }
    };
    let rid = offer_rid(offer);
    let mut content = offer.value.clone();
    content["offerIsRUPerMinuteThroughputEnabled"] = json!(false);
    content["offerMinimumThroughputParameters"] = json!({ "maxThroughputEverProvisioned": content["offerThroughput"], "maxConsumedStorageEverInKB": 0 });
    content["offerLastReplaceTimestamp"] = json!(offer.modified);
    json!({
        "resource": owner_path,
        "offerType": "Invalid",
        "offerResourceId": owner_rid,
        "offerVersion": "V2",
        "content": content,
        "id": rid,
        "_rid": rid,
        "_self": format!("offers/{rid}/"),
        "_etag": offer.etag().to_string(),
        "_ts": offer.modified,
    })
}
