//! Events in words.

use super::{Datagrams, printable};
use crate::verbs::test;
use probe::server::Limits;
use probe::{ServerEvent, Started, Summary};
use report::terminal::{self, Style};
use std::net::SocketAddr;
use units::{BitRate, ByteCount, Rtt};

pub(super) fn listening(
    address: SocketAddr,
    udp: bool,
    limits: &Limits,
    metrics: Option<SocketAddr>,
) -> Vec<String> {
    let mut each = format!("{} s and {} streams each", limits.duration.as_secs(), limits.streams);
    if let Some(rate) = limits.rate {
        each = format!("{rate}, {each}");
    }
    if let Some(bytes) = limits.bytes {
        each = format!("{bytes}, {each}");
    }
    let tests = limits.sessions;
    let mut lines = vec![format!(
        "Listening on {address}; at most {tests} tests at a time, {each}; Ctrl-C ends"
    )];
    if !udp {
        lines.push("TCP only: another program has this UDP port".to_owned());
    }
    lines.extend(metrics.map(|at| format!("Metrics on http://{at}/metrics")));
    lines
}

pub(super) fn line(
    event: &ServerEvent,
    both: bool,
    datagrams: &[Datagrams],
    style: &Style,
) -> String {
    let line = words(event, both, datagrams, style);
    // The one letter of our units beyond ASCII.
    if style.unicode { line } else { line.replace('µ', "u") }
}

fn words(event: &ServerEvent, both: bool, datagrams: &[Datagrams], style: &Style) -> String {
    match event {
        ServerEvent::Started { session, started } => begun(*session, started),
        ServerEvent::Interval { session, interval } => {
            let way = match (both, interval.sending) {
                (false, _) => "",
                (true, true) => " sending",
                (true, false) => " receiving",
            };
            format!(
                "test {session}{way}: {}",
                terminal::interval_row(&test::row(interval, false), style)
            )
        }
        ServerEvent::Finished { session, summary, .. } => {
            format!("test {session}: {}", moved(summary, datagrams))
        }
        ServerEvent::Failed { session: Some(session), why, .. } => {
            format!("test {session}: {}", printable(why))
        }
        ServerEvent::Failed { session: None, peer, why }
        | ServerEvent::Refused { peer, why, .. } => format!("{peer}: {}", printable(why)),
        ServerEvent::Draining { sessions: 0 } => "No test runs; the server ends".to_owned(),
        ServerEvent::Draining { sessions } => {
            let tests =
                if *sessions == 1 { "1 test".to_owned() } else { format!("{sessions} tests") };
            format!("No new clients are taken; {tests} may finish; Ctrl-C ends at once")
        }
    }
}

fn begun(session: u64, started: &Started) -> String {
    let params = &started.params;
    let way = match (params.bidirectional, params.reverse) {
        (true, _) => "both ways",
        (_, true) => "sending",
        _ => "receiving",
    };
    let kind = if params.udp { "UDP " } else { "" };
    let streams = match started.streams.len() {
        1 => format!("1 {kind}stream"),
        count => format!("{count} {kind}streams"),
    };
    let mut line = format!(
        "test {session}: {} ({}), {way} over {streams}",
        started.peer,
        printable(&started.client())
    );
    if let Some(rate) = u64::try_from(params.bandwidth).ok().filter(|rate| *rate > 0) {
        line.push_str(&format!(" of {}", BitRate::from_bps(rate)));
    }
    line
}

fn moved(summary: &Summary, datagrams: &[Datagrams]) -> String {
    let each = |sending: bool, bytes: ByteCount| {
        if bytes == ByteCount::ZERO {
            return None;
        }
        let rate = BitRate::from_bps_f64(bytes.as_f64() * 8.0 / summary.seconds.max(1e-3));
        let done = if sending { "sent" } else { "received" };
        let mut words = format!("{done} {bytes} in {:.2} s, {rate}", summary.seconds);
        if let Some(of) = datagrams.iter().find(|of| of.sending == sending) {
            words.push_str(", ");
            words.push_str(&lost(of.lost, of.packets, Rtt::from_secs(of.jitter_s)));
        }
        Some(words)
    };
    let words: Vec<String> =
        [each(true, summary.sent), each(false, summary.received)].into_iter().flatten().collect();
    if words.is_empty() { "nothing passed".to_owned() } else { words.join("; ") }
}

fn lost(lost: u64, packets: u64, jitter: Rtt) -> String {
    let percent = 100.0 * lost as f64 / (packets.max(1) as f64);
    let percent = if lost == 0 || percent >= 10.0 || percent.fract() == 0.0 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.2}").trim_end_matches('0').to_owned()
    };
    format!("lost {lost} of {packets} ({percent} %), jitter {jitter}")
}
