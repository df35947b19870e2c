//! Values: where they come from, how they compare, and what they look like outside.

use mayfly_sql::value::compare::{compare, equals, order, same};
use mayfly_sql::value::key::key_of;
use mayfly_sql::{Context, Document, EvalError, Query, Run, Value};
use mayfly_value::bson::oid::ObjectId;
use mayfly_value::bson::{DateTime, RawBson, rawdoc};
use mayfly_value::json::{JsonLimits, parse_document};
use proptest::prelude::*;
use std::cmp::Ordering;

/// Values that are often equal in part: small numbers, short strings, few names.
fn value() -> impl Strategy<Value = Value<'static>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::Int),
        (-2_i64..3).prop_map(|number| Value::Double(number as f64)),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_map(Value::Double),
        Just(Value::Double(-0.0)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::array),
            prop::collection::vec(("[ab]", inner), 0..3).prop_map(Value::object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(super::cases(1024)) })]

    /// Equality, order and keys say the same.
    #[test]
    fn equality_order_and_keys_agree(a in value(), b in value()) {
        let equal = order(&a, &b) == Ordering::Equal;
        prop_assert_eq!(same(&a, &b), equal);
        prop_assert_eq!(equals(&a, &b), Some(equal));
        prop_assert_eq!(key_of(&a) == key_of(&b), equal);
        prop_assert_eq!(order(&b, &a), order(&a, &b).reverse());
        if let Some(compared) = compare(&a, &b) {
            prop_assert_eq!(compared, order(&a, &b));
        }
    }

    #[test]
    fn the_order_is_transitive(a in value(), b in value(), c in value()) {
        let mut sorted = [a, b, c];
        sorted.sort_by(order);
        prop_assert!(order(&sorted[0], &sorted[2]) != Ordering::Greater);
    }

    /// A value is the same after BSON, after JSON, and on its own.
    #[test]
    fn values_survive_conversion(value in value()) {
        let bson = value.to_bson().unwrap();
        prop_assert!(same(&Value::from_raw(bson.as_raw_bson_ref()), &value));
        prop_assert!(same(&Value::from_bson(bson), &value));
        prop_assert!(same(&value.borrow(), &value));
        prop_assert!(same(&value.clone().into_owned(), &value));
        let has_odd_numbers = value.to_json().contains("null");
        if !has_odd_numbers {
            let read = Value::parse_json(value.to_json().as_bytes()).unwrap();
            // Integers beyond 2^53 print exactly; doubles beyond it may read back as integers they equal.
            prop_assert_eq!(read.to_json(), value.to_json());
        }
    }
}

/// Types that JSON lacks are the objects a read shows.
#[test]
fn foreign_types_are_seen_as_shown() {
    let body = rawdoc! {
        "oid": ObjectId::from_bytes([7; 12]),
        "at": DateTime::from_millis(0),
        "small": 5_i32,
        "nested": { "list": [RawBson::MaxKey] },
    };
    let query = Query::parse("SELECT c.oid[\"$oid\"], c.at, c.small, c.nested FROM c").unwrap();
    let plan = query.bind(&[]).unwrap();
    let mut run = plan.run(Context::new(0, 0)).unwrap();
    let rows = run.push(&Document { body: &body, system: &[] }).unwrap();
    assert_eq!(
        rows[0].to_json(),
        r#"{"$oid":"070707070707070707070707","at":{"$date":"1970-01-01T00:00:00Z"},"small":5,"nested":{"list":[{"$maxKey":1}]}}"#
    );
}

/// System properties win over those of the body. They come where the first of these is, or last.
#[test]
fn system_properties_have_the_place_of_those_of_the_body() {
    let check = |body: &str, expected: &str| {
        let body = parse_document(body.as_bytes(), JsonLimits::default()).unwrap();
        let system = [("_ts", Value::Int(7))];
        let query = Query::parse("SELECT VALUE [c, c._ts] FROM c").unwrap();
        let plan = query.bind(&[]).unwrap();
        let mut run = plan.run(Context::new(0, 0)).unwrap();
        let rows = run.push(&Document { body: &body, system: &system }).unwrap();
        assert_eq!(rows[0].to_json(), expected);
    };
    check(r#"{"id":"1","n":2}"#, r#"[{"id":"1","n":2,"_ts":7},7]"#);
    check(r#"{"id":"1","_ts":"mine","n":2}"#, r#"[{"id":"1","_ts":7,"n":2},7]"#);
}

/// A query that keeps too much fails; one that wants only the first rows does not keep them all.
#[test]
fn memory_is_bounded() {
    let documents: Vec<_> = (0..5000)
        .map(|number| format!(r#"{{"id":"{number}","text":"{}"}}"#, "x".repeat(100)))
        .map(|text| parse_document(text.as_bytes(), JsonLimits::default()).unwrap())
        .collect();
    let run = |text: &str| -> Result<usize, EvalError> {
        let plan = Query::parse(text).unwrap().bind(&[]).unwrap();
        let mut context = Context::new(0, 0);
        context.memory_bytes_max = 500_000;
        let mut run = plan.run(context)?;
        for body in &documents {
            run.push(&Document { body, system: &[] })?;
        }
        Ok(run.finish()?.len())
    };
    assert!(matches!(run("SELECT * FROM c ORDER BY c.id"), Err(EvalError::TooMuchMemory { .. })));
    assert!(matches!(run("SELECT DISTINCT c.id, c.text FROM c"), Err(EvalError::TooMuchMemory { .. })));
    assert!(matches!(run("SELECT c.id FROM c GROUP BY c.id"), Err(EvalError::TooMuchMemory { .. })));
    assert!(matches!(run("SELECT VALUE MAKELIST(c.text) FROM c"), Err(EvalError::TooMuchMemory { .. })));
    assert_eq!(run("SELECT TOP 10 * FROM c ORDER BY c.id"), Ok(10));
    assert_eq!(run("SELECT VALUE COUNT(1) FROM c"), Ok(1));
}

/// The server keeps plans and runs across await points.
#[test]
fn runs_may_move_between_threads() {
    fn check<T: Send>() {}
    check::<Run<'static>>();
    check::<mayfly_sql::Plan>();
}
