//! Every route of the protocol, in one table.
//!
//! A row says which verb on which kind of resource, under which header where one verb has several meanings, what it is
//! called, whether it changes anything, and what answers it. `docs/compatibility.md` is made from this table, and a row
//! without a handler is answered with 501: nothing is silently ignored.

use std::{future::Future, pin::Pin};

use hyper::Method;

use crate::{
    address::Address,
    auth::Intent::{self, Read, Write},
    call::Call,
    error::ApiError,
    handlers::{
        Answer, account, batch, change_feed, conflicts, containers, databases, documents, item_feed, kept,
        offers, queries, ranges,
    },
    headers::{self, Headers},
};

/// A handler's future.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// What answers a route.
pub type Handler = for<'a> fn(&'a Call<'a>) -> Answering<'a>;

/// One row.
pub struct Route {
    /// The verb.
    pub verb: Method,
    /// The path, as the documentation of the service writes it.
    pub path: &'static str,
    matches: fn(&Address<'_>) -> bool,
    /// Which of several meanings.
    pub when: When,
    /// What it is called, in logs and metrics.
    pub name: &'static str,
    /// Whether it changes anything.
    pub intent: Intent,
    /// What answers it; none is 501.
    pub handler: Option<Handler>,
}

/// What a request with the same verb and path may mean. Rows are tried in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing in particular.
    Always,
    /// It asks for a query plan.
    Plan,
    /// It is a batch.
    Batch,
    /// It is a query.
    Query,
    /// It is an upsert.
    Upsert,
    /// It is a change feed.
    ChangeFeed,
}

impl When {
    fn applies(self, headers: &Headers<'_>) -> Result<bool, ApiError> {
        match self {
            Self::Always => Ok(true),
            Self::Plan => headers::flag(headers, &headers::IS_QUERY_PLAN),
            Self::Batch => headers::flag(headers, &headers::IS_BATCH),
            Self::Upsert => headers::flag(headers, &headers::IS_UPSERT),
            Self::ChangeFeed => Ok(headers.contains(&headers::A_IM)),
            Self::Query => {
                let by_type = headers.get_text(&headers::CONTENT_TYPE);
                Ok(by_type.is_some_and(|value| value.starts_with("application/query+json"))
                    || headers::flag(headers, &headers::IS_QUERY)?
                    || headers::flag(headers, &headers::IS_QUERY_OLD)?)
            }
        }
    }
}

macro_rules! routes {
    ($($verb:ident $path:literal $address:pat, $when:ident, $name:literal, $intent:ident $(=> $handler:path)?;)*) => {
        /// The table.
        pub static ROUTES: &[Route] = &[$(Route {
            verb: Method::$verb,
            path: $path,
            matches: |address| matches!(address, $address),
            when: When::$when,
            name: $name,
            intent: $intent,
            handler: routes!(@handler $($handler)?),
        }),*];
    };
    (@handler) => { None };
    (@handler $handler:path) => { Some(|call| Box::pin($handler(call))) };
}

routes! {
    GET    "/" Address::Account, Always, "ReadAccount", Read => account::read;
    GET    "/dbs" Address::Databases, Always, "ListDatabases", Read => databases::list_all;
    POST   "/dbs" Address::Databases, Query, "QueryDatabases", Read => databases::query;
    POST   "/dbs" Address::Databases, Always, "CreateDatabase", Write => databases::create;
    GET    "/dbs/{db}" Address::Database { .. }, Always, "ReadDatabase", Read => databases::read;
    DELETE "/dbs/{db}" Address::Database { .. }, Always, "DeleteDatabase", Write => databases::delete;
    GET    "/dbs/{db}/colls" Address::Containers { .. }, Always, "ListContainers", Read => containers::list_all;
    POST   "/dbs/{db}/colls" Address::Containers { .. }, Query, "QueryContainers", Read => containers::query;
    POST   "/dbs/{db}/colls" Address::Containers { .. }, Always, "CreateContainer", Write => containers::create;
    GET    "/dbs/{db}/colls/{coll}" Address::Container(_), Always, "ReadContainer", Read => containers::read;
    PUT    "/dbs/{db}/colls/{coll}" Address::Container(_), Always, "ReplaceContainer", Write => containers::replace;
    DELETE "/dbs/{db}/colls/{coll}" Address::Container(_), Always, "DeleteContainer", Write => containers::delete;
    GET    "…/docs" Address::Documents(_), ChangeFeed, "ReadChangeFeed", Read => change_feed::read;
    GET    "…/docs" Address::Documents(_), Always, "ListItems", Read => item_feed::read;
    POST   "…/docs" Address::Documents(_), Plan, "QueryPlan", Read => queries::plan;
    POST   "…/docs" Address::Documents(_), Batch, "Batch", Write => batch::run;
    POST   "…/docs" Address::Documents(_), Query, "QueryItems", Read => queries::items;
    POST   "…/docs" Address::Documents(_), Upsert, "UpsertItem", Write => documents::upsert;
    POST   "…/docs" Address::Documents(_), Always, "CreateItem", Write => documents::create;
    GET    "…/docs/{id}" Address::Document { .. }, Always, "ReadItem", Read => documents::read;
    PUT    "…/docs/{id}" Address::Document { .. }, Always, "ReplaceItem", Write => documents::replace;
    PATCH  "…/docs/{id}" Address::Document { .. }, Always, "PatchItem", Write => documents::patch;
    DELETE "…/docs/{id}" Address::Document { .. }, Always, "DeleteItem", Write => documents::delete;
    GET    "…/pkranges" Address::PartitionKeyRanges(_), Always, "ListRanges", Read => ranges::list;
    POST   "…/operations/partitionkeydelete" Address::PartitionKeyDelete(_), Always, "DeletePartition", Write => documents::delete_partition;
    GET    "…/sprocs|triggers|udfs" Address::Scripts { .. }, Always, "ListScripts", Read => kept::list_all;
    POST   "…/sprocs|triggers|udfs" Address::Scripts { .. }, Query, "QueryScripts", Read => kept::query;
    POST   "…/sprocs|triggers|udfs" Address::Scripts { .. }, Always, "CreateScript", Write => kept::create;
    GET    "…/sprocs|triggers|udfs/{id}" Address::Script { .. }, Always, "ReadScript", Read => kept::read;
    PUT    "…/sprocs|triggers|udfs/{id}" Address::Script { .. }, Always, "ReplaceScript", Write => kept::replace;
    POST   "…/sprocs/{id}" Address::Script { .. }, Always, "ExecuteStoredProcedure", Write;
    DELETE "…/sprocs|triggers|udfs/{id}" Address::Script { .. }, Always, "DeleteScript", Write => kept::delete;
    GET    "…/conflicts" Address::Conflicts(_), Always, "ListConflicts", Read => conflicts::list;
    POST   "…/conflicts" Address::Conflicts(_), Query, "QueryConflicts", Read => conflicts::query;
    GET    "…/conflicts/{id}" Address::Conflict { .. }, Always, "ReadConflict", Read => conflicts::missing;
    DELETE "…/conflicts/{id}" Address::Conflict { .. }, Always, "DeleteConflict", Write => conflicts::missing;
    GET    "/dbs/{db}/users" Address::Users { .. }, Always, "ListUsers", Read => kept::list_all;
    POST   "/dbs/{db}/users" Address::Users { .. }, Query, "QueryUsers", Read => kept::query;
    POST   "/dbs/{db}/users" Address::Users { .. }, Always, "CreateUser", Write => kept::create;
    GET    "/dbs/{db}/users/{user}" Address::User { .. }, Always, "ReadUser", Read => kept::read;
    PUT    "/dbs/{db}/users/{user}" Address::User { .. }, Always, "ReplaceUser", Write => kept::replace;
    DELETE "/dbs/{db}/users/{user}" Address::User { .. }, Always, "DeleteUser", Write => kept::delete;
    GET    "…/permissions" Address::Permissions { .. }, Always, "ListPermissions", Read => kept::list_all;
    POST   "…/permissions" Address::Permissions { .. }, Query, "QueryPermissions", Read => kept::query;
    POST   "…/permissions" Address::Permissions { .. }, Always, "CreatePermission", Write => kept::create;
    GET    "…/permissions/{id}" Address::Permission { .. }, Always, "ReadPermission", Read => kept::read;
    PUT    "…/permissions/{id}" Address::Permission { .. }, Always, "ReplacePermission", Write => kept::replace;
    DELETE "…/permissions/{id}" Address::Permission { .. }, Always, "DeletePermission", Write => kept::delete;
    GET    "…/clientencryptionkeys" Address::ClientEncryptionKeys { .. }, Always, "ListEncryptionKeys", Read => kept::list_all;
    POST   "…/clientencryptionkeys" Address::ClientEncryptionKeys { .. }, Query, "QueryEncryptionKeys", Read => kept::query;
    POST   "…/clientencryptionkeys" Address::ClientEncryptionKeys { .. }, Always, "CreateEncryptionKey", Write => kept::create;
    GET    "…/clientencryptionkeys/{key}" Address::ClientEncryptionKey { .. }, Always, "ReadEncryptionKey", Read => kept::read;
    PUT    "…/clientencryptionkeys/{key}" Address::ClientEncryptionKey { .. }, Always, "ReplaceEncryptionKey", Write => kept::replace;
    DELETE "…/clientencryptionkeys/{key}" Address::ClientEncryptionKey { .. }, Always, "DeleteEncryptionKey", Write => kept::delete;
    GET    "/offers" Address::Offers, Always, "ListOffers", Read => offers::list_all;
    POST   "/offers" Address::Offers, Always, "QueryOffers", Read => offers::query;
    GET    "/offers/{rid}" Address::Offer { .. }, Always, "ReadOffer", Read => offers::read;
    PUT    "/offers/{rid}" Address::Offer { .. }, Always, "ReplaceOffer", Write => offers::replace;
}

/// The row for a request.
pub fn find(verb: &Method, address: &Address<'_>, headers: &Headers<'_>) -> Result<&'static Route, ApiError> {
    // HEAD asks for the headers of a GET.
    let verb = if verb == Method::HEAD { &Method::GET } else { verb };
    for route in ROUTES.iter().filter(|route| route.verb == *verb && (route.matches)(address)) {
        if route.when.applies(headers)? {
            return Ok(route);
        }
    }
    Err(ApiError::method_not_allowed(verb.as_str()))
}
