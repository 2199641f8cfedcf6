//! Certificates and the parameters of TLS.

use crate::Tls;
use longhaul::{Fault, Field, Problem};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::ByteCount;

/// Most bytes of a file with certificates or a key.
const MAX_FILE: ByteCount = ByteCount::from_bytes(1 << 20);

/// What ends of a connection agree on by ALPN (RFC 7301).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/1.1, in which every request of a page may have a TCP connection of its own.
    Http1,
    /// HTTP/2 before HTTP/1.1.
    Http2,
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate and its key; read or made once for all listeners.
#[derive(Debug)]
pub(crate) struct Certificate(Identity);

impl Certificate {
    /// The certificate that was asked for; `None` without TLS.
    ///
    /// # Errors
    /// A file that cannot be read, or has no certificate or key.
    pub(crate) fn of(
        tls: &Tls,
        names: &[String],
        listen: SocketAddr,
    ) -> Result<Option<Self>, Problem> {
        let identity = match tls {
            Tls::None => return Ok(None),
            Tls::SelfSigned => self_signed(names, listen)?,
            Tls::Files { certificate, key } => read(certificate, key)?,
            Tls::Credentials => {
                let folder = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
                let folder = folder.ok_or_else(|| {
                    let message = "there are no systemd credentials: the environment has no \
                                   CREDENTIALS_DIRECTORY";
                    Problem::field(Field::Tls, message, "files, or add LoadCredential= to the unit")
                })?;
                read(&folder.join("certificate"), &folder.join("key"))?
            }
        };
        Ok(Some(Certificate(identity)))
    }

    /// The server's side of TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// The key is not the certificate's.
    pub(crate) fn server(&self, protocols: Protocols) -> Result<Arc<ServerConfig>, Problem> {
        let Certificate((chain, key)) = self;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(chain.clone(), key.clone_key())
            })
            .map_err(|error| Problem::new(Fault::Request, format!("TLS: {error}")))?;
        config.alpn_protocols = match protocols {
            Protocols::Http1 => vec![b"http/1.1".to_vec()],
            Protocols::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        Ok(Arc::new(config))
    }
}

fn self_signed(names: &[String], listen: SocketAddr) -> Result<Identity, Problem> {
    let mut names = names.to_vec();
    names.extend(["localhost".to_owned(), listen.ip().to_string()]);
    let wrong =
        |error| Problem::new(Fault::Internal, format!("cannot make a certificate: {error}"));
    let made = rcgen::generate_simple_self_signed(names).map_err(wrong)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

fn read(certificate: &Path, key: &Path) -> Result<Identity, Problem> {
    let wrong = |path: &Path, what: &str| {
        let message = format!("{}: {what}", path.display());
        Problem::field(Field::Tls, message, "files in PEM form")
    };
    let bytes = |path: &Path| {
        host::file::read_bounded(path, MAX_FILE).map_err(|error| wrong(path, &error.to_string()))
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(certificate)?).collect();
    let chain = chain.unwrap_or_default();
    if chain.is_empty() {
        return Err(wrong(certificate, "there is no certificate"));
    }
    let key = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|_| wrong(key, "there is no private key"))?;
    Ok((chain, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    #[test]
    fn a_certificate_is_made_and_files_are_checked() {
        let made = Certificate::of(&Tls::SelfSigned, &["a.example".to_owned()], LISTEN.into());
        let config = made.unwrap().unwrap().server(Protocols::Http2).unwrap();
        assert_eq!(config.alpn_protocols.len(), 2);
        assert!(Certificate::of(&Tls::None, &[], LISTEN.into()).unwrap().is_none());
        let absent = Tls::Files { certificate: "/nonexistent".into(), key: "/nonexistent".into() };
        let problem = Certificate::of(&absent, &[], LISTEN.into()).unwrap_err();
        assert_eq!(problem.remedy.unwrap().field, Field::Tls);
        let empty = Tls::Files { certificate: "/dev/null".into(), key: "/dev/null".into() };
        assert!(Certificate::of(&empty, &[], LISTEN.into()).is_err());
    }
}
