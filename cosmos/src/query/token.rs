//! Continuations: where a page of a query ended.
//!
//! ```text
//!   version:u8  query fingerprint:u64  access path:u8  rows skipped:u64  rows given:u64  kind:u8  …
//!
//!   kind 0, streaming   rows of the document:u32  position of the scan
//!   kind 1, window      length of the keys:u16  keys (BSON)  tie
//!   kind 2, long window digest of the tie: 16 bytes
//!   kind 3, whole       fingerprints of the last rows: u64 each
//! ```
//!
//! A query that streams goes on at a position of the scan, in the middle of a document if that one gave several rows.
//! One that is sorted, grouped or distinct goes on after the place of its last row (`mayfly_sql::Place`), whatever came
//! or went meanwhile; if the place is too long for a token, after that row, which must still be there then. Only a
//! query that cannot be divided is run again whole, and goes on after the last row that is left of those it gave.
//!
//! A query of one range or partition key gets the token itself. One that the server runs over all ranges gets
//! it in the form that the service's gateway gives it: a JSON array with the token and the range of keys that
//! it is of.
//!
//! Holds: a token has less than 1 KB, belongs to one query, and means the same after a restart. The one
//! difference that a query may have is the filter that a client resumes a sorted query of a range with.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::{RawDocument, RawDocumentBuf, raw::CStr};
use mayfly_engine::{Container, Position};
use mayfly_sql::{After, Place, Progress, Value};
use serde::Deserialize;

use super::{
    access,
    request::{Belongs, Fingerprint},
};
use crate::{
    error::ApiError,
    rid::{ChildKind, Rid},
};

const VERSION: u8 = 2;
const HEADER: usize = 27;

/// What follows the header at most: 1 KB of base64, less the header and the array around the token.
const REST_BYTES_MAX: usize = 680;

/// One entry of the array that the gateway gives; the range is for the reader's eyes.
#[derive(Deserialize)]
struct Enclosed<'a> {
    #[serde(borrow)]
    token: &'a str,
}

/// So many rows are remembered of a query that is run again whole. All of them gone between two pages is too much
/// change to go on from.
pub const ANCHORS_MAX: usize = 16;

/// Where a query stands.
#[derive(Clone, Debug, Default)]
pub struct Token {
    /// The access path that the first page chose; none before it.
    pub choice: Option<u8>,
    /// Rows left out and given so far.
    pub progress: Progress,
    /// Where to go on.
    pub from: From,
}

/// Where to go on.
#[derive(Clone, Debug, Default)]
pub enum From {
    /// At the start.
    #[default]
    Start,
    /// After a position of the scan, or in the middle of the document there.
    Scan {
        /// None is the start.
        position: Option<Position>,
        /// How many rows of the document were given, if not all.
        rows_of_document: u32,
    },
    /// After the place of a row.
    Row(After),
    /// After the latest of these rows that is left, the last one first.
    Rows(Vec<u64>),
}

const SCAN: u8 = 0;
const PLACE: u8 = 1;
const DIGEST: u8 = 2;
const ROWS: u8 = 3;

impl Token {
    /// The text for the client.
    pub fn encode(&self, fingerprint: Fingerprint) -> String {
        let mut bytes = Vec::with_capacity(HEADER + 64);
        bytes.push(VERSION);
        bytes.extend_from_slice(&fingerprint.bits().to_be_bytes());
        bytes.push(self.choice.unwrap_or_default());
        bytes.extend_from_slice(&self.progress.skipped.to_be_bytes());
        bytes.extend_from_slice(&self.progress.given.to_be_bytes());
        match &self.from {
            From::Start => bytes.extend_from_slice(&[SCAN, 0, 0, 0, 0]),
            From::Scan { position, rows_of_document } => {
                bytes.push(SCAN);
                bytes.extend_from_slice(&rows_of_document.to_be_bytes());
                bytes.extend(position.iter().flat_map(Position::to_bytes));
            }
            From::Row(After::Place(place)) => push_place(&mut bytes, place),
            From::Row(After::Digest(digest)) => {
                bytes.push(DIGEST);
                bytes.extend_from_slice(digest);
            }
            From::Rows(anchors) => {
                bytes.push(ROWS);
                bytes.extend(anchors.iter().take(ANCHORS_MAX).flat_map(|anchor| anchor.to_be_bytes()));
            }
        }
        STANDARD.encode(bytes)
    }

    /// The text for a client whose query the server runs over all ranges.
    pub fn encode_enclosed(&self, fingerprint: Fingerprint) -> String {
        let token = self.encode(fingerprint);
        format!(r#"[{{"token":"{token}","range":{{"min":"","max":"FF"}}}}]"#)
    }

    /// Where a query of `container` goes on by a client's text: at the start, if there is none, or if it is one that the
    /// service gave out for another container. Of this one no row was given then.
    pub fn of_client(
        text: Option<&str>,
        fingerprint: Fingerprint,
        container: &Container,
    ) -> Result<Self, ApiError> {
        match text {
            None | Some("") => Ok(Self::default()),
            Some(text) if is_of_another(text, container) => Ok(Self::default()),
            Some(text) => Self::decode(text, fingerprint),
        }
    }

    /// Reads a client's text. It must be of the same query.
    pub fn decode(text: &str, fingerprint: Fingerprint) -> Result<Self, ApiError> {
        let text = text.trim();
        let text = match serde_json::from_str::<[Enclosed<'_>; 1]>(text) {
            Ok([Enclosed { token }]) => token,
            Err(_) => text,
        };
        let bytes = STANDARD.decode(text).map_err(|_| ApiError::invalid_continuation())?;
        Self::read(&bytes, fingerprint).ok_or_else(ApiError::invalid_continuation)
    }

    fn read(bytes: &[u8], fingerprint: Fingerprint) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        if *header.first()? != VERSION {
            return None;
        }
        let choice = *header.get(9)?;
        let choice = match fingerprint.owns(word(header.get(1..9)?)) {
            Belongs::Same => choice,
            Belongs::OtherFilter => access::with_another_filter(choice),
            Belongs::Not => return None,
        };
        let progress = Progress { skipped: word(header.get(10..18)?), given: word(header.get(18..26)?) };
        let from = match *header.get(26)? {
            SCAN => {
                let (rows, position) = rest.split_first_chunk()?;
                let position = match position {
                    [] => None,
                    bytes => Some(Position::from_bytes(bytes).ok()?),
                };
                From::Scan { position, rows_of_document: u32::from_be_bytes(*rows) }
            }
            PLACE => From::Row(After::Place(read_place(rest)?)),
            DIGEST => From::Row(After::Digest(rest.try_into().ok()?)),
            ROWS => From::Rows(rest.chunks(8).map(word).collect()),
            _ => return None,
        };
        Some(Self { choice: Some(choice), progress, from })
    }
}

/// Whether it is a continuation in the form of the service (`-RID:~…#RT:1#…`), after a document of another container.
fn is_of_another(text: &str, container: &Container) -> bool {
    let named = text.strip_prefix(['+', '-']).and_then(|text| text.strip_prefix("RID:"));
    let rid = named.and_then(|text| text.trim_start_matches('~').split('#').next());
    match rid.and_then(Rid::decode) {
        Some(Rid::Child { db, coll, kind: ChildKind::Document, .. }) => {
            (db, coll) != (container.database, container.id)
        }
        _ => false,
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

/// The names of sort keys in a token, by their number. Undefined ones are left out.
fn key_name(number: usize) -> String {
    format!("{number}")
}

fn push_place(bytes: &mut Vec<u8>, place: &Place) {
    let mut keys = RawDocumentBuf::new();
    for (number, key) in place.keys.iter().enumerate() {
        let name = key_name(number);
        if let (Ok(name), Some(value)) = (<&CStr>::try_from(name.as_str()), key.to_bson()) {
            keys.append(name, value);
        }
    }
    // How many there are, with those that are undefined.
    let keys = keys.as_bytes();
    if keys.len() + place.tie.len() + 3 > REST_BYTES_MAX {
        bytes.push(DIGEST);
        bytes.extend_from_slice(&place.digest());
        return;
    }
    bytes.push(PLACE);
    bytes.push(place.keys.len().min(usize::from(u8::MAX)) as u8);
    bytes.extend_from_slice(&(keys.len() as u16).to_be_bytes());
    bytes.extend_from_slice(keys);
    bytes.extend_from_slice(&place.tie);
}

fn read_place(bytes: &[u8]) -> Option<Place> {
    let (head, rest) = bytes.split_at_checked(3)?;
    let (keys, tie) =
        rest.split_at_checked(usize::from(u16::from_be_bytes([*head.get(1)?, *head.get(2)?])))?;
    let document = RawDocument::from_bytes(keys).ok()?;
    let mut values = Vec::new();
    for number in 0..usize::from(*head.first()?) {
        values.push(match document.get(key_name(number)).ok()? {
            Some(value) => Value::from_raw(value).into_owned(),
            None => Value::Undefined,
        });
    }
    Some(Place { keys: values, tie: tie.to_vec() })
}

#[cfg(test)]
mod tests {
    use mayfly_testkit::world::{Backend, World, definition};

    use super::*;

    const QUERY: Fingerprint = Fingerprint::exact(42);

    #[track_caller]
    fn check_round_trip(from: From) -> String {
        let token = Token { choice: Some(9), progress: Progress { skipped: 7, given: 1 << 40 }, from };
        let text = token.encode(QUERY);
        let back = Token::decode(&text, QUERY).unwrap();
        assert_eq!(back.encode(QUERY), text);
        assert_eq!((back.choice, back.progress), (token.choice, token.progress));
        let enclosed = token.encode_enclosed(QUERY);
        assert!(enclosed.len() < 1024, "{} bytes", enclosed.len());
        assert_eq!(Token::decode(&enclosed, QUERY).unwrap().encode(QUERY), text);
        text
    }

    #[test]
    fn a_token_comes_back_as_it_was() {
        let position = Position::from_bytes(&[0, 3, 0, 9, 9, 9]).unwrap();
        for position in [None, Some(position)] {
            check_round_trip(From::Scan { position, rows_of_document: 5 });
        }
        check_round_trip(From::Rows(vec![3, u64::MAX]));
        let keys = vec![Value::Undefined, Value::Int(i64::MAX), Value::string("é"), Value::Double(0.5)];
        let text = check_round_trip(From::Row(After::Place(Place { keys, tie: vec![1, 2, 3] })));
        let From::Row(After::Place(place)) = Token::decode(&text, QUERY).unwrap().from else { panic!() };
        assert_eq!(
            format!("{:?}", place.keys),
            r#"[Undefined, Int(9223372036854775807), String("é"), Double(0.5)]"#
        );
    }

    #[test]
    fn long_keys_and_ids_do_not_make_long_tokens() {
        let long = Place { keys: vec![Value::string("x".repeat(5000))], tie: vec![7; 1100] };
        check_round_trip(From::Row(After::Place(long)));
        let position = Position::from_bytes(&[&[0, 0, 0][..], &[9; 2000]].concat()).unwrap();
        check_round_trip(From::Scan { position: Some(position), rows_of_document: 0 });
    }

    #[tokio::test]
    async fn a_continuation_of_another_container_of_the_service_is_the_start() {
        let world = World::new(Backend::Mirrored).await;
        let container = world.create_container(definition("c", "/p")).await.unwrap();
        let of = |text: &str| Token::of_client(Some(text), QUERY, &container);
        let elsewhere = "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8";
        assert!(matches!(of(elsewhere).unwrap().from, From::Start));
        let here = Rid::document(container.database, container.id, 7).encode();
        for text in [format!("-RID:~{here}#RT:1"), "-RID:~nonsense#RT:1".to_owned()] {
            assert!(of(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_token_of_the_query_is_refused() {
        let token = Token::default().encode(QUERY);
        let several = format!(r#"[{{"token":"{token}"}},{{"token":"{token}"}}]"#);
        for text in ["", "!", "AAAA", "[]", "[{}]", r#"[{"token":1}]"#, &several, &token[..8]] {
            assert_eq!(
                Token::decode(text, QUERY).unwrap_err().message,
                "Invalid Continuation Token",
                "{text}"
            );
        }
        assert!(Token::decode(&token, Fingerprint::exact(2)).is_err());
    }

    #[test]
    fn another_filter_keeps_the_place_and_drops_an_index_that_the_filter_chose() {
        let (first, next) = (Fingerprint::resumable(7, 1), Fingerprint::resumable(7, 2));
        for (choice, kept) in [(3, 0x3F), (0x41, 0x41)] {
            let token = Token { choice: Some(choice), ..Token::default() }.encode(first);
            assert_eq!(Token::decode(&token, first).unwrap().choice, Some(choice));
            assert_eq!(Token::decode(&token, next).unwrap().choice, Some(kept));
            for other in [Fingerprint::resumable(8, 1), Fingerprint::exact(next.bits())] {
                assert!(Token::decode(&token, other).is_err());
            }
        }
    }
}
