//! What is simulated: one transfer over its own path, and the traffic beside it.

use control::Algorithm;
use std::fmt;
use topology::PathError;
use units::{BitRate, ByteCount};

/// The longest scenario, s.
pub const MAX_SECONDS: f64 = 3600.0;
/// The most measured streams of a scenario.
pub const MAX_STREAMS: u32 = 128;
/// The most flows of cross traffic.
pub const MAX_CROSS_FLOWS: usize = 128;

/// A transfer, and the traffic beside it. It can also be run between real hosts, over an
/// emulated path.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The family that it was drawn from; empty if it was not drawn.
    pub family: &'static str,
    /// Its number within the seed.
    pub number: usize,
    /// The path, in the syntax of [`topology::PathSpec`].
    pub path: String,
    /// Congestion control of the measured streams.
    pub congestion: Algorithm,
    /// Measured streams (`-P`).
    pub streams: u32,
    /// The server sends (`-R`): `down.` is the direction of the data.
    pub reverse: bool,
    /// How long the transfer lasts.
    pub seconds: f64,
    /// Rate limit of the application, for each stream (`-b`).
    pub rate: Option<BitRate>,
    /// Pacing rate of each socket (`--fq-rate`).
    pub pacing: Option<BitRate>,
    /// Bytes per write.
    pub block: Option<ByteCount>,
    /// Rate at which the receiving application reads, for each stream; `None`: at once.
    pub reader: Option<BitRate>,
    /// Payload that each send buffer holds at most; `None`: ample.
    pub send_buffer: Option<ByteCount>,
    /// The largest receive window, in payload bytes; `None`: ample. A real host has twice as
    /// much as `tcp_rmem`'s maximum.
    pub receive_window: Option<ByteCount>,
    /// Both buffers of the socket at the client and at the server (`-w`).
    pub window: Option<ByteCount>,
    /// Settings of both hosts in addition to what the path needs; real hosts only.
    pub sysctls: Vec<(String, String)>,
    /// The streams negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Traffic beside the streams, in their direction and through the same bottleneck.
    pub cross: Vec<CrossFlow>,
}

/// One flow of cross traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CrossFlow {
    /// A bulk TCP connection without end.
    Tcp {
        /// Its congestion control.
        congestion: Algorithm,
        /// When it begins, seconds after the start; 0: with the streams.
        start_s: f64,
    },
    /// Datagrams of 1200 bytes (IP) at a constant rate while on; it begins with it.
    OnOffUdp {
        /// Rate of the IP packets while on.
        rate: BitRate,
        /// How long it sends, s.
        on_s: f64,
        /// How long it does not, s.
        off_s: f64,
    },
}

/// The reason why a scenario cannot run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// The path is not valid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The length is not positive, or exceeds [`MAX_SECONDS`].
    #[error("a scenario lasts more than 0 and at most {MAX_SECONDS} seconds")]
    Seconds,
    /// No stream, or more than [`MAX_STREAMS`].
    #[error("a scenario has 1 to {MAX_STREAMS} streams")]
    Streams,
    /// More flows of cross traffic than [`MAX_CROSS_FLOWS`].
    #[error("a scenario has at most {MAX_CROSS_FLOWS} flows of cross traffic")]
    CrossFlows,
}

impl Scenario {
    /// A bulk transfer of one stream over a path, forward, with CUBIC.
    #[must_use]
    pub fn new(path: impl Into<String>, seconds: f64) -> Self {
        Scenario {
            family: "",
            number: 0,
            path: path.into(),
            congestion: Algorithm::Cubic,
            streams: 1,
            reverse: false,
            seconds,
            rate: None,
            pacing: None,
            block: None,
            reader: None,
            send_buffer: None,
            receive_window: None,
            window: None,
            sysctls: Vec::new(),
            ecn: false,
            cross: Vec::new(),
        }
    }

    /// The seed of the path's draws: those of two numbers have nothing in common.
    #[must_use]
    pub const fn path_seed(&self, seed: u64) -> u64 {
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.number as u64)
    }

    /// The settings of both hosts, for real ones: buffers, windows, ECN, and those of its own.
    #[must_use]
    pub fn host_sysctls(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut set = |key: &str, value: String| all.push((format!("net.ipv4.{key}"), value));
        // At least two segments with the kernel's own overhead.
        let triple = |bytes: u64| {
            let bytes = bytes.clamp(8192, i32::MAX.unsigned_abs().into());
            format!("4096 {} {bytes}", bytes.min(131_072))
        };
        if let Some(buffer) = self.send_buffer {
            set("tcp_wmem", triple(buffer.bytes()));
        }
        if let Some(window) = self.receive_window {
            // Half of the buffer becomes window.
            set("tcp_rmem", triple(window.bytes().saturating_mul(2)));
        }
        if self.ecn {
            set("tcp_ecn", "1".to_owned());
        }
        all.extend(self.sysctls.iter().cloned());
        all
    }

    /// Checks the bounds; [`Scenario::run`] checks the path too.
    ///
    /// # Errors
    /// One is exceeded.
    pub fn check(&self) -> Result<(), ScenarioError> {
        if !(self.seconds > 0.0 && self.seconds <= MAX_SECONDS) {
            return Err(ScenarioError::Seconds);
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Err(ScenarioError::Streams);
        }
        if self.cross.len() > MAX_CROSS_FLOWS {
            return Err(ScenarioError::CrossFlows);
        }
        Ok(())
    }
}

/// In a line: the number, the family, the path and what differs from a bulk transfer.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { number, family, path, congestion, streams, seconds, .. } = self;
        write!(f, "{number} {family} {path} {} x{streams} {seconds:.1} s", congestion.name())?;
        if self.reverse {
            write!(f, " reverse")?;
        }
        let rates = [("rate", self.rate), ("pacing", self.pacing), ("reader", self.reader)];
        for (name, rate) in rates.into_iter().filter_map(|(name, rate)| Some((name, rate?))) {
            write!(f, " {name} {rate}")?;
        }
        let sizes = [
            ("send buffer", self.send_buffer),
            ("receive window", self.receive_window),
            ("socket buffers", self.window),
            ("block", self.block.filter(|_| self.rate.is_none())),
        ];
        for (name, size) in sizes.into_iter().filter_map(|(name, size)| Some((name, size?))) {
            write!(f, " {name} {size}")?;
        }
        if self.ecn {
            write!(f, " ecn")?;
        }
        self.cross.iter().try_for_each(|flow| write!(f, " {flow}"))
    }
}

impl fmt::Display for CrossFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrossFlow::Tcp { congestion, start_s } => {
                let name = congestion.name();
                write!(f, "Tcp {{ congestion: {name:?}, start_s: {start_s:?} }}")
            }
            CrossFlow::OnOffUdp { .. } => write!(f, "{self:?}"),
        }
    }
}
