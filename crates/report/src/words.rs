//! What terminal and page call things, and how they write numbers.

use record::{Confidence, Finding, LatencyUnderLoad, Limit, Shares};
use units::BitRate;

/// Said of a verdict whose limit is `None`.
pub(crate) const NO_CLOCKS: &str = "the sender's clocks could not be had";

/// Whether a verdict is the end of the road or something to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The path carries all it can.
    Good,
    /// Something short of the path holds it.
    Mend,
    /// The evidence does not tell.
    Open,
}

pub(crate) fn tone(limit: Option<Limit>) -> Tone {
    match limit {
        Some(Limit::PathRate) => Tone::Good,
        Some(Limit::Unknown) | None => Tone::Open,
        Some(_) => Tone::Mend,
    }
}

/// The limit's name as in JSON, or that there is none.
pub(crate) fn limit_name(limit: Option<Limit>) -> &'static str {
    limit.map_or("not known", Limit::name)
}

/// The same with what doubt there is: `congestion, likely`.
pub(crate) fn limit_with_doubt(finding: &Finding) -> String {
    let doubt = if finding.confidence == Some(Confidence::Likely) { ", likely" } else { "" };
    format!("{}{doubt}", limit_name(finding.limit))
}

/// The verdict in a few words.
pub(crate) fn verdict(limit: Option<Limit>) -> &'static str {
    match limit {
        Some(Limit::ReceiveWindow) => "limited by the receiver's window",
        Some(Limit::SendBuffer) => "limited by the sender's socket buffer",
        Some(Limit::Application) => "limited by the sending program",
        Some(Limit::Congestion) => "limited by the congestion window",
        Some(Limit::Loss) => "limited by random loss",
        Some(Limit::PathRate) => "the path is full",
        Some(Limit::Policer) => "limited by a policer",
        Some(Limit::Pacing) => "limited by the sender's pacing",
        Some(Limit::Cpu) => "limited by the processor",
        Some(Limit::Ramp) => "it ended before it was at speed",
        Some(Limit::Unknown) => "the evidence does not tell",
        None => NO_CLOCKS,
    }
}

/// Where time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    ReceiveWindow,
    SendBuffer,
    Network,
    Application,
}

impl Cause {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Cause::ReceiveWindow => "receive window",
            Cause::SendBuffer => "send buffer",
            Cause::Network => "network",
            Cause::Application => "application",
        }
    }
}

/// The shares in the order they are stacked; each 0 to 1, together at most 1,
/// whatever the file said.
pub(crate) fn causes(shares: &Shares) -> [(Cause, f64); 4] {
    let sane = |v: f64| if v.is_finite() { v.clamp(0.0, 1.0) } else { 0.0 };
    let mut parts = [
        (Cause::ReceiveWindow, sane(shares.receive_window)),
        (Cause::SendBuffer, sane(shares.send_buffer)),
        (Cause::Network, sane(shares.network)),
        (Cause::Application, sane(shares.application)),
    ];
    let sum: f64 = parts.iter().map(|(_, share)| share).sum();
    if sum > 1.0 {
        for (_, share) in &mut parts {
            *share /= sum;
        }
    }
    parts
}

/// A rate that may have no limit.
pub(crate) fn rate(rate: Option<BitRate>) -> String {
    rate.map_or_else(|| "no limit".to_owned(), |rate| rate.to_string())
}

/// Achieved over predicted; `None` where nothing was predicted.
pub(crate) fn of_predicted(finding: &Finding) -> Option<f64> {
    let predicted = finding.predicted_bps?.as_f64();
    (predicted > 0.0).then(|| finding.throughput_bps.as_f64() / predicted)
}

/// `97 %`; what is there but too little to round up is `<1 %`.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".to_owned();
    }
    match share * 100.0 {
        p if p > 0.0 && p < 0.5 => "<1 %".to_owned(),
        p if p > 9999.0 => ">9999 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// `32x`, `3.2x`, `0.85x`; `None` where it says nothing.
pub(crate) fn gain(gain: f64) -> Option<String> {
    if !gain.is_finite() || gain <= 0.0 {
        return None;
    }
    Some(match gain {
        g if g >= 1e6 => ">999999×".to_owned(),
        g if g >= 9.95 => format!("{g:.0}×"),
        g if g >= 0.995 => format!("{g:.1}×"),
        g => format!("{g:.2}×"),
    })
}

/// `2.98 → 96.1 Mbit/s`: the unit once, where both share it.
pub(crate) fn step(from: BitRate, to: BitRate) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} → {to}"),
        _ => format!("{from} → {to}"),
    }
}

/// `137 402 112`: digits in threes, which a line break does not part.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            out.push('\u{202F}');
        }
        out.push(digit);
    }
    out
}

/// A time in seconds, as long as it needs to be.
pub(crate) fn seconds(s: f64) -> String {
    if !s.is_finite() {
        "-".to_owned()
    } else if s.abs() >= 99.95 || (s - s.round()).abs() < 0.005 {
        format!("{s:.0} s")
    } else {
        format!("{s:.1} s")
    }
}

/// `0 %`, `12.5 %`: of few probes the decimals say nothing, of many they do.
pub(crate) fn lost(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "-".to_owned(),
        p if (p - p.round()).abs() < 0.005 => format!("{p:.0} %"),
        p if p < 0.1 => format!("{p:.3} %"),
        p => format!("{p:.1} %"),
    }
}

/// How words name what latency under load was measured by.
pub(crate) fn probed_by(seen: &LatencyUnderLoad) -> String {
    seen.port
        .map_or_else(|| "ICMP echoes".to_owned(), |port| format!("TCP connects to port {port}"))
}

/// The bufferbloat grade and what the load added.
pub(crate) fn bufferbloat(seen: &LatencyUnderLoad) -> Option<String> {
    let (rise, grade) = (seen.rise_ms?, seen.grade.as_ref()?);
    // No -0.0.
    let rise = if rise.abs() < 0.05 { 0.0 } else { rise };
    Some(format!("{grade}: the load added {rise:.1} ms to the mean round trip"))
}

/// The responsiveness, named by its method.
pub(crate) fn responds(seen: &LatencyUnderLoad) -> Option<String> {
    match (seen.rpm_tcp, &seen.rpm_word, seen.rpm_port) {
        (Some(rpm), Some(word), Some(port)) => Some(format!(
            "{word}: {rpm:.0} round trips a minute under load, at TCP level (connects to port {port})"
        )),
        (None, _, Some(port)) => {
            Some(format!("not known: too few TCP connects to port {port} were answered under load"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_shares_keep_what_is_there() {
        assert_eq!([0.0, 0.125, 1.0, 0.0002].map(lost), ["0 %", "12.5 %", "100 %", "0.020 %"]);
        assert_eq!(lost(f64::NAN), "-");
    }

    #[test]
    fn the_unit_is_said_once_where_shared() {
        let rate = BitRate::from_bps;
        assert_eq!(step(rate(2_980_000), rate(96_100_000)), "2.98 → 96.1 Mbit/s");
        assert_eq!(step(rate(298_000), rate(96_100_000)), "298 kbit/s → 96.1 Mbit/s");
    }

    #[test]
    fn gains_and_percentages() {
        assert_eq!(gain(32.25).as_deref(), Some("32×"));
        assert_eq!(gain(1.5).as_deref(), Some("1.5×"));
        assert_eq!(gain(f64::NAN), None);
        assert_eq!(percent(0.003), "<1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(grouped(1_448), "1448");
        assert_eq!(grouped(137_402_112), "137\u{202F}402\u{202F}112");
        assert_eq!(percent(f64::INFINITY), "-");
    }

    #[test]
    fn shares_never_exceed_the_whole() {
        let wild =
            Shares { application: 7.0, receive_window: 1.0, send_buffer: f64::NAN, network: -1.0 };
        let sum: f64 = causes(&wild).iter().map(|(_, v)| v).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
}
