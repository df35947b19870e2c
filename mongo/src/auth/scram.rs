//! The server's side of SCRAM-SHA-256 and SCRAM-SHA-1 (RFC 5802, RFC 7677).
//!
//! ```text
//!   client first  n,,n=user,r=nonce          ─▶  server first  r=nonce+ours,s=salt,i=rounds
//!   client final  c=biws,r=…,p=proof         ─▶  server final  v=signature
//! ```
//!
//! Only what is derived from a password is kept: enough to check a proof, not enough to make one.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A way of proving a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// The older one.
    Sha1,
    /// The newer one.
    Sha256,
}

impl Mechanism {
    /// Both, as clients are told about them.
    pub const ALL: [Self; 2] = [Self::Sha1, Self::Sha256];

    /// The name in `saslStart`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "SCRAM-SHA-1",
            Self::Sha256 => "SCRAM-SHA-256",
        }
    }

    /// From its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Rounds of derivation; clients refuse fewer than 4096.
    pub fn rounds(self) -> u32 {
        match self {
            Self::Sha1 => 10_000,
            Self::Sha256 => 15_000,
        }
    }

    /// Bytes of salt: those of the hash less the four that the derivation appends.
    pub fn salt_len(self) -> usize {
        match self {
            Self::Sha1 => 16,
            Self::Sha256 => 28,
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        fn run<M: Mac + hmac::digest::KeyInit>(key: &[u8], bytes: &[u8]) -> Vec<u8> {
            // A key of any length is fine for HMAC.
            let mac = <M as Mac>::new_from_slice(key);
            mac.map_or_else(|_| Vec::new(), |mac| mac.chain_update(bytes).finalize().into_bytes().to_vec())
        }
        match self {
            Self::Sha1 => run::<Hmac<Sha1>>(key, bytes),
            Self::Sha256 => run::<Hmac<Sha256>>(key, bytes),
        }
    }

    fn derive(self, password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac_array::<Sha1, 20>(password, salt, rounds).to_vec(),
            Self::Sha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, rounds).to_vec(),
        }
    }

    /// The password as it goes into the derivation.
    fn prepared(self, user: &str, password: &str) -> Option<Vec<u8>> {
        match self {
            Self::Sha256 => Some(stringprep::saslprep(password).ok()?.into_owned().into_bytes()),
            Self::Sha1 => {
                let digest = Md5::digest(format!("{user}:mongo:{password}"));
                Some(digest.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect())
            }
        }
    }
}

/// What is kept of a password for one mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Random, told to clients.
    pub salt: Vec<u8>,
    /// Told to clients.
    pub rounds: u32,
    /// Checks a client's proof.
    pub stored_key: Vec<u8>,
    /// Proves the server to the client.
    pub server_key: Vec<u8>,
}

impl Credentials {
    /// Derives them; nothing if the password has characters that no password may have.
    pub fn derive(mechanism: Mechanism, user: &str, password: &str, salt: &[u8]) -> Option<Self> {
        let rounds = mechanism.rounds();
        let salted = mechanism.derive(&mechanism.prepared(user, password)?, salt, rounds);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        Some(Self {
            salt: salt.to_vec(),
            rounds,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(&salted, b"Server Key"),
        })
    }
}

/// Who a proof is checked against: several passwords may be right, if they share a salt.
#[derive(Clone, Debug)]
pub struct Verifier<T> {
    /// The salt and rounds told to the client are the first one's.
    pub candidates: Vec<(Credentials, T)>,
}

/// A conversation after the client's first message.
#[derive(Clone, Debug)]
pub struct ScramServer<T> {
    mechanism: Mechanism,
    verifier: Verifier<T>,
    nonce: String,
    client_first_bare: String,
    server_first: String,
}

/// What a client's first message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Who wants in.
    pub user: String,
    nonce: String,
    bare: String,
}

impl Step {
    /// Reads a client's first message.
    pub fn client_first(payload: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(payload).ok()?;
        // No channel binding, and nobody else's name to act under.
        let bare = text.strip_prefix("n,,")?;
        let (user, rest) = bare.strip_prefix("n=")?.split_once(',')?;
        let nonce = rest.strip_prefix("r=")?.split(',').next()?;
        if nonce.is_empty() {
            return None;
        }
        let user = user.replace("=2C", ",").replace("=3D", "=");
        Some(Self { user, nonce: nonce.to_owned(), bare: bare.to_owned() })
    }
}

impl<T: Clone> ScramServer<T> {
    /// Answers a client's first message; `random` is the server's part of the nonce.
    pub fn start(mechanism: Mechanism, step: Step, verifier: Verifier<T>, random: &[u8]) -> Option<Self> {
        let (credentials, _) = verifier.candidates.first()?;
        let nonce = format!("{}{}", step.nonce, STANDARD.encode(random));
        let salt = STANDARD.encode(&credentials.salt);
        let server_first = format!("r={nonce},s={salt},i={}", credentials.rounds);
        Some(Self { mechanism, verifier, nonce, client_first_bare: step.bare, server_first })
    }

    /// What to send.
    pub fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Checks the client's proof: the server's final message and whose password it was.
    pub fn finish(&self, payload: &[u8]) -> Option<(String, T)> {
        let text = std::str::from_utf8(payload).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let proof = STANDARD.decode(proof).ok()?;
        let mut parts = without_proof.split(',');
        if parts.next()? != "c=biws" || parts.next()?.strip_prefix("r=")? != self.nonce {
            return None;
        }
        let message = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let message = message.as_bytes();
        for (credentials, who) in &self.verifier.candidates {
            let signature = self.mechanism.hmac(&credentials.stored_key, message);
            if signature.len() != proof.len() {
                return None;
            }
            let client_key: Vec<u8> = signature.iter().zip(&proof).map(|(a, b)| a ^ b).collect();
            if self.mechanism.hash(&client_key).ct_eq(&credentials.stored_key).into() {
                let signature = self.mechanism.hmac(&credentials.server_key, message);
                return Some((format!("v={}", STANDARD.encode(signature)), who.clone()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, with its salt and its fewer rounds.
    #[test]
    fn the_example_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let salted = Mechanism::Sha256.derive(b"pencil", &salt, 4096);
        let client_key = Mechanism::Sha256.hmac(&salted, b"Client Key");
        let credentials = Credentials {
            salt,
            rounds: 4096,
            stored_key: Mechanism::Sha256.hash(&client_key),
            server_key: Mechanism::Sha256.hmac(&salted, b"Server Key"),
        };
        let step = Step::client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(step.user, "user");
        let verifier = Verifier { candidates: vec![(credentials, ())] };
        let mut server = ScramServer::start(Mechanism::Sha256, step, verifier, b"").unwrap();
        // The example's nonce is no base64 of anything; put it in by hand.
        server.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".into();
        server.server_first = format!("r={},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", server.nonce);
        let last = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let (answer, ()) = server.finish(last).unwrap();
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let wrong = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert!(server.finish(wrong).is_none());
    }

    #[test]
    fn names_are_unescaped() {
        assert_eq!(Step::client_first(b"n,,n=a=2Cb=3Dc,r=x").unwrap().user, "a,b=c");
        assert!(Step::client_first(b"y,,n=a,r=x").is_none());
        assert!(Step::client_first(b"n,,n=a,r=").is_none());
        assert!(Step::client_first(&[0xFF]).is_none());
    }
}
