//! What is simulated, and what comes of it.

use crate::{DatagramSource, HostPauses, TruthInterval};
use control::{Algorithm, Arithmetic};
use link::{Counters, EcnCodepoint, Schedule};
use record::Measurement;
use std::time::Duration;
use tcp::{
    Application, BufferCheck, BufferSize, KernelVersion, Reader, SenderInfo, WindowSize, WriteLimit,
};
use units::{BitRate, ByteCount};

/// A path and the traffic over it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// From senders to receivers.
    pub forward: Schedule,
    /// The opposite direction, which carries acknowledgements.
    pub reverse: Schedule,
    /// TCP connections, measured or not.
    pub connections: Vec<ConnectionConfig>,
    /// UDP cross traffic.
    pub datagrams: Vec<DatagramSource>,
    /// Pauses of the host that sends the connections' data; `None`: it is never late.
    pub sending_host: Option<HostPauses>,
    /// Pauses of the host that receives it.
    pub receiving_host: Option<HostPauses>,
    /// How long, from the first packet on.
    pub duration: Duration,
    /// How packets of one burst reach the receiver.
    pub granularity: Granularity,
    /// Whether the ground truth is kept: some 200 bytes for each connection and 100 ms.
    pub truth: bool,
    /// Data packets after which the simulation ends early: bounds the work where a path
    /// without delay or rate limit would carry packets without end.
    pub max_packets: u64,
}

impl Scenario {
    /// One measured bulk connection over a path; at most 100 million packets.
    #[must_use]
    pub fn new(
        forward: impl Into<Schedule>,
        reverse: impl Into<Schedule>,
        duration: Duration,
    ) -> Self {
        Scenario {
            forward: forward.into(),
            reverse: reverse.into(),
            connections: vec![ConnectionConfig::default()],
            datagrams: Vec::new(),
            sending_host: None,
            receiving_host: None,
            granularity: Granularity::default(),
            truth: true,
            duration,
            max_packets: 100_000_000,
        }
    }
}

/// What a connection negotiated about ECN. The receiver counts marks exactly in either case
/// (as AccECN does), and how the sender responds is its congestion control's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Data packets are not ECN-capable.
    #[default]
    Off,
    /// They have ECT(0) (RFC 3168).
    Classic,
    /// They have ECT(1) (RFC 9331): for a control with a scalable response, such as Prague.
    L4s,
}

impl Ecn {
    /// What a congestion control negotiates of itself: one that responds to nothing but marks
    /// cannot do without them (Linux's `TCP_CONG_NEEDS_ECN`).
    #[must_use]
    pub const fn needed_by(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Prague => Ecn::L4s,
            Algorithm::Dctcp => Ecn::Classic,
            _ => Ecn::Off,
        }
    }

    /// The ECN field of data packets.
    pub(crate) const fn codepoint(self) -> EcnCodepoint {
        match self {
            Ecn::Off => EcnCodepoint::NotEct,
            Ecn::Classic => EcnCodepoint::Ect0,
            Ecn::L4s => EcnCodepoint::Ect1,
        }
    }
}

/// How packets that left as one burst reach the receiver. Queues, marks and losses are about
/// single packets in either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Granularity {
    /// Those that arrive within [`link::COALESCE`] are handled and acknowledged together, as
    /// with a kernel's receive offload. Five times as fast at 10 Gbit/s.
    #[default]
    Trains,
    /// Each at the moment at which it arrives.
    Exact,
}

/// A TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// When it begins.
    pub start: Duration,
    /// What its round trip has beyond that of the path: the delay of an access link of its own.
    pub access_delay: Duration,
    /// When its application ends, if before the run; time counts from `start`.
    pub limit: WriteLimit,
    /// Whether it is part of the measurement; if not, it is cross traffic.
    pub measured: bool,
    /// Congestion control, unless [`crate::run_with`] gives it another.
    pub algorithm: Algorithm,
    /// How it counts, where it can in two ways.
    pub arithmetic: Arithmetic,
    /// Payload of a packet, bytes.
    pub mss: u32,
    /// What the sender writes.
    pub application: Application,
    /// The send buffer.
    pub buffer: BufferSize,
    /// When a writer has to wait for room in it.
    pub buffer_check: BufferCheck,
    /// Most that it may be paced at (`--fq-rate`).
    pub max_pacing_rate: Option<BitRate>,
    /// The receive window.
    pub window: WindowSize,
    /// How the receiving application reads.
    pub reader: Reader,
    /// ECN.
    pub ecn: Ecn,
    /// The Linux that the sender follows.
    pub kernel: KernelVersion,
}

impl Default for ConnectionConfig {
    /// A measured bulk connection with CUBIC, an MTU of 1500 and buffers that do not
    /// limit it.
    fn default() -> Self {
        let ample = ByteCount::from_bytes(1 << 30);
        ConnectionConfig {
            start: Duration::ZERO,
            access_delay: Duration::ZERO,
            limit: WriteLimit::default(),
            measured: true,
            algorithm: Algorithm::default(),
            arithmetic: Arithmetic::default(),
            mss: 1448,
            application: Application::Bulk,
            buffer: BufferSize::Fixed(ample),
            buffer_check: BufferCheck::default(),
            max_pacing_rate: None,
            window: WindowSize::Fixed(ample),
            reader: Reader::Immediate,
            ecn: Ecn::Off,
            kernel: KernelVersion::default(),
        }
    }
}

impl ConnectionConfig {
    /// The rate at which the application writes, if limited (`-b`).
    pub(crate) fn rate(&self) -> Option<BitRate> {
        match self.application {
            Application::Rate { rate, .. } => Some(rate),
            Application::Bulk | Application::OnOff { .. } => None,
        }
    }
}

/// What a simulation gave.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// As the lab would have measured it.
    pub measurement: Measurement,
    /// The ground truth, for each 100 ms; empty without [`Scenario::truth`].
    pub truth: Vec<TruthInterval>,
    /// The final state of each connection's sender.
    pub senders: Vec<SenderInfo>,
    /// Packets that each connection's application read.
    pub read: Vec<u64>,
    /// Counters of the forward link.
    pub forward: Counters,
    /// Counters of the reverse link.
    pub reverse: Counters,
    /// Data packets sent, retransmissions and datagrams included.
    pub packets: u64,
    /// Whether [`Scenario::max_packets`] ended it.
    pub truncated: bool,
    /// Whether the observer ended it.
    pub interrupted: bool,
}

/// A controller could not go on, which ended the simulation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("congestion control '{name}' of flow {}: {reason}", connection + 1)]
pub struct ControllerFailed {
    /// The connection that it controlled, by its index in the scenario.
    pub connection: usize,
    /// The controller's name.
    pub name: String,
    /// What it said of its failure, in one line.
    pub reason: String,
}
