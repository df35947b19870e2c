//! Master-key signatures: who signed this request, and may they do it.
//!
//! A client signs five lines (verb, resource type, resource link, and the date once in one of two places)
//! with an account key. SDKs build the link in three ways, so every plausible one is tried; each comparison
//! takes the same time whatever it compares.
//!
//! Holds: an `Ok` means that one of the account's keys signed this verb, resource and date, that the date is
//! within a quarter of an hour, and that the key may do what is asked.

use crate::http_date;
use crate::path::{Path, signed_type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use percent_encoding::percent_decode_str;
use sha2::Sha256;
use std::{borrow::Cow, fmt};

/// The account key of every Cosmos emulator; public, so it protects nothing.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// How far a request's date may be from the server's.
pub const DATE_WINDOW_SECONDS: u64 = 15 * 60;

/// An account key, ready to sign. Not printable.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// The text is not a key: keys are base64 and not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an account key must be base64 text of at least one byte")]
pub struct InvalidKey;

impl Key {
    /// Reads a key as accounts show it.
    pub fn from_base64(text: &str) -> Result<Key, InvalidKey> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| InvalidKey)?;
        if bytes.is_empty() {
            return Err(InvalidKey);
        }
        Hmac::new_from_slice(&bytes).map(Key).map_err(|_| InvalidKey)
    }

    /// The base64 signature of a text.
    pub fn sign(&self, payload: &str) -> String {
        STANDARD.encode(self.0.clone().chain_update(payload).finalize().into_bytes())
    }

    /// Whether this key made the signature; takes the same time whatever it compares.
    pub(crate) fn signed(&self, payload: &str, signature: &[u8]) -> bool {
        self.0.clone().chain_update(payload).verify_slice(signature).is_ok()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The keys of the account.
#[derive(Clone, Debug)]
pub struct Keys {
    /// May do everything.
    pub primary: Key,
    /// May do everything; exists so that keys can be changed without a pause.
    pub secondary: Option<Key>,
    /// May read and query.
    pub read_only: Option<Key>,
}

impl Keys {
    /// What whoever shows this key may do. Compares in constant time, by what the keys sign.
    pub fn access_of(&self, key: &str) -> Option<Access> {
        let signature = Key::from_base64(key).ok()?.0.finalize().into_bytes();
        match_key(self, "", &signature)
    }
}

/// What the key that signed may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Access {
    ReadWrite,
    ReadOnly,
}

/// What the request is going to do. A POST may be either, so the router says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Intent {
    Read,
    Write,
}

/// The parts of a request that a signature covers, as they arrived.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest<'a> {
    /// The HTTP method.
    pub verb: &'a str,
    /// The URL path.
    pub path: &'a Path<'a>,
    /// The `authorization` header.
    pub authorization: Option<&'a str>,
    /// The `x-ms-date` header.
    pub x_ms_date: Option<&'a str>,
    /// The `date` header, used when the other is absent.
    pub date: Option<&'a str>,
    /// Read or write.
    pub intent: Intent,
}

/// Why a request is not let in. `ApiError::from` gives each its status and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// No authorization header.
    Missing,
    /// The header is not `type=…&ver=1.0&sig=…`.
    Malformed,
    /// A token of a kind that Mayfly does not check yet.
    Unsupported {
        /// `resource`, `aad` or `sas`.
        kind: &'static str,
    },
    /// Neither date header, or one that is no RFC 1123 date.
    NoDate,
    /// No key of the account signed this, or a read-only key signed a write.
    WrongSignature {
        /// The text the server would have signed.
        payload: String,
    },
    /// Signed too long ago, or in the future.
    NotValidNow {
        /// The date that was signed.
        signed_at: u64,
        /// The server's time.
        now: u64,
    },
}

/// Checks the signature of a request at `now_unix_seconds`.
pub fn verify(keys: &Keys, request: &SignedRequest<'_>, now_unix_seconds: u64) -> Result<Access, AuthError> {
    let signature = match credential(request.authorization.ok_or(AuthError::Missing)?)? {
        Credential::Master { signature } => signature,
        Credential::Resource(_) => return Err(AuthError::Unsupported { kind: "resource" }),
        Credential::Aad(_) => return Err(AuthError::Unsupported { kind: "aad" }),
    };
    let date = request.x_ms_date.or(request.date).ok_or(AuthError::NoDate)?;
    let signed_at = http_date::parse(date).ok_or(AuthError::NoDate)?;
    let (path, segments) = (request.path, request.path.segments());
    let kind = signed_type(&segments);
    let payload = |link: Cow<'_, str>| {
        let date = if request.x_ms_date.is_some() { None } else { request.date };
        payload(request.verb, kind, &link, request.x_ms_date, date)
    };
    let mut payloads = path.signed_links(&segments).map(payload);
    let access = payloads.find_map(|payload| match_key(keys, &payload, &signature));
    match (access, request.intent) {
        (None, _) | (Some(Access::ReadOnly), Intent::Write) => {
            let payload = path.signed_links(&segments).map(payload).next().unwrap_or_default();
            Err(AuthError::WrongSignature { payload })
        }
        (Some(_), _) if signed_at.abs_diff(now_unix_seconds) > DATE_WINDOW_SECONDS => {
            Err(AuthError::NotValidNow { signed_at, now: now_unix_seconds })
        }
        (Some(access), _) => Ok(access),
    }
}

fn match_key(keys: &Keys, payload: &str, signature: &[u8]) -> Option<Access> {
    let candidates = [
        (Some(&keys.primary), Access::ReadWrite),
        (keys.secondary.as_ref(), Access::ReadWrite),
        (keys.read_only.as_ref(), Access::ReadOnly),
    ];
    candidates
        .into_iter()
        .filter_map(|(key, access)| Some((key?, access)))
        .find(|(key, _)| key.signed(payload, signature))
        .map(|(_, access)| access)
}

/// The five signed lines.
pub fn payload(
    verb: &str,
    resource_type: &str,
    resource_link: &str,
    x_ms_date: Option<&str>,
    date: Option<&str>,
) -> String {
    let lines = [verb, resource_type, resource_link, x_ms_date.unwrap_or_default(), date.unwrap_or_default()];
    let mut payload = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for (place, line) in lines.into_iter().enumerate() {
        let start = payload.len();
        payload.push_str(if place < 3 { line } else { line.trim() });
        // Links keep their case: they are names.
        if place != 2 {
            payload[start..].make_ascii_lowercase();
        }
        payload.push('\n');
    }
    payload
}

/// What an `authorization` header holds. Nothing of it has been checked yet.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A signature made with an account key: see `verify`.
    Master {
        /// The decoded signature.
        signature: Vec<u8>,
    },
    /// The value of a resource token's `sig`: see `resource_token::verify`.
    Resource(String),
    /// A JWT: see `aad::check`.
    Aad(String),
}

/// Says the kind and hides the secret, which would otherwise end up in a log.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Master { .. } => "Master(..)",
            Credential::Resource(_) => "Resource(..)",
            Credential::Aad(_) => "Aad(..)",
        })
    }
}

/// Whether an `authorization` header is that of a signature, written as SDKs write it. Others may hold one as well.
pub(crate) fn is_signature(header: &str) -> bool {
    const KIND: &str = "type=master";
    const ENCODED: &str = "type%3dmaster";
    let begins = |with: &str| header.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    begins(KIND) || begins(ENCODED)
}

/// What comes before a signature as SDKs write it. Every request has one, so these are not taken apart.
const BEFORE_SIGNATURE: [&str; 3] =
    ["type%3dmaster%26ver%3d1.0%26sig%3d", "type%3Dmaster%26ver%3D1.0%26sig%3D", "type=master&ver=1.0&sig="];

/// Undoes percent-encoding. Few characters of a signature are encoded, so what is between them is copied in one piece.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut pieces = text.split(|byte| *byte == b'%');
    decoded.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        let escape = piece.split_at_checked(2).and_then(|(digits, rest)| match digits {
            [high, low] => Some(((digit(high)? << 4 | digit(low)?) as u8, rest)),
            _ => None,
        });
        let (byte, rest) = escape.unwrap_or((b'%', piece));
        decoded.push(byte);
        decoded.extend_from_slice(rest);
    }
    decoded
}

/// Reads `type=…&ver=…&sig=…`, URL-encoded or not. A `+` is part of base64 and stays one.
pub fn credential(header: &str) -> Result<Credential, AuthError> {
    let header = header.trim();
    let master = |signature: &[u8]| match STANDARD.decode(signature) {
        Ok(signature) => Ok(Credential::Master { signature }),
        Err(_) => Err(AuthError::Malformed),
    };
    if let Some(signature) = BEFORE_SIGNATURE.iter().find_map(|before| header.strip_prefix(before)) {
        return master(&unescaped(signature.as_bytes()));
    }
    let text = percent_decode_str(header).decode_utf8().map_err(|_| AuthError::Malformed)?;
    let (mut kind, mut version, mut signature) = (None, None, None);
    for part in text.splitn(3, '&') {
        let (name, value) = part.split_once('=').ok_or(AuthError::Malformed)?;
        let slot = match name {
            "type" => &mut kind,
            "ver" => &mut version,
            "sig" => &mut signature,
            _ => return Err(AuthError::Malformed),
        };
        if slot.replace(value).is_some() {
            return Err(AuthError::Malformed);
        }
    }
    let (Some(kind), Some("1.0"), Some(signature)) = (kind, version, signature) else {
        return Err(AuthError::Malformed);
    };
    match kind {
        "master" => master(signature.as_bytes()),
        "resource" => Ok(Credential::Resource(signature.into())),
        "aad" => Ok(Credential::Aad(signature.into())),
        "sas" => Err(AuthError::Unsupported { kind: "sas" }),
        _ => Err(AuthError::Malformed),
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
