//! One connection with its history.

use super::{
    Style, ink,
    line::{Line, block, labelled},
    shares,
    spark::sparks,
    watch::{compact, millis},
};
use record::{Seen, Shares, WatchedConnection};

/// Where curves begin: after the name and the latest value.
const CURVE: usize = 30;

/// Columns of the largest value, after its curve.
const MOST: usize = 16;

/// One figure over time; what is not known at a look is `None`.
type Figure<'a> = (&'a str, Vec<Option<f64>>, fn(f64) -> String);

/// What is known of a connection, and its looks as curves, oldest at the left.
#[must_use]
pub fn follow(
    connection: &WatchedConnection,
    seen: &[Seen],
    shares_of: impl Fn(&Seen, &Seen) -> Option<Shares>,
    style: &Style,
) -> String {
    let who = &connection.who;
    let program = who.program.as_deref().unwrap_or("-");
    let pid = who.pid.map_or_else(String::new, |pid| format!(" ({pid})"));
    let mut lines = vec![
        Line::new(style)
            .put(ink::STRONG, &format!("{program}{pid}"))
            .put(ink::PLAIN, &format!("  {} → {}", who.local, who.remote)),
        Line::new(style).put(ink::DIM, &facts(connection)),
    ];
    if let Some(why) = &connection.why {
        lines.extend(labelled(style, 0, (ink::STRONG, "Why"), 5, (ink::PLAIN, why)));
    }
    lines.push(Line::new(style));
    let each = |read: fn(&Seen) -> Option<f64>| seen.iter().map(read).collect::<Vec<_>>();
    let pairs = |read: &dyn Fn(&Seen, &Seen) -> Option<f64>| {
        let pair = |pair: &[Seen]| read(pair.first()?, pair.get(1)?);
        seen.windows(2).map(pair).collect::<Vec<_>>()
    };
    let rate = |read: fn(&Seen) -> u64| {
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
        ("sends", rate(|seen| seen.sent.acked_bytes), bits),
        ("receives", rate(|seen| seen.received.received_bytes), bits),
        ("round trip", seen.iter().map(|seen| us(seen.sent.rtt_us)).collect(), ms),
        ("congestion window", each(|seen| Some(seen.sent.cwnd_bytes as f64)), bytes),
        ("in flight", each(|seen| Some(seen.sent.in_flight_bytes as f64)), bytes),
        ("unsent", each(|seen| Some(seen.sent.unsent_bytes as f64)), bytes),
        ("unread", each(|seen| Some(seen.unread_bytes as f64)), bytes),
        ("peer's window", each(|seen| seen.sent.peer_window_bytes.map(|b| b as f64)), bytes),
        (
            "sent again",
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

/// What does not change much.
fn facts(connection: &WatchedConnection) -> String {
    let who = &connection.who;
    let mut text = format!(
        "{}, user {}, {}, {} sent again in all",
        connection.state,
        who.uid,
        who.congestion.as_deref().unwrap_or("congestion control unknown"),
        connection.retransmits_total
    );
    if let Some(least) = connection.min_rtt_ms {
        text += &format!(", least round trip {} ms", millis(least));
    }
    if let Some(bbr) = connection.bbr.filter(|bbr| bbr.bandwidth_bps.bps() > 0) {
        text += &format!(
            "; BBR's bandwidth {}, gains {:.2} and {:.2}",
            bbr.bandwidth_bps, bbr.pacing_gain, bbr.cwnd_gain
        );
    }
    text
}

fn limits(connection: &WatchedConnection, style: &Style) -> Line {
    let line = Line::new(style).put(ink::STRONG, "Limited by").to(CURVE);
    match &connection.shares {
        Some(last) => {
            let room = style.width.saturating_sub(CURVE + MOST).clamp(1, 60);
            shares::bar(line, last, room, style)
        }
        None => line.put(ink::DIM, "nothing was to be sent"),
    }
}

/// Name, latest value, curve, and the most there was.
fn curve(
    name: &str,
    values: &[Option<f64>],
    say: fn(f64) -> String,
    of_100: bool,
    style: &Style,
) -> Line {
    let room = style.width.saturating_sub(CURVE + MOST).max(1);
    let latest = values.last().copied().flatten();
    let recent = values.iter().skip(values.len().saturating_sub(room));
    let most = recent.flatten().copied().fold(0.0, f64::max);
    let scale = if of_100 { 100.0 } else { most };
    let line = Line::new(style)
        .to(2)
        .put(ink::DIM, name)
        .right(ink::STRONG, &latest.map_or_else(|| "-".to_owned(), say), CURVE - 1)
        .to(CURVE)
        .put(ink::run(1), &sparks(values.iter().copied(), scale, room, style));
    if most > 0.0 && !of_100 {
        return line.right(ink::DIM, &format!("≤ {}", say(most)), CURVE + room + MOST - 1);
    }
    line
}

/// `94.1 M`, to be followed by the unit.
fn spaced(value: f64) -> String {
    let text = compact(value);
    match text.strip_suffix(|c: char| c.is_ascii_alphabetic()) {
        Some(number) => format!("{number} {}", &text[number.len()..]),
        None => format!("{text} "),
    }
}
