//! What happens to collections and databases themselves, as streams tell it: made, changed, renamed, dropped.
//!
//! The shapes are those of MongoDB 8.2. What only a stream with `showExpandedEvents` tells is a [`Definition`], and
//! everything about views.

use bson::{Bson, DateTime, Document, doc};
use mayfly_engine::Timestamp;

use super::Subject;
use crate::{
    cluster_time::stamp,
    failure::{Failure, Result},
    namespace::{self, Collection},
};

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A collection is gone.
    Drop {
        /// What it was.
        collection: Subject,
    },
    /// A collection has another name.
    Rename {
        /// What it was.
        collection: Subject,
        /// Database and name now.
        to: (String, String),
        /// What had that name, and is gone.
        replaced: Option<Subject>,
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
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// What it is, or was before.
    pub collection: Subject,
    /// The type of the event.
    pub operation: String,
    /// What was asked for.
    pub description: Document,
    /// What it was before, if the event shows that.
    pub before: Option<Document>,
}

/// The type of the event that tells of a new collection.
const CREATE: &str = "create";

/// A happening with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The change of the catalog that it came with, and its place in that.
    pub number: (u64, u16),
    /// When, in the time of the cluster.
    pub moment: u64,
    /// When, on the clock.
    pub wall: Timestamp,
    /// What its collection wrote up to this commit came before it, and what comes later came after it.
    pub after: u64,
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
        Self { collection: Subject::of(collection), operation: CREATE.to_owned(), description, before: None }
    }

    /// Indexes were made or dropped.
    pub fn indexes(collection: &Collection, operation: &str, indexes: Vec<Document>) -> Self {
        let description = doc! { "indexes": indexes };
        Self {
            collection: Subject::of(collection),
            operation: operation.to_owned(),
            description,
            before: None,
        }
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
        Self { collection: Subject::of(collection), operation: "modify".to_owned(), description, before }
    }
}

impl Happening {
    /// The collection that it happened to.
    pub fn subject(&self) -> Option<&Subject> {
        match self {
            Self::Drop { collection } | Self::Rename { collection, .. } => Some(collection),
            Self::Define(definition) => Some(&definition.collection),
            Self::DropDatabase { .. } => None,
        }
    }

    /// The collection that is gone with it.
    pub fn gone(&self) -> Option<&Subject> {
        match self {
            Self::Drop { collection } => Some(collection),
            Self::Rename { replaced, .. } => replaced.as_ref(),
            Self::DropDatabase { .. } | Self::Define(_) => None,
        }
    }

    /// Whether its collection begins with it.
    pub fn is_beginning(&self) -> bool {
        matches!(self, Self::Define(definition) if definition.operation == CREATE)
    }

    /// Whether only a stream that asked for expanded events shows it.
    pub fn is_expanded(&self) -> bool {
        match self {
            Self::Define(_) => true,
            Self::Drop { collection } => collection.is_view,
            Self::Rename { .. } | Self::DropDatabase { .. } => false,
        }
    }

    /// The names it is about; no collection is the whole database.
    pub fn names(&self) -> Vec<(&str, Option<&str>)> {
        match self {
            Self::Drop { collection } => vec![(&collection.db, Some(&collection.name))],
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
        let operation = match &self.happening {
            Happening::Drop { .. } => "drop",
            Happening::Rename { .. } => "rename",
            Happening::DropDatabase { .. } => "dropDatabase",
            Happening::Define(definition) => &definition.operation,
        };
        let subject = self.happening.subject();
        let mut event = Document::new();
        if let Happening::Rename { to: (db, coll), .. } = &self.happening {
            event.insert("to", doc! { "db": db, "coll": coll });
        }
        event.extend(doc! { "_id": token, "operationType": operation, "clusterTime": stamp(self.moment) });
        let is_view = subject.is_some_and(|collection| collection.is_view);
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
                if definition.operation == CREATE {
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

    /// As a note of the engine's.
    pub fn to_note(&self) -> Document {
        let mut note = doc! {
            "moment": self.moment as i64, "wall": self.wall.0 as i64, "after": self.after as i64,
        };
        note.extend(match &self.happening {
            Happening::Drop { collection } => doc! { "drop": collection.to_document() },
            Happening::Rename { collection, to: (db, name), replaced } => doc! {
                "rename": collection.to_document(), "to": [db, name],
                "replaced": replaced.as_ref().map(Subject::to_document),
            },
            Happening::DropDatabase { db } => doc! { "dropDatabase": db },
            Happening::Define(definition) => doc! {
                "define": definition.collection.to_document(), "operation": &definition.operation,
                "description": definition.description.clone(), "before": definition.before.clone(),
            },
        });
        note
    }

    /// From a note.
    pub fn from_note(number: (u64, u16), note: &Document) -> Result<Self> {
        let word = |name: &str| note.get_i64(name).map(|word| word as u64).map_err(|_| damaged());
        let subject = |name: &str| note.get_document(name).ok().map(Subject::from_document).transpose();
        let happening = if let Some(collection) = subject("drop")? {
            Happening::Drop { collection }
        } else if let Some(collection) = subject("rename")? {
            let to = note.get_array("to").map_err(|_| damaged())?;
            let [Bson::String(db), Bson::String(name)] = to.as_slice() else { return Err(damaged()) };
            let replaced = subject("replaced")?;
            Happening::Rename { collection, to: (db.clone(), name.clone()), replaced }
        } else if let Some(collection) = subject("define")? {
            Happening::Define(Box::new(Definition {
                collection,
                operation: note.get_str("operation").map_err(|_| damaged())?.to_owned(),
                description: note.get_document("description").map_err(|_| damaged())?.clone(),
                before: note.get_document("before").ok().cloned(),
            }))
        } else {
            let db = note.get_str("dropDatabase").map_err(|_| damaged())?.to_owned();
            Happening::DropDatabase { db }
        };
        let (moment, wall, after) = (word("moment")?, Timestamp(word("wall")?), word("after")?);
        Ok(Self { number, moment, wall, after, happening })
    }

    /// The event after the last one of a stream that this ends.
    pub fn invalidate(&self, token: Document) -> Document {
        doc! {
            "_id": token, "operationType": "invalidate", "clusterTime": stamp(self.moment),
            "wallTime": DateTime::from_millis(self.wall.0 as i64),
        }
    }
}

fn damaged() -> Failure {
    Failure::new(8, "a note about a collection cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn happenings_are_read_as_they_were_written() {
        let subject = |container| Subject {
            db: "db".to_owned(),
            name: "c".to_owned(),
            container,
            is_view: false,
            has_images: true,
            has_log: true,
        };
        let definition = Definition {
            collection: subject(9),
            operation: CREATE.to_owned(),
            description: doc! { "a": 1 },
            before: Some(doc! { "b": 1 }),
        };
        let to = ("db".to_owned(), "d".to_owned());
        for happening in [
            Happening::Drop { collection: subject(7) },
            Happening::Rename { collection: subject(7), to: to.clone(), replaced: Some(subject(8)) },
            Happening::Rename { collection: subject(7), to, replaced: None },
            Happening::DropDatabase { db: "db".to_owned() },
            Happening::Define(Box::new(definition)),
        ] {
            let told =
                Told { number: (3, 1), moment: 1 << 60, wall: Timestamp(5), after: u64::MAX, happening };
            assert_eq!(Told::from_note((3, 1), &told.to_note()).unwrap(), told);
        }
        assert!(Told::from_note((1, 0), &doc! { "moment": 1 }).is_err());
    }
}
