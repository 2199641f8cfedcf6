//! One connection and its history.

use super::{
    Style,
    line::{Line, block, labelled},
    shares,
    sparkline::sparkline,
    style,
    watch::{compact, millis},
};
use crate::wording;
use record::{ConnectionSample, Shares, WatchedConnection};

/// Column of the curves, after the name and the latest value.
const CURVE: usize = 30;

/// Columns for the maximum, after the curve.
const MAX_WIDTH: usize = 16;

/// One figure over time; unknown values are `None`.
type Figure<'a> = (&'a str, Vec<Option<f64>>, fn(f64) -> String);

/// The state of a connection, and its samples as curves, oldest at the left.
#[must_use]
pub fn follow(
    connection: &WatchedConnection,
    samples: &[ConnectionSample],
    shares_of: impl Fn(&ConnectionSample, &ConnectionSample) -> Option<Shares>,
    style: &Style,
) -> String {
    let who = &connection.who;
    let program = who.program.as_deref().unwrap_or("-");
    let pid = who.pid.map_or_else(String::new, |pid| format!(" ({pid})"));
    let mut lines = vec![
        Line::new(style)
            .put(style::STRONG, &format!("{program}{pid}"))
            .put(style::PLAIN, &format!("  {} → {}", who.local, who.remote)),
    ];
    lines.extend(labelled(style, 0, (style::PLAIN, ""), 0, (style::DIM, &facts(connection))));
    if let Some(why) = &connection.why {
        lines.extend(labelled(style, 0, (style::STRONG, "Why"), 5, (style::PLAIN, why)));
    }
    lines.push(Line::new(style));
    let each =
        |read: fn(&ConnectionSample) -> Option<f64>| samples.iter().map(read).collect::<Vec<_>>();
    let pairs = |read: &dyn Fn(&ConnectionSample, &ConnectionSample) -> Option<f64>| {
        let pair = |pair: &[ConnectionSample]| read(pair.first()?, pair.get(1)?);
        samples.windows(2).map(pair).collect::<Vec<_>>()
    };
    let rate = |read: fn(&ConnectionSample) -> u64| {
        pairs(&move |a, b| {
            let seconds = b.sent.t_s - a.sent.t_s;
            let bits = read(b).saturating_sub(read(a)) as f64 * 8.0;
            (seconds > 0.0).then(|| bits / seconds)
        })
    };
    let us = |us: u32| (us > 0).then(|| f64::from(us) / 1e3);
    let bits = |value: f64| format!("{}bit/s", spaced(value));
    let bytes = |value: f64| format!("{}B", spaced(value));
    let ms = |value: f64| format!("{} ms", millis(value));
    let percent = |value: f64| format!("{value:.0} %");
    let share = |read: fn(&Shares) -> f64| {
        pairs(&|a, b| shares_of(a, b).map(|shares| read(&shares) * 100.0))
    };
    let figures: [Figure<'_>; 13] = [
        ("send rate", rate(|sample| sample.sent.acked_bytes), bits),
        ("receive rate", rate(|sample| sample.received.received_bytes), bits),
        ("RTT", samples.iter().map(|sample| us(sample.sent.rtt_us)).collect(), ms),
        ("congestion window", each(|sample| Some(sample.sent.cwnd_bytes as f64)), bytes),
        ("in flight", each(|sample| Some(sample.sent.in_flight_bytes as f64)), bytes),
        ("unsent", each(|sample| Some(sample.sent.unsent_bytes as f64)), bytes),
        ("unread", each(|sample| Some(sample.unread_bytes as f64)), bytes),
        (
            "peer receive window",
            each(|sample| sample.sent.peer_window_bytes.map(|b| b as f64)),
            bytes,
        ),
        (
            "retransmits",
            pairs(&|a, b| Some(b.sent.retransmits.saturating_sub(a.sent.retransmits) as f64)),
            compact,
        ),
        ("receive window", share(|shares| shares.receive_window), percent),
        ("send buffer", share(|shares| shares.send_buffer), percent),
        ("network", share(|shares| shares.network), percent),
        ("application", share(|shares| shares.application), percent),
    ];
    for (at, (name, values, say)) in figures.iter().enumerate() {
        if at == 9 {
            lines.push(Line::new(style));
            lines.push(limits(connection, style));
        }
        lines.push(curve(name, values, *say, at >= 9, style));
    }
    block(lines)
}

/// The facts that rarely change.
fn facts(connection: &WatchedConnection) -> String {
    let who = &connection.who;
    let mut text = format!(
        "{}, uid {}, {}, {}",
        connection.state,
        who.uid,
        who.congestion.as_deref().unwrap_or("congestion control unknown"),
        wording::counted(connection.retransmits_total, "retransmit")
    );
    if let Some(least) = connection.min_rtt_ms {
        text += &format!(", min RTT {} ms", millis(least));
    }
    if let Some(bbr) = connection.bbr.filter(|bbr| bbr.bandwidth_bps.bps() > 0) {
        text += &format!(
            "; BBR bandwidth {}, pacing gain {:.2}, cwnd gain {:.2}",
            bbr.bandwidth_bps, bbr.pacing_gain, bbr.cwnd_gain
        );
    }
    text
}

fn limits(connection: &WatchedConnection, style: &Style) -> Line {
    let line = Line::new(style).put(style::STRONG, "Limited by").to(CURVE);
    match &connection.shares {
        Some(last) => {
            let room = style.width.saturating_sub(CURVE + MAX_WIDTH).clamp(1, 60);
            shares::bar(line, last, room, style)
        }
        None => line.put(style::DIM, "nothing to send"),
    }
}

/// Name, latest value, curve, maximum.
fn curve(
    name: &str,
    values: &[Option<f64>],
    say: fn(f64) -> String,
    of_100: bool,
    style: &Style,
) -> Line {
    let room = style.width.saturating_sub(CURVE + MAX_WIDTH).max(1);
    let latest = values.last().copied().flatten();
    let recent = values.iter().skip(values.len().saturating_sub(room));
    let max = recent.flatten().copied().fold(0.0, f64::max);
    let scale = if of_100 { 100.0 } else { max };
    let line = Line::new(style)
        .to(2)
        .put(style::DIM, name)
        .right(style::STRONG, &latest.map_or_else(|| "-".to_owned(), say), CURVE - 1)
        .to(CURVE)
        .put(style::run(1), &sparkline(values.iter().copied(), scale, room, style));
    if max > 0.0 && !of_100 {
        return line.right(style::DIM, &format!("≤ {}", say(max)), CURVE + room + MAX_WIDTH - 1);
    }
    line
}

/// `94.1 M`, ready for the unit.
fn spaced(value: f64) -> String {
    let text = compact(value);
    match text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}", &text[number.len()..]),
        None => format!("{text} "),
    }
}
