//! What is known of a test without its samples' statistics: its request, its
//! congestion control, and thresholds that more than one module uses.

use crate::{
    evidence::{self, Evidence},
    fixed_window::{self, ConstantRate},
};
use record::{Activity, Caveat, Direction, Limit, Measurement, Sample, Unavailable};
use units::{BitRate, Rtt};

/// The share of a core from which a thread is CPU-limited.
pub(crate) const CPU_FULL: f64 = 0.95;

/// Below this share in flight there is room in the congestion window.
pub(crate) const WELL_UNDER: f64 = 0.8;

/// The share of the time from which a cause is the limit, if no other limited the
/// transfer for longer.
pub(crate) const HELD: f64 = 0.4;

/// The share of the rate requested with `-b` from which it counts as reached.
const REACHED: f64 = 0.95;

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

/// The share of the time with nothing to send from which that is the limit.
pub(crate) const IDLE: f64 = 0.5;

/// The limits that show in the samples of a receiver alone, whatever the sender's application
/// does: one that writes at a constant rate looks like a bottleneck.
const AT_RECEIVER: [Limit; 4] =
    [Limit::ReceiveWindow, Limit::WindowScaling, Limit::SlowReceiver, Limit::Cpu];

/// The facts of a test, each taken from it once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) m: &'a Measurement,
    pub(crate) min_rtt: Option<Rtt>,
    /// The congestion control in use, else the one requested.
    pub(crate) congestion_control: Option<&'a str>,
    /// The rate requested with `-b`, over all streams.
    pub(crate) requested_rate: Option<BitRate>,
    /// Whether longhaul only watched the connection of another application.
    pub(crate) is_watched: bool,
    /// Whether a stream was captured in one direction alone, which shows no limit.
    pub(crate) has_one_direction: bool,
    /// The mean share of the time in which the senders' applications had nothing to send; `None`
    /// where it is not known of every stream.
    pub(crate) idle_share: Option<f64>,
    /// Whether limits of the network show: the sender was sampled, or it is a test's own that
    /// always has more to send, and more than rates are known of it.
    pub(crate) shows_network: bool,
    /// Without the sender's timers: the constant rate that all streams keep to.
    /// Whether a rate at which packets are paced is known: one that was requested, or the kernel's.
    pub(crate) shows_pacing: bool,
    pub(crate) constant_rate: Option<ConstantRate>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(m: &'a Measurement) -> Self {
        let used = m.streams.iter().find_map(|stream| stream.congestion.as_deref());
        let each = m.spec.rate_bps.filter(|rate| *rate > BitRate::ZERO);
        let all = |rate: BitRate| rate.bps().saturating_mul(m.streams.len().max(1) as u64);
        let is_watched = m.streams.iter().any(|stream| stream.watched);
        let mut caveats = m.streams.iter().flat_map(|stream| &stream.caveats);
        let one_way = |it: &Caveat| matches!(it, Caveat::DataOnly | Caveat::AcknowledgementsOnly);
        let idle = m.streams.iter().map(|stream| Some(stream.activity?.idle_share));
        let idle: Option<Vec<f64>> = idle.collect();
        let sampled = !m.streams.is_empty() && m.streams.iter().all(|s| s.sender.len() >= 2);
        let known = !m.lacks(Unavailable::RequestedRate) && !m.lacks(Unavailable::Rtt);
        let mut samples = m.streams.iter().flat_map(|stream| &stream.sender);
        let is_timed = !m.lacks(Unavailable::SenderTimers);
        Facts {
            m,
            min_rtt: evidence::min_rtt(m),
            congestion_control: used.or(m.spec.congestion.as_deref()),
            requested_rate: each.map(|rate| BitRate::from_bps(all(rate))),
            is_watched,
            has_one_direction: caveats.any(one_way),
            idle_share: idle.and_then(|shares| model::statistics::mean(&shares)),
            shows_network: sampled || (!is_watched && known),
            shows_pacing: m.spec.fq_rate_bps.is_some()
                || samples.any(|s| s.pacing_rate_bps.or(s.max_pacing_rate_bps).is_some()),
            constant_rate: if is_timed { None } else { fixed_window::find(m) },
        }
    }

    pub(crate) fn is_bbr(&self) -> bool {
        self.congestion_control.is_some_and(|name| name.starts_with("bbr"))
    }

    pub(crate) fn is_reno(&self) -> bool {
        self.congestion_control == Some("reno")
    }

    /// Whether the rate requested with `-b` arrived.
    pub(crate) fn reached_requested_rate(&self, e: &Evidence) -> bool {
        self.requested_rate.is_some_and(|rate| e.goodput.as_f64() >= REACHED * rate.as_f64())
    }

    /// Why less was written than the network could send: the disk that the file is on.
    pub(crate) fn disk_limited(&self, e: &Evidence) -> Option<String> {
        let disk = self.disk_rate()?;
        Some(format!(
            "Disk-limited: the file was read at {disk}, less than the network could send, and {} \
             arrived. Use a faster disk; network tuning will not help.",
            e.goodput
        ))
    }

    /// The rate at which the file that is sent was read; `None` if it is not a file.
    fn disk_rate(&self) -> Option<BitRate> {
        let mut rate = None;
        for stream in &self.m.streams {
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

    pub(crate) fn sender(&self) -> Sender {
        let remote = self.m.spec.direction == Direction::Reverse;
        let reads_file = self.m.spec.file.is_some() && !remote;
        let may_be_idle = self.is_watched || reads_file || self.m.lacks(Unavailable::RequestedRate);
        match self.requested_rate {
            Some(_) => Sender::Any,
            None if may_be_idle => Sender::Any,
            None if remote => Sender::RemoteBulk,
            None => Sender::Bulk,
        }
    }

    /// The activity of the stream with the most data, where it is known of every stream.
    pub(crate) fn activity(&self) -> Option<Activity> {
        if self.m.streams.iter().any(|stream| stream.activity.is_none()) {
            return None;
        }
        self.m.streams.iter().max_by_key(|stream| stream.received_bytes)?.activity
    }

    /// Whether the senders' applications had nothing to send for most of the time.
    pub(crate) fn is_mostly_idle(&self) -> bool {
        self.idle_share.is_some_and(|share| share >= IDLE)
    }

    /// Whether it is a test of longhaul's own, at an unlimited rate, with samples of the receiver
    /// alone.
    pub(crate) fn is_received_only(&self) -> bool {
        let is_test = self.m.tool.is_none() && !self.is_watched && self.requested_rate.is_none();
        is_test && self.m.streams.iter().all(|s| s.sender.is_empty() && s.receiver.len() >= 2)
    }

    /// Whether a limit shows in the samples of a receiver alone.
    pub(crate) fn shows_at_receiver(&self, limit: Limit) -> bool {
        let is_requested = limit == Limit::Application && self.requested_rate.is_some();
        AT_RECEIVER.contains(&limit) || is_requested
    }
}
