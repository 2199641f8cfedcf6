//! A log of transfers with the server's times, for whoever compares what a client shows with its own
//! rule applied to them.

use crate::connection::Connection;
use crate::event::{TransferDirection, WebEvent};
use host::clock;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// The interval at which a download's acknowledged bytes are read.
const POLL: Duration = Duration::from_millis(1);
/// `TCP_ESTABLISHED` and `TCP_CLOSE_WAIT` (include/net/tcp_states.h): data can still be acknowledged.
const OPEN_STATES: [u8; 2] = [1, 8];

/// Where transfers are told, if anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransferLog(Option<SyncSender<WebEvent>>);

impl TransferLog {
    /// A log that tells the server's caller; one that is far behind misses some.
    pub(crate) fn to(events: SyncSender<WebEvent>) -> Self {
        TransferLog(Some(events))
    }

    /// Reports a download whose request came at `began` when its last byte is acknowledged. Reports
    /// nothing if that takes longer than `longest` or the connection ends.
    pub(super) fn download(
        &self,
        connection: &Connection,
        bytes: u64,
        began: Instant,
        longest: Duration,
    ) {
        let Some(events) = self.0.clone() else { return };
        let Some(before) = acknowledged(connection) else { return };
        let connection = connection.clone();
        tokio::spawn(async move {
            while began.elapsed() < longest {
                tokio::time::sleep(POLL).await;
                let Some(now) = acknowledged(&connection) else { return };
                if now.saturating_sub(before) >= bytes {
                    let event = event(&connection, TransferDirection::Download, bytes, began);
                    let _ = events.try_send(event);
                    return;
                }
            }
        });
    }

    /// Reports an upload whose last byte has arrived.
    pub(super) fn upload(&self, connection: &Connection, bytes: u64, began: Instant) {
        if let Some(events) = &self.0 {
            let event = event(connection, TransferDirection::Upload, bytes, began);
            let _ = events.try_send(event);
        }
    }
}

/// Acknowledged bytes of a connection; `None` once it has ended.
fn acknowledged(connection: &Connection) -> Option<u64> {
    let info = connection.tcp_info().ok()?;
    info.bytes_acked.filter(|_| OPEN_STATES.contains(&info.state))
}

fn event(
    connection: &Connection,
    direction: TransferDirection,
    bytes: u64,
    began: Instant,
) -> WebEvent {
    let seconds = clock::now().duration_since(began).as_secs_f64();
    let rtt = connection.tcp_info().ok().and_then(|info| info.min_rtt_us);
    WebEvent::Transferred {
        client: connection.client(),
        direction,
        bytes,
        seconds,
        min_rtt_ms: rtt.map(|us| f64::from(us) / 1e3),
    }
}
