//! What holds for all values, shown on arbitrary ones: JSON round trips, the order of keys, path rules
//! against a plain matcher, slots against their bounds, and decoders against random bytes.

use std::cmp::Ordering;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Decimal128, Document, RawBson, RawDocument, RawDocumentBuf, Timestamp};
use mayfly_value::foreign::BsonError;
use mayfly_value::json::{JsonLimits, parse_document, write_document, write_value};
use mayfly_value::keycode::{
    DecodedValue, PathStep, decode_value, decode_value_desc, is_cut, path_to_string, push_value,
    push_value_desc, skip_path, skip_value, take_bytes, take_str, take_u32, take_u64,
};
use mayfly_value::order::{Order, compare};
use mayfly_value::partition::{Component, Epk, KeyDefinition, KeyKind, PartitionKey};
use mayfly_value::path::{Path, PathPattern, PathRules, PatternKind, PatternSegment};
use mayfly_value::walk::walk_leaves;
use proptest::prelude::*;

/// Numbers that lie close together, so that ties and near ties are common.
fn any_number() -> impl Strategy<Value = Bson> {
    let near = prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(0.1),
        Just(9_007_199_254_740_992.0),
        Just(9_223_372_036_854_775_807.0),
        Just(f64::MIN_POSITIVE),
        Just(f64::MAX),
    ];
    prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        (-3_i64..3, any::<bool>()).prop_map(|(offset, high)| {
            Bson::Int64(if high { i64::MAX - 2048 + offset } else { 9_007_199_254_740_992 + offset })
        }),
        any::<f64>().prop_map(Bson::Double),
        (near, -3_i64..3, any::<bool>()).prop_map(|(near, steps, negative): (f64, i64, bool)| {
            let double = f64::from_bits(near.to_bits().wrapping_add_signed(steps));
            Bson::Double(if negative { -double } else { double })
        }),
        any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal128(Decimal128::from_bytes(bytes))),
        (any::<i64>(), -25_i32..5).prop_map(|(coefficient, exponent)| {
            Bson::Decimal128(format!("{coefficient}E{exponent}").parse().expect("a decimal"))
        }),
        (9_007_199_254_740_990_u64..9_007_199_254_740_996, 0_u8..3).prop_map(|(whole, tenths)| {
            Bson::Decimal128(format!("{whole}.{tenths}").parse().expect("a decimal"))
        }),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab\u{0}é]{0,4}", any::<String>()]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", any::<String>().prop_map(|name| name.replace('\0', ""))]
}

fn any_scalar() -> impl Strategy<Value = Bson> {
    prop_oneof![
        1 => Just(Bson::Null),
        1 => Just(Bson::Undefined),
        1 => Just(Bson::MinKey),
        1 => Just(Bson::MaxKey),
        1 => any::<bool>().prop_map(Bson::Boolean),
        8 => any_number(),
        4 => any_text().prop_map(Bson::String),
        1 => any_text().prop_map(Bson::Symbol),
        1 => any_text().prop_map(Bson::JavaScriptCode),
        1 => any::<i64>().prop_map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
        1 => any::<(u32, u32)>().prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        1 => any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
        1 => (any::<bool>(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(uuid, bytes)| {
            let subtype = if uuid { BinarySubtype::Uuid } else { BinarySubtype::Generic };
            Bson::Binary(Binary { subtype, bytes })
        }),
    ]
}

fn any_value() -> impl Strategy<Value = Bson> {
    any_scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            prop::collection::vec((any_name(), inner), 0..4)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect::<Document>())),
        ]
    })
}

/// Values that JSON can hold.
fn any_json_value() -> impl Strategy<Value = Bson> {
    let scalar = prop_oneof![
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_filter("an int32", |n| i32::try_from(*n).is_err()).prop_map(Bson::Int64),
        any::<f64>().prop_filter("not finite", |n| n.is_finite()).prop_map(Bson::Double),
        any_text().prop_map(Bson::String),
    ];
    scalar.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Bson::Array),
            prop::collection::vec((any_name(), inner), 0..6)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect::<Document>())),
        ]
    })
}

fn raw(value: &Bson) -> RawBson {
    RawBson::try_from(value.clone()).expect("a value without zeros in names")
}

fn key(value: &Bson, order: Order) -> Vec<u8> {
    let mut out = Vec::new();
    push_value(&mut out, raw(value).as_raw_bson_ref(), order);
    out
}

fn key_desc(value: &Bson, order: Order) -> Vec<u8> {
    let mut out = Vec::new();
    push_value_desc(&mut out, raw(value).as_raw_bson_ref(), order);
    out
}

fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Cosmos), Just(Order::Mongo)]
}

fn check_key_order(order: Order, a: &Bson, b: &Bson) -> Result<(), TestCaseError> {
    let compared = compare(order, raw(a).as_raw_bson_ref(), raw(b).as_raw_bson_ref());
    let (key_a, key_b) = (key(a, order), key(b, order));
    if is_cut(&key_a) && is_cut(&key_b) && key_a == key_b {
        return Ok(());
    }
    prop_assert_eq!(key_a.cmp(&key_b), compared);
    prop_assert_eq!(key_desc(a, order).cmp(&key_desc(b, order)), compared.reverse());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What was parsed, written and parsed again is the same.
    #[test]
    fn json_round_trips(fields in prop::collection::vec((any_name(), any_json_value()), 0..8)) {
        let document = fields.into_iter().collect::<Document>();
        let document = RawDocumentBuf::try_from(&document).expect("a document");
        let mut text = Vec::new();
        write_document(&document, &mut text).expect("printable");
        let parsed = parse_document(&text, JsonLimits::default()).expect("what we print we can parse");
        prop_assert_eq!(parsed, document);
    }

    /// A name that occurs several times has its last value, at its first place.
    #[test]
    fn duplicate_names_are_merged(fields in prop::collection::vec(("[a-d]{0,10}", any::<i32>()), 0..40)) {
        let text: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let parsed = parse_document(format!("{{{}}}", text.join(",")).as_bytes(), JsonLimits::default());
        // The tree of the bson crate keeps the place and replaces the value, too.
        let expected = fields.into_iter().map(|(name, value)| (name, Bson::Int32(value))).collect::<Document>();
        prop_assert_eq!(parsed, Ok(RawDocumentBuf::try_from(&expected).expect("a document")));
    }

    /// Any text is parsed or refused.
    #[test]
    fn json_parser_is_total(text in "[\\[\\]{}\",:0-9eE+.\\\\u a-\u{e9}-]{0,40}") {
        _ = parse_document(text.as_bytes(), JsonLimits::default());
    }

    /// Everything prints as JSON that parses, also the types JSON lacks.
    #[test]
    fn everything_prints_as_json(value in any_value()) {
        let mut text = Vec::new();
        write_value(raw(&value).as_raw_bson_ref(), &mut text).expect("printable");
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
    }

    /// The byte order of keys is the order of values, in both directions.
    #[test]
    fn keys_order_like_values(order in any_order(), a in any_value(), b in any_value()) {
        check_key_order(order, &a, &b)?;
    }

    /// Numbers once more on their own, where types mix and values nearly agree.
    #[test]
    fn keys_order_like_numbers(order in any_order(), a in any_number(), b in any_number()) {
        check_key_order(order, &a, &b)?;
    }

    /// Long strings and long containers are cut without disturbing the order of the rest.
    #[test]
    fn cut_keys_order_like_their_beginnings(
        order in any_order(),
        values in prop::array::uniform2((505_usize..520, "[ab\u{0}é]{0,12}", any::<bool>(), any::<i32>())),
    ) {
        let [a, b] = values.map(|(length, rest, nested, more)| {
            let text = Bson::String("a".repeat(length) + &rest);
            if nested { Bson::Array(vec![text, Bson::Int32(more)]) } else { text }
        });
        check_key_order(order, &a, &b)?;
    }

    /// The comparison is a total order.
    #[test]
    fn comparison_is_transitive(order in any_order(), mut values in prop::collection::vec(any_value(), 3)) {
        values.sort_by(|a, b| compare(order, raw(a).as_raw_bson_ref(), raw(b).as_raw_bson_ref()));
        for (i, a) in values.iter().enumerate() {
            for b in values.iter().skip(i) {
                let compared = compare(order, raw(a).as_raw_bson_ref(), raw(b).as_raw_bson_ref());
                prop_assert_ne!(compared, Ordering::Greater);
            }
        }
    }

    /// A key ends by itself: what follows it does not matter.
    #[test]
    fn keys_end_by_themselves(order in any_order(), value in any_value(), rest in any::<[u8; 3]>()) {
        let mut ascending = key(&value, order);
        let mut descending = key_desc(&value, order);
        let length = ascending.len();
        ascending.extend(rest);
        descending.extend(rest);
        prop_assert_eq!(skip_value(&ascending), Ok(length));
        prop_assert_eq!(skip_value(&descending), Ok(length));
        let (decoded, taken) = decode_value(&ascending, order).expect("our own key");
        prop_assert_eq!(taken, length);
        // NaN is the one value that is not equal to itself.
        if !matches!(decoded, DecodedValue::Double(number) if number.is_nan()) {
            prop_assert_eq!(decode_value_desc(&descending, order), Ok((decoded, length)));
        }
    }

    /// Decoders take any bytes and return.
    #[test]
    fn key_decoders_are_total(order in any_order(), first in any::<u8>(), bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let bytes = [vec![first], bytes].concat();
        _ = decode_value(&bytes, order);
        _ = decode_value_desc(&bytes, order);
        _ = (skip_value(&bytes), is_cut(&bytes), skip_path(&bytes), path_to_string(&bytes));
        _ = (take_bytes(&bytes), take_str(&bytes), take_u32(&bytes), take_u64(&bytes));
    }

    /// Broken documents are refused or compared, never a panic.
    #[test]
    fn broken_documents_are_survived(
        order in any_order(),
        fields in prop::collection::vec((any_name(), any_value()), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let document = fields.into_iter().collect::<Document>();
        let mut bytes = RawDocumentBuf::try_from(&document).expect("a document").into_bytes();
        let inside = 4..bytes.len() - 1;
        for (place, byte) in damage {
            let index = inside.start + place.index(inside.len().max(1));
            bytes[index] = byte;
        }
        let Ok(broken) = RawDocument::from_bytes(&bytes) else { return Ok(()) };
        let value = bson::RawBsonRef::Document(broken);
        let _: Result<(), BsonError> = write_document(broken, &mut Vec::new());
        let _: Result<(), BsonError> = walk_leaves(broken, &PathRules::all(), &mut |_, _| {});
        prop_assert_eq!(compare(order, value, value), Ordering::Equal);
        let mut key = Vec::new();
        push_value(&mut key, value, order);
        prop_assert_eq!(skip_value(&key), Ok(key.len()));
    }

    /// A printed path reads as the same path.
    #[test]
    fn paths_round_trip(segments in prop::collection::vec(any_text(), 1..4)) {
        let path = Path::from_segments(segments).expect("not empty");
        prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
    }
}

/// A pattern over few names, so that patterns overlap.
fn any_pattern() -> impl Strategy<Value = PathPattern> {
    let segment = prop_oneof![3 => "[ab]", 1 => Just("[]".to_string())];
    let end = prop_oneof![Just("?"), Just("*")];
    (prop::collection::vec(segment, 0..4), end).prop_map(|(segments, end)| {
        let text: String = segments.iter().map(|segment| format!("/{segment}")).collect();
        PathPattern::parse(&format!("{text}/{end}")).expect("a pattern")
    })
}

fn any_steps() -> impl Strategy<Value = Vec<PathStep<'static>>> {
    let step =
        prop_oneof![Just(PathStep::Property("a")), Just(PathStep::Property("b")), Just(PathStep::Item)];
    prop::collection::vec(step, 1..6)
}

fn matches(pattern: &PathPattern, path: &[PathStep<'_>]) -> bool {
    let same = |(segment, step): (&PatternSegment, &PathStep<'_>)| match (segment, step) {
        (PatternSegment::Property(name), PathStep::Property(other)) => name == other,
        (PatternSegment::Item, PathStep::Item) => true,
        _ => false,
    };
    let covers = match pattern.kind() {
        PatternKind::Scalar => pattern.segments().len() == path.len(),
        PatternKind::Subtree => pattern.segments().len() <= path.len(),
    };
    covers && pattern.segments().iter().zip(path).all(same)
}

/// The rule as it is documented: the longest match wins, then `/?`, then exclusion.
fn decide_plainly(included: &[PathPattern], excluded: &[PathPattern], path: &[PathStep<'_>]) -> bool {
    let of = |patterns: &[PathPattern]| {
        let matching = patterns.iter().filter(|pattern| matches(pattern, path));
        matching.map(|pattern| (pattern.segments().len(), pattern.kind() == PatternKind::Scalar)).max()
    };
    of(included) > of(excluded)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The trie decides as the plain rule does, and never skips what it includes.
    #[test]
    fn rules_decide_like_the_plain_matcher(
        included in prop::collection::vec(any_pattern(), 0..5),
        excluded in prop::collection::vec(any_pattern(), 0..5),
        path in any_steps(),
    ) {
        let rules = PathRules::new(&included, &excluded);
        let decision = decide_plainly(&included, &excluded, &path);
        prop_assert_eq!(rules.decide(&path), decision);
        let mut cursor = rules.root();
        for step in &path {
            prop_assert!(!decision || cursor.may_include());
            cursor = match step {
                PathStep::Property(name) => cursor.property(name),
                PathStep::Item => cursor.item(),
            };
        }
        prop_assert!(!decision || cursor.may_include());
        prop_assert_eq!(cursor.includes_leaf(), decision);
    }
}

fn any_component() -> impl Strategy<Value = Component> {
    prop_oneof![
        Just(Component::Undefined),
        Just(Component::Null),
        any::<bool>().prop_map(Component::Bool),
        any::<f64>().prop_map(Component::Number),
        any::<String>().prop_map(Component::String),
    ]
}

fn any_definition() -> impl Strategy<Value = KeyDefinition> {
    let path = |name: &str| Path::parse(name).expect("a path");
    prop_oneof![
        Just(KeyDefinition { paths: vec![path("/a")], kind: KeyKind::Hash, version: 1 }),
        Just(KeyDefinition { paths: vec![path("/a")], kind: KeyKind::Hash, version: 2 }),
        Just(KeyDefinition { paths: vec![path("/a"), path("/b")], kind: KeyKind::MultiHash, version: 2 }),
    ]
}

proptest! {
    /// A key's slot is the last one whose bound is not above it, for real keys and for any bytes.
    #[test]
    fn slots_agree_with_their_bounds(
        definition in any_definition(),
        components in prop::collection::vec(any_component(), 0..3),
        slots in prop_oneof![1_u32..300, (0_u32..13).prop_map(|bits| 1 << bits)],
        foreign in prop::option::of(prop::collection::vec(any::<u8>(), 0..12)),
    ) {
        let bounds = definition.slot_bounds(slots);
        prop_assert_eq!(bounds.len(), slots as usize);
        prop_assert!(bounds.is_sorted_by(|a, b| a < b));
        let key = match foreign {
            Some(bytes) => Epk(bytes),
            None => definition.effective_key(&PartitionKey(components)),
        };
        let expected = bounds.partition_point(|bound| *bound <= key) - 1;
        prop_assert_eq!(definition.slot_of(&key, slots) as usize, expected);
        // A key just at a bound belongs to the slot that begins there.
        let at_bound = &bounds[expected];
        prop_assert_eq!(definition.slot_of(at_bound, slots) as usize, expected);
    }

    /// What is halved is cut between its ends, into parts as wide as each other or nearly so.
    #[test]
    fn halves_lie_within(
        definition in any_definition(),
        slots in 1_u32..50,
        turns in prop::collection::vec(any::<bool>(), 0..20),
    ) {
        let bounds = definition.slot_bounds(slots);
        let (mut start, mut end) = (bounds[0].clone(), bounds.get(1).cloned());
        for upper in turns {
            let Some(middle) = definition.middle(&start, end.as_ref()) else { break };
            prop_assert!(start < middle && end.as_ref().is_none_or(|end| middle < *end));
            let low = definition.width(&start, Some(&middle));
            let high = definition.width(&middle, end.as_ref());
            prop_assert!(low.abs_diff(high) <= 1);
            prop_assert_eq!(low + high, definition.width(&start, end.as_ref()));
            if upper { start = middle } else { end = Some(middle) }
        }
    }

    /// Hashes of random keys reach all slots alike: none is a dead corner of the space.
    #[test]
    fn keys_spread_over_the_slots(definition in any_definition(), seed in any::<u32>()) {
        let mut counts = [0; 4];
        for number in 0..400_u32 {
            let key = PartitionKey(vec![Component::String(format!("{seed}-{number}"))]);
            counts[definition.slot_of(&definition.effective_key(&key), 4) as usize] += 1;
        }
        prop_assert!(counts.iter().all(|count| *count > 40), "{:?}", counts);
    }

    /// Headers print as they parse, and hex likewise.
    #[test]
    fn partition_keys_round_trip(components in prop::collection::vec(any_component(), 0..4), bytes in any::<[u8; 9]>()) {
        let finite = components.iter().all(|c| !matches!(c, Component::Number(n) if !n.is_finite()));
        let key = PartitionKey(components);
        if finite {
            prop_assert_eq!(PartitionKey::parse_header(&key.to_json()), Ok(key));
        }
        let epk = Epk(bytes.to_vec());
        prop_assert_eq!(Epk::from_hex(&epk.to_hex()), Ok(epk));
    }
}
