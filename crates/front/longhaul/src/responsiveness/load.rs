//! The connections that load the path.

use super::http2::{Http2, Payload};
use super::{LoadDirection, Targets};
use crate::Problem;
use crate::http_client::{Server, Socket};
use host::lock::lock;
use host::tcp_info::{receiver_sample, sender_sample};
use http_body_util::BodyExt;
use record::{
    Action, AlsoShows, Direction, Measurement, ReceiverSample, Sample, Stream, TestSpec,
    ToolResult, Unavailable,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use units::ByteCount;

/// Unsent bytes that the kernel may hold in an upload: what waits there is no delay of the path.
const UNSENT: ByteCount = ByteCount::from_bytes(128 << 10);
/// Requests on a connection, should the server end them early.
const MAX_REQUESTS: u32 = 200;

/// A loaded connection.
pub(super) struct Loaded {
    direction: LoadDirection,
    pub(super) connection: Http2,
    socket: Socket,
    /// Bytes of the answers.
    received: Arc<AtomicU64>,
    /// Why it carries no load any more.
    failed: Arc<Mutex<Option<Problem>>>,
    task: JoinHandle<()>,
    first: Option<Sample>,
    sender: Vec<Sample>,
    receiver: Vec<ReceiverSample>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Loaded {
    /// Opens one, and begins its transfer.
    pub(super) async fn open(
        direction: LoadDirection,
        server: &Server,
        targets: &Targets,
    ) -> Result<Self, Problem> {
        let (connection, socket) = Http2::open(server.connect().await?).await?;
        if direction == LoadDirection::Upload {
            // An older kernel has no such limit: its probes wait longer.
            let _ = socket.set_unsent_limit(UNSENT);
        }
        let received = Arc::new(AtomicU64::new(0));
        let failed = Arc::new(Mutex::new(None));
        let (on, with) = (connection.clone(), targets.clone());
        let (count, why) = (received.clone(), failed.clone());
        let task = tokio::spawn(async move {
            for _ in 0..MAX_REQUESTS {
                if let Err(problem) = transfer(direction, &on, &with, &count).await {
                    *lock(&why) = Some(problem);
                    return;
                }
            }
            *lock(&why) = Some(super::wrong("the server ends its transfers too early"));
        });
        let (sender, receiver) = (Vec::new(), Vec::new());
        Ok(Loaded {
            direction,
            connection,
            socket,
            received,
            failed,
            task,
            first: None,
            sender,
            receiver,
        })
    }

    /// The reason it carries no load any more.
    pub(super) fn failed(&self) -> Option<Problem> {
        lock(&self.failed).clone()
    }

    /// Bytes that arrived so far.
    pub(super) fn bytes(&self) -> u64 {
        match self.direction {
            LoadDirection::Download => self.received.load(Ordering::Relaxed),
            LoadDirection::Upload => self.sender.last().map_or(0, |sample| sample.acked_bytes),
        }
    }

    pub(super) fn sample(&mut self, t_s: f64) {
        let Some(info) = self.socket.tcp_info() else { return };
        match self.direction {
            LoadDirection::Download => {
                let (bytes, memory) = (self.bytes(), self.socket.memory());
                let sample = receiver_sample(t_s, bytes, Some(&info), memory.as_ref());
                self.receiver.push(ReceiverSample { unread_bytes: None, ..sample });
            }
            LoadDirection::Upload => {
                let sample = sender_sample(t_s, info.bytes_acked.unwrap_or(0), &info);
                // The handshakes were acknowledged before.
                let first = *self.first.get_or_insert(Sample { t_s: 0.0, ..sample });
                self.sender.push(sample.since(&first));
            }
        }
    }

    fn into_stream(mut self, id: u32, seconds: f64) -> Stream {
        let bytes = self.bytes();
        let is_download = self.direction == LoadDirection::Download;
        Stream {
            id,
            reverse: is_download,
            congestion: (!is_download).then(|| self.socket.congestion()).flatten(),
            sent_bytes: bytes,
            received_bytes: bytes,
            sent_seconds: seconds,
            received_seconds: seconds,
            retransmits: self.sender.last().map(|sample| sample.retransmits),
            unsent_limit_bytes: (!is_download).then_some(UNSENT.bytes()),
            sender: std::mem::take(&mut self.sender),
            receiver: std::mem::take(&mut self.receiver),
            ..Stream::default()
        }
    }
}

/// One request, to its end.
async fn transfer(
    direction: LoadDirection,
    on: &Http2,
    targets: &Targets,
    received: &AtomicU64,
) -> Result<(), Problem> {
    let (target, payload) = match direction {
        LoadDirection::Download => (&targets.large, Payload::Nothing),
        LoadDirection::Upload => (&targets.upload, Payload::Endless),
    };
    let mut body = on.request(targets, target, payload).await?.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| super::failed(&error))?;
        received.fetch_add(frame.data_ref().map_or(0, |data| data.len() as u64), Ordering::Relaxed);
    }
    Ok(())
}

/// The measurement of the connections.
pub(super) fn measurement(
    direction: LoadDirection,
    loaded: Vec<Loaded>,
    server: &Server,
    started_unix_s: u64,
    seconds: f64,
) -> Measurement {
    let is_download = direction == LoadDirection::Download;
    let count = u32::try_from(loaded.len()).unwrap_or(1);
    let spec = TestSpec {
        target: server.address.ip().to_string(),
        direction: if is_download { Direction::Reverse } else { Direction::Forward },
        seconds,
        streams: count,
        limits_unsent: !is_download,
        ..TestSpec::default()
    };
    let mut unavailable = Vec::new();
    if is_download {
        unavailable.extend([
            Unavailable::SenderTimers,
            Unavailable::CongestionWindow,
            Unavailable::ReceiveWindow,
            Unavailable::Retransmissions,
            Unavailable::CongestionControl,
        ]);
        unavailable.sort_unstable();
    }
    let next_test = Action::Test(Box::new(spec.clone()), AlsoShows::Cause).command();
    let tool = "responsiveness".to_owned();
    let transfer = direction.name().to_owned();
    let streams = loaded.into_iter().zip(1..);
    Measurement {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        spec,
        host: host::facts::read(None),
        peer: tool.clone(),
        streams: streams.map(|(one, id)| one.into_stream(id, seconds)).collect(),
        tool: Some(ToolResult { tool, transfer, unavailable, next_test }),
        ..Measurement::default()
    }
}
