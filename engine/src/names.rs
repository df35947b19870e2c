//! The names of databases and containers, and what each of them names now.
//!
//! Every request looks one up. A lock and a count of holders that all threads share would be written to by each of them, and
//! go from processor to processor with every request. So a thread keeps the places it has found, each in a holder whose
//! count is the thread's own, until a name changes.
//!
//! Holds: what is found is what was named when it was looked up, or later.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::{catalog::Database, container::Container, per_thread::PerThread};

/// Places that a thread keeps. Looking through them has to be quicker than looking anew.
const KEPT_MAX: usize = 16;

/// A container and the database it is in.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Place {
    pub database: Arc<Database>,
    pub container: Arc<Container>,
}

/// What has which name.
#[derive(Default)]
pub(crate) struct Named {
    pub databases: BTreeMap<String, Arc<Database>>,
    /// Of each database, by name.
    pub containers: BTreeMap<u32, BTreeMap<String, Arc<Container>>>,
}

impl Named {
    pub fn add(&mut self, container: Arc<Container>) {
        let of_database = self.containers.entry(container.database).or_default();
        of_database.insert(container.name().to_owned(), container);
    }

    pub fn remove(&mut self, container: &Container) {
        if let Some(of_database) = self.containers.get_mut(&container.database) {
            of_database.remove(container.name());
        }
    }

    pub fn all_containers(&self) -> impl Iterator<Item = &Arc<Container>> {
        self.containers.values().flat_map(BTreeMap::values)
    }

    fn place(&self, database: &str, container: &str) -> Option<Place> {
        let database = self.databases.get(database)?;
        let container = self.containers.get(&database.id)?.get(container)?;
        Some(Place { database: database.clone(), container: container.clone() })
    }
}

/// All names, and what threads have found by them.
pub(crate) struct Names {
    named: RwLock<Named>,
    /// Counts changes.
    changes: AtomicU64,
    found: PerThread<Mutex<Found>>,
}

/// What a thread has found.
#[derive(Default)]
struct Found {
    /// After so many changes.
    changes: u64,
    /// The latest last.
    places: Vec<Arc<Place>>,
}

impl Names {
    pub fn new(named: Named) -> Self {
        Self { named: RwLock::new(named), changes: AtomicU64::new(0), found: PerThread::default() }
    }

    /// To look at all of them.
    pub fn read(&self) -> RwLockReadGuard<'_, Named> {
        self.named.read()
    }

    /// Changes names, for all who look after it.
    pub fn change(&self, change: impl FnOnce(&mut Named)) {
        let mut named = self.named.write();
        change(&mut named);
        // Before the lock is let go: who has seen the number sees the change.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The container of that name in the database of that name.
    pub fn place(&self, database: &str, container: &str) -> Option<Arc<Place>> {
        let mut found = self.found.mine().lock();
        let changes = self.changes.load(Ordering::Acquire);
        if found.changes != changes {
            *found = Found { changes, places: Vec::new() };
        }
        let is_it =
            |place: &&Arc<Place>| place.container.name() == container && place.database.name == database;
        if let Some(place) = found.places.iter().find(is_it) {
            return Some(place.clone());
        }
        let place = Arc::new(self.read().place(database, container)?);
        if found.places.len() == KEPT_MAX {
            found.places.remove(0);
        }
        found.places.push(place.clone());
        Some(place)
    }
}
