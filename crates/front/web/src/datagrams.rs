//! Sessions of datagrams: WebTransport over QUIC, for steps that measure loss.
//!
//! An address is validated by Retry (RFC 9000, section 8.1.2) before anything is kept of it, so the
//! server sends no more to a forged one than came from it. A session belongs to a run that waits for
//! it, one to each run.

use crate::limits::ConnectionTicket;
use crate::{Shared, id};
use host::address_key::AddressKey;
use host::clock;
use host::lock::lock;
use longhaul::{Fault, Problem};
use quinn::congestion::{Controller, ControllerFactory};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, ServerConfig,
    TokioRuntime, TransportConfig, VarInt,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use sha2::{Digest, Sha256};
use std::any::Any;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// The time of a handshake with the request that follows.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Connections that wait to be answered.
const MAX_INCOMING: usize = 64;
/// Bytes that are kept of first packets before they are answered, of each and of all.
const FIRST_BYTES: u64 = 8 << 10;
const ALL_FIRST_BYTES: u64 = 512 << 10;
/// A connection without packets of its peer ends.
const IDLE: Duration = Duration::from_secs(5);
/// Windows of what a peer sends: a request, its control streams.
const STREAM_WINDOW: u32 = 16 << 10;
const RECEIVE_WINDOW: u32 = 64 << 10;
/// Datagrams that wait to be sent, and those of a peer, which are not read.
const SEND_BUFFER: usize = 64 << 10;
const RECEIVE_BUFFER: usize = 4 << 10;
/// Bytes in flight: a step's rate over an RTT of two seconds.
const WINDOW: u64 = 256 << 10;
/// Bytes in flight once everything is lost: two packets.
const MIN_WINDOW: u64 = 2400;
/// A browser accepts a certificate's hash for at most 14 days after its beginning; this one is valid
/// from a day ago for [`VALID_DAYS`], and is replaced at this age.
const RENEW_AFTER: Duration = Duration::from_secs(5 * 86_400);
const VALID_DAYS: u64 = 12;
const DAY: u64 = 86_400;
/// `H3_NO_ERROR` and `H3_REQUEST_REJECTED` (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
const REJECTED: VarInt = VarInt::from_u32(0x10b);
/// The time in which a refusal reaches the client.
const REFUSAL: Duration = Duration::from_millis(300);

/// The endpoint, with its present certificate.
#[derive(Debug)]
pub(crate) struct Datagrams {
    endpoint: Endpoint,
    address: SocketAddr,
    identity: Mutex<Identity>,
}

#[derive(Debug)]
struct Identity {
    /// SHA-256 of the certificate, in hexadecimal.
    hash: String,
    made: Instant,
}

impl Datagrams {
    /// Opens a UDP socket; to be called within the runtime.
    ///
    /// # Errors
    /// The address is in use, or no certificate can be made.
    pub(crate) fn bind(address: SocketAddr) -> Result<Self, Problem> {
        let wrong = |error: std::io::Error| {
            let message = format!("cannot receive datagrams on {address}: {error}");
            Problem::new(Fault::Host, message)
        };
        let socket = UdpSocket::bind(address).map_err(wrong)?;
        let (config, identity) = make_identity()?;
        let runtime = Arc::new(TokioRuntime);
        let own = EndpointConfig::default();
        let endpoint = Endpoint::new(own, Some(config), socket, runtime).map_err(wrong)?;
        let address = endpoint.local_addr().map_err(wrong)?;
        Ok(Datagrams { endpoint, address, identity: Mutex::new(identity) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The hash of a certificate that browsers accept for days.
    pub(crate) fn certificate(&self) -> String {
        let mut identity = lock(&self.identity);
        if identity.made.elapsed() > RENEW_AFTER
            && let Ok((config, renewed)) = make_identity()
        {
            self.endpoint.set_server_config(Some(config));
            *identity = renewed;
        }
        identity.hash.clone()
    }
}

/// A certificate of its own, whatever that of the page is: browsers take it by its hash alone.
fn make_identity() -> Result<(ServerConfig, Identity), Problem> {
    let wrong = |error: &dyn std::fmt::Display| {
        Problem::new(Fault::Internal, format!("cannot make a certificate for datagrams: {error}"))
    };
    let today = host::clock::unix_seconds() / DAY;
    // A clock that was never set says 0.
    let today = today.max(1);
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()])
        .map_err(|error| wrong(&error))?;
    parameters.not_before = date(today - 1);
    parameters.not_after = date(today - 1 + VALID_DAYS);
    // ECDSA over P-256, which `serverCertificateHashes` asks for.
    let key = rcgen::KeyPair::generate().map_err(|error| wrong(&error))?;
    let certificate = parameters.self_signed(&key).map_err(|error| wrong(&error))?.der().clone();
    let digest = Sha256::digest(&certificate);
    let hash = id::hexadecimal(&digest);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .and_then(|builder| {
            let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
            builder.with_no_client_auth().with_single_cert(vec![certificate], key)
        })
        .map_err(|error| wrong(&error))?;
    tls.alpn_protocols = vec![webtransport::ALPN.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| wrong(&error))?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .max_incoming(MAX_INCOMING)
        .incoming_buffer_size(FIRST_BYTES)
        .incoming_buffer_size_total(ALL_FIRST_BYTES)
        .migration(false)
        .transport_config(Arc::new(transport()));
    Ok((config, Identity { hash, made: clock::now() }))
}

/// The first second of a day since 1970-01-01 UTC.
fn date(day: u64) -> time::OffsetDateTime {
    let seconds = i64::try_from(day * DAY).unwrap_or(0);
    time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(1u8.into())
        // Control, and QPACK's two; a browser may open one more of no known type.
        .max_concurrent_uni_streams(4u8.into())
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(RECEIVE_WINDOW.into())
        .max_idle_timeout(IDLE.try_into().ok())
        .datagram_receive_buffer_size(Some(RECEIVE_BUFFER))
        .datagram_send_buffer_size(SEND_BUFFER)
        .mtu_discovery_config(None)
        .congestion_controller_factory(Arc::new(Steady { window: WINDOW, marked: 0 }));
    transport
}

/// A window that losses do not shrink: a step sends at half of a rate that the path has carried, so
/// what is lost is not lost to a full queue, and a smaller window would hold datagrams back. Only
/// where everything is lost it closes.
#[derive(Debug, Clone)]
pub(crate) struct Steady {
    window: u64,
    /// Rounds in which packets arrived with congestion experienced (RFC 3168).
    pub(crate) marked: u64,
}

impl ControllerFactory for Steady {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Steady::clone(&self))
    }
}

impl Controller for Steady {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, is_persistent: bool, lost: u64) {
        self.marked += u64::from(lost == 0);
        if is_persistent {
            self.window = MIN_WINDOW;
        }
    }

    fn on_end_acks(&mut self, _: Instant, _: u64, _: bool, _: Option<u64>) {
        self.window = WINDOW;
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Accepts sessions until the server ends.
pub(crate) async fn accept(shared: Arc<Shared>, mut end: watch::Receiver<()>) {
    let Some(datagrams) = shared.datagrams.get() else { return };
    loop {
        let incoming = tokio::select! {
            incoming = datagrams.endpoint.accept() => incoming,
            _ = end.changed() => None,
        };
        let Some(incoming) = incoming else { break };
        if !incoming.remote_address_validated() {
            if let Err(error) = incoming.retry() {
                error.into_incoming().ignore();
            }
            continue;
        }
        let client = host::address::canonical(incoming.remote_address());
        let key = AddressKey::of(client.ip());
        let (ticket, place) = (shared.admission.connect(key), shared.admission.handshake(key));
        let (Ok(ticket), Ok(place)) = (ticket, place) else {
            incoming.refuse();
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let ticket = Arc::new(ticket);
            let establishing = establish(incoming, &shared, Arc::clone(&ticket));
            tokio::select! {
                _ = timeout(HANDSHAKE, establishing) => {}
                () = ticket.evicted() => {}
            }
            drop(place);
        });
    }
    datagrams.endpoint.close(NO_ERROR, b"");
}

/// A session of a run.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    /// The beginning of its datagrams.
    pub(crate) prefix: Vec<u8>,
    /// Open while the session is: their ends would end the connection.
    _streams: (SendStream, SendStream, RecvStream),
    _ticket: Arc<ConnectionTicket>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.close(NO_ERROR, b"");
    }
}

/// Gives a session to its run; `None` where that fails, which ends the connection.
async fn establish(
    incoming: Incoming,
    shared: &Shared,
    ticket: Arc<ConnectionTicket>,
) -> Option<()> {
    let connection = incoming.accept().ok()?.await.ok()?;
    let mut control = connection.open_uni().await.ok()?;
    control.write_all(&webtransport::control_stream()).await.ok()?;
    let (mut answer, mut request) = connection.accept_bi().await.ok()?;
    let head = read_head(&mut request).await;
    let run = head.filter(webtransport::Head::asks_for_a_session).and_then(|head| {
        let path = head.path?;
        let path = path.split('?').next()?;
        let id = path.strip_prefix("/api/run/")?.strip_suffix("/datagrams")?;
        shared.runs.take_datagrams(id)
    });
    let Some(run) = run else {
        let _ = answer.write_all(&webtransport::response(404)).await;
        let _ = answer.finish();
        let _ = timeout(REFUSAL, connection.closed()).await;
        connection.close(REJECTED, b"there is no run that waits for this session");
        return None;
    };
    answer.write_all(&webtransport::response(200)).await.ok()?;
    let prefix = webtransport::datagram_prefix(request.id().index() * 4);
    ticket.used();
    let streams = (control, answer, request);
    let _ = run.send(Session { connection, prefix, _streams: streams, _ticket: ticket });
    Some(())
}

async fn read_head(request: &mut RecvStream) -> Option<webtransport::Head> {
    let mut reader = webtransport::HeadReader::default();
    let mut buffer = [0; 2048];
    loop {
        let count = request.read(&mut buffer).await.ok()??;
        if let Some(head) = reader.push(buffer.get(..count)?).ok()? {
            return Some(head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_what_browsers_accept_by_its_hash() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let datagrams = Datagrams::bind(([127, 0, 0, 1], 0).into()).unwrap();
            let hash = datagrams.certificate();
            assert_eq!((hash.len(), hash == datagrams.certificate()), (64, true));
            // After five days there is another one, whose end is at least six days away.
            let made = lock(&datagrams.identity).made.checked_sub(RENEW_AFTER * 2);
            if let Some(made) = made {
                lock(&datagrams.identity).made = made;
                assert_ne!(datagrams.certificate(), hash);
            }
        });
        assert!(RENEW_AFTER.as_secs() / DAY + 1 < VALID_DAYS && VALID_DAYS <= 14);
    }

    #[test]
    fn losses_keep_the_window_and_an_outage_closes_it() {
        let mut steady = Steady { window: WINDOW, marked: 0 };
        let now = clock::now();
        steady.on_congestion_event(now, now, false, 1000);
        assert_eq!((steady.window(), steady.marked), (WINDOW, 0));
        steady.on_congestion_event(now, now, true, 1000);
        steady.on_congestion_event(now, now, false, 0);
        assert_eq!((steady.window(), steady.marked), (MIN_WINDOW, 1));
    }
}
