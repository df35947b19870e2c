//! Random documents in the order of an index, or found by one with a collation: the same as gathered, sorted and looked through.

use bson::{Document, doc};
use mayfly_value::bson;
use proptest::prelude::*;

use crate::commands::Ours;
use crate::literal;

/// Values that stand close to each other in an order, or do not stand in an index as they are.
pub fn value() -> impl Strategy<Value = String> {
    const PLAIN: &str = "null; []; {}; 0; -0.0; 1; 1.5; NumberLong(1); NumberDecimal(\"1\"); NaN; \"\"; \"a\"; \"a\\u0000\"; \
        true; false; undefined; MinKey; MaxKey; {x: 1}; {x: null}; /a/; BinData(0, \"AA==\"); ISODate(0)";
    let plain = prop::sample::select(PLAIN.split("; ").collect::<Vec<_>>());
    let long = (600_usize..602, prop::sample::select(vec!["x", "y"]))
        .prop_map(|(length, end)| format!("\"{}{end}\"", "l".repeat(length)));
    let leaf = prop_oneof![6 => plain.prop_map(str::to_owned), 1 => long].boxed();
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            inner.prop_map(|value| format!("{{x: {value}}}")),
        ]
    })
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let field = || prop::option::weighted(0.8, value());
    let document = (field(), field());
    prop::collection::vec(document, 1..24).prop_map(|documents| {
        let parsed = documents.into_iter().enumerate().map(|(id, (a, b))| {
            let a = a.map(|value| format!(", a: {value}")).unwrap_or_default();
            let b = b.map(|value| format!(", b: {value}")).unwrap_or_default();
            let (document, _) = literal::parse(&format!("{{_id: {id}{a}{b}}}"));
            Document::try_from(document.as_document().unwrap().to_owned()).unwrap()
        });
        parsed.collect()
    })
}

fn ids(server: &Ours, find: &Document) -> Vec<i32> {
    let reply = server.command(find);
    let cursor = reply.get_document("cursor").unwrap_or_else(|_| panic!("{find} gave {reply}"));
    let batch = cursor.get_array("firstBatch").unwrap().iter();
    batch.map(|found| found.as_document().unwrap().get_i32("_id").unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn an_index_has_the_order_of_its_values(documents in documents(), limit in 0_i32..5) {
        let server = Ours::start();
        let index = |key: Document, name: &str| doc! { "key": key, "name": name };
        server.command(&doc! { "createIndexes": "c", "indexes": [
            index(doc! { "a": 1, "_id": 1 }, "a"), index(doc! { "a": 1, "b": -1, "_id": 1 }, "ab"),
            index(doc! { "a.x": 1, "_id": 1 }, "ax"), index(doc! { "k": 1, "b": 1, "_id": 1 }, "kb"),
        ] });
        for mut document in documents {
            // With two arrays it is in no index on both, and not in the collection.
            document.insert("k", 1);
            server.command(&doc! { "insert": "c", "documents": [document] });
        }
        let orders = [
            doc! { "a": 1, "_id": 1 }, doc! { "a": -1, "_id": -1 }, doc! { "a.x": 1, "_id": 1 }, doc! { "a.x": -1, "_id": -1 },
            doc! { "a": 1, "b": -1, "_id": 1 }, doc! { "a": -1, "b": 1, "_id": -1 }, doc! { "b": 1, "_id": 1 },
        ];
        for order in orders {
            let filter = if order.keys().next().unwrap() == "b" { doc! { "k": 1 } } else { doc! {} };
            let find = doc! { "find": "c", "filter": filter, "sort": order, "limit": limit, "skip": limit / 2 };
            let plan = server.command(&doc! { "explain": find.clone(), "verbosity": "queryPlanner" });
            prop_assert!(plan.to_string().contains("IXSCAN") && !plan.to_string().contains("SORT"), "{}", plan);
            let mut gathered = find.clone();
            gathered.insert("hint", doc! { "$natural": 1 });
            prop_assert_eq!(ids(&server, &find), ids(&server, &gathered), "{}", find);
        }
    }
    #[test]
    fn an_index_with_a_collation_leaves_nothing_out(
        documents in documents(),
        words in prop::collection::vec(prop::sample::select(vec!["a", "A", "á", "ab", "AB", "b", "10", "9", ""]), 2..10),
        strength in 1_i32..4,
    ) {
        let server = Ours::start();
        let collation = doc! { "locale": "en", "strength": strength, "numericOrdering": strength == 1 };
        server.command(&doc! { "createIndexes": "c", "indexes": [
            { "key": { "a": 1, "b": -1 }, "name": "ab", "collation": &collation },
            { "key": { "b": -1 }, "name": "b", "collation": &collation },
        ] });
        for document in documents {
            server.command(&doc! { "insert": "c", "documents": [document] });
        }
        for (id, two) in (100..).zip(words.windows(2)) {
            server.command(&doc! { "insert": "c", "documents": [{ "_id": id, "a": two[0], "b": [two[1], { "x": two[0] }] }] });
        }
        for word in words {
            let conditions = [
                doc! { "a": word }, doc! { "b": word }, doc! { "a": { "$gte": word } }, doc! { "b": { "$lt": word } },
                doc! { "a": word, "b": { "$gt": word } }, doc! { "b": { "x": word } }, doc! { "a": { "$in": [word, 1] } },
            ];
            for filter in conditions {
                let find = doc! { "find": "c", "filter": filter, "sort": { "_id": 1 }, "collation": &collation };
                let plan = server.command(&doc! { "explain": find.clone(), "verbosity": "queryPlanner" });
                prop_assert!(plan.to_string().contains("IXSCAN"), "{}", plan);
                let mut gathered = find.clone();
                gathered.insert("hint", doc! { "$natural": 1 });
                prop_assert_eq!(ids(&server, &find), ids(&server, &gathered), "{}", find);
            }
        }
    }
}
