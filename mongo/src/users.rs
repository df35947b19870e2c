//! Named users: documents of `admin.system.users`, in the shape MongoDB gives them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bson::{Bson, Document, doc};
use mayfly_engine::{DocumentId, Timestamp};

use crate::{
    auth::{Credentials, Mechanism, User, Verifier},
    failure::Result,
    service::Mongo,
};

/// Where users are kept.
pub const DATABASE: &str = "admin";
/// The collection of users.
pub const COLLECTION: &str = "system.users";

/// Whether this is where users are kept.
pub fn are_kept_in(db: &str, collection: &str) -> bool {
    db == DATABASE && collection == COLLECTION
}

/// A stored user.
#[derive(Clone, Debug)]
pub struct StoredUser(pub Document);

impl StoredUser {
    /// The user as a connection knows it.
    pub fn user(&self) -> User {
        let text = |name: &str| self.0.get_str(name).unwrap_or_default().to_owned();
        let roles = self.0.get_array("roles").cloned().unwrap_or_default();
        let pair = |role: &Bson| {
            let role = role.as_document()?;
            Some((role.get_str("role").ok()?.to_owned(), role.get_str("db").ok()?.to_owned()))
        };
        User { name: text("user"), database: text("db"), roles: roles.iter().filter_map(pair).collect() }
    }

    /// The mechanisms it has credentials for.
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        let credentials = self.0.get_document("credentials").cloned().unwrap_or_default();
        Mechanism::ALL.into_iter().filter(|mechanism| credentials.contains_key(mechanism.name())).collect()
    }

    /// What to check its proofs against.
    pub fn verifier(&self, mechanism: Mechanism) -> Option<Verifier<User>> {
        let kept = self.0.get_document("credentials").ok()?.get_document(mechanism.name()).ok()?;
        let bytes = |name: &str| STANDARD.decode(kept.get_str(name).ok()?).ok();
        let credentials = Credentials {
            salt: bytes("salt")?,
            rounds: u32::try_from(kept.get_i32("iterationCount").ok()?).ok()?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        };
        Some(Verifier { candidates: vec![(credentials, self.user())] })
    }
}

/// The stored form of credentials.
pub fn credentials_document(credentials: &Credentials) -> Document {
    doc! {
        "iterationCount": credentials.rounds as i32,
        "salt": STANDARD.encode(&credentials.salt),
        "storedKey": STANDARD.encode(&credentials.stored_key),
        "serverKey": STANDARD.encode(&credentials.server_key),
    }
}

/// The name of a user's document.
pub fn document_id(db: &str, name: &str) -> String {
    format!("{db}.{name}")
}

/// A user by database and name.
pub async fn find(mongo: &Mongo, db: &str, name: &str, now: Timestamp) -> Result<Option<StoredUser>> {
    let Ok(database) = mongo.engine.database(DATABASE) else { return Ok(None) };
    let Ok(container) = mongo.engine.container(&database, COLLECTION) else { return Ok(None) };
    if !container.is_collection() {
        return Ok(None);
    }
    let id = DocumentId::text(&document_id(db, name));
    let record = mongo.engine.read_collection(&container, &id, None, now).await?;
    Ok(record.map(|record| Document::try_from(record.body())).transpose()?.map(StoredUser))
}
