//! What was requested of a test.

use crate::{Direction, Protocol, RemedyCommand};
use serde::{Deserialize, Serialize};
use units::{BitRate, ByteCount};

/// What ends a test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndCondition {
    /// [`TestSpec::seconds`] have passed.
    #[default]
    Time,
    /// This many bytes over all streams of a direction (`-n`).
    Bytes(ByteCount),
    /// This many blocks over all streams of a direction (`-k`).
    Blocks(u64),
}

/// What was requested of a test. Keys that an older file lacks read as not
/// requested.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TestSpec {
    /// The server's name or address as given on the command line.
    pub target: String,
    /// The server's port.
    pub port: u16,
    /// Transport protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Direction of the data.
    pub direction: Direction,
    /// Whether this is one direction of a test in both at the same time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_part_of_both: bool,
    /// Requested duration in seconds, warm-up excluded; without effect unless
    /// [`TestSpec::end`] is [`EndCondition::Time`]: see [`TestSpec::duration_s`].
    pub seconds: f64,
    /// What ends the test.
    #[serde(default)]
    pub end: EndCondition,
    /// Warm-up excluded from the result, in seconds (`-O`).
    #[serde(default)]
    pub omit_s: u32,
    /// Parallel streams in each direction.
    pub streams: u32,
    /// Requested socket buffer size (`-w`); `None` for autotuning.
    pub window_bytes: Option<ByteCount>,
    /// Whether ends that send were asked to limit unsent data on a short path.
    #[serde(default)]
    pub limits_unsent: bool,
    /// Requested rate of each stream (`-b`); `None` is unlimited.
    pub rate_bps: Option<BitRate>,
    /// Blocks sent back to back at a requested rate (`-b RATE/BURST`).
    #[serde(default)]
    pub burst: Option<u32>,
    /// Requested kernel pacing rate of each stream (`--fq-rate`).
    #[serde(default)]
    pub fq_rate_bps: Option<BitRate>,
    /// Requested congestion control (`-C`).
    pub congestion: Option<String>,
    /// Requested maximum segment size (`-M`).
    #[serde(default)]
    pub mss_bytes: Option<ByteCount>,
    /// Requested length of one write or datagram (`-l`).
    #[serde(default)]
    pub block_bytes: Option<ByteCount>,
    /// Whether zero-copy sending was forced on or off (`-Z`); `None` leaves it
    /// to each sender.
    #[serde(default)]
    pub zerocopy: Option<bool>,
    /// Whether receivers discard the data without copying it (`--skip-rx-copy`).
    #[serde(default)]
    pub skip_rx_copy: bool,
    /// Whether Nagle's algorithm is disabled (`-N`).
    #[serde(default)]
    pub nodelay: bool,
    /// Whether UDT is in its native mode.
    #[serde(default)]
    pub native: bool,
    /// Whether connections use Multipath TCP.
    #[serde(default)]
    pub mptcp: bool,
    /// Requested traffic class octet of the IP header (`-S`).
    #[serde(default)]
    pub tos: Option<u8>,
    /// Requested IPv6 flow label (`-L`).
    #[serde(default)]
    pub flow_label: Option<u32>,
    /// Whether IP fragmentation of datagrams is forbidden.
    #[serde(default)]
    pub dont_fragment: bool,
    /// File that is sent, or that received data is written to (`-F`).
    #[serde(default)]
    pub file: Option<String>,
    /// Requested local address (`-B`).
    #[serde(default)]
    pub bind: Option<String>,
    /// Requested network interface (`--bind-dev`).
    #[serde(default)]
    pub device: Option<String>,
}

impl TestSpec {
    /// The requested duration; `None` where a number of bytes or blocks ends
    /// the test, which then lasts as long as it takes.
    #[must_use]
    pub fn duration_s(&self) -> Option<f64> {
        (self.end == EndCondition::Time).then_some(self.seconds)
    }

    /// The request with a remedy; `None` for a remedy that is no option of a test.
    #[must_use]
    pub fn with(self, remedy: &RemedyCommand) -> Option<Self> {
        let bytes = |count: u64, unit: u64| ByteCount::from_bytes(count.saturating_mul(unit));
        Some(match remedy {
            RemedyCommand::CongestionControl(name) => {
                TestSpec { congestion: Some(name.clone()), ..self }
            }
            RemedyCommand::SocketBufferMib(mib) => {
                TestSpec { window_bytes: Some(bytes(*mib, 1 << 20)), ..self }
            }
            RemedyCommand::SocketBufferKib(kib) => {
                TestSpec { window_bytes: Some(bytes(*kib, 1 << 10)), ..self }
            }
            RemedyCommand::Streams(streams) => TestSpec { streams: *streams, ..self },
            RemedyCommand::Seconds(seconds) => {
                TestSpec { seconds: *seconds as f64, end: EndCondition::Time, ..self }
            }
            RemedyCommand::RateLimitKbit(kbit) => {
                let rate = BitRate::from_bps(kbit.saturating_mul(1000));
                TestSpec { rate_bps: Some(rate), ..self }
            }
            RemedyCommand::NoRateLimit => TestSpec { rate_bps: None, ..self },
            RemedyCommand::NoPacingLimit => TestSpec { fq_rate_bps: None, ..self },
            RemedyCommand::Sysctl { .. }
            | RemedyCommand::BoostPlan { .. }
            | RemedyCommand::Other(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_of_an_earlier_version_reads_with_defaults() {
        let old = r#"{"target":"h","port":5201,"direction":"reverse","seconds":10.0,"streams":8,
                      "window_bytes":null,"rate_bps":1000,"congestion":"bbr"}"#;
        let spec: TestSpec = serde_json::from_str(old).unwrap();
        let expected = TestSpec {
            target: "h".to_owned(),
            port: 5201,
            direction: Direction::Reverse,
            seconds: 10.0,
            streams: 8,
            rate_bps: Some(BitRate::from_bps(1000)),
            congestion: Some("bbr".to_owned()),
            ..TestSpec::default()
        };
        assert_eq!(spec, expected);
        assert_eq!(spec.duration_s(), Some(10.0));
    }

    #[test]
    fn every_end_condition_survives_a_round_trip() {
        for (end, json) in [
            (EndCondition::Time, r#""time""#),
            (EndCondition::Bytes(ByteCount::from_bytes(5)), r#"{"bytes":5}"#),
            (EndCondition::Blocks(7), r#"{"blocks":7}"#),
        ] {
            assert_eq!(serde_json::to_string(&end).unwrap(), json);
            assert_eq!(serde_json::from_str::<EndCondition>(json).unwrap(), end);
        }
    }
}
