//! The document of `-J`, as far as it is read; the lines of `--json-stream` have its parts.

use crate::intervals::Totals;
use crate::number::{self, count};
use crate::transfer::MAX_STREAMS;
use iperf3_proto::lenient::{Scalar, short_text};
use record::Interval;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use units::{ByteCount, Rtt};

/// Interval reports of all streams: 128 streams for a quarter of an hour.
pub(super) const MAX_REPORTS: usize = 200_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Document {
    pub(super) start: Start,
    #[serde(deserialize_with = "intervals")]
    pub(super) intervals: Vec<Report>,
    pub(super) end: End,
    #[serde(deserialize_with = "short_text::<200, _>")]
    pub(super) error: Option<String>,
}

/// The intervals, until they have [`MAX_REPORTS`] of all streams; later ones are skipped.
fn intervals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Report>, D::Error> {
    deserializer.deserialize_seq(IntervalsVisitor)
}

struct IntervalsVisitor;

impl<'de> Visitor<'de> for IntervalsVisitor {
    type Value = Vec<Report>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of intervals")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Report>, A::Error> {
        let (mut all, mut count) = (Vec::new(), 0);
        while count < MAX_REPORTS {
            let Some(report) = seq.next_element::<Report>()? else { return Ok(all) };
            count += report.streams.len().max(1);
            all.push(report);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(all)
    }
}

/// The test's parameters. Some keys are repeated for each connection, so that this object is
/// read key by key: the last one counts.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) connected: Vec<Connected>,
    pub(super) version: Option<String>,
    pub(super) timestamp: Timestamp,
    pub(super) connecting_to: Option<Address>,
    pub(super) accepted_connection: Option<Address>,
    pub(super) tcp_mss: Option<f64>,
    pub(super) target_bitrate: Option<f64>,
    pub(super) fq_rate: Option<f64>,
    pub(super) sock_bufsize: Option<f64>,
    pub(super) test_start: TestStart,
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StartVisitor)
    }
}

struct StartVisitor;

impl<'de> Visitor<'de> for StartVisitor {
    type Value = Start;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the parameters of a test")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Start, A::Error> {
        let mut start = Start::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "connected" => start.connected = map.next_value::<Connections>()?.0,
                "version" => start.version = map.next_value::<Text>()?.0,
                "timestamp" => start.timestamp = map.next_value()?,
                "connecting_to" => start.connecting_to = map.next_value()?,
                "accepted_connection" => start.accepted_connection = map.next_value()?,
                "tcp_mss" | "tcp_mss_default" => {
                    start.tcp_mss = map.next_value::<Scalar>()?.real();
                }
                "target_bitrate" => start.target_bitrate = map.next_value::<Scalar>()?.real(),
                "fq_rate" => start.fq_rate = map.next_value::<Scalar>()?.real(),
                "sock_bufsize" => start.sock_bufsize = map.next_value::<Scalar>()?.real(),
                "test_start" => start.test_start = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(start)
    }
}

#[derive(Debug, Deserialize)]
struct Connections(#[serde(deserialize_with = "number::list::<_, MAX_STREAMS, _>")] Vec<Connected>);

#[derive(Debug, Deserialize)]
struct Text(#[serde(deserialize_with = "short_text::<60, _>")] Option<String>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timestamp {
    #[serde(deserialize_with = "number::maybe")]
    pub(super) timesecs: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Address {
    #[serde(deserialize_with = "short_text::<120, _>")]
    pub(super) host: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) port: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Connected {
    #[serde(deserialize_with = "short_text::<120, _>")]
    pub(super) local_host: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) local_port: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TestStart {
    #[serde(deserialize_with = "short_text::<10, _>")]
    pub(super) protocol: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) num_streams: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) blksize: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) omit: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) bytes: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) blocks: Option<f64>,
    #[serde(deserialize_with = "number::flag")]
    pub(super) reverse: bool,
    #[serde(deserialize_with = "number::flag")]
    pub(super) bidir: bool,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) target_bitrate: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    #[serde(deserialize_with = "number::list::<_, MAX_STREAMS, _>")]
    pub(super) streams: Vec<StreamReport>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamReport {
    #[serde(deserialize_with = "number::maybe")]
    pub(super) socket: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) start: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) end: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) bytes: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) retransmits: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) snd_cwnd: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) snd_wnd: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) rtt: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) rttvar: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) pmtu: Option<f64>,
    #[serde(deserialize_with = "number::flag")]
    pub(super) omitted: bool,
    pub(super) sender: Option<bool>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) min_rtt: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) packets: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) lost_packets: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) out_of_order: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) jitter_ms: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct End {
    #[serde(deserialize_with = "number::list::<_, MAX_STREAMS, _>")]
    pub(super) streams: Vec<EndStream>,
    pub(super) cpu_utilization_percent: Cpu,
    /// What all receivers counted.
    pub(super) sum_received: Option<StreamReport>,
    #[serde(deserialize_with = "short_text::<60, _>")]
    pub(super) sender_tcp_congestion: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EndStream {
    pub(super) sender: Option<StreamReport>,
    pub(super) receiver: Option<StreamReport>,
    pub(super) udp: Option<StreamReport>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cpu {
    #[serde(deserialize_with = "number::maybe")]
    pub(super) host_total: Option<f64>,
    #[serde(deserialize_with = "number::maybe")]
    pub(super) remote_total: Option<f64>,
}

impl StreamReport {
    pub(super) fn interval(&self, sends: bool) -> Interval {
        let bytes = |number| count(number).map(ByteCount::from_bytes);
        let us = |number| count(number).filter(|us| *us > 0).map(Rtt::from_micros);
        let sending = self.sender.unwrap_or(sends);
        Interval {
            sending,
            from_s: self.start.unwrap_or(0.0),
            to_s: self.end.unwrap_or(0.0),
            bytes: bytes(self.bytes).unwrap_or_default(),
            retransmits: count(self.retransmits).filter(|_| sending),
            cwnd: bytes(self.snd_cwnd).filter(|cwnd| *cwnd > ByteCount::ZERO),
            peer_window: bytes(self.snd_wnd).filter(|window| *window > ByteCount::ZERO),
            rtt: us(self.rtt),
            rttvar: us(self.rttvar),
            pmtu: number::count32(self.pmtu).filter(|pmtu| *pmtu > 0),
            omitted: self.omitted,
            ..Interval::default()
        }
    }
}

impl EndStream {
    pub(super) fn socket(&self) -> Option<u64> {
        let any = self.sender.as_ref().or(self.receiver.as_ref()).or(self.udp.as_ref())?;
        count(any.socket)
    }

    /// The totals of a stream; `complete` if both ends reported theirs.
    pub(super) fn totals(&self, sends: bool, complete: bool) -> Totals {
        let of = |end: &Option<StreamReport>| end.as_ref().and_then(|end| count(end.bytes));
        let receiver = self.receiver.as_ref();
        let sender = self.sender.as_ref();
        let min_rtt = sender.and_then(|end| count(end.min_rtt)).filter(|us| *us > 0 && sends);
        Totals {
            sent: of(&self.sender).filter(|bytes| *bytes > 0),
            received: of(&self.receiver).filter(|bytes| *bytes > 0 || complete),
            received_seconds: receiver.and_then(|end| end.end).filter(|end| *end > 0.0),
            retransmits: sender.and_then(|end| count(end.retransmits)),
            min_rtt: min_rtt.map(Rtt::from_micros),
            mss: 0,
        }
    }
}
