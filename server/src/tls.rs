//! The server's TLS identity: where it is kept, when it is remade, how connections use it.
//!
//! ```text
//!   <data dir>/tls/ca.pem       trust this once
//!                  ca.key       0600
//!                  server.pem   remade when names change or a year is nearly over
//!                  server.key   0600
//! ```
//!
//! Holds: the CA is made once and never replaced behind the user's back, for trust was given to it by hand; a
//! store in memory has one that lives as long as the process.

use crate::certificate::{Authority, CertificateError, Pair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use std::io::{self, ErrorKind, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS identity. Shown to the person who started the server.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum TlsError {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: {source}. Put the right file back, or remove the directory to get a new CA")]
    Authority { path: PathBuf, source: CertificateError },
    #[error("{present} is there, but {absent} is not. Put it back, or remove the directory to get a new CA")]
    HalfAuthority { present: PathBuf, absent: PathBuf },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// The CA's certificate and a way to accept TLS connections.
pub struct Identity {
    /// What clients have to trust.
    pub ca_pem: String,
    /// Where that is kept, if it is.
    pub ca_path: Option<PathBuf>,
    /// Accepts connections with the server's certificate.
    pub acceptor: TlsAcceptor,
}

impl Identity {
    /// An identity that is kept in `dir`; made there the first time.
    pub fn kept_in(dir: &Path, names: &[String], now_unix_seconds: u64) -> Result<Identity, TlsError> {
        std::fs::create_dir_all(dir).map_err(at(dir))?;
        let authority = match read_pair(dir, "ca")? {
            Some(pair) => Authority::from_pair(pair)
                .map_err(|source| TlsError::Authority { path: dir.join("ca.pem"), source })?,
            None => {
                let authority = Authority::generate()?;
                write_pair(dir, "ca", authority.pair())?;
                authority
            }
        };
        // A server certificate is cheap and trusted through the CA: whatever is wrong with it, make another.
        let kept = read_pair(dir, "server").ok().flatten();
        let good = |pair: &Pair| {
            authority.vouches_for(pair, names, now_unix_seconds).unwrap_or(false)
                && acceptor(&authority, pair).is_ok()
        };
        let pair = match kept.filter(good) {
            Some(pair) => pair,
            None => {
                let pair = authority.issue(names, now_unix_seconds)?;
                write_pair(dir, "server", &pair)?;
                pair
            }
        };
        Identity::new(&authority, &pair, Some(dir.join("ca.pem")))
    }

    /// An identity for this process only.
    pub fn in_memory(names: &[String], now_unix_seconds: u64) -> Result<Identity, TlsError> {
        let authority = Authority::generate()?;
        let pair = authority.issue(names, now_unix_seconds)?;
        Identity::new(&authority, &pair, None)
    }

    fn new(authority: &Authority, pair: &Pair, ca_path: Option<PathBuf>) -> Result<Identity, TlsError> {
        let ca_pem = authority.pair().certificate_pem.clone();
        Ok(Identity { ca_pem, ca_path, acceptor: acceptor(authority, pair)? })
    }
}

fn acceptor(authority: &Authority, pair: &Pair) -> Result<TlsAcceptor, CertificateError> {
    // The CA goes along: people save the chain that they see and trust that.
    let chain = vec![pair.certificate()?, authority.pair().certificate()?];
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, pair.key()?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The names a client on this machine, in a container beside it or on the network may use.
pub fn names_for(host: &str) -> Vec<String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut names: Vec<String> =
        ["localhost", "127.0.0.1", "::1", "host.docker.internal"].map(Into::into).into();
    for name in machine_name().into_iter().chain([host.to_owned()]) {
        let unspecified = name.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        if !unspecified && !names.contains(&name) && ServerName::try_from(name.as_str()).is_ok() {
            names.push(name);
        }
    }
    names
}

/// The machine's name, from wherever this system tells it without a call into libc.
fn machine_name() -> Option<String> {
    let from_file = |path| std::fs::read_to_string(path).ok();
    let from_env = |name| std::env::var(name).ok();
    from_file("/proc/sys/kernel/hostname")
        .or_else(|| from_file("/etc/hostname"))
        .or_else(|| from_env("HOSTNAME"))
        .or_else(|| from_env("COMPUTERNAME"))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
}

/// Both files, or `None` if neither is there.
fn read_pair(dir: &Path, name: &str) -> Result<Option<Pair>, TlsError> {
    let (certificate, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
    match (read(&certificate)?, read(&key)?) {
        (Some(certificate_pem), Some(key_pem)) => Ok(Some(Pair { certificate_pem, key_pem })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(TlsError::HalfAuthority { present: certificate, absent: key }),
        (None, Some(_)) => Err(TlsError::HalfAuthority { present: key, absent: certificate }),
    }
}

fn read(path: &Path) -> Result<Option<String>, TlsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

fn write_pair(dir: &Path, name: &str, pair: &Pair) -> Result<(), TlsError> {
    write(&dir.join(format!("{name}.key")), &pair.key_pem, 0o600)?;
    write(&dir.join(format!("{name}.pem")), &pair.certificate_pem, 0o644)
}

/// Writes a file whole or not at all, never readable to others for a moment.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let part = path.with_extension("part");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    // Left over from a start that was cut off; its mode may be another.
    let _ = std::fs::remove_file(&part);
    let mut file = options.open(&part).map_err(at(&part))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(&part))?;
    std::fs::rename(&part, path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> TlsError + '_ {
    move |source| TlsError::File { path: path.into(), source }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
