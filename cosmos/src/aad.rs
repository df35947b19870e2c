//! Entra ID (AAD) tokens, accepted by their form alone.
//!
//! Emulators take any well-formed JWT, and the SDKs' own tests make theirs without an issuer. This server knows no
//! issuer either, so nothing here proves who calls: a caller may use `check` only where the operator has allowed it.
//!
//! Holds: an `Ok` says that the token is a JWT whose time has not run out, and nothing about its signature.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::http_date;

/// Real tokens have one or two thousand characters.
const LEN_MAX: usize = 32 * 1024;

/// Clients disagree about `=` at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AadError {
    /// Not a JWT.
    #[error("the token is not a JWT")]
    Malformed,
    /// Its time has run out.
    #[error("the token has expired")]
    Expired {
        /// When, in Unix seconds.
        expires_at: u64,
        /// The server's time.
        now: u64,
    },
}

/// Checks the form of a JWT (the content of `auth::Credential::Aad`), and its `exp` if it has one.
pub fn check(jwt: &str, now_unix_seconds: u64) -> Result<(), AadError> {
    if jwt.len() > LEN_MAX {
        return Err(AadError::Malformed);
    }
    let mut parts = jwt.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(AadError::Malformed);
    };
    object(header)?;
    let claims = object(claims)?;
    decode(signature)?;
    let expires_at = match claims.get("exp") {
        None => return Ok(()),
        // Some issuers write a fraction; a cast of a negative or huge one stops at the ends of the range.
        Some(exp) => exp.as_f64().ok_or(AadError::Malformed)? as u64,
    };
    if now_unix_seconds >= expires_at {
        return Err(AadError::Expired { expires_at, now: now_unix_seconds });
    }
    Ok(())
}

fn decode(part: &str) -> Result<Vec<u8>, AadError> {
    let bytes = BASE64.decode(part).map_err(|_| AadError::Malformed)?;
    if bytes.is_empty() { Err(AadError::Malformed) } else { Ok(bytes) }
}

fn object(part: &str) -> Result<Map<String, Value>, AadError> {
    serde_json::from_slice(&decode(part)?).map_err(|_| AadError::Malformed)
}

impl From<AadError> for ApiError {
    fn from(error: AadError) -> ApiError {
        match error {
            AadError::Malformed => ApiError::from(crate::auth::AuthError::Malformed),
            AadError::Expired { expires_at, now } => ApiError::new(
                401,
                0,
                format!(
                    "The authorization token is not valid at the current time. Please create another token and \
                     retry (token expiry time: {}, current server time: {}).",
                    http_date::format(expires_at),
                    http_date::format(now)
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_767_225_600;

    fn jwt(header: &str, claims: &str, signature: &str) -> String {
        [header, claims, signature].map(|part| BASE64.encode(part)).join(".")
    }

    #[test]
    fn any_jwt_passes_until_it_expires() {
        let claims = r#"{"aud":"https://localhost.localhost","exp":1767225601}"#;
        for token in [
            jwt("{}", "{}", "s"),
            jwt(r#"{"alg":"RS256"}"#, claims, "key"),
            jwt("{}", claims, "key").replace('=', ""),
            jwt("{}", r#"{"exp":1767225600.5e1}"#, "key"),
        ] {
            assert_eq!(check(&token, NOW), Ok(()), "{token}");
        }
        let expired = jwt("{}", r#"{"exp":1767225600}"#, "key");
        assert_eq!(check(&expired, NOW), Err(AadError::Expired { expires_at: NOW, now: NOW }));
        assert_eq!(check(&expired, NOW - 1), Ok(()));
        assert_eq!(
            check(&jwt("{}", r#"{"exp":-1}"#, "key"), NOW),
            Err(AadError::Expired { expires_at: 0, now: NOW })
        );
    }

    #[test]
    fn what_is_no_jwt_is_refused() {
        let deep = "[".repeat(10_000);
        for token in [
            String::new(),
            "..".into(),
            "a.b.c".into(),
            jwt("{}", "{}", ""),
            jwt("", "{}", "s"),
            jwt("[]", "{}", "s"),
            jwt("{}", "1", "s"),
            jwt("{}", r#"{"exp":"soon"}"#, "s"),
            jwt("{}", &deep, "s"),
            format!("{}.AAAA", jwt("{}", "{}", "s")),
            jwt("{}", "{}", "s").replace('.', "+"),
            jwt("{}", "{}", &"s".repeat(LEN_MAX)),
        ] {
            assert_eq!(check(&token, NOW), Err(AadError::Malformed), "{token}");
        }
    }

    #[test]
    fn refusals_are_401() {
        for error in [AadError::Malformed, AadError::Expired { expires_at: 1, now: 2 }] {
            assert_eq!(ApiError::from(error).status, 401);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(parts in prop::collection::vec("\\PC*", 0..5)) {
            let _ = check(&parts.join("."), NOW);
            let _ = check(&parts.iter().map(|part| BASE64.encode(part)).collect::<Vec<_>>().join("."), NOW);
        }
    }
}
