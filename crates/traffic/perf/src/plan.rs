//! A test as both ends run it, from its parameters.

use control::{Algorithm, UDT_ALGORITHMS};
use iperf3_proto::{Cookie, Extension, Params, datagram::Counter};
use record::Protocol;
use std::{path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

/// A test as both ends run it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) protocol: Protocol,
    pub(crate) udt: UdtPlan,
    /// The test's name, once it has one.
    pub(crate) cookie: Option<Cookie>,
    /// Bytes of one write, or of one datagram.
    pub(crate) block: usize,
    /// Rate of each stream; `None` is unlimited.
    pub(crate) rate: Option<BitRate>,
    /// Blocks sent back to back at a limited rate; zero leaves it to the pacer.
    pub(crate) burst: u32,
    /// Whether blocks are written in pieces, evenly spread over the time they
    /// take at the rate. An iperf3 client counts whole blocks only.
    pub(crate) smooth: bool,
    /// Whether a block that is partly written when the test ends is completed,
    /// for receivers that count whole blocks only (iperf3 from 3.16).
    pub(crate) finish_block: bool,
    pub(crate) counter: Counter,
    /// Whether to use UDP segmentation offload where available.
    pub(crate) segment: bool,
    /// Whether to use UDP receive offload where available.
    pub(crate) coalesce: bool,
    /// The first rate of a train, which rises to `rate` with the bytes sent. The receiver records
    /// when datagrams arrived, and stops the sender after enough losses. For one UDP stream in one
    /// direction, which bytes end.
    pub(crate) train: Option<BitRate>,
    /// Whether TCP uses zero copy: forced on (`-Z`) or off, or `None` for whichever
    /// uses less CPU.
    pub(crate) zerocopy: Option<bool>,
    /// Whether unsent data is limited while the path is short ([`crate::unsent_limit`]).
    pub(crate) limits_unsent: bool,
    /// Whether TCP receivers discard data without copying it.
    pub(crate) skip_rx_copy: bool,
    /// Whether the payload is a repeating pattern instead of random.
    pub(crate) repeating: bool,
    /// File to send instead of generated data, or for received data (`-F`).
    pub(crate) file: Option<PathBuf>,
    /// Bytes of that file that are read before any of them is sent.
    pub(crate) chunk: usize,
    /// CPU core of the streams' threads (`-A`).
    pub(crate) core: Option<u32>,
    pub(crate) omit: Duration,
    /// Bytes that end the test, over all streams of one direction: whole blocks.
    pub(crate) limit: Option<u64>,
}

/// What of a plan is for UDT only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UdtPlan {
    pub(crate) algorithm: Algorithm,
    /// Native mode; its keys follow from the test's cookie.
    pub(crate) native: bool,
    /// Packets that the buffer of each end of a connection holds at most.
    pub(crate) max_buffer: u64,
    /// IP packets of this size pass the path, bytes: without native mode, which finds it out.
    pub(crate) path_mtu: Option<u32>,
}

/// Packets of all streams' buffers by default: the BDP of 10 Gbit/s x 75 ms.
const UDT_BUFFERS: u64 = 65_536;
/// Packets of one stream's buffer at least (UDT 4.11's default).
const MIN_UDT_BUFFER: u64 = 8_192;

impl UdtPlan {
    fn of(params: &Params) -> Self {
        let shared = (UDT_BUFFERS / u64::from(params.streams())).max(MIN_UDT_BUFFER);
        let packet = u64::from(udt::Config::DEFAULT_PACKET_BYTES);
        let window = u64::try_from(params.window).ok().filter(|window| *window > 0);
        let native = params.longhaul.as_ref().and_then(|extension| extension.native);
        let native = native.unwrap_or(false);
        let algorithm = udt_algorithm(params).and_then(Result::ok);
        UdtPlan {
            algorithm: algorithm.unwrap_or(UDT_ALGORITHMS[0]),
            native,
            max_buffer: window.map_or(shared, |window| (window / packet).max(2)),
            path_mtu: None,
        }
    }
}

/// The congestion control of a UDT test; `Err` with the name of one that its mode does not
/// have, `None` if it is no UDT test.
pub(crate) fn udt_algorithm(params: &Params) -> Option<Result<Algorithm, &str>> {
    let extension = params.longhaul.as_ref()?;
    let name = extension.udt.as_deref()?;
    let by_name = match extension.native {
        Some(true) => Algorithm::for_native,
        _ => Algorithm::for_udt,
    };
    Some(by_name(name).ok_or(name))
}

impl Plan {
    pub(crate) fn of(params: &Params) -> Self {
        let block = params.block() as usize;
        let protocol = match (udt_algorithm(params), params.udp) {
            (Some(_), _) => Protocol::Udt,
            (None, true) => Protocol::Udp,
            (None, false) => Protocol::Tcp,
        };
        Plan {
            protocol,
            udt: UdtPlan::of(params),
            cookie: None,
            block,
            rate: u64::try_from(params.bandwidth).ok().filter(|b| *b > 0).map(BitRate::from_bps),
            burst: u32::try_from(params.burst).unwrap_or(0),
            smooth: params.longhaul.is_some() && params.burst == 0,
            finish_block: true,
            counter: params.counter(),
            segment: extra_flag(params, |extension| extension.segment),
            coalesce: extra_flag(params, |extension| extension.coalesce),
            train: train(params).filter(|_| protocol == Protocol::Udp),
            zerocopy: match params.zerocopy {
                0 => (!extra_flag(params, |extension| extension.zerocopy)).then_some(false),
                _ => Some(true),
            },
            limits_unsent: limits_unsent(params) && protocol == Protocol::Tcp,
            skip_rx_copy: params.skip_rx_copy != 0,
            repeating: params.repeating_payload,
            file: None,
            chunk: block,
            core: None,
            omit: Duration::from_secs(u64::try_from(params.omit).unwrap_or(0)),
            limit: limit(params),
        }
    }

    /// Generates a block to send.
    pub(crate) fn payload(&self, bytes: usize) -> Vec<u8> {
        use rand_core::Rng;
        let mut block = vec![0; bytes];
        if self.repeating {
            // iperf3's pattern: repeated digits.
            block.iter_mut().zip((b'0'..=b'9').cycle()).for_each(|(byte, digit)| *byte = digit);
        } else {
            // Random, so that no middlebox can compress it.
            rand_pcg::Pcg64Mcg::new(0x006c_6f6e_6768_6175_6c21_2121).fill_bytes(&mut block);
        }
        block
    }

    /// Interval between datagrams of one stream; `None` at an unlimited rate.
    pub(crate) fn spacing(&self) -> Option<Duration> {
        Some(self.rate?.time_for(ByteCount::from_bytes(self.block as u64)))
    }
}

/// Bytes that end a test, of one direction: whole blocks, as iperf3 from 3.16 counts no others.
pub(crate) fn limit(params: &Params) -> Option<u64> {
    let block = u64::from(params.block());
    params.bytes_limit().map(|bytes| bytes.div_ceil(block.max(1)).saturating_mul(block))
}

/// Whether a client asks for a limit of unsent data, and neither sets the buffers nor uses
/// Multipath TCP, whose subflows have one in common. It can say no more than yes or no: each end measures its own
/// bounds.
fn limits_unsent(params: &Params) -> bool {
    let asked = params.longhaul.as_ref().and_then(|extension| extension.limit_unsent);
    asked == Some(true) && params.window == 0 && !params.mptcp
}

/// The first rate of a train, if a client asks for one.
fn train(params: &Params) -> Option<BitRate> {
    let is_one = params.streams() == 1 && !params.bidirectional;
    let first = params.longhaul.as_ref()?.train.filter(|bps| *bps > 0)?;
    (is_one && params.bandwidth > 0 && limit(params).is_some()).then(|| BitRate::from_bps(first))
}

/// A flag of a longhaul client, on unless the client turns it off.
fn extra_flag(params: &Params, flag: impl FnOnce(&Extension) -> Option<bool>) -> bool {
    params.longhaul.as_ref().and_then(flag).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(value: serde_json::Value) -> Plan {
        Plan::of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn missing_parameters_have_their_defaults() {
        let plain = plan(json!({"tcp": true, "time": 10}));
        assert_eq!((plain.block, plain.rate, plain.limit), (131_072, None, None));
        assert!(plain.segment && plain.coalesce && plain.zerocopy.is_none());
        let asked = plan(json!({"udp": true, "len": 1000, "bandwidth": 8_000_000, "num": 2500,
                                "longhaul": {"version": "1", "segment": false}}));
        assert_eq!(asked.limit, Some(3000), "blocks go whole");
        assert_eq!(asked.spacing(), Some(Duration::from_millis(1)));
        assert!(!asked.segment && asked.coalesce);
    }

    #[test]
    fn unsent_data_is_limited_for_clients_that_ask() {
        let limited = |value| plan(value).limits_unsent;
        assert!(limited(json!({"tcp": true, "longhaul": {"limit_unsent": true}})));
        for other in [
            json!({"tcp": true}),
            json!({"tcp": true, "longhaul": {"version": "1"}}),
            json!({"tcp": true, "longhaul": {"limit_unsent": 1_000_000}}),
            json!({"tcp": true, "window": 65_536, "longhaul": {"limit_unsent": true}}),
            json!({"tcp": true, "mptcp": true, "longhaul": {"limit_unsent": true}}),
            json!({"udp": true, "longhaul": {"limit_unsent": true}}),
            json!({"tcp": true, "longhaul": {"limit_unsent": true, "udt": "udt"}}),
        ] {
            assert!(!limited(other.clone()), "{other}");
        }
    }

    #[test]
    fn a_train_has_one_udp_stream() {
        let train = |value| plan(value).train;
        let whole = json!({"udp": true, "num": 5000, "bandwidth": 9000, "longhaul": {"train": 7}});
        assert_eq!(train(whole.clone()), Some(BitRate::from_bps(7)));
        for (key, other) in [
            ("longhaul", json!({})),
            ("longhaul", json!({"train": true})),
            ("longhaul", json!({"train": 0})),
            ("longhaul", json!({"train": 7, "udt": "udt"})),
            ("udp", json!(false)),
            ("num", json!(0)),
            ("bandwidth", json!(0)),
            ("parallel", json!(2)),
            ("bidirectional", json!(true)),
        ] {
            let mut params = whole.clone();
            params[key] = other;
            assert_eq!(train(params.clone()), None, "{params}");
        }
    }

    #[test]
    fn payloads_are_as_requested() {
        let mut asked = plan(json!({"tcp": true}));
        assert_ne!(asked.payload(64)[..32], asked.payload(64)[32..]);
        asked.repeating = true;
        assert_eq!(asked.payload(12), b"012345678901");
    }
}
