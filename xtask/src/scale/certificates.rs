//! A certificate for a database server, and the authorities that did and did not sign it.

use std::{fs, path::PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

use crate::shell::{Result, target};

/// Files in PEM form.
pub struct Certificates {
    /// Who signed the certificate.
    pub authority: PathBuf,
    /// Who did not.
    pub other_authority: PathBuf,
    /// The server's, for `localhost` alone.
    pub certificate: String,
    pub key: String,
}

impl Certificates {
    /// Makes new ones.
    pub fn generate() -> Result<Self> {
        let folder = target().join("scale/certificates");
        fs::create_dir_all(&folder)?;
        let (authority, other_authority) = (folder.join("ca.pem"), folder.join("other-ca.pem"));
        let (params, key) = authority_of("Mayfly test CA")?;
        fs::write(&authority, params.self_signed(&key)?.pem())?;
        let (other_params, other_key) = authority_of("Another test CA")?;
        fs::write(&other_authority, other_params.self_signed(&other_key)?.pem())?;
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()])?.signed_by(&key, &issuer)?.pem();
        Ok(Self { authority, other_authority, certificate, key: key.serialize_pem() })
    }
}

fn authority_of(name: &str) -> Result<(CertificateParams, KeyPair)> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok((params, KeyPair::generate()?))
}
