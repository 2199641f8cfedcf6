//! Whom a client trusts: the system's certificate authorities, or anyone.

use crate::{Fault, Field, Problem};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

/// Files of the system's authorities: Debian, Red Hat, SUSE, Alpine.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Most bytes of such a file.
const MAX_BUNDLE: u64 = 16 << 20;

/// The client's side of TLS.
pub(super) fn config(insecure: bool, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, Problem> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Problem::new(Fault::Internal, format!("TLS: {error}")))?;
    let mut config = if insecure {
        let anyone = Arc::new(Anyone(provider));
        builder.dangerous().with_custom_certificate_verifier(anyone).with_no_client_auth()
    } else {
        builder.with_root_certificates(authorities()?).with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The system's authorities, or those of the file that `SSL_CERT_FILE` names, as with OpenSSL.
fn authorities() -> Result<RootCertStore, Problem> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let files = named.map_or_else(|| BUNDLES.map(PathBuf::from).to_vec(), |file| vec![file]);
    let mut store = RootCertStore::empty();
    for path in &files {
        let mut pem = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BUNDLE).read_to_end(&mut pem));
        if read.is_ok() {
            store.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
        }
        if !store.is_empty() {
            return Ok(store);
        }
    }
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let message = format!(
        "there are no certificate authorities in {}; install ca-certificates, or name their file \
         in SSL_CERT_FILE",
        names.join(", ")
    );
    Err(Problem::new(Fault::Host, message))
}

/// Adds to a problem with a certificate what accepts it.
pub(super) fn explained(problem: Problem) -> Problem {
    match problem.message.contains("invalid peer certificate") {
        true => problem.with(Field::Insecure, "if the server is yours and self-signed"),
        false => problem,
    }
}

/// Accepts any certificate; its key must be the server's all the same.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
