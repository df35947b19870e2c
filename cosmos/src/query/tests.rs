//! Every way to answer a query gives the answer of the plainest one, and pages hold together while others
//! write.
//!
//! The plainest way is to push all living documents through the language. Documents, policies, queries, page
//! sizes and times come from a seed, so a failure names all there is to know about it.

mod births;
mod made;
mod slots;
mod texts;
mod vectors;

use std::{collections::BTreeMap, sync::Arc};

use mayfly_engine::{Access, Container, Direction, HashRange, Operation, PageLimit, Timestamp};
use mayfly_sql::Document;
use mayfly_testkit::world::{Backend, World, definition, document, id_of, partition_key};
use serde_json::{Value as Json, json};

use super::{access, execute::Execution, request::Request, token::Token};
use crate::{error::ApiError, resource::SystemProperties};
use made::{Dice, POLICIES, a_document, a_query, container, put};

struct Asked<'w> {
    world: &'w World,
    container: Arc<Container>,
    request: Request,
    now: Timestamp,
}

impl<'w> Asked<'w> {
    async fn new(world: &'w World, text: &str) -> Self {
        let body = json!({ "query": text }).to_string();
        let (container, now) = (world.must_container("c"), world.now().await);
        let request = Request::of_items(body.as_bytes(), &container);
        let request = request.unwrap_or_else(|e| panic!("{text}: {}", e.message));
        Self { world, container, request, now }
    }

    /// The plainest way.
    async fn naive(&self) -> Vec<String> {
        let (engine, limit) = (self.world.engine(), PageLimit { rows: 10_000, bytes: usize::MAX });
        let all = Access::Records(HashRange::all());
        let page =
            engine.scan(&self.container, &all, Direction::Forward, None, limit, self.now).await.unwrap();
        let mut run = self.request.plan.run(self.request.context(self.now)).unwrap();
        let mut rows = Vec::new();
        for found in &page.found {
            let system = SystemProperties::new(engine, &self.container).of(found.slot, &found.record);
            let system: Vec<_> = system.iter().map(|(name, value)| (*name, value.borrow())).collect();
            let document = Document { body: found.record.body(), system: &system };
            rows.extend(run.push(&document).unwrap().iter().map(mayfly_sql::Value::to_json));
        }
        rows.extend(run.finish().unwrap().iter().map(mayfly_sql::Value::to_json));
        rows
    }

    async fn page(
        &self,
        rows_max: usize,
        token: Option<String>,
    ) -> Result<(Vec<String>, Option<String>), ApiError> {
        let (scope, _) = access::narrowed(&self.container, self.request.plan.hints(), HashRange::all());
        let token = match token {
            Some(text) => Token::decode(&text, self.request.fingerprint)?,
            None => Token::default(),
        };
        let engine = self.world.engine();
        let execution = Execution::over(engine, &self.container, &self.request, scope, rows_max, self.now);
        let page = execution.page(token).await?;
        let next = page.next.map(|next| next.encode(self.request.fingerprint));
        assert!(next.as_ref().is_none_or(|next| next.len() < 1024));
        let rows = page.rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap());
        Ok((rows.collect(), next))
    }

    async fn pages(&self, rows_max: usize) -> Result<Vec<String>, ApiError> {
        let (mut rows, mut token) = self.page(rows_max, None).await?;
        while token.is_some() {
            let (more, next) = self.page(rows_max, token).await?;
            assert!(more.len() <= rows_max);
            rows.extend(more);
            token = next;
        }
        Ok(rows)
    }
}

/// Equal objects are equal text, whatever the order of their members.
fn canonical(row: &str) -> String {
    serde_json::from_str::<BTreeMap<String, Json>>(row).map_or(row.to_owned(), |map| json!(map).to_string())
}

fn without_id(row: &str) -> String {
    let mut row: Json = serde_json::from_str(row).unwrap();
    if let Some(object) = row.as_object_mut() {
        object.remove("id");
    }
    row.to_string()
}

async fn check_equal(world: &World, text: &str, ordered: bool, rows_max: usize, what: &str) {
    let asked = Asked::new(world, text).await;
    let rows = match asked.pages(rows_max).await {
        Ok(rows) => rows,
        Err(error) if error.message.contains("order") => return,
        Err(error) => panic!("{what}: {text}: {}", error.message),
    };
    let expected = asked.naive().await;
    if ordered {
        let keys = |rows: &[String]| rows.iter().map(|row| without_id(row)).collect::<Vec<_>>();
        assert_eq!(keys(&rows), keys(&expected), "{what}, pages of {rows_max}: {text}");
        if text.contains("TOP") || text.contains("LIMIT") {
            return;
        }
    }
    let sorted = |rows: &[String]| {
        let mut rows: Vec<_> = rows.iter().map(|row| canonical(row)).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(&rows), sorted(&expected), "{what}, pages of {rows_max}: {text}");
}

/// So many cases in a plain run. `QUERY_CASES` asks for more.
fn cases() -> u64 {
    std::env::var("QUERY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Every third container has several slots; the number has nothing to do with that of the policy or of the
/// query.
fn slots_of(seed: u64) -> u32 {
    if seed % 3 == 1 { 8 } else { 1 }
}

#[tokio::test]
async fn every_access_path_gives_the_answer_of_a_full_scan() {
    for seed in 0..cases() {
        let mut dice = Dice(seed);
        let world = World::new(Backend::Mirrored).await;
        let policy = seed as usize % POLICIES;
        container(&world, policy, slots_of(seed)).await;
        let tame = dice.roll(2) == 0;
        for n in 0..60 {
            put(&world, &a_document(&mut dice, n, tame)).await;
            if dice.roll(4) == 0 {
                world.advance(1);
            }
            if policy == 2 && dice.roll(10) == 0 {
                world.engine().build_indexes().await.unwrap();
            }
        }
        if seed % 2 == 1 {
            // Filters are asked about blocks then, and not only about what was written lately.
            world.compact().await;
        }
        for round in 0..30 {
            world.advance(dice.roll(3));
            if round == 15 {
                // Another policy, so that its index is being built while queries run.
                let exclude = |definition: &mut mayfly_engine::ContainerDefinition| {
                    definition.indexing.excluded.push("/other/?".into());
                };
                world.change("c", exclude).await.unwrap();
            } else if round > 15 && dice.roll(3) == 0 {
                world.engine().build_indexes().await.unwrap();
                world.purge().await.unwrap();
            }
            let (text, ordered) = a_query(&mut dice);
            let rows_max = 1 + dice.roll(25) as usize;
            check_equal(&world, &text, ordered, rows_max, &format!("seed {seed}, policy {policy}")).await;
        }
        world.must_be_clean().await;
    }
}

/// As in the service: a client that counts pages counts ranges.
#[tokio::test]
async fn every_range_has_a_page_also_without_rows() {
    let world = World::new(Backend::Mirrored).await;
    let ranges = 4;
    world.create_container_in_slots(definition("c", "/p"), ranges).await.unwrap();
    for n in 0..6 {
        put(&world, &json!({ "id": format!("d{n}"), "p": "one" })).await;
    }
    for text in ["SELECT * FROM c", "SELECT * FROM c WHERE c.id != 'd3'", "SELECT * FROM c WHERE c.none = 1"]
    {
        let asked = Asked::new(&world, text).await;
        let (mut pages, mut rows, mut token) = (0, 0, None);
        loop {
            let (some, next) = asked.page(100, token).await.unwrap();
            (pages, rows, token) = (pages + 1, rows + some.len(), next);
            if token.is_none() {
                break;
            }
        }
        assert_eq!((pages, rows), (ranges, asked.naive().await.len()), "{text}");
    }
}

/// Documents that nobody touches are given once each, whatever happens to the others between two pages.
#[tokio::test]
async fn pages_hold_together_while_others_write() {
    const QUERIES: [&str; 12] = [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c WHERE c.b >= 2",
        "SELECT VALUE c.id FROM c WHERE c.b IN (0, 3, 5)",
        "SELECT VALUE c.id FROM c ORDER BY c.b",
        "SELECT VALUE c.id FROM c ORDER BY c.b DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.a",
        "SELECT VALUE c.id FROM c WHERE c.b > 1 ORDER BY c.a DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.a, c.b",
        "SELECT VALUE c.id FROM c ORDER BY c.b, c.s DESC",
        "SELECT VALUE c.id FROM c ORDER BY c._ts DESC",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT VALUE c.id FROM c GROUP BY c.id",
    ];
    for seed in 0..cases() {
        let mut dice = Dice(seed ^ 0xABCD);
        let world = World::new(Backend::Mirrored).await;
        container(&world, 0, slots_of(seed)).await;
        let tame = dice.roll(2) == 0;
        for n in 0..60 {
            let mut body = a_document(&mut dice, n, tame);
            body.as_object_mut().unwrap().remove("ttl");
            put(&world, &body).await;
        }
        // Ids that are a multiple of three are never touched.
        let text = QUERIES[seed as usize % QUERIES.len()];
        let asked = Asked::new(&world, text).await;
        let untouched = |id: &String| id.trim_matches('"')[1..].parse::<u64>().unwrap() % 3 == 0;
        let mut expected: Vec<_> = asked.naive().await.into_iter().filter(untouched).collect();
        let (mut rows, mut token) = asked.page(5, None).await.unwrap();
        while token.is_some() {
            for _ in 0..dice.roll(6) {
                let n = dice.roll(90) / 3 * 3 + 1 + dice.roll(2);
                match dice.roll(3) {
                    0 => _ = delete(&world, n).await,
                    _ => {
                        let body = a_document(&mut dice, n, tame);
                        delete(&world, n).await;
                        put(&world, &body).await;
                    }
                }
            }
            let (more, next) = asked.page(5, token).await.unwrap();
            rows.extend(more);
            token = next;
        }
        let mut given: Vec<_> = rows.into_iter().filter(untouched).collect();
        // Rows with equal keys may go either way, depending on the walk.
        given.sort();
        expected.sort();
        assert_eq!(given, expected, "seed {seed}: {text}");
    }
}

/// The partition of a document may have changed, so all are tried.
async fn delete(world: &World, n: u64) {
    for p in 0..3 {
        let key = partition_key(&format!("\"p{p}\""));
        let id = id_of(&document(&format!(r#"{{"id":"d{n:03}"}}"#)));
        let gone = world.write("c", &key, Operation::Delete { id, if_match: None }).await;
        assert!(matches!(gone, Ok(_) | Err(mayfly_engine::Error::NotFound(_))));
    }
}
