//! WebSockets over upgraded connections.

use crate::connection::Connection;
use crate::guard::refused;
use crate::listener::Held;
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use websocket::{CloseCode, Event, Limits, Opcode, Reader, Role, Upgrade, frame};

/// The time within which a peer takes a message, and in which the two ends part.
pub const PEER_TIME: Duration = Duration::from_secs(10);
/// Bytes that are read at a time while only messages are expected.
const READ_BYTES: usize = 4096;

/// A WebSocket, the server's end.
pub struct WebSocket {
    io: TokioIo<Upgraded>,
    reader: Reader,
    /// Received bytes, of which those before `taken` are read.
    input: Vec<u8>,
    taken: usize,
    _held: Option<Held>,
}

/// What a WebSocket's transfer goes on with.
pub(crate) struct Parts {
    pub(crate) io: TokioIo<Upgraded>,
    pub(crate) reader: Reader,
    /// Received and not read.
    pub(crate) input: Vec<u8>,
    pub(crate) held: Option<Held>,
}

/// Answers a request for an upgrade, after which `then` has the WebSocket.
pub fn accept<F: Future<Output = ()> + Send + 'static>(
    mut request: Request<Body>,
    subprotocol: Option<&'static str>,
    limits: Limits,
    then: impl FnOnce(WebSocket, Connection) -> F + Send + 'static,
) -> Response<Body> {
    let headers = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let upgrade = Upgrade::of(headers).and_then(|upgrade| match subprotocol {
        Some(wanted) => upgrade.require(wanted).map(|()| upgrade),
        None => Ok(upgrade),
    });
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
            let mut response = refused(status, &error.to_string());
            if status == StatusCode::UPGRADE_REQUIRED {
                let version = HeaderValue::from_static(websocket::handshake::VERSION);
                response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, version);
            }
            return response;
        }
    };
    let extensions = request.extensions_mut();
    let held = extensions.remove::<Held>();
    let (Some(pending), Some(connection)) =
        (extensions.remove::<OnUpgrade>(), extensions.remove::<Connection>())
    else {
        return refused(StatusCode::BAD_REQUEST, "this connection cannot be upgraded");
    };
    tokio::spawn(async move {
        if let Ok(upgraded) = pending.await {
            let io = TokioIo::new(upgraded);
            let reader = Reader::new(Role::Server, limits);
            let socket = WebSocket { io, reader, input: Vec::new(), taken: 0, _held: held };
            then(socket, connection).await;
        }
    });
    switching(&upgrade, subprotocol)
}

fn switching(upgrade: &Upgrade, subprotocol: Option<&'static str>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    if let Ok(value) = HeaderValue::from_str(&upgrade.accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, value);
    }
    if let Some(name) = subprotocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name));
    }
    response
}

impl WebSocket {
    /// The next text message, in which pings are answered; `None` once the peer has closed, left,
    /// or broken the protocol. May be cancelled: nothing received is lost.
    pub async fn text(&mut self) -> Option<String> {
        loop {
            match self.event().await? {
                Event::Text(text) => return Some(text),
                Event::Ping(payload) => self.send(Opcode::Pong, &payload).await.ok()?,
                Event::Close(_) => {
                    self.close(CloseCode::NORMAL, "").await;
                    return None;
                }
                Event::Binary(_) => {
                    self.close(CloseCode::UNSUPPORTED, "no binary message is expected").await;
                    return None;
                }
                Event::BinaryEnd | Event::Pong(_) => {}
            }
        }
    }

    async fn event(&mut self) -> Option<Event> {
        loop {
            let mut unread = self.input.get(self.taken..).unwrap_or_default();
            let before = unread.len();
            let event = self.reader.next(&mut unread);
            self.taken += before - unread.len();
            match event {
                Ok(Some(event)) => return Some(event),
                Ok(None) => {}
                Err(error) => {
                    self.close(error.close_code(), &error.to_string()).await;
                    return None;
                }
            }
            self.input.clear();
            self.taken = 0;
            self.input.reserve(READ_BYTES);
            match self.io.read_buf(&mut self.input).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Sends a text message.
    ///
    /// # Errors
    /// The peer has gone, or does not take it in time.
    pub async fn send_text(&mut self, text: &str) -> io::Result<()> {
        self.send(Opcode::Text, text.as_bytes()).await
    }

    async fn send(&mut self, opcode: Opcode, payload: &[u8]) -> io::Result<()> {
        let message = frame::message(opcode, payload, None);
        timeout(PEER_TIME, async {
            self.io.write_all(&message).await?;
            self.io.flush().await
        })
        .await?
    }

    /// Closes the connection, and reads what is on its way for a moment.
    pub async fn close(&mut self, code: CloseCode, reason: &str) {
        let close = frame::close(code, reason, None);
        let _ = timeout(PEER_TIME, async {
            self.io.write_all(&close).await?;
            self.io.shutdown().await
        })
        .await;
        drain(&mut self.io).await;
    }

    /// The connection, for a transfer.
    pub(crate) fn into_parts(self) -> Parts {
        let input = self.input.get(self.taken..).unwrap_or_default().to_vec();
        Parts { io: self.io, reader: self.reader, input, held: self._held }
    }
}

/// Most bytes that are read after Close, and the time for it.
const MAX_DRAINED: u64 = 1 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// Reads what is on its way: with unread data the kernel would answer by a reset, and the peer
/// would not see the Close.
pub(crate) async fn drain(reading: &mut (impl AsyncRead + Unpin)) {
    let mut rest = reading.take(MAX_DRAINED);
    let _ = timeout(DRAIN_TIME, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
