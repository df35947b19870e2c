//! Continuations: where a page of a query ended.
//!
//! ```text
//!   version:u8  query fingerprint:u64  rows skipped:u64  rows given:u64  rows of the document:u32
//!   anchors: count u8, then u64 each  position
//! ```
//!
//! A query that streams goes on at a position of the scan, in the middle of a document if that one gave several rows. One
//! that has to see all documents is run again and goes on after the last row it gave. Documents may have come or gone
//! meanwhile, so that row is found by what it was and not by its number; the rows before it are remembered, too, in case
//! it is gone itself.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mayfly_engine::Position;
use mayfly_sql::Progress;

use crate::error::ApiError;

const VERSION: u8 = 1;
const HEADER: usize = 29;

/// Where a query stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// Rows left out and given so far.
    pub progress: Progress,
    /// Rows of the next document that were given already.
    pub rows_of_document: u32,
    /// Fingerprints of the last rows given, the latest first; only for a query that is run again.
    pub anchors: Vec<u64>,
    /// The scan's position; none is the start.
    pub position: Option<Position>,
}

/// So many rows are remembered. All of them gone between two pages is too much change to go on from.
pub const ANCHORS_MAX: usize = 16;

impl Token {
    /// The text for the client.
    pub fn encode(&self, fingerprint: u64) -> String {
        let mut bytes = Vec::with_capacity(HEADER + 64);
        bytes.push(VERSION);
        bytes.extend_from_slice(&fingerprint.to_be_bytes());
        bytes.extend_from_slice(&self.progress.skipped.to_be_bytes());
        bytes.extend_from_slice(&self.progress.given.to_be_bytes());
        bytes.extend_from_slice(&self.rows_of_document.to_be_bytes());
        bytes.push(self.anchors.len().min(ANCHORS_MAX) as u8);
        for anchor in self.anchors.iter().take(ANCHORS_MAX) {
            bytes.extend_from_slice(&anchor.to_be_bytes());
        }
        if let Some(position) = &self.position {
            bytes.extend_from_slice(&position.to_bytes());
        }
        STANDARD.encode(bytes)
    }

    /// Reads a client's text. It must be of the same query.
    pub fn decode(text: &str, fingerprint: u64) -> Result<Self, ApiError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| ApiError::invalid_continuation())?;
        let invalid = ApiError::invalid_continuation;
        let (header, rest) = bytes.split_at_checked(HEADER).ok_or_else(invalid)?;
        let (count, rest) = rest.split_first().ok_or_else(invalid)?;
        let (anchors, position) = rest.split_at_checked(usize::from(*count) * 8).ok_or_else(invalid)?;
        let anchors = anchors.chunks(8).map(|word| word.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let word = |at: usize| header.iter().skip(at).take(8).fold(0, |n, byte| n << 8 | u64::from(*byte));
        if header.first() != Some(&VERSION) || word(1) != fingerprint {
            return Err(ApiError::invalid_continuation());
        }
        let rows = header.iter().skip(25).fold(0, |n, byte| n << 8 | u32::from(*byte));
        Ok(Self {
            progress: Progress { skipped: word(9), given: word(17) },
            rows_of_document: rows,
            anchors: anchors.collect(),
            position: if position.is_empty() { None } else { Some(Position::from_bytes(position)?) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was() {
        let position = Position::from_bytes(&[0, 3, 0, 9, 9, 9]).unwrap();
        for position in [None, Some(position)] {
            let token = Token {
                progress: Progress { skipped: 7, given: 1 << 40 },
                rows_of_document: 5,
                anchors: vec![3, u64::MAX],
                position,
            };
            assert_eq!(Token::decode(&token.encode(42), 42).unwrap(), token);
        }
    }

    #[test]
    fn what_is_no_token_of_the_query_is_refused() {
        let token = Token::default().encode(1);
        for text in ["", "!", "AAAA", &token[..8]] {
            assert_eq!(Token::decode(text, 1).unwrap_err().message, "Invalid Continuation Token", "{text}");
        }
        assert!(Token::decode(&token, 2).is_err());
    }
}
