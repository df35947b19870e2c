//! Databases and collections as MongoDB clients know them, over the engine's databases and containers.
//!
//! A collection comes to be with its first document, and a database with its first collection; a database
//! without collections is one that nobody sees. What `create` was told beside the engine's own terms is kept
//! with the collection as BSON.

use std::sync::Arc;

use bson::{Bson, Document, doc};
use mayfly_engine::{
    Container, ContainerDefinition, Database, Engine, Error as EngineError, IndexingMode, IndexingPolicy,
    Timestamp, collection::CollectionRules,
};
use mayfly_value::partition::KeyDefinition;

use crate::{
    auth::Role,
    call::Call,
    change_stream::{Definition, Happening},
    failure::{Failure, Result},
    service::{Mongo, to_raw},
    session::{Claim, conflict},
    users,
};

/// A collection, or a view, or a container that Cosmos made.
#[derive(Clone)]
pub struct Collection {
    /// The engine's side of it.
    pub container: Arc<Container>,
    /// The database's name.
    pub db: String,
    /// Its name.
    pub name: String,
}

impl Collection {
    /// The full name.
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.db, self.name)
    }

    /// What it was made with.
    pub fn options(&self) -> Document {
        let rules = self.container.definition().collection.as_ref();
        let options = rules.map(|rules| rules.options.as_slice()).unwrap_or_default();
        Document::from_reader(options).unwrap_or_default()
    }

    /// The view's source and pipeline, if it is a view.
    pub fn view(&self) -> Option<(String, Vec<Document>)> {
        let options = self.options();
        let source = options.get_str("viewOn").ok()?.to_owned();
        let stages = options.get_array("pipeline").cloned().unwrap_or_default();
        Some((source, stages.into_iter().filter_map(|stage| stage.as_document().cloned()).collect()))
    }

    /// An identifier that stays with it.
    pub fn uuid(&self) -> Bson {
        uuid_of(self.container.id)
    }

    /// Refuses a write to a view, and one to what the server keeps for itself.
    pub fn check_writable(&self) -> Result<()> {
        if self.view().is_some() {
            return Err(Failure::new(
                166,
                format!("Namespace {} is a view, not a collection", self.namespace()),
            ));
        }
        Ok(())
    }
}

/// The identifier of the collection with a container's number.
pub fn uuid_of(container: u32) -> Bson {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&container.to_be_bytes());
    bytes[4..8].copy_from_slice(b"mayf");
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = 0x80;
    Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

/// A collection by name.
pub fn find(engine: &Engine, db: &str, name: &str) -> Option<Collection> {
    let database = engine.database(db).ok()?;
    let container = engine.container(&database, name).ok()?;
    Some(Collection { container, db: db.to_owned(), name: name.to_owned() })
}

/// A collection by its container's number.
pub fn by_number(engine: &Engine, id: u32) -> Option<Collection> {
    let container = engine.container_by_id(id).ok()?;
    let database = engine.database_by_id(container.database).ok()?;
    let name = container.name().to_owned();
    Some(Collection { container, db: database.name.clone(), name })
}

/// A collection by name, as whoever sends this command sees it: not one that another's transaction is making,
/// and that of the users only for who may change them, whatever else they may read and write.
pub fn seen(call: &Call<'_>, db: &str, name: &str) -> Option<Collection> {
    if users::are_kept_in(db, name) && !call.may_manage_users() {
        return None;
    }
    find(&call.mongo.engine, db, name)
        .filter(|_| call.mongo.sessions.drafts.shows(db, name, call.transaction_session()))
}

/// Whether a full name is that of a collection.
pub fn is_there(engine: &Engine, namespace: &str) -> bool {
    namespace.split_once('.').is_some_and(|(db, name)| find(engine, db, name).is_some())
}

/// All collections of a database that whoever sends this command sees.
pub fn all_seen(call: &Call<'_>, db: &str) -> Vec<Collection> {
    let (mut all, drafts) = (list(&call.mongo.engine, db), &call.mongo.sessions.drafts);
    all.retain(|collection| drafts.shows(db, &collection.name, call.transaction_session()));
    all
}

/// All collections of a database, by name.
pub fn list(engine: &Engine, db: &str) -> Vec<Collection> {
    let Ok(database) = engine.database(db) else { return Vec::new() };
    let containers = engine.containers(&database).into_iter();
    let collection = |container: Arc<Container>| {
        let name = container.name().to_owned();
        Collection { container, db: db.to_owned(), name }
    };
    containers.map(collection).collect()
}

/// The collection of that name, made if it is not there yet. Says whether it was made.
pub async fn ensure(call: &Call<'_>, db: &str, name: &str) -> Result<(Collection, bool)> {
    if let Some(found) = seen(call, db, name) {
        return Ok((found, false));
    }
    if users::are_kept_in(db, name) {
        call.check_role(db, Role::Admin)?;
    } else if name.starts_with("system.") && !["system.js", "system.views"].contains(&name) {
        return Err(Failure::new(73, format!("Invalid system namespace: {db}.{name}")));
    }
    match create(call, db, name, &Document::new()).await {
        Ok(made) => Ok((made, true)),
        // Somebody was quicker.
        Err(failure) => seen(call, db, name).map(|found| (found, false)).ok_or(failure),
    }
}

/// Makes a collection; 48 if there is one. One that is made in a transaction is nobody else's before the
/// commit.
pub async fn create(call: &Call<'_>, db: &str, name: &str, options: &Document) -> Result<Collection> {
    let (drafts, session) = (&call.mongo.sessions.drafts, call.transaction_session());
    match drafts.claim(call.mongo, db, name, session.is_some(), call.now).await? {
        Claim::None => {}
        Claim::Taken => return Err(Failure::new(48, format!("Collection {db}.{name} already exists."))),
        Claim::Refused => {
            drafts.clear(call.mongo).await?;
            if find(&call.mongo.engine, db, name).is_some() {
                return Err(conflict());
            }
        }
    }
    let Some(session) = session else {
        let (mongo, now) = (call.mongo.shared()?, call.now);
        let (db, name, options) = (db.to_owned(), name.to_owned(), options.clone());
        // Whoever follows the database hears of it, also if its maker has left.
        let made = call.mongo.engine.to_completion(async move {
            let made = make(&mongo, &db, &name, &options, now).await?;
            let told = Definition::create(&made, &options);
            mongo.streams.tell(&mongo, Happening::Define(Box::new(told)), now).await?;
            Ok::<_, Failure>(made)
        });
        return made.await;
    };
    if find(&call.mongo.engine, db, name).is_some() || !drafts.begin(db, name, session) {
        return Err(Failure::new(48, format!("Collection {db}.{name} already exists.")));
    }
    let made = make(call.mongo, db, name, options, call.now).await;
    match &made {
        Ok(made) => drop(drafts.tell_later(db, name, Definition::create(made, options))),
        Err(_) => drafts.cancel(db, name),
    }
    made
}

async fn make(mongo: &Mongo, db: &str, name: &str, options: &Document, now: Timestamp) -> Result<Collection> {
    let database = ensure_database(&mongo.engine, db, now).await?;
    let mut definition = ContainerDefinition::new(name, KeyDefinition::unpartitioned());
    definition.indexing = IndexingPolicy {
        mode: IndexingMode::None,
        automatic: false,
        included: Vec::new(),
        excluded: Vec::new(),
        ..IndexingPolicy::default()
    };
    let kept = if options.is_empty() { Vec::new() } else { to_raw(options).into_bytes() };
    definition.collection = Some(CollectionRules { options: kept });
    if options
        .get_document("changeStreamPreAndPostImages")
        .is_ok_and(|images| images.get_bool("enabled").unwrap_or(false))
    {
        definition.log_minutes = Some(crate::change_stream::LOG_MINUTES);
    }
    match mongo.engine.create_container(&database, definition, 1, now).await {
        Ok(container) => Ok(Collection { container, db: db.to_owned(), name: name.to_owned() }),
        Err(EngineError::Exists(_)) => {
            Err(Failure::new(48, format!("Collection {db}.{name} already exists.")))
        }
        Err(error) => Err(error.into()),
    }
}

/// The database of that name, made if it is not there yet.
pub async fn ensure_database(engine: &Engine, db: &str, now: Timestamp) -> Result<Arc<Database>> {
    if let Ok(database) = engine.database(db) {
        return Ok(database);
    }
    let other = engine.databases().into_iter().find(|other| other.name.eq_ignore_ascii_case(db));
    if let Some(other) = other.filter(|other| !engine.containers(other).is_empty()) {
        let message = format!(
            "db already exists with different case already have: [{}] trying to create [{db}]",
            other.name
        );
        return Err(Failure::new(13297, message));
    }
    match engine.create_database(db, now).await {
        Ok(database) => Ok(database),
        Err(EngineError::Exists(_)) => Ok(engine.database(db)?),
        Err(error) => Err(error.into()),
    }
}

/// Keeps other options with a collection.
pub async fn set_options(
    mongo: &Mongo,
    collection: &Collection,
    options: &Document,
    now: Timestamp,
) -> Result<()> {
    let mut definition = collection.container.definition().clone();
    let kept = if options.is_empty() { Vec::new() } else { to_raw(options).into_bytes() };
    definition.collection = Some(CollectionRules { options: kept });
    mongo.engine.replace_container(&collection.container, definition, None, now).await?;
    Ok(())
}

/// 26: there is no such collection.
pub fn not_found(db: &str, name: &str) -> Failure {
    Failure::new(26, format!("ns does not exist: {db}.{name}"))
}

/// The entry of the index on `_id` in answers.
pub fn id_index() -> Document {
    doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }
}
