//! Named users: made, changed, dropped, shown.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::reply;
use crate::{
    auth::{Credentials, Mechanism, Role, built_in_role, built_in_roles},
    call::Call,
    cursor::{Pulled, Source},
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    query::Query,
    service::to_raw,
    users::{self, StoredUser, credentials_document, document_id},
    writer::{Change, Writer},
};

/// The roles that a command lists, each with its database. There are only the built-in ones.
fn roles(call: &Call<'_>) -> Result<Option<Vec<Bson>>> {
    let Some(list) = call.array("roles")? else { return Ok(None) };
    let mut roles = Vec::new();
    for role in list {
        let (name, db) = match role? {
            RawBsonRef::String(name) => (name, call.db.as_str()),
            RawBsonRef::Document(role) => {
                let part = |field: &str| {
                    role.get_str(field).map_err(|_| Failure::missing(&format!("RoleName.{field}")))
                };
                (part("role")?, part("db")?)
            }
            _ => return Err(Failure::bad_value("Role names must be either strings or objects")),
        };
        if built_in_role(name, db).is_none() {
            return Err(Failure::new(31, format!("Could not find role: {name}@{db}")));
        }
        roles.push(Bson::from(doc! { "role": name, "db": db }));
    }
    Ok(Some(roles))
}

fn credentials(call: &Call<'_>, user: &str, password: &str) -> Result<Document> {
    let mut wanted = Mechanism::ALL.to_vec();
    if let Some(names) = call.array("mechanisms")? {
        wanted.clear();
        for name in names {
            let name = name?.as_str().unwrap_or_default();
            let known = Mechanism::from_name(name);
            wanted.push(known.ok_or_else(|| Failure::bad_value(format!("Unknown auth mechanism '{name}'")))?);
        }
    }
    let mut all = Document::new();
    for mechanism in wanted {
        let random = [call.mongo.engine.ids().unique(), call.mongo.engine.ids().unique()].concat();
        let salt = random.get(..mechanism.salt_len()).unwrap_or_default();
        let derived = Credentials::derive(mechanism, user, password, salt)
            .ok_or_else(|| Failure::bad_value("the password has characters that no password may have"))?;
        all.insert(mechanism.name(), credentials_document(&derived));
    }
    Ok(all)
}

async fn change(
    call: &Call<'_>,
    name: &str,
    decide: impl Fn(Option<Document>) -> Result<Option<Document>> + Send + Sync + 'static,
) -> Result<()> {
    let (collection, _) = namespace::ensure(call, users::DATABASE, users::COLLECTION).await?;
    let writer = Writer::new(call, &collection)?;
    let id = document_id(&call.db, name);
    let target = writer.target(&to_raw(&doc! { "_id": &id }))?;
    let decide = move |before: Option<&RawDocument>| {
        let before = before.map(Document::try_from).transpose()?;
        Ok(decide(before)?.map_or(Change::Remove, |after| Change::Put(to_raw(&after))))
    };
    writer.decide_one(target, Arc::new(decide), None).await?;
    Ok(())
}

fn missing(call: &Call<'_>, name: &str) -> Failure {
    Failure::new(11, format!("User '{name}@{}' not found", call.db))
}

/// `createUser`.
pub async fn create(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.text("createUser")?.unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err(Failure::bad_value("User document needs 'user' field to be non-empty"));
    }
    let password = call.text("pwd")?;
    if password.is_some_and(str::is_empty) {
        return Err(Failure::new(50687, "a password may not be empty"));
    }
    if password.is_none() && call.db != "$external" {
        return Err(Failure::bad_value(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
        ));
    }
    let roles = roles(call)?.ok_or_else(|| Failure::missing("createUser.roles"))?;
    let mut user = doc! {
        "_id": document_id(&call.db, &name),
        "userId": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: call.mongo.engine.ids().unique().to_vec() },
        "user": &name,
        "db": &call.db,
        "credentials": credentials(call, &name, password.unwrap_or_default())?,
        "roles": roles,
    };
    if let Some(data) = call.document("customData")? {
        user.insert("customData", Document::try_from(data)?);
    }
    let db = call.db.clone();
    change(call, &name.clone(), move |before| match before {
        Some(_) => Err(Failure::new(51003, format!("User \"{name}@{db}\" already exists"))),
        None => Ok(Some(user.clone())),
    })
    .await?;
    reply(Document::new())
}

/// `updateUser`.
pub async fn update(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.text("updateUser")?.unwrap_or_default().to_owned();
    let mut changes = Document::new();
    if let Some(password) = call.text("pwd")? {
        changes.insert("credentials", credentials(call, &name, password)?);
    }
    if let Some(roles) = roles(call)? {
        changes.insert("roles", roles);
    }
    if let Some(data) = call.document("customData")? {
        changes.insert("customData", Document::try_from(data)?);
    }
    if changes.is_empty() {
        return Err(Failure::bad_value("Must specify at least one field to update in updateUser"));
    }
    let none = missing(call, &name);
    change(call, &name, move |before| {
        let mut user = before.ok_or_else(|| none.clone())?;
        user.extend(changes.clone());
        Ok(Some(user))
    })
    .await?;
    reply(Document::new())
}

/// `grantRolesToUser` and `revokeRolesFromUser`.
pub async fn change_roles(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let grants = call.info.name == "grantRolesToUser";
    let name = call.text(call.info.name)?.unwrap_or_default().to_owned();
    let list = roles(call)?.ok_or_else(|| Failure::missing(&format!("{}.roles", call.info.name)))?;
    if list.is_empty() {
        let message = format!("{} command requires a non-empty \"roles\" array", call.info.name);
        return Err(Failure::bad_value(message));
    }
    let none = missing(call, &name);
    change(call, &name, move |before| {
        let mut user = before.ok_or_else(|| none.clone())?;
        let mut has = user.get_array("roles").cloned().unwrap_or_default();
        has.retain(|role| !list.contains(role));
        if grants {
            has.extend(list.clone());
        }
        user.insert("roles", has);
        Ok(Some(user))
    })
    .await?;
    reply(Document::new())
}

/// `dropUser`.
pub async fn drop(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.text("dropUser")?.unwrap_or_default().to_owned();
    let none = missing(call, &name);
    change(call, &name, move |before| match before {
        Some(_) => Ok(None),
        None => Err(none.clone()),
    })
    .await?;
    reply(Document::new())
}

/// `dropAllUsersFromDatabase`.
pub async fn drop_all(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let all = all(call, doc! { "db": &call.db }).await?;
    for user in &all {
        change(call, user.0.get_str("user").unwrap_or_default(), |_| Ok(None)).await?;
    }
    reply(doc! { "n": all.len() as i32 })
}

/// Users that a filter finds; who may not look at others sees who they are themselves.
async fn all(call: &Call<'_>, filter: Document) -> Result<Vec<StoredUser>> {
    let Some(collection) = namespace::seen(call, users::DATABASE, users::COLLECTION) else {
        return own(call, &filter).await;
    };
    let surroundings = Surroundings::of(call)?;
    let filter = Filter::parse(&to_raw(&filter), &surroundings.names())?;
    let mut source = Query::new(Some(collection), filter, surroundings, None).open(call.mongo).await?;
    let mut found = Vec::new();
    while let Pulled::Document(user) = source.pull(call.mongo, call.now).await? {
        found.push(StoredUser(Document::try_from(user.as_ref())?));
    }
    Ok(found)
}

/// Those of a connection's own users that a filter finds.
async fn own(call: &Call<'_>, filter: &Document) -> Result<Vec<StoredUser>> {
    let surroundings = Surroundings::of(call)?;
    let filter = Filter::parse(&to_raw(filter), &surroundings.names())?;
    let mut found = Vec::new();
    for user in &call.connection.who().users {
        let Some(stored) = users::find(call.mongo, &user.database, &user.name, call.now).await? else {
            continue;
        };
        if surroundings.matches(&filter, &to_raw(&stored.0))? {
            found.push(stored);
        }
    }
    Ok(found)
}

/// `usersInfo`.
pub async fn info(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let one = |value: RawBsonRef<'_>| -> Document {
        match value {
            RawBsonRef::String(name) => doc! { "user": name, "db": &call.db },
            RawBsonRef::Document(named) => {
                doc! { "user": named.get_str("user").unwrap_or_default(), "db": named.get_str("db").unwrap_or(&call.db) }
            }
            _ => doc! { "db": &call.db },
        }
    };
    let filter = match call.get("usersInfo")? {
        Some(RawBsonRef::Array(names)) => {
            let names: Vec<Bson> =
                names.into_iter().filter_map(|name| Some(Bson::from(one(name.ok()?)))).collect();
            if names.is_empty() {
                doc! { "_id": 0 }
            } else {
                doc! { "$or": names }
            }
        }
        Some(RawBsonRef::Document(every)) if every.get("forAllDBs")?.is_some() => Document::new(),
        Some(value) => one(value),
        None => doc! { "db": &call.db },
    };
    let filter = match call.document("filter")? {
        Some(more) => doc! { "$and": [filter, Document::try_from(more)?] },
        None => filter,
    };
    let with_credentials = call.flag("showCredentials")?;
    if with_credentials {
        call.check_role(users::DATABASE, Role::Admin)?;
    }
    let shown = all(call, filter).await?.into_iter().map(|user| {
        let mechanisms: Vec<Bson> =
            user.mechanisms().into_iter().map(|known| Bson::from(known.name())).collect();
        let mut shown = user.0;
        if !with_credentials {
            shown.remove("credentials");
        }
        shown.insert("mechanisms", mechanisms);
        Bson::from(shown)
    });
    reply(doc! { "users": shown.collect::<Vec<_>>() })
}

/// `rolesInfo`: there are only the built-in ones.
pub async fn roles_info(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let shown = |role: &str, db: &str| {
        let none = Vec::<Bson>::new();
        let role =
            doc! { "role": role, "db": db, "isBuiltin": true, "roles": none.clone(), "inheritedRoles": none };
        Bson::from(role)
    };
    let named = |value: RawBsonRef<'_>| -> Option<Bson> {
        let (role, db) = match value {
            RawBsonRef::String(role) => (role, call.db.as_str()),
            RawBsonRef::Document(role) => (role.get_str("role").ok()?, role.get_str("db").ok()?),
            _ => return None,
        };
        built_in_role(role, db).map(|_| shown(role, db))
    };
    let roles: Vec<Bson> = match call.get("rolesInfo")? {
        Some(RawBsonRef::Array(names)) => names.into_iter().filter_map(|name| named(name.ok()?)).collect(),
        Some(value @ (RawBsonRef::String(_) | RawBsonRef::Document(_))) => named(value).into_iter().collect(),
        _ if call.flag("showBuiltinRoles")? => {
            built_in_roles(&call.db).map(|role| shown(role, &call.db)).collect()
        }
        _ => Vec::new(),
    };
    reply(doc! { "roles": roles })
}
