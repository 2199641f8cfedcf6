//! Checks of a test's settings before a packet is sent.

use super::ClientConfig;
use crate::{PerfError, socket::MAX_WINDOW};
use control::{Algorithm, NATIVE_ALGORITHMS, UDT_ALGORITHMS};
use host::tcp_info;
use iperf3_proto::{datagram, params};
use record::{Direction, Protocol};
use socket2::{Domain, Socket, Type};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The longest chunk of a file that is sent.
const MAX_CHUNK: ByteCount = ByteCount::from_bytes(64 << 20);

impl ClientConfig {
    /// Checks every setting before a packet is sent.
    pub(crate) fn check(&self) -> Result<(), PerfError> {
        let wrong = |what: String, remedy: &str| {
            Err(PerfError::Setting { what, remedy: remedy.to_owned() })
        };
        // 253 characters is the longest name DNS has (RFC 1035); 255 leaves room for brackets.
        if self.host.is_empty() || self.host.len() > 255 || self.host.contains(['\0', '\n']) {
            return wrong("invalid server name".to_owned(), "give a host name or an address");
        }
        if *self.ports.start() == 0 {
            return wrong("port 0".to_owned(), "ports are 1 to 65535; iperf3's is 5201");
        }
        if self.ports.is_empty() {
            return wrong("empty port range".to_owned(), "write the lower port first");
        }
        let most_seconds = f64::from(u32::try_from(params::MAX_TIME_S).unwrap_or(u32::MAX));
        if !(self.seconds > 0.0 && self.seconds <= most_seconds) {
            return wrong(
                format!("invalid duration of {} s", self.seconds),
                "a duration is above 0 and at most 86400 seconds",
            );
        }
        let one_way = self.streams == 1 && self.direction != Direction::Both;
        let is_whole = self.protocol == Protocol::Udp && one_way && self.bytes.is_some();
        if self.train.is_some() && !(is_whole && self.rate >= self.train) {
            let remedy = "a train is one UDP stream with a number of bytes, and its rate rises";
            return wrong("invalid train".to_owned(), remedy);
        }
        if i64::from(self.omit_seconds) > params::MAX_OMIT_S {
            return wrong(
                format!("invalid omitted time of {} s", self.omit_seconds),
                "at most 600 seconds can be omitted",
            );
        }
        if !(1..=params::MAX_STREAMS).contains(&i64::from(self.streams)) {
            return wrong(format!("{} streams", self.streams), "a test has 1 to 128 streams");
        }
        if let Some(window) = self.window.filter(|w| *w == ByteCount::ZERO || *w > MAX_WINDOW) {
            return wrong(
                format!("invalid window of {window}"),
                "TCP windows are 1 byte to 1 GiB (RFC 7323: the scale is at most 14)",
            );
        }
        if self.file_chunk.is_some_and(|chunk| chunk == ByteCount::ZERO || chunk > MAX_CHUNK) {
            return wrong(
                "invalid length of a file's chunks".to_owned(),
                "a chunk is 1 byte to 64 MiB",
            );
        }
        if self.file.is_some()
            && self.protocol == Protocol::Udt
            && self.direction != Direction::Forward
        {
            return wrong(
                "a file over UDT in reverse".to_owned(),
                "UDT sends files; to receive one, use TCP or longhaul copy",
            );
        }
        if let Some(block) = self.block {
            let bytes = i64::try_from(block.bytes()).unwrap_or(i64::MAX);
            match self.protocol {
                Protocol::Tcp | Protocol::Udt if !(1..=params::MAX_BLOCK).contains(&bytes) => {
                    return wrong(
                        format!("invalid block length of {block}"),
                        "a TCP block is 1 byte to 1 MiB",
                    );
                }
                Protocol::Udp
                    if !(datagram::MIN_LENGTH..=datagram::MAX_LENGTH).contains(&bytes) =>
                {
                    return wrong(
                        format!("invalid datagram length of {block}"),
                        "a datagram's payload is 16 to 65507 bytes",
                    );
                }
                _ => {}
            }
        }
        if self.rate == Some(BitRate::ZERO) || self.rate > Some(BitRate::MAX) {
            return wrong(
                "invalid rate".to_owned(),
                "a rate is 1bit to 100tbit; omit it for no limit",
            );
        }
        if self.bytes == Some(ByteCount::ZERO) || self.blocks == Some(0) {
            return wrong("a test of 0 bytes".to_owned(), "give at least one byte");
        }
        if self.burst.is_some_and(|burst| !(1..=1000).contains(&burst)) {
            return wrong("invalid burst".to_owned(), "a burst is 1 to 1000 blocks");
        }
        // RFC 9293 section 3.7.1: the default send MSS is 536 bytes; Linux accepts 88 and more.
        if self.mss.is_some_and(|mss| !(88..=32_767).contains(&mss)) {
            return wrong("invalid segment size".to_owned(), "an MSS is 88 to 32767 bytes");
        }
        if self.flow_label.is_some_and(|label| !(1..1 << 20).contains(&label)) {
            return wrong("invalid flow label".to_owned(), "a flow label is 1 to 1048575");
        }
        if let Some(core) = self.core.filter(|core| !host::cpu::is_available(*core)) {
            let what = format!("CPU core {core}, on which this process may not run");
            let allowed = host::cpu::allowed().unwrap_or_default();
            return wrong(what, &format!("choose one of {}", ranges(&allowed)));
        }
        self.check_ports()?;
        if self.sample_every < Duration::from_millis(1) {
            return wrong("invalid sample interval".to_owned(), "it is at least 1 ms");
        }
        if self.report_every < Duration::from_millis(10) {
            return wrong("invalid report interval".to_owned(), "it is at least 10 ms");
        }
        self.check_congestion()
    }

    /// Checks that each stream has its own local port, if a first one is given.
    fn check_ports(&self) -> Result<(), PerfError> {
        let Some(first) = self.local_port else { return Ok(()) };
        let both = u32::from(self.direction == Direction::Both) + 1;
        if first == 0 || u32::from(first) + self.streams * both > 1 << 16 {
            return Err(PerfError::Setting {
                what: format!("invalid local ports from {first}"),
                remedy: "each stream uses the next port, from 1 to 65535".to_owned(),
            });
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
                Some((name, None)) => Err(PerfError::Setting {
                    what: if native {
                        format!("UDT's native mode has no congestion control {name}")
                    } else {
                        format!("UDT has no congestion control {name}")
                    },
                    remedy: format!("choose one of {}", udt_algorithms(native)),
                }),
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
