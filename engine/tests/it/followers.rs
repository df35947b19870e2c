//! What is kept for those who follow changes: notes, watches, and the logs of containers that are gone.

use mayfly_engine::{DocumentId, Engine, Watched, collection::CollectionRules};
use mayfly_testkit::{
    Backend, World,
    world::{definition, definition_with_ttl},
};

const DAY: u64 = 24 * 60 * 60;

async fn noted(engine: &Engine, after: u64) -> Vec<String> {
    let notes = engine.notes(after).await.unwrap().notes;
    notes.iter().map(|note| String::from_utf8(note.bytes.to_vec()).unwrap()).collect()
}

fn notes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[tokio::test]
async fn notes_come_with_changes_in_their_order_and_outlive_a_restart() {
    let mut world = World::new(Backend::Mirrored).await;
    let made = world.create_container(definition("a", "/id")).await.unwrap();
    world.create_container(definition("b", "/id")).await.unwrap();
    let engine = world.engine().clone();
    engine.write_notes(&notes(&["made"])).await.unwrap();
    let database = world.database();
    engine.rename_container(&made, &database, "c", false, &notes(&["renamed"])).await.unwrap();
    let before = engine.catalog_version();
    engine.delete_container_noting(&world.must_container("c"), &notes(&["dropped"])).await.unwrap();
    // What does not happen is not noted.
    assert!(engine.delete_container_noting(&made, &notes(&["never"])).await.is_err());
    engine.delete_database_noting(&database.name, &notes(&["one", "two"])).await.unwrap();
    drop(engine);
    world.reopen().await.unwrap();
    let engine = world.engine();
    assert_eq!(noted(engine, 0).await, ["made", "renamed", "dropped", "one", "two"]);
    assert_eq!(noted(engine, before).await, ["dropped", "one", "two"]);
    assert_eq!(noted(engine, engine.catalog_version()).await, [""; 0]);
    world.must_be_clean().await;
}

#[tokio::test]
async fn notes_are_forgotten_after_a_day_when_others_come() {
    let world = World::new(Backend::Mirrored).await;
    let engine = world.engine();
    engine.write_notes(&notes(&["a", "b"])).await.unwrap();
    let first = engine.catalog_version();
    world.advance(DAY / 2);
    world.now().await;
    engine.write_notes(&notes(&["c"])).await.unwrap();
    assert_eq!(engine.notes(0).await.unwrap().forgotten, 0);
    world.advance(DAY / 2 + 1);
    world.now().await;
    engine.write_notes(&notes(&["d"])).await.unwrap();
    assert_eq!(noted(engine, 0).await, ["c", "d"]);
    assert_eq!(engine.notes(0).await.unwrap().forgotten, first);
}

#[tokio::test]
async fn the_log_of_a_container_that_is_gone_stays_as_long_as_its_events_would() {
    let mut world = World::new(Backend::Mirrored).await;
    let mut logged = definition_with_ttl("a", None);
    logged.log_minutes = Some(10);
    let container = world.create_container(logged).await.unwrap();
    for id in ["1", "2"] {
        world.create("a", &format!(r#"{{"id": "{id}"}}"#)).await.unwrap();
    }
    world.engine().delete_container_noting(&container, &notes(&["dropped"])).await.unwrap();
    world.reap().await.unwrap();
    world.reopen().await.unwrap();
    world.reap().await.unwrap();
    let left = world.engine().log_left(container.id, 0, 0, 10).await.unwrap();
    let ids: Vec<_> = left.events.iter().map(|(_, event)| event.id().unwrap()).collect();
    assert_eq!(ids, [DocumentId::text("1"), DocumentId::text("2")]);
    let second = world.engine().log_left(container.id, 0, left.events[0].0, 10).await.unwrap();
    assert_eq!(second.events.len(), 1);
    world.must_be_clean().await;
    world.advance(10 * 60 + 1);
    world.now().await;
    world.reap().await.unwrap();
    assert!(world.engine().log_left(container.id, 0, 0, 10).await.unwrap().events.is_empty());
    world.must_be_clean().await;
}

#[tokio::test]
async fn collections_that_are_made_under_a_watch_keep_a_log() {
    let mut world = World::new(Backend::Mirrored).await;
    let database = world.database().name.clone();
    let made = async |world: &World, name: &str| {
        let mut collection = definition(name, "/id");
        collection.collection = Some(CollectionRules::default());
        world.create_container(collection).await.unwrap().definition().log_minutes
    };
    assert_eq!(made(&world, "before").await, None);
    let now = world.now().await;
    world.engine().watch(Watched::Collection(&database, "one"), 10, now).await.unwrap();
    assert_eq!(made(&world, "other").await, None);
    assert_eq!(made(&world, "one").await, Some(10));
    world.engine().watch(Watched::Database(&database), 20, now).await.unwrap();
    let version = world.engine().catalog_version();
    world.engine().watch(Watched::Database(&database), 20, now).await.unwrap();
    assert_eq!(world.engine().catalog_version(), version, "a fresh watch is not written again");
    world.reopen().await.unwrap();
    assert_eq!(made(&world, "later").await, Some(20));
    let container = world.create_container(definition("container", "/id")).await.unwrap();
    assert_eq!(container.definition().log_minutes, None, "a container is asked for its log");
    let into = world.database();
    let renamed = world.must_container("before");
    let renamed = world.engine().rename_container(&renamed, &into, "after", false, &[]).await.unwrap();
    assert_eq!(renamed.definition().log_minutes, Some(20));
    world.advance(2 * 20 * 60 + 1);
    assert_eq!(made(&world, "too late").await, None);
    let now = world.now().await;
    world.engine().watch(Watched::Everything, 5, now).await.unwrap();
    assert_eq!(world.engine().watched("any", None, now), Some(5));
    assert_eq!(made(&world, "last").await, Some(5));
}
