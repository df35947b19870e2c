//! HybridRow: the form of batches in the .NET SDK, both ways.
//!
//! ```text
//!   81 F0 D8 FF 7F │ 01 │ length:4              one segment header, `length` bytes in all
//!   81 F1 D8 FF 7F │ length:4 │ crc32:4 │ row   then a record for each operation or result
//! ```
//!
//! `records` has this framing, `operation` reads the rows of a request and `result` writes those of an answer;
//! `primitives` has the integers they share. The SDK takes an answer in any other form for a server error, so a batch
//! that came in rows is answered in rows.
//!
//! Holds: any bytes are either operations or a clear error; what is read was covered by its checksum.

mod operation;
mod primitives;
mod records;
mod result;
#[cfg(test)]
mod tests;

pub use operation::{BatchOperation, OperationType};
pub use result::BatchResult;

use bytes::Bytes;

use crate::error::ApiError;

/// Whether a body is a batch in rows rather than in JSON.
pub fn is_hybrid_row(body: &[u8]) -> bool {
    body.first() == Some(&primitives::VERSION)
}

/// The operations of a batch, in their order. They share the body's memory.
pub fn parse_operations(body: &Bytes) -> Result<Vec<BatchOperation>, HybridRowError> {
    records::read(body)?.into_iter().map(|row| BatchOperation::parse(&row)).collect()
}

/// The answer to a batch: a record for each result, in the order of the operations.
pub fn encode_results(results: &[BatchResult]) -> Bytes {
    records::write(results.iter().map(BatchResult::encode))
}

/// Why a batch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HybridRowError {
    /// The body ends in the middle of something.
    #[error("it ends too early")]
    Truncated,
    /// Another kind of row than the one due.
    #[error("a row is not of the kind that belongs there")]
    UnexpectedRow,
    /// A checksum does not fit its record.
    #[error("the checksum of a record is wrong")]
    WrongChecksum,
    /// A length, count or number is out of its range.
    #[error("the value of {field} is invalid")]
    InvalidValue {
        /// Whose value.
        field: &'static str,
    },
    /// The type of an optional property is not the one it has, or one this server does not know.
    #[error("the type 0x{code:02X} is not expected for a property of an operation")]
    UnexpectedType {
        /// The type's code.
        code: u8,
    },
    /// Part of the protocol that this server does not do.
    #[error("{feature} in a batch are not supported")]
    Unsupported {
        /// In the plural.
        feature: &'static str,
    },
}

impl From<HybridRowError> for ApiError {
    fn from(error: HybridRowError) -> ApiError {
        ApiError::bad_request(format!("The batch request is invalid: {error}."))
    }
}
