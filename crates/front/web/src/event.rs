//! What happens in a server.

use report::untrusted;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use units::{BitRate, ByteCount};

/// The schema of a line of the log.
pub const WEB_EVENT_SCHEMA: &str = "longhaul.web-event/1";

/// Most characters of a line in words.
const MAX_LINE: usize = 500;

/// The direction of a transfer, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferDirection {
    /// From the server.
    Download,
    /// To it.
    Upload,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WebEvent {
    /// The server listens.
    Listening {
        /// Its address.
        address: SocketAddr,
        /// The page's URL, with the token.
        url: String,
    },
    /// The server listens for tests of responsiveness.
    ListeningForResponsiveness {
        /// Its address.
        address: SocketAddr,
        /// The URL of the configuration that clients ask for.
        url: String,
    },
    /// The server listens for WebTransport, which measures loss.
    ListeningForDatagrams {
        /// Its UDP address.
        address: SocketAddr,
    },
    /// The server has no WebTransport: loss is estimated from retransmissions.
    WithoutDatagrams {
        /// The reason.
        why: String,
    },
    /// The server serves metrics.
    ListeningForMetrics {
        /// Its address.
        address: SocketAddr,
    },
    /// A run has begun.
    RunStarted {
        /// Its ID.
        run: String,
        /// The client.
        client: SocketAddr,
    },
    /// A run has ended with a result.
    RunFinished {
        /// Its ID.
        run: String,
        /// The client.
        client: SocketAddr,
        /// Rate of the best download, bit/s.
        download_bps: Option<f64>,
        /// Rate of the best upload, bit/s.
        upload_bps: Option<f64>,
        /// The limit of the download.
        limit: Option<record::Limit>,
        /// Bytes of both directions.
        bytes: u64,
        /// Seconds from its beginning.
        seconds: f64,
    },
    /// A run ended without a result.
    RunFailed {
        /// Its ID.
        run: String,
        /// The client.
        client: SocketAddr,
        /// The reason.
        why: String,
    },
    /// A transfer of another speed test's client has ended, where these are logged.
    Transferred {
        /// The client.
        client: SocketAddr,
        /// Its direction.
        direction: TransferDirection,
        /// Bytes of the body.
        bytes: u64,
        /// Seconds from the request's header to the acknowledgement of a download's last byte, or to
        /// the arrival of an upload's.
        seconds: f64,
        /// The connection's minimum RTT, ms.
        min_rtt_ms: Option<f64>,
    },
    /// A client was refused.
    Refused {
        /// The client.
        client: SocketAddr,
        /// The reason.
        why: String,
    },
    /// New runs are refused, and the server ends with its last one.
    Draining {
        /// Runs in progress.
        runs: usize,
    },
    /// The server has ended.
    Stopped,
}

/// In one line.
impl fmt::Display for WebEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |bps: &Option<f64>| match bps {
            Some(bps) => BitRate::from_bps(*bps as u64).to_string(),
            None => "-".to_owned(),
        };
        let text = match self {
            WebEvent::Listening { address, url } => format!("listening on {address}: open {url}"),
            WebEvent::ListeningForResponsiveness { address, url } => {
                format!("listening for responsiveness tests on {address}: {url}")
            }
            WebEvent::ListeningForDatagrams { address } => {
                format!("listening for WebTransport on UDP {address}")
            }
            WebEvent::WithoutDatagrams { why } => format!("no WebTransport: {why}"),
            WebEvent::ListeningForMetrics { address } => {
                format!("metrics on http://{address}/metrics")
            }
            WebEvent::RunStarted { run, client } => format!("run {}: {client}", short(run)),
            WebEvent::RunFinished {
                run, download_bps, upload_bps, limit, bytes, seconds, ..
            } => {
                let limit = limit.map_or("unknown", record::Limit::name);
                format!(
                    "run {}: download {}, upload {}, limit {limit}; {} in {seconds:.1} s",
                    short(run),
                    rate(download_bps),
                    rate(upload_bps),
                    ByteCount::from_bytes(*bytes),
                )
            }
            WebEvent::RunFailed { run, client, why } => {
                format!("run {}: {client}: {why}", short(run))
            }
            WebEvent::Transferred { client, direction, bytes, seconds, .. } => {
                let direction = match direction {
                    TransferDirection::Download => "download",
                    TransferDirection::Upload => "upload",
                };
                let bytes = ByteCount::from_bytes(*bytes);
                format!("{client}: {direction} of {bytes} in {seconds:.3} s")
            }
            WebEvent::Refused { client, why } => format!("refused {client}: {why}"),
            WebEvent::Draining { runs } => format!("draining: {runs} runs in progress"),
            WebEvent::Stopped => "stopped".to_owned(),
        };
        f.write_str(&text)
    }
}

/// Who knows the whole ID may open flows of a run.
fn short(run: &str) -> &str {
    run.get(..8).unwrap_or(run)
}

/// A line of the log.
#[derive(Debug, Clone, Serialize)]
pub struct WebLine<'a> {
    /// [`WEB_EVENT_SCHEMA`].
    pub schema: &'static str,
    /// Seconds since 1970-01-01 UTC.
    pub time: f64,
    /// The event.
    #[serde(flatten)]
    pub event: &'a WebEvent,
}

impl<'a> WebLine<'a> {
    /// A line for an event that happens now.
    #[must_use]
    pub fn now(event: &'a WebEvent) -> Self {
        let time = host::clock::unix_time().as_secs_f64();
        WebLine { schema: WEB_EVENT_SCHEMA, time, event }
    }

    /// The line: in words, or as JSON.
    #[must_use]
    pub fn text(&self, as_json: bool) -> String {
        match as_json {
            true => serde_json::to_string(self).unwrap_or_default(),
            false => untrusted::excerpt(&self.event.to_string(), MAX_LINE),
        }
    }
}
