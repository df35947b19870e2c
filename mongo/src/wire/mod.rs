//! Frames on the wire: what a client sent, and the bytes of an answer.
//!
//! ```text
//!   header (16)  [OP_COMPRESSED]  OP_MSG: flags, sections, checksum   ─▶ Request
//!                                 OP_QUERY: the first hello only
//! ```
//!
//! Holds: a length is checked before memory is taken for it, decompression stops at the limit of a message, and every
//! document is walked through once before anybody else looks at it.

mod compress;
mod frame;
mod message;
mod validate;

pub use compress::Compressor;
pub use frame::{HEADER_LEN, Header, MESSAGE_BYTES_MAX};
pub use message::{Form, Request, WireError, encode_reply, parse};
pub use validate::check_document;
