//! Keys of single values: reading back, cutting, descending. Their order is in `order/tests.rs` and
//! `tests/properties.rs`.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, RawBson, Regex, Timestamp, bson, doc};

use super::*;
use crate::order::Order;

fn encode(value: &Bson, order: Order) -> Vec<u8> {
    let raw = RawBson::try_from(value.clone()).unwrap();
    let mut out = Vec::new();
    push_value(&mut out, raw.as_raw_bson_ref(), order);
    let mut desc = Vec::new();
    push_value_desc(&mut desc, raw.as_raw_bson_ref(), order);
    assert!(out.iter().zip(&desc).all(|(a, d)| *a == !*d));
    out
}

/// Decoding gives `decoded` back in both orders and directions, with something behind it or not.
#[track_caller]
fn check_decoded(value: Bson, decoded: DecodedValue) {
    for order in [Order::Cosmos, Order::Mongo] {
        let mut key = encode(&value, order);
        let length = key.len();
        assert_eq!(decode_value(&key, order), Ok((decoded.clone(), length)));
        key.extend([0xAB, 0]);
        assert_eq!(decode_value(&key, order), Ok((decoded.clone(), length)));
        assert_eq!(skip_value(&key), Ok(length));
        let inverted: Vec<u8> = key.iter().map(|byte| !byte).collect();
        assert_eq!(decode_value_desc(&inverted, order), Ok((decoded.clone(), length)));
        assert_eq!(skip_value(&inverted), Ok(length));
        for end in 0..length {
            assert!(decode_value(&key[..end], order).is_err());
        }
    }
}

#[test]
fn scalars_are_read_back() {
    check_decoded(Bson::Undefined, DecodedValue::Undefined);
    check_decoded(Bson::Null, DecodedValue::Null);
    check_decoded(bson!(true), DecodedValue::Bool(true));
    check_decoded(bson!(5), DecodedValue::Double(5.0));
    check_decoded(bson!(-5.25), DecodedValue::Double(-5.25));
    check_decoded(bson!(-0.0), DecodedValue::Double(0.0));
    check_decoded(bson!(f64::NEG_INFINITY), DecodedValue::Double(f64::NEG_INFINITY));
    check_decoded(bson!("a\0é"), DecodedValue::String("a\0é".into()));
    check_decoded(Bson::Symbol("s".into()), DecodedValue::String("s".into()));
    check_decoded(bson!([]), DecodedValue::EmptyArray);
    check_decoded(bson!({}), DecodedValue::EmptyObject);
    check_decoded(bson!([1, { "a": "b", "c": [null] }]), DecodedValue::Container);
    check_decoded(Bson::DateTime(DateTime::MIN), DecodedValue::DateTime(DateTime::MIN));
    let timestamp = Timestamp { time: 7, increment: 8 };
    check_decoded(Bson::Timestamp(timestamp), DecodedValue::Timestamp(timestamp));
    let id = ObjectId::from_bytes([0xFE; 12]);
    check_decoded(Bson::ObjectId(id), DecodedValue::ObjectId(id));
    let binary = Binary { subtype: BinarySubtype::Uuid, bytes: vec![0, 1] };
    check_decoded(Bson::Binary(binary), DecodedValue::Binary { subtype: 4, bytes: vec![0, 1] });
    let regex = Regex { pattern: "a".try_into().unwrap(), options: "i".try_into().unwrap() };
    let decoded = DecodedValue::Regex { pattern: "a".into(), options: "i".into() };
    check_decoded(Bson::RegularExpression(regex), decoded);
    check_decoded(Bson::JavaScriptCode("f".into()), DecodedValue::Code("f".into()));
    check_decoded(Bson::MinKey, DecodedValue::MinKey);
    check_decoded(Bson::MaxKey, DecodedValue::MaxKey);
}

#[test]
fn numbers_that_no_double_holds_are_read_back_in_mongo_order() {
    let check = |value: Bson, decoded: DecodedValue| {
        let key = encode(&value, Order::Mongo);
        assert_eq!(decode_value(&key, Order::Mongo), Ok((decoded, key.len())));
    };
    check(bson!(i64::MAX), DecodedValue::Int64(i64::MAX));
    check(bson!(-9_007_199_254_740_993_i64), DecodedValue::Int64(-9_007_199_254_740_993));
    for text in ["0.1", "-1E-6176", "9.999999999999999999999999999999999E+6144", "-123456.7"] {
        let decimal: bson::Decimal128 = text.parse().unwrap();
        let key = encode(&Bson::Decimal128(decimal), Order::Mongo);
        let Ok((DecodedValue::Decimal128(decoded), _)) = decode_value(&key, Order::Mongo) else {
            panic!("{text} is read back as another type");
        };
        assert_eq!(encode(&Bson::Decimal128(decoded), Order::Mongo), key);
    }
}

#[test]
fn sizes_are_as_documented() {
    let check = |value: Bson, cosmos: usize, mongo: usize| {
        assert_eq!(encode(&value, Order::Cosmos).len(), cosmos, "{value}");
        assert_eq!(encode(&value, Order::Mongo).len(), mongo, "{value}");
    };
    check(Bson::Null, 1, 1);
    check(bson!(1), 9, 10);
    check(bson!(i64::MAX), 9, 27);
    check(bson!("ab"), 5, 5);
    check(bson!([true]), 4, 4);
}

#[test]
fn long_strings_are_cut_and_marked() {
    let prefix = "p".repeat(STRING_BYTES_MAX);
    let keys: Vec<_> = ["", "\0", "a", "z"]
        .iter()
        .map(|rest| encode(&bson!(format!("{prefix}{rest}")), Order::Cosmos))
        .chain([encode(&bson!(format!("{}q", "p".repeat(STRING_BYTES_MAX - 1))), Order::Cosmos)])
        .collect();
    assert!(!is_cut(&keys[0]));
    assert!(keys[1..4].iter().all(|key| is_cut(key)));
    assert!(keys[0] < keys[1]);
    assert!(keys[1] == keys[2] && keys[2] == keys[3]);
    assert!(keys[3] < keys[4]);
    let decoded = decode_value(&keys[1], Order::Cosmos);
    assert_eq!(decoded, Ok((DecodedValue::CutString(prefix.into_bytes()), keys[1].len())));
}

#[test]
fn a_cut_ends_the_whole_value() {
    let long = "p".repeat(STRING_BYTES_MAX);
    let check_same = |a: Bson, b: Bson| {
        for order in [Order::Cosmos, Order::Mongo] {
            let (a, b) = (encode(&a, order), encode(&b, order));
            assert_eq!(a, b);
            assert!(is_cut(&a));
            assert_eq!(skip_value(&a), Ok(a.len()));
            let inverted: Vec<u8> = a.iter().map(|byte| !byte).collect();
            assert!(is_cut(&inverted));
            assert_eq!(skip_value(&inverted), Ok(a.len()));
        }
    };
    check_same(bson!([format!("{long}b"), 1]), bson!([format!("{long}a"), 2]));
    check_same(bson!({ "x": [[format!("{long}b")], 1] }), bson!({ "x": [[format!("{long}a")], 2], "y": 1 }));
    check_same(
        Bson::Document(doc! { format!("{long}b"): 1 }),
        Bson::Document(doc! { format!("{long}a"): 2 }),
    );
    let numbers = |last: i32| Bson::Array((0..500).map(Bson::Int32).chain([Bson::Int32(last)]).collect());
    check_same(numbers(1), numbers(2));
    let key = encode(&numbers(1), Order::Mongo);
    assert!(key.len() < CONTAINER_BYTES_MAX + 32);
    let binary = |last: u8| {
        let mut bytes = vec![0; 1000];
        bytes.push(last);
        Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes })
    };
    check_same(binary(1), binary(2));
}

#[test]
fn absent_values_have_a_place() {
    let mut cosmos = Vec::new();
    push_undefined(&mut cosmos, Order::Cosmos);
    assert_eq!(cosmos, encode(&Bson::Undefined, Order::Cosmos));
    let mut mongo = Vec::new();
    push_undefined(&mut mongo, Order::Mongo);
    assert_eq!(mongo, encode(&Bson::Null, Order::Mongo));
}

#[test]
fn keys_of_the_other_order_are_refused() {
    let key = encode(&bson!(1), Order::Cosmos);
    assert!(matches!(decode_value(&key, Order::Mongo), Err(KeycodeError::Unexpected { position: 0, .. })));
    assert!(skip_value(&[]).is_err());
    assert!(skip_value(&[0x05]).is_err());
    assert!(!is_cut(&[]));
}

#[test]
fn bottomless_keys_do_not_overflow_the_stack() {
    let array_tag = encode(&bson!([]), Order::Cosmos)[0];
    assert!(skip_value(&vec![array_tag; 1_000_000]).is_err());
}
