//! Searches by a full-text index give the rows of a run that reads every text: the same, in the same order.

use mayfly_engine::{Access, DefaultTtl, HashRange};
use mayfly_testkit::world::{Backend, World, definition};
use mayfly_value::text::Language;
use serde_json::{Value as Json, json};

use super::{
    Asked, cases,
    made::{Dice, put},
};
use crate::query::access;

/// Some are alike, or say nothing, in one of the two languages.
const WORDS: [&str; 15] = [
    "red", "reds", "car", "cars", "bicycle", "blue", "boat", "the", "of", "running", "runs", "don't", "und",
    "rede", "reden",
];

async fn container(world: &World, lazy: bool) {
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Never);
    definition.indexing.texts = vec!["/t".into(), "/n/t".into()];
    definition.indexing.languages.by_path.insert("/n/t".into(), Language::German);
    definition.indexing.vectors = vec!["/v".into()];
    if lazy {
        definition.indexing.mode = mayfly_engine::IndexingMode::Lazy;
    }
    world.create_container_in_slots(definition, 2).await.unwrap();
}

fn a_text(dice: &mut Dice) -> Json {
    match dice.roll(12) {
        0 => json!(null),
        1 => json!(["red"]),
        2 => json!(""),
        _ => {
            let words = 1 + dice.roll(9);
            let words: Vec<&str> = (0..words).map(|_| dice.one(&WORDS)).collect();
            json!(words.join(" "))
        }
    }
}

fn a_document(dice: &mut Dice, n: u64) -> Json {
    let mut body = json!({
        "id": format!("d{n:03}"),
        "p": format!("p{}", dice.roll(4)),
        "b": dice.roll(4),
        "v": [dice.roll(5), dice.roll(5)],
    });
    if dice.roll(10) > 0 {
        body["t"] = a_text(dice);
    }
    if dice.roll(3) > 0 {
        body["n"] = json!({ "t": a_text(dice) });
    }
    if dice.roll(4) == 0 {
        body["ttl"] = json!(1 + dice.roll(30));
    }
    body
}

fn a_path(dice: &mut Dice) -> &'static str {
    dice.one(&["c.t", "c.t", "c.n.t"])
}

fn a_term(dice: &mut Dice) -> String {
    let word = |dice: &mut Dice| dice.one(&WORDS);
    match dice.roll(8) {
        0 => format!("\"{} {}\"", word(dice), word(dice)),
        1 => format!("\"{} {} {}\"", word(dice), word(dice), word(dice)),
        2 => "\"nowhere\"".to_owned(),
        3 if dice.roll(4) == 0 => "{\"term\": \"rad\", \"distance\": 1}".to_owned(),
        _ => format!("\"{}\"", word(dice)),
    }
}

fn some_terms(dice: &mut Dice) -> String {
    let terms: Vec<String> = (0..1 + dice.roll(3)).map(|_| a_term(dice)).collect();
    terms.join(", ")
}

fn a_filter(dice: &mut Dice) -> String {
    match dice.roll(6) {
        0 => " WHERE c.b > 1".to_owned(),
        1 => " WHERE c.b = 9".to_owned(),
        2 => format!(" WHERE FullTextContains(c.t, {})", a_term(dice)),
        3 => " WHERE c._ts > 1005".to_owned(),
        _ => String::new(),
    }
}

fn a_score(dice: &mut Dice) -> String {
    match dice.roll(6) {
        0 => "VectorDistance(c.v, [1, 2])".to_owned(),
        1 if dice.roll(2) == 0 => {
            "VectorDistance(c.v, [3, 1], false, {\"distanceFunction\": \"euclidean\"})".to_owned()
        }
        1 => format!("FullTextScore({}, [{}])", a_path(dice), some_terms(dice)),
        _ => format!("FullTextScore({}, {})", a_path(dice), some_terms(dice)),
    }
}

fn a_ranking(dice: &mut Dice) -> String {
    let rank = match dice.roll(3) {
        0 => {
            let scores = format!("{}, {}", a_score(dice), a_score(dice));
            let weights = dice.one(&["", "", ", [2, 1]", ", [1, -1]"]);
            format!("RRF({scores}{weights})")
        }
        _ => a_score(dice),
    };
    let filter = a_filter(dice);
    let n = 1 + dice.roll(12);
    match dice.roll(6) {
        0 => format!("SELECT c.id FROM c{filter} ORDER BY RANK {rank}"),
        1 => {
            format!("SELECT c.id, c.b FROM c{filter} ORDER BY RANK {rank} OFFSET {} LIMIT {n}", dice.roll(6))
        }
        2 => format!("SELECT TOP {n} VALUE c.n.t FROM c{filter} ORDER BY RANK {rank}"),
        3 => format!("SELECT DISTINCT TOP {n} VALUE c.b FROM c{filter} ORDER BY RANK {rank}"),
        _ => format!("SELECT TOP {n} c.id, c._ts FROM c{filter} ORDER BY RANK {rank}"),
    }
}

fn a_search(dice: &mut Dice) -> String {
    let function = dice.one(&["FullTextContains", "FullTextContainsAll", "FullTextContainsAny"]);
    let terms = if function == "FullTextContains" { a_term(dice) } else { some_terms(dice) };
    let more = match dice.roll(5) {
        0 => " AND c.b > 0".to_owned(),
        1 => format!(" AND FullTextContainsAny({}, {})", a_path(dice), some_terms(dice)),
        2 => " AND c.p = 'p1'".to_owned(),
        _ => String::new(),
    };
    let what = dice.one(&["c.id", "VALUE COUNT(1)", "c.b, COUNT(1) AS n"]);
    let group = if what.starts_with("c.b") { " GROUP BY c.b" } else { "" };
    format!("SELECT {what} FROM c WHERE {function}({}, {terms}){more}{group}", a_path(dice))
}

/// Whether a full-text index has a part in the answer.
async fn by_words(asked: &Asked<'_>) -> bool {
    let (engine, plan) = (asked.world.engine(), &asked.request.plan);
    let (scope, _) = access::narrowed(&asked.container, plan.hints(), HashRange::all());
    let plan = access::choose(engine, &asked.container, plan, &scope, None, asked.now).await.unwrap();
    let is_searched = !plan.indexes.texts.is_empty() || !plan.indexes.vectors.is_empty();
    assert_eq!(plan.ranks.is_some(), is_searched && !matches!(plan.access, Access::Index(_)));
    !plan.indexes.texts.is_empty()
}

#[tokio::test]
async fn searches_by_words_give_the_answer_of_a_full_scan() {
    let (mut searches, mut rankings) = (0, 0);
    for seed in 0..cases() {
        let mut dice = Dice(seed ^ 0x7E87);
        let world = World::new(Backend::Mirrored).await;
        container(&world, seed % 5 == 4).await;
        for n in 0..50 {
            put(&world, &a_document(&mut dice, n)).await;
            world.advance(u64::from(dice.roll(5) == 0));
        }
        for round in 0..25 {
            world.advance(dice.roll(3) / 2);
            match (round, dice.roll(4)) {
                (12, _) => {
                    // Another policy, so that its index is being built while queries run.
                    world
                        .change("c", |definition| definition.indexing.excluded.push("/b/?".into()))
                        .await
                        .unwrap();
                }
                (_, 0) => {
                    world.engine().build_indexes().await.unwrap();
                    world.purge().await.unwrap();
                }
                (_, 1) => {
                    let n = dice.roll(60);
                    put(&world, &a_document(&mut dice, n)).await;
                }
                _ => {}
            }
            let is_ranked = dice.roll(2) == 0;
            let text = if is_ranked { a_ranking(&mut dice) } else { a_search(&mut dice) };
            let asked = Asked::new(&world, &text).await;
            let rows_max = 1 + dice.roll(25) as usize;
            let mut rows = asked.pages(rows_max).await.unwrap_or_else(|e| panic!("{text}: {}", e.message));
            let mut expected = asked.naive().await;
            if !is_ranked {
                rows.sort();
                expected.sort();
            }
            assert_eq!(rows, expected, "seed {seed}, pages of {rows_max}: {text}");
            let used = usize::from(by_words(&asked).await);
            *(if is_ranked { &mut rankings } else { &mut searches }) += used;
        }
        world.must_be_clean().await;
    }
    // Otherwise nothing was compared with anything.
    let least = cases() as usize * 3;
    assert!(searches > least && rankings > least, "{searches} searches and {rankings} rankings by words");
}
