//! Every key family, in one place.
//!
//! A key begins with the container's number and the slot's, so that all keys of a slot lie together and one write
//! touches one slot; then a byte for the family; then the family's own fields. Container 0 is the catalog.
//!
//! ```text
//!   c:u32  s:u16  family:u8  …
//! ```
//!
//! | family | fields | value | space |
//! |---|---|---|---|
//! | `Counter` | | the slot's sequence, highest second, stored documents and bytes | small |
//! | `Purged` | | a counter of what purge took away again | small |
//! | `Reborn` | | the last commit that wrote over a document that had expired and was not purged | small |
//! | `LogForgotten` | | how far the log is forgotten | small |
//! | `PurgePosition` | | how far purge has come: in the feed, among deadlines, and what it has left | small |
//! | `IndexPosition` | | how far the indexer has walked the feed | small |
//! | `Feed` | lsn, ordinal | index epoch, size, life, document | small |
//! | `Expiry` | deadline second, document | size | small |
//! | `Date` | rule, date, document | size | small |
//! | `Index` | epoch, path, value, document | life | small |
//! | `Composite` | epoch, index number, values, document | life | small |
//! | `Unique` | key number, hash, values | lsn, document's id | small |
//! | `Secondary` | index number, values, document | document, life | small |
//! | `SecondaryUnique` | index number, values | lsn, document | small |
//! | `Receipt` | session | what its last numbered write answered | small |
//! | `Vector` | epoch, index number, document | life, code of the vector | small |
//! | `Text` | epoch, index number, stem of a word, document | life, words, places of this one | small |
//! | `Record` | document | lsn, header, life, body | large |
//! | `Log` | lsn, ordinal | an event with its images | large |
//! | `Database`, `Container`, `Kept`, `Dropped`, `Horizon`, `Format` | names or numbers | definitions | small |
//! | `Note` | number of a change of the catalog, ordinal | what a front-end wrote down of it | small |
//! | `Errand` | asked or answered, whom, second, number | what one node asks of another, or its answer | large |
//!
//! *document* is the effective partition key hash, escaped and terminated, then the id to the end of the key.
//! `docs/format.md` draws the bytes.

use bson::RawBsonRef;
use mayfly_storage::store::{Key, KeyRange, Slot, Space};
use mayfly_value::{
    digest, keycode,
    order::{self, Order},
    partition::Epk,
};

use crate::error::{Error, Result};

/// The families. The numbers are the bytes on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Family {
    /// The slot's counter row.
    Counter = 0x01,
    /// The counter of purged documents and bytes.
    Purged = 0x02,
    /// How far purge has come.
    PurgePosition = 0x03,
    /// How far the indexer has walked the feed.
    IndexPosition = 0x04,
    /// In layout 2, up to when entries of purged documents were left for a sweep.
    Sweep = 0x05,
    /// How far the log is forgotten.
    LogForgotten = 0x06,
    /// The last commit that wrote over a document that had expired and was not purged.
    Reborn = 0x07,
    /// Last writes in commit order: one entry per stored document.
    Feed = 0x10,
    /// Documents with their own deadline.
    Expiry = 0x11,
    /// Documents with a date under a date rule.
    Date = 0x12,
    /// Values by path.
    Index = 0x20,
    /// Composite indexes.
    Composite = 0x21,
    /// Unique keys.
    Unique = 0x22,
    /// Indexes of collections.
    Secondary = 0x23,
    /// Unique indexes of collections.
    SecondaryUnique = 0x24,
    /// What a session's last numbered write answered.
    Receipt = 0x25,
    /// Words of full-text indexes.
    Text = 0x26,
    /// Codes of vector indexes.
    Vector = 0x27,
    /// Documents.
    Record = 0x30,
    /// All versions and deletes, where a container keeps them.
    Log = 0x31,
    /// Databases by name.
    Database = 0x40,
    /// Containers by database and name.
    Container = 0x41,
    /// Containers whose data is still to be removed.
    Dropped = 0x42,
    /// The time nobody has been shown anything beyond.
    Horizon = 0x43,
    /// The layout's version.
    Format = 0x44,
    /// Small resources that are only kept.
    Kept = 0x45,
    /// What front-ends wrote down of changes.
    Note = 0x46,
    /// What nodes ask of each other.
    Errand = 0x47,
}

impl Family {
    /// All of them, for walks over everything.
    pub const ALL: [Self; 28] = [
        Self::Counter,
        Self::Purged,
        Self::PurgePosition,
        Self::IndexPosition,
        Self::Sweep,
        Self::LogForgotten,
        Self::Reborn,
        Self::Feed,
        Self::Expiry,
        Self::Date,
        Self::Index,
        Self::Composite,
        Self::Unique,
        Self::Secondary,
        Self::SecondaryUnique,
        Self::Receipt,
        Self::Text,
        Self::Vector,
        Self::Record,
        Self::Log,
        Self::Database,
        Self::Container,
        Self::Dropped,
        Self::Horizon,
        Self::Format,
        Self::Kept,
        Self::Note,
        Self::Errand,
    ];

    fn space(self) -> Space {
        match self {
            Self::Record | Self::Log | Self::Errand => Space::Large,
            _ => Space::Small,
        }
    }

    /// The family of a key of ours.
    pub fn of(key: &[u8]) -> Option<Self> {
        BY_BYTE[usize::from(*key.get(PREFIX_LEN - 1)?)]
    }
}

/// The families by their bytes: a store that compacts asks for that of each row.
static BY_BYTE: [Option<Family>; 256] = {
    let mut families = [None; 256];
    let mut place = 0;
    while place < Family::ALL.len() {
        families[Family::ALL[place] as usize] = Some(Family::ALL[place]);
        place += 1;
    }
    families
};

/// Bytes before a family's own fields.
pub const PREFIX_LEN: usize = 7;

/// The most slots a container may have.
pub const SLOTS_MAX: u32 = 4096;

/// A slot of a container: the owner of a sequence and of everything written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The container's number; 0 is the catalog.
    pub container: u32,
    /// The slot's number in the container.
    pub slot: u16,
}

/// Where the catalog lives.
pub const CATALOG: Shard = Shard { container: 0, slot: 0 };

/// Where errands lie. Not with the catalog, whose changes would wait for them.
pub const ERRANDS: Shard = Shard { container: 0, slot: 1 };

impl Shard {
    /// The store's slot: distinct for every container and slot.
    pub fn place(self) -> Slot {
        Slot(self.container.wrapping_mul(SLOTS_MAX).wrapping_add(u32::from(self.slot)))
    }

    /// The slot whose keys would follow this one's.
    pub fn next(self) -> Self {
        match self.slot.checked_add(1) {
            Some(slot) => Self { slot, ..self },
            None => Self { container: self.container.wrapping_add(1), slot: 0 },
        }
    }

    /// The start of a key of `family`.
    fn start(self, family: Family, capacity: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PREFIX_LEN + capacity);
        bytes.extend_from_slice(&self.container.to_be_bytes());
        bytes.extend_from_slice(&self.slot.to_be_bytes());
        bytes.push(family as u8);
        bytes
    }

    fn key(self, family: Family, bytes: Vec<u8>) -> Key {
        Key { space: family.space(), slot: self.place(), bytes }
    }

    /// The key of a family that has one row per slot.
    pub fn single(self, family: Family) -> Key {
        self.key(family, self.start(family, 0))
    }

    /// Every key of `family` that goes on with `fields`.
    pub fn range(self, family: Family, fields: &[u8]) -> KeyRange {
        let mut bytes = self.start(family, fields.len());
        bytes.extend_from_slice(fields);
        KeyRange::prefix(family.space(), self.place(), bytes)
    }

    /// Everything this slot has in `space`.
    pub fn everything(self, space: Space) -> KeyRange {
        let mut bytes = self.container.to_be_bytes().to_vec();
        bytes.extend_from_slice(&self.slot.to_be_bytes());
        KeyRange::prefix(space, self.place(), bytes)
    }

    /// A document's record.
    pub fn record(self, document: &DocumentKey) -> Key {
        self.record_of_tail(&document.0)
    }

    /// The record of the document with this hash and id.
    pub fn record_of(self, hash: &Epk, id: &DocumentId) -> Key {
        let mut bytes = self.start(Family::Record, DocumentKey::room(hash, id));
        DocumentKey::push(&mut bytes, hash, id);
        self.key(Family::Record, bytes)
    }

    /// The record of the document that a key ends with.
    pub fn record_of_tail(self, document: &[u8]) -> Key {
        let mut bytes = self.start(Family::Record, document.len());
        bytes.extend_from_slice(document);
        self.key(Family::Record, bytes)
    }

    /// A feed or log entry. With [`SEQ_IN_KEY`] the lsn is filled in at commit.
    pub fn sequenced(self, family: Family, lsn: u64, ordinal: u16) -> Key {
        let mut bytes = self.start(family, 10);
        bytes.extend_from_slice(&lsn.to_be_bytes());
        bytes.extend_from_slice(&ordinal.to_be_bytes());
        self.key(family, bytes)
    }

    /// An expiry entry.
    pub fn expiry(self, deadline: i64, document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Expiry, 8 + document.0.len());
        bytes.extend_from_slice(&ordered(deadline));
        bytes.extend_from_slice(&document.0);
        self.key(Family::Expiry, bytes)
    }

    /// A date entry.
    pub fn date(self, rule: u16, date: i64, document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Date, 10 + document.0.len());
        bytes.extend_from_slice(&rule.to_be_bytes());
        bytes.extend_from_slice(&ordered(date));
        bytes.extend_from_slice(&document.0);
        self.key(Family::Date, bytes)
    }

    /// An index entry: `path` and `value` as the key codec writes them.
    pub fn index(self, epoch: u32, path: &[u8], value: &[u8], document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Index, 4 + path.len() + value.len() + document.0.len());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(path);
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(&document.0);
        self.key(Family::Index, bytes)
    }

    /// A composite index entry.
    pub fn composite(self, epoch: u32, number: u16, values: &[u8], document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Composite, 6 + values.len() + document.0.len());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(values);
        bytes.extend_from_slice(&document.0);
        self.key(Family::Composite, bytes)
    }

    /// An entry in a full-text index.
    pub fn text(self, epoch: u32, number: u16, stem: &[u8], document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Text, 6 + stem.len() + document.0.len());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(stem);
        bytes.extend_from_slice(&document.0);
        self.key(Family::Text, bytes)
    }

    /// An entry in a vector index.
    pub fn vector(self, epoch: u32, number: u16, document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Vector, 6 + document.0.len());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&document.0);
        self.key(Family::Vector, bytes)
    }

    /// An entry in an index of a collection.
    pub fn secondary(self, number: u32, values: &[u8], document: &DocumentKey) -> Key {
        let mut bytes = self.start(Family::Secondary, 4 + values.len() + document.0.len());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(values);
        bytes.extend_from_slice(&document.0);
        self.key(Family::Secondary, bytes)
    }

    /// A row of a unique index of a collection.
    pub fn secondary_unique(self, number: u32, values: &[u8]) -> Key {
        let mut bytes = self.start(Family::SecondaryUnique, 4 + values.len());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(values);
        self.key(Family::SecondaryUnique, bytes)
    }

    /// What a session's last numbered write in this slot answered.
    pub fn receipt(self, session: &[u8]) -> Key {
        let mut bytes = self.start(Family::Receipt, session.len());
        bytes.extend_from_slice(session);
        self.key(Family::Receipt, bytes)
    }

    /// A unique key's row: one logical partition, one combination of values.
    pub fn unique(self, number: u8, hash: &Epk, values: &[u8]) -> Key {
        let mut bytes = self.start(Family::Unique, 1 + hash.0.len() + 2 + values.len());
        bytes.push(number);
        keycode::push_bytes(&mut bytes, &hash.0);
        bytes.extend_from_slice(values);
        self.key(Family::Unique, bytes)
    }
}

/// Where the lsn stands in the key of a feed or log entry.
pub const SEQ_IN_KEY: u32 = PREFIX_LEN as u32;

/// A database's row.
pub fn database(name: &str) -> Key {
    let mut bytes = CATALOG.start(Family::Database, name.len());
    bytes.extend_from_slice(name.as_bytes());
    CATALOG.key(Family::Database, bytes)
}

/// A container's row.
pub fn container(database: u32, name: &str) -> Key {
    let mut bytes = CATALOG.start(Family::Container, 4 + name.len());
    bytes.extend_from_slice(&database.to_be_bytes());
    bytes.extend_from_slice(name.as_bytes());
    CATALOG.key(Family::Container, bytes)
}

/// The row that remembers a dropped container until its data is gone.
pub fn dropped(container: u32) -> Key {
    let mut bytes = CATALOG.start(Family::Dropped, 4);
    bytes.extend_from_slice(&container.to_be_bytes());
    CATALOG.key(Family::Dropped, bytes)
}

/// A kept resource's row.
pub fn kept(owner: u32, kind: u8, name: &str) -> Key {
    let mut bytes = CATALOG.start(Family::Kept, 5 + name.len());
    bytes.extend_from_slice(&owner.to_be_bytes());
    bytes.push(kind);
    bytes.extend_from_slice(name.as_bytes());
    CATALOG.key(Family::Kept, bytes)
}

/// What an errand's key begins with, by what the row is: the counter of nodes, something asked, an answer.
const ERRAND_NODES: u8 = 0;
const ERRAND_ASKED: u8 = 1;
const ERRAND_ANSWERED: u8 = 2;

/// The counter that numbers nodes.
pub fn errand_nodes() -> Key {
    let bytes = ERRANDS.range(Family::Errand, &[ERRAND_NODES]).start;
    ERRANDS.key(Family::Errand, bytes)
}

/// What is asked of a node; of any, if it is not said of which.
pub fn errands(whom: Option<u16>) -> KeyRange {
    let whom = whom.map(u16::to_be_bytes);
    let fields: Vec<u8> = [ERRAND_ASKED].into_iter().chain(whom.into_iter().flatten()).collect();
    ERRANDS.range(Family::Errand, &fields)
}

/// What is asked of a node under an id.
pub fn errand(whom: u16, id: &[u8; 16]) -> Key {
    let mut bytes = errands(Some(whom)).start;
    bytes.extend_from_slice(id);
    ERRANDS.key(Family::Errand, bytes)
}

/// The answer to what was asked under an id.
pub fn errand_answer(id: &[u8; 16]) -> Key {
    let mut bytes = ERRANDS.range(Family::Errand, &[ERRAND_ANSWERED]).start;
    bytes.extend_from_slice(id);
    ERRANDS.key(Family::Errand, bytes)
}

/// The answers to what was asked before a second.
pub fn errand_answers_before(second: u64) -> KeyRange {
    let all = ERRANDS.range(Family::Errand, &[ERRAND_ANSWERED]);
    let end = [&all.start[..], &second.to_be_bytes()].concat();
    KeyRange { end: Some(end), ..all }
}

/// A signed number as bytes that sort like it.
pub fn ordered(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}

/// The number behind [`ordered`] bytes.
pub fn from_ordered(bytes: &[u8]) -> Option<i64> {
    Some((u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?) ^ (1 << 63)) as i64)
}

/// A document's id as it stands in keys: a tag, then the id's bytes.
///
/// Text ids are the same whichever API wrote them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId(Vec<u8>);

/// The tags are in the order of the values behind them, so that documents of a collection stand in the order of `_id`.
const BELOW_TEXT_ID: u8 = b'm';
const TEXT_ID: u8 = b's';
const LONG_TEXT_ID: u8 = b't';
const ABOVE_TEXT_ID: u8 = b'x';

/// A longer text stands by its start and its digest. As long as an id in Cosmos may be.
const TEXT_ID_BYTES_MAX: usize = 1023;
const LONG_TEXT_KEPT: usize = 512;

impl DocumentId {
    /// The id of a document whose `_id` is `value`: numbers that are equal have equal ids, whatever their types.
    pub fn value(value: RawBsonRef<'_>) -> Self {
        let text = match value {
            RawBsonRef::String(text) | RawBsonRef::Symbol(text) => text,
            _ => {
                let below = order::type_rank(Order::Mongo, value)
                    < order::type_rank(Order::Mongo, RawBsonRef::String(""));
                let mut bytes = vec![if below { BELOW_TEXT_ID } else { ABOVE_TEXT_ID }];
                keycode::push_value(&mut bytes, value, Order::Mongo);
                if keycode::is_cut(&bytes[1..]) {
                    bytes.extend_from_slice(&digest::digest(value));
                }
                return Self(bytes);
            }
        };
        if text.len() <= TEXT_ID_BYTES_MAX {
            return Self::text(text);
        }
        let mut bytes = vec![LONG_TEXT_ID];
        bytes.extend_from_slice(&text.as_bytes()[..LONG_TEXT_KEPT]);
        bytes.extend_from_slice(&digest::digest(RawBsonRef::String(text)));
        Self(bytes)
    }

    /// Whether this id stands where its value belongs in the order of values; very long ones do not.
    pub fn is_in_order(&self) -> bool {
        self.0.first() != Some(&LONG_TEXT_ID)
    }

    /// A text that names the document where ids are texts: its own, or digits that tell all others apart.
    pub fn to_text(&self) -> String {
        match self.as_text() {
            Some(text) => text.to_owned(),
            None => {
                let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("_id:{digits}")
            }
        }
    }

    /// The bytes in keys.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id that begins at a place of a key.
    pub(crate) fn from_key(key: &[u8], at: usize) -> Result<Self> {
        match key.get(at..) {
            Some(id) if !id.is_empty() => Ok(Self(id.to_vec())),
            _ => Err(Error::Corrupt("a key has no document id")),
        }
    }

    /// A text id.
    pub fn text(id: &str) -> Self {
        let mut bytes = Vec::with_capacity(1 + id.len());
        bytes.push(TEXT_ID);
        bytes.extend_from_slice(id.as_bytes());
        Self(bytes)
    }

    /// The text, if it is a text id.
    pub fn as_text(&self) -> Option<&str> {
        match self.0.split_first() {
            Some((&TEXT_ID, text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }
}

/// A document's place in a slot: its hash, then its id. The tail of most keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentKey(Vec<u8>);

impl DocumentKey {
    /// From its parts.
    pub fn new(hash: &Epk, id: &DocumentId) -> Self {
        let mut bytes = Vec::with_capacity(Self::room(hash, id));
        Self::push(&mut bytes, hash, id);
        Self(bytes)
    }

    /// Appends its bytes.
    fn push(bytes: &mut Vec<u8>, hash: &Epk, id: &DocumentId) {
        keycode::push_bytes(bytes, &hash.0);
        bytes.extend_from_slice(&id.0);
    }

    /// What they take, unless a hash has zeros in it.
    fn room(hash: &Epk, id: &DocumentId) -> usize {
        hash.0.len() + 2 + id.0.len()
    }

    /// How many bytes stand before the id, with this hash.
    pub fn before_id(hash: &Epk) -> usize {
        let mut bytes = Vec::with_capacity(hash.0.len() + 2);
        keycode::push_bytes(&mut bytes, &hash.0);
        bytes.len()
    }

    /// From the tail of a key.
    pub fn from_tail(bytes: &[u8]) -> Result<Self> {
        let key = Self(bytes.to_vec());
        key.parts().map(|_| key)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash and the id.
    pub fn parts(&self) -> Result<(Epk, DocumentId)> {
        let (hash, used) = keycode::take_bytes(&self.0)?;
        match self.0.get(used..) {
            Some(id) if !id.is_empty() => Ok((Epk(hash), DocumentId(id.to_vec()))),
            _ => Err(Error::Corrupt("a key has no document id")),
        }
    }
}

/// The lsn and ordinal of a feed or log key.
pub fn sequence_of(key: &[u8]) -> Result<(u64, u16)> {
    let fields = key.get(PREFIX_LEN..PREFIX_LEN + 10).ok_or(Error::Corrupt("a feed key is too short"))?;
    let (lsn, ordinal) = fields.split_at(8);
    Ok((be_u64(lsn), u16::from_be_bytes([ordinal[0], ordinal[1]])))
}

/// Eight bytes as a number; the caller has checked the length.
pub fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |n, byte| (n << 8) | u64::from(*byte))
}
