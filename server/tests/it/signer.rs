//! Signs requests to resources, as SDKs do.

use mayfly_cosmos::auth::{EMULATOR_KEY, Key, payload};
use mayfly_cosmos::{http_date, path};
use mayfly_engine::{Clock as _, SystemClock};

/// Has the account key, and the date it signs with.
pub struct Signer {
    key: Key,
    pub date: String,
}

impl Signer {
    pub fn new() -> Signer {
        let date = http_date::format(SystemClock.now().seconds());
        Signer { key: Key::from_base64(EMULATOR_KEY).unwrap(), date }
    }

    /// The authorization header.
    pub fn authorization(&self, verb: &str, path: &str) -> String {
        let plain = path.split(['?', '#']).next().unwrap_or_default();
        let candidates = path::Path::parse(plain).map(|path| path.signing_candidates()).unwrap_or_default();
        let (kind, link) = candidates.into_iter().next().unwrap_or_default();
        let signature = self.key.sign(&payload(verb, &kind, &link, Some(&self.date), None));
        format!("type=master&ver=1.0&sig={signature}")
    }

    /// The beginning of a request, to which more headers can be added.
    pub fn head(&self, verb: &str, path: &str) -> String {
        format!(
            "{verb} {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2020-07-15\r\nx-ms-date: {}\r\nauthorization: {}\r\n",
            self.date,
            self.authorization(verb, path)
        )
    }
}
