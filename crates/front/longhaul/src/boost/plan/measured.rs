//! What a measurement shows of its path and its connections.

use model::Congestion;
use model::boost::{self, Estimate};
use record::{Datagrams, Finding, Limit, Measurement, Protocol};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// From the shortest one to the one under load, which a split connection of the same rate has too.
pub(super) fn rtt(finding: &Finding) -> Option<Estimate<Rtt>> {
    let least = finding.min_rtt.or(finding.loaded_rtt).filter(|rtt| *rtt > Rtt::ZERO)?;
    let loaded = finding.loaded_rtt.unwrap_or(least).max(least);
    Some(Estimate { low: least, expected: least, high: loaded })
}

/// The bottleneck's payload rate: the lab's, or the transfer's estimate; `None` where it shows a lower
/// bound alone, as all do that something else limits.
pub(super) fn bottleneck(
    finding: &Finding,
    m: &Measurement,
    mss: ByteCount,
) -> Option<Estimate<BitRate>> {
    let lab = m.path.as_ref().and_then(|path| path.rate_bps);
    let known = lab.map(|rate| Estimate::exact(payload_rate(m, rate, mss)));
    let estimated = || {
        let found = finding.bottleneck.filter(|_| finding.limit.is_some_and(is_of_path))?;
        Some(Estimate { low: found.low_bps, expected: found.rate_bps, high: found.high_bps? })
    };
    known.or_else(estimated).filter(|rate| rate.expected > BitRate::ZERO)
}

/// Returns true if the sender sends as fast as the path lets it.
const fn is_of_path(limit: Limit) -> bool {
    match limit {
        Limit::PathRate
        | Limit::Aqm
        | Limit::SharedBottleneck
        | Limit::Policer
        | Limit::CongestionAvoidance
        | Limit::ShallowQueue
        | Limit::EcnMarks
        | Limit::Loss
        | Limit::ClusteredLoss => true,
        Limit::Application
        | Limit::SlowReceiver
        | Limit::Pacing
        | Limit::PacingTimers
        | Limit::Cpu
        | Limit::Memory
        | Limit::ReceiveWindow
        | Limit::WindowScaling
        | Limit::SendBuffer
        | Limit::FixedWindow
        | Limit::Ramp
        | Limit::Reordering
        | Limit::AckPath
        | Limit::PathChange
        | Limit::Outage
        | Limit::PmtuBlackHole
        | Limit::Unknown => false,
    }
}

/// The payload of a rate in IP bytes, or in those of the lab's link.
pub(super) fn payload_rate(m: &Measurement, rate: BitRate, mss: ByteCount) -> BitRate {
    let lab = m.path.as_ref();
    let mtu = lab.map_or(mss.bytes() + HEADERS, |path| u64::from(path.mtu_bytes));
    let wire = mtu + lab.map_or(0, |path| u64::from(path.overhead_bytes));
    let share = mss.as_f64() / ByteCount::from_bytes(wire).as_f64();
    rate.scaled(share.min(1.0))
}

/// Header bytes of a segment: IPv4 and TCP with timestamps (RFC 791, 9293, 7323).
const HEADERS: u64 = 20 + 20 + 12;
/// Payload of a full segment on a path of 1500 bytes.
const USUAL_MSS: u64 = 1448;

pub(super) fn mss(m: &Measurement) -> ByteCount {
    let samples = m.streams.iter().flat_map(|stream| &stream.sender);
    let most = samples.map(|sample| sample.mss_bytes).max().filter(|mss| *mss > 0);
    ByteCount::from_bytes(most.map_or(USUAL_MSS, u64::from))
}

/// The lab's loss, or lost datagrams over sent ones, or retransmitted over sent segments; `None` if
/// none of these is known.
pub(super) fn loss(m: &Measurement, mss: ByteCount) -> Option<Estimate<LossRatio>> {
    if let Some(path) = &m.path {
        return Some(Estimate::exact(path.loss));
    }
    let datagrams: Vec<&Datagrams> =
        m.streams.iter().filter_map(|stream| stream.datagrams.as_ref()).collect();
    if m.spec.protocol != Protocol::Tcp || !datagrams.is_empty() {
        let counted = |one: &&Datagrams| one.received > 0 || one.lost > 0;
        let all = datagrams.iter().all(counted).then_some(datagrams)?;
        let lost = all.iter().map(|one| one.lost).sum();
        let sent = all.iter().map(|one| one.sent.unwrap_or(one.received + one.lost)).sum();
        return boost::loss_estimate(lost, sent);
    }
    let sent: u64 = m.streams.iter().map(|stream| stream.sent_bytes / mss.bytes().max(1)).sum();
    let retransmits = m.streams.iter().map(|stream| stream.retransmits);
    let lost: u64 = retransmits.sum::<Option<u64>>().filter(|_| !m.streams.is_empty())?;
    boost::loss_estimate(lost, sent)
}

/// The window of each connection, where one limits the transfer.
pub(super) fn window(finding: &Finding, m: &Measurement, count: u32) -> Option<ByteCount> {
    let is_window = matches!(
        finding.limit?,
        Limit::ReceiveWindow | Limit::WindowScaling | Limit::SendBuffer | Limit::FixedWindow
    );
    let found = diagnose::window_in_flight(m, finding).map(|found| found.window);
    let in_flight = || {
        let rtt = finding.loaded_rtt.or(finding.min_rtt)?;
        Some(model::bdp(finding.throughput_bps, rtt))
    };
    let all = found.or_else(in_flight).filter(|_| is_window)?;
    Some(model::per_stream(all, count))
}

pub(super) fn congestion_name(m: &Measurement) -> Option<String> {
    let of_streams = m.streams.iter().find_map(|stream| stream.congestion.clone());
    of_streams.or_else(|| m.spec.congestion.clone())
}

/// The model of a congestion control; CUBIC, the default of every system, where it is not known.
pub(super) fn congestion(name: Option<&str>) -> Congestion {
    match name {
        Some(name) if name.starts_with("bbr") => Congestion::Bbr,
        Some("reno") => Congestion::Reno,
        _ => Congestion::Cubic,
    }
}
