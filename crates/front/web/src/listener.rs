//! Accepts connections, and serves the requests on each.

use crate::connection::Connection;
use crate::counters::{Counters, OpenConnection};
use crate::guard::{Guard, too_many};
use crate::limits::{Admission, ConnectionTicket, MAX_REFUSED};
use crate::proxy;
use crate::tls::Protocols;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use host::clock;
use host::lock::lock;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// The time of a handshake. Those at a time are bounded as connections are.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Most bytes of a request's header, and of a body that are read at a time.
const MAX_HEADER: usize = 64 << 10;
/// A connection whose data is not acknowledged for this long is closed, also if the peer's window
/// is closed (tcp(7), `TCP_USER_TIMEOUT`): whoever reads nothing holds nothing.
const USER_TIMEOUT: Duration = Duration::from_secs(30);
/// Most fields of a request's header.
const MAX_FIELDS: usize = 64;
/// Pause in accepting when descriptors or memory are exhausted.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// The time within which one who is refused asks for something, to read why.
const REFUSED_TIME: Duration = Duration::from_secs(2);
/// When a client with too many connections may try again, in seconds.
const RETRY_AFTER: u32 = 10;
/// The answer to a request whose header did not arrive in time.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain\r\n\
    Content-Length: 33\r\nConnection: close\r\n\r\nthe header did not come in time.\n";
/// HTTP/2's windows for uploads: hyper's 1 MiB would carry 84 Mbit/s over 100 ms.
const H2_WINDOW: u32 = 64 << 20;
/// What HTTP/2 may hold of a stream unsent: what waits in the server is not the path's delay.
const H2_SEND_BUFFER: usize = 64 << 10;
/// Streams of an HTTP/2 connection.
const MAX_H2_STREAMS: u32 = 128;

/// What serves the connections of a listener.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) guard: Arc<Guard>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trusted_proxies: Arc<[IpAddr]>,
    pub(crate) header_time: Duration,
    /// Closed when the server ends.
    pub(crate) end: watch::Receiver<()>,
}

/// A listener's encryption and protocols.
#[derive(Clone)]
pub(crate) struct Port {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) protocols: Protocols,
}

/// Opens a listener.
///
/// # Errors
/// The address is in use, or not this host's.
pub(crate) fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Accepts until the server ends.
pub(crate) async fn accept(listener: TcpListener, port: Port, serving: Serving) {
    let refusals = Arc::new(Semaphore::new(MAX_REFUSED));
    let mut end = serving.end.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = end.changed() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(connection) = Connection::of(&stream, port.tls.is_some()) else { continue };
                // In the order of arrival.
                let ticket = if proxy::is_trusted(&connection, &serving.trusted_proxies) {
                    serving.admission.connect_proxy()
                } else {
                    serving.admission.connect(connection.key()).ok()
                };
                let shared = (port.clone(), serving.clone());
                let client = (stream, connection, ticket);
                tokio::spawn(serve(client, shared.0, shared.1, Arc::clone(&refusals)));
            }
            Err(error) if host::socket::is_exhausted(&error) => sleep(EXHAUSTED_PAUSE).await,
            // A connection that was reset before it was accepted.
            Err(_) => {}
        }
    }
}

async fn serve(
    (stream, connection, ticket): (TcpStream, Connection, Option<ConnectionTicket>),
    port: Port,
    serving: Serving,
    refusals: Arc<Semaphore>,
) {
    let refusal = match ticket {
        Some(_) => None,
        None => match refusals.try_acquire() {
            Ok(permit) => Some(permit),
            Err(_) => return serving.counters.dropped(),
        },
    };
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(&stream).set_tcp_user_timeout(Some(USER_TIMEOUT));
    let Some(config) = port.tls else {
        return converse(stream, port.protocols, connection, ticket, &serving).await;
    };
    let handshake = TlsAcceptor::from(config).accept(stream);
    let secured = tokio::select! {
        secured = timeout(HANDSHAKE, handshake) => secured,
        () = evicted(ticket.as_ref()) => return,
    };
    match secured {
        Ok(Ok(secured)) => {
            converse(secured, port.protocols, connection, ticket, &serving).await;
        }
        _ => serving.counters.handshake_failed(),
    }
    drop(refusal);
}

async fn evicted(ticket: Option<&ConnectionTicket>) {
    match ticket {
        Some(ticket) => ticket.evicted().await,
        None => std::future::pending().await,
    }
}

/// Serves the requests of a connection; without a ticket it is told to come later.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    protocols: Protocols,
    connection: Connection,
    ticket: Option<ConnectionTicket>,
    serving: &Serving,
) {
    let io = TokioIo::new(stream);
    let Some(ticket) = ticket else {
        serving.counters.answered(StatusCode::TOO_MANY_REQUESTS);
        let refuse = service_fn(|_: Request<Incoming>| async {
            let why = "too many connections of this address, or of all; try again later";
            Ok::<_, Infallible>(too_many(why, RETRY_AFTER))
        });
        let refusing = hyper::server::conn::http1::Builder::new()
            .keep_alive(false)
            .serve_connection(io, refuse);
        let _ = timeout(REFUSED_TIME, refusing).await;
        return;
    };
    // Upgraded connections count until they end: what they are upgraded to has the ticket.
    let held = Held(Arc::new((ticket, serving.counters.open(&connection))));
    let ticket = Arc::clone(&held.0);
    let shared = serving.clone();
    let activity = Arc::new(Activity::new());
    let idle = Arc::clone(&activity);
    let service = service_fn(move |request: Request<Incoming>| {
        held.0.0.used();
        let busy = Activity::begin(&activity);
        let connection =
            proxy::resolve(connection.clone(), request.headers(), &shared.trusted_proxies);
        let answer = answer(shared.clone(), request, connection, held.clone());
        async move {
            let until_sent = |body| Body::new(Sending { body, _busy: busy });
            // HTTP/1's own timer begins with the connection.
            match protocols {
                Protocols::Http1 => answer.await,
                Protocols::Http2 => answer.await.map(|answer| answer.map(until_sent)),
            }
        }
    });
    let mut end = serving.end.clone();
    tokio::select! {
        () = exchange(io, service, protocols, serving) => {}
        () = idle.ended(serving.header_time), if protocols == Protocols::Http2 => {}
        () = ticket.0.evicted() => {}
        _ = end.changed() => {}
    }
}

/// The requests of a connection: hyper has no timer for one that sends no first byte, or that
/// has HTTP/2 and answers pings alone.
struct Activity(Mutex<Requests>);

/// The requests that are being answered, and when the last one of them was. Both are read at once:
/// with the time of an earlier answer, one that has just been sent would look old.
struct Requests {
    open: usize,
    last: Instant,
}

impl Activity {
    fn new() -> Self {
        Activity(Mutex::new(Requests { open: 0, last: clock::now() }))
    }

    /// Counts a request until its answer has been sent.
    fn begin(activity: &Arc<Self>) -> Busy {
        lock(&activity.0).open += 1;
        Busy(Arc::clone(activity))
    }

    /// How long there has been no request; `None` while there is one.
    fn idle(&self) -> Option<Duration> {
        let requests = lock(&self.0);
        (requests.open == 0).then(|| requests.last.elapsed())
    }

    /// Waits until there was no request for so long.
    async fn ended(&self, longest: Duration) {
        loop {
            match self.idle() {
                None => sleep(longest).await,
                Some(idle) if idle >= longest => return,
                Some(idle) => sleep(longest.saturating_sub(idle)).await,
            }
        }
    }
}

/// The body of an answer, which ends a request once it has been sent.
struct Sending {
    body: Body,
    _busy: Busy,
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request that is being answered.
struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut requests = lock(&self.0.0);
        requests.last = clock::now();
        requests.open = requests.open.saturating_sub(1);
    }
}

/// Serves requests until the connection is upgraded or ends.
async fn exchange<S>(
    io: TokioIo<impl AsyncRead + AsyncWrite + Unpin + Send + 'static>,
    service: S,
    protocols: Protocols,
    serving: &Serving,
) where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    S: Send + Unpin + 'static,
    S::Future: Send + 'static,
{
    if protocols == Protocols::Http1 {
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(serving.header_time)
            .max_headers(MAX_FIELDS)
            .max_header_size(MAX_HEADER)
            .max_buf_size(MAX_HEADER)
            .serve_connection(io, service)
            .with_upgrades();
        let ended = (&mut connection).await;
        let parts = connection.into_parts();
        if let Some(parts) = parts.filter(|_| ended.is_err_and(|error| error.is_timeout())) {
            // Between two requests there is nothing to be told.
            if !parts.read_buf.is_empty() {
                serving.counters.answered(StatusCode::REQUEST_TIMEOUT);
                let mut stream = parts.io.into_inner();
                let tell = async {
                    stream.write_all(TOO_SLOW).await?;
                    stream.shutdown().await
                };
                let _ = timeout(REFUSED_TIME, tell).await;
            }
        }
        return;
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.header_time)
        .max_headers(MAX_FIELDS)
        .max_buf_size(MAX_HEADER)
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(H2_WINDOW)
        .initial_connection_window_size(H2_WINDOW)
        .max_send_buf_size(H2_SEND_BUFFER)
        .max_concurrent_streams(MAX_H2_STREAMS)
        .max_header_list_size(MAX_HEADER as u32)
        .keep_alive_interval(serving.header_time)
        .keep_alive_timeout(serving.header_time);
    let _ = builder.serve_connection_with_upgrades(io, service).await;
}

/// What counts the connection that a request came on, until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Held(Arc<(ConnectionTicket, OpenConnection)>);

async fn answer(
    serving: Serving,
    request: Request<Incoming>,
    connection: Connection,
    held: Held,
) -> Result<Response<Body>, Infallible> {
    let is_encrypted = connection.is_encrypted();
    let allowed = serving.guard.allowed(&request, is_encrypted);
    let policy = serving.guard.policy(&request, is_encrypted);
    if let Some(refusal) = serving.guard.refusal(&request, is_encrypted) {
        serving.counters.answered(refusal.status());
        return Ok(serving.guard.complete(refusal, policy, allowed));
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(connection);
    request.extensions_mut().insert(held);
    let answer = TowerToHyperService::new(serving.router).call(request).await;
    let answer = answer.map(|response| serving.guard.complete(response, policy, allowed))?;
    serving.counters.answered(answer.status());
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_idle_from_the_end_of_its_last_answer() {
        let activity = Arc::new(Activity::new());
        let began = clock::now();
        let both = [Activity::begin(&activity), Activity::begin(&activity)];
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(activity.idle(), None);
        let [first, second] = both;
        drop(first);
        assert_eq!(activity.idle(), None);
        let before = clock::now();
        drop(second);
        let (idle, since) = (activity.idle().unwrap(), before.elapsed());
        assert!(idle <= since && since < began.elapsed(), "{idle:?}, {since:?}");
    }
}
