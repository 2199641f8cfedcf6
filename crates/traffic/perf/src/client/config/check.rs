//! Checks of a test's settings before a packet is sent.

use super::ClientConfig;
use crate::{PerfError, socket::MAX_WINDOW};
use control::{Algorithm, NATIVE_ALGORITHMS, UDT_ALGORITHMS};
use host::tcp_info;
use iperf3_proto::{datagram, params};
use problem::Field;
use record::{Direction, Protocol};
use socket2::{Domain, Socket, Type};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The longest chunk of a file that is sent.
const MAX_CHUNK: ByteCount = ByteCount::from_bytes(64 << 20);

impl ClientConfig {
    /// Checks every setting before a packet is sent.
    ///
    /// # Errors
    /// [`PerfError::Setting`]: the field, and what it accepts; a congestion control that this
    /// kernel does not have.
    pub fn check(&self) -> Result<(), PerfError> {
        // 253 characters is the longest name DNS has (RFC 1035); 255 leaves room for brackets.
        if self.host.is_empty() || self.host.len() > 255 || self.host.contains(['\0', '\n']) {
            return wrong(Field::Host, "invalid server name", "a host name or an address");
        }
        if *self.ports.start() == 0 {
            return wrong(Field::Ports, "port 0", "1 to 65535; iperf3's is 5201");
        }
        if self.ports.is_empty() {
            return wrong(Field::Ports, "empty port range", "the lower port first");
        }
        self.check_end()?;
        self.check_streams()?;
        self.check_blocks()?;
        if let Some(core) = self.core.filter(|core| !host::cpu::is_available(*core)) {
            let what = format!("CPU core {core}, on which this process may not run");
            let allowed = host::cpu::allowed().unwrap_or_default();
            return wrong(Field::Core, what, format!("one of {}", ranges(&allowed)));
        }
        if self.sample_every < Duration::from_millis(1) {
            return wrong(Field::SampleEvery, "invalid sample interval", "at least 1 ms");
        }
        if self.report_every < Duration::from_millis(10) {
            return wrong(Field::ReportEvery, "invalid report interval", "at least 10 ms");
        }
        self.check_congestion()
    }

    /// Checks what ends the test, and what the result omits.
    fn check_end(&self) -> Result<(), PerfError> {
        let most_seconds = f64::from(u32::try_from(params::MAX_TIME_S).unwrap_or(u32::MAX));
        if !(self.seconds > 0.0 && self.seconds <= most_seconds) {
            let what = format!("invalid duration of {} s", self.seconds);
            return wrong(Field::Seconds, what, "above 0 and at most 86400 seconds");
        }
        if i64::from(self.omit_seconds) > params::MAX_OMIT_S {
            let what = format!("invalid omitted time of {} s", self.omit_seconds);
            return wrong(Field::OmitSeconds, what, "at most 600 seconds");
        }
        if self.bytes == Some(ByteCount::ZERO) {
            return wrong(Field::Bytes, "a test of 0 bytes", "at least one byte");
        }
        if self.blocks == Some(0) {
            return wrong(Field::Blocks, "a test of 0 blocks", "at least one block");
        }
        Ok(())
    }

    /// Checks the streams: how many, their rate, and what each of their sockets is set to.
    fn check_streams(&self) -> Result<(), PerfError> {
        if !(1..=params::MAX_STREAMS).contains(&i64::from(self.streams)) {
            return wrong(Field::Streams, format!("{} streams", self.streams), "1 to 128 streams");
        }
        if let Some(window) = self.window.filter(|w| *w == ByteCount::ZERO || *w > MAX_WINDOW) {
            let range = "1 byte to 1 GiB (RFC 7323: the scale is at most 14)";
            return wrong(Field::Window, format!("invalid window of {window}"), range);
        }
        if self.rate == Some(BitRate::ZERO) || self.rate > Some(BitRate::MAX) {
            return wrong(Field::Rate, "invalid rate", "1bit to 100tbit; omit it for no limit");
        }
        if self.burst.is_some_and(|burst| !(1..=1000).contains(&burst)) {
            return wrong(Field::Burst, "invalid burst", "1 to 1000 blocks");
        }
        // RFC 9293 section 3.7.1: the default send MSS is 536 bytes; Linux accepts 88 and more.
        if self.mss.is_some_and(|mss| !(88..=32_767).contains(&mss)) {
            return wrong(Field::Mss, "invalid segment size", "an MSS of 88 to 32767 bytes");
        }
        if self.flow_label.is_some_and(|label| !(1..1 << 20).contains(&label)) {
            return wrong(Field::FlowLabel, "invalid flow label", "1 to 1048575");
        }
        let one_way = self.streams == 1 && self.direction != Direction::Both;
        let is_whole = self.protocol == Protocol::Udp && one_way && self.bytes.is_some();
        if self.train.is_some() && !(is_whole && self.rate >= self.train) {
            let accepted = "one UDP stream with a number of bytes, whose rate rises";
            return wrong(Field::Train, "invalid train", accepted);
        }
        // Each stream has a local port of its own, if a first one is given.
        let both = u32::from(self.direction == Direction::Both) + 1;
        let ends_above = |first: u16| u32::from(first) + self.streams * both > 1 << 16;
        if let Some(first) = self.local_port.filter(|first| *first == 0 || ends_above(*first)) {
            let what = format!("invalid local ports from {first}");
            return wrong(Field::LocalPort, what, "1 to 65535: each stream uses the next port");
        }
        Ok(())
    }

    /// Checks the length of writes and datagrams, and the file that is sent or written.
    fn check_blocks(&self) -> Result<(), PerfError> {
        if let Some(block) = self.block {
            let bytes = i64::try_from(block.bytes()).unwrap_or(i64::MAX);
            let datagrams = datagram::MIN_LENGTH..=datagram::MAX_LENGTH;
            let (kind, range, accepted) = match self.protocol {
                Protocol::Udp => ("datagram", datagrams, "a payload of 16 to 65507 bytes"),
                Protocol::Tcp | Protocol::Udt => {
                    ("block", 1..=params::MAX_BLOCK, "1 byte to 1 MiB")
                }
            };
            if !range.contains(&bytes) {
                let what = format!("invalid {kind} length of {block}");
                return wrong(Field::Block, what, accepted);
            }
        }
        if self.file_chunk.is_some_and(|chunk| chunk == ByteCount::ZERO || chunk > MAX_CHUNK) {
            let what = "invalid length of a file's chunks";
            return wrong(Field::FileChunk, what, "1 byte to 64 MiB");
        }
        let is_udt = self.protocol == Protocol::Udt;
        if self.file.is_some() && is_udt && self.direction != Direction::Forward {
            let accepted = "a file to send; to receive one, use TCP or longhaul copy";
            return wrong(Field::File, "a file over UDT in reverse", accepted);
        }
        Ok(())
    }

    /// Tries the congestion control on a socket before connecting. If the server
    /// sends, its kernel decides. UDT has its own.
    fn check_congestion(&self) -> Result<(), PerfError> {
        if self.protocol == Protocol::Udt {
            let (native, name) = (self.is_native(), self.congestion.as_deref());
            let by_name = if native { Algorithm::for_native } else { Algorithm::for_udt };
            return match name.map(|name| (name, by_name(name))) {
                Some((name, None)) => {
                    let whose = if native { "UDT's native mode" } else { "UDT" };
                    let what = format!("{whose} has no congestion control {name}");
                    wrong(Field::Congestion, what, format!("one of {}", udt_algorithms(native)))
                }
                _ => Ok(()),
            };
        }
        if let Some(name) = self.congestion.as_ref().filter(|_| self.sends())
            && let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, None)
        {
            tcp_info::set_congestion(&socket, name)?;
        }
        Ok(())
    }
}

fn wrong(
    field: Field,
    what: impl Into<String>,
    accepted: impl Into<String>,
) -> Result<(), PerfError> {
    Err(PerfError::Setting { field, what: what.into(), accepted: accepted.into() })
}

/// Numbers in ascending order as `0-3, 6`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let runs = runs.filter_map(|run| match run {
        [] => None,
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// The names of UDT's congestion controls, those of the other mode after the mode's own.
fn udt_algorithms(native: bool) -> String {
    let names = |algorithms: &[Algorithm]| {
        algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
    };
    if native {
        names(&NATIVE_ALGORITHMS)
    } else {
        format!("{}, or bbr in native mode", names(&UDT_ALGORITHMS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::EndCondition;
    use std::ops::RangeInclusive;

    fn refused(change: impl FnOnce(&mut ClientConfig)) -> bool {
        let mut config = ClientConfig::new("host");
        change(&mut config);
        match config.check() {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_usage() && !error.to_string().contains('\n'), "{error}");
                true
            }
        }
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        assert!(!refused(|_| ()));
        assert!(!refused(|c| c.streams = 128) && refused(|c| c.streams = 129));
        assert!(refused(|c| c.streams = 0));
        assert!(!refused(|c| c.window = Some(MAX_WINDOW)));
        assert!(refused(|c| c.window = Some(MAX_WINDOW.plus(ByteCount::from_bytes(1)))));
        assert!(!refused(|c| c.seconds = 0.1));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            assert!(refused(|c| c.seconds = seconds), "{seconds}");
        }
        assert!(refused(|c| c.host = String::new()) && refused(|c| c.ports = 0..=0));
        assert!(refused(|c| c.omit_seconds = 601) && refused(|c| c.bytes = Some(ByteCount::ZERO)));
        assert!(refused(|c| c.blocks = Some(0)) && refused(|c| c.burst = Some(1001)));
        assert!(refused(|c| c.mss = Some(87)) && !refused(|c| c.mss = Some(88)));
        assert!(refused(|c| c.flow_label = Some(1 << 20)) && refused(|c| c.core = Some(9999)));
        let reversed = RangeInclusive::new(5210, 5201);
        assert!(refused(|c| c.ports = reversed.clone()));
        let last = |port| move |c: &mut ClientConfig| c.local_port = Some(port);
        assert!(!refused(last(65_535)) && refused(last(0)));
        assert!(refused(|c| {
            c.local_port = Some(65_535);
            c.direction = Direction::Both;
        }));
        let datagram = |bytes| {
            move |c: &mut ClientConfig| {
                c.protocol = Protocol::Udp;
                c.block = Some(ByteCount::from_bytes(bytes));
            }
        };
        assert!(refused(datagram(15)) && !refused(datagram(16)));
        assert!(refused(datagram(65_508)) && !refused(datagram(65_507)));
        assert!(refused(|c| c.congestion = Some("nonesuch".into())));
        assert!(!refused(|c| {
            c.congestion = Some("nonesuch".into());
            c.direction = Direction::Reverse;
        }));
    }

    #[test]
    fn cores_of_the_process_are_accepted_and_no_others() {
        for core in host::cpu::allowed().unwrap() {
            assert!(!refused(|c| c.core = Some(core)), "{core}");
        }
        // The kernel numbers fewer.
        for core in [1023, u32::MAX] {
            assert!(refused(|c| c.core = Some(core)), "{core}");
        }
        assert_eq!(ranges(&[0, 1, 2, 4, 6, 7]), "0-2, 4, 6-7");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn the_record_keeps_everything_that_was_requested() {
        let mut config = ClientConfig::new("host");
        assert_eq!(config.spec(5201).duration_s(), Some(10.0));
        config.blocks = Some(3);
        assert_eq!(config.spec(5201).end, EndCondition::Blocks(3));
        config.bytes = Some(ByteCount::from_bytes(5));
        config.mss = Some(1400);
        config.omit_seconds = 2;
        config.fq_rate = Some(BitRate::from_bps(1_000));
        config.block = Some(ByteCount::from_bytes(4096));
        config.zerocopy = Some(false);
        let spec = config.spec(5201);
        assert_eq!(spec.end, EndCondition::Bytes(ByteCount::from_bytes(5)));
        assert_eq!((spec.duration_s(), spec.omit_s), (None, 2));
        assert_eq!(spec.mss_bytes, Some(ByteCount::from_bytes(1400)));
        assert_eq!(spec.fq_rate_bps, Some(BitRate::from_bps(1_000)));
        assert_eq!(spec.block_bytes, Some(ByteCount::from_bytes(4096)));
        assert_eq!(spec.zerocopy, Some(false));
    }

    #[test]
    fn parameters_are_within_iperf3s_bounds() {
        let mut config = ClientConfig::new("host");
        config.seconds = 2.5;
        let asked = config.params(1448);
        assert_eq!((asked.time, asked.bandwidth, asked.len), (3, 0, 131_072));
        assert_eq!(asked.check(), Ok(()));
        config.protocol = Protocol::Udp;
        assert_eq!(config.params(1448).len, 1448);
        assert_eq!(config.params(70_000).len, 1460);
        assert_eq!(config.params(1448).check(), Ok(()));
    }
}
