//! Encryption on the way to a server, as its address asks for it in the words of PostgreSQL's own clients.
//!
//! ```text
//!   sslmode      disable (as without it) | prefer | require | verify-ca | verify-full
//!   sslrootcert  a PEM file with the authorities that may have signed the server's certificate
//! ```
//!
//! `prefer` and `require` believe any certificate unless there is an `sslrootcert`; then, as with `verify-ca`, it has to
//! be signed by one of those. `verify-full` wants it to be for the host of the address as well.
//!
//! Holds: an address that asks for a check gets it, or no connection.

use std::{fmt, future::Future, io, pin::Pin, sync::Arc, task};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Config, Socket,
    config::SslMode,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use tokio_rustls::{TlsConnector, client};

use crate::{Error, Result};

/// How far a server's certificate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// Not at all: whoever answers is spoken to, and nobody else listens.
    Nothing,
    /// Who signed it.
    Signer,
    /// Who signed it, and for which host.
    SignerAndHost,
}

/// An address taken apart: what the library understands, and what it does not.
pub struct Address {
    /// Without what is about certificates.
    pub config: Config,
    /// None where nothing is to be encrypted.
    pub tls: Option<Tls>,
}

impl Address {
    /// Reads an address such as `postgres://user@host/database?sslmode=verify-full&sslrootcert=/etc/ca.pem`.
    pub fn parse(url: &str) -> Result<Self> {
        let unusable = |text: String| Error::Unusable(format!("the address of the database: {text}"));
        let (plain, mode, roots) = take_apart(url);
        let mut config: Config = plain.parse().map_err(|error| unusable(format!("{error}")))?;
        let (ssl_mode, check) = match (mode.as_deref(), &roots) {
            (None | Some("disable"), None) => (SslMode::Disable, None),
            (Some("prefer"), None) => (SslMode::Prefer, Some(Check::Nothing)),
            (Some("require"), None) => (SslMode::Require, Some(Check::Nothing)),
            (Some("prefer"), Some(_)) => (SslMode::Prefer, Some(Check::Signer)),
            (Some("require" | "verify-ca"), Some(_)) => (SslMode::Require, Some(Check::Signer)),
            (Some("verify-full"), Some(_)) => (SslMode::Require, Some(Check::SignerAndHost)),
            (Some(mode @ ("verify-ca" | "verify-full")), None) => {
                let why = "needs sslrootcert=FILE, a PEM file with the authorities to trust";
                return Err(unusable(format!("sslmode={mode} {why}")));
            }
            (None | Some("disable"), Some(_)) => {
                return Err(unusable("sslrootcert without an sslmode that encrypts".into()));
            }
            (Some(mode), _) => {
                let known = "disable, prefer, require, verify-ca and verify-full";
                return Err(unusable(format!("sslmode={mode} is not known; {known} are")));
            }
        };
        config.ssl_mode(ssl_mode);
        let tls = check.map(|check| Tls::new(check, roots.as_deref())).transpose()?;
        Ok(Self { config, tls })
    }
}

/// The address without `sslmode` and `sslrootcert`, and the two.
fn take_apart(url: &str) -> (String, Option<String>, Option<String>) {
    let Some((head, query)) = url.split_once('?') else { return (url.to_owned(), None, None) };
    let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(decoded(value)),
            Some(("sslrootcert", value)) => roots = Some(decoded(value)),
            _ => rest.push(pair),
        }
    }
    let plain = if rest.is_empty() { head.to_owned() } else { format!("{head}?{}", rest.join("&")) };
    (plain, mode, roots)
}

/// `%2F` and its like as what they stand for; what is no such thing as it is.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Makes connections encrypted.
#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    fn new(check: Check, roots: Option<&str>) -> Result<Self> {
        let unusable = |text: String| Error::Unusable(format!("encryption to the database: {text}"));
        let provider = Arc::new(ring::default_provider());
        let inner = roots.map(|file| verifier(file, &provider)).transpose().map_err(unusable)?;
        let verifier = Verifier { check, inner, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }
}

fn verifier(
    file: &str,
    provider: &Arc<CryptoProvider>,
) -> std::result::Result<Arc<WebPkiServerVerifier>, String> {
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| format!("{file}: {error}"))?;
    for certificate in certificates {
        let added = certificate.map_err(|error| error.to_string());
        let added = added.and_then(|certificate| store.add(certificate).map_err(|error| error.to_string()));
        added.map_err(|error| format!("{file}: {error}"))?;
    }
    if store.is_empty() {
        return Err(format!("{file}: there is no certificate in it"));
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map_err(|error| error.to_string())
}

/// Looks at a certificate as far as the address wants. That the other side has its key is always looked at.
#[derive(Debug)]
struct Verifier {
    check: Check,
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
                if self.check == Check::Signer =>
            {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Why there is no encrypted connection.
#[derive(Debug)]
pub struct TlsRefused {
    text: String,
    /// Whether asking again will not help: the certificate is not one to believe.
    is_final: bool,
}

impl fmt::Display for TlsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TlsRefused {}

impl From<io::Error> for TlsRefused {
    fn from(error: io::Error) -> Self {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
        let is_final = matches!(cause, Some(rustls::Error::InvalidCertificate(_)));
        Self { text: error.to_string(), is_final }
    }
}

/// Whether a connection was refused for what will not change by asking again.
pub fn is_final(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| match cause.downcast_ref::<TlsRefused>() {
        Some(refused) => refused.is_final,
        None => cause.to_string() == "server does not support TLS",
    })
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Connector;
    type Error = TlsRefused;

    fn make_tls_connect(&mut self, host: &str) -> std::result::Result<Connector, TlsRefused> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| TlsRefused { text: format!("{host}: {error}"), is_final: true })?;
        Ok(Connector { config: self.0.clone(), name })
    }
}

/// For one connection.
pub struct Connector {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type Error = TlsRefused;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Encrypted, TlsRefused>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = TlsConnector::from(self.config).connect(self.name, socket).await?;
            Ok(Encrypted(stream))
        })
    }
}

/// An encrypted connection.
pub struct Encrypted(client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> task::Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
        buffer: &[u8],
    ) -> task::Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut task::Context<'_>) -> task::Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> task::Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_certificates_is_taken_out_of_the_address() {
        let (plain, mode, roots) =
            take_apart("postgres://u@h/d?sslmode=verify-full&connect_timeout=2&sslrootcert=%2Fetc/ca.pem");
        assert_eq!(plain, "postgres://u@h/d?connect_timeout=2");
        assert_eq!((mode.as_deref(), roots.as_deref()), (Some("verify-full"), Some("/etc/ca.pem")));
        assert_eq!(take_apart("postgres://h/d?sslmode=require").0, "postgres://h/d");
        assert_eq!(decoded("a%2"), "a%2");
    }

    /// A check that cannot be made is refused, never left out.
    #[test]
    fn checks_that_cannot_be_made_are_refused() {
        for (query, text) in [
            ("sslmode=verify-full", "needs sslrootcert"),
            ("sslmode=verify-ca", "needs sslrootcert"),
            ("sslmode=verify-full&sslrootcert=/no/such/file", "/no/such/file"),
            ("sslrootcert=/etc/ca.pem", "without an sslmode"),
            ("sslmode=allow", "is not known"),
        ] {
            match Address::parse(&format!("postgres://h/d?{query}")) {
                Err(Error::Unusable(told)) => assert!(told.contains(text), "{query}: {told}"),
                _ => panic!("{query} was taken"),
            }
        }
        assert!(Address::parse("postgres://h/d").is_ok_and(|address| address.tls.is_none()));
        assert!(Address::parse("postgres://h/d?sslmode=require").is_ok_and(|address| address.tls.is_some()));
    }
}
