//! Tests of responsiveness: configuration, the three resources, HTTP/2 and what TLS offers.

use crate::http::Client;
use crate::server::Server;
use hyper::body::{Body, Bytes, Frame};
use hyper::{Request, Response, body::Incoming, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use web::Tls;

#[test]
fn the_configuration_names_the_three_resources() {
    let server = Server::start(|_| ());
    let mut client = Client::new(server.responsiveness);
    let head = format!("GET /.well-known/nq HTTP/1.1\r\nHost: {}\r\n\r\n", server.responsiveness);
    client.send(head.as_bytes()).unwrap();
    let answer = client.answer();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let configuration = answer.json();
    assert_eq!(configuration["version"], 1);
    let path = |name: &str| {
        let url = configuration["urls"][name].as_str().unwrap();
        url.strip_prefix(&format!("http://{}", server.responsiveness)).unwrap().to_owned()
    };
    for (new, old) in [
        ("small_download_url", "small_https_download_url"),
        ("large_download_url", "large_https_download_url"),
        ("upload_url", "https_upload_url"),
    ] {
        assert_eq!(path(new), path(old));
    }
    let small = client.get(&path("small_download_url"));
    assert_eq!((small.status, small.body.len()), (200, 1));
    assert_eq!(client.post(&path("upload_url"), "x", &[0; 300_000]).status, 200);
    let large = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path("large_download_url"));
    client.send(large.as_bytes()).unwrap();
    let head = client.head();
    assert!(head.contains("content-length: 8589934592\r\n"), "{head}");
    assert!(head.contains("content-type: application/octet-stream\r\n"), "{head}");
    assert_eq!(Client::new(server.address).get("/.well-known/nq").status, 404);
}

/// Whatever the certificate: it was made at the server's start.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Connects, and offers these protocols.
async fn connect(
    address: SocketAddr,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(std::io::Error::other)?.dangerous();
    let mut config =
        builder.with_custom_certificate_verifier(Arc::new(Anyone)).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::from(address.ip());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

fn in_time<F: Future>(future: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    let limited =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), future).await });
    limited.unwrap_or_else(|_| panic!("20 s are over"))
}

#[test]
fn tls_offers_http_2_on_the_port_of_responsiveness_alone() {
    let server = Server::start(|request| request.tls = Tls::SelfSigned);
    in_time(async {
        let agreed = async |address, protocols: &[&[u8]]| {
            let stream = connect(address, protocols).await?;
            Ok::<_, std::io::Error>(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
        };
        let both: &[&[u8]] = &[b"h2", b"http/1.1"];
        let h2 = agreed(server.responsiveness, both).await.unwrap();
        assert_eq!(h2.as_deref(), Some(&b"h2"[..]));
        let http1 = agreed(server.responsiveness, &[b"http/1.1"]).await.unwrap();
        assert_eq!(http1.as_deref(), Some(&b"http/1.1"[..]));
        let main = agreed(server.address, both).await.unwrap();
        assert_eq!(main.as_deref(), Some(&b"http/1.1"[..]));
        assert!(agreed(server.address, &[b"h2"]).await.is_err());
    });
}

/// An upload of so many chunks of 64 KiB.
struct Upload(usize);

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.0.checked_sub(1) else { return Poll::Ready(None) };
        self.0 = left;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[0; 65536])))))
    }
}

type Sender = http2::SendRequest<Upload>;

async fn ask(sender: &mut Sender, path: &str, chunks: usize) -> Response<Incoming> {
    let method = if chunks > 0 { "POST" } else { "GET" };
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    let request = request.body(Upload(chunks)).unwrap_or_else(|error| panic!("{error}"));
    sender.send_request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn next(body: &mut Incoming) -> Option<usize> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    frame.ok()?.data_ref().map(Bytes::len)
}

#[test]
fn probes_share_a_loaded_connection_of_http_2() {
    let server = Server::start(|request| request.tls = Tls::SelfSigned);
    in_time(async {
        let stream = connect(server.responsiveness, &[b"h2"]).await.unwrap();
        let (mut sender, driver) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        let driver = tokio::spawn(driver);
        let large = ask(&mut sender, "/responsiveness/large", 0).await;
        assert_eq!(large.headers()["content-length"], "8589934592");
        let mut load = large.into_body();
        assert!(next(&mut load).await.is_some());
        let loading = tokio::spawn(async move {
            let mut bytes = 0;
            while let Some(more) = next(&mut load).await {
                bytes += more;
                if bytes > 64 << 20 {
                    break;
                }
            }
            bytes
        });
        for _ in 0..20 {
            let small = ask(&mut sender, "/responsiveness/small", 0).await;
            assert_eq!(small.status(), 200);
            assert!(small.headers().get("content-encoding").is_none());
            assert_eq!(next(&mut small.into_body()).await, Some(1));
        }
        assert!(loading.await.unwrap() > 64 << 20);
        let uploaded = ask(&mut sender, "/responsiveness/upload", 200).await;
        assert_eq!(uploaded.status(), 200);
        driver.abort();
    });
}

#[test]
fn whoever_asks_for_nothing_is_cut_off() {
    let header = Duration::from_secs(1);
    let server = Server::start(|request| request.limits.header = header);
    for first in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
        let mut stream = std::net::TcpStream::connect(server.responsiveness).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        std::io::Write::write_all(&mut stream, first).unwrap();
        let began = crate::ndt7::now();
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
        assert!(began.elapsed() < Duration::from_secs(5), "{first:?}");
    }
}
