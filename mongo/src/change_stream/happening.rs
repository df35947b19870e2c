//! What happens to collections and databases themselves, as streams tell it: made, changed, renamed, dropped.
//!
//! The shapes are those of MongoDB 8.2. What only a stream with `showExpandedEvents` tells is a [`Definition`], and
//! everything about views.

use std::sync::Arc;

use bson::{Bson, DateTime, Document, Timestamp as ClusterStamp, doc};
use mayfly_engine::Timestamp;

use super::Farewell;
use crate::namespace::{self, Collection};

/// What happened.
#[derive(Clone)]
pub enum Happening {
    /// A collection is gone.
    Drop {
        /// What it was.
        collection: Collection,
        /// What its log said last.
        farewell: Option<Arc<Farewell>>,
    },
    /// A collection has another name.
    Rename {
        /// What it was.
        collection: Collection,
        /// Database and name now.
        to: (String, String),
        /// What had that name, and is gone.
        replaced: Option<Collection>,
        /// What the log of that said last.
        farewell: Option<Arc<Farewell>>,
    },
    /// A database is gone.
    DropDatabase {
        /// Its name.
        db: String,
    },
    /// A collection was made or changed.
    Define(Box<Definition>),
}

/// How a collection was made or changed.
#[derive(Clone)]
pub struct Definition {
    /// What it is, or was before.
    pub collection: Collection,
    /// The type of the event.
    pub operation: &'static str,
    /// What was asked for.
    pub description: Document,
    /// What it was before, if the event shows that.
    pub before: Option<Document>,
}

/// A happening with its time.
#[derive(Clone)]
pub struct Told {
    /// When, in the time of the cluster. No two have the same.
    pub time: ClusterStamp,
    /// When, on the clock.
    pub wall: Timestamp,
    /// What.
    pub happening: Happening,
}

impl Definition {
    /// A collection or a view was made.
    pub fn create(collection: &Collection, options: &Document) -> Self {
        let mut description = options.clone();
        let is_off = |images: &Document| !images.get_bool("enabled").unwrap_or(false);
        if description.get_document("changeStreamPreAndPostImages").is_ok_and(is_off) {
            description.remove("changeStreamPreAndPostImages");
        }
        if description.contains_key("viewOn") {
            description.entry("pipeline".to_owned()).or_insert(Bson::Array(Vec::new()));
        } else if !description.contains_key("clusteredIndex") {
            let mut index = namespace::id_index();
            if let Some(collation) = description.get("collation") {
                index.insert("collation", collation.clone());
            }
            description.insert("idIndex", index);
        }
        Self { collection: collection.clone(), operation: "create", description, before: None }
    }

    /// Indexes were made or dropped.
    pub fn indexes(collection: &Collection, operation: &'static str, indexes: Vec<Document>) -> Self {
        let description = doc! { "indexes": indexes };
        Self { collection: collection.clone(), operation, description, before: None }
    }

    /// `collMod`: what was asked for, and what there was of the index that was changed, if any was.
    pub fn modify(collection: &Collection, description: Document, index_before: Option<Document>) -> Self {
        let before = collection.view().is_none().then(|| {
            let mut options = doc! { "uuid": collection.uuid() };
            options.extend(collection.options());
            let mut before = doc! { "collectionOptions": options };
            if let Some(index) = index_before {
                before.insert("indexOptions", index);
            }
            before
        });
        Self { collection: collection.clone(), operation: "modify", description, before }
    }
}

impl Happening {
    /// What a log said last, if the happening ended one.
    pub fn farewell(&self) -> Option<&Arc<Farewell>> {
        match self {
            Self::Drop { farewell, .. } | Self::Rename { farewell, .. } => farewell.as_ref(),
            Self::DropDatabase { .. } | Self::Define(_) => None,
        }
    }

    /// Forgets what a log said last.
    pub fn forget_farewell(&mut self) {
        match self {
            Self::Drop { farewell, .. } | Self::Rename { farewell, .. } => *farewell = None,
            Self::DropDatabase { .. } | Self::Define(_) => {}
        }
    }

    /// About how much memory it takes, the log left out.
    pub fn bytes(&self) -> usize {
        let size = |document: &Document| crate::service::to_raw(document).as_bytes().len();
        512 + match self {
            Self::Define(definition) => {
                size(&definition.description) + definition.before.as_ref().map_or(0, size)
            }
            _ => 0,
        }
    }

    /// Whether only a stream that asked for expanded events shows it.
    pub fn is_expanded(&self) -> bool {
        match self {
            Self::Define(_) => true,
            Self::Drop { collection, .. } => collection.view().is_some(),
            Self::Rename { .. } | Self::DropDatabase { .. } => false,
        }
    }

    /// The names it is about; no collection is the whole database.
    pub fn names(&self) -> Vec<(&str, Option<&str>)> {
        match self {
            Self::Drop { collection, .. } => vec![(&collection.db, Some(&collection.name))],
            Self::Define(definition) => {
                vec![(&definition.collection.db, Some(&definition.collection.name))]
            }
            Self::Rename { collection, to, .. } => {
                vec![(&collection.db, Some(&collection.name)), (&to.0, Some(&to.1))]
            }
            Self::DropDatabase { db } => vec![(db, None)],
        }
    }
}

impl Told {
    /// The event.
    pub fn event(&self, token: Document) -> Document {
        let (operation, subject) = match &self.happening {
            Happening::Drop { collection, .. } => ("drop", Some(collection)),
            Happening::Rename { collection, .. } => ("rename", Some(collection)),
            Happening::DropDatabase { .. } => ("dropDatabase", None),
            Happening::Define(definition) => (definition.operation, Some(&definition.collection)),
        };
        let mut event = Document::new();
        if let Happening::Rename { to: (db, coll), .. } = &self.happening {
            event.insert("to", doc! { "db": db, "coll": coll });
        }
        event.extend(doc! { "_id": token, "operationType": operation, "clusterTime": self.time });
        let is_view = subject.is_some_and(|collection| collection.view().is_some());
        if let Some(collection) = subject.filter(|_| !is_view) {
            event.insert("collectionUUID", collection.uuid());
        }
        event.insert("wallTime", DateTime::from_millis(self.wall.0 as i64));
        match (&self.happening, subject) {
            (Happening::DropDatabase { db }, _) => event.insert("ns", doc! { "db": db }),
            (_, Some(collection)) => {
                event.insert("ns", doc! { "db": &collection.db, "coll": &collection.name })
            }
            (_, None) => None,
        };
        match &self.happening {
            Happening::Rename { to: (db, coll), replaced, .. } => {
                let mut description = doc! { "to": { "db": db, "coll": coll } };
                if let Some(replaced) = replaced {
                    description.insert("dropTarget", replaced.uuid());
                }
                event.insert("operationDescription", description);
            }
            Happening::Define(definition) => {
                event.insert("operationDescription", definition.description.clone());
                if definition.operation == "create" {
                    event.insert("nsType", if is_view { "view" } else { "collection" });
                }
                if let Some(before) = &definition.before {
                    event.insert("stateBeforeChange", before.clone());
                }
            }
            Happening::Drop { .. } | Happening::DropDatabase { .. } => {}
        }
        event
    }

    /// The event after the last one of a stream that this ends.
    pub fn invalidate(&self, token: Document) -> Document {
        doc! {
            "_id": token, "operationType": "invalidate", "clusterTime": self.time,
            "wallTime": DateTime::from_millis(self.wall.0 as i64),
        }
    }
}
