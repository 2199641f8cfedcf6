//! TLS 1.3 between ends that know each other's key: Ed25519 key pairs as raw public keys
//! (RFC 7250), pinned. There is no certificate authority and no name: an end is whoever
//! has the key. Over QUIC-like datagrams (`udt`) as over TCP (`copy`).

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{self, cipher_suite, sign};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme, version,
};
use std::fmt;
use std::sync::Arc;

/// DER of a `SubjectPublicKeyInfo` with an Ed25519 key, up to the key (RFC 8410).
const SPKI_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// DER of a PKCS #8 private key, up to the seed of an Ed25519 key (RFC 8410).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// An Ed25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// One end's key pair.
#[derive(Debug, Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    public: PublicKey,
}

/// Why there is no key pair, or no TLS with it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("TLS: {0}")]
pub struct IdentityError(Error);

impl From<Error> for IdentityError {
    fn from(error: Error) -> Self {
        IdentityError(error)
    }
}

impl PublicKey {
    /// Length of its text: hexadecimal digits.
    pub const TEXT_LENGTH: usize = 64;

    /// The key of its bytes (RFC 8032 section 5.1.5).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    fn from_spki(spki: &[u8]) -> Option<Self> {
        spki.strip_prefix(&SPKI_PREFIX)?.try_into().ok().map(PublicKey)
    }

    /// The key written as 64 hexadecimal digits; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != PublicKey::TEXT_LENGTH {
            return None;
        }
        let mut key = [0; 32];
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| (digit as char).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(PublicKey(key))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Identity {
    /// The key pair of a seed, which is secret and from a cryptographic random source
    /// (RFC 8032 section 5.1.5).
    ///
    /// # Errors
    /// The library's reason.
    pub fn new(seed: &[u8; 32]) -> Result<Self, IdentityError> {
        let der = [&PKCS8_PREFIX[..], seed].concat();
        let signing = sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der))?;
        let missing = || Error::General("no public key".into());
        let spki = signing.public_key().ok_or_else(missing)?;
        let public = PublicKey::from_spki(&spki).ok_or_else(missing)?;
        let certificate = CertificateDer::from(spki.to_vec());
        Ok(Identity { key: Arc::new(CertifiedKey::new(vec![certificate], signing)), public })
    }

    /// Its public key, which the peer pins.
    #[must_use]
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// TLS for a client of the server that has `peer`'s key. `protocol` is the name that
    /// both ends must agree on (RFC 7301); another version has another name.
    ///
    /// # Errors
    /// The library's reason.
    pub fn client(
        &self,
        peer: PublicKey,
        protocol: &[u8],
    ) -> Result<Arc<ClientConfig>, IdentityError> {
        let provider = provider();
        let verifier = Arc::new(Pinned::new(peer, &provider));
        let resolver = AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&self.key));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![protocol.to_vec()];
        config.enable_sni = false;
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// TLS for a server of the client that has `peer`'s key; see [`Identity::client`].
    ///
    /// # Errors
    /// The library's reason.
    pub fn server(
        &self,
        peer: PublicKey,
        protocol: &[u8],
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        let provider = provider();
        let verifier = Arc::new(Pinned::new(peer, &provider));
        let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::clone(&self.key));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![protocol.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// ring, with the cipher suites of TLS 1.3: that which processors have instructions for
/// first.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..ring::default_provider()
    })
}

/// Verifies that the peer has the private key of a pinned public one.
#[derive(Debug)]
struct Pinned {
    peer: PublicKey,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(peer: PublicKey, provider: &CryptoProvider) -> Self {
        Pinned { peer, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        if PublicKey::from_spki(presented) == Some(self.peer) {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signature, &self.algorithms)
    }
}

/// TLS 1.2 is never spoken.
fn never() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2".into()))
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        never()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_key_of_rfc_8032() {
        // Section 7.1, test 1.
        let seed =
            PublicKey::parse("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
                .unwrap();
        let public = Identity::new(&seed.0).unwrap().public_key();
        assert_eq!(
            public.to_string(),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        );
        assert_eq!(PublicKey::parse(&public.to_string()), Some(public));
        for wrong in ["", "00", &"g".repeat(64), &"\u{e9}".repeat(32)] {
            assert_eq!(PublicKey::parse(wrong), None, "{wrong}");
        }
    }
}
