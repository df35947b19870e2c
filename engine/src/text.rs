//! Words in texts: the entries of full-text indexes.
//!
//! A document has an entry for every different word of its text, and one under the empty word whether it has a text or
//! not. So the entries of a word lead to the documents that have it, and those of the empty word tell how many documents
//! and words there are.
//!
//! ```text
//!   key     epoch  number  stem  document
//!   value   life   how many words the text has   the places of this one, each as the distance from the one before
//! ```
//!
//! Numbers are written in sevens of bits, the lowest first; all but the last byte have their highest bit set. A document
//! without a text has nothing after the life. Words are counted from 0, without those that are left out.
//!
//! Holds: the life comes first, as in every index entry, so whatever asks an entry whether it is alive need not know
//! which index it is of.

use bson::RawBsonRef;
use mayfly_value::text::{Language, stem_key, words};

use crate::{
    index::IndexEntry,
    keys::{DocumentKey, Shard},
};

/// The entries of one document, whose text this is, in one full-text index.
pub(crate) fn push_entries(
    entries: &mut Vec<IndexEntry>,
    shard: Shard,
    (epoch, number): (u32, u16),
    document: &DocumentKey,
    text: Option<RawBsonRef<'_>>,
    language: Language,
) {
    let mut push = |stem: &str, tail| {
        let key = shard.text(epoch, number, &stem_key(stem), document);
        entries.push(IndexEntry { key, tail });
    };
    let Some(RawBsonRef::String(text)) = text else {
        return push("", Vec::new());
    };
    let words = words(text, language);
    let mut length = Vec::new();
    push_number(&mut length, words.len() as u32);
    push("", length.clone());
    let mut places: Vec<(&str, u32)> =
        words.iter().enumerate().map(|(place, word)| (word.stem.as_str(), place as u32)).collect();
    places.sort_unstable();
    for of_word in places.chunk_by(|(a, _), (b, _)| a == b) {
        let mut tail = length.clone();
        let mut before = 0;
        for (_, place) in of_word {
            push_number(&mut tail, place - before);
            before = *place;
        }
        push(of_word[0].0, tail);
    }
}

/// What an entry says after the life.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tail<'a> {
    /// How many words the text has.
    pub words: u32,
    places: &'a [u8],
}

impl<'a> Tail<'a> {
    /// None if there is no text.
    pub fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let words = take_number(&mut bytes)?;
        Some(Self { words, places: bytes })
    }

    /// How often the word is in the text.
    pub fn times(&self) -> u32 {
        self.places.iter().filter(|byte| **byte < MORE).count() as u32
    }

    /// Where it is, ascending.
    pub fn places(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (mut rest, mut place) = (self.places, 0_u32);
        std::iter::from_fn(move || {
            place = place.saturating_add(take_number(&mut rest)?);
            Some(place)
        })
    }
}

const MORE: u8 = 0x80;

fn push_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= u32::from(MORE) {
        out.push(number as u8 | MORE);
        number >>= 7;
    }
    out.push(number as u8);
}

/// None at the end, and for bytes that are no number.
fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & !MORE).checked_shl(shift)?;
        if *byte < MORE {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bson::{RawDocument, rawdoc};
    use mayfly_value::{partition::Epk, path::Path};

    use super::*;
    use crate::keys::DocumentId;

    #[test]
    fn entries_say_where_each_word_is() {
        let shard = Shard { container: 1, slot: 0 };
        let document = DocumentKey::new(&Epk(vec![7]), &DocumentId::text("a"));
        let entries_of = |body: &RawDocument| {
            let mut entries = Vec::new();
            let text = Path::parse("/t").unwrap().get(body);
            push_entries(&mut entries, shard, (1, 0), &document, text, Language::English);
            entries
        };
        let mut text = "red bicycles and a red car ".to_owned();
        text.push_str(&"filler ".repeat(300));
        text.push_str("cars");
        let entries = entries_of(&rawdoc! { "t": text });
        let of = |stem: &str| {
            let key = shard.text(1, 0, &stem_key(stem), &document);
            let entry = entries.iter().find(|entry| entry.key == key).unwrap();
            let tail = Tail::read(&entry.tail).unwrap();
            (tail.words, tail.times(), tail.places().collect::<Vec<_>>())
        };
        assert_eq!(entries.len(), 5);
        assert_eq!(of("red"), (305, 2, vec![0, 2]));
        assert_eq!(of("car"), (305, 2, vec![3, 304]));
        assert_eq!(of("bicycl"), (305, 1, vec![1]));
        assert_eq!((of("").0, of("").1), (305, 0));
        let without = entries_of(&rawdoc! { "t": 1 });
        assert_eq!((without.len(), Tail::read(&without[0].tail)), (1, None));
    }

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u32::MAX] {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            assert_eq!(take_number(&mut &bytes[..]), Some(number));
        }
        assert_eq!(take_number(&mut &[0xFF; 9][..]), None);
        assert_eq!(take_number(&mut &[0x80][..]), None);
    }
}
