//! JSON in and out, case by case. Round trips of arbitrary documents are in `tests/properties.rs`.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{
    Binary, Bson, DateTime, JavaScriptCodeWithScope, RawBsonRef, RawDocumentBuf, Regex, Timestamp, doc,
    rawdoc,
};

use super::*;
use crate::foreign::{BsonError, DEPTH_MAX};

fn parse(text: &str) -> Result<RawDocumentBuf, JsonError> {
    parse_document(text.as_bytes(), JsonLimits::default())
}

fn print(document: &RawDocumentBuf) -> String {
    let mut out = Vec::new();
    write_document(document, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn check_document(text: &str, document: RawDocumentBuf) {
    assert_eq!(parse(text).unwrap(), document);
}

#[track_caller]
fn check_printed(text: &str, printed: &str) {
    assert_eq!(print(&parse(text).unwrap()), printed);
}

#[track_caller]
fn check_refused(text: &str, error: JsonError) {
    assert_eq!(parse(text), Err(error));
}

#[track_caller]
fn check_syntax(text: &str) {
    let parsed = parse(text);
    assert!(matches!(parsed, Err(JsonError::Syntax { .. })), "{parsed:?}");
}

#[test]
fn values_become_the_smallest_bson_type_that_holds_them() {
    check_document("{}", rawdoc! {});
    check_document(r#"{"a":null,"b":true,"c":false}"#, rawdoc! { "a": null, "b": true, "c": false });
    check_document(r#"{"a":1,"b":-2147483648}"#, rawdoc! { "a": 1_i32, "b": i32::MIN });
    check_document(r#"{"a":2147483648}"#, rawdoc! { "a": 2_147_483_648_i64 });
    check_document(r#"{"a":-9223372036854775808}"#, rawdoc! { "a": i64::MIN });
    check_document(r#"{"a":9223372036854775807}"#, rawdoc! { "a": i64::MAX });
    check_document(r#"{"a":9223372036854775808}"#, rawdoc! { "a": 9_223_372_036_854_775_808.0 });
    check_document(r#"{"a":1e2,"b":1.0}"#, rawdoc! { "a": 100.0, "b": 1.0 });
    check_document(r#"{"a":-0}"#, rawdoc! { "a": -0.0 });
    check_document(r#"{"a":0.1}"#, rawdoc! { "a": 0.1 });
    check_document(r#"{"a":"x\u0000\ud83d\ude80"}"#, rawdoc! { "a": "x\0🚀" });
    check_document(r#"{"a":[1,[],{"b":[]}],"":""}"#, rawdoc! { "a": [1, [], { "b": [] }], "": "" });
    check_document(" {\n\"a\" :\t1 } \r\n", rawdoc! { "a": 1 });
}

#[test]
fn arrays_name_their_items_by_position() {
    let text = format!(r#"{{"a":[{}]}}"#, vec!["0"; 1001].join(","));
    let document = parse(&text).unwrap();
    for (index, element) in document.get_array("a").unwrap().iter_elements().enumerate() {
        assert_eq!(element.unwrap().key().as_str(), index.to_string());
    }
}

#[test]
fn of_duplicate_names_the_last_value_wins_at_the_first_place() {
    check_document(r#"{"a":1,"b":2,"a":3}"#, rawdoc! { "a": 3, "b": 2 });
    check_document(r#"{"a":1,"a":{"x":1,"x":"y"},"a":[{}]}"#, rawdoc! { "a": [{}] });
    check_document(
        r#"{"o":{"b":1,"a":2,"b":{"c":1}},"z":1}"#,
        rawdoc! { "o": { "b": { "c": 1 }, "a": 2 }, "z": 1 },
    );
    check_document(
        r#"{"abcdefghi":1,"abcdefghj":2,"abcdefghi":3}"#,
        rawdoc! { "abcdefghi": 3, "abcdefghj": 2 },
    );
    check_document(r#"{"":1,"\u0061":2,"a":3,"":4}"#, rawdoc! { "": 4, "a": 3 });
}

#[test]
fn what_is_no_object_is_refused() {
    for text in ["[]", "1", "\"a\"", "null", "true"] {
        check_refused(text, JsonError::NotAnObject);
    }
    for text in
        ["", "{", "{\"a\"}", "{\"a\":1,}", "{} x", "{}{}", "{a:1}", "{'a':1}", "{\"a\":01}", "\u{feff}{}"]
    {
        check_syntax(text);
    }
}

#[test]
fn numbers_beyond_the_doubles_and_half_pairs_are_refused() {
    check_syntax(r#"{"a":1e400}"#);
    check_syntax(r#"{"a":-1e400}"#);
    check_syntax(r#"{"a":NaN}"#);
    check_syntax(r#"{"a":Infinity}"#);
    check_syntax(r#"{"a":"\ud800"}"#);
    check_syntax(r#"{"a":"\udc00"}"#);
    check_syntax(r#"{"\ud800":1}"#);
    check_syntax("{\"a\":\"\n\"}");
}

#[test]
fn bytes_that_cannot_be_stored_are_refused() {
    check_refused(r#"{"a\u0000b":1}"#, JsonError::NulInKey { name: "a\0b".into() });
    let refused = parse_document(b"{\"a\":\"\xFF\"}", JsonLimits::default());
    assert_eq!(refused, Err(JsonError::NotUtf8 { position: 6 }));
}

#[test]
fn limits_are_inclusive() {
    let nested = |depth: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert!(parse(&nested(128)).is_ok());
    check_refused(&nested(129), JsonError::TooDeep { depth_max: 128 });
    check_refused(&nested(100_000), JsonError::TooDeep { depth_max: 128 });
    let limits = JsonLimits { bytes_max: 8, depth_max: usize::MAX };
    assert!(parse_document(br#"{"a":12}"#, limits).is_ok());
    assert_eq!(parse_document(br#"{"a":123}"#, limits), Err(JsonError::TooLarge { bytes: 9, bytes_max: 8 }));
    let limits = JsonLimits { bytes_max: usize::MAX, depth_max: usize::MAX };
    let refused = parse_document(nested(100_000).as_bytes(), limits);
    assert_eq!(refused, Err(JsonError::TooDeep { depth_max: DEPTH_MAX }));
}

#[test]
fn any_value_can_be_parsed_alone() {
    let check = |text: &str, value: bson::RawBson| {
        assert_eq!(parse_value(text.as_bytes(), JsonLimits::default()), Ok(value));
    };
    check("null", bson::RawBson::Null);
    check(" 5 ", bson::RawBson::Int32(5));
    check("\"x\"", bson::RawBson::String("x".into()));
    check("{\"a\":1}", bson::RawBson::Document(rawdoc! { "a": 1 }));
    check("[1,\"b\"]", bson::RawBson::Array(bson::rawbson!([1, "b"]).as_array().unwrap().to_owned()));
    assert!(parse_value(b"1 2", JsonLimits::default()).is_err());
}

#[test]
fn doubles_print_in_the_shortest_form_that_stays_a_double() {
    check_printed(r#"{"a":1.0}"#, r#"{"a":1.0}"#);
    check_printed(r#"{"a":-0}"#, r#"{"a":-0.0}"#);
    check_printed(r#"{"a":0.1,"b":1e300,"c":5e-324}"#, r#"{"a":0.1,"b":1e+300,"c":5e-324}"#);
    check_printed(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740993}"#);
    assert_eq!(print(&rawdoc! { "a": f64::NAN, "b": f64::INFINITY }), r#"{"a":null,"b":null}"#);
}

#[test]
fn strings_are_escaped_where_json_asks_for_it() {
    check_printed(
        r#"{"a\"\\\n":"\u0000\u001f\/é\u2028\u007f"}"#,
        "{\"a\\\"\\\\\\n\":\"\\u0000\\u001f/é\u{2028}\u{7f}\"}",
    );
}

#[track_caller]
fn check_extended(value: impl Into<Bson>, printed: &str) {
    let document = RawDocumentBuf::try_from(&doc! { "v": value.into() }).unwrap();
    assert_eq!(print(&document), format!(r#"{{"v":{printed}}}"#));
}

#[test]
fn types_json_lacks_print_as_relaxed_extended_json() {
    let id = ObjectId::from_bytes([1; 12]);
    check_extended(id, r#"{"$oid":"010101010101010101010101"}"#);
    check_extended(DateTime::from_millis(0), r#"{"$date":"1970-01-01T00:00:00Z"}"#);
    check_extended(DateTime::from_millis(1_500), r#"{"$date":"1970-01-01T00:00:01.5Z"}"#);
    check_extended(DateTime::from_millis(-1), r#"{"$date":{"$numberLong":"-1"}}"#);
    check_extended(DateTime::MAX, r#"{"$date":{"$numberLong":"9223372036854775807"}}"#);
    let binary = Binary { subtype: BinarySubtype::Uuid, bytes: vec![1, 2, 3] };
    check_extended(binary, r#"{"$binary":{"base64":"AQID","subType":"04"}}"#);
    let decimal: bson::Decimal128 = "1.50".parse().unwrap();
    check_extended(decimal, r#"{"$numberDecimal":"1.50"}"#);
    check_extended(Timestamp { time: 1, increment: 2 }, r#"{"$timestamp":{"t":1,"i":2}}"#);
    let regex = Regex { pattern: "a\"".try_into().unwrap(), options: "i".try_into().unwrap() };
    check_extended(
        Bson::RegularExpression(regex),
        r#"{"$regularExpression":{"pattern":"a\"","options":"i"}}"#,
    );
    check_extended(Bson::JavaScriptCode("f".into()), r#"{"$code":"f"}"#);
    let code = JavaScriptCodeWithScope { code: "f".into(), scope: doc! { "x": 1 } };
    check_extended(Bson::JavaScriptCodeWithScope(code), r#"{"$code":"f","$scope":{"x":1}}"#);
    check_extended(Bson::Symbol("s".into()), r#"{"$symbol":"s"}"#);
    check_extended(Bson::Undefined, r#"{"$undefined":true}"#);
    check_extended(Bson::MinKey, r#"{"$minKey":1}"#);
    check_extended(Bson::MaxKey, r#"{"$maxKey":1}"#);
    let pointer =
        b"\x1a\0\0\0\x0cv\0\x02\0\0\0n\0\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\0".to_vec();
    let document = RawDocumentBuf::from_bytes(pointer).unwrap();
    let printed = r#"{"v":{"$dbPointer":{"$ref":"n","$id":{"$oid":"010101010101010101010101"}}}}"#;
    assert_eq!(print(&document), printed);
}

#[test]
fn an_object_can_be_written_in_pieces() {
    let mut out = b"x".to_vec();
    let mut writer = ObjectWriter::begin(&mut out);
    writer
        .fields_of_except(&rawdoc! { "id": "1", "_ts": 0, "l": [1] }, |name| name == b"_ts", &mut None)
        .unwrap();
    writer.fields_as(|out| out.extend_from_slice(br#""_etag":"\"e\"""#)).field_int("_ts", 7);
    writer.field_value("d", RawBsonRef::Double(2.0)).unwrap();
    writer.end();
    assert_eq!(String::from_utf8(out).unwrap(), r#"x{"id":"1","l":[1],"_etag":"\"e\"","_ts":7,"d":2.0}"#);
    let mut empty = Vec::new();
    ObjectWriter::begin(&mut empty).end();
    assert_eq!(empty, b"{}");
}

#[test]
fn bottomless_and_broken_documents_are_refused() {
    let mut document = rawdoc! { "x": 1 };
    for _ in 0..DEPTH_MAX {
        let mut outer = RawDocumentBuf::new();
        outer.append(bson::raw::cstr!("x"), &document);
        document = outer;
    }
    let written = write_document(&document, &mut Vec::new());
    assert_eq!(written, Err(BsonError::TooDeep { depth_max: DEPTH_MAX }));
    let broken = RawDocumentBuf::from_bytes(b"\x08\0\0\0\x02a\0\0".to_vec()).unwrap();
    assert!(matches!(write_document(&broken, &mut Vec::new()), Err(BsonError::Malformed { .. })));
}
