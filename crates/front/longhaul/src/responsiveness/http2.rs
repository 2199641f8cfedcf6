//! HTTP/2 connections, and requests on them.

use super::{Targets, failed, wrong};
use crate::Problem;
use crate::http_client::{Connected, Socket, Stream};
use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

/// Flow control's windows: 1 Gbit/s at 128 ms. All is read at once, so none of it is stored.
const WINDOW: u32 = 16 << 20;
/// Bytes of a stream that wait to be sent: what waits is no delay of the path.
const SEND_BUFFER: usize = 128 << 10;
/// Bytes of a chunk of an upload.
const CHUNK: usize = 64 << 10;
/// Most bytes of the headers of an answer.
const MAX_HEADERS: u32 = 16 << 10;

/// A connection.
#[derive(Clone)]
pub(super) struct Http2(SendRequest<Payload>);

/// What a request sends.
#[derive(Debug)]
pub(super) enum Payload {
    Nothing,
    /// Random bytes without end.
    Endless,
}

static BLOCK: LazyLock<Bytes> = LazyLock::new(|| host::random::incompressible(CHUNK).into());

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(match *self {
            Payload::Nothing => None,
            Payload::Endless => Some(Ok(Frame::data(BLOCK.clone()))),
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Payload::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Payload::Nothing => SizeHint::with_exact(0),
            Payload::Endless => SizeHint::default(),
        }
    }
}

impl Http2 {
    /// Begins HTTP/2 on a connection, which ends with the last clone and request.
    pub(super) async fn open(connected: Connected) -> Result<(Self, Socket), Problem> {
        let Connected { stream, socket, .. } = connected;
        let is_agreed = match &stream {
            Stream::Plain(_) => true,
            Stream::Tls(_) => stream.protocol() == Some(b"h2"),
        };
        if !is_agreed {
            return Err(wrong(
                "the server does not offer HTTP/2, in which probes share a connection",
            ));
        }
        let shaken = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(MAX_HEADERS)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = shaken.map_err(|error| failed(&error))?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok((Http2(sender), socket))
    }

    /// Sends a request, and returns the answer once its head has come.
    pub(super) async fn request(
        &self,
        targets: &Targets,
        target: &str,
        payload: Payload,
    ) -> Result<Response<Incoming>, Problem> {
        let method = match payload {
            Payload::Nothing => Method::GET,
            Payload::Endless => Method::POST,
        };
        let scheme = if targets.is_encrypted { "https" } else { "http" };
        let request = Request::builder()
            .method(method)
            .uri(format!("{scheme}://{}{target}", targets.authority))
            .body(payload)
            .map_err(wrong)?;
        let response =
            self.0.clone().send_request(request).await.map_err(|error| failed(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(wrong(format!("the server answers {target} with {status}"))),
        }
    }

    /// Fetches a short answer.
    pub(super) async fn get(
        &self,
        targets: &Targets,
        target: &str,
        most: usize,
    ) -> Result<Vec<u8>, Problem> {
        let mut body = self.request(targets, target, Payload::Nothing).await?.into_body();
        let mut received = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failed(&error))?;
            let data = frame.data_ref().map(AsRef::as_ref).unwrap_or_default();
            if received.len() + data.len() > most {
                return Err(wrong(format!("the answer to {target} has more than {most} bytes")));
            }
            received.extend_from_slice(data);
        }
        Ok(received)
    }
}
