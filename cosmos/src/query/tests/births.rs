//! Rows of a query without ORDER BY come in the order in which their documents were made, range by range.

use mayfly_engine::{DefaultTtl, HashRange, IndexingMode, PageLimit, Position};
use mayfly_testkit::world::{Backend, World, definition};
use serde_json::{Value as Json, json};

use super::{Asked, Dice, delete, put};

/// Documents in an order that is neither that of their ids nor of their values: some replaced, some deleted,
/// some expired, some made anew. The ids that are left, in the order in which they were made.
async fn world(dice: &mut Dice, slots: u32, documents: u64) -> (World, Vec<u64>) {
    let world = World::new(Backend::Memory).await;
    let mut definition = definition("c", "/p");
    definition.default_ttl = Some(DefaultTtl::Never);
    world.create_container_in_slots(definition, slots).await.unwrap();
    let mut made: Vec<u64> = Vec::new();
    let body = |n: u64, dice: &mut Dice| {
        json!({ "id": format!("d{n:03}"), "p": format!("p{}", n % 3), "n": dice.roll(5), "tags": [1, 2],
            "ttl": if n.is_multiple_of(7) { 1 } else { -1 } })
    };
    for step in 0..documents {
        let n = step * 37 % documents;
        put(&world, &body(n, dice)).await;
        made.push(n);
    }
    for n in (0..documents).step_by(5) {
        put(&world, &body(n, dice)).await;
    }
    for n in (0..documents).step_by(11) {
        delete(&world, n).await;
        made.retain(|other| *other != n);
    }
    world.advance(5);
    made.retain(|n| n % 7 != 0);
    // One that has expired is made anew, and is the last.
    let mut again = body(7, dice);
    again["ttl"] = json!(-1);
    put(&world, &again).await;
    made.push(7);
    (world, made)
}

fn number(row: &str) -> u64 {
    let row: Json = serde_json::from_str(row).unwrap();
    row.as_str().unwrap()[1..].parse().unwrap()
}

#[tokio::test]
async fn rows_without_an_order_come_as_their_documents_were_made() {
    for (seed, slots) in [(1, 1), (2, 4)] {
        let (world, made) = world(&mut Dice(seed), slots, 100).await;
        let slot = |n: &u64| {
            let key = mayfly_testkit::world::partition_key(&format!("\"p{}\"", n % 3));
            world.must_container("c").locate(&key).unwrap().slot()
        };
        let mut by_slot = made.clone();
        by_slot.sort_by_key(slot);
        for (text, keep) in [
            ("SELECT VALUE c.id FROM c", (|_| true) as fn(u64) -> bool),
            ("SELECT VALUE c.id FROM c WHERE c.n >= 0", |_| true),
            ("SELECT VALUE c.id FROM c WHERE STARTSWITH(c.id, 'd')", |_| true),
            ("SELECT VALUE c.id FROM c WHERE c.id > 'd050'", |n| n > 50),
            ("SELECT VALUE c.id FROM c WHERE c.id LIKE '%3'", |n| n % 10 == 3),
            ("SELECT VALUE c.id FROM c WHERE c.p = 'p1'", |n| n % 3 == 1),
            ("SELECT VALUE c.id FROM c WHERE LENGTH(c.id) = 4 AND c._ts > 0", |_| true),
        ] {
            let asked = Asked::new(&world, text).await;
            let expected: Vec<_> = by_slot.iter().copied().filter(|n| keep(*n)).collect();
            for rows_max in [1, 7, 1000] {
                let rows = asked.pages(rows_max).await.unwrap();
                let rows: Vec<_> = rows.iter().map(|row| number(row)).collect();
                assert_eq!(rows, expected, "{text}, {slots} slots, pages of {rows_max}");
            }
        }
        let twice = by_slot.iter().flat_map(|n| [*n, *n]).collect::<Vec<_>>();
        for (text, expected) in [
            ("SELECT VALUE c.id FROM c JOIN t IN c.tags", &twice[..]),
            ("SELECT TOP 9 VALUE c.id FROM c", &by_slot[..9]),
            ("SELECT VALUE c.id FROM c OFFSET 20 LIMIT 15", &by_slot[20..35]),
        ] {
            let asked = Asked::new(&world, text).await;
            for rows_max in [1, 4, 1000] {
                let rows = asked.pages(rows_max).await.unwrap();
                let rows: Vec<_> = rows.iter().map(|row| number(row)).collect();
                assert_eq!(rows, expected, "{text}, {slots} slots, pages of {rows_max}");
            }
        }
    }
}

#[tokio::test]
async fn a_list_of_documents_is_in_the_same_order() {
    let (world, made) = world(&mut Dice(3), 1, 100).await;
    let container = world.must_container("c");
    for rows in [1, 7, 1000] {
        let limit = PageLimit { rows, bytes: 1 << 20 };
        let (mut listed, mut at) = (Vec::new(), None);
        loop {
            let now = world.now().await;
            let page = world.engine().list(&container, &HashRange::all(), at, limit, now).await.unwrap();
            assert!(page.found.len() <= rows);
            listed.extend(
                page.found
                    .iter()
                    .map(|found| found.record.body().get_str("id").unwrap()[1..].parse::<u64>().unwrap()),
            );
            match page.next {
                Some(next) => at = Some(Position::from_bytes(&next.to_bytes()).unwrap()),
                None => break,
            }
        }
        assert_eq!(listed, made, "pages of {rows}");
    }
}

/// Above the bound the order is that of the walk; no row is lost or given twice when the number passes it
/// between two pages.
#[tokio::test]
async fn a_slot_that_grows_between_pages_keeps_its_order() {
    let world = World::new(Backend::Memory).await;
    let mut definition = definition("c", "/p");
    (definition.indexing.mode, definition.indexing.automatic) = (IndexingMode::None, false);
    world.create_container(definition).await.unwrap();
    let body = |n: u64| json!({ "id": format!("d{n:05}"), "p": n % 50 });
    for n in 0..1_990 {
        put(&world, &body(n)).await;
    }
    let asked = Asked::new(&world, "SELECT VALUE c.id FROM c").await;
    let (mut rows, mut token) = asked.page(800, None).await.unwrap();
    for n in 1_990..2_050 {
        put(&world, &body(n)).await;
    }
    while token.is_some() {
        let (more, next) = asked.page(800, token).await.unwrap();
        rows.extend(more);
        token = next;
    }
    let rows: Vec<_> = rows.iter().map(|row| number(row)).collect();
    assert_eq!(rows, (0..2_050).collect::<Vec<_>>());
    // One that begins now walks by key, also over its pages.
    let whole = asked.pages(3_000).await.unwrap();
    let mut parts = asked.pages(277).await.unwrap();
    assert_eq!(whole, parts);
    assert_ne!(whole.iter().map(|row| number(row)).collect::<Vec<_>>(), rows);
    parts.sort();
    assert_eq!(parts.iter().map(|row| number(row)).collect::<Vec<_>>(), rows);
    // A logical partition of it has few.
    let asked = Asked::new(&world, "SELECT VALUE c.id FROM c WHERE c.p = 7").await;
    let part = asked.pages(100).await.unwrap();
    let expected: Vec<u64> = (0..2_050).filter(|n| n % 50 == 7).collect();
    assert_eq!(part.iter().map(|row| number(row)).collect::<Vec<_>>(), expected);
}
