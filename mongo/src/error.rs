//! Errors as MongoDB gives them: a number, its name, and a message.
//!
//! Drivers and applications decide by the number, so every refusal in this crate carries the one that MongoDB
//! 8.2 gives. The table below names the numbers; those without a name are called `Location<number>`.

use std::borrow::Cow;
use std::fmt;

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MongoError {
    /// The number that drivers decide by.
    pub code: i32,
    /// What a person reads.
    pub message: String,
}

/// What this crate's functions give.
pub type Result<T> = std::result::Result<T, MongoError>;

impl MongoError {
    /// An error with this number.
    pub fn new(code: i32, message: impl Into<String>) -> MongoError {
        MongoError { code, message: message.into() }
    }

    /// The name of the number, as `codeName` in a reply.
    pub fn name(&self) -> Cow<'static, str> {
        match CODES.binary_search_by_key(&self.code, |(code, _)| *code) {
            Ok(at) => CODES.get(at).map_or(Cow::Borrowed(""), |(_, name)| Cow::Borrowed(*name)),
            Err(_) => Cow::Owned(format!("Location{}", self.code)),
        }
    }
}

impl fmt::Display for MongoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.code, self.message)
    }
}

impl std::error::Error for MongoError {}

impl From<bson::error::Error> for MongoError {
    fn from(error: bson::error::Error) -> Self {
        MongoError::new(INVALID_BSON, error.to_string())
    }
}

/// Leaves the function with an error.
macro_rules! bail {
    ($code:expr, $($message:tt)+) => {
        return Err($crate::error::MongoError::new($code, format!($($message)+)))
    };
}
pub(crate) use bail;

pub(crate) const BAD_VALUE: i32 = 2;
pub(crate) const FAILED_TO_PARSE: i32 = 9;
pub(crate) const TYPE_MISMATCH: i32 = 14;
pub(crate) const INVALID_BSON: i32 = 22;
pub(crate) const PATH_NOT_VIABLE: i32 = 28;
pub(crate) const CONFLICTING_UPDATE: i32 = 40;
pub(crate) const DOLLAR_PREFIXED: i32 = 52;
pub(crate) const INVALID_REFERENCE: i32 = 55;
pub(crate) const QUERY_FEATURE_NOT_ALLOWED: i32 = 224;
pub(crate) const NOT_SINGLE_VALUE: i32 = 54;
pub(crate) const EMPTY_FIELD_NAME: i32 = 56;
pub(crate) const IMMUTABLE_FIELD: i32 = 66;
pub(crate) const INVALID_OPTIONS: i32 = 72;
pub(crate) const EXCEEDED_MEMORY: i32 = 292;
pub(crate) const NOT_IMPLEMENTED: i32 = 238;
pub(crate) const CONVERSION_FAILURE: i32 = 241;
pub(crate) const UNKNOWN_FIELD: i32 = 40415;
pub(crate) const MISSING_FIELD: i32 = 40414;

/// The numbers that have names, ascending.
pub const CODES: &[(i32, &str)] = &[
    (0, "OK"),
    (1, "InternalError"),
    (2, "BadValue"),
    (4, "NoSuchKey"),
    (5, "GraphContainsCycle"),
    (6, "HostUnreachable"),
    (7, "HostNotFound"),
    (8, "UnknownError"),
    (9, "FailedToParse"),
    (10, "CannotMutateObject"),
    (11, "UserNotFound"),
    (12, "UnsupportedFormat"),
    (13, "Unauthorized"),
    (14, "TypeMismatch"),
    (15, "Overflow"),
    (16, "InvalidLength"),
    (17, "ProtocolError"),
    (18, "AuthenticationFailed"),
    (19, "CannotReuseObject"),
    (20, "IllegalOperation"),
    (21, "EmptyArrayOperation"),
    (22, "InvalidBSON"),
    (24, "LockTimeout"),
    (26, "NamespaceNotFound"),
    (27, "IndexNotFound"),
    (28, "PathNotViable"),
    (29, "NonExistentPath"),
    (31, "RoleNotFound"),
    (34, "CannotBackfillArray"),
    (40, "ConflictingUpdateOperators"),
    (43, "CursorNotFound"),
    (48, "NamespaceExists"),
    (50, "MaxTimeMSExpired"),
    (52, "DollarPrefixedFieldName"),
    (53, "InvalidIdField"),
    (54, "NotSingleValueField"),
    (55, "InvalidDBRef"),
    (56, "EmptyFieldName"),
    (57, "DottedFieldName"),
    (59, "CommandNotFound"),
    (61, "ShardKeyNotFound"),
    (64, "WriteConcernTimeout"),
    (65, "MultipleErrorsOccurred"),
    (66, "ImmutableField"),
    (67, "CannotCreateIndex"),
    (72, "InvalidOptions"),
    (73, "InvalidNamespace"),
    (76, "NoReplicationEnabled"),
    (79, "UnknownReplWriteConcern"),
    (85, "IndexOptionsConflict"),
    (86, "IndexKeySpecsConflict"),
    (89, "NetworkTimeout"),
    (91, "ShutdownInProgress"),
    (96, "OperationFailed"),
    (100, "UnsatisfiableWriteConcern"),
    (112, "WriteConflict"),
    (115, "CommandNotSupported"),
    (117, "ConflictingOperationInProgress"),
    (121, "DocumentValidationFailure"),
    (136, "CappedPositionLost"),
    (143, "CursorInUse"),
    (146, "ExceededMemoryLimit"),
    (161, "IncompatibleCollationVersion"),
    (165, "ViewDepthLimitExceeded"),
    (166, "CommandNotSupportedOnView"),
    (167, "OptionNotSupportedOnView"),
    (168, "InvalidPipelineOperator"),
    (171, "CannotIndexParallelArrays"),
    (175, "QueryPlanKilled"),
    (183, "ClientMetadataMissingField"),
    (184, "ClientMetadataAppNameTooLarge"),
    (185, "ClientMetadataDocumentTooLarge"),
    (186, "ClientMetadataCannotBeMutated"),
    (189, "PrimarySteppedDown"),
    (197, "InvalidIndexSpecificationOption"),
    (207, "InvalidUUID"),
    (225, "TransactionTooOld"),
    (238, "NotImplemented"),
    (241, "ConversionFailure"),
    (251, "NoSuchTransaction"),
    (256, "TransactionCommitted"),
    (257, "TransactionTooLarge"),
    (260, "InvalidResumeToken"),
    (262, "ExceededTimeLimit"),
    (263, "OperationNotSupportedInTransaction"),
    (280, "ChangeStreamFatalError"),
    (286, "ChangeStreamHistoryLost"),
    (288, "ChecksumMismatch"),
    (291, "NoQueryExecutionPlans"),
    (292, "QueryExceededMemoryLimitNoDiskUseAllowed"),
    (322, "APIVersionError"),
    (323, "APIStrictError"),
    (334, "MechanismUnavailable"),
    (352, "UnsupportedOpQueryCommand"),
    (359, "CannotConvertIndexToUnique"),
    (365, "TemporarilyUnavailable"),
    (391, "ReauthenticationRequired"),
    (449, "RateLimitExceeded"),
    (9001, "SocketException"),
    (10003, "CannotGrowDocumentInCappedNamespace"),
    (10107, "NotWritablePrimary"),
    (10334, "BSONObjectTooLarge"),
    (11000, "DuplicateKey"),
    (11600, "InterruptedAtShutdown"),
    (11601, "Interrupted"),
    (11602, "InterruptedDueToReplStateChange"),
    (13297, "DatabaseDifferCase"),
    (13388, "StaleConfig"),
    (13435, "NotPrimaryNoSecondaryOk"),
    (13436, "NotPrimaryOrSecondary"),
    (14031, "OutOfDiskSpace"),
    (31082, "SearchNotEnabled"),
    (40414, "IDLFailedToParse"),
    (40415, "IDLUnknownField"),
    (46841, "ClientMarkedKilled"),
    (50768, "NotARetryableWriteCommand"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_have_names() {
        assert!(CODES.is_sorted_by_key(|(code, _)| *code));
        assert_eq!(MongoError::new(40, "").name(), "ConflictingUpdateOperators");
        assert_eq!(MongoError::new(17276, "").name(), "Location17276");
    }
}
