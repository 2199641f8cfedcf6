//! A transfer as it is: its path, its connections and its limit.

use super::PlannedLink;
use super::{measured, verdict};
use crate::{Field, Problem};
use model::boost::{self, Connections, Estimate, LongPath};
use model::{AUTOTUNED_SEND_SHARE, Congestion, Payload, share_of_buffer};
use record::{
    BoostPath, BoostReason, BoostSendBuffer, Confidence, Direction, Limit, Measurement,
    PredictionInterval,
};
use report::untrusted;
use topology::PathSpec;
use units::{BitRate, ByteCount, LossRatio, Rtt};

pub(super) const SSH_PORT: u16 = 22;

/// Ports of TLS and SSH, whose data does not compress.
pub(super) const ENCRYPTED_PORTS: [u16; 10] =
    [SSH_PORT, 443, 465, 636, 853, 989, 990, 993, 995, 8443];

/// The send buffer that autotuning reaches by default: the third value of `tcp_wmem`.
pub(super) const DEFAULT_SEND_BUFFER: ByteCount = ByteCount::from_bytes(4 << 20);

/// A measured goodput above this share of the given rate contradicts it.
const CONTRADICTED: f64 = 1.05;

/// What the user knows of a measured transfer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asked {
    /// The bottleneck's rate in IP bytes.
    pub(super) rate: Option<BitRate>,
    /// The sender's congestion control, where a file does not show it.
    pub(super) congestion: Option<Congestion>,
}

/// Ports of a connection of other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ObservedPorts {
    /// The lower one, which is the service's.
    pub(super) service: u16,
    /// The other host's.
    pub(super) peer: u16,
}

/// The part of a send buffer that is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SendWindow {
    pub(super) in_flight: ByteCount,
    pub(super) buffer: BoostSendBuffer,
}

impl SendWindow {
    /// Of an autotuned buffer.
    fn autotuned(most: ByteCount, is_assumed: bool) -> Self {
        SendWindow {
            in_flight: share_of_buffer(most, AUTOTUNED_SEND_SHARE),
            buffer: BoostSendBuffer { bytes: most, is_assumed },
        }
    }
}

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
    /// RTT and segment size, of a path that is not known completely as well.
    pub(super) rtt: Option<Estimate<Rtt>>,
    pub(super) mss: ByteCount,
    pub(super) connections: Connections,
    /// Why no option of the network helps.
    pub(super) verdict: Option<BoostReason>,
    /// True where another cause may be the limit, so that a gain is not certain.
    pub(super) is_uncertain: bool,
    /// True if the data is encrypted.
    pub(super) is_encrypted: bool,
    /// The other host, from a measurement, and the service's port if it is there.
    pub(super) target: Option<(String, Option<u16>)>,
    /// True if this host sends.
    pub(super) sends: bool,
    /// The sending host's buffer, unless a given window covers it.
    pub(super) send_window: Option<SendWindow>,
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
        let send_window =
            link.window.is_none().then(|| SendWindow::autotuned(DEFAULT_SEND_BUFFER, true));
        let connections = Connections {
            congestion: link.congestion,
            window: link.window.or(send_window.map(|window| window.in_flight)),
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
            known: BoostPath {
                window_bytes: link.window,
                send_buffer: limiting(send_window, &long, &connections),
                ..known(
                    Some(long.rate),
                    Some(long.rtt),
                    Some(long.loss),
                    &connections,
                    Some(link.congestion.name()),
                )
            },
            rtt: Some(long.rtt),
            mss: long.mss,
            connections,
            verdict: now.is_none().then_some(BoostReason::NoModel),
            is_uncertain: false,
            is_encrypted: false,
            target: None,
            sends: !link.reverse,
            send_window,
        })
    }

    /// Of what was measured: a transfer, or one in each direction.
    ///
    /// # Errors
    /// Something asked for that the measurement contradicts.
    pub(super) fn of_measurement(
        name: &str,
        measurement: &Measurement,
        ports: Option<ObservedPorts>,
        asked: &Asked,
    ) -> Result<Vec<Self>, Problem> {
        if measurement.spec.direction != Direction::Both {
            let one = Situation::of_transfer(name.to_owned(), measurement, ports, asked)?;
            return Ok(vec![one]);
        }
        let directions = [(false, "from the client"), (true, "to the client")];
        let with_streams = directions.into_iter().filter_map(|(reverse, direction)| {
            let part = measurement.one_direction(reverse);
            (!part.streams.is_empty()).then_some((part, direction))
        });
        let of = |(part, direction): (Measurement, &str)| {
            let name = if name.is_empty() { String::new() } else { format!("{name}, ") };
            Situation::of_transfer(name + direction, &part, ports, asked)
        };
        with_streams.map(of).collect()
    }

    /// Of a transfer in one direction; `ports` are those of a connection of other programs.
    fn of_transfer(
        name: String,
        m: &Measurement,
        ports: Option<ObservedPorts>,
        asked: &Asked,
    ) -> Result<Self, Problem> {
        let finding = diagnose::explain(m);
        let count = u32::try_from(m.streams.len()).unwrap_or(u32::MAX).max(1);
        let now = finding.throughput_bps;
        let rtt = measured::rtt(&finding);
        let limits = verdict::of(&finding, m, ports, count);
        let shown = measured::congestion_name(m);
        let connections = Connections {
            congestion: congestion(shown.as_deref(), asked)?,
            window: measured::window(&finding, m, count),
            program_window: limits.program_window,
            count,
        };
        let mss = measured::mss(m);
        let loss = measured::loss(m, mss);
        let bottleneck = match asked.rate {
            Some(rate) => Some(Estimate::exact(given_rate(m, rate, mss, now)?)),
            None => measured::bottleneck(&finding, m, mss),
        };
        let path = match (bottleneck, rtt) {
            _ if now == BitRate::ZERO => Err(BoostReason::LimitUnknown),
            (None, _) => Err(BoostReason::RateUnknown),
            (_, None) => Err(BoostReason::RttUnknown),
            (Some(rate), Some(rtt)) => {
                let loss = loss.unwrap_or(Estimate::exact(LossRatio::NONE));
                Ok(LongPath { rate, rtt, loss, mss })
            }
        };
        let sends = m.spec.direction != Direction::Reverse;
        let send_window = send_window(m, sends, now, rtt, count);
        let with_window = Connections {
            window: connections.window.or(send_window.map(|window| window.in_flight)),
            ..connections
        };
        let congestion_name = shown.or_else(|| asked.congestion.map(|name| name.name().to_owned()));
        let known = BoostPath {
            send_buffer: path
                .as_ref()
                .ok()
                .and_then(|path| limiting(send_window, path, &with_window)),
            ..known(bottleneck, rtt, loss, &connections, congestion_name.as_deref())
        };
        let service = ports.map_or(m.spec.port, |ports| ports.service);
        let port = ports.map_or(m.spec.port, |ports| ports.peer);
        Ok(Situation {
            name,
            limit: finding.limit,
            confidence: finding.confidence,
            is_uncertain: limits.is_uncertain || loss.is_none(),
            finding: Some(finding.sentence.clone()),
            now: Some(Estimate::exact(now)),
            path,
            known,
            rtt,
            mss,
            connections,
            verdict: limits.reason,
            is_encrypted: ENCRYPTED_PORTS.contains(&service),
            // A file names it, and commands to paste have it.
            target: Some(m.spec.target.clone())
                .filter(|host| remote::check_host(host).is_ok())
                .map(|host| (host, Some(port).filter(|port| *port > 0 && *port == service))),
            sends,
            send_window,
        })
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

    /// The connections with every window of the hosts, for another congestion control.
    pub(super) fn with_buffers(&self, congestion: Congestion) -> Connections {
        let send = self.send_window.map(|window| window.in_flight);
        Connections { congestion, window: self.connections.window.or(send), ..self.connections }
    }

    /// The part of a saturated bottleneck that the transfer has, as a path of its own: what remains
    /// of it for fewer bytes, or from a nearer host.
    pub(super) fn own_share(&self) -> Result<LongPath, BoostReason> {
        let now = self.now.filter(|now| now.expected > BitRate::ZERO);
        let rate = now.ok_or(BoostReason::LimitUnknown)?;
        let rtt = self.rtt.ok_or(BoostReason::RttUnknown)?;
        Ok(LongPath { rate, rtt, loss: Estimate::exact(LossRatio::NONE), mss: self.mss })
    }
}

/// The payload rate of a given bottleneck, which carried `now`.
fn given_rate(
    m: &Measurement,
    rate: BitRate,
    mss: ByteCount,
    now: BitRate,
) -> Result<BitRate, Problem> {
    let payload = measured::payload_rate(m, rate, mss);
    if payload.scaled(CONTRADICTED) >= now {
        return Ok(payload.max(now));
    }
    let message = format!("a rate of {rate} is below the goodput that was measured, {now}");
    Err(Problem::field(Field::Rate, message, "the bottleneck's rate"))
}

/// The sending host's buffer: that of the test, of this host, or Linux's default. `None` where the
/// goodput shows more in flight than the default holds.
fn send_window(
    m: &Measurement,
    sends: bool,
    now: BitRate,
    rtt: Option<Estimate<Rtt>>,
    count: u32,
) -> Option<SendWindow> {
    if let Some(window) = m.spec.window_bytes.filter(|window| *window > ByteCount::ZERO) {
        let buffer = BoostSendBuffer { bytes: window, is_assumed: false };
        return Some(SendWindow { in_flight: window, buffer });
    }
    if let Some([_, _, most]) = m.host.tcp_wmem.filter(|_| sends) {
        return Some(SendWindow::autotuned(ByteCount::from_bytes(most), false));
    }
    let default = SendWindow::autotuned(DEFAULT_SEND_BUFFER, true);
    let in_flight = rtt.map(|rtt| model::per_stream(model::bdp(now, rtt.expected), count));
    Some(default).filter(|one| in_flight.is_none_or(|in_flight| in_flight <= one.in_flight))
}

/// The send buffer, if the path needs more in flight than the connections have.
fn limiting(
    window: Option<SendWindow>,
    path: &LongPath,
    of: &Connections,
) -> Option<BoostSendBuffer> {
    let of = Connections { program_window: None, ..*of };
    window.map(|window| window.buffer).filter(|_| !boost::holds_path(path, &of))
}

/// The congestion control of a transfer: the one that it shows, or that was asked for.
fn congestion(shown: Option<&str>, asked: &Asked) -> Result<Congestion, Problem> {
    let (Some(name), Some(asked)) = (shown, asked.congestion) else {
        return Ok(asked.congestion.unwrap_or_else(|| measured::congestion(shown)));
    };
    let found = measured::congestion(Some(name));
    if found == asked {
        return Ok(found);
    }
    let name = untrusted::excerpt(name, 20);
    let message = format!("the transfer used {name}, not {}", asked.name());
    Err(Problem::field(Field::Congestion, message, "only where a file does not show it"))
}

fn known(
    rate: Option<Estimate<BitRate>>,
    rtt: Option<Estimate<Rtt>>,
    loss: Option<Estimate<LossRatio>>,
    connections: &Connections,
    congestion: Option<&str>,
) -> BoostPath {
    BoostPath {
        rate_bps: rate.map(interval),
        rtt_ms: rtt.map(|rtt| interval(rtt.map(Rtt::millis_f64))),
        loss: loss.map(interval),
        congestion: congestion.map(str::to_owned),
        window_bytes: connections.window,
        send_buffer: None,
        program_window_bytes: connections.program_window,
        streams: connections.count,
    }
}

pub(super) fn interval<T: Copy>(of: Estimate<T>) -> PredictionInterval<T> {
    PredictionInterval { expected: of.expected, low: of.low, high: of.high }
}
