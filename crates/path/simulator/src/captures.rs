//! What captures at both hosts of a simulation show: each packet is built, dissected
//! and analysed as one out of a file is.
//!
//! Segments have the headers of Linux: timestamps of 1 ms, SACK and D-SACK blocks, a window
//! that is scaled. The handshake is added; the twin has none.

use crate::Scenario;
use capture::LinkType;
use capture::dissect::{self, Layers, PacketDirection};
use record::Measurement;
use std::time::Duration;
use tcp::{Acknowledgement, Segments};
use tcp_analysis::{
    CapturePoint, CongestionEvidence, Connection, PacketPosition, Requested, Rules, Sampled,
    Sampler, measurement,
};
use twin::{Host, Observer};
use units::Nanos;

/// Time of the first packet, ns since 1970: a capture has no time 0.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
const PORT: u16 = 5201;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;
/// Enough for the windows of all families.
const SCALE: u8 = 13;

/// What captures of a run show: at the sender first, then at the receiver.
#[derive(Debug, Clone)]
pub struct Captures {
    /// The measurement that each gives.
    pub measurements: [Measurement; 2],
    /// The evidence for the first stream's congestion control.
    pub congestion: [CongestionEvidence; 2],
}

/// Captures at the sending and at the receiving host.
pub(crate) struct SimulatedCapture {
    mss: u32,
    scale: Option<u8>,
    ecn: bool,
    first_window: u64,
    /// Of each measured connection, by its number.
    captured: Vec<CapturedStream>,
    layers: Layers,
    bytes: Vec<u8>,
}

struct CapturedStream {
    hosts: [(Connection, Sampler, u64); 2],
    /// CE marks that the receiver's ACKs reported, as they passed each host.
    marks: [u64; 2],
}

/// The fields of a header that change.
struct Header<'a> {
    forward: bool,
    seq: u64,
    ack: u64,
    flags: u8,
    window: u64,
    sent: Nanos,
    echo: Nanos,
    sacks: &'a [(u64, u64)],
    payload: u32,
    marked: bool,
}

impl SimulatedCapture {
    /// Of the measured connections of a scenario, the first of the scenario, over a path of `rtt`;
    /// `scaled`: window scaling is not removed from the SYN.
    pub(crate) fn new(scenario: &Scenario, mss: u32, scaled: bool, rtt: Duration) -> Self {
        let (streams, ecn) = (scenario.streams, scenario.ecn);
        let duration_ns = (scenario.seconds * 1e9) as u64;
        let first_window =
            scenario.receive_window.map_or(64_240, |window| window.bytes().min(64_240));
        let host = |point| {
            (Connection::default(), Sampler::new(PacketDirection::AToB, duration_ns, point), 0)
        };
        let hosts = || [CapturePoint::Sender, CapturePoint::Receiver].map(host);
        let captured =
            (0..streams).map(|_| CapturedStream { hosts: hosts(), marks: [0; 2] }).collect();
        let scale = scaled.then_some(SCALE);
        let mut captures = SimulatedCapture {
            mss,
            scale,
            ecn,
            first_window,
            captured,
            layers: Layers::new(),
            bytes: Vec::with_capacity(160),
        };
        for connection in 0..streams {
            captures.handshake(connection, rtt);
        }
        captures
    }

    fn handshake(&mut self, connection: u32, rtt: Duration) {
        let rtt = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX).max(20_000);
        let window = self.first_window;
        let header = |forward, flags, seq, ack| Header {
            forward,
            seq,
            ack,
            flags,
            window,
            sent: Nanos(0),
            echo: Nanos(0),
            sacks: &[],
            payload: 0,
            marked: false,
        };
        let answer = 10_000;
        // At the sending host, then at the receiving host, half an RTT later.
        let times = [[0, rtt, rtt + answer], [rtt / 2, rtt / 2 + answer, rtt * 3 / 2 + answer]];
        for (host, times) in [Host::Sending, Host::Receiving].into_iter().zip(times) {
            let (ask, answer_ecn) = if self.ecn { (ECE | CWR, ECE) } else { (0, 0) };
            let packets =
                [(true, SYN | ask, 0, 0), (false, SYN | ACK | answer_ecn, 0, 1), (true, ACK, 1, 1)];
            for (at, (forward, flags, seq, ack)) in times.into_iter().zip(packets) {
                // The data begins at 1 s.
                let at = Nanos(at + 900_000_000u64.saturating_sub(rtt));
                self.packet(at, host, connection, &header(forward, flags, seq, ack));
            }
        }
    }

    fn packet(&mut self, at: Nanos, host: Host, connection: u32, header: &Header<'_>) {
        build(&mut self.bytes, connection, header, self.scale, self.mss);
        let length = self.bytes.len() as u32 + header.payload;
        dissect::dissect(LinkType::RAW, &self.bytes, length, &mut self.layers);
        let segment =
            self.layers.tcp(&self.bytes).filter(|_| (connection as usize) < self.captured.len());
        let Some(segment) = segment else { return };
        let place = usize::from(host == Host::Receiving);
        let (state, sampler, packets) = &mut self.captured[connection as usize].hosts[place];
        *packets += 1;
        let time_ns = EPOCH_NS + at.0;
        let position = PacketPosition { packet: *packets, time_ns, reuses_ports: false };
        let found = state.add(Rules::default(), position, &segment);
        sampler.add(state, position, &segment, &found);
    }

    /// What both captures show at the end.
    /// The tests' parameters are those that iperf3's control connection shows.
    pub(crate) fn finish(self, scenario: &Scenario) -> Captures {
        let first = self.captured.first().map(|stream| stream.hosts.each_ref());
        let congestion = first.map_or_else(Default::default, |hosts| {
            hosts.map(|(_, sampler, _)| sampler.congestion())
        });
        Captures { measurements: self.measurements(scenario), congestion }
    }

    fn measurements(self, scenario: &Scenario) -> [Measurement; 2] {
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for CapturedStream { hosts: [near, far], .. } in self.captured {
            sending.push(near);
            receiving.push(far);
        }
        [sending, receiving].map(|hosts| {
            let streams = hosts.iter().map(|(connection, sampler, _)| Sampled {
                caveats: Vec::new(),
                connection,
                sampler: sampler.clone(),
                is_bulk: true,
            });
            let requested = Requested {
                congestion: Some(scenario.congestion.name()),
                rate: scenario.rate,
                pacing: scenario.pacing,
                window: None,
            };
            measurement(("10.0.0.2", PORT), requested, streams.collect(), Vec::new())
        })
    }
}

impl Observer for SimulatedCapture {
    fn data(&mut self, now: Nanos, host: Host, connection: u32, data: &Segments, marked: bool) {
        if connection as usize >= self.captured.len() {
            return;
        }
        let at = Nanos(now.0 + 1_000_000_000);
        let header = |packet: u64, payload| Header {
            forward: true,
            seq: 1 + packet * u64::from(self.mss),
            ack: 1,
            flags: ACK,
            window: 65_536,
            sent: data.sent,
            echo: data.echo,
            sacks: &[],
            payload,
            marked,
        };
        let headers: Vec<Header<'_>> = if data.run.is_empty() {
            // A window probe has the number of a byte that was acknowledged.
            vec![Header { seq: header(data.run.start, 0).seq.saturating_sub(1), ..header(0, 0) }]
        } else {
            (data.run.start..data.run.end).map(|packet| header(packet, self.mss)).collect()
        };
        for header in headers {
            self.packet(at, host, connection, &header);
        }
    }

    fn acknowledgement(&mut self, now: Nanos, host: Host, connection: u32, ack: &Acknowledgement) {
        if connection as usize >= self.captured.len() {
            return;
        }
        let byte = |packet: u64| 1 + packet * u64::from(self.mss);
        let duplicate = (!ack.duplicate.is_empty()).then_some(&ack.duplicate);
        let sacks: Vec<(u64, u64)> = duplicate
            .into_iter()
            .chain(ack.sacks.as_slice())
            .take(tcp::MAX_SACK_BLOCKS)
            .map(|run| (byte(run.start), byte(run.end)))
            .collect();
        let marks =
            &mut self.captured[connection as usize].marks[usize::from(host == Host::Receiving)];
        let marked = ack.marked > *marks;
        *marks = ack.marked.max(*marks);
        let header = Header {
            forward: false,
            seq: 1,
            ack: byte(ack.next),
            flags: if marked { ACK | ECE } else { ACK },
            window: ack.window * u64::from(self.mss),
            sent: ack.sent,
            echo: ack.echo,
            sacks: &sacks,
            payload: 0,
            marked: false,
        };
        self.packet(Nanos(now.0 + 1_000_000_000), host, connection, &header);
    }
}

/// Headers of IPv4 and TCP, without payload.
fn build(bytes: &mut Vec<u8>, connection: u32, header: &Header<'_>, scale: Option<u8>, mss: u32) {
    let is_syn = header.flags & SYN != 0;
    let mut options = Vec::with_capacity(40);
    if is_syn {
        options.extend([2, 4]);
        options.extend((mss as u16 + 12).to_be_bytes());
        options.extend([4, 2]);
    }
    // Values of 1 ms that are never 0.
    let stamp = |at: Nanos| (at.0 / 1_000_000) as u32 + 2000;
    options.extend([8, 10]);
    options.extend(stamp(header.sent).to_be_bytes());
    let echo = if header.flags & (SYN | ACK) == SYN { 0 } else { stamp(header.echo) };
    options.extend(echo.to_be_bytes());
    if let Some(scale) = scale.filter(|_| is_syn) {
        options.extend([3, 3, scale]);
    }
    if !header.sacks.is_empty() {
        options.extend([5, 2 + 8 * header.sacks.len() as u8]);
        for (from, to) in header.sacks {
            options.extend((*from as u32).to_be_bytes());
            options.extend((*to as u32).to_be_bytes());
        }
    }
    options.resize(options.len().next_multiple_of(4), 1);
    let headers = 40 + options.len() as u32;
    let total = u16::try_from(headers + header.payload).unwrap_or(u16::MAX);
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to) = if header.forward { (client, server) } else { (server, client) };
    let own_port = 40_000 + connection as u16;
    let ports = if header.forward { [own_port, PORT] } else { [PORT, own_port] };
    let shift = if is_syn { 0 } else { scale.unwrap_or(0) };
    let window = u16::try_from(header.window >> shift).unwrap_or(u16::MAX);
    bytes.clear();
    bytes.extend([0x45, if header.marked { 3 } else { 0 }]);
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(ports.map(u16::to_be_bytes).as_flattened());
    bytes.extend((header.seq as u32).to_be_bytes());
    bytes.extend((header.ack as u32).to_be_bytes());
    bytes.extend([((20 + options.len() as u8) / 4) << 4, header.flags]);
    bytes.extend(window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(&options);
}
