//! One transfer of an HTTP exchange: bytes sent or received in bulk, within limits.

use super::budget::{Budget, Refused};
use crate::WebLimits;
use crate::connection::Connection;
use crate::guard;
use crate::run::bulk::block;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use host::address_key::AddressKey;
use host::lock::lock;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use longhaul::StopFlag;
use socket2::SockRef;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use units::ByteCount;

/// Time beyond a transfer's longest after which its connection is cut: its peer neither reads nor
/// sends.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Bytes of a chunk.
const CHUNK: usize = 256 << 10;

/// Most bytes of the kernel's queue that are not sent yet: what waits there is not on the path.
const UNSENT: ByteCount = ByteCount::from_bytes(512 << 10);

/// Bytes that nothing on the path can compress.
pub(super) fn incompressible() -> Bytes {
    Bytes::from_static(block())
}

/// The same in ASCII, seven bits of eight: a page that reads a response as text spends little time
/// on decoding it.
static TEXT: LazyLock<Bytes> = LazyLock::new(|| block().iter().map(|byte| byte & 0x7f).collect());

/// The transfers of a server.
#[derive(Debug)]
pub(crate) struct Transfers {
    budget: Mutex<Budget>,
    /// The longest time of a transfer.
    time: Duration,
    /// Raised when none begins any more.
    drain: StopFlag,
}

impl Transfers {
    pub(crate) fn new(limits: &WebLimits, drain: StopFlag) -> Arc<Self> {
        let budget = Mutex::new(Budget::new(*limits, host::clock::now()));
        Arc::new(Transfers { budget, time: limits.transfer, drain })
    }

    /// Transfers that run.
    pub(crate) fn running(&self) -> usize {
        lock(&self.budget).running()
    }

    /// The longest time of a transfer.
    pub(crate) fn longest(&self) -> Duration {
        self.time + GRACE_PERIOD
    }

    /// Begins a transfer over a connection.
    ///
    /// # Errors
    /// A limit that is reached, or the server is about to stop.
    pub(crate) fn begin(self: &Arc<Self>, connection: &Connection) -> Result<Transfer, Refusal> {
        if self.drain.is_raised() {
            return Err(Refusal::Stopping);
        }
        let key = connection.key();
        lock(&self.budget).begin(key, host::clock::now()).map_err(Refusal::TooMany)?;
        let _ = connection.set_unsent_limit(Some(UNSENT));
        let (connection, time) = (connection.clone(), self.longest());
        let cut = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            cut(&connection);
        });
        Ok(Transfer { transfers: self.clone(), key, cut: cut.abort_handle() })
    }
}

/// A transfer that is not served, or not to its end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// Too many run, or took too much.
    TooMany(Refused),
    /// The server is about to stop.
    Stopping,
    /// The budget ends within an upload.
    Beyond,
    /// An upload does not end in time.
    Late,
    /// An upload breaks off.
    Broken,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, why) = match self {
            Refusal::TooMany(refused) => {
                let seconds = refused.retry_after.as_secs_f64().ceil().max(1.0);
                return guard::too_many(refused.why, seconds as u32);
            }
            Refusal::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "the server is about to stop"),
            Refusal::Beyond => {
                (StatusCode::PAYLOAD_TOO_LARGE, "the upload is beyond the limit of your address")
            }
            Refusal::Late => (StatusCode::REQUEST_TIMEOUT, "the upload took too long"),
            Refusal::Broken => (StatusCode::BAD_REQUEST, "the upload broke off"),
        };
        guard::refused(status, why)
    }
}

/// Ends a connection in both directions, whoever else holds it.
fn cut(connection: &Connection) {
    let _ = SockRef::from(connection.descriptor()).shutdown(Shutdown::Both);
}

/// A transfer that runs; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Transfer {
    transfers: Arc<Transfers>,
    key: AddressKey,
    cut: tokio::task::AbortHandle,
}

impl Transfer {
    /// Counts bytes; false where none are left of the budget.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        lock(&self.transfers.budget).take(self.key, bytes)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.cut.abort();
        lock(&self.transfers.budget).end(self.key);
    }
}

/// The body of a download: so many incompressible bytes. It ends early, and with it the
/// connection, when the budget or the time is over.
#[derive(Debug)]
pub(crate) struct Download {
    left: u64,
    block: Bytes,
    transfer: Transfer,
    ends: tokio::time::Instant,
}

impl Download {
    pub(crate) fn new(bytes: u64, transfer: Transfer) -> Self {
        let ends = tokio::time::Instant::now() + transfer.transfers.time;
        Download { left: bytes, block: incompressible(), transfer, ends }
    }

    /// A download that its client decodes as text.
    pub(crate) fn of_text(bytes: u64, transfer: Transfer) -> Self {
        Download { block: TEXT.clone(), ..Download::new(bytes, transfer) }
    }
}

/// A download that is over before its last byte.
#[derive(Debug, thiserror::Error)]
#[error("the limit of this transfer is reached")]
pub(crate) struct Exhausted;

impl HttpBody for Download {
    type Data = Bytes;
    type Error = Exhausted;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Exhausted>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = usize::try_from(this.left).map_or(CHUNK, |left| left.min(CHUNK));
        if !this.transfer.take(chunk as u64) || tokio::time::Instant::now() >= this.ends {
            this.left = 0;
            return Poll::Ready(Some(Err(Exhausted)));
        }
        // Each chunk from another place.
        let places = (this.block.len() / CHUNK) as u64;
        let from = (this.left / CHUNK as u64 % places) as usize * CHUNK;
        this.left -= chunk as u64;
        Poll::Ready(Some(Ok(Frame::data(this.block.slice(from..from + chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Receives a whole upload and drops it; returns its bytes. What a refused one still sends is not read.
///
/// # Errors
/// A limit is reached, or it does not end in time, goes beyond the budget, or breaks off.
pub(crate) async fn receive(
    transfers: &Arc<Transfers>,
    connection: &Connection,
    mut body: Body,
) -> Result<u64, Refusal> {
    let transfer = transfers.begin(connection)?;
    let all = async {
        let mut all = 0u64;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::Broken)?;
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            if !transfer.take(bytes) {
                return Err(Refusal::Beyond);
            }
            all = all.saturating_add(bytes);
        }
        Ok(all)
    };
    tokio::time::timeout(transfers.time, all).await.unwrap_or(Err(Refusal::Late))
}
