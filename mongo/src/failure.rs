//! How a command fails, in the protocol's shape.
//!
//! Clients decide by the code and the labels; people read the text. A failure of one statement of a write stands in
//! `writeErrors` of an answer that is otherwise fine; all others are the answer.

use bson::{Bson, Document, doc};
use mayfly_engine::Error as EngineError;

use crate::derived::refusal_code;
use crate::error::MongoError;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What clients look at.
    pub code: i32,
    /// What people read.
    pub message: String,
    /// What a driver may do about it.
    pub labels: Vec<&'static str>,
    /// Further fields beside the code, such as `keyPattern` and `keyValue`.
    pub fields: Box<Document>,
}

/// The name of a code.
pub fn code_name(code: i32) -> String {
    MongoError::new(code, "").name().into_owned()
}

impl Failure {
    /// A failure with a code and a text.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), labels: Vec::new(), fields: Box::default() }
    }

    /// 2: a value that cannot be right.
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new(2, message)
    }

    /// 40414: a field that has to be there.
    pub fn missing(field: &str) -> Self {
        Self::new(40414, format!("BSON field '{field}' is missing but a required field"))
    }

    /// 40415: a field that nobody knows.
    pub fn unknown_field(field: &str) -> Self {
        Self::new(40415, format!("BSON field '{field}' is an unknown field."))
    }

    /// With a label.
    pub fn label(mut self, label: &'static str) -> Self {
        if !self.labels.contains(&label) {
            self.labels.push(label);
        }
        self
    }

    /// With another field.
    pub fn field(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.fields.insert(name, value);
        self
    }

    /// The answer of a command that failed.
    pub fn to_reply(&self) -> Document {
        let mut reply = doc! { "ok": 0.0, "errmsg": &self.message, "code": self.code };
        reply.insert("codeName", code_name(self.code));
        reply.extend((*self.fields).clone());
        if !self.labels.is_empty() {
            let labels: Vec<Bson> = self.labels.iter().map(|label| Bson::from(*label)).collect();
            reply.insert("errorLabels", labels);
        }
        reply
    }

    /// The entry in `writeErrors` of the statement `index`.
    pub fn to_write_error(&self, index: usize) -> Document {
        let mut error = doc! { "index": index as i32, "code": self.code };
        error.extend((*self.fields).clone());
        error.insert("errmsg", &self.message);
        error
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::NotFound(_) => Self::new(26, "ns not found"),
            EngineError::Exists(_) => Self::new(48, "already exists"),
            EngineError::BadRequest { message } => Self::bad_value(message),
            EngineError::InvalidTtl { value } => Self::bad_value(format!("the ttl {value} is not valid")),
            EngineError::TooLarge { bytes, bytes_max } => Self::new(
                10334,
                format!("BSONObj size: {bytes} is invalid. Size must be at most {bytes_max}"),
            ),
            EngineError::NotIndexable(reason) => Self::new(refusal_code(&reason), reason),
            EngineError::ParallelArrays => Self::new(171, "cannot index parallel arrays"),
            EngineError::BadContinuation => Self::new(43, "the position of the cursor is gone"),
            EngineError::Contention | EngineError::PreconditionFailed => {
                Self::new(112, "Caused by :: Write conflict during plan execution and yielding is disabled.")
            }
            EngineError::ReadOnly => Self::new(13436, "the server takes no writes at the moment"),
            error @ (EngineError::UniqueViolation | EngineError::PartitionKeyMismatch) => {
                Self::bad_value(error.to_string())
            }
            error => {
                tracing::error!("a command failed: {error}");
                Self::new(1, error.to_string())
            }
        }
    }
}

impl From<bson::error::Error> for Failure {
    fn from(error: bson::error::Error) -> Self {
        Self::new(22, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_the_shape_that_drivers_read() {
        let failure = Failure::new(112, "conflict").label("TransientTransactionError");
        let reply = doc! {
            "ok": 0.0, "errmsg": "conflict", "code": 112, "codeName": "WriteConflict",
            "errorLabels": ["TransientTransactionError"],
        };
        assert_eq!(failure.to_reply(), reply);
        assert_eq!(code_name(40324), "Location40324");
    }
}
