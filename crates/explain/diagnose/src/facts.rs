//! What is known of a test without its samples' statistics: its request, its
//! congestion control, and thresholds that more than one module uses.

use crate::evidence::Evidence;
use record::{Activity, Caveat, Direction, Limit, Measurement, Sample, Unavailable};
use units::BitRate;

/// The share of a core from which a thread is CPU-limited.
pub(crate) const CPU_FULL: f64 = 0.95;

/// Below this share in flight there is room in the congestion window.
pub(crate) const WELL_UNDER: f64 = 0.8;

/// The share of the time from which a cause is the limit, if no other limited the
/// transfer for longer.
pub(crate) const HELD: f64 = 0.4;

/// The share of the rate requested with `-b` from which it counts as reached.
const REACHED: f64 = 0.95;

/// The congestion control in use, else the one requested.
pub(crate) fn congestion_control(m: &Measurement) -> Option<&str> {
    let used = m.streams.iter().find_map(|stream| stream.congestion.as_deref());
    used.or(m.spec.congestion.as_deref())
}

pub(crate) fn is_bbr(m: &Measurement) -> bool {
    congestion_control(m).is_some_and(|name| name.starts_with("bbr"))
}

pub(crate) fn is_reno(m: &Measurement) -> bool {
    congestion_control(m) == Some("reno")
}

/// The rate requested with `-b`, over all streams.
pub(crate) fn requested_rate(m: &Measurement) -> Option<BitRate> {
    let each = m.spec.rate_bps.filter(|rate| *rate > BitRate::ZERO)?;
    Some(BitRate::from_bps(each.bps().saturating_mul(m.streams.len().max(1) as u64)))
}

/// Whether the rate requested with `-b` arrived.
pub(crate) fn reached_requested_rate(m: &Measurement, e: &Evidence) -> bool {
    requested_rate(m).is_some_and(|rate| e.goodput.as_f64() >= REACHED * rate.as_f64())
}

/// The rate at which the file that is sent was read; `None` if it is not a file.
pub(crate) fn disk_rate(m: &Measurement) -> Option<BitRate> {
    let mut rate = None;
    for stream in &m.streams {
        let read = |sample: &Sample| Some((sample.t_s, sample.source_bytes?));
        let samples = || stream.sender.iter().filter_map(read);
        let (first, last) = (samples().next()?, samples().next_back()?);
        let (time, bytes) = (last.0 - first.0, last.1.saturating_sub(first.1));
        if time > 0.0 {
            rate = Some(rate.unwrap_or(0.0) + bytes as f64 * 8.0 / time);
        }
    }
    rate.map(BitRate::from_bps_f64)
}

/// Why less was written than the network could send: the disk that the file is on.
pub(crate) fn disk_limited(m: &Measurement, e: &Evidence) -> Option<String> {
    let disk = disk_rate(m)?;
    Some(format!(
        "Disk-limited: the file was read at {disk}, less than the network could send, and {} \
         arrived. Use a faster disk; network tuning will not help.",
        e.goodput
    ))
}

/// What is known of the sending application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A test's own at this end: always has more to send.
    Bulk,
    /// A test's own at the other end: has, unless its server limits it.
    RemoteBulk,
    /// Another application, one with a requested rate, or one that reads a file.
    Any,
}

pub(crate) fn sender(m: &Measurement) -> Sender {
    let remote = m.spec.direction == Direction::Reverse;
    let reads_file = m.spec.file.is_some() && !remote;
    match requested_rate(m) {
        Some(_) => Sender::Any,
        None if is_watched(m) || reads_file || m.lacks(Unavailable::RequestedRate) => Sender::Any,
        None if remote => Sender::RemoteBulk,
        None => Sender::Bulk,
    }
}

/// The share of the time with nothing to send from which that is the limit.
pub(crate) const IDLE: f64 = 0.5;

/// The activity of the stream with the most data, where it is known of every stream.
pub(crate) fn activity(m: &Measurement) -> Option<Activity> {
    if m.streams.iter().any(|stream| stream.activity.is_none()) {
        return None;
    }
    m.streams.iter().max_by_key(|stream| stream.received_bytes)?.activity
}

/// Whether the senders' applications had nothing to send for most of the time.
pub(crate) fn is_mostly_idle(m: &Measurement) -> bool {
    let idle = m.streams.iter().map(|stream| Some(stream.activity?.idle_share));
    let idle: Option<Vec<f64>> = idle.collect();
    idle.and_then(|shares| model::statistics::mean(&shares)).is_some_and(|share| share >= IDLE)
}

/// Whether a stream was captured in one direction alone, which shows no limit.
pub(crate) fn has_one_direction(m: &Measurement) -> bool {
    let mut all = m.streams.iter().flat_map(|stream| &stream.caveats);
    all.any(|caveat| matches!(caveat, Caveat::DataOnly | Caveat::AcknowledgementsOnly))
}

/// Whether longhaul only watched the connection of another application.
pub(crate) fn is_watched(m: &Measurement) -> bool {
    m.streams.iter().any(|stream| stream.watched)
}

/// Whether a rate at which packets are paced is known: one that was requested, or the kernel's.
pub(crate) fn shows_pacing(m: &Measurement) -> bool {
    let mut samples = m.streams.iter().flat_map(|stream| &stream.sender);
    m.spec.fq_rate_bps.is_some()
        || samples.any(|s| s.pacing_rate_bps.or(s.max_pacing_rate_bps).is_some())
}

/// Whether it is a test of longhaul's own, at an unlimited rate, with samples of the receiver alone.
pub(crate) fn is_received_only(m: &Measurement) -> bool {
    let is_test = m.tool.is_none() && !is_watched(m) && requested_rate(m).is_none();
    is_test && m.streams.iter().all(|s| s.sender.is_empty() && s.receiver.len() >= 2)
}

/// The limits that show in the samples of a receiver alone, whatever the sender's application
/// does: one that writes at a constant rate looks like a bottleneck.
const AT_RECEIVER: [Limit; 4] =
    [Limit::ReceiveWindow, Limit::WindowScaling, Limit::SlowReceiver, Limit::Cpu];

/// Whether limits of the network show: the sender was sampled, or it is a test's own that
/// always has more to send, and more than rates are known of it.
pub(crate) fn shows_network(m: &Measurement) -> bool {
    let sampled = !m.streams.is_empty() && m.streams.iter().all(|s| s.sender.len() >= 2);
    let known = !m.lacks(Unavailable::RequestedRate) && !m.lacks(Unavailable::Rtt);
    sampled || (!is_watched(m) && known)
}

/// Whether a limit shows in the samples of a receiver alone.
pub(crate) fn shows_at_receiver(m: &Measurement, limit: Limit) -> bool {
    let is_requested = limit == Limit::Application && requested_rate(m).is_some();
    AT_RECEIVER.contains(&limit) || is_requested
}
