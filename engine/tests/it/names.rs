//! A place that a thread has found before is the one that has the name now, whatever has happened to names since.

use std::{sync::mpsc, thread};

use mayfly_engine::{Container, Engine, Error};
use mayfly_testkit::{
    Backend, World,
    world::{DATABASE, definition},
};
use proptest::prelude::*;
use tokio::runtime::Builder;

/// More names than a thread keeps places.
const NAMES: usize = 20;

#[derive(Clone, Debug)]
enum Change {
    Create(usize),
    SetTtl(usize, i64),
    Rename(usize, usize),
    Drop(usize),
    DropDatabase,
    /// Opens the store anew.
    Reopen,
}

fn change() -> impl Strategy<Value = Change> {
    let name = || 0..NAMES;
    prop_oneof![
        12 => name().prop_map(Change::Create),
        4 => (name(), 1..100_i64).prop_map(|(name, ttl)| Change::SetTtl(name, ttl)),
        4 => (name(), 1..NAMES).prop_map(|(from, on)| Change::Rename(from, (from + on) % NAMES)),
        4 => name().prop_map(Change::Drop),
        1 => Just(Change::DropDatabase),
        1 => Just(Change::Reopen),
    ]
}

fn name(number: usize) -> String {
    format!("c{number}")
}

async fn apply(world: &mut World, change: Change) {
    // What is not there cannot be changed, and what is there not made again: then nothing has changed.
    let done: Result<(), Error> = match change {
        Change::Create(number) => world.create_container(definition(&name(number), "/id")).await.map(drop),
        Change::SetTtl(number, ttl) => world.set_ttl(&name(number), Some(ttl)).await.map(drop),
        Change::Rename(from, to) => match world.container(&name(from)) {
            Ok(from) => {
                let database = world.database();
                world.engine().rename_container(&from, &database, &name(to), true, &[]).await.map(drop)
            }
            Err(error) => Err(error),
        },
        Change::Drop(number) => match world.container(&name(number)) {
            Ok(container) => world.engine().delete_container(&container, None).await,
            Err(error) => Err(error),
        },
        Change::DropDatabase => {
            world.engine().delete_database(DATABASE, None).await.unwrap();
            world.engine().create_database(DATABASE, world.now().await).await.map(drop)
        }
        Change::Reopen => world.reopen().await,
    };
    if let Err(error) = done {
        assert!(matches!(error, Error::NotFound(_) | Error::Exists(_)), "{error}");
    }
}

/// The number and the version of what has each name, as the database lists it and as it is found.
fn seen(engine: &Engine) -> [Vec<Option<(u32, u64)>>; 2] {
    let version = |container: &Container| (container.id, container.version);
    let database = engine.database(DATABASE).unwrap();
    let all = engine.containers(&database);
    let listed = |name: &String| all.iter().find(|container| container.name() == name).map(|c| version(c));
    let found = |name: &String| {
        let place = engine.place(DATABASE, name).ok()?;
        assert_eq!(place.database.id, database.id);
        assert_eq!(place.container.database, database.id);
        Some(version(&place.container))
    };
    let names: Vec<_> = (0..NAMES).map(name).collect();
    [names.iter().map(listed).collect(), names.iter().map(found).collect()]
}

proptest! {
    #[test]
    fn a_place_is_what_has_its_name_now(changes in prop::collection::vec(change(), 1..40)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // On memory alone: it is about names that the engine remembers, and makes hundreds of worlds.
        let mut world = runtime.block_on(World::new(Backend::Memory));
        thread::scope(|scope| {
            // Another thread, with a place of its own for what it has found.
            let (ask, asked) = mpsc::channel::<Engine>();
            let (tell, told) = mpsc::channel();
            scope.spawn(move || asked.iter().try_for_each(|engine| tell.send(seen(&engine))));
            for change in changes {
                runtime.block_on(apply(&mut world, change.clone()));
                ask.send(world.engine().clone()).unwrap();
                for [listed, found] in [seen(world.engine()), told.recv().unwrap()] {
                    assert_eq!(found, listed, "after {change:?}");
                }
            }
            drop(ask);
        });
    }
}
