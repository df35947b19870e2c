//! Resource tokens: what a permission lets its holder do, without the account key.
//!
//! ```text
//!   type=resource&ver=1.0&sig= base64(signature) ; base64url(payload) ;
//! ```
//!
//! The payload says all there is to know (a mode, a resource, perhaps a logical partition, a deadline), and the
//! signature that this server wrote it, so nothing is stored and any server with the account's keys can check it.
//!
//! Holds: a grant that `verify` returns was signed by a key of this account for this purpose and has not expired;
//! `Grant::allows` says no to everything that it does not know.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mayfly_value::partition::PartitionKey;
use serde::{Deserialize, Serialize};

use crate::address::{Address, ContainerRef};
use crate::auth::{AuthError, Intent, Key, Keys};
use crate::error::ApiError;
use crate::http_date;
use crate::rid::Rid;

/// Sets these signatures apart from those of requests, whose first line is a verb and has no spaces.
const PURPOSE: &str = "mayfly resource token\n";
const VERSION: u32 = 1;
/// More than names, an item's id and a partition key of their greatest lengths need.
const LEN_MAX: usize = 32 * 1024;

/// Whether a permission lets its holder change things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum Mode {
    Read,
    All,
}

/// What a token grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Read, or read and write.
    pub mode: Mode,
    /// The resource by names, decoded: `dbs/d/colls/c` or `dbs/d/colls/c/docs/i`.
    pub resource_link: String,
    /// The resource's RID; where an item's is not known, that of its container.
    pub resource_rid: Rid,
    /// The only logical partition it reaches, as the header writes it.
    pub partition_key: Option<String>,
    /// When it ends, in Unix seconds.
    pub expires_at: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    v: u32,
    mode: Mode,
    link: String,
    rid: String,
    pk: Option<String>,
    exp: u64,
    /// Makes two tokens for the same grant differ; clients expect a fresh one with every read.
    nonce: u64,
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not a token of this server's making.
    #[error("the resource token is malformed")]
    Malformed,
    /// No key of this account signed it.
    #[error("no key of this account signed the resource token")]
    WrongSignature,
    /// Its time has run out.
    #[error("the resource token has expired")]
    Expired {
        /// When, in Unix seconds.
        expires_at: u64,
        /// The server's time.
        now: u64,
    },
}

/// Writes the token for a grant, as a permission's `_token` shows it. The nonce may be any number.
pub fn mint(key: &Key, grant: &Grant, nonce: u64) -> String {
    let payload = Payload {
        v: VERSION,
        mode: grant.mode,
        link: grant.resource_link.clone(),
        rid: grant.resource_rid.encode(),
        pk: grant.partition_key.clone(),
        exp: grant.expires_at,
        nonce,
    };
    // Strings and numbers always have a JSON form; a token of an empty payload would only be refused.
    let payload = serde_json::to_string(&payload).unwrap_or_default();
    let signature = key.sign(&format!("{PURPOSE}{payload}"));
    format!("type=resource&ver=1.0&sig={signature};{};", URL_SAFE_NO_PAD.encode(payload))
}

/// Checks what `auth::credential` found in a resource token, at `now_unix_seconds`.
pub fn verify(keys: &Keys, token: &str, now_unix_seconds: u64) -> Result<Grant, TokenError> {
    let (signature, payload) = split(token).ok_or(TokenError::Malformed)?;
    let signed = format!("{PURPOSE}{payload}");
    let mut full_keys = std::iter::once(&keys.primary).chain(&keys.secondary);
    if !full_keys.any(|key| key.signed(&signed, &signature)) {
        return Err(TokenError::WrongSignature);
    }
    let payload: Payload = serde_json::from_str(&payload).map_err(|_| TokenError::Malformed)?;
    let resource_rid = Rid::decode(&payload.rid).filter(|_| payload.v == VERSION);
    let resource_rid = resource_rid.ok_or(TokenError::Malformed)?;
    if now_unix_seconds >= payload.exp {
        return Err(TokenError::Expired { expires_at: payload.exp, now: now_unix_seconds });
    }
    Ok(Grant {
        mode: payload.mode,
        resource_link: payload.link,
        resource_rid,
        partition_key: payload.pk,
        expires_at: payload.exp,
    })
}

/// The signature and the payload's text.
fn split(token: &str) -> Option<(Vec<u8>, String)> {
    if token.len() > LEN_MAX {
        return None;
    }
    let (signature, payload) = token.strip_suffix(';')?.split_once(';')?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    Some((STANDARD.decode(signature).ok()?, String::from_utf8(payload).ok()?))
}

/// 403 for a request that `Grant::allows` refuses.
pub fn forbidden() -> ApiError {
    ApiError::new(
        403,
        0,
        "Insufficient permissions provided in the authorization header for the corresponding request. Please \
         retry with another authorization header.",
    )
}

/// What a grant's link points at.
struct Target<'a> {
    db: &'a str,
    coll: &'a str,
    /// What of the container: all of its documents, or one.
    documents: Documents<'a>,
}

enum Documents<'a> {
    All,
    One(&'a str),
    None,
}

impl Grant {
    /// Whether the holder may make this request.
    ///
    /// Every holder may read the account, which SDKs do first, and the container that the resource is or is in with
    /// its partition key ranges, without which they cannot address an item. Documents are reached only below the
    /// resource, and with a partition key only where the request's header names that very key; feeds and queries too.
    /// Names are judged as they were sent: once the container is known, ask `covers_container` as well.
    pub fn allows(&self, address: &Address<'_>, intent: Intent, partition_key_header: Option<&str>) -> bool {
        if intent == Intent::Write && self.mode == Mode::Read {
            return false;
        }
        let is_read = intent == Intent::Read;
        match address {
            Address::Account => is_read,
            Address::Container(container)
            | Address::PartitionKeyRanges(container)
            | Address::PartitionKeyRange { container, .. } => is_read && self.is_in(container).is_some(),
            Address::Documents(container) => {
                matches!(self.is_in(container), Some(Documents::All)) && self.has_key(partition_key_header)
            }
            Address::Document { container, id } => {
                let reached = match self.is_in(container) {
                    Some(Documents::All) => true,
                    Some(Documents::One(name)) => {
                        id.name() == name || id.rid().is_some_and(|rid| self.is_document(rid))
                    }
                    Some(Documents::None) | None => false,
                };
                reached && self.has_key(partition_key_header)
            }
            _ => false,
        }
    }

    /// Whether the container is the one the token was made for, and not a later one of the same name.
    pub fn covers_container(&self, rid: Rid) -> bool {
        self.container_rid() == Some(rid)
    }

    fn container_rid(&self) -> Option<Rid> {
        match self.resource_rid {
            Rid::Container { db, coll } | Rid::Child { db, coll, .. } | Rid::Attachment { db, coll, .. } => {
                Some(Rid::Container { db, coll })
            }
            _ => None,
        }
    }

    fn is_document(&self, rid: Rid) -> bool {
        matches!(rid, Rid::Child { .. }) && self.resource_rid == rid
    }

    /// What the grant reaches in this container, if it is the grant's.
    fn is_in(&self, container: &ContainerRef<'_>) -> Option<Documents<'_>> {
        let target = self.target()?;
        let by_name = container.db.name() == target.db && container.coll.name() == target.coll;
        let by_rid = container.coll.rid().is_some_and(|rid| {
            let in_database = rid.database().map(|db| Rid::Database { db });
            self.covers_container(rid) && container.db.rid() == in_database
        });
        (by_name || by_rid).then_some(target.documents)
    }

    fn target(&self) -> Option<Target<'_>> {
        let segments: Vec<&str> = self.resource_link.trim_matches('/').split('/').collect();
        match *segments {
            ["dbs", db, "colls", coll] => Some(Target { db, coll, documents: Documents::All }),
            ["dbs", db, "colls", coll, "docs", id] => {
                Some(Target { db, coll, documents: Documents::One(id) })
            }
            ["dbs", db, "colls", coll, _, ..] => Some(Target { db, coll, documents: Documents::None }),
            _ => None,
        }
    }

    /// Whether the request stays in the grant's logical partition. Compares keys, not their spellings.
    fn has_key(&self, header: Option<&str>) -> bool {
        let Some(own) = &self.partition_key else { return true };
        match (PartitionKey::parse_header(own), header.map(PartitionKey::parse_header)) {
            (Ok(own), Some(Ok(sent))) => own == sent,
            _ => false,
        }
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> ApiError {
        match error {
            TokenError::Malformed => ApiError::from(AuthError::Malformed),
            TokenError::WrongSignature => ApiError::new(
                401,
                0,
                "The input authorization token can't serve the request. The wrong key is being used or the \
                 expected payload is not built as per the protocol.",
            ),
            TokenError::Expired { expires_at, now } => ApiError::new(
                403,
                0,
                format!(
                    "The authorization token is not valid at the current time. Please create another token and \
                     retry (token expiry time: {}, current server time: {}).",
                    http_date::format(expires_at),
                    http_date::format(now)
                ),
            ),
        }
    }
}

#[cfg(test)]
#[path = "resource_token_tests.rs"]
mod tests;
