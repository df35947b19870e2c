//! A request that was let in: what handlers read from it.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use mayfly_engine::{
    Clock as _, Container, Database, DocumentId, Engine, IfMatch, Kept, Place, SystemClock, Timestamp,
};
use mayfly_value::partition::PartitionKey;

use crate::{
    address::{Address, ContainerRef, Ref},
    auth::Keys,
    error::ApiError,
    headers::{self, Headers},
    path::Path,
    resource_token::{self, Grant, Mode},
    rid::Rid,
};

/// A request, checked and addressed.
pub struct Call<'a> {
    /// Where documents are.
    pub engine: &'a Engine,
    /// What it is about.
    pub address: &'a Address<'a>,
    /// How it is to be done.
    pub headers: Headers<'a>,
    /// What it brings.
    pub body: &'a Bytes,
    /// The time it is answered at.
    pub now: Timestamp,
    /// `http://host:port/` as the client reached us.
    pub base_url: &'a str,
    /// The id of the request, for logs on both sides.
    pub activity_id: &'a str,
    /// The account's keys, to sign tokens with.
    pub keys: &'a Keys,
    /// What the caller is confined to, if it came with a token of a permission.
    pub grant: Option<&'a Grant>,
}

/// How long a token is valid: unless asked otherwise, at least, and at most.
const TOKEN_SECONDS: i64 = 3600;
const TOKEN_SECONDS_MIN: i64 = 10;
const TOKEN_SECONDS_MAX: i64 = 86_400;

/// The longest id of an item, in bytes.
const ITEM_ID_BYTES_MAX: usize = 1023;

/// What MongoDB keeps for itself, users and their credentials among it, is nobody's to see here: a key that only reads gives no
/// right to it.
fn is_shown(container: &Container) -> bool {
    !(container.is_collection() && container.name().starts_with("system."))
}

impl Call<'_> {
    /// A header's text.
    pub fn text(&self, name: &HeaderName) -> Result<Option<&str>, ApiError> {
        headers::text(&self.headers, name)
    }

    /// A boolean header.
    pub fn flag(&self, name: &HeaderName) -> Result<bool, ApiError> {
        headers::flag(&self.headers, name)
    }

    /// The database an address names.
    pub fn database(&self, name: &Ref<'_>) -> Result<Arc<Database>, ApiError> {
        let by_name = self.engine.database(name.name());
        let found = match (by_name, name.rid()) {
            (Err(_), Some(Rid::Database { db })) => self.engine.database_by_id(db),
            (by_name, _) => by_name,
        };
        found.map_err(ApiError::from)
    }

    /// The container an address names, with its database. Checks the RID the client has cached, if it sent one.
    pub fn container(&self, name: &ContainerRef<'_>) -> Result<Arc<Place>, ApiError> {
        let place = match self.engine.place(name.db.name(), name.coll.name()) {
            Ok(place) => place,
            Err(_) => self.place_by_rids(name)?,
        };
        let Place { database, container } = &*place;
        if container.database != database.id || !is_shown(container) {
            return Err(ApiError::resource_not_found());
        }
        let rid = Rid::Container { db: database.id, coll: container.id };
        // A token outlives neither its container nor one that was made again under the same name.
        if self.grant.is_some_and(|grant| !grant.covers_container(rid)) {
            return Err(resource_token::forbidden());
        }
        if self.text(&headers::INTENDED_COLLECTION_RID)?.is_some_and(|intended| intended != rid.encode()) {
            return Err(ApiError::incorrect_container_rid());
        }
        Ok(place)
    }

    /// A container that is not there by its name and its database's; each of them may be a RID instead.
    fn place_by_rids(&self, name: &ContainerRef<'_>) -> Result<Arc<Place>, ApiError> {
        let database = self.database(&name.db)?;
        let by_name = self.engine.container(&database, name.coll.name());
        let container = match (by_name, name.coll.rid()) {
            (Err(_), Some(Rid::Container { coll, .. })) => self.engine.container_by_id(coll),
            (by_name, _) => by_name,
        };
        Ok(Arc::new(Place { database, container: container? }))
    }

    /// The containers of a database.
    pub fn containers(&self, database: &Database) -> Vec<Arc<Container>> {
        let mut containers = self.engine.containers(database);
        containers.retain(|container| is_shown(container));
        containers
    }

    /// The container of an address below it: a missing one is a missing owner.
    pub fn owner(&self, name: &ContainerRef<'_>) -> Result<Arc<Place>, ApiError> {
        self.container(name).map_err(|error| match error.status {
            404 => ApiError::owner_not_found(),
            _ => error,
        })
    }

    /// The partition key of a point operation.
    pub fn partition_key(&self) -> Result<PartitionKey, ApiError> {
        self.partition_key_if_any()?.ok_or_else(ApiError::partition_key_required)
    }

    /// The partition key, if the request names one.
    pub fn partition_key_if_any(&self) -> Result<Option<PartitionKey>, ApiError> {
        let Some(text) = self.text(&headers::PARTITION_KEY)? else { return Ok(None) };
        PartitionKey::parse_header(text).map(Some).map_err(|_| ApiError::partition_key_shape())
    }

    /// The condition on the version that is there.
    pub fn if_match(&self) -> Result<Option<IfMatch>, ApiError> {
        Ok(self.text(&IF_MATCH)?.map(IfMatch::parse))
    }

    /// The version the client has already.
    pub fn if_none_match(&self) -> Result<Option<IfMatch>, ApiError> {
        Ok(self.text(&IF_NONE_MATCH)?.map(IfMatch::parse))
    }

    /// Whether the client wants no body back from a write.
    pub fn wants_minimal(&self) -> bool {
        self.headers.get_text(&headers::PREFER).is_some_and(|value| value.contains("return=minimal"))
    }

    /// A token that lets its bearer do what a permission says. Empty if the permission's resource is not there.
    pub fn token_for(&self, permission: &Kept) -> Result<String, ApiError> {
        let text = |name: &str| permission.value[name].as_str().unwrap_or_default();
        let Ok(path) = Path::parse(text("resource")) else { return Ok(String::new()) };
        let Ok(address) = Address::from_path(&path) else { return Ok(String::new()) };
        let Some(Ok(place)) = address.container().map(|name| self.container(name)) else {
            return Ok(String::new());
        };
        let Place { database, container } = &*place;
        let mut resource_link = format!("dbs/{}/colls/{}", database.name, container.name());
        if let Address::Document { id, .. } = &address {
            resource_link = format!("{resource_link}/docs/{}", id.name());
        }
        let seconds = headers::integer(&self.headers, &headers::EXPIRY_SECONDS)?.unwrap_or(TOKEN_SECONDS);
        if !(TOKEN_SECONDS_MIN..=TOKEN_SECONDS_MAX).contains(&seconds) {
            return Err(ApiError::bad_request(format!(
                "A token is valid from {TOKEN_SECONDS_MIN} to {TOKEN_SECONDS_MAX} seconds."
            )));
        }
        let key = &permission.value["resourcePartitionKey"];
        let grant = Grant {
            mode: if text("permissionMode").eq_ignore_ascii_case("all") { Mode::All } else { Mode::Read },
            resource_link,
            resource_rid: Rid::Container { db: database.id, coll: container.id },
            partition_key: (!key.is_null()).then(|| key.to_string()),
            expires_at: SystemClock.now().seconds().saturating_add_signed(seconds),
        };
        let [.., a, b, c, d, e, f, g, h] = self.engine.ids().unique();
        let nonce = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        Ok(resource_token::mint(&self.keys.primary, &grant, nonce))
    }

    /// Refuses a partition key that the caller's token does not reach.
    pub fn check_grant_key(&self, key: &PartitionKey) -> Result<(), ApiError> {
        let bound = self.grant.and_then(|grant| grant.partition_key.as_deref());
        match bound.map(PartitionKey::parse_header) {
            None => Ok(()),
            Some(Ok(bound)) if bound == *key => Ok(()),
            Some(_) => Err(resource_token::forbidden()),
        }
    }

    /// The body as a JSON object.
    pub fn json(&self) -> Result<serde_json::Map<String, serde_json::Value>, ApiError> {
        match serde_json::from_slice(self.body) {
            Ok(serde_json::Value::Object(object)) => Ok(object),
            Ok(_) => Err(ApiError::invalid_input()),
            Err(error) => Err(ApiError::bad_request(format!(
                "The input content is invalid: it is not valid JSON ({error})."
            ))),
        }
    }

    /// The most items a page may have.
    pub fn page_items(&self) -> Result<usize, ApiError> {
        match headers::integer(&self.headers, &headers::MAX_ITEM_COUNT)? {
            None | Some(-1) => Ok(PAGE_ITEMS),
            Some(n) if n > 0 => Ok(n.min(PAGE_ITEMS_MAX) as usize),
            Some(n) => Err(ApiError::bad_request(format!("The page size {n} is invalid."))),
        }
    }
}

/// The page size when the client leaves it to us.
const PAGE_ITEMS: usize = 100;
const PAGE_ITEMS_MAX: i64 = 10_000;

/// Checks the id of an item.
pub fn item_id(id: &str) -> Result<DocumentId, ApiError> {
    if id.is_empty() || id.len() > ITEM_ID_BYTES_MAX {
        return Err(ApiError::id_length(ITEM_ID_BYTES_MAX + 1));
    }
    if id.contains(['/', '\\', '\0']) {
        return Err(ApiError::invalid_input());
    }
    Ok(DocumentId::text(id))
}
