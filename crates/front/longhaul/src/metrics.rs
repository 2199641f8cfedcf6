//! Metrics in Prometheus' text format, and an HTTP/1.1 server of them for a scraper: one page, one
//! request per connection.
//!
//! Everything is bounded: a connection has one deadline for its request, response
//! and close, and a maximum request size. Above the maximum number of connections
//! the oldest is closed, so that slow clients cannot lock out a scraper.

mod page;

pub use page::Page;

use crate::http_host::{HostError, OwnNames};
use crate::{Fault, Problem};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Maximum request size, including headers, in bytes; as much is discarded after it.
const MAX_REQUEST: usize = 4096;
/// Deadline of a connection, from accept to close.
const DEADLINE: Duration = Duration::from_secs(2);
/// Part of the deadline that is reserved for the response to a slow request, and
/// how long a client may take to close its end after a response.
const LINGER: Duration = Duration::from_millis(200);
/// Maximum number of connections; for a further one the oldest is closed.
const MAX_CONNECTIONS: usize = 16;
/// Pause in accepting when file descriptors are exhausted.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// Prometheus' text format.
const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The answer to a request that did not arrive in time.
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// What is served.
struct Site {
    names: OwnNames,
    /// The answer to a request for another host.
    misdirected: String,
    page: Box<dyn Fn() -> String + Send + Sync>,
}

/// Answers `GET /metrics` from a separate thread until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    _end: oneshot::Sender<Infallible>,
}

impl MetricsServer {
    /// Listens at an address. Requests for a host of `names` are answered with the result of
    /// `page`, those for another host with `misdirected`.
    ///
    /// # Errors
    /// The address is in use, or not this host's; the thread cannot be created.
    pub fn start(
        at: SocketAddr,
        names: &[String],
        misdirected: &str,
        page: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Self, Problem> {
        let site = Site {
            names: OwnNames::new(names),
            misdirected: misdirected.to_owned(),
            page: Box::new(page),
        };
        MetricsServer::start_within(DEADLINE, at, site).map_err(|error| {
            let remedy = "choose another address or port";
            let message = format!("cannot listen on {at} for metrics: {error}; {remedy}");
            Problem::new(Fault::Internal, message)
        })
    }

    fn start_within(deadline: Duration, at: SocketAddr, site: Site) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let site = Arc::new(site);
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = accept(&listener, &site, deadline) => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(MetricsServer { address, _end: end })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: &TcpListener, site: &Arc<Site>, deadline: Duration) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(EXHAUSTED_PAUSE).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        while open.len() >= MAX_CONNECTIONS {
            if let Some(oldest) = open.pop_front() {
                oldest.abort();
            }
        }
        let serving = timeout(deadline, serve(stream, Arc::clone(site), deadline));
        open.push_back(tokio::spawn(serving).abort_handle());
    }
}

async fn serve(stream: TcpStream, site: Arc<Site>, deadline: Duration) {
    let service = service_fn(move |request| ready(Ok::<_, Infallible>(response(&request, &site))));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .max_header_size(MAX_REQUEST)
        // The reserve is for the response that the request was too slow.
        .header_read_timeout(deadline.saturating_sub(LINGER))
        .serve_connection(TokioIo::new(stream), service);
    let ended = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut stream = connection.into_parts().io.into_inner();
    // If the scraper has disconnected, errors concern nobody.
    if ended.is_err_and(|error| error.is_timeout()) {
        let _ = stream.write_all(TOO_SLOW).await;
    }
    let _ = stream.shutdown().await;
    // Closing with unread bytes would reset the connection and take the answer with it.
    let _ = timeout(LINGER, discard(stream)).await;
}

/// Reads and discards further data, up to a limit.
async fn discard(mut stream: TcpStream) {
    let (mut piece, mut bytes) = ([0; 1024], 0);
    while bytes < MAX_REQUEST
        && let Ok(got @ 1..) = stream.read(&mut piece).await
    {
        bytes += got;
    }
}

fn response(request: &Request<Incoming>, site: &Site) -> Response<Full<Bytes>> {
    let status = status_of(request, &site.names);
    let body = match status {
        StatusCode::OK => (site.page)(),
        StatusCode::MISDIRECTED_REQUEST => site.misdirected.clone(),
        _ => String::new(),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(TYPE));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
    }
    response
}

/// The status of a request by its Host, its method and its path.
fn status_of<B>(request: &Request<B>, names: &OwnNames) -> StatusCode {
    match names.check(request) {
        Ok(()) => {}
        Err(HostError::Malformed) => return StatusCode::BAD_REQUEST,
        Err(HostError::Foreign) => return StatusCode::MISDIRECTED_REQUEST,
    }
    match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET) => StatusCode::OK,
        ("/metrics", _) => StatusCode::METHOD_NOT_ALLOWED,
        _ => StatusCode::NOT_FOUND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::clock;
    use std::io::{self, Read, Write};
    use std::net::TcpStream;

    const MISDIRECTED: &str = "another server";
    const HOUR: Duration = Duration::from_secs(3600);
    /// Time enough to answer, and short enough to wait for.
    const SHORT: Duration = Duration::from_millis(500);

    fn start(deadline: Duration) -> MetricsServer {
        let site = Site {
            names: OwnNames::default(),
            misdirected: MISDIRECTED.to_owned(),
            page: Box::new(|| "page".to_owned()),
        };
        MetricsServer::start_within(deadline, ([127, 0, 0, 1], 0).into(), site).unwrap()
    }

    /// The status, and the whole answer in small letters.
    fn response_to(parts: &[&[u8]], deadline: Duration) -> (u16, String) {
        let server = start(deadline);
        let mut connection = TcpStream::connect(server.address()).unwrap();
        for part in parts {
            connection.write_all(part).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        (status, answer.to_lowercase())
    }

    #[test]
    fn one_page_by_one_method() {
        for (line, expected) in [
            ("GET /metrics HTTP/1.1", 200),
            ("GET /metrics?x=y HTTP/1.0", 200),
            ("POST /metrics HTTP/1.1", 405),
            ("GET / HTTP/1.1", 404),
            ("GET /metrics/ HTTP/1.1", 404),
            ("GET /../metrics HTTP/1.1", 404),
            ("GET /metrics", 400),
            ("GET /metrics SPDY/3", 400),
            ("\0\u{ff} \0 \0", 400),
        ] {
            let head = format!("{line}\r\nHost: localhost\r\n\r\n");
            let (status, answer) = response_to(&[head.as_bytes()], HOUR);
            assert_eq!(status, expected, "{line}");
            assert_eq!(answer.contains("\r\nallow: get\r\n"), status == 405, "{answer}");
        }
    }

    #[test]
    fn another_name_gets_no_page() {
        for (version, header, expected) in [
            ("1.1", "Host: 192.0.2.1:9201\r\n", 200),
            ("1.1", "Host: evil.example\r\n", 421),
            ("1.0", "Host: evil.example\r\n", 421),
            ("1.1", "", 400),
            ("1.0", "", 200),
        ] {
            let head = format!("GET /metrics HTTP/{version}\r\n{header}\r\n");
            let (status, answer) = response_to(&[head.as_bytes()], HOUR);
            assert_eq!(status, expected, "{head}");
            assert_eq!(answer.ends_with("\r\n\r\npage"), status == 200, "{head}");
            assert_eq!(answer.contains(MISDIRECTED), status == 421, "{head}");
        }
    }

    #[test]
    fn requests_come_in_pieces_and_end() {
        let pieces: [&[u8]; 3] = [b"GET /met", b"rics HTTP/1.1\r\nHost: [::1]\r", b"\n\r\n"];
        let (status, answer) = response_to(&pieces, HOUR);
        assert!(status == 200 && answer.ends_with("\r\n\r\npage"));
        assert!(answer.contains("content-length: 4\r\n") && answer.contains("connection: close"));
        let long = response_to(&[b"GET /metrics HTTP/1.1\r\n", &[b'x'; 5000]], HOUR);
        assert_eq!(long.0, 431, "{}", long.1);
        let slow = response_to(&[b"GET /metrics HTTP/1.1\r\n"], SHORT);
        assert_eq!(slow.0, 408, "{}", slow.1);
    }

    #[test]
    fn a_dropped_server_listens_no_longer() {
        let server = start(HOUR);
        let address = server.address();
        drop(server);
        let until = clock::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_ok() {
            assert!(clock::now() < until);
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// A server with more slow connections than its maximum: each has sent half a
    /// request.
    fn under_attack(deadline: Duration) -> (MetricsServer, Vec<TcpStream>) {
        let server = start(deadline);
        let slow = |_| {
            let mut connection = TcpStream::connect(server.address()).unwrap();
            connection.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
            connection
        };
        let slow = (0..4 * MAX_CONNECTIONS).map(slow).collect();
        (server, slow)
    }

    #[test]
    fn slow_connections_do_not_lock_out_a_scraper() {
        // An hour: the scraper is served only if slow connections are closed.
        let (server, slow) = under_attack(HOUR);
        for _ in 0..20 {
            let mut scraper = TcpStream::connect(server.address()).unwrap();
            scraper.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            scraper.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            scraper.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
        }
        drop(slow);
    }

    /// Returns true if the server has closed this connection, though a byte is sent
    /// every few milliseconds.
    fn is_closed_eventually(mut connection: TcpStream) -> bool {
        let until = clock::now() + Duration::from_secs(20);
        connection.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut closed = false;
        while !closed && clock::now() < until {
            closed = connection.write_all(b"x").is_err()
                || match connection.read(&mut [0; 512]) {
                    Ok(_) => false,
                    Err(error) => {
                        !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
                    }
                };
        }
        closed
    }

    #[test]
    fn a_trickle_does_not_extend_the_deadline() {
        let (server, mut slow) = under_attack(SHORT);
        // One in the middle of its request, and one that was answered already.
        let asking = slow.pop().unwrap();
        let mut answered = TcpStream::connect(server.address()).unwrap();
        answered.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        assert!(is_closed_eventually(asking));
        assert!(is_closed_eventually(answered));
    }
}
