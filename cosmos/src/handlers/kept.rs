//! Users, permissions, client encryption keys and scripts: resources that are stored, listed and given back.
//!
//! They differ in what they belong to, which properties they must have and what the server adds, and that is what the
//! table below says; create, read, replace, delete and list are the same for all.

use hyper::StatusCode;
use mayfly_engine::{Kept, KeptKind};
use serde_json::{Map, Value, json};

use super::{Answer, list, resource as answer};
use crate::{
    address::{Address, Ref, ScriptKind},
    call::Call,
    error::ApiError,
    headers,
    query::resources,
    reply::Reply,
    rid::{ChildKind, Rid},
};

/// Where a kept resource is: its kind, what it belongs to, and its own name if it is one and not a feed.
struct Place<'a> {
    kind: KeptKind,
    owner: u32,
    /// The owner's `_self`.
    owner_path: String,
    owner_rid: String,
    /// How the resource's RID is made from its number.
    rid: Box<dyn Fn(u32) -> Rid + Send + Sync + 'a>,
    name: Option<&'a Ref<'a>>,
}

impl Call<'_> {
    fn place(&self) -> Result<Place<'_>, ApiError> {
        let missing_owner =
            |error: ApiError| if error.status == 404 { ApiError::owner_not_found() } else { error };
        match self.address {
            Address::Users { db } => self.in_database(db, KeptKind::User, None),
            Address::User { db, user } => self.in_database(db, KeptKind::User, Some(user)),
            Address::ClientEncryptionKeys { db } => self.in_database(db, KeptKind::ClientEncryptionKey, None),
            Address::ClientEncryptionKey { db, key } => {
                self.in_database(db, KeptKind::ClientEncryptionKey, Some(key))
            }
            Address::Permissions { db, user } => self.in_user(db, user, None).map_err(missing_owner),
            Address::Permission { db, user, permission } => {
                self.in_user(db, user, Some(permission)).map_err(missing_owner)
            }
            Address::Scripts { container, kind } => {
                let place = self.owner(container)?;
                let container = &place.container;
                Ok(in_container(container, *kind, None))
            }
            Address::Script { container, kind, id } => {
                let place = self.owner(container)?;
                let container = &place.container;
                Ok(in_container(container, *kind, Some(id)))
            }
            _ => Err(ApiError::internal()),
        }
    }

    fn in_database<'a>(
        &self,
        db: &Ref<'_>,
        kind: KeptKind,
        name: Option<&'a Ref<'a>>,
    ) -> Result<Place<'a>, ApiError> {
        let database = self.database(db)?;
        let (owner, owner_rid) = (database.id, Rid::Database { db: database.id }.encode());
        let rid = Box::new(move |number| Rid::UserOrKey { db: owner, number });
        Ok(Place { kind, owner, owner_path: format!("dbs/{owner_rid}/"), owner_rid, rid, name })
    }

    fn in_user<'a>(
        &self,
        db: &Ref<'_>,
        user: &Ref<'_>,
        name: Option<&'a Ref<'a>>,
    ) -> Result<Place<'a>, ApiError> {
        let users = self.in_database(db, KeptKind::User, None)?;
        let user = self.named(&users, user)?;
        let (db, owner) = (users.owner, user.id);
        let owner_rid = Rid::UserOrKey { db, number: owner }.encode();
        let rid = Box::new(move |number| Rid::Permission { db, user: owner, number: u64::from(number) });
        let owner_path = format!("{}users/{owner_rid}/", users.owner_path);
        Ok(Place { kind: KeptKind::Permission, owner, owner_path, owner_rid, rid, name })
    }

    /// The resource with this name, or with this RID.
    fn named(&self, place: &Place<'_>, name: &Ref<'_>) -> Result<Kept, ApiError> {
        let by_name = self.engine.kept_named(place.kind, place.owner, name.name());
        match (by_name, name.rid()) {
            (Err(_), Some(rid)) => {
                let all = self.engine.kept(place.kind, place.owner);
                let found = all.into_iter().find(|kept| (place.rid)(kept.id) == rid);
                found.ok_or_else(ApiError::resource_not_found)
            }
            (by_name, _) => Ok(by_name?),
        }
    }
}

fn in_container<'a>(
    container: &mayfly_engine::Container,
    kind: ScriptKind,
    name: Option<&'a Ref<'a>>,
) -> Place<'a> {
    let (db, coll) = (container.database, container.id);
    let (kind, child) = match kind {
        ScriptKind::StoredProcedure => (KeptKind::StoredProcedure, ChildKind::StoredProcedure),
        ScriptKind::Trigger => (KeptKind::Trigger, ChildKind::Trigger),
        ScriptKind::UserDefinedFunction => (KeptKind::UserDefinedFunction, ChildKind::UserDefinedFunction),
    };
    let owner_rid = Rid::Container { db, coll }.encode();
    let owner_path = format!("dbs/{}/colls/{owner_rid}/", Rid::Database { db }.encode());
    let rid = Box::new(move |number| Rid::Child { db, coll, kind: child, number: u64::from(number) });
    Place { kind, owner: coll, owner_path, owner_rid, rid, name }
}

/// The word in paths and the key in feeds.
fn words(kind: KeptKind) -> (&'static str, &'static str) {
    match kind {
        KeptKind::User => ("users", "Users"),
        KeptKind::Permission => ("permissions", "Permissions"),
        KeptKind::ClientEncryptionKey => ("clientencryptionkeys", "ClientEncryptionKeys"),
        KeptKind::StoredProcedure => ("sprocs", "StoredProcedures"),
        KeptKind::Trigger => ("triggers", "Triggers"),
        KeptKind::UserDefinedFunction => ("udfs", "UserDefinedFunctions"),
        KeptKind::Offer => ("offers", "Offers"),
    }
}

/// Properties that a resource must have beside its id.
fn required(kind: KeptKind) -> &'static [&'static str] {
    match kind {
        KeptKind::User | KeptKind::Offer => &[],
        KeptKind::Permission => &["permissionMode", "resource"],
        KeptKind::ClientEncryptionKey => {
            &["encryptionAlgorithm", "wrappedDataEncryptionKey", "keyWrapMetadata"]
        }
        KeptKind::StoredProcedure | KeptKind::UserDefinedFunction => &["body"],
        KeptKind::Trigger => &["body", "triggerType", "triggerOperation"],
    }
}

/// Everything of one kind and owner, as it is shown.
fn shaped(call: &Call<'_>, place: &Place<'_>) -> Result<Vec<Value>, ApiError> {
    call.engine.kept(place.kind, place.owner).iter().map(|kept| shape(call, place, kept)).collect()
}

/// `GET` of a feed
pub async fn list_all(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let all = shaped(call, &place)?;
    list(call, &place.owner_rid, words(place.kind).1, &all, Value::clone)
}

/// `POST` to a feed with a query
pub async fn query(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let all = shaped(call, &place)?;
    resources::query(call, &place.owner_rid, words(place.kind).1, &all)
}

/// `POST` to a feed: create, or upsert
pub async fn create(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let (name, value) = body(call, &place)?;
    let upsert = call.flag(&crate::headers::IS_UPSERT)?;
    let (status, kept) = match call.engine.kept_named(place.kind, place.owner, &name) {
        Ok(present) if upsert => {
            check_permission(call, &place, &value, Some(&present))?;
            let replaced =
                call.engine.replace_kept(place.kind, &present, &name, value, call.if_match()?, call.now);
            (StatusCode::OK, replaced.await?)
        }
        _ => {
            check_permission(call, &place, &value, None)?;
            let kept = call.engine.keep(place.kind, place.owner, &name, value, call.now).await?;
            (StatusCode::CREATED, kept)
        }
    };
    Ok(answer(status, &shape(call, &place, &kept)?, &kept.etag().to_string()))
}

/// `GET` of a resource
pub async fn read(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let kept = call.named(&place, place.name.ok_or_else(ApiError::internal)?)?;
    let etag = kept.etag();
    if call.if_none_match()?.is_some_and(|condition| condition.allows(etag)) {
        return Ok(Reply::empty(StatusCode::NOT_MODIFIED).with(&headers::ETAG, etag));
    }
    Ok(answer(StatusCode::OK, &shape(call, &place, &kept)?, &etag.to_string()))
}

/// `PUT` of a resource. A user or permission may get another name.
pub async fn replace(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let present = call.named(&place, place.name.ok_or_else(ApiError::internal)?)?;
    let (name, value) = body(call, &place)?;
    check_permission(call, &place, &value, Some(&present))?;
    let replaced = call.engine.replace_kept(place.kind, &present, &name, value, call.if_match()?, call.now);
    let kept = replaced.await?;
    Ok(answer(StatusCode::OK, &shape(call, &place, &kept)?, &kept.etag().to_string()))
}

/// `DELETE` of a resource
pub async fn delete(call: &Call<'_>) -> Answer {
    let place = call.place()?;
    let kept = call.named(&place, place.name.ok_or_else(ApiError::internal)?)?;
    call.engine.delete_kept(place.kind, &kept, call.if_match()?).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The name and the value of a body, without what the server owns.
fn body(call: &Call<'_>, place: &Place<'_>) -> Result<(String, Value), ApiError> {
    let mut object = call.json()?;
    let name = match object.get("id") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err(ApiError::invalid_input()),
        None => return Err(ApiError::missing_properties(&["id"])),
    };
    let is_missing = |name: &&&str| object.get(**name).is_none_or(Value::is_null);
    let missing: Vec<_> = required(place.kind).iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        return Err(ApiError::missing_properties(&missing));
    }
    object.retain(|name, _| !name.starts_with('_'));
    Ok((name, Value::Object(object)))
}

/// A permission has a mode, and a user has one permission for a resource.
fn check_permission(
    call: &Call<'_>,
    place: &Place<'_>,
    value: &Value,
    present: Option<&Kept>,
) -> Result<(), ApiError> {
    if place.kind != KeptKind::Permission {
        return Ok(());
    }
    let mode = value["permissionMode"].as_str().unwrap_or_default();
    if !["all", "read"].contains(&mode.to_ascii_lowercase().as_str()) {
        return Err(ApiError::bad_request(format!(
            "The permission mode '{mode}' is neither 'All' nor 'Read'."
        )));
    }
    let others = call.engine.kept(place.kind, place.owner);
    let same = |kept: &Kept| {
        present.is_none_or(|present| present.id != kept.id) && kept.value["resource"] == value["resource"]
    };
    match others.iter().any(same) {
        true => Err(ApiError::resource_exists()),
        false => Ok(()),
    }
}

fn shape(call: &Call<'_>, place: &Place<'_>, kept: &Kept) -> Result<Value, ApiError> {
    let mut object = match &kept.value {
        Value::Object(object) => object.clone(),
        _ => Map::new(),
    };
    let rid = (place.rid)(kept.id).encode();
    object.insert("_self".into(), json!(format!("{}{}/{rid}/", place.owner_path, words(place.kind).0)));
    object.insert("_rid".into(), json!(rid));
    object.insert("_etag".into(), json!(kept.etag().to_string()));
    object.insert("_ts".into(), json!(kept.modified));
    match place.kind {
        KeptKind::User => {
            object.insert("_permissions".into(), json!("permissions/"));
        }
        KeptKind::Permission => {
            object.insert("_token".into(), json!(call.token_for(kept)?));
        }
        _ => {}
    }
    Ok(Value::Object(object))
}
