//! Errors as Cosmos says them: status, substatus, code and a text that clients and their tests look for.
//!
//! One constructor per text of the protocol, so a handler names what went wrong and cannot misspell it. There
//! are two body shapes: the gateway's, and the one in which a partition's own message is wrapped; SDKs show
//! both, and tests look for substrings in either. JavaScript fails on an error without a JSON body, so every
//! error has one.
//!
//! Holds: `code` always belongs to `status` (see `code_of`), and a body is valid JSON whatever the message
//! contains.

use crate::address::UnknownRoute;
use crate::auth::{AuthError, DATE_WINDOW_SECONDS};
use crate::http_date;
use std::time::Duration;

/// A refusal or failure, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status}/{substatus} {code}: {message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// The finer reason; 0 if there is none, and then not sent.
    pub substatus: u32,
    /// The word for the status.
    pub code: &'static str,
    /// The text, without the activity id.
    pub message: String,
    /// How the message is wrapped.
    pub shape: Shape,
    /// When to try again, for 429, 449 and 503.
    pub retry_after: Option<Duration>,
    /// The query plan that a client is to run instead, for 400/1004.
    pub plan: Option<String>,
}

/// Who speaks in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The gateway: the text, then the activity id.
    Gateway,
    /// A partition: the text inside `Message: {"Errors":[…]}`.
    Backend,
}

/// The service's version in error texts.
const SERVICE: &str = "Microsoft.Azure.Documents.Common/2.14.0";

/// The word that goes with a status.
pub fn code_of(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        408 => "RequestTimeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "PreconditionFailed",
        413 => "RequestEntityTooLarge",
        423 => "Locked",
        424 => "FailedDependency",
        429 => "TooManyRequests",
        449 => "RetryWith",
        501 => "NotImplemented",
        503 => "ServiceUnavailable",
        _ => "InternalServerError",
    }
}

impl ApiError {
    /// An error in the gateway's shape.
    pub fn new(status: u16, substatus: u32, message: impl Into<String>) -> ApiError {
        let (code, shape) = (code_of(status), Shape::Gateway);
        ApiError { status, substatus, code, message: message.into(), shape, retry_after: None, plan: None }
    }

    fn backend(mut self) -> ApiError {
        self.shape = Shape::Backend;
        self
    }

    fn retry_after(mut self, wait: Duration) -> ApiError {
        self.retry_after = Some(wait);
        self
    }

    /// The JSON body.
    pub fn to_body(&self, activity_id: &str) -> String {
        let message = match self.shape {
            Shape::Gateway => format!("{}\r\nActivityId: {activity_id}, {SERVICE}", self.message),
            Shape::Backend => {
                let errors = serde_json::json!({ "Errors": [self.message] });
                format!("Message: {errors}\r\nActivityId: {activity_id}, Request URI: /, SDK: {SERVICE}")
            }
        };
        // Written in this order by hand: clients that log the body show the code first.
        let (code, message) = (serde_json::json!(self.code), serde_json::json!(message));
        match &self.plan {
            None => format!("{{\"code\":{code},\"message\":{message}}}"),
            Some(plan) => {
                let plan = serde_json::json!(plan);
                format!("{{\"code\":{code},\"message\":{message},\"additionalErrorInfo\":{plan}}}")
            }
        }
    }
}

/// Requests that cannot be right.
impl ApiError {
    /// 400 with a text of the caller's.
    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(400, 0, message)
    }

    /// 400: the path is no route of the protocol.
    pub fn unknown_route() -> ApiError {
        ApiError::bad_request("Server could not parse the Url.")
    }

    /// 400: a value is of the wrong form, and the protocol does not say which.
    pub fn invalid_input() -> ApiError {
        ApiError::bad_request("One of the specified inputs is invalid")
    }

    /// 400: the body lacks properties that it must have.
    pub fn missing_properties(names: &[&str]) -> ApiError {
        let list: String = names.iter().map(|name| format!("{name}; ")).collect();
        ApiError::bad_request(format!(
            "The input content is invalid because the required properties - '{list}' - are missing"
        ))
    }

    /// 400: an id is empty or too long; 255 for databases and containers, 1024 for items.
    pub fn id_length(length_limit: usize) -> ApiError {
        ApiError::bad_request(format!(
            "The input name is invalid. Ensure to provide a unique non-empty string less than \
             '{length_limit}' characters."
        ))
    }

    /// 400: a point operation without a partition key.
    pub fn partition_key_required() -> ApiError {
        ApiError::bad_request("PartitionKey value must be supplied for this operation.")
    }

    /// 400/1001: document and header name different logical partitions. SDKs refresh and retry once.
    pub fn partition_key_mismatch() -> ApiError {
        ApiError::new(
            400,
            1001,
            "PartitionKey extracted from document doesn't match the one specified in the header. \
             Learn more: https://aka.ms/CosmosDB/sql/errors/wrong-pk-value",
        )
    }

    /// 400/1001: the partition key does not fit the container's definition.
    pub fn partition_key_shape() -> ApiError {
        ApiError::new(
            400,
            1001,
            "Partition key provided either doesn't correspond to definition in the collection or doesn't match \
             partition key field values specified in the document.",
        )
    }

    /// 400/1001: too few parts of a hierarchical partition key. The doubled article is the service's.
    pub fn partition_key_short() -> ApiError {
        ApiError::new(
            400,
            1001,
            "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the \
             the collection.",
        )
    }

    /// 400/1024: the client's cached container is not this one any more. SDKs read it again and retry.
    pub fn incorrect_container_rid() -> ApiError {
        ApiError::new(400, 1024, "The intended collection rid does not match the collection of the request.")
    }

    /// 400: an item's `ttl`; `value` is the JSON text as it was sent.
    pub fn invalid_ttl(value: &str) -> ApiError {
        ApiError::bad_request(ttl_text("ttl", value)).backend()
    }

    /// 400: a container's `defaultTtl`; `value` is the JSON text as it was sent.
    pub fn invalid_default_ttl(value: &str) -> ApiError {
        ApiError::bad_request(ttl_text("defaultTtl", value)).backend()
    }

    /// 400: expiry needs an index.
    pub fn ttl_without_index() -> ApiError {
        ApiError::bad_request(
            "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection",
        )
        .backend()
    }

    /// 400: a parameter that a query text cannot name.
    pub fn invalid_parameter_name(name: &str) -> ApiError {
        ApiError::bad_request(format!(
            "The query parameter name '{name}' is invalid: it must begin with '@'."
        ))
    }

    /// 400: the log of all versions starts where its retention does, not at the beginning.
    pub fn outside_retention() -> ApiError {
        ApiError::bad_request(
            "You must read the change feed from within the retention period. The all versions and deletes change \
             feed starts from now or from a continuation.",
        )
    }

    /// 400: a continuation that this server did not make, or not for this request.
    pub fn invalid_continuation() -> ApiError {
        ApiError::bad_request("Invalid Continuation Token")
    }

    /// 400: everything that a continuation could go on from is gone.
    pub fn rows_changed() -> ApiError {
        ApiError::bad_request(
            "Invalid Continuation Token: the rows given last are all gone. Please run the query again.",
        )
    }

    /// 400: the client's limit for continuations is not a positive number.
    pub fn continuation_limit_invalid() -> ApiError {
        ApiError::bad_request(
            "Please pass in a valid continuation token size limit which must be a positive integer",
        )
    }

    /// 400: the client's limit for continuations is too small for this query.
    pub fn continuation_limit_too_small() -> ApiError {
        ApiError::bad_request("continuation token limit specified is not large enough")
    }

    /// 400/1004: the client has to ask for a plan, or take this one, and run the query itself.
    pub fn cross_partition_not_servable(plan: &serde_json::Value) -> ApiError {
        let error = ApiError::new(
            400,
            1004,
            "The provided cross partition query can not be directly served by the gateway. This is a first \
             chance (internal) exception that all newer clients will know how to handle gracefully. This \
             exception is traced, but unless you see it bubble up as an exception (which only happens on older \
             SDK clients), then you can safely ignore this message.",
        );
        ApiError { plan: Some(plan.to_string()), ..error }
    }

    /// 400: a query over several partitions that was not asked for.
    pub fn cross_partition_disabled() -> ApiError {
        ApiError::bad_request(
            "Cross partition query is required but disabled. Please set \
             x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or \
             revise your query to avoid this exception.",
        )
    }

    /// 400: a batch of nothing.
    pub fn batch_empty() -> ApiError {
        ApiError::bad_request("Batch request has no operations.")
    }

    /// 400: a batch of too much.
    pub fn batch_too_many() -> ApiError {
        ApiError::bad_request("Batch request has more operations than what is supported.")
    }

    /// 400: a batch across logical partitions.
    pub fn batch_partition_keys() -> ApiError {
        ApiError::bad_request(
            "One or more operations within the batch request have a different partition key value than the \
             request.",
        )
    }

    /// 400: throughput out of range.
    pub fn offer_throughput() -> ApiError {
        ApiError::bad_request(
            "The offer should have valid throughput values between 400 and 10000 inclusive in increments of 100.",
        )
    }

    /// 400: a request asks for more consistency than the account gives.
    pub fn consistency_too_strong(requested: &str, account: &str) -> ApiError {
        ApiError::bad_request(format!(
            "ConsistencyLevel {requested} specified in the request is invalid when service is configured with \
             consistency level {account}. Ensure the request consistency level is not stronger than the service \
             consistency level."
        ))
    }

    /// 400: a session token that is none.
    pub fn invalid_session_token(token: &str) -> ApiError {
        ApiError::bad_request(format!("The session token provided '{token}' is invalid."))
    }

    /// 405: the route exists, the verb on it does not.
    pub fn method_not_allowed(verb: &str) -> ApiError {
        ApiError::new(405, 0, format!("The requested verb {verb} is not supported on this resource."))
    }

    /// 408: the body did not come in time.
    pub fn body_too_slow() -> ApiError {
        ApiError::new(408, 0, "The request body did not arrive in time. Please retry.")
    }

    /// 413: the body is over the limit.
    pub fn too_large() -> ApiError {
        ApiError::new(413, 0, "Request size is too large").backend()
    }
}

impl From<mayfly_value::partition::PartitionKeyError> for ApiError {
    fn from(error: mayfly_value::partition::PartitionKeyError) -> ApiError {
        ApiError::bad_request(error.to_string())
    }
}

/// What is there, and what is not.
impl ApiError {
    /// 404: the item (or an expired one). Holds both phrases that tests look for.
    pub fn item_not_found() -> ApiError {
        ApiError::new(
            404,
            0,
            "Entity with the specified id does not exist in the system. More info: \
             https://aka.ms/cosmosdb-tsg-not-found. Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
        )
    }

    /// 404: a database, container or other resource.
    pub fn resource_not_found() -> ApiError {
        ApiError::new(404, 0, "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found")
    }

    /// 404/1003: what should hold the resource is not there. SDKs refresh their cache of containers.
    pub fn owner_not_found() -> ApiError {
        ApiError::new(404, 1003, "Owner resource does not exist")
    }

    /// 404/1002: the client has seen more than this server has. Wrongly sent, it makes clients retry at length.
    pub fn read_session_not_available() -> ApiError {
        ApiError::new(404, 1002, "The read session is not available for the input session token.")
    }

    /// 410/1002: there is no such partition key range. SDKs read the ranges again and retry.
    pub fn partition_key_range_gone() -> ApiError {
        ApiError::new(410, 1002, "The requested partition key range is gone.")
    }

    /// 409: an item with this id is there.
    pub fn item_exists() -> ApiError {
        ApiError::new(409, 0, "Entity with the specified id already exists in the system.")
    }

    /// 409: a database or container with this name is there.
    pub fn resource_exists() -> ApiError {
        ApiError::new(409, 0, "Resource with specified id or name already exists.")
    }

    /// 409: another item of the logical partition has these values.
    pub fn unique_violation() -> ApiError {
        ApiError::new(
            409,
            0,
            "Unique index constraint violation. Resource with specified id, name, or unique index already \
             exists.",
        )
    }

    /// 412: someone else changed it first. Holds both phrases that tests look for.
    pub fn precondition_failed() -> ApiError {
        ApiError::new(
            412,
            0,
            "Operation cannot be performed because one of the specified precondition is not met. \
             One of the specified pre-condition is not met",
        )
    }

    /// 429/3200: over budget; nothing was changed.
    pub fn throttled(retry_after: Duration) -> ApiError {
        ApiError::new(
            429,
            3200,
            "Request rate is large. More Request Units may be needed, so no changes were made. Please retry \
             this request later. Learn more: http://aka.ms/cosmosdb-error-429",
        )
        .retry_after(retry_after)
    }
}

/// What this server cannot do, now or yet.
impl ApiError {
    /// 500: a bug; the log says more than the client should know.
    pub fn internal() -> ApiError {
        ApiError::new(500, 0, "An unknown error occurred while processing this request.")
    }

    /// 501: part of the protocol, not of this version.
    pub fn not_implemented(feature: &str) -> ApiError {
        ApiError::new(501, 0, format!("{feature} is not implemented in this version of Mayfly."))
    }

    /// 449: too many others change the same item. Clients retry.
    pub fn retry_with() -> ApiError {
        ApiError::new(449, 0, "Conflicting request to resource has been attempted. Retry to avoid conflicts.")
            .retry_after(Duration::from_millis(10))
    }

    /// Whether somebody else was quicker, and the same request may do better.
    pub fn is_retry(&self) -> bool {
        self.status == 449
    }

    /// 503: starting, stopping or without its store. Clients retry.
    pub fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(503, 0, message).retry_after(Duration::from_secs(1))
    }
}

fn ttl_text(property: &str, value: &str) -> String {
    format!(
        "The input {property} '{value}' is invalid. Ensure to provide a nonzero positive integer less than or \
         equal to '2147483647', or '-1' which means never expire."
    )
}

/// The only place where the engine's kinds become statuses.
impl From<mayfly_engine::Error> for ApiError {
    fn from(error: mayfly_engine::Error) -> ApiError {
        use mayfly_engine::{Error, Resource};
        match error {
            Error::NotFound(Resource::Document) => ApiError::item_not_found(),
            Error::NotFound(Resource::Database | Resource::Container | Resource::Kept) => {
                ApiError::resource_not_found()
            }
            Error::Exists(Resource::Document) => ApiError::item_exists(),
            Error::Exists(Resource::Database | Resource::Container | Resource::Kept) => {
                ApiError::resource_exists()
            }
            Error::UniqueViolation | Error::Duplicate { .. } => ApiError::unique_violation(),
            Error::ParallelArrays => {
                ApiError::bad_request("The document has arrays in two fields of one index of the collection.")
            }
            Error::PreconditionFailed => ApiError::precondition_failed(),
            Error::PartitionKeyMismatch => ApiError::partition_key_mismatch(),
            Error::BadRequest { message } | Error::NotIndexable(message) => ApiError::bad_request(message),
            Error::InvalidTtl { value } => ApiError::invalid_ttl(&value),
            Error::TooLarge { .. } => ApiError::too_large(),
            Error::BadContinuation => ApiError::invalid_continuation(),
            Error::Contention | Error::IndexChanged => ApiError::retry_with(),
            Error::ReadOnly => {
                ApiError::unavailable("The server takes no writes at the moment: its disk is nearly full.")
            }
            // What broke is for the log, not for the client.
            error @ (Error::Unavailable(_) | Error::Corrupt(_) | Error::Internal { .. }) => {
                tracing::error!("{error}");
                match error {
                    Error::Unavailable(_) => ApiError::unavailable("The store is not available."),
                    _ => ApiError::internal(),
                }
            }
        }
    }
}

impl From<UnknownRoute> for ApiError {
    fn from(_: UnknownRoute) -> ApiError {
        ApiError::unknown_route()
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> ApiError {
        let unauthorized = |message: String| ApiError::new(401, 0, message);
        match error {
            AuthError::Missing => unauthorized(
                "Required Header authorization is missing. Ensure a valid Authorization token is passed."
                    .into(),
            ),
            AuthError::Malformed => unauthorized(
                "Authorization header doesn't confirm to the required format. Please verify and try again."
                    .into(),
            ),
            AuthError::NoDate => unauthorized(
                "Authorization token mandates Date header. Please pass in RFC 1123 style date format.".into(),
            ),
            AuthError::Unsupported { kind } => unauthorized(format!(
                "Authorization tokens of type '{kind}' are not accepted by this server. Please sign with an account \
                 key{}.",
                if kind == "aad" { ", or start the server with --dev-entra" } else { "" }
            )),
            AuthError::WrongSignature { payload } => unauthorized(format!(
                "The input authorization token can't serve the request. The wrong key is being used or the \
                 expected payload is not built as per the protocol. For more info: \
                 https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: '{}'",
                payload.replace('\n', "\\n")
            )),
            // Never substatus 3, which makes SDKs look for another region.
            AuthError::NotValidNow { signed_at, now } => ApiError::new(
                403,
                0,
                format!(
                    "The authorization token is not valid at the current time. Please create another token and \
                     retry (token start time: {}, token expiry time: {}, current server time: {}).",
                    http_date::format(signed_at.saturating_sub(DATE_WINDOW_SECONDS)),
                    http_date::format(signed_at.saturating_add(DATE_WINDOW_SECONDS)),
                    http_date::format(now)
                ),
            ),
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
