//! A client's test as one document: `--json`.

use crate::failure::Failure;
use probe::iperf2::client::ClientConfig;
use probe::iperf2::{Event, Row};
use serde_json::{Value, json};

/// What has been told so far.
pub(super) struct Document {
    asked: Value,
    streams: Vec<Value>,
    intervals: Vec<Value>,
    totals: Vec<Value>,
    reports: Vec<Value>,
}

impl Document {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let asked = json!({
            "host": config.host,
            "port": config.port,
            "protocol": if config.udp { "UDP" } else { "TCP" },
            "mode": format!("{:?}", config.mode),
            "streams": config.streams,
        });
        let none = Vec::new;
        Document { asked, streams: none(), intervals: none(), totals: none(), reports: none() }
    }

    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Connected { label, local, peer, tcp, .. } => self.streams.push(json!({
                "id": label.id,
                "local": local.to_string(),
                "peer": peer.to_string(),
                "mss_bytes": tcp.map(|tcp| tcp.mss),
                "handshake_rtt_us": tcp.map(|tcp| tcp.rtt_us),
            })),
            Event::Row(row) if row.whole => self.totals.push(object(row)),
            Event::Row(row) => self.intervals.push(object(row)),
            Event::Report { label, report, .. } => self.reports.push(json!({
                "id": label.id,
                "seconds": report.time.as_secs_f64(),
                "bytes": report.bytes,
                "datagrams": report.datagrams,
                "lost": report.lost,
                "late": report.late,
                "jitter_us": report.jitter.as_secs_f64() * 1e6,
            })),
            _ => {}
        }
    }

    pub(super) fn print(&self) -> Result<String, Failure> {
        let document = json!({
            "schema": "longhaul.iperf2/1",
            "asked": self.asked,
            "streams": self.streams,
            "intervals": self.intervals,
            "totals": self.totals,
            "server_reports": self.reports,
        });
        serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(Failure::work)
    }
}

/// A row; sums have the id `null`.
fn object(row: &Row) -> Value {
    let seconds = row.to.saturating_sub(row.from).as_secs_f64();
    let rate = if seconds > 0.0 { row.bytes as f64 * 8.0 / seconds } else { 0.0 };
    json!({
        "id": row.label.map(|label| label.id),
        "sent": row.sending,
        "from_s": row.from.as_secs_f64(),
        "to_s": row.to.as_secs_f64(),
        "bytes": row.bytes,
        "rate_bps": rate,
        "datagrams": row.received.map(|received| received.datagrams),
        "lost": row.received.map(|received| received.lost),
        "late": row.received.map(|received| received.late),
        "jitter_us":
            row.received.and_then(|received| received.jitter).map(|j| j.as_secs_f64() * 1e6),
    })
}
