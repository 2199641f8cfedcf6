//! Events as text.

use super::{Datagrams, Suppressed, printable};
use perf::server::Limits;
use perf::{ServerEvent, Started, Summary};
use report::terminal::{IntervalTable, Style};
use std::net::SocketAddr;
use units::{BitRate, ByteCount, Rtt, percent_with, share};

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
        "Listening on {address}; limits: {tests} concurrent tests, {each}; stop with Ctrl-C"
    )];
    if !udp {
        lines.push("UDP disabled: another program uses this UDP port".to_owned());
    }
    lines.extend(metrics.map(|at| format!("Metrics on http://{at}/metrics")));
    lines
}

/// Counts of suppressed lines.
pub(super) fn suppressed(counts: Suppressed) -> String {
    let Suppressed { connections, tests, rows } = counts;
    let words: Vec<String> = [
        (connections, "connections that failed or were refused"),
        (tests, "tests"),
        (rows, "interval reports"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    format!("log rate limit: suppressed {}", words.join(", "))
}

pub(super) fn line(
    event: &ServerEvent,
    both: bool,
    datagrams: &[Datagrams],
    table: &mut IntervalTable,
    style: &Style,
) -> Option<String> {
    let line = words(event, both, datagrams, table, style)?;
    // The only character of the units that is not ASCII.
    Some(if style.unicode { line } else { line.replace('µ', "u") })
}

fn words(
    event: &ServerEvent,
    both: bool,
    datagrams: &[Datagrams],
    table: &mut IntervalTable,
    style: &Style,
) -> Option<String> {
    Some(match event {
        ServerEvent::Started { session, started } => started_line(*session, started),
        ServerEvent::Interval { session, interval } => {
            let direction = match (both, interval.sending) {
                (false, _) => "",
                (true, true) => " sending",
                (true, false) => " receiving",
            };
            format!("test {session}{direction}: {}", table.row(interval, style)?)
        }
        ServerEvent::Finished { session, summary, .. } => {
            format!("test {session}: {}", transferred(summary, datagrams))
        }
        ServerEvent::Failed { session: Some(session), why, .. } => {
            format!("test {session}: {}", printable(why))
        }
        ServerEvent::Failed { session: None, peer, why }
        | ServerEvent::Refused { peer, why, .. } => format!("{peer}: {}", printable(why)),
        ServerEvent::Draining { sessions: 0 } => {
            "Draining: no tests are running; exiting".to_owned()
        }
        ServerEvent::Draining { sessions } => {
            let tests =
                if *sessions == 1 { "1 test".to_owned() } else { format!("{sessions} tests") };
            format!(
                "Draining: {tests} still running, new clients are refused; Ctrl-C stops at once"
            )
        }
    })
}

fn started_line(session: u64, started: &Started) -> String {
    let params = &started.params;
    let direction = match (params.bidirectional, params.reverse) {
        (true, _) => "bidirectional",
        (_, true) => "sending",
        _ => "receiving",
    };
    let kind = if params.udp { "UDP " } else { "" };
    let streams = match started.streams.len() {
        1 => format!("1 {kind}stream"),
        count => format!("{count} {kind}streams"),
    };
    let mut line = format!(
        "test {session}: {} ({}), {direction} over {streams}",
        started.peer,
        printable(&started.client())
    );
    if let Some(rate) = u64::try_from(params.bandwidth).ok().filter(|rate| *rate > 0) {
        line.push_str(&format!(" of {}", BitRate::from_bps(rate)));
    }
    line
}

fn transferred(summary: &Summary, datagrams: &[Datagrams]) -> String {
    let total = |sending: bool, bytes: ByteCount| {
        if bytes == ByteCount::ZERO {
            return None;
        }
        let rate = BitRate::from_bps_f64(bytes.as_f64() * 8.0 / summary.seconds.max(1e-3));
        let done = if sending { "sent" } else { "received" };
        let mut words = format!("{done} {} in {:.2} s, {rate}", bytes.decimal(), summary.seconds);
        if let Some(of) = datagrams.iter().find(|of| of.sending == sending) {
            words.push_str(", ");
            words.push_str(&lost(of.lost, of.packets, Rtt::from_secs(of.jitter_s)));
        }
        Some(words)
    };
    let words: Vec<String> =
        [total(true, summary.sent), total(false, summary.received)].into_iter().flatten().collect();
    if words.is_empty() { "no data transferred".to_owned() } else { words.join("; ") }
}

fn lost(lost: u64, packets: u64, jitter: Rtt) -> String {
    let share = percent_with(share(lost, packets), 3);
    format!("lost {lost} of {packets} ({share}), jitter {jitter}")
}
