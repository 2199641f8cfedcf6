//! A WebTransport client, and a relay that loses datagrams of the server.

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use webtransport::{Head, HeadReader, datagram_payload};

/// Accepts the certificate of one hash, as a browser does with `serverCertificateHashes`.
#[derive(Debug)]
struct ByHash(String, Arc<CryptoProvider>);

impl ServerCertVerifier for ByHash {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let mut hash = String::new();
        for byte in Sha256::digest(certificate) {
            write!(hash, "{byte:02x}").unwrap();
        }
        if hash == self.0 {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::DecryptError)
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::DecryptError)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.1.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// A QUIC connection with HTTP/3's control stream.
async fn connect(address: SocketAddr, certificate: &str) -> Option<(Endpoint, Connection)> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = ByHash(certificate.to_owned(), Arc::clone(&provider));
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![webtransport::ALPN.to_vec()];
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.ok()?;
    let mut control = connection.open_uni().await.ok()?;
    control.write_all(&webtransport::control_stream()).await.ok()?;
    // The stream stays open with its connection.
    std::mem::forget(control);
    Some((endpoint, connection))
}

/// What came of a session.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) status: Option<u16>,
    /// A bit for each number, as the page reports them.
    pub(crate) bits: Vec<u8>,
}

impl Received {
    pub(crate) fn hex(&self) -> String {
        self.bits.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
    }
}

/// Asks for the session of a path, and receives until the server ends it; `count` datagrams at most.
pub(crate) fn receive(
    address: SocketAddr,
    certificate: &str,
    path: &str,
    count: usize,
) -> Option<Received> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_endpoint, connection) = connect(address, certificate).await?;
        let (mut send, mut answer) = connection.open_bi().await.ok()?;
        send.write_all(&webtransport::request(&address.to_string(), path)).await.ok()?;
        let stream = send.id().index() * 4;
        let mut reader = HeadReader::default();
        let mut buffer = [0; 1024];
        let head: Head = loop {
            let count = answer.read(&mut buffer).await.ok()??;
            if let Some(head) = reader.push(&buffer[..count]).unwrap() {
                break head;
            }
        };
        let mut received = Received { status: head.status, bits: vec![0; count.div_ceil(8)] };
        if received.status == Some(200) {
            while let Ok(datagram) = connection.read_datagram().await {
                let payload = datagram_payload(stream, &datagram).unwrap();
                let number = u32::from_be_bytes(payload[..4].try_into().unwrap()) as usize;
                received.bits[number / 8] |= 1 << (number % 8);
            }
        }
        Some(received)
    })
}

/// Passes datagrams between a client and a server, of which those of the server are lost with a
/// probability.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) fn start(server: SocketAddr, loss: f64, seed: u64) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        let address = front.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        }
        let (sender, client) = std::sync::mpsc::channel();
        let (to_server, from_client) = (back.try_clone().unwrap(), front.try_clone().unwrap());
        let ends = Arc::clone(&stop);
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !ends.load(Ordering::Relaxed) {
                if let Ok((count, from)) = from_client.recv_from(&mut buffer) {
                    let _ = sender.send(from);
                    let _ = to_server.send(&buffer[..count]);
                }
            }
        });
        let ends = Arc::clone(&stop);
        thread::spawn(move || {
            let (mut buffer, mut to, mut state) = ([0; 2048], None, seed | 1);
            while !ends.load(Ordering::Relaxed) {
                let Ok(count) = back.recv(&mut buffer) else { continue };
                to = client.try_iter().last().or(to);
                // xorshift64*: independent of what is sent.
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                let random = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64;
                if let Some(to) = to.filter(|_| random / (1u64 << 53) as f64 >= loss) {
                    let _ = front.send_to(&buffer[..count], to);
                }
            }
        });
        Relay { address, stop }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
