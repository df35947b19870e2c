//! Named users: made, changed, dropped, shown.

use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};

use super::reply;
use crate::{
    auth::{Credentials, Mechanism},
    call::Call,
    cursor::{Pulled, Source},
    failure::{Failure, Result},
    filter::Filter,
    filtering::Surroundings,
    namespace,
    query::Query,
    service::to_raw,
    users::{self, StoredUser, credentials_document, document_id},
    writer::{Change, Decide, Writer},
};

fn roles(call: &Call<'_>, list: &Bson) -> Vec<Bson> {
    let Bson::Array(list) = list else { return Vec::new() };
    let role = |role: &Bson| match role {
        Bson::String(name) => Some(Bson::from(doc! { "role": name, "db": &call.db })),
        Bson::Document(role) => Some(Bson::from(role.clone())),
        _ => None,
    };
    list.iter().filter_map(role).collect()
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
    writer.decide(&[(target, Arc::new(decide) as Decide)], &[]).await.map_err(|(_, failure)| failure)?;
    Ok(())
}

fn missing(call: &Call<'_>, name: &str) -> Failure {
    Failure::new(11, format!("User '{name}@{}' not found", call.db))
}

/// `createUser`.
pub async fn create(call: &Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.text("createUser")?.unwrap_or_default().to_owned();
    let password = call.text("pwd")?;
    if password.is_none() && call.db != "$external" {
        return Err(Failure::bad_value(
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db",
        ));
    }
    let list = call.get("roles")?.map(Bson::try_from).transpose()?;
    let Some(list @ Bson::Array(_)) = list else {
        return Err(Failure::bad_value("\"createUser\" command requires a \"roles\" array"));
    };
    let mut user = doc! {
        "_id": document_id(&call.db, &name),
        "userId": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: call.mongo.engine.ids().unique().to_vec() },
        "user": &name,
        "db": &call.db,
        "credentials": credentials(call, &name, password.unwrap_or_default())?,
        "roles": roles(call, &list),
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
    if let Some(list) = call.get("roles")? {
        changes.insert("roles", roles(call, &Bson::try_from(list)?));
    }
    if let Some(data) = call.document("customData")? {
        changes.insert("customData", Document::try_from(data)?);
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
    let list = call.get("roles")?.map(Bson::try_from).transpose()?.unwrap_or(Bson::Null);
    let list = roles(call, &list);
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

async fn all(call: &Call<'_>, filter: Document) -> Result<Vec<StoredUser>> {
    let Some(collection) = namespace::seen(call, users::DATABASE, users::COLLECTION) else {
        return Ok(Vec::new());
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
    let with_credentials = call.flag("showCredentials")?;
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
pub async fn roles_info(_: &Call<'_>) -> Result<RawDocumentBuf> {
    reply(doc! { "roles": Vec::<Bson>::new() })
}
