//! What a test is, once its parameters stand: the same at both ends.

use iperf3::{Params, datagram::Counter};
use record::Protocol;
use std::{path::PathBuf, time::Duration};
use units::{BitRate, ByteCount};

/// A test as both ends run it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) protocol: Protocol,
    /// Bytes of one write, or of one datagram.
    pub(crate) block: usize,
    /// Rate of each stream; `None` is as fast as it goes.
    pub(crate) rate: Option<BitRate>,
    /// Blocks sent back to back where a rate is set; zero leaves it to the pacer.
    pub(crate) burst: u32,
    /// Whether blocks may go in pieces, evenly over the time they stand for. A
    /// foreign client counts no piece of a block when it ends the test.
    pub(crate) smooth: bool,
    pub(crate) counter: Counter,
    /// Whether the kernel may cut datagrams out of trains, where it can.
    pub(crate) segment: bool,
    /// Whether the kernel may hand over trains of datagrams, where it can.
    pub(crate) coalesce: bool,
    /// Whether TCP sends pages by reference: asked for (`-Z`), refused, or as
    /// costs this machine less.
    pub(crate) zerocopy: Option<bool>,
    /// Whether TCP throws away what arrives without copying it.
    pub(crate) skip_rx_copy: bool,
    /// Whether the payload is a pattern rather than random.
    pub(crate) repeating: bool,
    /// What to send instead of made-up bytes, or where to put what arrives (`-F`).
    pub(crate) file: Option<PathBuf>,
    /// The core of the threads that carry data (`-A`).
    pub(crate) core: Option<u32>,
    pub(crate) omit: Duration,
    /// Bytes that end the test, over all streams of one direction: whole blocks.
    pub(crate) limit: Option<u64>,
}

impl Plan {
    pub(crate) fn of(params: &Params) -> Self {
        let block = params.block() as usize;
        let protocol = if params.udp { Protocol::Udp } else { Protocol::Tcp };
        Plan {
            protocol,
            block,
            rate: u64::try_from(params.bandwidth).ok().filter(|b| *b > 0).map(BitRate::from_bps),
            burst: u32::try_from(params.burst).unwrap_or(0),
            smooth: params.longhaul.is_some() && params.burst == 0,
            counter: params.counter(),
            segment: extra_flag(params, "segment"),
            coalesce: extra_flag(params, "coalesce"),
            zerocopy: match params.zerocopy {
                0 => (!extra_flag(params, "zerocopy")).then_some(false),
                _ => Some(true),
            },
            skip_rx_copy: params.skip_rx_copy != 0,
            repeating: params.repeating_payload,
            file: None,
            core: None,
            omit: Duration::from_secs(u64::try_from(params.omit).unwrap_or(0)),
            // Blocks go whole: iperf3 from 3.16 counts no others.
            limit: params
                .bytes_limit()
                .map(|bytes| bytes.div_ceil(block as u64).saturating_mul(block as u64)),
        }
    }

    /// A block to send.
    pub(crate) fn payload(&self, bytes: usize) -> Vec<u8> {
        use rand_core::Rng;
        let mut block = vec![0; bytes];
        if self.repeating {
            // iperf3's pattern: the digits, over and over.
            block.iter_mut().zip((b'0'..=b'9').cycle()).for_each(|(byte, digit)| *byte = digit);
        } else {
            // Random, so that nothing on the path can compress it.
            rand_pcg::Pcg64Mcg::new(0x006c_6f6e_6768_6175_6c21_2121).fill_bytes(&mut block);
        }
        block
    }

    /// Time between datagrams of one stream; `None` where nothing holds it.
    pub(crate) fn spacing(&self) -> Option<Duration> {
        Some(self.rate?.time_for(ByteCount::from_bytes(self.block as u64)))
    }
}

/// A switch that two longhauls agree on; on unless the client says otherwise.
fn extra_flag(params: &Params, name: &str) -> bool {
    let said = params.longhaul.as_ref().and_then(|extra| extra.get(name));
    said.and_then(serde_json::Value::as_bool).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(value: serde_json::Value) -> Plan {
        Plan::of(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
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
    fn payloads_are_as_asked() {
        let mut asked = plan(json!({"tcp": true}));
        assert_ne!(asked.payload(64)[..32], asked.payload(64)[32..]);
        asked.repeating = true;
        assert_eq!(asked.payload(12), b"012345678901");
    }
}
