//! The header before every message.

/// Bytes of a header.
pub const HEADER_LEN: usize = 16;

/// The longest message, header included. Told to clients in `hello`.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// Kinds of message.
pub mod opcode {
    /// The answer to [`QUERY`].
    pub const REPLY: i32 = 1;
    /// The old request, still used for the first `hello`.
    pub const QUERY: i32 = 2004;
    /// Another message, compressed.
    pub const COMPRESSED: i32 = 2012;
    /// Request and answer.
    pub const MSG: i32 = 2013;
}

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The whole message's length, this header included.
    pub length: usize,
    /// The sender's number for it.
    pub request_id: i32,
    /// The number of the message it answers.
    pub response_to: i32,
    /// What kind of message.
    pub opcode: i32,
}

impl Header {
    /// Reads a header; nothing if the length cannot be right.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Header> {
        let [a, b, c, d] = [0, 4, 8, 12].map(|at| word(bytes, at).unwrap_or_default());
        let length = usize::try_from(a).ok()?;
        (HEADER_LEN..=MESSAGE_BYTES_MAX).contains(&length).then_some(Header {
            length,
            request_id: b,
            response_to: c,
            opcode: d,
        })
    }

    /// The bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.length as i32).to_le_bytes());
        out.extend_from_slice(&self.request_id.to_le_bytes());
        out.extend_from_slice(&self.response_to.to_le_bytes());
        out.extend_from_slice(&self.opcode.to_le_bytes());
    }
}

/// Four bytes at a place, as a number.
pub fn word(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_cannot_be_right_are_refused() {
        let header = |length: i32| {
            let mut bytes = [0; HEADER_LEN];
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            Header::parse(&bytes).is_some()
        };
        assert!(header(16) && header(MESSAGE_BYTES_MAX as i32));
        assert!(!header(15) && !header(-1) && !header(MESSAGE_BYTES_MAX as i32 + 1) && !header(i32::MIN));
    }
}
