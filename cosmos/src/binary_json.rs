//! Cosmos binary JSON: the compact form in which some SDKs send item bodies.
//!
//! ```text
//!   80 │ value            a value is a marker byte and what the marker asks for; integers are little-endian
//! ```
//!
//! The content type still says JSON; only the first byte, with which no JSON text begins, tells the two apart. `read`
//! walks the values, `strings` knows the many spellings of a string, and `sink` writes BSON as they go by.
//!
//! Holds: a body becomes the document that its JSON text would become under `mayfly_value::json::parse_document`, or
//! is refused; and since strings can refer to earlier ones, the limit counts the text that a body stands for, so that
//! a small body never becomes a large document.

mod read;
mod sink;
mod strings;
#[cfg(test)]
mod test_encoder;
#[cfg(test)]
mod tests;

use bson::RawDocumentBuf;
use mayfly_value::json::{JsonError, JsonLimits};

use crate::error::ApiError;

/// The first byte of every body in this form.
const PREAMBLE: u8 = 0x80;

/// Whether a body is in this form rather than JSON text.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&PREAMBLE)
}

/// Turns a body that holds an object into a document.
pub fn parse_document(body: &[u8], limits: JsonLimits) -> Result<RawDocumentBuf, BinaryJsonError> {
    read::document(body, limits)
}

/// Why a body was refused. The messages are fit to be shown to the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BinaryJsonError {
    /// What would be refused as text, too: too large, too deep, no object, a name with NUL, no UTF-8.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The bytes do not follow the format.
    #[error("the binary JSON is invalid near byte {position}: {reason}")]
    Malformed {
        /// Where, counted from the first byte of the body.
        position: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// A marker that the format does not define, or not in this place.
    #[error(
        "the binary JSON is invalid near byte {position}: the marker 0x{marker:02X} does not belong there"
    )]
    UnexpectedMarker {
        /// Where, counted from the first byte of the body.
        position: usize,
        /// The marker.
        marker: u8,
    },
    /// A string of a dictionary that client and server would have had to agree on.
    #[error(
        "the binary JSON uses a string dictionary (near byte {position}), which this server does not have"
    )]
    Dictionary {
        /// Where, counted from the first byte of the body.
        position: usize,
    },
}

impl From<BinaryJsonError> for ApiError {
    fn from(error: BinaryJsonError) -> ApiError {
        match error {
            BinaryJsonError::Json(JsonError::TooLarge { .. }) => ApiError::too_large(),
            error => ApiError::bad_request(format!("The input content is invalid: {error}.")),
        }
    }
}
