//! The options that would accelerate a transfer: a table, the cheapest first, then why not or how.

use super::doctor::{SHELL, pasted};
use super::tune::row;
use super::{
    Style,
    line::{Line, block, labelled},
    style,
};
use record::{
    BOOST_WORTH, BoostKind, BoostOption, BoostPath, BoostPlan, BoostSource, BoostTransfer,
    PredictionInterval, TrafficShares,
};
use units::{BitRate, percent};

/// Right ends of goodput, interval and factor.
const COLUMNS: [usize; 3] = [30, 56, 68];

/// The whole plan.
#[must_use]
pub fn boost_plan(plan: &BoostPlan, style: &Style) -> String {
    let source = match &plan.source {
        BoostSource::Link(link) => format!("the path {link}"),
        BoostSource::File(file) => file.clone(),
        BoostSource::Host(host) => format!("a test to {host}"),
    };
    let mut lines = row(style, "Plan for", style::PLAIN, &source);
    if let Some(traffic) = &plan.traffic {
        lines.extend(row(style, "Traffic", style::PLAIN, &shares(traffic)));
    }
    for transfer in &plan.transfers {
        lines.extend(of_transfer(transfer, style));
    }
    if plan.transfers.is_empty() {
        lines.extend(row(style, "TCP", style::WARN, "no transfer over TCP to accelerate"));
    }
    for note in &plan.notes {
        lines.extend(row(style, "Note", style::DIM, note));
    }
    block(lines)
}

/// The shares of a capture's bytes.
fn shares(of: &TrafficShares) -> String {
    let mut parts = vec![format!("{} of {} over TCP", percent(of.tcp), of.bytes.decimal())];
    if of.quic > 0.0 {
        parts.push(format!("{} QUIC, which no pair splits", percent(of.quic)));
    }
    if of.other_udp > 0.0 {
        parts.push(format!("{} other UDP", percent(of.other_udp)));
    }
    if of.parallel_tcp > 0.0 {
        let share = percent(of.parallel_tcp);
        parts.push(format!("{share} in parallel connections already, which gain less"));
    }
    if of.encrypted_tcp > 0.0 {
        parts.push(format!("{} encrypted, which does not compress", percent(of.encrypted_tcp)));
    }
    parts.join("; ")
}

fn of_transfer(transfer: &BoostTransfer, style: &Style) -> Vec<Line> {
    let mut lines = vec![Line::new(style)];
    if !transfer.name.is_empty() {
        lines.extend(row(style, "Transfer", style::STRONG, &transfer.name));
    }
    lines.extend(row(style, "Path", style::PLAIN, &path(&transfer.path)));
    if let Some(finding) = &transfer.finding {
        lines.extend(row(style, "Finding", style::PLAIN, finding));
    }
    lines.push(Line::new(style));
    let mut head = Line::new(style).put(style::DIM, "Option");
    for (title, end) in ["Goodput", "Interval", "Factor"].into_iter().zip(COLUMNS) {
        head = head.right(style::DIM, title, end);
    }
    lines.push(head);
    for option in &transfer.options {
        lines.push(figures(option, transfer.recommended == Some(option.kind), style));
        lines.extend(why(option, style));
    }
    lines.push(Line::new(style));
    let limited = limited_programs(transfer);
    if !limited.is_empty() {
        lines.extend(row(style, "Programs", style::PLAIN, &limited));
    }
    lines.extend(row(style, "Choose", style::STRONG, &advice(transfer)));
    lines
}

/// The recommended option; without one, those with a condition that gain nevertheless.
fn advice(transfer: &BoostTransfer) -> String {
    if let Some(kind) = transfer.recommended {
        return format!("{}: the cheapest option within a tenth of the best", kind.name());
    }
    let gains = |one: &&BoostOption| {
        one.reason.is_none() && one.factor.is_some_and(|factor| factor.expected >= BOOST_WORTH)
    };
    let gaining: Vec<String> = transfer.options.iter().filter(gains).map(conditional).collect();
    match gaining.is_empty() {
        true => "no option brings a predicted gain".to_owned(),
        false => format!("none for every transfer, but {}", gaining.join("; ")),
    }
}

/// An option that is not recommended, with its condition.
fn conditional(option: &BoostOption) -> String {
    let condition = match option.kind {
        BoostKind::CompressedPair => "for data that shrinks by this ratio",
        BoostKind::Edge => "for cached objects",
        BoostKind::Route => "behind a window that remains the limit",
        _ => "where it is possible",
    };
    let factor = option.factor.map_or(1.0, |factor| factor.expected);
    format!("{} ({}), {condition}", option.kind.name(), times(factor))
}

/// The programs whose own window carries less than the bottleneck rate.
fn limited_programs(transfer: &BoostTransfer) -> String {
    let limited: Vec<String> = transfer
        .programs
        .iter()
        .filter(|one| one.limits)
        .map(|one| format!("{}: {} ({} in flight)", one.name, one.goodput_bps, one.window_bytes))
        .collect();
    match limited.is_empty() {
        true => String::new(),
        false => format!(
            "limited by a window of their own, on one connection and boosted or not: {}",
            limited.join("; ")
        ),
    }
}

fn path(path: &BoostPath) -> String {
    let mut parts = Vec::new();
    parts.push(match &path.rate_bps {
        Some(rate) => format!("{} of TCP payload", rate.expected),
        None => "unknown rate".to_owned(),
    });
    if let Some(rtt) = &path.rtt_ms {
        let ms = |ms: f64| units::significant(ms, 3);
        parts.push(match rtt.low < rtt.high {
            true => format!("RTT {} to {} ms", ms(rtt.low), ms(rtt.high)),
            false => format!("RTT {} ms", ms(rtt.expected)),
        });
    }
    parts.push(match &path.loss {
        Some(loss) => format!("loss {}", percent(loss.expected.fraction())),
        None => "unknown loss".to_owned(),
    });
    parts.extend(path.congestion.clone());
    parts.extend(path.window_bytes.map(|window| format!("a window of {window}")));
    parts.extend(path.send_buffer.map(|buffer| match buffer.is_assumed {
        true => format!("a send buffer of {} (assumed: Linux's default)", buffer.bytes),
        false => format!("a send buffer of {}", buffer.bytes),
    }));
    let program = path.program_window_bytes;
    parts.extend(program.map(|window| format!("{window} in flight by the program")));
    if path.streams > 1 {
        parts.push(format!("{} connections", path.streams));
    }
    parts.join(", ")
}

fn figures(option: &BoostOption, is_recommended: bool, style: &Style) -> Line {
    let tone = if is_recommended { style::STRONG } else { style::PLAIN };
    let line = Line::new(style).put(tone, option.kind.name());
    let (Some(rate), Some(factor)) = (&option.goodput_bps, &option.factor) else {
        return line.right(style::DIM, "no prediction", COLUMNS[0]);
    };
    line.right(tone, &rate.expected.to_string(), COLUMNS[0])
        .right(style::DIM, &range(rate), COLUMNS[1])
        .right(tone, &times(factor.expected), COLUMNS[2])
}

fn range(rate: &PredictionInterval<BitRate>) -> String {
    format!("{} to {}", rate.low, rate.high)
}

fn times(factor: f64) -> String {
    let digits = if factor < 9.95 { 1 } else { 0 };
    format!("x {factor:.digits$}")
}

/// Why there is no gain, or what the option is and its commands.
fn why(option: &BoostOption, style: &Style) -> Vec<Line> {
    let text = match (&option.object, option.reason) {
        (_, Some(reason)) => reason.sentence().to_owned(),
        (Some(object), None) => format!(
            "{}; {} in {} s instead of {} s",
            option.about,
            object.bytes.decimal(),
            units::significant(object.then_s, 3),
            units::significant(object.now_s, 3)
        ),
        (None, None) => option.about.clone(),
    };
    let mut lines = labelled(style, 2, (style::DIM, ""), 4, (style::DIM, &text));
    if let Some(needed) = option.needed_send_buffer {
        let needs = format!(
            "the send buffer limits it; the path needs {needed} (third value of tcp_wmem on the \
             sending host, which longhaul tune plan sets)"
        );
        lines.extend(labelled(style, 2, (style::DIM, ""), 4, (style::DIM, &needs)));
    }
    if option.kind == BoostKind::CompressedPair && option.reason.is_some() {
        lines.extend(labelled(style, 2, (style::DIM, ""), 4, (style::DIM, &option.about)));
    }
    lines.extend(option.commands.iter().flat_map(|command| pasted(command, SHELL, style)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{BoostProgram, BoostReason, BoostSendBuffer, TrafficShares};
    use units::{ByteCount, LossRatio};

    fn option(kind: BoostKind, mbit: u64, factor: f64, reason: Option<BoostReason>) -> BoostOption {
        let rate = BitRate::from_bps(mbit * 1_000_000);
        let exact = |of| PredictionInterval { expected: of, low: of, high: of };
        BoostOption {
            kind,
            goodput_bps: Some(exact(rate)),
            factor: Some(PredictionInterval { expected: factor, low: factor, high: factor }),
            object: None,
            reason,
            needed_send_buffer: None,
            about: "a box near each host".to_owned(),
            commands: vec!["longhaul boost pair --far FAR".to_owned()],
        }
    }

    #[test]
    fn options_are_rows_with_a_reason_or_a_command() {
        let none = LossRatio::NONE;
        let transfer = BoostTransfer {
            name: "stream 3".to_owned(),
            limit: None,
            confidence: None,
            finding: Some("Rwnd-limited\u{1b}[2J".to_owned()),
            path: BoostPath {
                rate_bps: None,
                rtt_ms: Some(PredictionInterval { expected: 173.0, low: 173.0, high: 200.0 }),
                loss: Some(PredictionInterval { expected: none, low: none, high: none }),
                congestion: Some("cubic".to_owned()),
                window_bytes: Some(ByteCount::from_bytes(65_536)),
                send_buffer: Some(BoostSendBuffer {
                    bytes: ByteCount::from_bytes(4 << 20),
                    is_assumed: true,
                }),
                program_window_bytes: None,
                streams: 1,
            },
            options: vec![
                option(BoostKind::Nothing, 3, 1.0, Some(BoostReason::AsItIs)),
                option(BoostKind::Pair, 94, 31.02, None),
            ],
            recommended: Some(BoostKind::Pair),
            programs: [("rclone over SFTP", true), ("smbclient", false)]
                .map(|(name, limits)| BoostProgram {
                    name: name.to_owned(),
                    window_bytes: ByteCount::from_bytes(2 << 20),
                    goodput_bps: BitRate::from_bps(97_000_000),
                    limits,
                })
                .to_vec(),
        };
        let mut plan = BoostPlan {
            schema: String::new(),
            version: String::new(),
            source: BoostSource::File("trace.pcap".to_owned()),
            transfers: vec![transfer],
            traffic: Some(TrafficShares {
                bytes: ByteCount::from_bytes(1_000_000),
                tcp: 0.4,
                quic: 0.6,
                other_udp: 0.0,
                parallel_tcp: 0.1,
                encrypted_tcp: 0.4,
            }),
            notes: Vec::new(),
        };
        let text = boost_plan(&plan, &Style { colour: false, width: 100, unicode: true });
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for shown in [
            "60 % QUIC",
            "RTT 173 to 200 ms",
            "x 31",
            "94 Mbit/s",
            "boost pair --far FAR",
            "a send buffer of 4 MiB (assumed",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let programs = "rclone over SFTP: 97 Mbit/s (2 MiB in flight)";
        assert!(text.contains(programs) && !text.contains("smbclient"), "{text}");
        assert!(!text.contains('\u{1b}') && text.contains("the transfer as it is"), "{text}");
        let transfer = &mut plan.transfers[0];
        transfer.recommended = None;
        transfer.path.loss = None;
        transfer.options[1].kind = BoostKind::Edge;
        transfer.options[1].needed_send_buffer = Some(ByteCount::from_bytes(48 << 20));
        let text = boost_plan(&plan, &Style { colour: false, width: 100, unicode: true });
        for shown in ["unknown loss", "needs 48 MiB", "but edge cache (x 31), for cached objects"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        plan.transfers.clear();
        assert!(
            boost_plan(&plan, &Style { colour: false, width: 100, unicode: true })
                .contains("no transfer over TCP")
        );
    }
}
