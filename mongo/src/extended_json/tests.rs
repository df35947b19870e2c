//! What is written reads back to the same, and what has the form of a type and not its content is refused.

use bson::{Bson, DateTime, Document, Timestamp, doc, oid::ObjectId};

use super::{read, write};

#[test]
fn types_survive_the_way_there_and_back() {
    let id = ObjectId::parse_str("507f1f77bcf86cd799439011").unwrap();
    let document = doc! {
        "z": 1, "long": 2_i64, "whole": 3.0, "part": 0.5, "small": 1e-300, "huge": 1e300, "minus": -0.0,
        "id": id, "at": DateTime::from_millis(1_700_000_000_123), "before": DateTime::from_millis(-1),
        "far": DateTime::from_millis(i64::MAX), "ts": Timestamp { time: u32::MAX, increment: 7 },
        "infinite": f64::NEG_INFINITY, "none": Bson::Null, "yes": true, "text": "a \"b\"\n\u{7}é",
        "list": [1, [2_i64], { "a": {} }], "least": Bson::MinKey, "most": Bson::MaxKey, "nothing": Bson::Undefined,
        "a": { "$gt": 5, "$regex": "^x", "$options": "i" },
    };
    assert_eq!(read(write(&document).as_bytes()).unwrap(), document);
}

#[test]
fn every_type_has_a_form_that_comes_back_as_it_was() {
    for text in [
        r#"{"v":{"$numberDecimal":"1.50"}}"#,
        r#"{"v":{"$binary":{"base64":"AQI=","subType":"80"}}}"#,
        r#"{"v":{"$regularExpression":{"pattern":"a/b","options":"im"}}}"#,
        r#"{"v":{"$code":"f()","$scope":{"x":1}}}"#,
        r#"{"v":{"$code":"f()"}}"#,
        r#"{"v":{"$symbol":"s"}}"#,
        r#"{"v":{"$timestamp":{"t":4294967295,"i":1}}}"#,
        r#"{"v":{"$date":"2026-01-02T03:04:05.678Z"}}"#,
        r#"{"v":{"$numberDouble":"5.0"}}"#,
        r#"{"v":{"$numberDouble":"NaN"}}"#,
        r#"{"v":{"$numberLong":"-9223372036854775808"}}"#,
        r#"{"v":4.25,"u":2147483647}"#,
    ] {
        assert_eq!(write(&read(text.as_bytes()).unwrap()), text);
    }
}

#[test]
fn the_canonical_form_is_read() {
    let read = |text: &str| read(text.as_bytes()).unwrap();
    assert_eq!(read(r#"{"v":{"$numberInt":"5"}}"#), doc! { "v": 5 });
    assert_eq!(read(r#"{"v":{"$date":{"$numberLong":"5"}}}"#), doc! { "v": DateTime::from_millis(5) });
    assert_eq!(read(r#"{"v":2147483648}"#), doc! { "v": 2_147_483_648_i64 });
    assert_eq!(read(r#"{"v":18446744073709551616}"#), doc! { "v": 18_446_744_073_709_551_616.0 });
    let uuid = read(r#"{"v":{"$uuid":"c8edabc3-f738-4ca3-b68d-ab92a91478a3"}}"#);
    assert_eq!(write(&uuid), r#"{"v":{"$binary":{"base64":"yO2rw/c4TKO2jauSqRR4ow==","subType":"04"}}}"#);
}

#[test]
fn the_order_of_fields_is_kept() {
    let document = read(br#"{"find":"c","sort":{"b":1,"a":1},"filter":{}}"#).unwrap();
    assert_eq!(document.keys().collect::<Vec<_>>(), ["find", "sort", "filter"]);
    assert_eq!(document.get_document("sort").unwrap().keys().collect::<Vec<_>>(), ["b", "a"]);
}

#[test]
fn what_is_not_right_is_refused() {
    for text in [
        "",
        "[]",
        "5",
        "{\"a\":",
        r#"{"a":1,"a":2}"#,
        r#"{"a\u0000b":1}"#,
        r#"{"v":{"$oid":"5"}}"#,
        r#"{"v":{"$date":"soon"}}"#,
        r#"{"v":{"$numberLong":5}}"#,
        r#"{"v":{"$binary":{"base64":"?","subType":"00"}}}"#,
        r#"{"v":{"$uuid":"c8edabc3"}}"#,
        r#"{"v":{"$regularExpression":{"pattern":"a\u0000b","options":""}}}"#,
        r#"{"v":{"$dbPointer":{}}}"#,
    ] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(1000), "}".repeat(1000));
    assert!(read(deep.as_bytes()).is_err());
    assert_eq!(read(b"{}").unwrap(), Document::new());
}
