//! JSON at the REST door: text becomes BSON bytes on the way in, and text again on the way out.
//!
//! ```text
//!   request body ──▶ read::parse_document ──▶ BSON bytes (stored, indexed, queried)
//!   response     ◀── write::ObjectWriter  ◀── BSON bytes
//! ```
//!
//! Both directions stream: no tree of values is built in between. Holds: what `parse_document` accepts,
//! `write_document` prints such that parsing it again gives the same bytes (see `tests/properties.rs`).

mod extended;
pub mod plain;
mod read;
mod sink;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub use read::{parse_document, parse_value};
pub(crate) use text::is_plain_ascii;
pub use text::write_str;
pub use write::{ObjectWriter, write_document, write_double, write_int, write_value};

/// What a JSON text may cost before it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Longest text accepted, in bytes.
    pub bytes_max: usize,
    /// Deepest nesting of objects and arrays accepted; never more than [`crate::foreign::DEPTH_MAX`].
    pub depth_max: usize,
}

impl Default for JsonLimits {
    /// The service's own limits for an item: 2 MB and 128 levels.
    fn default() -> Self {
        JsonLimits { bytes_max: 2 * 1024 * 1024, depth_max: 128 }
    }
}

/// Why a JSON text was refused. The messages are fit to be shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text (or the document it makes) is longer than allowed.
    #[error("the JSON text is too large: {bytes} bytes, the limit is {bytes_max}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        bytes_max: usize,
    },
    /// Objects and arrays are nested deeper than allowed.
    #[error("the JSON text nests objects and arrays deeper than {depth_max} levels")]
    TooDeep {
        /// How deep it may be.
        depth_max: usize,
    },
    /// A document was expected and the text is another JSON value.
    #[error("the JSON text must be an object")]
    NotAnObject,
    /// A property name holds U+0000, which BSON cannot store in a name.
    #[error("the property name {name:?} contains the character U+0000, which names cannot hold")]
    NulInKey {
        /// The name as it was sent.
        name: String,
    },
    /// The bytes are not UTF-8.
    #[error("the JSON text is not valid UTF-8 (near byte {position})")]
    NotUtf8 {
        /// The first byte that does not belong.
        position: usize,
    },
    /// The text is not JSON, or a number in it does not fit a double.
    #[error("the JSON text is invalid: {message}")]
    Syntax {
        /// What the parser stumbled over, with line and column.
        message: String,
    },
}
