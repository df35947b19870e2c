//! Header names of the protocol in one table, and getters that check what they read.
//!
//! The names are `HeaderName`s, so that looking one up hashes it once and a misspelt name does not compile. Of the many that a
//! request may have it has few, so most are not even looked up ([`Headers`]).
//! Header booleans arrive as `True`, `true`, `False` or `false`, depending on the SDK's language.
//!
//! Holds: a getter answers `None` (or false) for an absent header and 400 for one it cannot read; it never
//! guesses.

use crate::error::ApiError;
use crate::raw_head::RawHead;
use hyper::HeaderMap;
use hyper::header::{self, HeaderName};

macro_rules! header_names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* pub static $name: HeaderName = HeaderName::from_static($text);)*

        /// Every name above, for tests and for documentation.
        pub static ALL: &[&HeaderName] = &[$(&$name),*];
    };
}

/// Names of HTTP itself that answers carry. Those of the protocol are below; these are statics too, so that an answer in the
/// making can hold names by reference.
pub static CONTENT_LOCATION: HeaderName = header::CONTENT_LOCATION;
/// The form of the body.
pub static CONTENT_TYPE: HeaderName = header::CONTENT_TYPE;
/// The version of the resource.
pub static ETAG: HeaderName = header::ETAG;
/// When the answer was made.
pub static HTTP_DATE: HeaderName = header::DATE;

header_names! {
    // Who asks, and when.
    /// The moment of signing; part of the signed text.
    DATE = "x-ms-date";
    /// The protocol version the client speaks.
    VERSION = "x-ms-version";
    /// The client's id of the request, a GUID; echoed in the response.
    ACTIVITY_ID = "x-ms-activity-id";

    // Which documents.
    /// The logical partition: a JSON array in ASCII.
    PARTITION_KEY = "x-ms-documentdb-partitionkey";
    /// The physical range, `id` or `collRid,id`; responses name the range that answered.
    PARTITION_KEY_RANGE_ID = "x-ms-documentdb-partitionkeyrangeid";
    /// Lower bound (inclusive, hex) of effective partition keys.
    START_EPK = "x-ms-start-epk";
    /// Upper bound (exclusive, hex) of effective partition keys.
    END_EPK = "x-ms-end-epk";
    /// What the two bounds are.
    READ_KEY_TYPE = "x-ms-read-key-type";
    /// The container RID the client has cached; another one is 400/1024.
    INTENDED_COLLECTION_RID = "x-ms-cosmos-intended-collection-rid";

    // What a POST means.
    /// Create becomes create-or-replace.
    IS_UPSERT = "x-ms-documentdb-is-upsert";
    /// The POST is a query.
    IS_QUERY = "x-ms-documentdb-isquery";
    /// The same, as some SDKs spell it.
    IS_QUERY_OLD = "x-ms-documentdb-query";
    /// The POST asks for a query plan.
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request";
    /// The POST is a batch.
    IS_BATCH = "x-ms-cosmos-is-batch-request";
    /// All operations of the batch or none.
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic";
    /// Go on after a failed operation.
    BATCH_CONTINUE_ON_ERROR = "x-ms-cosmos-batch-continue-on-error";
    /// Run the operations in order.
    BATCH_ORDERED = "x-ms-cosmos-batch-ordered";

    // Queries and feeds.
    /// The query may visit more than one logical partition.
    ENABLE_CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition";
    /// Allow a query that the index does not serve.
    ENABLE_SCAN = "x-ms-documentdb-query-enable-scan";
    /// Page size; -1 leaves it to the server.
    MAX_ITEM_COUNT = "x-ms-max-item-count";
    /// Where the next page starts; opaque to clients.
    CONTINUATION = "x-ms-continuation";
    /// The longest continuation the client takes, in KB.
    CONTINUATION_LIMIT_KB = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    /// Send query metrics.
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics";
    /// Send index metrics.
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics";
    /// Send index metrics in the newer form.
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2";
    /// Send query advice.
    POPULATE_QUERY_ADVICE = "x-ms-cosmos-populatequeryadvice";
    /// What the client's query engine can do, in answer to a plan request.
    SUPPORTED_QUERY_FEATURES = "x-ms-cosmos-supported-query-features";
    /// The plan version the client reads.
    QUERY_VERSION = "x-ms-cosmos-query-version";
    /// The query metrics, `name=value;` pairs.
    QUERY_METRICS = "x-ms-documentdb-query-metrics";
    /// How the query ran, as JSON.
    QUERY_EXECUTION_INFO = "x-ms-cosmos-query-execution-info";
    /// Which indexes served the query.
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization";
    /// Explain in the body of the answer how the query was answered; our own.
    EXPLAIN = "x-mayfly-explain";
    /// Items in this page.
    ITEM_COUNT = "x-ms-item-count";
    /// `Incremental Feed` or `Full-Fidelity Feed` makes a read of the feed a change feed.
    A_IM = "a-im";
    /// The envelope form of change feed entries.
    CHANGE_FEED_WIRE_FORMAT = "x-ms-cosmos-changefeed-wire-format-version";

    // How to read and write.
    /// `return=minimal` wants no body back from a write.
    PREFER = "prefer";
    /// Consistency for this request, at most that of the account.
    CONSISTENCY_LEVEL = "x-ms-consistency-level";
    /// What the client has already seen.
    SESSION_TOKEN = "x-ms-session-token";
    /// Index this document or not, against the policy.
    INDEXING_DIRECTIVE = "x-ms-indexing-directive";
    /// Triggers to run before the write.
    PRE_TRIGGER_INCLUDE = "x-ms-documentdb-pre-trigger-include";
    /// Triggers to run after the write.
    POST_TRIGGER_INCLUDE = "x-ms-documentdb-post-trigger-include";
    /// Capture `console.log` of a stored procedure.
    SCRIPT_ENABLE_LOGGING = "x-ms-documentdb-script-enable-logging";
    /// The captured log, URL-encoded.
    SCRIPT_LOG_RESULTS = "x-ms-documentdb-script-log-results";
    /// Forms of the response body the client can read.
    SUPPORTED_SERIALIZATION_FORMATS = "x-ms-cosmos-supported-serialization-formats";
    /// The form an older client demands.
    CONTENT_SERIALIZATION_FORMAT = "x-ms-documentdb-content-serialization-format";
    /// Lifetime of a resource token.
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds";

    // Throughput.
    /// Manual throughput of a new database or container.
    OFFER_THROUGHPUT = "x-ms-offer-throughput";
    /// Autoscale settings of a new database or container.
    OFFER_AUTOPILOT = "x-ms-cosmos-offer-autopilot-settings";
    /// Legacy performance level.
    OFFER_TYPE = "x-ms-offer-type";
    /// Throughput bucket, 1 to 5.
    THROUGHPUT_BUCKET = "x-ms-cosmos-throughput-bucket";
    /// The least a resource may be provisioned with.
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput";
    /// Whether a change of throughput is still under way.
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending";
    /// Change a manual offer to autoscale.
    MIGRATE_TO_AUTOPILOT = "x-ms-cosmos-migrate-offer-to-autopilot";
    /// Change an autoscale offer to manual.
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput";
    /// Cost of the request in request units.
    REQUEST_CHARGE = "x-ms-request-charge";
    /// How long to wait before trying again.
    RETRY_AFTER_MS = "x-ms-retry-after-ms";

    // About the answer.
    /// The finer reason of an error; absent when 0.
    SUBSTATUS = "x-ms-substatus";
    /// Version of the gateway.
    GATEWAY_VERSION = "x-ms-gatewayversion";
    /// Version of the service.
    SERVICE_VERSION = "x-ms-serviceversion";
    /// Version of the schema.
    SCHEMA_VERSION = "x-ms-schemaversion";
    /// When the replica last changed state.
    LAST_STATE_CHANGE = "x-ms-last-state-change-utc";
    /// Time spent on the server.
    REQUEST_DURATION_MS = "x-ms-request-duration-ms";
    /// Name path of the owning container; SDKs keep session tokens under it.
    ALT_CONTENT_PATH = "x-ms-alt-content-path";
    /// RID of the owner: the container for documents, the database for containers.
    CONTENT_PATH = "x-ms-content-path";
    /// Commit number of the partition.
    LSN = "lsn";
    /// Commit number of the item.
    ITEM_LSN = "x-ms-item-lsn";
    /// Local commit number of the partition.
    LOCAL_LSN = "x-ms-cosmos-llsn";
    /// Local commit number of the item.
    ITEM_LOCAL_LSN = "x-ms-cosmos-item-llsn";
    /// Commit number all replicas have.
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn";
    /// Commit number a quorum has.
    QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn";
    /// Read regions beside this one.
    NUMBER_OF_READ_REGIONS = "x-ms-number-of-read-regions";
    /// Number of the request on its transport.
    TRANSPORT_REQUEST_ID = "x-ms-transport-request-id";

    // Containers.
    /// Ask for quota and usage of a container.
    POPULATE_QUOTA_INFO = "x-ms-documentdb-populatequotainfo";
    /// Ask for statistics of each range.
    POPULATE_PARTITION_STATISTICS = "x-ms-documentdb-populatepartitionstatistics";
    /// The limits.
    RESOURCE_QUOTA = "x-ms-resource-quota";
    /// What is used of them.
    RESOURCE_USAGE = "x-ms-resource-usage";
    /// Percent of documents a new indexing policy has reached.
    INDEX_TRANSFORMATION_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress";
    /// Percent of documents a lazy index has reached; -1 if it is not lazy.
    LAZY_INDEXING_PROGRESS = "x-ms-documentdb-collection-lazy-indexing-progress";
}

/// The headers of a request.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    lines: Lines<'a>,
    /// A bit for each length that a name here has: a name of another length is not among them.
    lengths: u64,
}

#[derive(Clone, Copy, Debug)]
enum Lines<'a> {
    Mapped(&'a HeaderMap),
    Raw(&'a RawHead),
}

/// The value of a header is not text.
#[derive(Clone, Copy, Debug)]
pub struct NotText;

impl<'a> Headers<'a> {
    /// Those of a map.
    pub fn of(map: &'a HeaderMap) -> Self {
        let lengths = map.keys().map(|name| length_bit(name.as_str().len())).fold(0, |bits, bit| bits | bit);
        Self { lines: Lines::Mapped(map), lengths }
    }

    /// Those of a head as it came.
    pub fn raw(head: &'a RawHead) -> Self {
        Self { lines: Lines::Raw(head), lengths: head.lengths() }
    }

    /// A header's text.
    pub fn get(&self, name: &HeaderName) -> Option<Result<&'a str, NotText>> {
        if self.lengths & length_bit(name.as_str().len()) == 0 {
            return None;
        }
        match self.lines {
            Lines::Mapped(map) => map.get(name).map(|value| value.to_str().map_err(|_| NotText)),
            Lines::Raw(head) => head.get(name.as_str()).map(Ok),
        }
    }

    /// A header's text; one that is none counts as absent.
    pub fn get_text(&self, name: &HeaderName) -> Option<&'a str> {
        self.get(name)?.ok()
    }

    /// Whether there is such a header.
    pub fn contains(&self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }
}

/// The bit that stands for names of this length.
pub(crate) fn length_bit(length: usize) -> u64 {
    1 << (length % 64)
}

/// The text of a header.
pub fn text<'a>(headers: &Headers<'a>, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    headers.get(name).transpose().map_err(|_| invalid(name))
}

/// A boolean header; absent means false.
pub fn flag(headers: &Headers<'_>, name: &HeaderName) -> Result<bool, ApiError> {
    match text(headers, name)?.map(str::trim) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.is_empty() || value.eq_ignore_ascii_case("false") => Ok(false),
        Some(_) => Err(invalid(name)),
    }
}

/// A whole number.
pub fn integer(headers: &Headers<'_>, name: &HeaderName) -> Result<Option<i64>, ApiError> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    value.trim().parse().map(Some).map_err(|_| invalid(name))
}

/// 400: a header's value cannot be read.
pub fn invalid(name: &HeaderName) -> ApiError {
    ApiError::bad_request(format!("The value specified for the header '{name}' is invalid."))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn with(name: &HeaderName, value: &[u8]) -> HeaderMap {
        HeaderMap::from_iter([(name.clone(), HeaderValue::from_bytes(value).unwrap())])
    }

    #[test]
    fn names_are_listed_once() {
        let mut names: Vec<_> = ALL.iter().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_header_is_found_whatever_the_lengths_of_others() {
        let all =
            HeaderMap::from_iter(ALL.iter().map(|name| ((*name).clone(), HeaderValue::from_static("x"))));
        for name in ALL {
            assert!(Headers::of(&all).contains(name), "{name}");
            let one = with(name, b"x");
            let found: Vec<_> = ALL.iter().filter(|other| Headers::of(&one).contains(other)).collect();
            assert_eq!(found, [name]);
        }
    }

    #[test]
    fn flags_read_in_every_language() {
        assert!(!flag(&Headers::of(&HeaderMap::new()), &IS_QUERY).unwrap());
        for (value, expected) in
            [("True", true), ("true", true), ("False", false), ("false", false), ("", false)]
        {
            assert_eq!(
                flag(&Headers::of(&with(&IS_QUERY, value.as_bytes())), &IS_QUERY).unwrap(),
                expected,
                "{value}"
            );
        }
        let error = flag(&Headers::of(&with(&IS_QUERY, b"yes")), &IS_QUERY).unwrap_err();
        assert_eq!((error.status, error.code), (400, "BadRequest"));
        assert!(error.message.contains("'x-ms-documentdb-isquery' is invalid"), "{}", error.message);
    }

    #[test]
    fn integers_are_whole() {
        assert_eq!(integer(&Headers::of(&HeaderMap::new()), &MAX_ITEM_COUNT).unwrap(), None);
        assert_eq!(
            integer(&Headers::of(&with(&MAX_ITEM_COUNT, b" -1 ")), &MAX_ITEM_COUNT).unwrap(),
            Some(-1)
        );
        for value in ["", "1.5", "many", "9223372036854775808"] {
            assert!(
                integer(&Headers::of(&with(&MAX_ITEM_COUNT, value.as_bytes())), &MAX_ITEM_COUNT).is_err(),
                "{value}"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        assert!(text(&Headers::of(&with(&CONTINUATION, b"\xff")), &CONTINUATION).is_err());
    }
}
