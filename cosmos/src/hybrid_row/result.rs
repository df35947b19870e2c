//! The result of one operation of a batch.
//!
//! ```text
//!   81 71 54 E1 7F │ mask:1 │ statusCode:4 │ subStatusCode:4 │ [eTag] │ [resourceBody]
//!   10 06 requestCharge:8 │ [0B 05 retryAfterMilliseconds:4]
//! ```

use bytes::Bytes;

use super::primitives::{RESULT, put_binary};

/// What became of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchResult {
    /// HTTP status.
    pub status: u16,
    /// The finer reason; 0 if there is none.
    pub substatus: u32,
    /// The item's ETag, in quotes.
    pub etag: Option<String>,
    /// The item as JSON text.
    pub resource_body: Option<Bytes>,
    /// Request units.
    pub request_charge: f64,
    /// When to try again, for 429 and 449.
    pub retry_after_ms: Option<u32>,
}

impl BatchResult {
    pub(super) fn encode(&self) -> Vec<u8> {
        let body_len = self.resource_body.as_ref().map_or(0, Bytes::len);
        let mut out = Vec::with_capacity(64 + body_len);
        out.extend_from_slice(&RESULT);
        // Status and substatus are always there.
        let mask = 0b0011 | u8::from(self.etag.is_some()) << 2 | u8::from(self.resource_body.is_some()) << 3;
        out.push(mask);
        out.extend_from_slice(&i32::from(self.status).to_le_bytes());
        out.extend_from_slice(&self.substatus.to_le_bytes());
        if let Some(etag) = &self.etag {
            put_binary(&mut out, etag.as_bytes());
        }
        if let Some(body) = &self.resource_body {
            put_binary(&mut out, body);
        }
        out.extend_from_slice(&[0x10, 6]);
        out.extend_from_slice(&self.request_charge.to_le_bytes());
        if let Some(wait) = self.retry_after_ms {
            out.extend_from_slice(&[0x0B, 5]);
            out.extend_from_slice(&wait.to_le_bytes());
        }
        out
    }
}
