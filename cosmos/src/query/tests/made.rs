//! What the tests of queries are about, from a seed: containers, documents, queries.

use std::sync::Arc;

use mayfly_engine::{CompositePath, Container, Operation};
use mayfly_testkit::world::{World, definition, document, id_of, partition_key};
use serde_json::{Value as Json, json};

/// A source of choices.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.roll(of.len() as u64) as usize]
    }
}

pub const POLICIES: usize = 5;

/// A container with one of several indexing policies and so many slots.
pub async fn container(world: &World, policy: usize, slots: u32) -> Arc<Container> {
    let mut definition = definition("c", "/p");
    let path = |path: &str, descending| CompositePath { path: path.into(), descending };
    let indexing = &mut definition.indexing;
    match policy {
        0 => {}
        1 => indexing.excluded.push("/a/?".into()),
        2 => indexing.mode = mayfly_engine::IndexingMode::Lazy,
        3 => {
            (indexing.mode, indexing.automatic) = (mayfly_engine::IndexingMode::None, false);
        }
        _ => indexing.excluded.push("/tags/*".into()),
    }
    if policy != 3 {
        indexing.composites = vec![
            vec![path("/a", false), path("/b", false)],
            vec![path("/b", true), path("/s", false)],
            vec![path("/s", false), path("/b", true), path("/n/x", false)],
        ];
        definition.default_ttl = Some(mayfly_engine::DefaultTtl::Never);
    }
    world.create_container_in_slots(definition, slots).await.unwrap()
}

fn a_value(dice: &mut Dice) -> Json {
    match dice.roll(14) {
        0 => json!(null),
        1 => json!(true),
        2 => json!(false),
        3 => json!("x"),
        4 => json!("xy"),
        5 => json!([1, "x"]),
        6 => json!({ "x": 1 }),
        7 => json!(9_007_199_254_740_993_i64 + dice.roll(3) as i64),
        8 => json!("x".repeat(511 + dice.roll(3) as usize) + dice.one(&["a", "b"])),
        9 => json!(1.5),
        n => json!(n as i64 - 11),
    }
}

/// A document. The tame ones have all properties, with plain values, so that their index covers them.
pub fn a_document(dice: &mut Dice, n: u64, tame: bool) -> Json {
    let mut body = json!({
        "id": format!("d{n:03}"),
        "p": format!("p{}", dice.roll(3)),
        "b": dice.roll(6),
        "s": dice.one(&["red", "green", "blue", "re", ""]),
        "n": { "x": dice.roll(4) },
        "tags": [dice.one(&["u", "v"]), dice.roll(3)],
        "a": if tame { json!(dice.roll(5)) } else { a_value(dice) },
    });
    if !tame {
        let object = body.as_object_mut().unwrap();
        for name in ["a", "b", "s", "n", "tags"] {
            if dice.roll(8) == 0 {
                object.remove(name);
            }
        }
    }
    if dice.roll(4) == 0 {
        body["ttl"] = json!(1 + dice.roll(20));
    }
    body
}

pub async fn put(world: &World, body: &Json) {
    let key = partition_key(&body["p"].to_string());
    let body = document(&body.to_string());
    world.write("c", &key, Operation::Upsert { id: id_of(&body), body, if_match: None }).await.unwrap();
}

fn a_condition(dice: &mut Dice) -> String {
    let n = dice.roll(5);
    match dice.roll(28) {
        0 => format!("c.b = {n}"),
        1 => format!("c.b > {n}"),
        2 => format!("c.b <= {n}"),
        3 => format!("c.a >= {n} AND c.a < {}", n + 2),
        4 => format!("c.a IN ({n}, 1, \"x\", null)"),
        5 => format!("(c.b = {n} OR c.b > 3)"),
        6 => format!("STARTSWITH(c.s, \"{}\")", dice.one(&["re", "r", "green", ""])),
        7 => format!("c.s = \"{}\"", dice.one(&["red", "blue"])),
        8 => "ARRAY_CONTAINS(c.tags, \"u\")".into(),
        9 => format!("c.n.x BETWEEN 1 AND {n}"),
        10 => "c.a".into(),
        11 => "NOT c.a".into(),
        12 => format!("c.a != {n}"),
        13 => "IS_DEFINED(c.a)".into(),
        14 => dice.one(&["IS_STRING(c.a)", "IS_NUMBER(c.a)", "IS_NULL(c.a)", "IS_BOOL(c.a)"]).to_owned(),
        15 => format!("c.p = \"p{}\"", n % 3),
        16 => "c.a > 9007199254740992".into(),
        17 => format!("STARTSWITH(c.a, \"{}\")", "x".repeat(512)),
        20 => format!("c.b >= {n} AND c.b < {}", n + 2),
        21 => format!("CONTAINS(c.s, \"{}\")", dice.one(&["e", "ee", "red", ""])),
        22 => format!("ENDSWITH(c.{}, \"{}\")", dice.one(&["s", "a"]), dice.one(&["d", "e", "x"])),
        23 => format!("c.s LIKE \"%{}%\"", dice.one(&["r", "lu", "_d"])),
        24 => format!("REGEXMATCH(c.{}, \"{}\", \"i\")", dice.one(&["s", "a"]), dice.one(&["^R", "x$"])),
        25 => format!("STARTSWITH(c.s, \"{}\", true)", dice.one(&["RE", "G", ""])),
        26 => format!("c.{} != {}", dice.one(&["a", "b", "s"]), dice.one(&["null", "true", "\"red\"", "3"])),
        27 => dice
            .one(&["IS_PRIMITIVE(c.a)", "IS_DEFINED(c.b)", "NOT IS_DEFINED(c.b)", "c.b % 2 = 0"])
            .to_owned(),
        18 => format!("c._ts > {}", mayfly_testkit::world::START + 8),
        _ => "(c.b = 1 OR c.s = \"red\")".into(),
    }
}

fn a_filter(dice: &mut Dice) -> String {
    match dice.roll(4) {
        0 => String::new(),
        1 | 2 => format!(" WHERE {}", a_condition(dice)),
        _ => format!(" WHERE {} AND {}", a_condition(dice), a_condition(dice)),
    }
}

/// A query, and whether its rows have an order.
pub fn a_query(dice: &mut Dice) -> (String, bool) {
    let filter = a_filter(dice);
    if dice.roll(2) == 0 {
        let order = dice.one(&[
            "c.b",
            "c.b DESC",
            "c.a",
            "c.a DESC",
            "c.s",
            "c._ts",
            "c._ts DESC",
            "c.id DESC",
            "c.n.x",
            "c.a, c.b",
            "c.a DESC, c.b DESC",
            "c.b DESC, c.s",
            "c.b, c.s DESC",
            "c.s, c.b DESC, c.n.x",
            "c.missing",
        ]);
        let keys: Vec<_> = order.split(", ").map(|key| key.trim_end_matches(" DESC")).collect();
        let keys: Vec<_> = keys.iter().enumerate().map(|(n, key)| format!("\"k{n}\": {key}")).collect();
        let select = match dice.roll(3) {
            0 => format!("SELECT VALUE {{{}}}", keys.join(", ")),
            1 => format!("SELECT TOP {} VALUE {{{}}}", 1 + dice.roll(9), keys.join(", ")),
            _ => format!("SELECT VALUE {{{}, \"id\": c.id}}", keys.join(", ")),
        };
        let limit = match dice.roll(3) {
            0 if !select.contains("TOP") => format!(" OFFSET {} LIMIT {}", dice.roll(5), dice.roll(12)),
            _ => String::new(),
        };
        return (format!("{select} FROM c{filter} ORDER BY {order}{limit}"), true);
    }
    let text = match dice.roll(13) {
        0 => format!("SELECT * FROM c{filter}"),
        1 => format!("SELECT VALUE COUNT(1) FROM c{filter}"),
        2 => format!("SELECT VALUE {}(c.b) FROM c{filter}", dice.one(&["MIN", "MAX", "SUM", "AVG"])),
        3 => format!("SELECT VALUE {}(c.a) FROM c{filter}", dice.one(&["MIN", "MAX", "COUNT"])),
        4 => format!("SELECT DISTINCT VALUE c.{} FROM c{filter}", dice.one(&["a", "b", "s"])),
        5 => format!("SELECT VALUE c.{} FROM c{filter}", dice.one(&["a", "b", "s"])),
        6 => format!("SELECT c.b, COUNT(1) AS n FROM c{filter} GROUP BY c.b"),
        7 => format!("SELECT c.a, c.s, MAX(c.b) AS m FROM c{filter} GROUP BY c.a, c.s"),
        8 => format!("SELECT c.id, t FROM c JOIN t IN c.tags{filter}"),
        9 => format!("SELECT c.b FROM c{filter}"),
        10 => format!("SELECT DISTINCT c.b, c.n FROM c{filter}"),
        11 => format!("SELECT COUNT(1) AS n, MIN(c.b) AS low FROM c{filter}"),
        _ => "SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = \"u\")"
            .to_owned(),
    };
    (text, false)
}
