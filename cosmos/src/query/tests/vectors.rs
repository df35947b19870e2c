//! Searches by a vector index give the rows of a comparison with all vectors: the same, in the same order.

use mayfly_engine::{DefaultTtl, HashRange};
use mayfly_testkit::world::{Backend, World, definition};
use serde_json::{Value as Json, json};

use super::{
    Asked, cases, delete,
    made::{Dice, put},
};
use crate::query::{
    access, execute::Execution, explain::explain, index_metrics::IndexMetrics, request::Request, token::Token,
};

async fn container(world: &World) {
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Never);
    definition.indexing.vectors = vec!["/v".into(), "/n/v".into()];
    let policy = json!({ "vectorEmbeddings": [
        { "path": "/v", "distanceFunction": "cosine" }, { "path": "/n/v", "distanceFunction": "euclidean" }
    ] });
    definition.others.insert("vectorEmbeddingPolicy".into(), policy);
    world.create_container_in_slots(definition, 2).await.unwrap();
}

fn a_vector(dice: &mut Dice) -> Json {
    let number = |dice: &mut Dice| dice.roll(2001) as f64 / 100.0 - 10.0;
    match dice.roll(20) {
        0 => json!(null),
        1 => json!([1, "x", 2]),
        2 => json!([0, 0, 0]),
        3 => json!([1, 2]),
        4 => json!([1e200, 1, 2]),
        5 => json!([1, 2, 3]),
        _ => json!([number(dice), number(dice), number(dice)]),
    }
}

fn a_document(dice: &mut Dice, n: u64) -> Json {
    let mut body = json!({
        "id": format!("d{n:03}"),
        "p": format!("p{}", dice.roll(4)),
        "b": dice.roll(4),
        "v": a_vector(dice),
    });
    if dice.roll(3) > 0 {
        body["n"] = json!({ "v": a_vector(dice) });
    }
    if dice.roll(4) == 0 {
        body["ttl"] = json!(1 + dice.roll(30));
    }
    body
}

/// A search, the same one without the index, and what the distances of its rows are.
struct Searches {
    by_index: String,
    by_all: String,
    distances: String,
}

fn a_search(dice: &mut Dice) -> Searches {
    let path = dice.one(&["c.v", "c.v", "c.n.v"]);
    let target = dice.one(&["[1, 2, 3]", "[-5, 0.5, 9]", "[0, 0, 1]", "[0, 0, 0]", "[1, 2]"]);
    let options = dice.one(&[
        "",
        "",
        ", {\"distanceFunction\": \"euclidean\"}",
        ", {\"distanceFunction\": \"dotproduct\"}",
        ", {\"distanceFunction\": \"manhattan\"}",
    ]);
    let filter =
        dice.one(&["", "", " WHERE c.b > 1", " WHERE c.b = 9", " WHERE c.b % 2 = 0", " WHERE c._ts > 1005"]);
    // The last two are what rewritten queries have.
    let (function, direction) = dice.one(&[
        &("VectorDistance", ""),
        &("VectorDistance", ""),
        &("VectorDistance", ""),
        &("_VectorScore", ""),
        &("_VectorScore", " DESC"),
    ]);
    let (a, b) = if dice.roll(8) == 0 { (target, path) } else { (path, target) };
    let distance = |brute: &str| format!("{function}({a}, {b}, {brute}{options})");
    let n = 1 + dice.roll(20);
    let (top, limit) = match dice.roll(4) {
        0 => (String::new(), String::new()),
        1 => (String::new(), format!(" OFFSET {} LIMIT {n}", dice.roll(6))),
        _ => (format!("TOP {n} "), String::new()),
    };
    let what = dice.one(&["c.id", "c.id, c._ts", "VALUE c.n.v", "*"]);
    let text = |what: &str, brute: &str| {
        format!("SELECT {top}{what} FROM c{filter} ORDER BY {}{direction}{limit}", distance(brute))
    };
    let told = format!("VALUE {} ?? 'none'", distance("false"));
    Searches { by_index: text(what, "false"), by_all: text(what, "true"), distances: text(&told, "false") }
}

#[tokio::test]
async fn searches_by_vectors_give_the_answer_of_a_full_scan() {
    let mut used = 0;
    for seed in 0..cases() {
        let mut dice = Dice(seed ^ 0x7EC7);
        let world = World::new(Backend::Mirrored).await;
        container(&world).await;
        for n in 0..60 {
            put(&world, &a_document(&mut dice, n)).await;
            world.advance(u64::from(dice.roll(5) == 0));
        }
        for round in 0..20 {
            world.advance(dice.roll(3) / 2);
            match (round, dice.roll(4)) {
                (10, _) => {
                    let exclude = |definition: &mut mayfly_engine::ContainerDefinition| {
                        definition.indexing.excluded.push("/b/?".into());
                    };
                    world.change("c", exclude).await.unwrap();
                }
                (_, 0) => {
                    world.engine().build_indexes().await.unwrap();
                    world.purge().await.unwrap();
                }
                (_, 1) => {
                    let n = dice.roll(70);
                    if dice.roll(3) == 0 {
                        delete(&world, n).await;
                    }
                    put(&world, &a_document(&mut dice, n)).await;
                }
                _ => {}
            }
            let Searches { by_index, by_all, distances } = a_search(&mut dice);
            let rows_max = 1 + dice.roll(25) as usize;
            let what = format!("seed {seed}, pages of {rows_max}: {by_index}");
            let asked = Asked::new(&world, &by_index).await;
            let expected = Asked::new(&world, &by_all).await.pages(1000).await.unwrap();
            assert_eq!(asked.pages(rows_max).await.unwrap(), expected, "{what}");
            // Rows that are equally near may come in any order.
            let told = Asked::new(&world, &distances).await;
            assert_eq!(told.pages(rows_max).await.unwrap(), told.naive().await, "{what}");
            let (engine, plan, whole) = (world.engine(), &asked.request.plan, HashRange::all());
            let chosen =
                access::choose(engine, &asked.container, plan, &whole, None, asked.now).await.unwrap();
            used += usize::from(chosen.by_vector.is_some());
        }
        world.must_be_clean().await;
    }
    // Otherwise nothing was compared with anything.
    assert!(used > cases() as usize * 5, "{used} searches by vectors");
}

/// Makes `count` documents with vectors of 16 numbers, and in every tenth something else.
async fn many(world: &World, count: u64) {
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Never);
    definition.indexing.vectors = vec!["/v".into()];
    definition.indexing.texts = vec!["/t".into()];
    definition.indexing.excluded = vec!["/v/*".into()];
    definition.others.insert(
        "vectorEmbeddingPolicy".into(),
        json!({ "vectorEmbeddings": [
            { "path": "/v", "dataType": "float32", "distanceFunction": "euclidean", "dimensions": 16 },
        ] }),
    );
    world.create_container_in_slots(definition, 2).await.unwrap();
    let mut dice = Dice(7);
    for n in 0..count {
        let vector: Vec<f64> = (0..16).map(|_| dice.roll(2001) as f64 / 1000.0 - 1.0).collect();
        let vector = if n % 10 == 9 { json!([n]) } else { json!(vector) };
        let (p, kind) = (format!("p{}", n % 3), if n % 5 == 0 { "rare" } else { "common" });
        let mut body = json!({ "id": format!("d{n}"), "p": p, "kind": kind, "v": vector, "n": n, "t": format!("word{}", n % 5) });
        if n % 4 == 0 {
            body["ttl"] = json!(100);
        }
        put(world, &body).await;
    }
}

/// The rows of a query, and how many documents were looked at.
async fn rows(world: &World, text: &str) -> (Vec<String>, usize) {
    let (container, now) = (world.must_container("c"), world.now().await);
    let body = json!({ "query": text }).to_string();
    let request = Request::of_items(body.as_bytes(), &container).unwrap();
    let (scope, _) = access::narrowed(&container, request.plan.hints(), HashRange::all());
    let execution = Execution::over(world.engine(), &container, &request, scope, 1000, now);
    let page = execution.page(Token::default()).await.unwrap();
    assert!(page.next.is_none(), "{text}");
    (page.rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()).collect(), page.scanned)
}

/// Distances that grow are sorted upwards, and what is undefined comes before every number: as in the
/// service, where no index lists the vectors. With DISTINCT, too.
#[tokio::test]
async fn what_has_no_euclidean_distance_comes_first_where_no_index_lists_the_vectors() {
    let world = World::new(Backend::Memory).await;
    world.create_container(definition("c", "/p")).await.unwrap();
    for (id, v, key) in [
        ("a", json!([0, 0.5]), 0),
        ("b", json!([3, 4]), 1),
        ("c", json!(null), 2),
        ("d", json!([1]), 2),
        ("e", json!([1, 1]), 0),
    ] {
        put(&world, &json!({ "id": id, "p": "x", "v": v, "key": key })).await;
    }
    let euclidean = "VectorDistance(c.v, [0, 0], true, {distanceFunction: 'Euclidean'})";
    let cosine = "VectorDistance(c.v, [1, 0], true, {distanceFunction: 'Cosine'})";
    let dot = "VectorDistance(c.v, [1, 0], true, {distanceFunction: 'DotProduct'})";
    for (what, by, expected) in [
        ("VALUE c.id", euclidean, vec!["\"c\"", "\"d\"", "\"a\"", "\"e\"", "\"b\""]),
        ("TOP 3 VALUE c.id", euclidean, vec!["\"c\"", "\"d\"", "\"a\""]),
        ("DISTINCT TOP 10 VALUE c.key", euclidean, vec!["2", "0", "1"]),
        ("VALUE c.id", cosine, vec!["\"e\"", "\"b\"", "\"a\"", "\"c\"", "\"d\""]),
        ("VALUE c.id", dot, vec!["\"b\"", "\"e\"", "\"a\"", "\"c\"", "\"d\""]),
        ("DISTINCT TOP 10 VALUE c.key", dot, vec!["1", "0", "2"]),
    ] {
        let asked = Asked::new(&world, &format!("SELECT {what} FROM c ORDER BY {by}")).await;
        for rows_max in [1, 2, 1000] {
            assert_eq!(asked.pages(rows_max).await.unwrap(), expected, "{what}, {by}, pages of {rows_max}");
        }
    }
}

/// An explanation says which index is asked, and when none is.
#[tokio::test]
async fn explanations_name_the_index() {
    let world = World::new(Backend::Mirrored).await;
    many(&world, 3).await;
    let container = world.must_container("c");
    for (distance, indexes, access) in [
        ("VectorDistance(c.v, [1, 2])", json!(["/v"]), "index"),
        ("RANK VectorDistance(c.v, [1, 2])", json!(["/v"]), "index"),
        ("VectorDistance(c.v, [1, 2], true)", json!([]), "scan"),
        ("VectorDistance(c.w, [1, 2])", json!([]), "scan"),
    ] {
        let body = json!({ "query": format!("SELECT TOP 5 c.id FROM c ORDER BY {distance}") }).to_string();
        let now = world.now().await;
        let told = explain(world.engine(), &container, body.as_bytes(), now).await.unwrap();
        assert_eq!((&told["vectorIndexes"], &told["access"]), (&indexes, &json!(access)), "{distance}");
        let request = Request::of_items(body.as_bytes(), &container).unwrap();
        let used =
            IndexMetrics::of(&container, &request.plan, false).to_json()["UtilizedIndexes"].to_string();
        assert_eq!(used.contains("/v"), access == "index", "{distance}: {used}");
    }
}

/// The index is asked where there are many documents, also behind a condition, by the distance of the policy;
/// and where the filter refuses the nearest, the others are found all the same.
#[tokio::test]
async fn few_of_many_documents_are_read() {
    let world = World::new(Backend::Mirrored).await;
    let count = 1300;
    many(&world, count).await;
    let vector = json!([0.5, 0.1, -0.9, 0.3, 0.2, 0.7, -0.2, 0.0, 0.5, 0.5, -0.5, 0.1, 0.9, -0.7, 0.4, 0.2]);
    let near = |more: &str| format!("VectorDistance(c.v, {vector}{more})");
    // What is asked, and how many documents may be looked at.
    let cases = [
        ("SELECT TOP 10 c.id FROM c ORDER BY NEAR", 100),
        ("SELECT c.id FROM c ORDER BY NEAR OFFSET 20 LIMIT 10", 150),
        ("SELECT TOP 10 c.id FROM c WHERE c.kind = 'common' ORDER BY NEAR", 200),
        ("SELECT TOP 10 c.id FROM c WHERE c.n < 50 ORDER BY NEAR", 50),
        ("SELECT TOP 10 c.id FROM c WHERE c.kind = 'common' AND c.n % 200 = 1 ORDER BY NEAR", count as usize),
        ("SELECT TOP 10 c.id FROM c WHERE c.p = 'p1' AND c._ts > 0 ORDER BY NEAR", 500),
        ("SELECT TOP 10 c.id, VectorDistance(c.v, [1, 2], true) AS d FROM c ORDER BY NEAR", 100),
        ("SELECT c.id FROM c WHERE c.n < 900 ORDER BY NEAR", 900),
        ("SELECT TOP 10 c.id FROM c ORDER BY RANK NEAR", 100),
        ("SELECT TOP 10 c.id FROM c ORDER BY RANK RRF(NEAR, FullTextScore(c.t, 'word3'))", 600),
        (
            "SELECT TOP 10 c.id FROM c WHERE c.n % 100 = 1 ORDER BY RANK RRF(NEAR, FullTextScore(c.t, 'word3'))",
            count as usize,
        ),
    ];
    for expired in [false, true] {
        for (text, most) in cases {
            for more in
                ["", ", false, {'distanceFunction': 'cosine'}", ", false, {'distanceFunction': 'dotproduct'}"]
            {
                let all = if more.is_empty() { ", true".to_owned() } else { more.replace("false", "true") };
                let (found, scanned) = rows(&world, &text.replace("NEAR", &near(more))).await;
                let (expected, _) = rows(&world, &text.replace("NEAR", &near(&all))).await;
                assert_eq!(found, expected, "{text} {more}");
                assert!(!found.is_empty() && scanned <= most, "{text} {more}: {scanned} documents looked at");
            }
        }
        if !expired {
            world.advance(100);
        }
    }
}
