//! A client's test parameters: the JSON after `PARAM_EXCHANGE`.

use crate::{
    datagram::{self, Counter},
    extension::Extension,
    lenient,
};
use serde::{Deserialize, Serialize};

/// A client's parameters, named as on the wire. Unknown keys are ignored,
/// as in iperf3; numbers are parsed leniently and checked by
/// [`Params::check`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are iperf3's own options of these names")]
pub struct Params {
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub tcp: bool,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub udp: bool,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub sctp: bool,
    /// Seconds at the start that the result omits.
    #[serde(deserialize_with = "lenient::int")]
    pub omit: i64,
    #[serde(deserialize_with = "lenient::maybe", skip_serializing_if = "Option::is_none")]
    pub server_affinity: Option<i64>,
    /// Seconds of the test; zero where bytes or blocks end it.
    #[serde(deserialize_with = "lenient::int")]
    pub time: i64,
    /// Bytes that end the test; zero for none.
    #[serde(deserialize_with = "lenient::int")]
    pub num: i64,
    /// Blocks that end the test; zero for none.
    #[serde(deserialize_with = "lenient::int")]
    pub blockcount: i64,
    #[serde(rename = "MSS", deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub mss: i64,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub nodelay: bool,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub parallel: i64,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub reverse: bool,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub bidirectional: bool,
    #[serde(deserialize_with = "lenient::flag", skip_serializing_if = "is_false")]
    pub mptcp: bool,
    /// Socket buffers, bytes; zero for the kernel's own.
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub window: i64,
    /// Bytes of a block; zero for the default.
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub len: i64,
    /// bit/s for each stream; zero or absent is unlimited.
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub bandwidth: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub fqrate: i64,
    /// Interval of the pacing timer, µs.
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub pacing_timer: i64,
    /// Blocks sent back to back when a rate is set.
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub burst: i64,
    #[serde(rename = "TOS", deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub tos: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub flowlabel: i64,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub extra_data: Option<String>,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub congestion_used: Option<String>,
    #[serde(deserialize_with = "lenient::flag", serialize_with = "one")]
    #[serde(skip_serializing_if = "is_false")]
    pub get_server_output: bool,
    #[serde(deserialize_with = "lenient::flag", serialize_with = "one")]
    #[serde(skip_serializing_if = "is_false")]
    pub udp_counters_64bit: bool,
    #[serde(deserialize_with = "lenient::flag", serialize_with = "one")]
    #[serde(skip_serializing_if = "is_false")]
    pub repeating_payload: bool,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub zerocopy: i64,
    #[serde(deserialize_with = "lenient::flag", serialize_with = "one")]
    #[serde(skip_serializing_if = "is_false")]
    pub dont_fragment: bool,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub skip_rx_copy: i64,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub gso: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub gso_dg_size: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub gso_bf_size: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub gro: i64,
    #[serde(deserialize_with = "lenient::int", skip_serializing_if = "is_zero")]
    pub gro_bf_size: i64,
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Extension of a longhaul client; iperf3 ignores it.
    #[serde(deserialize_with = "lenient::object", skip_serializing_if = "Option::is_none")]
    pub longhaul: Option<Extension>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// These flags are read only where they are numbers (`get_parameters`).
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn one<S: serde::Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(u8::from(*flag))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A parameter out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter '{name}' is {value}; the range is {least} to {most} {unit}")]
pub struct ParamError {
    /// Its name on the wire.
    pub name: &'static str,
    /// The requested value.
    pub value: i64,
    /// The minimum.
    pub least: i64,
    /// The maximum.
    pub most: i64,
    /// Its unit.
    pub unit: &'static str,
}

/// Maximum streams of one test (`MAX_STREAMS`).
pub const MAX_STREAMS: i64 = 128;
/// Maximum omitted time in seconds.
pub const MAX_OMIT_S: i64 = 600;
/// Maximum duration in seconds.
pub const MAX_TIME_S: i64 = 86_400;
/// Maximum segment size that can be requested.
pub const MAX_MSS: i64 = 32_767;
/// Largest socket buffer: the largest window TCP can express (RFC 7323: 2^30).
pub const MAX_WINDOW: i64 = 1 << 30;
/// Largest block.
pub const MAX_BLOCK: i64 = 1 << 20;
/// Maximum blocks in a burst.
pub const MAX_BURST: i64 = 1_000;
/// Highest rate: 100 Tbit/s.
pub const MAX_RATE: i64 = 100_000_000_000_000;

impl Params {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is out of range.
    pub fn check(&self) -> Result<(), ParamError> {
        let bounds = [
            ("omit", self.omit, 0, MAX_OMIT_S, "seconds"),
            ("time", self.time, 0, MAX_TIME_S, "seconds"),
            ("num", self.num, 0, i64::MAX, "bytes"),
            ("blockcount", self.blockcount, 0, i64::MAX, "blocks"),
            // Absent means one stream; zero on the wire is read the same way.
            ("parallel", self.parallel, 0, MAX_STREAMS, "streams"),
            ("MSS", self.mss, 0, MAX_MSS, "bytes"),
            ("window", self.window, 0, MAX_WINDOW, "bytes"),
            self.length_bounds(),
            ("bandwidth", self.bandwidth, 0, MAX_RATE, "bit/s"),
            ("burst", self.burst, 0, MAX_BURST, "blocks"),
        ];
        for (name, value, least, most, unit) in bounds {
            if !(least..=most).contains(&value) {
                return Err(ParamError { name, value, least, most, unit });
            }
        }
        Ok(())
    }

    fn length_bounds(&self) -> (&'static str, i64, i64, i64, &'static str) {
        // Zero, or absent, is the default of the protocol.
        if self.udp && self.len != 0 {
            ("len", self.len, datagram::MIN_LENGTH, datagram::MAX_LENGTH, "bytes")
        } else {
            ("len", self.len, 0, MAX_BLOCK, "bytes")
        }
    }

    /// Width of the datagrams' sequence numbers.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        if self.udp_counters_64bit { Counter::Wide } else { Counter::Narrow }
    }

    /// Requested streams, at least one.
    #[must_use]
    pub fn streams(&self) -> u32 {
        u32::try_from(self.parallel.clamp(1, MAX_STREAMS)).unwrap_or(1)
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block(&self) -> u32 {
        match u32::try_from(self.len.clamp(0, MAX_BLOCK)) {
            Ok(0) | Err(_) if self.udp => datagram::DEFAULT_LENGTH,
            Ok(0) | Err(_) => crate::DEFAULT_BLOCK,
            Ok(len) => len,
        }
    }

    /// Bytes that end the test, from `num` or `blockcount`; `None` if time does.
    #[must_use]
    pub fn bytes_limit(&self) -> Option<u64> {
        let blocks = u64::try_from(self.blockcount).unwrap_or(0);
        let bytes = match u64::try_from(self.num) {
            Ok(0) | Err(_) => blocks.saturating_mul(u64::from(self.block())),
            Ok(bytes) => bytes,
        };
        (bytes > 0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reads_what_iperf3_sends() {
        let params: Params = serde_json::from_value(json!({
            "tcp": true, "omit": 0, "time": 10, "num": 0, "blockcount": 0, "parallel": 1,
            "len": 131072, "pacing_timer": 1000, "client_version": "3.12", "some_new_key": [1]
        }))
        .unwrap();
        assert_eq!(params.check(), Ok(()));
        assert_eq!((params.streams(), params.block(), params.bytes_limit()), (1, 131_072, None));
        assert_eq!(params.bandwidth, 0, "absent is unlimited");
    }

    #[test]
    fn reads_numbers_as_foreign_programs_write_them() {
        let params: Params = serde_json::from_value(json!({
            "tcp": 1, "time": 10.0, "bandwidth": 1e6, "blockcount": 3, "len": 1000, "window": null,
            "congestion": 7, "parallel": 1e300
        }))
        .unwrap();
        assert_eq!((params.tcp, params.time, params.bandwidth), (true, 10, 1_000_000));
        assert_eq!((params.bytes_limit(), params.congestion.clone()), (Some(3000), None));
        assert_eq!(params.check().unwrap_err().name, "parallel");
    }

    #[test]
    fn bounds_hold_on_both_sides() {
        let with = |name: &str, value: i64| -> Params {
            serde_json::from_value(json!({ name: value })).unwrap()
        };
        for (name, most) in [
            ("omit", 600),
            ("time", 86_400),
            ("parallel", 128),
            ("MSS", 32_767),
            ("window", 1 << 30),
            ("len", 1 << 20),
            ("burst", 1000),
        ] {
            assert_eq!(with(name, most).check(), Ok(()), "{name}");
            assert_eq!(with(name, most + 1).check().unwrap_err().name, name);
            assert_eq!(with(name, -1).check().unwrap_err().value, -1);
        }
    }

    #[test]
    fn datagrams_have_bounds_of_their_own() {
        let with = |len: i64| -> Params {
            serde_json::from_value(json!({ "udp": true, "len": len })).unwrap()
        };
        for (len, fits) in [(0, true), (15, false), (16, true), (65_507, true), (65_508, false)] {
            assert_eq!(with(len).check().is_ok(), fits, "{len}");
        }
        assert_eq!((with(0).block(), with(1448).block()), (1460, 1448));
    }

    #[test]
    fn what_is_not_asked_is_not_sent() {
        let sent =
            serde_json::to_value(Params { tcp: true, time: 5, ..Params::default() }).unwrap();
        assert_eq!(sent, json!({"tcp": true, "omit": 0, "time": 5, "num": 0, "blockcount": 0}));
    }

    #[test]
    fn each_flag_has_the_type_that_iperf3_reads() {
        let all = Params {
            tcp: true,
            nodelay: true,
            reverse: true,
            get_server_output: true,
            udp_counters_64bit: true,
            repeating_payload: true,
            dont_fragment: true,
            ..Params::default()
        };
        let sent = serde_json::to_value(&all).unwrap();
        for key in ["tcp", "nodelay", "reverse"] {
            assert_eq!(sent[key], json!(true), "{key}");
        }
        for key in ["get_server_output", "udp_counters_64bit", "repeating_payload", "dont_fragment"]
        {
            assert_eq!(sent[key], json!(1), "{key}");
        }
        assert_eq!(serde_json::from_value::<Params>(sent).unwrap(), all);
    }

    proptest! {
        #[test]
        fn round_trip(time in 0i64..=86_400, parallel in 1i64..=128, rate in any::<i64>(),
                      reverse in any::<bool>(), title in proptest::option::of(".{0,20}")) {
            let params = Params { tcp: true, time, parallel, bandwidth: rate, reverse, title,
                                  ..Params::default() };
            let text = serde_json::to_vec(&params).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Params>(&text).unwrap(), params);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(params) = serde_json::from_slice::<Params>(&bytes) {
                let _ = (params.check(), params.streams(), params.block(), params.bytes_limit());
            }
        }

        #[test]
        fn any_numbers_are_answered(time in any::<f64>(), num in any::<i64>(), len in any::<i64>(),
                                    blocks in any::<i64>()) {
            let value = json!({"time": time, "num": num, "len": len, "blockcount": blocks});
            let params: Params = serde_json::from_value(value).unwrap();
            let _ = (params.check(), params.streams(), params.block(), params.bytes_limit());
        }
    }
}
