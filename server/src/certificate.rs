//! Making and judging certificates: a local CA that people trust once, and a server certificate under it.
//!
//! The CA's dates are fixed, so that a wrong clock on the first day does not spoil it, and its other contents
//! follow from its key, so that the key alone is enough to sign again. A server certificate lives for a year
//! and is remade a month before its end.
//!
//! Holds: what `Authority::issue` makes, `Authority::vouches_for` accepts, for the same names and time.

use mayfly_cosmos::http_date::{CivilDay, civil_from_days};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use std::fmt::Write as _;
use std::time::Duration;

const DAY_SECONDS: u64 = 86_400;
/// Some systems refuse server certificates that live longer than 398 days.
const VALID_DAYS: u64 = 397;
/// Remade this long before the end: a server is restarted more often than that.
const RENEW_DAYS: u64 = 30;

/// Why a certificate cannot be made or used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum CertificateError {
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("not a certificate in PEM form: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("cannot use the certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate with its key, both in PEM form.
#[derive(Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl Pair {
    /// The certificate's bytes.
    pub fn certificate(&self) -> Result<CertificateDer<'static>, CertificateError> {
        Ok(CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())?)
    }

    /// The key's bytes.
    pub fn key(&self) -> Result<PrivateKeyDer<'static>, CertificateError> {
        Ok(PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())?)
    }
}

/// A local certificate authority.
pub struct Authority {
    pair: Pair,
    root: CertificateDer<'static>,
}

impl Authority {
    /// Makes a new one.
    pub fn generate() -> Result<Authority, CertificateError> {
        let key = KeyPair::generate()?;
        let certificate_pem = authority_params(&key)?.self_signed(&key)?.pem();
        Authority::from_pair(Pair { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// Takes one that was kept.
    pub fn from_pair(pair: Pair) -> Result<Authority, CertificateError> {
        KeyPair::from_pem(&pair.key_pem)?;
        let root = pair.certificate()?;
        RootCertStore::empty().add(root.clone())?;
        Ok(Authority { pair, root })
    }

    /// Certificate and key, for keeping.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Makes a server certificate for these names, valid from yesterday.
    pub fn issue(&self, names: &[String], now_unix_seconds: u64) -> Result<Pair, CertificateError> {
        let authority_key = KeyPair::from_pem(&self.pair.key_pem)?;
        let issuer = Issuer::new(authority_params(&authority_key)?, authority_key);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "Mayfly");
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // A day back, for clients whose clock is behind.
        let yesterday = (now_unix_seconds / DAY_SECONDS).saturating_sub(1);
        let midnight = |CivilDay { year, month, day }| date_time_ymd(year as i32, month as u8, day as u8);
        params.not_before = midnight(civil_from_days(yesterday));
        params.not_after = midnight(civil_from_days(yesterday + VALID_DAYS));
        let certificate_pem = params.signed_by(&key, &issuer)?.pem();
        Ok(Pair { certificate_pem, key_pem: key.serialize_pem() })
    }

    /// Whether a kept server certificate is ours, names everything it should and will last for a while.
    pub fn vouches_for(
        &self,
        pair: &Pair,
        names: &[String],
        now_unix_seconds: u64,
    ) -> Result<bool, CertificateError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone())?;
        let der = pair.certificate()?;
        let parsed = ParsedCertificate::try_from(&der)?;
        let algorithms = default_provider().signature_verification_algorithms.all;
        let lasts = [0, RENEW_DAYS * DAY_SECONDS].into_iter().all(|later| {
            let at = UnixTime::since_unix_epoch(Duration::from_secs(now_unix_seconds + later));
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], at, algorithms).is_ok()
        });
        let named = names.iter().all(|name| {
            let name = ServerName::try_from(name.as_str());
            name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
        });
        Ok(lasts && named)
    }
}

/// The CA's contents; a function of its key.
fn authority_params(key: &KeyPair) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    // Each CA has its own name: people with several data directories trust several of them, and some trust
    // stores look a CA up by name only. The first byte of the point is always the same.
    let mut name = String::from("Mayfly local CA ");
    for byte in key.der_bytes().iter().skip(1).take(4) {
        let _ = write!(name, "{byte:02x}");
    }
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_767_225_600;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_kept_certificate_is_judged_by_time_names_and_issuer() {
        let authority = Authority::generate().unwrap();
        let both = names(&["localhost", "127.0.0.1", "::1"]);
        let pair = authority.issue(&both, NOW).unwrap();
        let good =
            |authority: &Authority, names: &[String], now| authority.vouches_for(&pair, names, now).unwrap();
        assert!(good(&authority, &both, NOW));
        assert!(good(&authority, &names(&["localhost"]), NOW));
        assert!(!good(&authority, &names(&["localhost", "other"]), NOW), "a new name");
        assert!(good(&authority, &both, NOW + 365 * DAY_SECONDS));
        assert!(!good(&authority, &both, NOW + 367 * DAY_SECONDS), "near its end");
        assert!(!good(&authority, &both, NOW - 2 * DAY_SECONDS), "not yet valid");
        assert!(!good(&Authority::generate().unwrap(), &both, NOW), "of another CA");
    }

    #[test]
    fn the_key_alone_brings_the_authority_back() {
        let authority = Authority::generate().unwrap();
        let again = Authority::from_pair(authority.pair().clone()).unwrap();
        let pair = again.issue(&names(&["localhost"]), NOW).unwrap();
        assert!(authority.vouches_for(&pair, &names(&["localhost"]), NOW).unwrap());
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let Pair { certificate_pem, key_pem } = Authority::generate().unwrap().pair().clone();
        for (certificate_pem, key_pem) in [
            (String::new(), key_pem.clone()),
            (certificate_pem, "-----BEGIN".into()),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(), key_pem),
        ] {
            assert!(Authority::from_pair(Pair { certificate_pem, key_pem }).is_err());
        }
    }
}
