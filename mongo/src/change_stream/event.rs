//! One event as clients see it, and the token to go on after it.

use std::collections::BTreeMap;

use bson::{Bson, DateTime, Document, RawDocument, doc};
use mayfly_engine::{Event, EventKind};

use super::Subject;
use crate::{
    cluster_time::stamp,
    failure::{Failure, Result},
    update::describe,
};

/// Where a stream stands: per container the last commit and how many of its events were seen, and the last happening.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// By the container's number.
    pub commits: BTreeMap<u32, (u64, u32)>,
    /// The change of the catalog whose happenings were the last, and how many of them were seen; none is all.
    pub happening: (u64, u32),
    /// Whether that ended the stream.
    pub end: End,
}

/// How far a stream has come in ending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// It goes on.
    #[default]
    Open,
    /// What ends it has been told, and that it ends has not.
    Next,
    /// It has been told.
    Told,
}

/// The first byte of a token.
const GOES_ON: u8 = 3;
/// The first byte of the token of an event that ended its stream.
const ENDED: u8 = 4;
/// The first byte of the token of the event before that.
const ENDS: u8 = 5;
/// The same of tokens that have the time of the last happening, instead of its number, from before happenings were kept.
const OLD: [u8; 2] = [1, 2];

impl Standing {
    /// The token.
    pub fn to_token(&self) -> Document {
        let mut bytes = vec![match self.end {
            End::Open => GOES_ON,
            End::Next => ENDS,
            End::Told => ENDED,
        }];
        bytes.extend_from_slice(&self.happening.0.to_be_bytes());
        bytes.extend_from_slice(&self.happening.1.to_be_bytes());
        for (container, (lsn, seen)) in &self.commits {
            bytes.extend_from_slice(&container.to_be_bytes());
            bytes.extend_from_slice(&lsn.to_be_bytes());
            bytes.extend_from_slice(&seen.to_be_bytes());
        }
        doc! { "_data": bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>() }
    }

    /// From a token. One from before happenings were kept knows nothing of those up to `known`.
    pub fn from_token(token: &RawDocument, known: u64) -> Result<Self> {
        let data = match token.get("_data")? {
            Some(bson::RawBsonRef::String(data)) => data,
            Some(_) => return Err(Failure::new(9, "resume token's _data field must be a string")),
            None => {
                let message = "BSON field '$changeStream.resumeAfter._data' is missing but a required field";
                return Err(Failure::new(40647, message));
            }
        };
        let wrong = || Failure::new(9, "resume token string was not a valid hex string");
        let digits: Option<Vec<u8>> = data
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let bytes = digits.ok_or_else(wrong)?;
        let unknown = || Failure::new(260, "the resume token was not made by this server");
        let (version, rest) = bytes.split_first().ok_or_else(unknown)?;
        let is_old = OLD.contains(version);
        let head = if is_old { 8 } else { 12 };
        let is_known = is_old || [GOES_ON, ENDED, ENDS].contains(version);
        if !is_known || rest.len() < head || (rest.len() - head) % 16 != 0 {
            return Err(unknown());
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
        let (happening, commits) = rest.split_at(head);
        let happening = match is_old {
            true => (known, 0),
            false => (number(&happening[..8]), number(&happening[8..]) as u32),
        };
        let commit = |bytes: &[u8]| {
            (number(&bytes[..4]) as u32, (number(&bytes[4..12]), number(&bytes[12..16]) as u32))
        };
        let commits = commits.chunks(16).map(commit).collect();
        let end = match *version {
            ENDS => End::Next,
            version if version == ENDED || version == OLD[1] => End::Told,
            _ => End::Open,
        };
        Ok(Self { happening, commits, end })
    }
}

/// What a stream was asked to show.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// `default`, `updateLookup`, `whenAvailable` or `required`.
    pub full_document: String,
    /// `off`, `whenAvailable` or `required`.
    pub before_change: String,
    /// Whether it is also told how collections are made and changed.
    pub expanded: bool,
}

/// The event, without its token.
pub fn event_document(
    collection: &Subject,
    event: &Event,
    current: Option<&RawDocument>,
    wishes: &Wishes,
) -> Result<Document> {
    let body = event.current().or(event.previous());
    let key = match body {
        Some(body) => match body.get("_id")?.or(body.get("id")?) {
            Some(id) => Bson::try_from(id)?,
            None => Bson::Null,
        },
        None => Bson::Null,
    };
    let operation = match event.kind {
        EventKind::Create => "insert",
        EventKind::Replace => "replace",
        EventKind::Update => "update",
        EventKind::Delete | EventKind::Expire => "delete",
    };
    let mut shown = doc! {
        "operationType": operation,
        "clusterTime": stamp(event.moment),
        "collectionUUID": collection.uuid(),
        "wallTime": DateTime::from_millis(event.ts as i64 * 1000),
    };
    match event.kind {
        EventKind::Create | EventKind::Replace => {
            let body = event.current().map(Document::try_from).transpose()?;
            shown.insert("fullDocument", body.map_or(Bson::Null, Bson::from));
        }
        EventKind::Update => match wishes.full_document.as_str() {
            "updateLookup" => {
                let body = current.map(Document::try_from).transpose()?;
                shown.insert("fullDocument", body.map_or(Bson::Null, Bson::from));
            }
            wish @ ("whenAvailable" | "required") => {
                let body = image(collection, event.current(), wish, "post")?;
                shown.insert("fullDocument", body.map_or(Bson::Null, Bson::from));
            }
            _ => {}
        },
        EventKind::Delete | EventKind::Expire => {}
    }
    shown.insert("ns", doc! { "db": &collection.db, "coll": &collection.name });
    shown.insert("documentKey", doc! { "_id": key });
    if let (EventKind::Update, Some(before), Some(after)) = (event.kind, event.previous(), event.current()) {
        let description = describe(before, after).to_document();
        shown.insert("updateDescription", Document::try_from(description.as_ref())?);
    }
    if event.kind != EventKind::Create
        && ["whenAvailable", "required"].contains(&wishes.before_change.as_str())
    {
        let body = image(collection, event.previous(), &wishes.before_change, "pre")?;
        shown.insert("fullDocumentBeforeChange", body.map_or(Bson::Null, Bson::from));
    }
    if let Some(at) = event.expired_at {
        shown.insert("expiredAt", DateTime::from_millis(at.0 as i64));
    }
    Ok(shown)
}

/// A whole document before or after a change, which a collection shows only if it was told to keep them.
fn image(
    collection: &Subject,
    body: Option<&RawDocument>,
    wish: &str,
    which: &str,
) -> Result<Option<Document>> {
    match body.filter(|_| collection.has_images) {
        Some(body) => Ok(Some(Document::try_from(body)?)),
        None if wish == "required" => {
            let message = format!(
                "Change stream was configured to require a {which}-image for all events, but one was not found"
            );
            Err(Failure::new(47, message).label("NonResumableChangeStreamError"))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back() {
        let mut standing = Standing { happening: (7, 2), ..Standing::default() };
        standing.commits.insert(3, (99, 2));
        standing.commits.insert(5, (1 << 40, 0));
        let token = bson::RawDocumentBuf::try_from(&standing.to_token()).unwrap();
        assert_eq!(Standing::from_token(&token, 0).unwrap(), standing);
        let old = bson::RawDocumentBuf::try_from(&doc! { "_data": format!("01{:016X}", 7) }).unwrap();
        assert_eq!(Standing::from_token(&old, 99).unwrap().happening, (99, 0));
        let code = |token: Document| {
            let raw = bson::RawDocumentBuf::try_from(&token).unwrap();
            Standing::from_token(&raw, 0).unwrap_err().code
        };
        assert_eq!(code(doc! { "_data": "xyz" }), 9);
        assert_eq!(code(doc! {}), 40647);
        assert_eq!(code(doc! { "_data": "03" }), 260);
    }
}
