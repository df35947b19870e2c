//! Effective partition keys: the hash of a partition key, as SDKs and the service compute it.
//!
//! V2 is 16 bytes of hash; its two top bits are zero, so every key is below `40`. A hierarchical key is the
//! V2 keys of its components one behind the other. V1 is an encoded 32-bit hash followed by the encoded
//! components themselves. The empty key is the lowest, and the exclusive end of all keys is `FF`.

use super::murmur::{murmur3_32, murmur3_128};
use super::{Component, KeyDefinition, KeyKind, PartitionKey, PartitionKeyError};

/// The place of a partition key among all others; compares by bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Epk(pub Vec<u8>);

impl Epk {
    /// Upper-case hex, as in the service's ranges and headers.
    pub fn to_hex(&self) -> String {
        const DIGITS: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
        let digits = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
        digits.filter_map(|digit| DIGITS.get(usize::from(digit))).collect()
    }

    /// Reads hex of either case.
    pub fn from_hex(text: &str) -> Result<Epk, PartitionKeyError> {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes: Option<Vec<u8>> =
            pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect();
        match bytes {
            Some(bytes) if rest.is_empty() => Ok(Epk(bytes)),
            _ => Err(PartitionKeyError::InvalidEpk { text: text.into() }),
        }
    }
}

impl KeyDefinition {
    /// The effective key of a partition key, or of a prefix of one.
    pub fn effective_key(&self, key: &PartitionKey) -> Epk {
        if self.paths.is_empty() || key.0.is_empty() {
            return Epk::default();
        }
        Epk(match (self.kind, self.version) {
            (KeyKind::MultiHash, _) => {
                key.0.iter().flat_map(|component| hash_v2(std::slice::from_ref(component))).collect()
            }
            (KeyKind::Hash, 1) => hash_v1(&key.0),
            (KeyKind::Hash, _) => hash_v2(&key.0).to_vec(),
        })
    }

    /// Where documents with this key are kept: the effective key, made exact.
    ///
    /// V1 looks at the first 100 characters of a string, so longer ones may share an effective key. Theirs is followed by
    /// a hash of the whole: they are neighbours, within every range that clients compute, and never mixed up.
    pub fn place(&self, key: &PartitionKey) -> Epk {
        let mut place = self.effective_key(key);
        let is_cut =
            |component: &Component| matches!(component, Component::String(text) if text.len() > BYTES_MAX_V1);
        if self.version == 1 && self.kind == KeyKind::Hash && key.0.iter().any(is_cut) {
            place.0.extend_from_slice(&hash_v2(&key.0));
        }
        place
    }

    /// All places that begin with this key: from the first inclusive to the second exclusive, or
    /// without an end.
    pub fn prefix_range(&self, key: &PartitionKey) -> (Epk, Option<Epk>) {
        let from = self.place(key);
        if from.0.is_empty() {
            return (from, None);
        }
        // No byte that follows a complete hash is FF: hashes begin below 40, V1 components with a type.
        let mut to = from.0.clone();
        to.push(0xFF);
        (from, Some(Epk(to)))
    }
}

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NUMBER: u8 = 0x05;
const STRING: u8 = 0x08;

const STRING_END_V1: u8 = 0x00;
const STRING_END_V2: u8 = 0xFF;

/// UTF-16 units of a string that V1 looks at.
const UNITS_MAX_V1: usize = 100;
/// Bytes of a string that a V1 key holds without leaving out its end marker.
const BYTES_MAX_V1: usize = 100;

fn hash_v2(components: &[Component]) -> [u8; 16] {
    // Room for a UUID or a few short texts.
    let mut input = Vec::with_capacity(64);
    components.iter().for_each(|component| push_hash_input(&mut input, component, STRING_END_V2));
    let (low, high) = murmur3_128(&input);
    // The halves little-endian one behind the other, then all bytes reversed: high and low, big-endian.
    let hash = u128::from(high) << 64 | u128::from(low);
    // The two top bits are left to the service for keys outside of all hashes.
    (hash & (u128::MAX >> 2)).to_be_bytes()
}

fn hash_v1(components: &[Component]) -> Vec<u8> {
    let components: Vec<_> = components.iter().map(truncate_v1).collect();
    let mut input = Vec::new();
    components.iter().for_each(|component| push_hash_input(&mut input, component, STRING_END_V1));
    let mut out = hash_prefix_v1(murmur3_32(&input));
    components.iter().for_each(|component| push_component_v1(&mut out, component));
    out
}

/// The beginning of every V1 key with this hash.
pub(super) fn hash_prefix_v1(hash: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    push_component_v1(&mut out, &Component::Number(f64::from(hash)));
    out
}

fn push_type(out: &mut Vec<u8>, component: &Component) {
    out.push(match component {
        Component::Undefined => UNDEFINED,
        Component::Null => NULL,
        Component::Bool(false) => FALSE,
        Component::Bool(true) => TRUE,
        Component::Number(_) => NUMBER,
        Component::String(_) => STRING,
    });
}

fn push_hash_input(out: &mut Vec<u8>, component: &Component, string_end: u8) {
    push_type(out, component);
    match component {
        Component::Number(number) => {
            out.extend_from_slice(&Component::canonical_number(*number).to_le_bytes());
        }
        Component::String(text) => {
            out.extend_from_slice(text.as_bytes());
            out.push(string_end);
        }
        Component::Undefined | Component::Null | Component::Bool(_) => {}
    }
}

/// A string cut where V1 stops looking; half a surrogate pair becomes the replacement character.
fn truncate_v1(component: &Component) -> Component {
    match component {
        Component::String(text) => {
            let units = text.encode_utf16().take(UNITS_MAX_V1);
            let cut = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
            Component::String(cut.collect())
        }
        other => other.clone(),
    }
}

fn push_component_v1(out: &mut Vec<u8>, component: &Component) {
    push_type(out, component);
    match component {
        Component::Number(number) => push_number_v1(out, Component::canonical_number(*number)),
        Component::String(text) => {
            let kept = text.bytes().take(BYTES_MAX_V1 + 1);
            out.extend(kept.map(|byte| byte.wrapping_add(1)));
            if text.len() <= BYTES_MAX_V1 {
                out.push(STRING_END_V1);
            }
        }
        Component::Undefined | Component::Null | Component::Bool(_) => {}
    }
}

/// Bits that order like the double: the top byte, then groups of seven whose low bit says "more follows".
fn push_number_v1(out: &mut Vec<u8>, number: f64) {
    let bits = number.to_bits();
    let mut rest = if bits >> 63 == 1 { bits.wrapping_neg() } else { bits ^ (1 << 63) };
    out.push((rest >> 56) as u8);
    rest <<= 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            out.push(group & 0xFE);
            return;
        }
        out.push(group | 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;

    fn definition(kind: KeyKind, version: u8) -> KeyDefinition {
        let path = |name: &str| Path::parse(name).unwrap();
        KeyDefinition { paths: vec![path("/a"), path("/b"), path("/c")], kind, version }
    }

    #[track_caller]
    fn check(kind: KeyKind, version: u8, key: &str, hex: &str) {
        let key = PartitionKey::parse_header(key).unwrap();
        assert_eq!(definition(kind, version).effective_key(&key).to_hex(), hex);
    }

    #[track_caller]
    fn check_both(key: &str, v2: &str, v1: &str) {
        check(KeyKind::Hash, 2, key, v2);
        check(KeyKind::MultiHash, 2, key, v2);
        check(KeyKind::Hash, 1, key, v1);
    }

    #[test]
    fn long_strings_of_v1_have_places_of_their_own() {
        let of = |text: String| {
            let key = PartitionKey(vec![Component::String(text)]);
            let v1 = definition(KeyKind::Hash, 1);
            (v1.effective_key(&key), v1.place(&key), v1.prefix_range(&key))
        };
        let (short, short_place, _) = of("x".repeat(100));
        assert_eq!(short, short_place);
        let (one, two) = (of("x".repeat(200)), of("x".repeat(201)));
        assert_eq!(one.0, two.0);
        assert_ne!(one.1, two.1);
        for (epk, place, (from, to)) in [&one, &two] {
            // Within what a client takes for the range of the effective key, and alone in its own.
            let mut next = epk.clone();
            *next.0.last_mut().unwrap() += 1;
            assert!(epk < place && *place < next);
            assert!(from <= place && Some(place) < to.as_ref());
        }
        assert!(two.1 < one.2.0 || Some(&two.1) >= one.2.1.as_ref());
    }

    #[test]
    fn keys_agree_with_the_sdks() {
        check_both(r#"[""]"#, "32E9366E637A71B4E710384B2F4970A0", "05C1CF33970FF80800");
        check_both(
            r#"["partitionKey"]"#,
            "013AEFCF77FA271571CF665A58C933F1",
            "05C1E1B3D9CD2608716273756A756A706F4C667A00",
        );
        check_both("[null]", "378867E4430E67857ACE5C908374FE16", "05C1ED45D7475601");
        check_both("[{}]", "11622DAA78F835834610ABE56EFF5CB5", "05C1D529E345DC00");
        check_both("[true]", "0E711127C5B5A8E4726AC6DD306A3E59", "05C1D7C5A903D803");
        check_both("[false]", "2FE1BE91E90A3439635E0E9E37361EF2", "05C1DB857D857C02");
        check_both("[-128]", "01DAEDABF913540367FE219B2AD06148", "05C1D73349F54C053FA0");
        check_both("[127]", "0C507ACAC853ECA7977BF4CEFB562A25", "05C1DD539DDFCC05C05FE0");
        check_both("[-2147483648]", "0B1660D5233C3171725B30D4A5F4CC1F", "05C1DFBF252BCC053E20");
        check_both("[2147483647]", "2D9349D64712AEB5EB1406E2F0BE2725", "05C1E1F503DFB205C1DFFFFFFFFC");
        check_both("[-9223372036854775808]", "23D5C6395512BDFEAFADAD15328AD2BB", "05C1DB35F33D1C053C20");
        check_both("[9223372036854775807]", "2EDB959178DFCCA18983F89384D1629B", "05C1B799AB2DD005C3E0");
        check_both("[5e-324]", "0E6CBA63A280927DE485DEF865800139", "05C1E5C91F4D3005800101010101010102");
        check_both(
            "[1.7976931348623157e308]",
            "31424D996457102634591FF245DBCC4D",
            "05C1CBE367C53005FFEFFFFFFFFFFFFFFE",
        );
    }

    #[test]
    fn more_keys_of_the_present_version_agree() {
        check(KeyKind::Hash, 2, "[5.0]", "19C08621B135968252FB34B4CF66F811");
        check(KeyKind::Hash, 2, r#"["redmond"]"#, "22E342F38A486A088463DFF7838A5963");
        check(KeyKind::Hash, 2, r#"["é"]"#, "007199F104E04116EE25AF912CA4889B");
        check(KeyKind::Hash, 2, r#"[5,"redmond",true,null]"#, "3032DECBE2AB1768D8E0AEDEA35881DF");
        let long = format!(r#"["{}"]"#, "a".repeat(1024));
        check(KeyKind::Hash, 2, &long, "332BDF5512AE49615F32C7D98C2DB86C");
        check(KeyKind::MultiHash, 2, r#"["x"]"#, "11E3F358618BE9AA5BAFF4C7C74F0716");
        check(
            KeyKind::MultiHash,
            2,
            r#"["partitionKey",null,false]"#,
            "013AEFCF77FA271571CF665A58C933F1378867E4430E67857ACE5C908374FE162FE1BE91E90A3439635E0E9E37361EF2",
        );
    }

    #[test]
    fn the_old_version_looks_at_the_first_hundred_units() {
        let hex = format!("05C1EB5921F70608{}00", "62".repeat(100));
        for length in [100, 101, 1024] {
            check(KeyKind::Hash, 1, &format!(r#"["{}"]"#, "a".repeat(length)), &hex);
        }
        let text = "café 東京 🚀";
        check(
            KeyKind::Hash,
            1,
            &format!(r#"["{text}"]"#),
            "05C1DF0501C73008646267C4AA21E79EB2E5BBAD21F1A09B8100",
        );
        // 99 letters and half of a pair; of the 102 bytes a key holds 101, and no end.
        let cut = PartitionKey::parse_header(&format!(r#"["{}🚀"]"#, "a".repeat(99))).unwrap();
        let bytes = definition(KeyKind::Hash, 1).effective_key(&cut).0;
        assert_eq!(bytes.last_chunk(), Some(&[b'a' + 1, 0xF0, 0xC0]));
    }

    #[test]
    fn the_empty_key_is_the_lowest() {
        check(KeyKind::Hash, 2, "[]", "");
        let unpartitioned = KeyDefinition::unpartitioned();
        let key = PartitionKey(vec![Component::Null]);
        assert_eq!(unpartitioned.effective_key(&key), Epk::default());
        assert_eq!(unpartitioned.prefix_range(&key), (Epk::default(), None));
    }

    #[test]
    fn a_prefix_covers_the_keys_that_begin_with_it() {
        let definition = definition(KeyKind::MultiHash, 2);
        let key = |json: &str| PartitionKey::parse_header(json).unwrap();
        let (from, to) = definition.prefix_range(&key(r#"["x"]"#));
        assert_eq!(from.to_hex(), "11E3F358618BE9AA5BAFF4C7C74F0716");
        let to = to.unwrap();
        assert_eq!(to.to_hex(), "11E3F358618BE9AA5BAFF4C7C74F0716FF");
        let full = definition.effective_key(&key(r#"["x","y",1]"#));
        assert!(from <= full && full < to);
        let other = definition.effective_key(&key(r#"["y","y",1]"#));
        assert!(other < from || other >= to);
    }

    #[test]
    fn hex_is_read_and_refused() {
        assert_eq!(Epk::from_hex("05c1FF"), Ok(Epk(vec![0x05, 0xC1, 0xFF])));
        assert_eq!(Epk::from_hex(""), Ok(Epk::default()));
        assert_eq!(Epk(vec![0x0A, 0xF0]).to_hex(), "0AF0");
        for refused in ["0", "0G", "é", "+1"] {
            assert!(Epk::from_hex(refused).is_err(), "{refused}");
        }
    }
}
