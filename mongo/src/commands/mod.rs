//! Every command, in one table: [`COMMANDS`].
//!
//! A handler turns arguments into the engine's terms, calls it, and shapes the answer.
//! `docs/compatibility.md` is made from the table; what is not in it is refused with error 59.

mod aggregate;
mod bulk_write;
mod count;
mod create;
mod delete;
mod diagnostics;
mod drop;
mod explain;
mod fail_point;
mod find;
mod find_and_modify;
mod get_more;
mod hello;
mod index_commands;
mod insert;
mod list;
mod login;
mod operations;
mod server_status;
mod sessions;
mod stats;
mod update;
mod user_commands;

pub(crate) use hello::DOCUMENT_BYTES_MAX;
pub(crate) use index_commands::build as build_index;
pub(crate) use insert::{check_id, prepare};
pub(crate) use sessions::{is_of, user_in};
pub(crate) use stats::of_collection as collection_stats;

use std::pin::Pin;

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf};

use crate::{call::Call, failure::Result, service::to_raw, wire::Request};

/// A command's answer, on its way.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<RawDocumentBuf>> + Send + 'a>>;

/// What a command does.
pub type Run = for<'a> fn(&'a Call<'a>) -> Running<'a>;

/// Who may call a command, where anybody has to say who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    Open,
    /// Whoever is authenticated.
    User,
    /// Who may read the database.
    Read,
    /// Who may write to the database.
    Write,
    /// Who may do everything.
    Admin,
}

/// A row of the table.
pub struct CommandInfo {
    /// The name.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// What it is for.
    pub help: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Only on the database `admin`.
    pub admin_only: bool,
    /// Also as an old query, before anything is agreed on.
    pub over_query: bool,
    /// Part of version 1 of the stable API.
    pub stable: bool,
    /// May be sent twice and must happen once.
    pub retryable: bool,
    /// May be a step of a transaction.
    pub in_transaction: bool,
    /// Arguments beside those of every command; where there is no list, all are taken.
    pub fields: Option<&'static [&'static str]>,
    /// What it does.
    pub run: Run,
}

impl CommandInfo {
    const fn new(name: &'static str, access: Access, help: &'static str, run: Run) -> Self {
        Self {
            name,
            aliases: &[],
            help,
            access,
            admin_only: false,
            over_query: false,
            stable: false,
            retryable: false,
            in_transaction: false,
            fields: Some(&[]),
            run,
        }
    }

    /// Whether its first value, if it is a text, is the name of a collection of its database.
    pub fn names_collection(&self) -> bool {
        let is_full_name = matches!(self.name, "dataSize" | "renameCollection");
        matches!(self.access, Access::Read | Access::Write) && !is_full_name || self.name == "killCursors"
    }

    /// Whether its arguments are for nobody else to see.
    pub fn is_secret(&self) -> bool {
        matches!(self.name, "saslStart" | "saslContinue" | "authenticate" | "createUser" | "updateUser")
    }

    /// Whether it consists of several steps, so that it must not be left between two of them. Writes of
    /// documents are one step each, and see themselves to what follows; what reads leaves nothing behind.
    pub(crate) fn comes_to_its_end(&self, request: &Request) -> bool {
        let changes = matches!(self.access, Access::Write | Access::Admin) && !self.retryable;
        let is_session = self.name.ends_with("Sessions") || self.name.ends_with("Transaction");
        changes || is_session || self.name == "renameCollection" || writes_output(&request.body)
    }

    /// Whether background work gives way to it: whoever reads or writes documents is waited for, whoever asks
    /// how the server is does not hold up what is looked at. `getMore` may wait for what never comes, and
    /// says itself when it works.
    pub fn is_load(&self) -> bool {
        matches!(self.access, Access::Read | Access::Write)
            || matches!(self.name, "bulkWrite" | "commitTransaction")
    }

    const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn admin(mut self) -> Self {
        self.admin_only = true;
        self
    }

    const fn over_query(mut self) -> Self {
        self.over_query = true;
        self
    }

    const fn stable(mut self) -> Self {
        self.stable = true;
        self
    }

    const fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    const fn transactional(mut self) -> Self {
        self.in_transaction = true;
        self
    }

    const fn fields(mut self, fields: &'static [&'static str]) -> Self {
        self.fields = Some(fields);
        self
    }

    /// Takes whatever is sent, as MongoDB does with this command.
    const fn any_fields(mut self) -> Self {
        self.fields = None;
        self
    }
}

/// Commands whose answers may come as a stream, and that wait for what may never come.
pub const EXHAUSTIBLE: &[&str] = &["hello", "isMaster", "ismaster", "getMore"];

macro_rules! handler {
    ($path:path) => {
        |call| Box::pin($path(call))
    };
}

/// All commands.
pub const COMMANDS: &[CommandInfo] = &[
    CommandInfo::new("hello", Access::Open, "what the server is and can do", handler!(hello::run))
        .any_fields()
        .over_query()
        .stable(),
    CommandInfo::new("isMaster", Access::Open, "the older name of `hello`", handler!(hello::run))
        .any_fields()
        .alias(&["ismaster"])
        .over_query(),
    CommandInfo::new("ping", Access::Open, "whether the server is there", handler!(diagnostics::ping))
        .stable()
        .transactional(),
    CommandInfo::new("saslStart", Access::Open, "begins an authentication", handler!(login::start))
        .fields(&["mechanism", "payload", "db", "autoAuthorize", "options"])
        .over_query()
        .stable(),
    CommandInfo::new("saslContinue", Access::Open, "goes on with an authentication", handler!(login::go_on))
        .fields(&["conversationId", "payload"])
        .over_query()
        .stable(),
    CommandInfo::new(
        "authenticate",
        Access::Open,
        "with a certificate: refused, there is SCRAM",
        handler!(login::authenticate),
    )
    .any_fields(),
    CommandInfo::new("logout", Access::Open, "forgets who is authenticated", handler!(login::logout)),
    CommandInfo::new(
        "connectionStatus",
        Access::Open,
        "who is authenticated",
        handler!(login::connection_status),
    )
    .fields(&["showPrivileges"]),
    CommandInfo::new("buildInfo", Access::User, "version and build", handler!(diagnostics::build_info))
        .alias(&["buildinfo"])
        .over_query(),
    CommandInfo::new("whatsmyuri", Access::Open, "the client's address", handler!(diagnostics::whats_my_uri))
        .any_fields(),
    CommandInfo::new("hostInfo", Access::User, "the machine", handler!(diagnostics::host_info)).admin(),
    CommandInfo::new(
        "getCmdLineOpts",
        Access::User,
        "how the server was started",
        handler!(diagnostics::cmd_line),
    )
    .admin(),
    CommandInfo::new("getParameter", Access::User, "settings", handler!(diagnostics::get_parameter))
        .any_fields()
        .admin(),
    CommandInfo::new(
        "setParameter",
        Access::Admin,
        "settings of the TTL monitor and of tests",
        handler!(diagnostics::set_parameter),
    )
    .any_fields()
    .admin(),
    CommandInfo::new("getLog", Access::User, "the server's messages: none", handler!(diagnostics::get_log))
        .admin(),
    CommandInfo::new("listCommands", Access::User, "this table", handler!(diagnostics::list_commands))
        .any_fields(),
    CommandInfo::new("features", Access::User, "flags of old clients", handler!(diagnostics::features))
        .fields(&["oidReset"]),
    CommandInfo::new("serverStatus", Access::User, "counters", handler!(server_status::run)).any_fields(),
    CommandInfo::new(
        "getDefaultRWConcern",
        Access::User,
        "default concerns",
        handler!(diagnostics::default_concern),
    )
    .fields(&["inMemory"])
    .admin(),
    CommandInfo::new(
        "setFeatureCompatibilityVersion",
        Access::Admin,
        "accepted, changes nothing",
        handler!(diagnostics::ok),
    )
    .fields(&["confirm", "fromConfigServer", "phase", "changeTimestamp", "downgradeOnDiskChanges"])
    .admin(),
    CommandInfo::new(
        "replSetGetStatus",
        Access::User,
        "the set's members",
        handler!(diagnostics::repl_status),
    )
    .any_fields()
    .admin(),
    CommandInfo::new("fsync", Access::Admin, "writes are durable already", handler!(diagnostics::fsync))
        .fields(&["lock", "fsyncLockAcquisitionTimeoutMillis"])
        .admin(),
    CommandInfo::new("profile", Access::User, "the profiler is off", handler!(diagnostics::profile))
        .fields(&["slowms", "sampleRate", "filter"]),
    CommandInfo::new("listShards", Access::User, "no shards", handler!(diagnostics::list_shards))
        .any_fields()
        .admin(),
    CommandInfo::new("currentOp", Access::User, "what is running", handler!(operations::current))
        .any_fields()
        .admin(),
    CommandInfo::new("killOp", Access::User, "stops what only reads", handler!(operations::kill))
        .any_fields()
        .admin(),
    CommandInfo::new(
        "configureFailPoint",
        Access::Admin,
        "failures on demand, for tests",
        handler!(fail_point::run),
    )
    .any_fields()
    .admin(),
    CommandInfo::new(
        "testVersion2",
        Access::Open,
        "not in version 1 of the stable API, for tests",
        handler!(fail_point::version_2),
    )
    .any_fields(),
    CommandInfo::new("find", Access::Read, "finds documents", handler!(find::run))
        .fields(find::FIELDS)
        .stable()
        .transactional(),
    CommandInfo::new("getMore", Access::User, "the next batch of a cursor", handler!(get_more::more))
        .fields(&["collection", "batchSize", "term", "lastKnownCommittedOpTime", "includeQueryStatsMetrics"])
        .stable()
        .transactional(),
    CommandInfo::new("killCursors", Access::User, "closes cursors", handler!(get_more::kill))
        .fields(&["cursors"])
        .stable()
        .transactional(),
    CommandInfo::new("insert", Access::Write, "inserts documents", handler!(insert::run))
        .fields(insert::FIELDS)
        .stable()
        .retryable()
        .transactional(),
    CommandInfo::new("update", Access::Write, "updates documents", handler!(update::run))
        .fields(update::FIELDS)
        .stable()
        .retryable()
        .transactional(),
    CommandInfo::new("delete", Access::Write, "deletes documents", handler!(delete::run))
        .fields(delete::FIELDS)
        .stable()
        .retryable()
        .transactional(),
    CommandInfo::new(
        "findAndModify",
        Access::Write,
        "changes a document and answers with it",
        handler!(find_and_modify::run),
    )
    .alias(&["findandmodify"])
    .fields(find_and_modify::FIELDS)
    .stable()
    .retryable()
    .transactional(),
    CommandInfo::new("bulkWrite", Access::User, "writes to several collections", handler!(bulk_write::run))
        .admin()
        .fields(bulk_write::FIELDS)
        .stable()
        .retryable()
        .transactional(),
    CommandInfo::new("aggregate", Access::Read, "runs a pipeline", handler!(aggregate::run))
        .fields(aggregate::FIELDS)
        .stable()
        .transactional(),
    CommandInfo::new("count", Access::Read, "counts documents", handler!(count::count))
        .fields(&[
            "query",
            "limit",
            "skip",
            "hint",
            "collation",
            "fields",
            "queryOptions",
            "collectionUUID",
            "encryptionInformation",
            "includeQueryStatsMetrics",
        ])
        .stable(),
    CommandInfo::new("distinct", Access::Read, "the values of a field", handler!(count::distinct))
        .fields(&["key", "query", "hint", "collation", "collectionUUID", "includeQueryStatsMetrics"])
        .transactional(),
    CommandInfo::new("explain", Access::Read, "the plan of a command", handler!(explain::run))
        .fields(&["verbosity"])
        .stable(),
    CommandInfo::new("collStats", Access::Read, "figures of a collection", handler!(stats::collection))
        .fields(&["scale"])
        .alias(&["collstats"]),
    CommandInfo::new("dbStats", Access::Read, "figures of a database", handler!(stats::database))
        .fields(&["scale", "freeStorage"])
        .alias(&["dbstats"]),
    CommandInfo::new("dataSize", Access::Read, "the size of a collection", handler!(stats::data_size))
        .fields(&["keyPattern", "min", "max", "estimate"]),
    CommandInfo::new("validate", Access::Read, "whether a collection is sound", handler!(stats::validate))
        .any_fields(),
    CommandInfo::new(
        "checkMetadataConsistency",
        Access::Read,
        "what shards disagree about: there are none",
        handler!(stats::metadata_consistency),
    )
    .any_fields(),
    CommandInfo::new("top", Access::User, "the use of collections", handler!(operations::top))
        .any_fields()
        .admin(),
    CommandInfo::new("createUser", Access::Admin, "makes a user", handler!(user_commands::create)).fields(&[
        "pwd",
        "roles",
        "customData",
        "digestPassword",
        "mechanisms",
        "authenticationRestrictions",
    ]),
    CommandInfo::new("updateUser", Access::Admin, "changes a user", handler!(user_commands::update)).fields(
        &["pwd", "roles", "customData", "digestPassword", "mechanisms", "authenticationRestrictions"],
    ),
    CommandInfo::new(
        "grantRolesToUser",
        Access::Admin,
        "gives a user roles",
        handler!(user_commands::change_roles),
    )
    .fields(&["roles"]),
    CommandInfo::new(
        "revokeRolesFromUser",
        Access::Admin,
        "takes roles from a user",
        handler!(user_commands::change_roles),
    )
    .fields(&["roles"]),
    CommandInfo::new("dropUser", Access::Admin, "drops a user", handler!(user_commands::drop)),
    CommandInfo::new(
        "dropAllUsersFromDatabase",
        Access::Admin,
        "drops users",
        handler!(user_commands::drop_all),
    ),
    CommandInfo::new("usersInfo", Access::User, "users", handler!(user_commands::info)).fields(&[
        "filter",
        "showCredentials",
        "showCustomData",
        "showPrivileges",
        "showAuthenticationRestrictions",
    ]),
    CommandInfo::new(
        "rolesInfo",
        Access::User,
        "roles: the built-in ones only",
        handler!(user_commands::roles_info),
    )
    .fields(&["showPrivileges", "showBuiltinRoles", "showAuthenticationRestrictions"]),
    CommandInfo::new("create", Access::Write, "makes a collection or a view", handler!(create::run))
        .fields(create::FIELDS)
        .stable()
        .transactional(),
    CommandInfo::new("drop", Access::Write, "drops a collection", handler!(drop::collection))
        .fields(&["collectionUUID"])
        .stable(),
    CommandInfo::new("dropDatabase", Access::Write, "drops a database", handler!(drop::database)).stable(),
    CommandInfo::new(
        "renameCollection",
        Access::User,
        "gives a collection another name",
        handler!(drop::rename),
    )
    .fields(&["to", "dropTarget", "stayTemp"])
    .admin()
    .stable(),
    CommandInfo::new("listDatabases", Access::User, "databases", handler!(list::databases))
        .fields(&["nameOnly", "filter", "authorizedDatabases"])
        .admin()
        .stable(),
    CommandInfo::new("listCollections", Access::Read, "collections", handler!(list::collections))
        .fields(&["nameOnly", "filter", "authorizedCollections", "cursor"])
        .stable(),
    CommandInfo::new("createIndexes", Access::Write, "makes indexes", handler!(index_commands::create))
        .fields(&["indexes", "commitQuorum", "ignoreUnknownIndexOptions", "isTimeseriesNamespace"])
        .stable()
        .transactional(),
    CommandInfo::new("listIndexes", Access::Read, "indexes", handler!(index_commands::list))
        .fields(&["cursor", "includeBuildUUIDs", "includeIndexBuildInfo"])
        .stable(),
    CommandInfo::new("dropIndexes", Access::Write, "drops indexes", handler!(index_commands::drop))
        .fields(&["index", "collectionUUID"])
        .alias(&["deleteIndexes"])
        .stable(),
    CommandInfo::new(
        "collMod",
        Access::Write,
        "changes an index or a collection",
        handler!(index_commands::modify),
    )
    .fields(&[
        "index",
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "expireAfterSeconds",
        "changeStreamPreAndPostImages",
        "cappedSize",
        "cappedMax",
        "timeseries",
        "dryRun",
    ])
    .stable(),
    CommandInfo::new("startSession", Access::User, "a name for a session", handler!(sessions::start))
        .any_fields(),
    CommandInfo::new("endSessions", Access::Open, "ends sessions", handler!(sessions::end)).stable(),
    CommandInfo::new("refreshSessions", Access::Open, "keeps sessions", handler!(sessions::refresh)).stable(),
    CommandInfo::new("killSessions", Access::User, "ends sessions", handler!(sessions::kill)).any_fields(),
    CommandInfo::new("killAllSessions", Access::Admin, "ends sessions", handler!(sessions::kill_of_users))
        .any_fields(),
    CommandInfo::new(
        "killAllSessionsByPattern",
        Access::Admin,
        "ends sessions",
        handler!(sessions::kill_like),
    )
    .any_fields(),
    CommandInfo::new("commitTransaction", Access::User, "commits", handler!(sessions::commit))
        .fields(&["recoveryToken"])
        .admin()
        .stable(),
    CommandInfo::new("abortTransaction", Access::User, "forgets a transaction", handler!(sessions::abort))
        .fields(&["recoveryToken"])
        .admin()
        .stable(),
];

/// Whether a command has a pipeline that writes what it finds.
pub(crate) fn writes_output(command: &RawDocument) -> bool {
    let Ok(Some(RawBsonRef::Array(stages))) = command.get("pipeline") else { return false };
    let writes = |stage: RawBsonRef<'_>| {
        let name = stage.as_document().and_then(|stage| stage.iter().next()?.ok());
        name.is_some_and(|(name, _)| ["$out", "$merge"].contains(&name.as_str()))
    };
    stages.into_iter().flatten().any(writes)
}

/// The row of a name.
pub fn find(name: &str) -> Option<&'static CommandInfo> {
    COMMANDS.iter().find(|info| info.name == name || info.aliases.contains(&name))
}

/// An answer.
fn reply(document: Document) -> Result<RawDocumentBuf> {
    Ok(to_raw(&document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_one_row() {
        let mut names: Vec<_> =
            COMMANDS.iter().flat_map(|info| info.aliases.iter().copied().chain([info.name])).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
