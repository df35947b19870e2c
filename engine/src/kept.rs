//! Small resources that the engine only keeps: throughput, users, permissions, scripts, keys.
//!
//! They belong to a database, a container or another one of their kind, have a name, a number, a version and
//! a JSON value, and mean nothing to the engine. They go with their owner. Numbers come from the catalog's
//! counter like those of databases and containers, so an owner's number alone says whose they are.
//!
//! ```text
//!   owner:u32  kind:u8  name   ─▶   version:u64  number:u64  JSON { modified, value }
//! ```

use std::collections::{BTreeMap, BTreeSet};

use mayfly_storage::store::{Expect, Guard, Key};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    catalog::{Catalog, Change, changed_row, check_etag, check_name, decode_row, new_row, number},
    clock::Timestamp,
    engine::Engine,
    error::{Error, Resource, Result},
    etag::{Etag, IfMatch},
    keys,
};

/// What kind of resource. The numbers are bytes on disk; 8 is a watch ([`crate::watch`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum KeptKind {
    /// Throughput of a database or container.
    Offer = 1,
    /// A user of a database.
    User = 2,
    /// A permission of a user.
    Permission = 3,
    /// A client encryption key of a database.
    ClientEncryptionKey = 4,
    /// A stored procedure of a container.
    StoredProcedure = 5,
    /// A trigger of a container.
    Trigger = 6,
    /// A user-defined function of a container.
    UserDefinedFunction = 7,
}

/// A kept resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Its number: never reused.
    pub id: u32,
    /// The number of what it belongs to.
    pub owner: u32,
    /// Its name, unique among its kind and owner.
    pub name: String,
    /// What it says.
    pub value: Value,
    /// The second of its last change.
    pub modified: u64,
    version: u64,
}

impl Kept {
    pub(crate) fn new(id: u32, owner: u32, name: &str, row: Row, version: u64) -> Self {
        Self { id, owner, name: name.to_owned(), value: row.value, modified: row.modified, version }
    }

    /// Changes with every change.
    pub fn etag(&self) -> Etag {
        Etag::new(self.id, u16::MAX, self.version)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub modified: u64,
    pub value: Value,
}

/// Kept resources in memory, by owner, kind and name.
#[derive(Default)]
pub(crate) struct Shelf(BTreeMap<(u32, u8, String), Kept>);

impl Shelf {
    /// Takes in a stored row.
    pub fn load(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        const DAMAGED: Error = Error::Corrupt("a kept resource cannot be read");
        let (owner, rest) = key.split_first_chunk::<4>().ok_or(DAMAGED)?;
        let (kind, name) = rest.split_first().ok_or(DAMAGED)?;
        let name = String::from_utf8(name.to_vec()).map_err(|_| DAMAGED)?;
        let owner = u32::from_be_bytes(*owner);
        let (version, id, row) = decode_row::<Row>(value)?;
        let kept = Kept { id, owner, name: name.clone(), value: row.value, modified: row.modified, version };
        self.0.insert((owner, *kind, name), kept);
        Ok(())
    }

    /// Each of them in words, with all that is stored of it.
    pub fn described(&self) -> BTreeSet<String> {
        self.0.iter().map(|((_, kind, _), kept)| format!("kind {kind}: {kept:?}")).collect()
    }

    /// The keys of everything that goes when `owner` goes, down to what belongs to what belongs to it.
    pub fn keys_below(&self, owner: u32) -> Vec<Key> {
        let mut found = Vec::new();
        for ((_, kind, name), kept) in self.of_owner(owner) {
            found.push(keys::kept(owner, *kind, name));
            found.extend(self.keys_below(kept.id));
        }
        found
    }

    /// Forgets everything below `owner`.
    pub fn drop_below(&mut self, owner: u32) {
        let below: Vec<_> = self.of_owner(owner).map(|(key, kept)| (key.clone(), kept.id)).collect();
        for (key, id) in below {
            self.drop_below(id);
            self.0.remove(&key);
        }
    }

    /// One of them.
    pub fn get(&self, owner: u32, kind: u8, name: &str) -> Option<&Kept> {
        self.0.get(&(owner, kind, name.to_owned()))
    }

    /// Those of one kind and owner.
    pub fn of_kind(&self, owner: u32, kind: u8) -> impl Iterator<Item = &Kept> {
        self.of_owner(owner).filter(move |((_, found, _), _)| *found == kind).map(|(_, kept)| kept)
    }

    /// Takes one in.
    pub fn insert(&mut self, kind: u8, kept: Kept) {
        self.0.insert((kept.owner, kind, kept.name.clone()), kept);
    }

    /// Forgets one.
    pub fn remove(&mut self, owner: u32, kind: u8, name: &str) {
        self.0.remove(&(owner, kind, name.to_owned()));
    }

    fn of_owner(&self, owner: u32) -> impl Iterator<Item = (&(u32, u8, String), &Kept)> {
        self.0.range((owner, 0, String::new())..).take_while(move |((found, _, _), _)| *found == owner)
    }
}

impl Engine {
    /// The kept resources of one kind that belong to `owner`, by name.
    pub fn kept(&self, kind: KeptKind, owner: u32) -> Vec<Kept> {
        let shelf = self.catalog().shelf();
        shelf
            .of_owner(owner)
            .filter(|((_, k, _), _)| *k == kind as u8)
            .map(|(_, kept)| kept.clone())
            .collect()
    }

    /// All kept resources of one kind.
    pub fn all_kept(&self, kind: KeptKind) -> Vec<Kept> {
        let shelf = self.catalog().shelf();
        shelf.0.iter().filter(|((_, k, _), _)| *k == kind as u8).map(|(_, kept)| kept.clone()).collect()
    }

    /// One kept resource.
    pub fn kept_named(&self, kind: KeptKind, owner: u32, name: &str) -> Result<Kept> {
        self.catalog().kept_named(kind, owner, name)
    }

    /// Keeps a new resource. It is refused if its owner is going at the same moment.
    pub async fn keep(
        &self,
        kind: KeptKind,
        owner: u32,
        name: &str,
        value: Value,
        now: Timestamp,
    ) -> Result<Kept> {
        check_name(name)?;
        let name = name.to_owned();
        self.catalog()
            .change(move |catalog| {
                let change = catalog.add_kept(kind, owner, name.clone(), value.clone(), now);
                async { change }
            })
            .await
    }

    /// Gives a kept resource another value, and another name if `name` is one.
    pub async fn replace_kept(
        &self,
        kind: KeptKind,
        kept: &Kept,
        name: &str,
        value: Value,
        if_match: Option<IfMatch>,
        now: Timestamp,
    ) -> Result<Kept> {
        let (owner, from, to) = (kept.owner, kept.name.clone(), name.to_owned());
        self.catalog()
            .change(move |catalog| {
                let current = catalog.kept_named(kind, owner, &from);
                let change = current.and_then(|current| {
                    check_etag(if_match, current.etag())?;
                    catalog.alter_kept(kind, current, to.clone(), value.clone(), now)
                });
                async { change }
            })
            .await
    }

    /// Forgets a kept resource and what belongs to it.
    pub async fn delete_kept(&self, kind: KeptKind, kept: &Kept, if_match: Option<IfMatch>) -> Result<()> {
        let (owner, name) = (kept.owner, kept.name.clone());
        self.catalog()
            .change(move |catalog| {
                let current = catalog.kept_named(kind, owner, &name);
                let change = current.and_then(|current| {
                    check_etag(if_match, current.etag())?;
                    Ok(catalog.remove_kept(kind, current))
                });
                async { change }
            })
            .await
    }
}

impl Catalog {
    fn kept_named(&self, kind: KeptKind, owner: u32, name: &str) -> Result<Kept> {
        self.shelf().get(owner, kind as u8, name).cloned().ok_or(Error::NotFound(Resource::Kept))
    }

    fn add_kept(
        &self,
        kind: KeptKind,
        owner: u32,
        name: String,
        value: Value,
        now: Timestamp,
    ) -> Result<Change<Kept>> {
        if self.kept_named(kind, owner, &name).is_ok() {
            return Err(Error::Exists(Resource::Kept));
        }
        let owner_guard = self.owner_guard(owner).ok_or(Error::NotFound(Resource::Kept))?;
        let key = keys::kept(owner, kind as u8, &name);
        let row = Row { modified: now.seconds(), value };
        Ok(Change {
            guards: vec![owner_guard, Guard { key: key.clone(), expect: Expect::Absent }],
            puts: vec![new_row(key, &row)?],
            deletes: Vec::new(),
            conflict: Error::Contention,
            publish: Box::new(move |memory, version| {
                let kept = Kept::new(number(version)?, owner, &name, row, version);
                memory.shelf.insert(kind as u8, kept.clone());
                Ok(kept)
            }),
        })
    }

    fn alter_kept(
        &self,
        kind: KeptKind,
        current: Kept,
        name: String,
        value: Value,
        now: Timestamp,
    ) -> Result<Change<Kept>> {
        let key = keys::kept(current.owner, kind as u8, &current.name);
        let mut guards = vec![Guard { key: key.clone(), expect: Expect::Version(current.version) }];
        let row = Row { modified: now.seconds(), value };
        let (new_key, deletes) = if name == current.name {
            (key, Vec::new())
        } else {
            check_name(&name)?;
            if self.kept_named(kind, current.owner, &name).is_ok() {
                return Err(Error::Exists(Resource::Kept));
            }
            let new_key = keys::kept(current.owner, kind as u8, &name);
            guards.push(Guard { key: new_key.clone(), expect: Expect::Absent });
            (new_key, vec![key])
        };
        Ok(Change {
            guards,
            puts: vec![changed_row(new_key, current.id, &row)?],
            deletes,
            conflict: Error::Contention,
            publish: Box::new(move |memory, version| {
                memory.shelf.remove(current.owner, kind as u8, &current.name);
                let next = Kept::new(current.id, current.owner, &name, row, version);
                memory.shelf.insert(kind as u8, next.clone());
                Ok(next)
            }),
        })
    }

    fn remove_kept(&self, kind: KeptKind, current: Kept) -> Change<()> {
        let key = keys::kept(current.owner, kind as u8, &current.name);
        let guards = vec![Guard { key: key.clone(), expect: Expect::Version(current.version) }];
        let mut deletes = vec![key];
        deletes.extend(self.shelf().keys_below(current.id));
        Change {
            guards,
            puts: Vec::new(),
            deletes,
            conflict: Error::Contention,
            publish: Box::new(move |memory, _| {
                memory.shelf.drop_below(current.id);
                memory.shelf.remove(current.owner, kind as u8, &current.name);
                Ok(())
            }),
        }
    }

    /// The guard that holds while the owner with this number is there.
    fn owner_guard(&self, owner: u32) -> Option<Guard> {
        if let Some(database) = self.database_by_id(owner) {
            let key = keys::database(&database.name);
            return Some(Guard { key, expect: Expect::Version(database.version) });
        }
        if let Some(container) = self.container_by_id(owner) {
            return Some(container.guard());
        }
        let shelf = self.shelf();
        let ((above, kind, name), kept) = shelf.0.iter().find(|(_, kept)| kept.id == owner)?;
        let key = keys::kept(*above, *kind, name);
        Some(Guard { key, expect: Expect::Version(kept.version) })
    }
}
