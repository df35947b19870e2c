//! The order of values, from the lowest to the highest. That it is total, and that keys follow it, is
//! shown for arbitrary values in `tests/properties.rs`.

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, JavaScriptCodeWithScope, RawBson, Regex, Timestamp, bson, doc};

use super::*;
use crate::keycode::push_value;

fn raw(value: Bson) -> RawBson {
    RawBson::try_from(value).unwrap()
}

/// The values ascend strictly, and so do their keys.
#[track_caller]
fn check_ascending(order: Order, values: Vec<Bson>) {
    let values: Vec<_> = values.into_iter().map(raw).collect();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            let (a, b) = (a.as_raw_bson_ref(), b.as_raw_bson_ref());
            assert_eq!(compare(order, a, b), i.cmp(&j), "{a:?} and {b:?}");
            let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
            push_value(&mut key_a, a, order);
            push_value(&mut key_b, b, order);
            assert_eq!(key_a.cmp(&key_b), i.cmp(&j), "keys of {a:?} and {b:?}");
        }
    }
}

#[track_caller]
fn check_equal(order: Order, a: Bson, b: Bson) {
    let (a, b) = (raw(a), raw(b));
    assert_eq!(compare(order, a.as_raw_bson_ref(), b.as_raw_bson_ref()), Ordering::Equal, "{a:?} and {b:?}");
}

fn binary(subtype: BinarySubtype, bytes: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype, bytes: bytes.to_vec() })
}

fn regex(pattern: &str, options: &str) -> Bson {
    Bson::RegularExpression(Regex {
        pattern: pattern.try_into().unwrap(),
        options: options.try_into().unwrap(),
    })
}

fn code(scope: bson::Document) -> Bson {
    Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: "c".into(), scope })
}

/// Values of the types that only BSON has, from binary to code, in the order both APIs give them.
fn foreign_from(first: &str) -> Vec<Bson> {
    let all = vec![
        ("binary", binary(BinarySubtype::Generic, &[])),
        ("binary", binary(BinarySubtype::Generic, &[9])),
        ("binary", binary(BinarySubtype::Uuid, &[1])),
        ("binary", binary(BinarySubtype::Generic, &[1, 1])),
        ("id", Bson::ObjectId(ObjectId::from_bytes([0; 12]))),
        ("id", Bson::ObjectId(ObjectId::from_bytes([1; 12]))),
        ("date", Bson::DateTime(DateTime::from_millis(-5))),
        ("date", Bson::DateTime(DateTime::from_millis(5))),
        ("date", Bson::Timestamp(Timestamp { time: 1, increment: 9 })),
        ("date", Bson::Timestamp(Timestamp { time: 2, increment: 1 })),
        ("date", regex("a", "i")),
        ("date", regex("a", "x")),
        ("date", regex("b", "")),
        ("date", Bson::JavaScriptCode("a".into())),
        ("date", Bson::JavaScriptCode("b".into())),
        ("date", code(doc! {})),
        ("date", code(doc! { "a": 1 })),
        ("date", Bson::MaxKey),
    ];
    all.into_iter().skip_while(|(group, _)| *group != first).map(|(_, value)| value).collect()
}

#[test]
fn cosmos_order() {
    let mut values = vec![
        Bson::Undefined,
        Bson::Null,
        bson!(false),
        bson!(true),
        bson!(f64::NAN),
        bson!(f64::NEG_INFINITY),
        bson!(-1.5),
        bson!(0),
        bson!(1),
        bson!(1.5),
        bson!(9_007_199_254_740_992_i64),
        bson!(1e300),
        bson!(""),
        bson!("\0"),
        bson!("\0\0"),
        bson!("a"),
        bson!("a\0"),
        bson!("ab"),
        bson!("b"),
        bson!("é"),
        bson!("🚀"),
        bson!([]),
        bson!([null]),
        bson!([1]),
        bson!([1, 2]),
        bson!([2]),
        bson!([["a"]]),
        bson!([{}]),
        bson!({}),
        bson!({ "a": null }),
        bson!({ "a": 1 }),
        bson!({ "b": 5, "a": 1 }),
        bson!({ "a": 1, "b": 6 }),
        bson!({ "b": 0 }),
        Bson::MinKey,
    ];
    values.extend(foreign_from("binary"));
    check_ascending(Order::Cosmos, values);
    check_equal(Order::Cosmos, bson!({ "a": 1, "b": [2.0] }), bson!({ "b": [2], "a": 1.0 }));
    check_equal(Order::Cosmos, bson!(9_007_199_254_740_993_i64), bson!(9_007_199_254_740_992.0));
}

#[test]
fn mongo_order() {
    let mut values = vec![
        Bson::MinKey,
        Bson::Undefined,
        Bson::Null,
        bson!(f64::NAN),
        bson!(f64::NEG_INFINITY),
        bson!(i64::MIN),
        bson!(-9_007_199_254_740_993_i64),
        bson!(-9_007_199_254_740_992.0),
        bson!(0),
        bson!(9_007_199_254_740_992.0),
        bson!(9_007_199_254_740_993_i64),
        bson!(9_007_199_254_740_994.0),
        bson!(i64::MAX),
        bson!(f64::INFINITY),
        bson!(""),
        bson!("a"),
        bson!({}),
        bson!({ "b": 0 }),
        bson!({ "b": 0, "a": 1 }),
        bson!({ "a": "x" }),
        bson!({ "a": {} }),
        // Two bools have one class, so the name decides before the value.
        bson!({ "a": false }),
        bson!({ "a": true }),
        bson!({ "b": false }),
        bson!([]),
        bson!([1]),
        bson!([1, 1]),
        bson!(["a"]),
    ];
    values.extend(foreign_from("binary").into_iter().take(6));
    values.extend([bson!(false), bson!(true)]);
    values.extend(foreign_from("date"));
    check_ascending(Order::Mongo, values);
    check_equal(Order::Mongo, bson!("a"), Bson::Symbol("a".into()));
    check_equal(Order::Mongo, bson!([1, 2.0]), bson!([1.0, 2_i64]));
}

#[test]
fn field_order_matters_only_to_mongo() {
    let (a, b) = (raw(bson!({ "a": 1, "b": 1 })), raw(bson!({ "b": 1, "a": 1 })));
    let compared = |order| compare(order, a.as_raw_bson_ref(), b.as_raw_bson_ref());
    assert_eq!(compared(Order::Cosmos), Ordering::Equal);
    assert_eq!(compared(Order::Mongo), Ordering::Less);
}

#[test]
fn absent_is_the_lowest_in_cosmos_and_null_in_mongo() {
    let (null, min) = (Some(RawBsonRef::Null), Some(RawBsonRef::MinKey));
    assert_eq!(compare_opt(Order::Cosmos, None, null), Ordering::Less);
    assert_eq!(compare_opt(Order::Cosmos, None, None), Ordering::Equal);
    assert_eq!(compare_opt(Order::Mongo, None, null), Ordering::Equal);
    assert_eq!(compare_opt(Order::Mongo, None, min), Ordering::Greater);
}

#[test]
fn bottomless_values_compare_by_their_bytes() {
    let nest = |inner: Bson| (0..DEPTH_MAX + 50).fold(inner, |value, _| Bson::Array(vec![value]));
    check_ascending(Order::Mongo, vec![nest(bson!(1)), nest(bson!(2))]);
    check_ascending(Order::Cosmos, vec![nest(bson!(1)), nest(bson!(2))]);
}
