//! Checks of a test's settings before a packet is sent.

use super::{ClientConfig, EndAfter, TcpOptions};
use crate::{PerfError, socket::MAX_WINDOW};
use control::{Algorithm, NATIVE_ALGORITHMS, UDT_ALGORITHMS};
use host::tcp_info;
use iperf3_proto::{datagram, params};
use problem::Field;
use record::{Direction, Protocol};
use socket2::{Domain, Socket, Type};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// The longest interval and timeout: 50 days, more than iperf3's milliseconds count.
const MAX_TIME: Duration = Duration::from_secs(50 * 86_400);

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
        self.check_times()?;
        self.check_congestion()
    }

    /// Checks that no interval and no timeout is longer than [`MAX_TIME`].
    fn check_times(&self) -> Result<(), PerfError> {
        let times = [
            (Field::SampleEvery, self.sample_every),
            (Field::ReportEvery, self.report_every),
            (Field::ReceiveTimeout, self.receive_timeout),
            (Field::ConnectTimeout, self.connect_timeout),
            (Field::WatchLoad, self.watch_load),
        ];
        times.into_iter().try_for_each(|(field, time)| check_time(field, time))
    }

    /// Checks what ends the test, and what the result omits.
    fn check_end(&self) -> Result<(), PerfError> {
        if i64::from(self.omit_seconds) > params::MAX_OMIT_S {
            let what = format!("invalid omitted time of {} s", self.omit_seconds);
            return wrong(Field::OmitSeconds, what, "at most 600 seconds");
        }
        match self.end {
            EndAfter::Seconds(seconds) if !is_duration(seconds) => {
                let what = format!("invalid duration of {seconds} s");
                wrong(Field::Seconds, what, "above 0 and at most 86400 seconds")
            }
            EndAfter::Bytes(ByteCount::ZERO) => {
                wrong(Field::Bytes, "a test of 0 bytes", "at least one byte")
            }
            EndAfter::Blocks(0) => wrong(Field::Blocks, "a test of 0 blocks", "at least one block"),
            EndAfter::Seconds(_) | EndAfter::Bytes(_) | EndAfter::Blocks(_) => Ok(()),
        }
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
        let mut transport = self.transport;
        if let Some(tcp) = transport.any_tcp() {
            tcp.check()?;
        }
        if self.flow_label.is_some_and(|label| !(1..1 << 20).contains(&label)) {
            return wrong(Field::FlowLabel, "invalid flow label", "1 to 1048575");
        }
        if let Some(train) = self.transport.udp().and_then(|udp| udp.train) {
            let one_way = self.streams == 1 && self.direction != Direction::Both;
            let is_whole = one_way && matches!(self.end, EndAfter::Bytes(_));
            if !(is_whole && self.rate >= Some(train.from) && is_duration(train.max_seconds)) {
                let accepted = "one UDP stream with a number of bytes, whose rate rises";
                return wrong(Field::Train, "invalid train", accepted);
            }
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
            let (kind, range, accepted) = match self.transport.protocol() {
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
        let is_udt = self.transport.udt().is_some();
        if self.file.is_some() && is_udt && self.direction != Direction::Forward {
            let accepted = "a file to send; to receive one, use TCP or longhaul copy";
            return wrong(Field::File, "a file over UDT in reverse", accepted);
        }
        Ok(())
    }

    /// Tries the congestion control on a socket before connecting. If the server
    /// sends, its kernel decides. UDT has its own.
    fn check_congestion(&self) -> Result<(), PerfError> {
        if self.transport.udt().is_some() {
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
        if let Some(reason) = self.congestion.as_deref().and_then(control::simulated_only) {
            let accepted = "one that the kernel has, such as cubic";
            return wrong(Field::Congestion, &reason, accepted);
        }
        if let Some(name) = self.congestion.as_ref().filter(|_| self.sends())
            && let Ok(socket) = Socket::new(Domain::IPV4, Type::STREAM, None)
        {
            tcp_info::set_congestion(&socket, name)?;
        }
        Ok(())
    }
}

impl TcpOptions {
    /// Checks every setting before a packet is sent.
    ///
    /// # Errors
    /// [`PerfError::Setting`]: the field, and what it accepts.
    pub fn check(&self) -> Result<(), PerfError> {
        // RFC 9293 section 3.7.1: the default send MSS is 536 bytes; Linux accepts 88 and more.
        if self.mss.is_some_and(|mss| !(88..=32_767).contains(&mss)) {
            return wrong(Field::Mss, "invalid segment size", "an MSS of 88 to 32767 bytes");
        }
        check_time(Field::SendTimeout, self.send_timeout.unwrap_or_default())
    }
}

/// Whether a test may last so many seconds.
fn is_duration(seconds: f64) -> bool {
    let most = f64::from(u32::try_from(params::MAX_TIME_S).unwrap_or(u32::MAX));
    seconds > 0.0 && seconds <= most
}

/// Checks that an interval or a timeout is no longer than [`MAX_TIME`].
fn check_time(field: Field, time: Duration) -> Result<(), PerfError> {
    if time <= MAX_TIME {
        return Ok(());
    }
    wrong(field, format!("a time of {} s", time.as_secs()), "at most 50 days")
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
    use crate::client::{RisingTrain, Transport, UdpOptions, UdtOptions};
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
        assert!(!refused(|c| c.end = EndAfter::Seconds(0.1)));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            assert!(refused(|c| c.end = EndAfter::Seconds(seconds)), "{seconds}");
        }
        assert!(refused(|c| c.host = String::new()) && refused(|c| c.ports = 0..=0));
        assert!(refused(|c| c.omit_seconds = 601) && refused(|c| c.burst = Some(1001)));
        assert!(refused(|c| c.end = EndAfter::Blocks(0)));
        assert!(refused(|c| c.end = EndAfter::Bytes(ByteCount::ZERO)));
        let mss = |mss| TcpOptions { mss: Some(mss), ..TcpOptions::default() };
        let over_tcp = |tcp| move |c: &mut ClientConfig| c.transport = Transport::Tcp(tcp);
        assert!(refused(over_tcp(mss(87))) && !refused(over_tcp(mss(88))));
        let fallback = UdtOptions { fallback: Some(mss(87)), ..UdtOptions::default() };
        assert!(refused(|c| c.transport = Transport::Udt(fallback)));
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
                c.transport = Protocol::Udp.into();
                c.block = Some(ByteCount::from_bytes(bytes));
            }
        };
        assert!(refused(datagram(15)) && !refused(datagram(16)));
        assert!(refused(datagram(65_508)) && !refused(datagram(65_507)));
        for time in [MAX_TIME, Duration::MAX] {
            let is_refused = time > MAX_TIME;
            assert_eq!(refused(|c| c.connect_timeout = time), is_refused);
            assert_eq!(refused(|c| c.receive_timeout = time), is_refused);
            let send_timeout = Some(time);
            let tcp = TcpOptions { send_timeout, ..TcpOptions::default() };
            assert_eq!(refused(over_tcp(tcp)), is_refused);
            assert_eq!(refused(|c| c.report_every = time), is_refused);
        }
        assert!(refused(|c| c.congestion = Some("nonesuch".into())));
        assert!(!refused(|c| {
            c.congestion = Some("nonesuch".into());
            c.direction = Direction::Reverse;
        }));
    }

    #[test]
    fn a_train_is_one_stream_of_bytes_whose_rate_rises() {
        let refused = |max_seconds, change: fn(&mut ClientConfig)| {
            refused(|c| {
                let train = Some(RisingTrain { from: BitRate::from_bps(1_000), max_seconds });
                c.transport = Transport::Udp(UdpOptions { train, ..UdpOptions::default() });
                c.rate = Some(BitRate::from_bps(4_000));
                c.end = EndAfter::Bytes(ByteCount::from_bytes(1_000));
                change(c);
            })
        };
        assert!(!refused(2.0, |_| ()));
        for max_seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            assert!(refused(max_seconds, |_| ()), "{max_seconds}");
        }
        assert!(refused(2.0, |c| c.streams = 2));
        assert!(refused(2.0, |c| c.direction = Direction::Both));
        assert!(refused(2.0, |c| c.end = EndAfter::Blocks(9)));
        assert!(refused(2.0, |c| c.rate = None));
        assert!(refused(2.0, |c| c.rate = Some(BitRate::from_bps(999))));
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
        config.end = EndAfter::Blocks(3);
        assert_eq!(config.spec(5201).end, EndCondition::Blocks(3));
        config.end = EndAfter::Bytes(ByteCount::from_bytes(5));
        let (mss, zerocopy) = (Some(1400), Some(false));
        config.transport = Transport::Tcp(TcpOptions { mss, zerocopy, ..TcpOptions::default() });
        config.omit_seconds = 2;
        config.fq_rate = Some(BitRate::from_bps(1_000));
        config.block = Some(ByteCount::from_bytes(4096));
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
        config.end = EndAfter::Seconds(2.5);
        let asked = config.params(1448);
        assert_eq!((asked.time, asked.bandwidth, asked.len), (3, 0, 131_072));
        assert_eq!(asked.check(), Ok(()));
        config.transport = Protocol::Udp.into();
        assert_eq!(config.params(1448).len, 1448);
        assert_eq!(config.params(70_000).len, 1460);
        assert_eq!(config.params(1448).check(), Ok(()));
    }
}
