//! A collection as an event tells of it: what has to be known of it when it is gone, or on another node.

use bson::{Bson, Document, doc};

use crate::{
    failure::{Failure, Result},
    namespace::{self, Collection},
};

/// A collection that something happened to, or in.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The database's name.
    pub db: String,
    /// Its name.
    pub name: String,
    /// Its container's number.
    pub container: u32,
    /// Whether it is a view.
    pub is_view: bool,
    /// Whether it shows documents as they were before and after a change.
    pub has_images: bool,
    /// Whether it keeps a log.
    pub has_log: bool,
}

impl Subject {
    /// A collection as it is.
    pub fn of(collection: &Collection) -> Self {
        let options = collection.options();
        let images = options.get_document("changeStreamPreAndPostImages");
        Self {
            db: collection.db.clone(),
            name: collection.name.clone(),
            container: collection.container.id,
            is_view: collection.view().is_some(),
            has_images: images.is_ok_and(|images| images.get_bool("enabled").unwrap_or(false)),
            has_log: collection.container.definition().log_minutes.is_some(),
        }
    }

    /// An identifier that stays with it.
    pub fn uuid(&self) -> Bson {
        namespace::uuid_of(self.container)
    }

    /// As it stands in a note.
    pub fn to_document(&self) -> Document {
        doc! {
            "db": &self.db, "name": &self.name, "container": i64::from(self.container),
            "view": self.is_view, "images": self.has_images, "log": self.has_log,
        }
    }

    /// From a note.
    pub fn from_document(document: &Document) -> Result<Self> {
        let read = || {
            Some(Self {
                db: document.get_str("db").ok()?.to_owned(),
                name: document.get_str("name").ok()?.to_owned(),
                container: u32::try_from(document.get_i64("container").ok()?).ok()?,
                is_view: document.get_bool("view").ok()?,
                has_images: document.get_bool("images").ok()?,
                has_log: document.get_bool("log").ok()?,
            })
        };
        read().ok_or_else(|| Failure::new(8, "a note about a collection cannot be read"))
    }
}
