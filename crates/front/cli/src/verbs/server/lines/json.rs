//! Events as JSON: `longhaul.server-event/1`. Times are in seconds, rates in
//! bit/s, directions as seen from the server.

use super::{Datagrams, Suppressed, printable};
use crate::verbs::server::observer::kind;
use perf::ServerEvent;
use perf::server::Limits;
use serde_json::{Value, json};
use std::net::SocketAddr;
use units::{BitRate, ByteCount, Rtt};

pub(super) fn listening(
    address: SocketAddr,
    udp: bool,
    limits: &Limits,
    metrics: Option<SocketAddr>,
) -> Value {
    json!({
        "event": "listening",
        "address": address,
        "udp": udp,
        "metrics": metrics.map(|at| format!("http://{at}/metrics")),
        "limits": {
            "tests": limits.sessions,
            "tests_per_address": limits.sessions_per_address(),
            "streams": limits.streams,
            "seconds": limits.duration.as_secs_f64(),
            "bps": limits.rate.map(BitRate::bps),
            "bytes": limits.bytes.map(ByteCount::bytes),
        },
    })
}

pub(super) fn stopped() -> Value {
    json!({ "event": "stopped" })
}

pub(super) fn suppressed(counts: Suppressed) -> Value {
    let Suppressed { connections, tests, rows } = counts;
    let count = connections.saturating_add(tests).saturating_add(rows);
    json!({
        "event": "held_back",
        "count": count,
        "connections": connections,
        "tests": tests,
        "rows": rows,
    })
}

pub(super) fn dropped(count: u64) -> Value {
    json!({ "event": "left_out", "count": count })
}

pub(super) fn line(event: &ServerEvent, datagrams: &[Datagrams]) -> Value {
    match event {
        ServerEvent::Started { session, started } => {
            let (protocol, direction) = kind(started);
            let positive = |number: i64| (number > 0).then_some(number);
            json!({
                "event": "started",
                "test": session,
                "peer": started.peer,
                "client": printable(&started.client()),
                "protocol": protocol,
                "direction": direction,
                "streams": started.streams.len(),
                "seconds": positive(started.params.time),
                "bytes": positive(started.params.num),
                "stream_bps": positive(started.params.bandwidth),
                "notes": started.notes,
            })
        }
        ServerEvent::Interval { session, interval } => {
            let datagrams = interval.datagrams.map(|datagrams| {
                json!({
                    "packets": datagrams.packets,
                    "lost": datagrams.lost,
                    "out_of_order": datagrams.out_of_order,
                    "jitter_s": datagrams.jitter.secs_f64(),
                })
            });
            json!({
                "event": "interval",
                "test": session,
                "stream": interval.stream,
                "sending": interval.sending,
                "from_s": interval.from_s,
                "to_s": interval.to_s,
                "bytes": interval.bytes.bytes(),
                "bps": interval.rate.bps(),
                "retransmits": interval.retransmits,
                "cwnd_bytes": interval.cwnd.map(ByteCount::bytes),
                "rtt_s": interval.rtt.map(Rtt::secs_f64),
                "datagrams": datagrams,
                "omitted": interval.omitted,
            })
        }
        ServerEvent::Finished { session, peer, summary } => {
            let bps = |bytes: ByteCount| bytes.as_f64() * 8.0 / summary.seconds.max(1e-3);
            let datagrams: Vec<Value> = datagrams
                .iter()
                .map(|of| {
                    json!({
                        "sending": of.sending,
                        "packets": of.packets,
                        "lost": of.lost,
                        "jitter_s": of.jitter_s,
                    })
                })
                .collect();
            json!({
                "event": "finished",
                "test": session,
                "peer": peer,
                "seconds": summary.seconds,
                "sent_bytes": summary.sent.bytes(),
                "received_bytes": summary.received.bytes(),
                "sent_bps": bps(summary.sent),
                "received_bps": bps(summary.received),
                "datagrams": datagrams,
            })
        }
        ServerEvent::Failed { session, peer, why } => {
            json!({ "event": "failed", "test": session, "peer": peer, "why": printable(why) })
        }
        ServerEvent::Refused { peer, reason, why } => {
            let (reason, why) = (reason.name(), printable(why));
            json!({ "event": "refused", "peer": peer, "reason": reason, "why": why })
        }
        ServerEvent::Draining { sessions } => json!({ "event": "draining", "tests": sessions }),
    }
}
