//! Events as text.

use super::{Running, copies};
use longhaul::server::{HeldBack, Listening, ServerEvent, TestFinished, TestStarted};
use record::Interval;
use report::terminal::Style;
use units::{BitRate, ByteCount, Rtt, percent_with, share};

pub(super) fn listening(of: &Listening) -> Vec<String> {
    let limits = &of.limits;
    let mut each = format!("{} s and {} streams each", limits.seconds, limits.streams);
    if let Some(rate) = limits.bps {
        each = format!("{}, {each}", BitRate::from_bps(rate));
    }
    if let Some(bytes) = limits.bytes {
        each = format!("{}, {each}", ByteCount::from_bytes(bytes));
    }
    let (address, tests) = (of.address, limits.tests);
    let mut lines = vec![format!(
        "Listening on {address}; limits: {tests} concurrent tests, {each}; stop with Ctrl-C"
    )];
    if !of.udp {
        lines.push("UDP disabled: another program uses this UDP port".to_owned());
    }
    lines.extend(of.metrics.as_ref().map(|page| format!("Metrics on {page}")));
    lines
}

/// Counts of suppressed lines.
fn suppressed(counts: HeldBack) -> String {
    let HeldBack { connections, tests, rows, .. } = counts;
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

pub(super) fn interval(
    test: u64,
    interval: &Interval,
    running: &mut Running,
    style: &Style,
) -> Option<String> {
    let direction = match (running.both, interval.sending) {
        (false, _) => "",
        (true, true) => " sending",
        (true, false) => " receiving",
    };
    Some(format!("test {test}{direction}: {}", running.table.row(interval, style)?))
}

pub(super) fn line(event: &ServerEvent) -> Option<String> {
    Some(match event {
        ServerEvent::Started(started) => started_line(started),
        ServerEvent::Finished(finished) => {
            format!("test {}: {}", finished.test, transferred(finished))
        }
        ServerEvent::Failed { test: Some(test), why, .. } => format!("test {test}: {why}"),
        ServerEvent::Failed { test: None, peer, why } | ServerEvent::Refused { peer, why, .. } => {
            format!("{peer}: {why}")
        }
        ServerEvent::Draining { tests: 0 } => "Draining: no tests are running; exiting".to_owned(),
        ServerEvent::Draining { tests } => {
            let tests = if *tests == 1 { "1 test".to_owned() } else { format!("{tests} tests") };
            format!(
                "Draining: {tests} still running, new clients are refused; Ctrl-C stops at once"
            )
        }
        &ServerEvent::HeldBack(counts) => suppressed(counts),
        ServerEvent::LeftOut { count } => {
            format!("dropped {count} log lines: the reader is too slow")
        }
        event => return copies::line(event),
    })
}

fn started_line(started: &TestStarted) -> String {
    let direction = match started.direction {
        "both" => "bidirectional",
        "send" => "sending",
        _ => "receiving",
    };
    let kind = if started.protocol == "udp" { "UDP " } else { "" };
    let streams = match started.streams.len() {
        1 => format!("1 {kind}stream"),
        count => format!("{count} {kind}streams"),
    };
    let mut line = format!(
        "test {}: {} ({}), {direction} over {streams}",
        started.test, started.peer, started.client
    );
    if let Some(rate) = started.stream_bps.and_then(|rate| u64::try_from(rate).ok()) {
        line.push_str(&format!(" of {}", BitRate::from_bps(rate)));
    }
    line
}

fn transferred(finished: &TestFinished) -> String {
    let total = |sending: bool, bytes: u64, bps: f64| {
        if bytes == 0 {
            return None;
        }
        let (bytes, rate) = (ByteCount::from_bytes(bytes), BitRate::from_bps_f64(bps));
        let done = if sending { "sent" } else { "received" };
        let mut words = format!("{done} {} in {:.2} s, {rate}", bytes.decimal(), finished.seconds);
        if let Some(of) = finished.datagrams.iter().find(|of| of.sending == sending) {
            words.push_str(", ");
            words.push_str(&lost(of.lost, of.packets, Rtt::from_secs(of.jitter_s)));
        }
        Some(words)
    };
    let sent = total(true, finished.sent_bytes, finished.sent_bps);
    let received = total(false, finished.received_bytes, finished.received_bps);
    let words: Vec<String> = [sent, received].into_iter().flatten().collect();
    if words.is_empty() { "no data transferred".to_owned() } else { words.join("; ") }
}

fn lost(lost: u64, packets: u64, jitter: Rtt) -> String {
    let share = percent_with(share(lost, packets), 3);
    format!("lost {lost} of {packets} ({share}), jitter {jitter}")
}
