//! Terms and number formats shared by terminal output and HTML pages.

use record::{
    Achieved, BaselineCondition, BaselineDifference, BaselineLatency, ConditionFactor, Confidence,
    Finding, LatencyPhase, LatencyUnderLoad, Limit, Shares, StartSkew, StudyHost,
};
use units::{BitRate, percent_with, share};

/// The reason that the optional sysctls of a study are not set.
pub(crate) const NOT_SET: &str =
    "system-wide, or read-only in a network namespace, so not available on lab hosts";

/// The reason that a study between real hosts has no validity.
pub(crate) const REAL_HOSTS: &str = "no lab emulated the path, so nothing certifies it: the \
                                     figures include other traffic and host limits, and each \
                                     cell's finding names them where the kernel's samples show \
                                     them";

/// What a study's results are that no test has measured.
pub(crate) const SIMULATED: &str = "simulated in virtual time, not measured: no run depends on the \
                                    machine, and hosts limit nothing";

/// A real host of a study.
pub(crate) fn study_host(host: &StudyHost) -> String {
    let mut text = format!("{} {}", host.role, host.name);
    if let Some(version) = &host.version {
        text += &format!(", longhaul {version}");
    }
    if let Some(kernel) = &host.kernel {
        text += &format!(", Linux {kernel}");
    }
    if let Some(cores) = host.cores {
        text += &format!(", {}", counted(cores, "core"));
    }
    if let (Some(ahead), Some(uncertainty)) = (host.clock_offset_ms, host.clock_uncertainty_ms) {
        let (side, by) = if ahead < 0.0 { ("behind", -ahead) } else { ("ahead", ahead) };
        let [by, uncertainty] = [by, uncertainty].map(|ms| units::significant(ms, 3));
        text += &format!(", clock {by} ms {side} (± {uncertainty} ms)");
    }
    text
}

/// The measured idle RTT of a lab's path, with the standard error where it is a mean.
#[must_use]
pub fn idle_rtt(achieved: &Achieved, decimals: usize) -> Option<String> {
    let ms = achieved.idle_rtt_ms.filter(|ms| ms.is_finite())?;
    Some(match achieved.idle_rtt_error_ms.filter(|error| error.is_finite()) {
        Some(error) => format!("{ms:.decimals$} ± {error:.decimals$} ms"),
        None => format!("{ms:.decimals$} ms"),
    })
}

/// How precisely the flows of several clients began together.
pub(crate) fn start_skew(skew: &StartSkew) -> String {
    let [ms, uncertainty] = [skew.ms, skew.uncertainty_ms].map(|ms| units::significant(ms, 3));
    format!("at most {ms} ms between the clients' flows (± {uncertainty} ms)")
}

/// The reason that the time of each limit is unknown.
pub(crate) const NO_TIMERS: &str = "the sender's TCP_INFO timers are unavailable";

/// The kind of limit found: one to accept, one to fix, or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The transfer saturates the bottleneck.
    Good,
    /// Something other than the bottleneck rate limits it.
    Fixable,
    /// The evidence is inconclusive.
    Unknown,
}

pub(crate) fn tone(limit: Option<Limit>) -> Tone {
    match limit {
        Some(limit) if limit.is_saturated() => Tone::Good,
        Some(Limit::Unknown) | None => Tone::Unknown,
        Some(_) => Tone::Fixable,
    }
}

/// The limit's name as in JSON; `not identified` without one.
pub(crate) fn limit_name(limit: Option<Limit>) -> &'static str {
    limit.map_or("not identified", Limit::name)
}

/// The limit and a low confidence, if so: `congestion, likely`.
pub(crate) fn limit_with_confidence(finding: &Finding) -> String {
    let confidence = if finding.confidence == Some(Confidence::Likely) { ", likely" } else { "" };
    format!("{}{confidence}", limit_name(finding.limit))
}

/// The label of the limit's probability: the confidence, if there is any.
pub(crate) fn confidence(finding: &Finding) -> &'static str {
    finding.confidence.map_or("probability", Confidence::name)
}

/// The limit in a few words.
pub(crate) fn verdict(limit: Option<Limit>) -> &'static str {
    match limit {
        Some(Limit::ReceiveWindow) => "limited by the receive window",
        Some(Limit::SendBuffer) => "limited by the send buffer",
        Some(Limit::Application) => "limited by the sending application",
        Some(Limit::CongestionAvoidance) => "limited by slow growth of the congestion window",
        Some(Limit::Loss) => "limited by random loss",
        Some(Limit::PathRate) => "the bottleneck is saturated",
        Some(Limit::Policer) => "limited by a policer",
        Some(Limit::Pacing) => "limited by the sender's pacing rate",
        Some(Limit::Cpu) => "limited by the CPU",
        Some(Limit::Ramp) => "the test ended during ramp-up",
        Some(Limit::WindowScaling) => "limited by an unscaled window",
        Some(Limit::SlowReceiver) => "limited by the receiving application",
        Some(Limit::Memory) => "limited by memory bandwidth",
        Some(Limit::PacingTimers) => "limited by BBR's pacing timers",
        Some(Limit::ShallowQueue) => "limited by a shallow queue",
        Some(Limit::Aqm) => "the bottleneck is saturated, queue managed by AQM",
        Some(Limit::SharedBottleneck) => "the bottleneck is saturated and shared",
        Some(Limit::EcnMarks) => "limited by ECN marks",
        Some(Limit::ClusteredLoss) => "limited by clustered loss",
        Some(Limit::Reordering) => "limited by reordering",
        Some(Limit::AckPath) => "limited by the ACK path",
        Some(Limit::PathChange) => "limited by path changes",
        Some(Limit::FixedWindow) => "limited by a fixed window or buffer",
        Some(Limit::Outage) => "interrupted by an outage",
        Some(Limit::PmtuBlackHole) => "full-size packets are lost on the path",
        Some(Limit::Unknown) => "the evidence is inconclusive",
        None => "no evidence of the limit",
    }
}

/// The limit of the sender for part of the time.
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

/// The shares in stacking order; each 0 to 1, at most 1 in total, whatever values
/// the file holds.
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

/// A rate limit, or `unlimited`.
pub(crate) fn rate(rate: Option<BitRate>) -> String {
    rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string())
}

/// Achieved over predicted rate; `None` without a prediction.
pub(crate) fn of_predicted(finding: &Finding) -> Option<f64> {
    let predicted = finding.predicted_bps?.as_f64();
    (predicted > 0.0).then(|| finding.throughput_bps.as_f64() / predicted)
}

/// `97 %`; a non-zero share that would round to zero is `<1 %`.
pub(crate) fn whole_percent(share: f64) -> String {
    if share > 0.0 && share < 0.005 {
        return "<1 %".to_owned();
    }
    units::percent((share * 100.0).round() / 100.0)
}

/// `32×`, `3.2×`, `0.85×`; `None` for a gain that is not a positive number.
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

/// `2.98 → 96.1 Mbit/s`: a shared unit is written once.
pub(crate) fn step(from: BitRate, to: BitRate) -> String {
    joined(from, " → ", to)
}

/// `93.8 to 94.2 Mbit/s`, likewise.
pub(crate) fn rates(low_bps: f64, high_bps: f64) -> String {
    joined(BitRate::from_bps_f64(low_bps), " to ", BitRate::from_bps_f64(high_bps))
}

fn joined(from: BitRate, between: &str, to: BitRate) -> String {
    let (from, to) = (from.to_string(), to.to_string());
    match (from.split_once(' '), to.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}{between}{to}"),
        _ => format!("{from}{between}{to}"),
    }
}

/// `137 402 112`: groups of three digits, separated by no-break spaces.
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

/// A time in seconds with at most one decimal.
pub(crate) fn seconds(s: f64) -> String {
    if !s.is_finite() {
        "-".to_owned()
    } else if s.abs() >= 99.95 || (s - s.round()).abs() < 0.005 {
        format!("{s:.0} s")
    } else {
        format!("{s:.1} s")
    }
}

/// A goodput in bit/s.
pub(crate) fn bps(bps: f64) -> String {
    BitRate::from_bps_f64(bps).to_string()
}

/// A time that may be hours, to about one part in a hundred.
#[must_use]
pub fn long_time(s: f64) -> String {
    if !s.is_finite() || s < 120.0 {
        seconds(s)
    } else if s < 7_200.0 {
        format!("{:.0} min", s / 60.0)
    } else {
        format!("{:.1} h", s / 3_600.0)
    }
}

/// `1 packet`, `5 packets`.
pub(crate) fn counted(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A number of files, directories and links.
#[must_use]
pub fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

/// The median's interval as a heading: `97 % interval`, of several levels the least.
pub(crate) fn interval_heading<'a>(
    conditions: impl IntoIterator<Item = &'a BaselineCondition>,
) -> String {
    let levels = conditions.into_iter().filter_map(|one| one.median_confidence);
    match levels.reduce(f64::min) {
        Some(level) => format!("{} interval", whole_percent(level)),
        None => "interval".to_owned(),
    }
}

/// The RTT before and under load of a baseline's condition: `20.1 → 85.3 ms`.
pub(crate) fn rtt_under_load(latency: &BaselineLatency) -> Option<String> {
    let (before, during) = (latency.before_ms?, latency.during_ms?);
    let digits = if during >= 100.0 { 0 } else { 1 };
    Some(format!("{before:.digits$} → {during:.digits$} ms"))
}

/// The meaning of a median interval, for the legend of its table.
pub(crate) const MEDIAN_INTERVAL: &str = "RTT: before the load → under load. Median intervals lie \
                                          between values of the tests (order statistics), with at \
                                          least the level given: 95 % needs six tests. Differences \
                                          of means are tested at 95 % by Welch's t-test with \
                                          Holm's correction.";

/// A relative change as `-1.4 %`; less than 0.05 % is none.
pub(crate) fn relative(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(share) if share.abs() < 0.0005 => "0 %".to_owned(),
        Some(share) => units::change(share),
    }
}

/// A significance: of a difference that was tested or was not.
pub(crate) fn significance(significant: Option<bool>) -> &'static str {
    match significant {
        Some(true) => "significant",
        Some(false) => "not significant",
        None => "too few tests",
    }
}

/// The compared properties of a difference, and the conditions within which it holds.
pub(crate) fn difference(one: &BaselineDifference) -> (String, String) {
    let (first, second) = (&one.first, &one.second);
    let (family, direction) = (first.family.name(), first.direction_name());
    match one.factor {
        ConditionFactor::Family => (
            format!("{} vs. {family}", second.family.name()),
            format!("{direction}, {}", first.streams_name()),
        ),
        ConditionFactor::Direction => (
            format!("{} vs. {direction}", second.direction_name()),
            format!("{family}, {}", first.streams_name()),
        ),
        ConditionFactor::Streams => (
            format!("{} vs. {}", second.streams_name(), first.streams_name()),
            format!("{family} {direction}"),
        ),
    }
}

/// The share of lost probes; `None` without probes.
pub(crate) fn probe_loss(phase: &LatencyPhase) -> Option<String> {
    (phase.count > 0).then(|| percent_with(share(phase.lost, phase.count), 3))
}

/// The probe that measured latency under load.
pub(crate) fn probed_by(latency: &LatencyUnderLoad) -> String {
    latency.port.map_or_else(
        || "ICMP echo requests".to_owned(),
        |port| format!("TCP handshakes with port {port}"),
    )
}

/// The bufferbloat grade and the rise of the mean RTT under load.
pub(crate) fn bufferbloat(latency: &LatencyUnderLoad) -> Option<String> {
    let (rise, grade) = (rtt_rise(latency)?, latency.grade.as_ref()?);
    Some(format!("{grade}: {rise} under load"))
}

/// `mean RTT +35.1 ms`: the rise under load.
pub(crate) fn rtt_rise(latency: &LatencyUnderLoad) -> Option<String> {
    let rise = latency.rise_ms?;
    // Avoids -0.0.
    let rise = if rise.abs() < 0.05 { 0.0 } else { rise };
    Some(format!("mean RTT {rise:+.1} ms"))
}

/// Responsiveness in round trips per minute, with its method.
pub(crate) fn responsiveness(latency: &LatencyUnderLoad) -> Option<String> {
    match (latency.rpm_tcp, &latency.rpm_word, latency.rpm_port) {
        (Some(rpm), Some(word), Some(port)) => Some(format!(
            "{rpm:.0} ({word}): round trips per minute under load, from TCP handshakes with port {port}"
        )),
        (None, _, Some(port)) => {
            Some(format!("unknown: too few TCP handshakes with port {port} completed under load"))
        }
        _ => None,
    }
}

/// A median with the range where it differs, whose ends have a unit of their own only where it is
/// another one: `46.6 Mbit/s (46.5-46.8)`.
pub(crate) fn spread([median, low, high]: [String; 3], dash: char) -> String {
    if low == high {
        return median;
    }
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    let own = unit(&median);
    let end = |text: &str| match unit(text) == own {
        true => text.split(' ').next().unwrap_or(text).to_owned(),
        false => text.to_owned(),
    };
    format!("{median} ({}{dash}{})", end(&low), end(&high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_unit_is_written_once() {
        let rate = BitRate::from_bps;
        assert_eq!(step(rate(2_980_000), rate(96_100_000)), "2.98 → 96.1 Mbit/s");
        assert_eq!(step(rate(298_000), rate(96_100_000)), "298 kbit/s → 96.1 Mbit/s");
    }

    #[test]
    fn gains_and_percentages() {
        assert_eq!(gain(32.25).as_deref(), Some("32×"));
        assert_eq!(gain(1.5).as_deref(), Some("1.5×"));
        assert_eq!(gain(f64::NAN), None);
        assert_eq!(whole_percent(0.003), "<1 %");
        assert_eq!(whole_percent(0.0), "0 %");
        assert_eq!(grouped(1_448), "1448");
        assert_eq!(grouped(137_402_112), "137\u{202F}402\u{202F}112");
        assert_eq!(whole_percent(f64::INFINITY), "-");
    }

    #[test]
    fn shares_never_exceed_the_whole() {
        let wild =
            Shares { application: 7.0, receive_window: 1.0, send_buffer: f64::NAN, network: -1.0 };
        let sum: f64 = causes(&wild).iter().map(|(_, v)| v).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_range_has_the_unit_of_its_median() {
        let of = |texts: [&str; 3]| spread(texts.map(str::to_owned), '-');
        assert_eq!(of(["5 ms", "5 ms", "5 ms"]), "5 ms");
        assert_eq!(of(["46.6 Mbit/s", "46.5 Mbit/s", "47 Mbit/s"]), "46.6 Mbit/s (46.5-47)");
        assert_eq!(of(["1 Mbit/s", "900 kbit/s", "2 Mbit/s"]), "1 Mbit/s (900 kbit/s-2)");
        assert_eq!(of(["42", "38", "44"]), "42 (38-44)");
    }
}
