//! A transfer as it is: its path, its connections and its limit.

use super::PlannedLink;
use super::programs::OPENSSH;
use crate::{Field, Problem};
use model::boost::{self, Connections, Estimate, LongPath};
use model::{AUTOTUNED_SEND_SHARE, Congestion, Payload, share_of_buffer};
use record::{
    BoostPath, BoostReason, Confidence, Direction, Finding, Limit, Measurement, PredictionInterval,
    Protocol,
};
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio, Rtt};

const SSH_PORT: u16 = 22;

/// How near to that window the data in flight is, where it is the limit.
const NEAR_WINDOW: f64 = 0.15;

/// Ports of TLS and SSH, whose data does not compress.
pub(super) const ENCRYPTED_PORTS: [u16; 10] =
    [SSH_PORT, 443, 465, 636, 853, 989, 990, 993, 995, 8443];

/// A cause that is at least so probable is considered beside the first one.
const ALSO_LIKELY: f64 = 0.15;

/// A transfer as it is.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    /// Its name in a file.
    pub(super) name: String,
    /// What limits it, of a measured one.
    pub(super) limit: Option<Limit>,
    pub(super) confidence: Option<Confidence>,
    /// The diagnosis in one sentence.
    pub(super) finding: Option<String>,
    /// The goodput; `None` without a model.
    pub(super) now: Option<Estimate<BitRate>>,
    /// Its path, or why predictions are not possible.
    pub(super) path: Result<LongPath, BoostReason>,
    /// What is known of a path that is not known completely.
    pub(super) known: BoostPath,
    pub(super) connections: Connections,
    /// Why no option of the network helps.
    pub(super) verdict: Option<BoostReason>,
    /// True where another cause may be the limit, so that a gain is not certain.
    pub(super) is_uncertain: bool,
    /// True if the data is encrypted.
    pub(super) is_encrypted: bool,
    /// The other host, from a measurement.
    pub(super) target: Option<(String, u16)>,
    /// True if this host sends.
    pub(super) sends: bool,
    /// The part of this host's send buffer that is in flight, where it is known.
    pub(super) send_window: Option<ByteCount>,
}

impl Situation {
    /// Of a path and its hosts.
    pub(super) fn of_link(path: &PathSpec, link: &PlannedLink) -> Result<Self, Problem> {
        let [up, down] = path.directions();
        let direction = if link.reverse { down } else { up };
        let wrong = |message: &str| {
            Problem::field(Field::Link, message, "a path such as rate=100mbit,rtt=50ms")
        };
        let rate = direction.rate().ok_or_else(|| wrong("a plan needs the bottleneck's rate"))?;
        let rtt = path.rtt();
        if rtt == Rtt::ZERO {
            return Err(wrong("a plan needs an RTT above zero"));
        }
        let payload = Payload { framing: path.overhead(), ..Payload::of_ip(path.mtu()) };
        let too_small = || wrong("the MTU leaves no room for payload");
        let long = LongPath {
            rate: Estimate::exact(payload.goodput(rate).ok_or_else(too_small)?),
            rtt: Estimate::exact(rtt),
            loss: Estimate::exact(direction.mean_loss()),
            mss: ByteCount::from_bytes(u64::from(payload.mss().ok_or_else(too_small)?)),
        };
        let connections = Connections {
            congestion: link.congestion,
            window: link.window,
            program_window: link.program_window,
            count: link.streams.max(1),
        };
        let now = boost::direct(&long, &connections).map(|now| now.rate);
        Ok(Situation {
            name: String::new(),
            limit: None,
            confidence: None,
            finding: None,
            now,
            path: Ok(long),
            known: known(
                Some(long.rate),
                Some(long.rtt),
                long.loss,
                &connections,
                Some(link.congestion.name()),
            ),
            connections,
            verdict: now.is_none().then_some(BoostReason::NoModel),
            is_uncertain: false,
            is_encrypted: false,
            target: None,
            sends: true,
            send_window: None,
        })
    }

    /// Of a transfer that was measured; `service_port` is the lower one of its ports, and `rate` the
    /// bottleneck's rate in IP bytes, if it was given.
    pub(super) fn of_transfer(
        name: String,
        measurement: &Measurement,
        service_port: Option<u16>,
        rate: Option<BitRate>,
    ) -> Self {
        let forward;
        let m = if measurement.spec.direction == Direction::Both {
            forward = measurement.one_direction(false);
            &forward
        } else {
            measurement
        };
        let finding = diagnose::explain(m);
        let count = u32::try_from(m.streams.len()).unwrap_or(u32::MAX).max(1);
        let now = finding.throughput_bps;
        let port = service_port.unwrap_or(m.spec.port);
        let rtt = rtt(&finding);
        let is_ssh = port == SSH_PORT;
        let verdict = verdict(&finding, m, is_ssh.then_some(count));
        let name_of_control = congestion_name(m);
        let connections = Connections {
            congestion: congestion(name_of_control.as_deref()),
            window: window(&finding, m, count),
            program_window: is_ssh.then_some(OPENSSH),
            count,
        };
        let mss = mss(m);
        let loss = loss(m, mss);
        let bottleneck = bottleneck(&finding, m, rate, mss);
        let path = match (bottleneck, rtt) {
            _ if now == BitRate::ZERO => Err(BoostReason::LimitUnknown),
            (None, _) => Err(BoostReason::RateUnknown),
            (_, None) => Err(BoostReason::RttUnknown),
            (Some(rate), Some(rtt)) => Ok(LongPath { rate, rtt, loss, mss }),
        };
        let sends = m.spec.direction != Direction::Reverse;
        let send_window = m.host.tcp_wmem.filter(|_| sends && m.spec.window_bytes.is_none());
        let known = known(bottleneck, rtt, loss, &connections, name_of_control.as_deref());
        Situation {
            name,
            limit: finding.limit,
            confidence: finding.confidence,
            is_uncertain: is_uncertain(&finding),
            finding: Some(finding.sentence.clone()),
            now: Some(Estimate::exact(now)),
            path,
            known,
            connections,
            verdict,
            is_encrypted: ENCRYPTED_PORTS.contains(&port),
            // A file names it, and commands to paste have it.
            target: Some((m.spec.target.clone(), m.spec.port))
                .filter(|(host, _)| remote::check_host(host).is_ok()),
            sends,
            send_window: send_window.map(|[_, _, most]| {
                share_of_buffer(ByteCount::from_bytes(most), AUTOTUNED_SEND_SHARE)
            }),
        }
    }

    /// The path in the document.
    pub(super) fn document(&self) -> BoostPath {
        self.known.clone()
    }

    /// Returns true if the sender uses BBR with windows that hold the path.
    pub(super) fn is_already_bbr(&self) -> bool {
        let holds = self.path.as_ref().is_ok_and(|path| boost::holds_path(path, &self.connections));
        self.connections.congestion == Congestion::Bbr && holds
    }
}

fn known(
    rate: Option<Estimate<BitRate>>,
    rtt: Option<Estimate<Rtt>>,
    loss: Estimate<LossRatio>,
    connections: &Connections,
    congestion: Option<&str>,
) -> BoostPath {
    BoostPath {
        rate_bps: rate.map(interval),
        rtt_ms: rtt.map(|rtt| interval(rtt.map(Rtt::millis_f64))),
        loss: interval(loss),
        congestion: congestion.map(str::to_owned),
        window_bytes: connections.window,
        program_window_bytes: connections.program_window,
        streams: connections.count,
    }
}

pub(super) fn interval<T: Copy>(of: Estimate<T>) -> PredictionInterval<T> {
    PredictionInterval { expected: of.expected, low: of.low, high: of.high }
}

/// Why no option helps, or none is predicted; `ssh` is the number of connections to a server of SSH.
fn verdict(finding: &Finding, m: &Measurement, ssh: Option<u32>) -> Option<BoostReason> {
    if m.spec.protocol != Protocol::Tcp {
        return Some(BoostReason::NotTcp);
    }
    let waits_for_itself = matches!(
        finding.limit,
        None | Some(Limit::Application | Limit::FixedWindow | Limit::SendBuffer | Limit::Unknown)
    );
    if let Some(count) = ssh.filter(|_| waits_for_itself)
        && is_in_flight(finding, OPENSSH.times(u64::from(count)))
    {
        return Some(BoostReason::ProgramWindow);
    }
    Some(match finding.limit {
        None | Some(Limit::Unknown) => BoostReason::LimitUnknown,
        Some(Limit::Application) => BoostReason::Application,
        Some(Limit::SlowReceiver) => BoostReason::Receiver,
        Some(Limit::Pacing) => BoostReason::Pacing,
        Some(Limit::Cpu | Limit::Memory | Limit::PacingTimers) => BoostReason::Cpu,
        Some(Limit::PathRate | Limit::Aqm) => BoostReason::LineFull,
        Some(Limit::SharedBottleneck) => BoostReason::Shared,
        Some(Limit::Policer) => BoostReason::Policed,
        Some(Limit::Ramp) => BoostReason::TooShort,
        Some(Limit::EcnMarks) => BoostReason::NoModel,
        Some(
            Limit::Reordering
            | Limit::AckPath
            | Limit::PathChange
            | Limit::Outage
            | Limit::PmtuBlackHole,
        ) => BoostReason::PathFault,
        Some(
            Limit::ReceiveWindow
            | Limit::WindowScaling
            | Limit::SendBuffer
            | Limit::FixedWindow
            | Limit::CongestionAvoidance
            | Limit::ShallowQueue
            | Limit::Loss
            | Limit::ClusteredLoss,
        ) => return None,
    })
}

/// Returns true if the goodput is that of `window` in flight per RTT.
fn is_in_flight(finding: &Finding, window: ByteCount) -> bool {
    let Some(rtt) = finding.loaded_rtt.or(finding.min_rtt) else { return false };
    let expected = model::window_rate(window, rtt).map_or(0.0, BitRate::as_f64);
    (finding.throughput_bps.as_f64() / expected - 1.0).abs() <= NEAR_WINDOW
}

/// Returns true where a cause that no option removes is likely as well.
fn is_uncertain(finding: &Finding) -> bool {
    let hidden = |limit: Limit| {
        matches!(limit, Limit::Application | Limit::SlowReceiver | Limit::Cpu | Limit::Pacing)
            || limit.is_saturated()
    };
    let also = finding.posterior.iter();
    finding.confidence != Some(Confidence::Sure)
        || also.filter(|one| one.probability >= ALSO_LIKELY).any(|one| hidden(one.limit))
}

/// From the shortest one to the one under load, which a split connection of the same rate has too.
fn rtt(finding: &Finding) -> Option<Estimate<Rtt>> {
    let least = finding.min_rtt.or(finding.loaded_rtt).filter(|rtt| *rtt > Rtt::ZERO)?;
    let loaded = finding.loaded_rtt.unwrap_or(least).max(least);
    Some(Estimate { low: least, expected: least, high: loaded })
}

/// The bottleneck's payload rate: the one that was given, the lab's, or the transfer's estimate;
/// `None` where it shows a lower bound alone.
fn bottleneck(
    finding: &Finding,
    m: &Measurement,
    rate: Option<BitRate>,
    mss: ByteCount,
) -> Option<Estimate<BitRate>> {
    let lab = m.path.as_ref();
    let mtu = lab.map_or(mss.bytes() + HEADERS, |path| u64::from(path.mtu_bytes));
    let wire = mtu + lab.map_or(0, |path| u64::from(path.overhead_bytes));
    let payload = |rate: BitRate| {
        let share = mss.as_f64() / ByteCount::from_bytes(wire).as_f64();
        Estimate::exact(rate.scaled(share.min(1.0)))
    };
    let known = rate.or(lab.and_then(|path| path.rate_bps)).map(payload);
    let estimated = || {
        let found = finding.bottleneck?;
        Some(Estimate { low: found.low_bps, expected: found.rate_bps, high: found.high_bps? })
    };
    known.or_else(estimated).filter(|rate| rate.expected > BitRate::ZERO)
}

/// Header bytes of a segment: IPv4 and TCP with timestamps (RFC 791, 9293, 7323).
const HEADERS: u64 = 20 + 20 + 12;
/// Payload of a full segment on a path of 1500 bytes.
const USUAL_MSS: u64 = 1448;

fn mss(m: &Measurement) -> ByteCount {
    let samples = m.streams.iter().flat_map(|stream| &stream.sender);
    let most = samples.map(|sample| sample.mss_bytes).max().filter(|mss| *mss > 0);
    ByteCount::from_bytes(most.map_or(USUAL_MSS, u64::from))
}

/// The lab's loss, or retransmitted over sent segments.
fn loss(m: &Measurement, mss: ByteCount) -> Estimate<LossRatio> {
    if let Some(path) = &m.path {
        return Estimate::exact(path.loss);
    }
    let sent: u64 = m.streams.iter().map(|stream| stream.sent_bytes / mss.bytes().max(1)).sum();
    let lost = m.streams.iter().filter_map(|stream| stream.retransmits).sum();
    boost::loss_estimate(lost, sent).unwrap_or(Estimate::exact(LossRatio::NONE))
}

/// The window of each connection, where one limits the transfer.
fn window(finding: &Finding, m: &Measurement, count: u32) -> Option<ByteCount> {
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

fn congestion_name(m: &Measurement) -> Option<String> {
    let of_streams = m.streams.iter().find_map(|stream| stream.congestion.clone());
    of_streams.or_else(|| m.spec.congestion.clone())
}

/// The model of a congestion control; CUBIC, the default of every system, where it is not known.
fn congestion(name: Option<&str>) -> Congestion {
    match name {
        Some(name) if name.starts_with("bbr") => Congestion::Bbr,
        Some("reno") => Congestion::Reno,
        _ => Congestion::Cubic,
    }
}
