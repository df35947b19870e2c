//! Bodies in binary JSON and the documents they are.

use bson::{RawDocumentBuf, rawdoc};
use mayfly_value::json;
use proptest::prelude::*;
use serde_json::Value;

use super::test_encoder::encode;
use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn parse(body: &[u8]) -> Result<RawDocumentBuf, BinaryJsonError> {
    parse_document(body, JsonLimits::default())
}

#[track_caller]
fn check(hex: &str, document: RawDocumentBuf) {
    assert_eq!(parse(&bytes(hex)), Ok(document));
}

/// `hex` is the value of the only property, `v`, of a document.
#[track_caller]
fn check_value(hex: &str, expected: &str) {
    let expected = json::parse_document(format!("{{\"v\":{expected}}}").as_bytes(), JsonLimits::default());
    assert_eq!(parse(&bytes(&format!("80 E9 81 76 {hex}"))), Ok(expected.unwrap()), "{hex}");
}

#[track_caller]
fn check_malformed(hex: &str) {
    let refused = parse(&bytes(hex));
    assert!(
        matches!(refused, Err(BinaryJsonError::Malformed { .. } | BinaryJsonError::UnexpectedMarker { .. })),
        "{hex}: {refused:?}"
    );
}

#[test]
fn the_vector_of_the_protocol() {
    assert!(is_binary(&[0x80]));
    assert!(!is_binary(b"{}"));
    assert!(!is_binary(b""));
    check("80 ED 08 02 82 69 64 81 61 81 6E 01", rawdoc! { "id": "a", "n": 1 });
}

#[test]
fn numbers_take_the_type_their_text_would_have() {
    for (hex, value) in [
        ("00", "0"),
        ("1F", "31"),
        ("C8 FF", "255"),
        ("D7 FF", "255"),
        ("D8 FF", "-1"),
        ("C9 00 80", "-32768"),
        ("D9 FF 7F", "32767"),
        ("CA 00 00 00 80", "-2147483648"),
        ("DA FF FF FF 7F", "2147483647"),
        ("DC FF FF FF FF", "4294967295"),
        ("CB 05 00 00 00 00 00 00 00", "5"),
        ("DB FF FF FF FF FF FF FF 7F", "9223372036854775807"),
        ("C7 FF FF FF FF FF FF FF 7F", "9223372036854775807"),
        ("C7 FF FF FF FF FF FF FF FF", "18446744073709551615"),
        ("CC 00 00 00 00 00 00 F0 3F", "1.0"),
        ("CC 00 00 00 00 00 00 00 80", "-0.0"),
        ("CE 00 00 00 00 00 00 E0 3F", "0.5"),
        ("CD 00 00 C0 3F", "1.5"),
        ("CF 00 3C", "1.0"),
        ("CF 01 80", "-5.960464477539063e-8"),
        ("CF FF 7B", "65504.0"),
    ] {
        check_value(hex, value);
    }
    for hex in ["CC 00 00 00 00 00 00 F0 7F", "CC 01 00 00 00 00 00 F0 7F", "CD 00 00 80 FF", "CF 00 7C"] {
        check_malformed(&format!("80 E9 81 76 {hex}"));
    }
}

#[test]
fn strings_have_many_spellings() {
    for (hex, value) in [
        ("80", r#""""#),
        ("82 C3 A9", r#""é""#),
        ("C0 01 61", r#""a""#),
        ("C1 01 00 61", r#""a""#),
        ("C2 01 00 00 00 61", r#""a""#),
        ("20", r#""$s""#),
        ("3F", r#""_id""#),
        ("78 03 A1 0B", r#""1ab""#),
        ("79 03 A1 0B", r#""1AB""#),
        ("7B 02 41 10", r#""AB""#),
        ("7C 02 61 20 00", r#""ab""#),
        ("7D 02 20 40 00", r#"" !""#),
        ("7E 02 E1 31", r#""ac""#),
        ("7F 02 00 E1 31", r#""ac""#),
        ("71 01 00 01 02 03", r#""AQID""#),
        ("71 01 02 FF", r#""/w==""#),
        ("71 01 FD FF", r#""/w""#),
        ("72 01 00 01 FF FF", r#""//8=""#),
        ("73 01 01 FF FF", r#""__8=""#),
        ("74 01 00 FE FF FF", r#""__8""#),
        ("D0", "null"),
        ("D1", "false"),
        ("D2", "true"),
        ("DD 02 01 02", r#""AQI=""#),
        ("DE 01 00 FF", r#""/w==""#),
        ("DF 00 00 00 00", r#""""#),
    ] {
        check_value(hex, value);
    }
    // 2024-05-06T07:08:09Z, each character a place in " 0123456789:-.TZ", the first in the low bits.
    check_value("7A 14 13 53 1C C6 71 1E B8 91 1B FA", r#""2024-05-06T07:08:09Z""#);
}

#[test]
fn guids_come_in_two_byte_orders() {
    let nibbles_swapped = "21 43 65 87 09 BA DC FE 00 11 22 33 44 55 66 77";
    check_value(&format!("75 {nibbles_swapped}"), r#""12345678-90ab-cdef-0011-223344556677""#);
    check_value(&format!("76 {nibbles_swapped}"), r#""12345678-90AB-CDEF-0011-223344556677""#);
    check_value(&format!("77 {nibbles_swapped}"), r#""\"12345678-90ab-cdef-0011-223344556677\"""#);
    check_value(
        "D3 78 56 34 12 AB 90 EF CD 00 11 22 33 44 55 66 77",
        r#""12345678-90ab-cdef-0011-223344556677""#,
    );
}

#[test]
fn containers_say_their_end_in_three_ways() {
    for (hex, value) in [
        ("E0", "[]"),
        ("E1 05", "[5]"),
        ("E2 02 05 06", "[5,6]"),
        ("E3 02 00 05 06", "[5,6]"),
        ("E4 02 00 00 00 05 06", "[5,6]"),
        ("E5 02 02 05 06", "[5,6]"),
        ("E6 02 00 02 00 05 06", "[5,6]"),
        ("E7 02 00 00 00 02 00 00 00 05 06", "[5,6]"),
        ("E8", "{}"),
        ("E9 81 61 05", r#"{"a":5}"#),
        ("EA 03 81 61 05", r#"{"a":5}"#),
        ("EB 04 00 81 61 E1 E0", r#"{"a":[[]]}"#),
        ("EC 03 00 00 00 81 61 05", r#"{"a":5}"#),
        ("EE 03 00 01 00 81 61 05", r#"{"a":5}"#),
        ("EF 00 00 00 00 00 00 00 00", "{}"),
        ("F0 C8 03 01 02 03", "[1,2,3]"),
        ("F1 C9 01 00 01 80", "[-32767]"),
        ("F0 CD 00", "[]"),
        ("F2 F0 D7 02 02 01 02 03 04", "[[1,2],[3,4]]"),
        ("F3 F1 D8 01 00 02 00 FF FE", "[[-1],[-2]]"),
    ] {
        check_value(hex, value);
    }
}

#[test]
fn references_lead_to_earlier_strings() {
    // Offsets count from the preamble: 3 is the first name, 5 its value.
    check("80 EA 09 81 61 81 62 C3 05 C4 03 00", rawdoc! { "a": "b", "b": "a" });
    check_value("E2 05 82 68 69 C3 06", r#"["hi","hi"]"#);
    for reference in ["C3 00", "C3 04", "C3 05", "C3 FF", "C6 FF FF FF FF"] {
        check_malformed(&format!("80 E9 81 76 {reference}"));
    }
    // To another reference, to no string, and to a string that would reach past the reference.
    check_malformed("80 E9 81 76 E2 06 81 61 C3 06 C3 08");
    check_malformed("80 E9 81 76 E2 03 05 C3 06");
    check_malformed("80 E9 81 76 E2 05 82 7B 39 C3 07");
}

#[test]
fn of_duplicate_names_the_last_value_wins_at_the_first_place() {
    check("80 EA 09 81 61 01 81 62 02 81 61 03", rawdoc! { "a": 3, "b": 2 });
    check("80 EA 0C 81 61 01 81 61 E9 81 78 01 81 62 02", rawdoc! { "a": { "x": 1 }, "b": 2 });
}

#[test]
fn what_text_may_not_hold_is_refused() {
    assert_eq!(parse(&bytes("80 01")), Err(JsonError::NotAnObject.into()));
    assert_eq!(parse(&bytes("80 E0")), Err(JsonError::NotAnObject.into()));
    let nul = JsonError::NulInKey { name: "a\0".into() };
    assert_eq!(parse(&bytes("80 E9 82 61 00 01")), Err(nul.into()));
    assert_eq!(parse(&bytes("80 E9 81 FF 01")), Err(JsonError::NotUtf8 { position: 3 }.into()));
    assert_eq!(parse(&bytes("80 E9 40 01")), Err(BinaryJsonError::Dictionary { position: 2 }));
    assert_eq!(parse(&bytes("80 E9 81 61 67 00")), Err(BinaryJsonError::Dictionary { position: 4 }));
}

#[test]
fn what_does_not_follow_the_format_is_refused() {
    for hex in [
        "",
        "7B 7D",
        "80",
        "80 E9",
        "80 E9 81",
        "80 E9 81 61",
        "80 E8 00",
        "80 E9 01 01",
        "80 E9 81 61 FF",
        "80 E9 81 61 68",
        "80 E9 81 61 D4",
        "80 EA 02 81 61 05",
        "80 EA 04 81 61 05",
        "80 ED 03 02 81 61 05",
        "80 E9 81 61 E2 01 82 61 62",
        "80 E9 81 61 F0 80 01 00",
        "80 E9 81 61 F2 F1 C8 01 01 01",
        "80 E9 81 61 F0 C8 02 01",
        "80 E9 81 61 71 01 03 00",
        "80 E9 81 61 71 00 02",
        "80 E9 81 61 7B 01 7F 01",
        "80 E9 81 61 C2 FF FF FF FF",
    ] {
        check_malformed(hex);
    }
}

#[test]
fn limits_are_inclusive() {
    let nested = |depth: usize| [vec![0x80, 0xE9, 0x81, b'a'], vec![0xE1; depth - 1], vec![0x01]].concat();
    assert!(parse(&nested(128)).is_ok());
    assert_eq!(parse(&nested(129)), Err(JsonError::TooDeep { depth_max: 128 }.into()));
    let unlimited = JsonLimits { bytes_max: usize::MAX, depth_max: usize::MAX };
    let refused = parse_document(&nested(1_000_000), unlimited);
    assert!(matches!(refused, Err(BinaryJsonError::Json(JsonError::TooDeep { .. }))));
    // {"a":[0,0]} has 11 characters.
    let body = bytes("80 E9 81 61 E2 02 00 00");
    let limited = |bytes_max| parse_document(&body, JsonLimits { bytes_max, depth_max: 128 });
    assert!(limited(11).is_ok());
    assert_eq!(limited(10), Err(JsonError::TooLarge { bytes: 11, bytes_max: 10 }.into()));
    assert_eq!(limited(7), Err(JsonError::TooLarge { bytes: 8, bytes_max: 7 }.into()));
}

#[test]
fn a_small_body_never_becomes_a_large_document() {
    let too_large = |body: &[u8]| {
        let refused = parse(body);
        assert!(matches!(refused, Err(BinaryJsonError::Json(JsonError::TooLarge { .. }))), "{refused:?}");
        assert_eq!(ApiError::from(refused.unwrap_err()).status, 413);
    };
    // A long string, and then references to it.
    let mut body = bytes("80 E9 81 76 E4 00 00 00 00 C1 00 80");
    body.extend([b'x'; 0x8000]);
    body.extend([0xC3, 9].repeat(1000));
    let length = u32::try_from(body.len() - 9).unwrap();
    body[5..9].copy_from_slice(&length.to_le_bytes());
    too_large(&body);
    // Thousands of empty arrays in seven bytes, again and again.
    let mut body = bytes("80 E9 81 76 E4 00 00 00 00");
    body.extend(bytes("F3 F1 C8 00 00 FF FF").repeat(1000));
    body[5..9].copy_from_slice(&7000_u32.to_le_bytes());
    too_large(&body);
}

#[test]
fn refusals_become_400() {
    for error in [parse(b"\x80"), parse(b"\x80\x01"), parse(b"\x80\xE9\x40\x01")] {
        let error = ApiError::from(error.unwrap_err());
        assert_eq!((error.status, error.code), (400, "BadRequest"));
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "\\PC{0,80}",
        "[ -~]{0,80}",
        "[0-9a-f]{0,40}",
        "[a-p]{0,300}",
        prop::sample::select(vec!["id", "_ts", "name", "Polygon"]).prop_map(String::from),
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-300_i64..300).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |value| value.is_finite()).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((-300_i64..300).prop_map(Value::from), 0..8).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_document() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-zé]{0,9}", any_value()), 0..8)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    // Making documents takes longer than reading them.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_document_is_the_same_in_both_forms(value in any_document(), seed in any::<u64>()) {
        let text = json::parse_document(value.to_string().as_bytes(), JsonLimits::default()).unwrap();
        prop_assert_eq!(parse(&encode(&value, seed)), Ok(text));
    }

    #[test]
    fn no_damage_panics(value in any_document(), seed in any::<u64>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = encode(&value, seed);
        let at = at.index(body.len());
        body[at] = byte;
        if let Ok(document) = parse(&body) {
            prop_assert!(bson::Document::try_from(&*document).is_ok());
        }
        prop_assert!(parse(&body[..at]).is_err());
    }
}

proptest! {
    #[test]
    fn no_bytes_panic_and_none_explode(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let limits = JsonLimits { bytes_max: 1000, depth_max: 20 };
        for head in [&[][..], &[0x80], &[0x80, 0xE9, 0x81, 0x61], &[0x80, 0xE9, 0x81, 0x61, 0xF3, 0xF1]] {
            if let Ok(document) = parse_document(&[head, &tail[..]].concat(), limits) {
                prop_assert!(document.as_bytes().len() < 16 * 1000);
                prop_assert!(bson::Document::try_from(&*document).is_ok());
            }
        }
    }
}
