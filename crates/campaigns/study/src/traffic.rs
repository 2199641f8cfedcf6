//! The traffic of one flow of a test.

use crate::level::Level;
use crate::program::{Placeholder, Program};
use crate::setting::Setting;
use crate::test_error::TestError;
use crate::value::{CacheState, Source, Value};
use control::{Algorithm, UDT_ALGORITHMS};
use model::IpVersion;
use record::{Direction, Protocol};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The traffic of one flow of a test, and its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Its name in the plan; `traffic` in a plan without flows of its own.
    pub name: String,
    /// TCP, UDP or UDT.
    pub protocol: Protocol,
    /// The program that transfers; `None`: longhaul.
    pub program: Option<Arc<Program>>,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// When it starts, since the test began.
    pub start: Duration,
    /// How long it sends, after `omit`.
    pub duration: Duration,
    /// Warm-up that counts for no figure, in whole seconds.
    pub omit: Duration,
    /// Parallel streams.
    pub streams: u32,
    /// Congestion control of the sender, by the kernel's name, or by UDT's; `None`: the
    /// protocol's own.
    pub congestion: Option<String>,
    /// Who sends.
    pub direction: Direction,
    /// The rate of each stream; `None`: as fast as possible.
    pub bitrate: Option<BitRate>,
    /// The rate at which the kernel paces the payload of each TCP stream; `None`: as the
    /// congestion control decides.
    pub pacing: Option<BitRate>,
    /// Bytes per write, or the payload of a datagram; `None`: the client's default.
    pub block: Option<ByteCount>,
    /// The source of the data.
    pub source: Source,
    /// The rate of the disk that its file is on.
    pub disk: Option<BitRate>,
    /// Bytes of the file that are read before any of them is sent; `None`: a block.
    pub chunk: Option<ByteCount>,
    /// Bytes of the object that a program fetches.
    pub object: Option<ByteCount>,
    /// First and last byte of it that are asked for; `None`: all of them.
    pub range: Option<(u64, u64)>,
    /// What a cache on the way has of it.
    pub cache_state: CacheState,
}

/// The name of the only flow of a plan without `[flows]`.
pub(crate) const ONLY: &str = "traffic";

/// Bytes of a file that are read at once, as of the client.
const CHUNKS: RangeInclusive<ByteCount> =
    ByteCount::from_bytes(1)..=ByteCount::from_bytes(64 << 20);
impl Traffic {
    /// Ten seconds of TCP over one stream.
    pub(crate) fn new(name: &str) -> Self {
        Traffic {
            name: name.to_owned(),
            protocol: Protocol::Tcp,
            program: None,
            ip: IpVersion::Ipv4,
            start: Duration::ZERO,
            duration: Duration::from_secs(10),
            omit: Duration::ZERO,
            streams: 1,
            congestion: None,
            direction: Direction::Forward,
            bitrate: None,
            pacing: None,
            block: None,
            source: Source::default(),
            disk: None,
            chunk: None,
            object: None,
            range: None,
            cache_state: CacheState::default(),
        }
    }

    /// Sets what a flow has; other settings are not of flows.
    pub(crate) fn set(&mut self, setting: &Setting, level: &Level) {
        let number = level.number().unwrap_or(0.0);
        let time = || Duration::try_from_secs_f64(number).unwrap_or_default();
        match (setting, &level.value) {
            (_, Value::Protocol(protocol)) => self.protocol = *protocol,
            (_, Value::Program(program)) => self.program.clone_from(program),
            (_, Value::Ip(ip)) => self.ip = *ip,
            (_, Value::Direction(direction)) => self.direction = *direction,
            (_, Value::Source(source)) => self.source = *source,
            (_, Value::CacheState(state)) => self.cache_state = *state,
            (_, Value::Range(first, last)) => self.range = Some((*first, *last)),
            (Setting::Object, _) => self.object = Some(ByteCount::from_f64(number)),
            (Setting::Congestion, _) => self.congestion = Some(level.text.clone()),
            (Setting::Start, _) => self.start = time(),
            (Setting::Duration, _) => self.duration = time(),
            (Setting::Omit, _) => self.omit = time(),
            (Setting::Streams, _) => self.streams = number as u32,
            (Setting::Bitrate, _) => self.bitrate = Some(BitRate::from_bps_f64(number)),
            (Setting::Pacing, _) => self.pacing = Some(BitRate::from_bps_f64(number)),
            (Setting::Block, _) => self.block = Some(ByteCount::from_f64(number)),
            (Setting::Disk, _) => self.disk = Some(BitRate::from_bps_f64(number)),
            (Setting::Chunk, _) => self.chunk = Some(ByteCount::from_f64(number)),
            _ => {}
        }
    }

    /// What its settings contradict.
    pub(crate) fn check(&self) -> Result<(), TestError> {
        self.program.as_ref().map_or(Ok(()), |program| self.check_program(program))?;
        let is_of_object = self.range.is_some() || self.cache_state != CacheState::Cold;
        if is_of_object && self.object.is_none() || self.object.is_some() && self.program.is_none()
        {
            return Err(TestError::Object);
        }
        if self.protocol == Protocol::Udp && self.bitrate.is_none() {
            return Err(TestError::UdpBitrate);
        }
        if self.protocol != Protocol::Tcp && self.pacing.is_some() {
            return Err(TestError::Pacing);
        }
        if let (Protocol::Udt, Some(name)) = (self.protocol, &self.congestion)
            && Algorithm::for_udt(name).or(Algorithm::for_native(name)).is_none()
        {
            return Err(TestError::UdtCongestion { name: name.clone() });
        }
        self.check_file()?;
        if self.omit.subsec_nanos() > 0 {
            return Err(TestError::Omit);
        }
        Ok(())
    }

    /// A file is read from a disk of a rate, and sent by the client.
    fn check_file(&self) -> Result<(), TestError> {
        if self.source == Source::Memory {
            return Ok(());
        }
        if self.protocol == Protocol::Udp {
            return Err(TestError::FileOverUdp);
        }
        if self.direction != Direction::Forward {
            return Err(TestError::FileDirection);
        }
        if self.disk.is_none_or(|rate| rate == BitRate::ZERO) {
            return Err(TestError::FileDisk);
        }
        if self.chunk.is_some_and(|chunk| !CHUNKS.contains(&chunk)) {
            return Err(TestError::Chunk);
        }
        Ok(())
    }

    /// A program can be told only what its command lines have a place for.
    fn check_program(&self, program: &Program) -> Result<(), TestError> {
        let ignored = [
            (self.streams != 1, Placeholder::Streams, "streams"),
            (self.bitrate.is_some(), Placeholder::Bitrate, "bitrate"),
            (self.block.is_some(), Placeholder::Block, "block"),
            (self.object.is_some(), Placeholder::Object, "object"),
            (self.range.is_some(), Placeholder::Range, "range"),
            (self.cache_state != CacheState::Cold, Placeholder::CacheState, "cache_state"),
        ];
        let name = || program.name.clone();
        for (set, placeholder, setting) in ignored {
            if set && !program.has(placeholder) {
                let placeholder = placeholder.text();
                return Err(TestError::NoPlaceholder { program: name(), placeholder, setting });
            }
        }
        let setting = if self.protocol != Protocol::Tcp {
            "protocol"
        } else if self.pacing.is_some() {
            "pacing"
        } else if self.direction != Direction::Forward {
            "direction"
        } else if self.source != Source::Memory {
            "source"
        } else {
            return Ok(());
        };
        Err(TestError::NotForPrograms { setting, program: name() })
    }

    /// Congestion control of the sender; that of TCP is CUBIC unless the plan has another.
    #[must_use]
    pub fn congestion(&self) -> &str {
        let own = match self.protocol {
            Protocol::Udt => UDT_ALGORITHMS[0],
            Protocol::Tcp | Protocol::Udp => Algorithm::default(),
        };
        self.congestion.as_deref().unwrap_or(own.name())
    }

    /// The rate of its disk, if it sends a file.
    #[must_use]
    pub fn disk_limit(&self) -> Option<BitRate> {
        self.disk.filter(|_| self.source == Source::File)
    }

    /// When it ends, since the test began.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.start + self.omit + self.duration
    }
}

/// What UDT has to choose from; BBR in its native mode only.
pub(crate) fn udt_controls() -> String {
    let names = UDT_ALGORITHMS.map(Algorithm::name).join(", ");
    format!("it has {names} and {}", Algorithm::Bbr.name())
}
