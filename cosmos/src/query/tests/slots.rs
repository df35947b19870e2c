//! Sorted queries over several slots: pages in the order of the query, which look at little more than they give.

use mayfly_engine::{CompositePath, HashRange};
use mayfly_testkit::world::{Backend, World, definition};
use serde_json::{Value as Json, json};

use super::{Asked, Dice, put};
use crate::query::{execute::Execution, token::Token};

const SLOTS: u32 = 8;
const DOCUMENTS: u64 = 400;

/// Documents of many partitions, some of them equal in what they are sorted by, and some gone.
async fn world(dice: &mut Dice) -> World {
    let world = World::new(Backend::Mirrored).await;
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(mayfly_engine::DefaultTtl::Never);
    let path = |path: &str, descending| CompositePath { path: path.into(), descending };
    definition.indexing.composites = vec![vec![path("/n", false), path("/m", true)]];
    world.create_container_in_slots(definition, SLOTS).await.unwrap();
    for number in 0..DOCUMENTS {
        let mut body = json!({ "id": format!("d{number}"), "p": format!("p{}", dice.roll(90)), "n": dice.roll(60),
            "m": dice.roll(5), "text": "x".repeat(50) });
        if number % 20 == 0 {
            body["ttl"] = json!(1);
        }
        put(&world, &body).await;
    }
    world.advance(5);
    world
}

/// All rows, page by page, and the most documents that a page has looked at.
async fn read(asked: &Asked<'_>, rows_max: usize) -> (Vec<Json>, usize) {
    let engine = asked.world.engine();
    let (mut rows, mut token, mut most) = (Vec::new(), Token::default(), 0);
    loop {
        let (container, request) = (&asked.container, &asked.request);
        let run = Execution::over(engine, container, request, HashRange::all(), rows_max, asked.now);
        let page = run.page(token).await.unwrap();
        assert!(page.access.serves_order);
        most = most.max(page.scanned);
        rows.extend(page.rows.iter().map(|row| serde_json::from_slice::<Json>(row).unwrap()));
        let Some(next) = page.next else { return (rows, most) };
        // As it comes back from a client.
        let text = next.encode(request.fingerprint);
        token = Token::decode(&text, request.fingerprint).unwrap();
    }
}

#[tokio::test]
async fn pages_are_merged_from_the_order_of_each_slot() {
    for (order, by) in
        [("c.n", (1, 0)), ("c.n DESC", (-1, 0)), ("c.n, c.m DESC", (1, -1)), ("c.n DESC, c.m", (-1, 1))]
    {
        let world = world(&mut Dice(7)).await;
        let asked =
            Asked::new(&world, &format!("SELECT c.id, c.n, c.m, c.text FROM c ORDER BY {order}")).await;
        let number = |row: &Json, name: &str| row[name].as_i64().unwrap();
        let place = |row: &Json| (by.0 * number(row, "n"), by.1 * number(row, "m"));
        let mut whole = None;
        for rows_max in [1, 7, 10, 100, 1000] {
            let (rows, most) = read(&asked, rows_max).await;
            assert!(rows.is_sorted_by_key(place), "{order}, pages of {rows_max}");
            // The last row of the page before once more, and one to know that there is more.
            assert!(most <= rows_max + 2, "{order}: {most} documents were read for {rows_max} rows");
            assert_eq!(rows.len() as u64, DOCUMENTS - DOCUMENTS / 20, "{order}");
            // Pages of any size are parts of one list, so each document is in it once.
            assert_eq!(whole.get_or_insert_with(|| rows.clone()), &rows, "{order}, pages of {rows_max}");
        }
        let mut ids: Vec<_> = whole.unwrap().iter().map(|row| row["id"].to_string()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len() as u64, DOCUMENTS - DOCUMENTS / 20);
    }
}

/// OFFSET and LIMIT, a filter on the sorted path, and one on another.
#[tokio::test]
async fn parts_of_an_order_over_slots_are_those_of_the_whole() {
    let world = world(&mut Dice(11)).await;
    let all = Asked::new(&world, "SELECT c.id, c.n, c.m FROM c ORDER BY c.n").await;
    let (all, _) = read(&all, 1000).await;
    let keep = |test: &dyn Fn(i64, i64) -> bool| {
        let kept = all.iter().filter(|row| test(row["n"].as_i64().unwrap(), row["m"].as_i64().unwrap()));
        kept.cloned().collect::<Vec<_>>()
    };
    for (text, expected, most) in [
        ("ORDER BY c.n OFFSET 30 LIMIT 20", all[30..50].to_vec(), 51),
        ("WHERE c.n >= 20 AND c.n < 40 ORDER BY c.n", keep(&|n, _| (20..40).contains(&n)), 9),
        ("WHERE c.n IN (3, 17, 50) ORDER BY c.n", keep(&|n, _| [3, 17, 50].contains(&n)), 9),
        ("WHERE c.n > 5 AND c.m = 2 ORDER BY c.n", keep(&|n, m| n > 5 && m == 2), usize::MAX),
    ] {
        let asked = Asked::new(&world, &format!("SELECT c.id, c.n, c.m FROM c {text}")).await;
        let (rows, looked) = read(&asked, 7).await;
        assert_eq!(rows, expected, "{text}");
        assert!(looked <= most, "{text}: {looked} documents were read for a page of 7");
    }
}
