//! Random searches by indexes of words, places and all paths: what they find is what a look at every document finds.

use bson::{Bson, Document, doc};
use mayfly_value::bson;
use proptest::prelude::*;

use crate::commands::Ours;
use crate::literal;
use crate::orders::value;

fn parsed(text: &str) -> Document {
    let (document, _) = literal::parse(text);
    Document::try_from(document.as_document().unwrap().to_owned()).unwrap()
}

/// A server whose collection has an index and those of the documents that can be in it.
fn server(index: Document, documents: &[Document]) -> Ours {
    let server = Ours::start();
    let made = server.command(&doc! { "createIndexes": "c", "indexes": [index] });
    assert_eq!(made.get_f64("ok").ok(), Some(1.0), "{made}");
    let insert = doc! { "insert": "c", "documents": documents.to_vec(), "ordered": false };
    server.command(&insert);
    server
}

fn ids(server: &Ours, find: &Document) -> Vec<String> {
    let reply = server.command(find);
    let cursor = reply.get_document("cursor").unwrap_or_else(|_| panic!("{find} gave {reply}"));
    let batch = cursor.get_array("firstBatch").unwrap().iter();
    let mut ids: Vec<_> = batch.map(|found| found.as_document().unwrap()["_id"].to_string()).collect();
    ids.sort();
    ids
}

fn find(filter: Document) -> Document {
    doc! { "find": "c", "filter": filter, "projection": { "_id": 1 }, "batchSize": 1000 }
}

fn is_narrowed(server: &Ours, find: &Document) -> bool {
    let plan = server.command(&doc! { "explain": find.clone(), "verbosity": "queryPlanner" });
    !plan.to_string().contains("COLLSCAN")
}

/// Longitude and latitude, often near the date line or a pole.
fn point() -> impl Strategy<Value = [f64; 2]> {
    let near = |edge: f64| prop_oneof![-edge..edge, (edge - 3.0)..=edge, -edge..=(3.0 - edge)];
    (near(180.0), near(90.0)).prop_map(|(longitude, latitude)| [longitude, latitude])
}

fn place() -> impl Strategy<Value = Bson> {
    let shape =
        |kind: &str, coordinates: Bson| Bson::Document(doc! { "type": kind, "coordinates": coordinates });
    let list =
        |points: Vec<[f64; 2]>| Bson::Array(points.into_iter().map(|p| Bson::from(p.to_vec())).collect());
    prop_oneof![
        3 => point().prop_map(move |p| shape("Point", Bson::from(p.to_vec()))),
        1 => (point(), 0.1..20.0).prop_map(move |(p, size)| shape("LineString", list(near(p, size)))),
        1 => (point(), 0.1..20.0).prop_map(move |(p, size)| {
            let mut ring = near(p, size);
            ring.push(ring[0]);
            shape("Polygon", Bson::Array(vec![list(ring)]))
        }),
    ]
}

/// A triangle around a point, kept on the sphere.
fn near([longitude, latitude]: [f64; 2], size: f64) -> Vec<[f64; 2]> {
    let on = |x: f64, y: f64| [(x + 540.0).rem_euclid(360.0) - 180.0, y.clamp(-89.9, 89.9)];
    vec![
        on(longitude - size, latitude - size / 2.0),
        on(longitude + size, latitude - size / 3.0),
        on(longitude, latitude + size / 2.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn all_paths(values in prop::collection::vec((value(), value()), 1..20), wanted in prop::collection::vec(value(), 4)) {
        let documents: Vec<_> = values.iter().enumerate()
            .map(|(id, (a, b))| parsed(&format!("{{_id: {id}, a: {a}, b: {{c: {b}}}}}"))).collect();
        let server = server(doc! { "key": { "$**": 1 }, "name": "all" }, &documents);
        let mut narrowed = 0;
        for wanted in wanted {
            for filter in [
                format!("{{a: {{$eq: {wanted}}}}}"), format!("{{a: {{$gte: {wanted}}}}}"), format!("{{'a.x': {{$lt: {wanted}}}}}"),
                format!("{{'b.c': {{$in: [{wanted}, 1]}}}}"), "{'b.c.x': {$exists: true}}".into(),
            ] {
                // What cannot be asked for is refused either way.
                if wanted.contains("undefined") || wanted.contains('/') && filter.contains("$gte") {
                    continue;
                }
                let narrow = find(parsed(&filter));
                let mut wide = narrow.clone();
                wide.insert("hint", doc! { "$natural": 1 });
                if server.command(&wide).get_f64("ok").ok() != Some(1.0) {
                    continue;
                }
                narrowed += usize::from(is_narrowed(&server, &narrow));
                prop_assert_eq!(ids(&server, &narrow), ids(&server, &wide), "{}", filter);
            }
        }
        prop_assert!(narrowed > 0);
    }

    #[test]
    fn places(places in prop::collection::vec(place(), 1..30), regions in prop::collection::vec((place(), point(), 1e3..3e6_f64), 4)) {
        let documents: Vec<_> = places.into_iter().enumerate().map(|(id, at)| doc! { "_id": id as i32, "at": at }).collect();
        let server = server(doc! { "key": { "at": "2dsphere" }, "name": "at" }, &documents);
        for (region, centre, metres) in regions {
            let point = doc! { "type": "Point", "coordinates": centre.to_vec() };
            let circle = doc! { "$centerSphere": [centre.to_vec(), metres / 6_378_100.0] };
            for filter in [
                doc! { "at": { "$geoIntersects": { "$geometry": region } } }, doc! { "at": { "$geoWithin": circle } },
                doc! { "at": { "$near": { "$geometry": point, "$maxDistance": metres } } },
            ] {
                let narrow = find(filter);
                let mut wide = narrow.clone();
                wide.insert("hint", doc! { "$natural": 1 });
                prop_assert_eq!(ids(&server, &narrow), ids(&server, &wide), "{}", narrow);
                prop_assert!(is_narrowed(&server, &narrow), "{}", narrow);
            }
        }
    }

    #[test]
    fn words(texts in prop::collection::vec("[a-cA-Cé ]{0,12}", 1..20), searches in prop::collection::vec("[a-cA-Cé\" -]{0,8}", 6)) {
        let documents: Vec<_> = texts.iter().enumerate().map(|(id, text)| doc! { "_id": id as i32, "t": text }).collect();
        let server = server(doc! { "key": { "t": "text" }, "name": "t", "default_language": "none" }, &documents);
        for search in searches {
            for cased in [false, true] {
                let text = doc! { "$text": { "$search": &search, "$caseSensitive": cased, "$diacriticSensitive": cased } };
                // Beside another branch it is asked of every document.
                let wide = find(doc! { "$or": [text.clone(), { "_id": -1 }] });
                prop_assert_eq!(ids(&server, &find(text)), ids(&server, &wide), "{}", search);
            }
        }
    }
}
