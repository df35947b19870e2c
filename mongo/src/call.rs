//! One command on its way: who asks, what, and when.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use bson::{RawArray, RawBsonRef, RawDocument, RawDocumentBuf};
use mayfly_engine::{Timestamp, clock::Stopwatch};

use crate::{
    auth::{Right, Role},
    commands::{Access, CommandInfo},
    connection::Connection,
    failure::{Failure, Result},
    operations::Running,
    service::Mongo,
    session::{SessionUse, Txn},
    users,
    wire::Request,
};

/// Arguments that every command may have.
const GENERIC: &[&str] = &[
    "$db",
    "$readPreference",
    "$clusterTime",
    "$audit",
    "$client",
    "$configServerState",
    "$configTime",
    "$topologyTime",
    "$oplogQueryData",
    "$replData",
    "$tenant",
    "lsid",
    "txnNumber",
    "txnRetryCounter",
    "autocommit",
    "startTransaction",
    "coordinator",
    "stmtId",
    "stmtIds",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "rawData",
    "databaseVersion",
    "shardVersion",
    "help",
    "mayBypassWriteBlocking",
    "clientOperationKey",
    "versionContext",
];

/// Stages that are not part of version 1 of the stable API.
const UNSTABLE_STAGES: &[&str] = &[
    "$currentOp",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$search",
    "$searchMeta",
    "$vectorSearch",
];

/// A command being answered.
pub struct Call<'a> {
    /// The front-end.
    pub mongo: &'a Mongo,
    /// Who asks.
    pub connection: &'a Connection,
    /// What was sent.
    pub request: &'a Request,
    /// The command's row.
    pub info: &'static CommandInfo,
    /// The database.
    pub db: String,
    /// The time it is answered at.
    pub now: Timestamp,
    /// The session and transaction it belongs to.
    pub session: Option<SessionUse>,
    /// The moment it reads, and when that was, if it asked for one.
    pub snapshot: Option<(bson::Timestamp, Arc<Txn>)>,
    /// Set by a fail point: the connection closes instead of an answer.
    pub(crate) hang_up: AtomicBool,
    /// How long it has taken, and may take.
    pub(crate) watch: Stopwatch,
    pub(crate) time_limit: Option<Duration>,
    /// Its place among what runs.
    pub(crate) running: Option<Running<'a>>,
}

impl<'a> Call<'a> {
    pub(crate) async fn new(
        mongo: &'a Mongo,
        connection: &'a Connection,
        request: &'a Request,
        info: &'static CommandInfo,
    ) -> Result<Self> {
        let db = database_of(request)?;
        let session = SessionUse::parse(request, info)?;
        let watch = Stopwatch::start();
        let now = mongo.engine.now().await?;
        let mut call = Self {
            mongo,
            connection,
            request,
            info,
            db,
            now,
            session,
            snapshot: None,
            hang_up: AtomicBool::new(false),
            watch,
            time_limit: None,
            running: None,
        };
        call.time_limit = call.asked_time_limit();
        call.running = Some(mongo.operations.begin(&call));
        Ok(call)
    }

    /// What a read looks at, if not at everything as it is: the view of its transaction, or of a moment.
    pub fn view(&self) -> Result<Option<Arc<Txn>>> {
        match &self.snapshot {
            Some((_, view)) => Ok(Some(view.clone())),
            None => self.mongo.sessions.transaction(self),
        }
    }

    /// Whether it is a step of a transaction.
    pub fn in_transaction(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.in_transaction)
    }

    /// The session, if it is in a transaction.
    pub fn transaction_session(&self) -> Option<&[u8]> {
        let session = self.session.as_ref().filter(|session| session.in_transaction);
        session.map(|session| session.id.as_slice())
    }

    /// The arguments.
    pub fn body(&self) -> &'a RawDocument {
        &self.request.body
    }

    /// An argument; null counts as absent.
    pub fn get(&self, name: &str) -> Result<Option<RawBsonRef<'a>>> {
        let body: &'a RawDocument = &self.request.body;
        Ok(body.get(name)?.filter(|value| !matches!(value, RawBsonRef::Null | RawBsonRef::Undefined)))
    }

    /// The argument's wrong type, in words.
    fn wrong_type(&self, name: &str, found: RawBsonRef<'_>, expected: &str) -> Failure {
        wrong_type(&format!("{}.{name}", self.info.name), found, expected)
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, other, "string")),
        }
    }

    /// A document.
    pub fn document(&self, name: &str) -> Result<Option<&'a RawDocument>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Document(document)) => Ok(Some(document)),
            Some(other) => Err(self.wrong_type(name, other, "object")),
        }
    }

    /// An array.
    pub fn array(&self, name: &str) -> Result<Option<&'a RawArray>> {
        match self.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Array(array)) => Ok(Some(array)),
            Some(other) => Err(self.wrong_type(name, other, "array")),
        }
    }

    /// Yes or no; numbers count as well.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name)? {
            None => Ok(false),
            Some(RawBsonRef::Boolean(value)) => Ok(value),
            Some(other) => match integer(other) {
                Some(number) => Ok(number != 0),
                None => Err(self.wrong_type(name, other, "bool")),
            },
        }
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        match self.get(name)? {
            None => Ok(None),
            Some(value) => match integer(value) {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong_type(name, value, "long")),
            },
        }
    }

    /// A whole number that may not be negative.
    pub fn count(&self, name: &str) -> Result<Option<u64>> {
        match self.integer(name)? {
            None => Ok(None),
            Some(number) => u64::try_from(number).map(Some).map_err(|_| {
                let message = format!("BSON field '{name}' value must be >= 0, actual value '{number}'");
                Failure::bad_value(message)
            }),
        }
    }

    /// Documents that came as a sequence or as an array.
    pub fn documents(&self, name: &str) -> Result<Option<Vec<RawDocumentBuf>>> {
        if let Some((_, documents)) = self.request.sequences.iter().find(|(found, _)| found == name) {
            return Ok(Some(documents.clone()));
        }
        let Some(array) = self.array(name)? else { return Ok(None) };
        let documents = array.into_iter().enumerate().map(|(place, item)| match item? {
            RawBsonRef::Document(document) => Ok(document.to_owned()),
            other => Err(self.wrong_type(&format!("{name}.{place}"), other, "object")),
        });
        documents.collect::<Result<_>>().map(Some)
    }

    /// The collection the command is about: the value of its first field.
    pub fn collection(&self) -> Result<&'a str> {
        let first = self.body().iter_elements().next().transpose()?;
        let value = first.map(|element| element.value()).transpose()?;
        match value {
            Some(RawBsonRef::String(name)) => {
                check_collection_name(&self.db, name)?;
                Ok(name)
            }
            Some(other) => {
                let message = format!("collection name has invalid type {}", type_name(other));
                Err(Failure::new(73, message))
            }
            None => Err(Failure::new(73, "collection name is missing")),
        }
    }

    /// Refuses arguments that nobody knows.
    pub(crate) fn check_fields(&self) -> Result<()> {
        let Some(fields) = self.info.fields else { return Ok(()) };
        let sequences = self.request.sequences.iter().map(|(name, _)| name.as_str());
        let mut names = Vec::new();
        for element in self.body().iter_elements().skip(1) {
            names.push(element?.key().as_str());
        }
        for name in names.into_iter().chain(sequences) {
            if !fields.contains(&name) && !GENERIC.contains(&name) {
                let message = format!("BSON field '{}.{name}' is an unknown field.", self.info.name);
                return Err(Failure::new(40415, message));
            }
        }
        Ok(())
    }

    /// Refuses who may not do this.
    pub(crate) fn authorize(&self) -> Result<()> {
        if self.info.admin_only && self.db != "admin" {
            let message = format!("{} may only be run against the admin database.", self.info.name);
            return Err(Failure::new(13, message));
        }
        self.check_api_version()?;
        if !self.asks_who() || self.info.access == Access::Open {
            return Ok(());
        }
        if self.connection.who().users.is_empty() {
            let message = format!("Command {} requires authentication", self.info.name);
            return Err(Failure::new(13, message));
        }
        match self.info.access {
            Access::Open | Access::User => Ok(()),
            Access::Read if self.is_about_itself() => Ok(()),
            Access::Read => self.check_role(&self.db, Role::Read),
            Access::Write => self.check_role(&self.db, Role::ReadWrite),
            Access::Admin => self.check_role(&self.db, Role::Admin),
        }
    }

    /// Whether it is a pipeline over what the server knows of whoever asks, which reads no collection.
    fn is_about_itself(&self) -> bool {
        const SOURCES: &[&str] = &["$currentOp", "$listLocalSessions"];
        const WORK: &[&str] =
            &["$match", "$project", "$addFields", "$set", "$unset", "$sort", "$limit", "$count"];
        let Ok(Some(pipeline)) = self.array("pipeline") else { return false };
        let name_of = |stage: RawBsonRef<'a>| Some(stage.as_document()?.iter().next()?.ok()?.0.as_str());
        let mut names = pipeline.into_iter().map(|stage| stage.ok().and_then(name_of));
        self.info.name == "aggregate"
            && names.next().flatten().is_some_and(|name| SOURCES.contains(&name))
            && names.all(|name| name.is_some_and(|name| WORK.contains(&name)))
    }

    /// Whether it matters who asks.
    pub(crate) fn asks_who(&self) -> bool {
        self.mongo.accounts.required() || self.connection.is_held_to_users
    }

    /// Refuses who may do less than this in a database, where anybody has to say who they are.
    pub(crate) fn check_role(&self, db: &str, needed: Role) -> Result<()> {
        let allowed = || self.connection.who().users.iter().any(|user| user.role_in(db) >= Some(needed));
        if !self.asks_who() || allowed() {
            return Ok(());
        }
        let message = format!("not authorized on {db} to execute command {}", self.info.name);
        Err(Failure::new(13, message))
    }

    /// Refuses who may not see, or stop, what others do.
    pub(crate) fn check_right(&self, right: Right) -> Result<()> {
        let allowed = || self.connection.who().users.iter().any(|user| user.may(right));
        if !self.asks_who() || allowed() {
            return Ok(());
        }
        Err(Failure::new(13, format!("not authorized on admin to execute command {}", self.info.name)))
    }

    /// Whether it may look at users and change them.
    pub(crate) fn may_manage_users(&self) -> bool {
        self.check_role(users::DATABASE, Role::Admin).is_ok()
    }

    fn check_api_version(&self) -> Result<()> {
        let Some(version) = self.text("apiVersion")? else {
            if self.get("apiStrict")?.is_some() || self.get("apiDeprecationErrors")?.is_some() {
                let message = "Provided apiStrict or apiDeprecationErrors without passing apiVersion";
                return Err(Failure::new(322, message));
            }
            return Ok(());
        };
        if version != "1" {
            let message = format!("API version must be \"1\", got \"{version}\"");
            return Err(Failure::new(322, message));
        }
        if self.flag("apiStrict")? && !self.info.stable {
            let message = format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1",
                self.info.name
            );
            return Err(Failure::new(323, message));
        }
        if self.flag("apiStrict")? && self.info.name == "aggregate" {
            for stage in self.array("pipeline")?.into_iter().flatten() {
                let RawBsonRef::Document(stage) = stage? else { continue };
                let Some(element) = stage.iter_elements().next().transpose()? else { continue };
                let name = element.key().as_str();
                if UNSTABLE_STAGES.contains(&name) {
                    let message =
                        format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
                    return Err(Failure::new(323, message));
                }
            }
        }
        Ok(())
    }
}

/// A number as a whole one; a fraction is cut off.
pub fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    match value {
        RawBsonRef::Int32(number) => Some(i64::from(number)),
        RawBsonRef::Int64(number) => Some(number),
        RawBsonRef::Double(number) if number.is_finite() => Some(number as i64),
        RawBsonRef::Decimal128(_) => mayfly_value::number::as_double(value).map(|number| number as i64),
        _ => None,
    }
}

/// The error for a field of the wrong type.
pub fn wrong_type(field: &str, found: RawBsonRef<'_>, expected: &str) -> Failure {
    let found = type_name(found);
    let message = format!("BSON field '{field}' is the wrong type '{found}', expected type '{expected}'");
    Failure::new(14, message)
}

/// A value's type as the protocol calls it.
pub fn type_name(value: RawBsonRef<'_>) -> &'static str {
    match value {
        RawBsonRef::Double(_) => "double",
        RawBsonRef::String(_) => "string",
        RawBsonRef::Document(_) => "object",
        RawBsonRef::Array(_) => "array",
        RawBsonRef::Binary(_) => "binData",
        RawBsonRef::Undefined => "undefined",
        RawBsonRef::ObjectId(_) => "objectId",
        RawBsonRef::Boolean(_) => "bool",
        RawBsonRef::DateTime(_) => "date",
        RawBsonRef::Null => "null",
        RawBsonRef::RegularExpression(_) => "regex",
        RawBsonRef::DbPointer(_) => "dbPointer",
        RawBsonRef::JavaScriptCode(_) => "javascript",
        RawBsonRef::Symbol(_) => "symbol",
        RawBsonRef::JavaScriptCodeWithScope(_) => "javascriptWithScope",
        RawBsonRef::Int32(_) => "int",
        RawBsonRef::Timestamp(_) => "timestamp",
        RawBsonRef::Int64(_) => "long",
        RawBsonRef::Decimal128(_) => "decimal",
        RawBsonRef::MinKey => "minKey",
        RawBsonRef::MaxKey => "maxKey",
    }
}

fn database_of(request: &Request) -> Result<String> {
    let name = match (request.body.get("$db")?, &request.database) {
        (_, Some(name)) => name.as_str(),
        (Some(RawBsonRef::String(name)), None) => name,
        (Some(other), None) => return Err(wrong_type("$db", other, "string")),
        (None, None) => {
            return Err(Failure::new(40414, "BSON field 'OP_MSG.$db' is missing but a required field"));
        }
    };
    let forbidden = ['/', '\\', '.', ' ', '"', '$', '\0'];
    if name.is_empty() || name.len() > 63 || (name != "$external" && name.contains(forbidden)) {
        return Err(Failure::new(73, format!("Invalid database name: '{name}'")));
    }
    Ok(name.to_owned())
}

/// Refuses names no collection can have.
pub fn check_collection_name(db: &str, name: &str) -> Result<()> {
    let invalid =
        |why: &str| Err(Failure::new(73, format!("Invalid namespace specified '{db}.{name}'{why}")));
    if name.is_empty() || name.contains(['\0', '$']) && !name.starts_with("$cmd") || name.starts_with('.') {
        return invalid("");
    }
    if db.len() + 1 + name.len() > 255 {
        return invalid(": Fully qualified namespace is too long. Max: 255");
    }
    Ok(())
}
