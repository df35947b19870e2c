//! Resource ids (`_rid`): numbers of the parents and of the resource itself, in base64 with `-` for `/`.
//!
//! ```text
//!   database    db:4
//!   container   db:4 │ 1xxxxxxx coll:4          the top bit of byte 4 tells a container
//!   user, key   db:4 │ 0xxxxxxx user:4          from a user or a client encryption key
//!   document …  db:4 │ coll:4 │ number:8        little-endian; high nibble of byte 15 is the type
//!   permission  db:4 │ user:4 │ number:8
//!   attachment  db:4 │ coll:4 │ number:8 │ attachment:4
//!   offer       any:3
//! ```
//!
//! SDKs take these apart, so the layout is part of the protocol. Clients notice a re-created container by its
//! new RID: numbers are never handed out twice.
//!
//! Holds: `Rid::decode(&rid.encode()) == Some(rid)` for every value that the constructors accept.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD};
use std::fmt;

/// Base64 with a dash in place of the slash, which would end a segment of a path.
static BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, PAD);
const ALPHABET: Alphabet =
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("64 characters, each once"),
    };

/// The top bit of the container number; always set in a container's RID.
const CONTAINER_BIT: u32 = 0x8000_0000;
/// Numbers of documents and their siblings; the byte above holds the type nibble.
pub const CHILD_NUMBER_MAX: u64 = (1 << 60) - 1;

/// Characters of a document's RID.
pub const DOCUMENT_LEN: usize = 24;

/// What lives under a container and shares the 16-byte form; the value is the type nibble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum ChildKind {
    Document = 0x0,
    Conflict = 0x4,
    PartitionKeyRange = 0x5,
    UserDefinedFunction = 0x6,
    Trigger = 0x7,
    StoredProcedure = 0x8,
    Schema = 0x9,
}

impl ChildKind {
    fn from_nibble(nibble: u8) -> Option<ChildKind> {
        use ChildKind::*;
        [Document, Conflict, PartitionKeyRange, UserDefinedFunction, Trigger, StoredProcedure, Schema]
            .into_iter()
            .find(|kind| *kind as u8 == nibble)
    }
}

/// A decoded resource id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the parts drawn at the top of this file")]
pub enum Rid {
    Database {
        db: u32,
    },
    Container {
        db: u32,
        coll: u32,
    },
    /// A user, or a client encryption key: the bytes do not tell which.
    UserOrKey {
        db: u32,
        number: u32,
    },
    Child {
        db: u32,
        coll: u32,
        kind: ChildKind,
        number: u64,
    },
    Permission {
        db: u32,
        user: u32,
        number: u64,
    },
    Attachment {
        db: u32,
        coll: u32,
        document: u64,
        number: u32,
    },
    Offer {
        number: u32,
    },
}

impl Rid {
    /// A document's RID; `coll` and `number` count from 1 within their parent.
    pub fn document(db: u32, coll: u32, number: u64) -> Rid {
        Rid::Child { db, coll, kind: ChildKind::Document, number }
    }

    /// The text form of a document's RID, which every row of an answer has twice.
    pub fn document_text(db: u32, coll: u32, number: u64) -> [u8; DOCUMENT_LEN] {
        let bytes = child_bytes(db, coll, ChildKind::Document, number);
        let mut text = [b'='; DOCUMENT_LEN];
        // There is room for what sixteen bytes give.
        let _ = BASE64.encode_slice(bytes, &mut text);
        text
    }

    /// The text form.
    ///
    /// Numbers out of range lose their high bits; the counters that feed them assert the range.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::with_capacity(20);
        match *self {
            Rid::Database { db } => bytes.extend(db.to_be_bytes()),
            Rid::Container { db, coll } => bytes.extend(container_bytes(db, coll)),
            Rid::UserOrKey { db, number } => push_user(&mut bytes, db, number),
            Rid::Child { db, coll, kind, number } => {
                bytes.extend(child_bytes(db, coll, kind, number));
            }
            Rid::Permission { db, user, number } => {
                push_user(&mut bytes, db, user);
                bytes.extend(number.to_le_bytes());
            }
            Rid::Attachment { db, coll, document, number } => {
                bytes.extend(container_bytes(db, coll));
                bytes.extend((document & CHILD_NUMBER_MAX).to_le_bytes());
                bytes.extend(number.to_be_bytes());
            }
            Rid::Offer { number } => return encode_offer(number),
        }
        BASE64.encode(bytes)
    }

    /// Reads the text form; `None` if it is not one.
    pub fn decode(text: &str) -> Option<Rid> {
        if text.len() == 4 {
            return decode_offer(text).map(|number| Rid::Offer { number });
        }
        let bytes = BASE64.decode(text).ok()?;
        let (db, rest) = bytes.split_first_chunk::<4>()?;
        let db = u32::from_be_bytes(*db);
        let Some((second, rest)) = rest.split_first_chunk::<4>() else {
            return rest.is_empty().then_some(Rid::Database { db });
        };
        let second = u32::from_be_bytes(*second);
        let in_container = second & CONTAINER_BIT != 0;
        let coll = second & !CONTAINER_BIT;
        let Some((third, rest)) = rest.split_first_chunk::<8>() else {
            return match (rest.is_empty(), in_container) {
                (true, true) => Some(Rid::Container { db, coll }),
                (true, false) => Some(Rid::UserOrKey { db, number: second }),
                (false, _) => None,
            };
        };
        let third = u64::from_le_bytes(*third);
        if !in_container {
            return rest.is_empty().then_some(Rid::Permission { db, user: second, number: third });
        }
        let kind = ChildKind::from_nibble((third >> 60) as u8)?;
        let number = third & CHILD_NUMBER_MAX;
        match (rest.first_chunk::<4>(), rest.len(), kind) {
            (None, 0, _) => Some(Rid::Child { db, coll, kind, number }),
            (Some(last), 4, ChildKind::Document) => {
                Some(Rid::Attachment { db, coll, document: number, number: u32::from_be_bytes(*last) })
            }
            _ => None,
        }
    }

    /// The database number, for everything but offers.
    pub fn database(&self) -> Option<u32> {
        match *self {
            Rid::Database { db }
            | Rid::Container { db, .. }
            | Rid::UserOrKey { db, .. }
            | Rid::Child { db, .. }
            | Rid::Permission { db, .. }
            | Rid::Attachment { db, .. } => Some(db),
            Rid::Offer { .. } => None,
        }
    }
}

impl fmt::Display for Rid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.encode())
    }
}

/// Whether a path is written in RIDs, judged by its database segment as the SDKs do: 8 characters of base64
/// that hold 4 bytes. Such a text always ends in `==`, so a name is hardly ever taken for one.
pub fn is_database_rid(segment: &str) -> bool {
    segment.len() == 8 && matches!(Rid::decode(segment), Some(Rid::Database { .. }))
}

fn child_bytes(db: u32, coll: u32, kind: ChildKind, number: u64) -> [u8; 16] {
    let typed = (number & CHILD_NUMBER_MAX) | (kind as u64) << 60;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&container_bytes(db, coll));
    bytes[8..].copy_from_slice(&typed.to_le_bytes());
    bytes
}

fn container_bytes(db: u32, coll: u32) -> [u8; 8] {
    (u64::from(db) << 32 | u64::from(coll | CONTAINER_BIT)).to_be_bytes()
}

fn push_user(bytes: &mut Vec<u8>, db: u32, number: u32) {
    bytes.extend(db.to_be_bytes());
    bytes.extend((number & !CONTAINER_BIT).to_be_bytes());
}

/// Offers are signed in lower case, so their four characters come from an alphabet without upper case.
const OFFER_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

fn encode_offer(number: u32) -> String {
    (0..4).rev().map(|place| OFFER_ALPHABET[(number >> (5 * place) & 31) as usize] as char).collect()
}

fn decode_offer(text: &str) -> Option<u32> {
    text.bytes().try_fold(0, |number, byte| {
        let digit = OFFER_ALPHABET.iter().position(|letter| *letter == byte.to_ascii_lowercase())?;
        Some(number << 5 | digit as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_from_the_reference() {
        let (db, coll) = (0x1200, 0x23);
        for (text, rid) in [
            ("AAASAA==", Rid::Database { db }),
            ("AAASAIAAACM=", Rid::Container { db, coll }),
            ("AAASAIAAACMBAAAAAAAAAA==", Rid::document(db, coll, 1)),
        ] {
            assert_eq!(rid.encode(), text);
            assert_eq!(Rid::decode(text), Some(rid));
        }
        for number in [1, 0xABCD, CHILD_NUMBER_MAX, u64::MAX] {
            let text = Rid::document_text(db, coll, number);
            assert_eq!(text, Rid::document(db, coll, number).encode().as_bytes());
        }
    }

    #[test]
    fn the_last_byte_tells_scripts_apart() {
        for (kind, byte) in [
            (ChildKind::StoredProcedure, 0x80),
            (ChildKind::Trigger, 0x70),
            (ChildKind::UserDefinedFunction, 0x60),
            (ChildKind::PartitionKeyRange, 0x50),
            (ChildKind::Conflict, 0x40),
        ] {
            let text = Rid::Child { db: 1, coll: 1, kind, number: 7 }.encode();
            assert_eq!(text.len(), 24);
            assert_eq!(BASE64.decode(&text).unwrap()[15], byte, "{kind:?}");
        }
    }

    #[test]
    fn a_slash_never_appears() {
        let text = Rid::Database { db: 0xffff_ffff }.encode();
        assert_eq!(text, "-----w==");
        assert_eq!(Rid::decode(&text), Some(Rid::Database { db: 0xffff_ffff }));
        assert_eq!(Rid::decode("/////w=="), None);
    }

    #[test]
    fn only_database_rids_make_a_path_rid_based() {
        for (segment, expected) in [
            ("AAASAA==", true),
            ("AAAAAA==", true),
            ("testdata", false),
            ("AAASAIAAACM=", false),
            ("colls", false),
            ("", false),
            ("AAASAB==", false),
        ] {
            assert_eq!(is_database_rid(segment), expected, "{segment}");
        }
    }

    #[test]
    fn offers_read_in_either_case() {
        let rid = Rid::Offer { number: 70_000 };
        assert_eq!(rid.encode().len(), 4);
        assert_eq!(Rid::decode(&rid.encode().to_uppercase()), Some(rid));
    }

    fn any_rid() -> impl Strategy<Value = Rid> {
        let kinds = prop::sample::select(vec![
            ChildKind::Document,
            ChildKind::Conflict,
            ChildKind::PartitionKeyRange,
            ChildKind::UserDefinedFunction,
            ChildKind::Trigger,
            ChildKind::StoredProcedure,
            ChildKind::Schema,
        ]);
        let low = 0..CONTAINER_BIT;
        prop_oneof![
            any::<u32>().prop_map(|db| Rid::Database { db }),
            (any::<u32>(), low.clone()).prop_map(|(db, coll)| Rid::Container { db, coll }),
            (any::<u32>(), low.clone()).prop_map(|(db, number)| Rid::UserOrKey { db, number }),
            (any::<u32>(), low.clone(), kinds, 0..=CHILD_NUMBER_MAX)
                .prop_map(|(db, coll, kind, number)| Rid::Child { db, coll, kind, number }),
            (any::<u32>(), low.clone(), any::<u64>()).prop_map(|(db, user, number)| Rid::Permission {
                db,
                user,
                number
            }),
            (any::<u32>(), low, 0..=CHILD_NUMBER_MAX, any::<u32>())
                .prop_map(|(db, coll, document, number)| Rid::Attachment { db, coll, document, number }),
            (0u32..1 << 20).prop_map(|number| Rid::Offer { number }),
        ]
    }

    proptest! {
        #[test]
        fn encode_then_decode_is_identity(rid in any_rid()) {
            prop_assert_eq!(Rid::decode(&rid.encode()), Some(rid));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = Rid::decode(&text);
        }
    }
}
