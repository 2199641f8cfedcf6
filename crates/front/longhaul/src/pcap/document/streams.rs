//! TCP streams: what `longhaul.pcap-streams/1` and `longhaul.pcap-handshake/1` consist of.

use super::{Broken, file_object, seconds};
use crate::pcap::reading::Capture;
use record::Caveat;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use tcp_analysis::iperf3::{self, Cut};
use tcp_analysis::{CongestionEvidence, EcnCounts, EcnMode, Subflow, TimeShare};

/// Schema of the streams.
pub const STREAMS_SCHEMA: &str = "longhaul.pcap-streams/1";
/// Schema of the handshakes.
pub const HANDSHAKES_SCHEMA: &str = "longhaul.pcap-handshake/1";

/// The TCP streams of a file; `L` is their list, or what serialises as one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct StreamsFile<L> {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Its name.
    pub file: String,
    /// The iperf3 tests that began in it.
    pub iperf3_tests: Vec<Iperf3Test>,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
    /// Those that retransmitted the largest share first.
    pub streams: L,
}

impl<L> StreamsFile<L> {
    pub(crate) fn new(capture: &Capture, tests: &iperf3::Tests, streams: L) -> Self {
        let first_ns = capture.overview.first_ns;
        let tests = tests.iter().map(|test| Iperf3Test::new(test, first_ns));
        file_object!(capture, StreamsFile { iperf3_tests: tests.collect(), streams })
    }
}

/// A TCP stream. Its sender is the end with most payload.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    /// Properties of it that the capture does not show.
    #[serde(serialize_with = "by_name")]
    pub caveats: Vec<Caveat>,
    /// The parts of the connection that were captured, as Wireshark's `tcp.completeness`.
    pub completeness: u8,
    /// What it shows of its congestion control.
    pub congestion_control: Option<CongestionEvidence>,
    /// Segments that the network duplicated.
    pub duplicated: u32,
    /// Seconds from its first packet to its last.
    pub duration_s: f64,
    /// ECN marks.
    pub ecn: Ecn,
    /// Flags by Wireshark's names.
    pub flags: StreamFlags,
    /// Payload over time in bit/s.
    pub goodput_bps: Option<u64>,
    /// From the SYN to the first ACK without SYN, in milliseconds.
    pub initial_rtt_ms: Option<f64>,
    /// The parameters of the iperf3 test that it belongs to.
    pub iperf3: Option<Value>,
    /// Its limit, as a sentence; `None` for one that was not explained.
    pub limit: Option<String>,
    /// Retransmissions of segments that were not seen before.
    pub lost_before_this_point: u32,
    /// Retransmissions of segments that were seen before.
    pub lost_behind_this_point: u32,
    /// The least RTT of the path, in milliseconds.
    pub min_rtt_ms: Option<f64>,
    /// Its MPTCP connection.
    pub mptcp: Option<Mptcp>,
    /// Payload that arrived, in bytes.
    pub payload_bytes: u64,
    /// Share of the RTT between the sender and the point of the capture.
    pub position: Option<f64>,
    /// Its uncertainty.
    pub position_uncertainty: Option<f64>,
    /// The receiver's window.
    pub receive_window: Option<ReceiveWindow>,
    /// Address and port of the receiver.
    pub receiver: String,
    /// Segments that arrived out of order.
    pub reordered: u32,
    /// Retransmissions by kind.
    pub retransmissions: BTreeMap<&'static str, u32>,
    /// The mean RTT, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Address and port of the sender.
    pub sender: String,
    /// Retransmissions that a DSACK reports as spurious (RFC 2883).
    pub spurious_dsack: u32,
    /// Retransmissions that timestamps show to be spurious (RFC 3522).
    pub spurious_eifel: u32,
    /// Its number.
    pub stream: u32,
    /// Its time by cause; `None` for one that was not explained.
    pub time_by_cause: Option<Vec<CauseTime>>,
}

/// Caveats whose members are in alphabetical order.
fn by_name<S: Serializer>(caveats: &[Caveat], serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(caveats).unwrap_or_default().serialize(serializer)
}

/// The receive window of a stream.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct ReceiveWindow {
    /// True if the scale is unknown, and the window may be larger.
    pub is_lower_bound: bool,
    /// The largest one, in bytes.
    pub largest_bytes: u64,
}

/// The subflow of an MPTCP connection (RFC 8684).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Mptcp {
    /// Number of the connection.
    pub connection: u32,
    /// True if it joined the connection.
    pub joined: bool,
}

impl From<Subflow> for Mptcp {
    fn from(subflow: Subflow) -> Self {
        Mptcp { connection: subflow.connection, joined: subflow.is_joined }
    }
}

/// Counts of each of Wireshark's flags.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct StreamFlags {
    /// In packets from the receiver.
    pub from_receiver: BTreeMap<&'static str, u32>,
    /// In packets from the sender.
    pub from_sender: BTreeMap<&'static str, u32>,
}

/// An iperf3 test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Iperf3Test {
    /// The client's results.
    pub client_results: Option<Iperf3Document>,
    /// Number of the control connection's stream.
    pub control_stream: u32,
    /// True if a part of the control connection is missing in the capture.
    pub is_incomplete: bool,
    /// Its parameters.
    pub parameters: Option<Iperf3Document>,
    /// The server's results.
    pub server_results: Option<Iperf3Document>,
    /// Its states in the order of the capture.
    pub states: Vec<Iperf3State>,
}

impl Iperf3Test {
    fn new(test: &iperf3::Test, first_ns: u64) -> Self {
        let [client, server] = &test.results;
        let states = test.states.iter().map(|change| Iperf3State {
            at_s: seconds(change.time_ns.saturating_sub(first_ns)),
            error: change.error.map(|(code, errno)| Iperf3Error { code, errno }),
            packet: change.packet,
            state: change.state.name(),
        });
        Iperf3Test {
            client_results: client.as_ref().map(Iperf3Document::of),
            control_stream: test.stream,
            is_incomplete: test.is_incomplete,
            parameters: test.parameters.as_ref().map(Iperf3Document::of),
            server_results: server.as_ref().map(Iperf3Document::of),
            states: states.collect(),
        }
    }
}

/// A state on the control connection of an iperf3 test.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Iperf3State {
    /// Seconds since the first packet of the file.
    pub at_s: f64,
    /// The server's error.
    pub error: Option<Iperf3Error>,
    /// The packet that has it.
    pub packet: u64,
    /// Its name.
    pub state: &'static str,
}

/// An error of an iperf3 server.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Iperf3Error {
    /// iperf3's number.
    pub code: i32,
    /// The system's number.
    pub errno: i32,
}

/// A JSON document on the control connection.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Iperf3Document {
    /// The reason a part of it is missing.
    pub cut: Option<&'static str>,
    /// Its members, as far as they were captured.
    pub json: Value,
    /// The packet that completed it.
    pub packet: u64,
}

impl Iperf3Document {
    fn of(document: &iperf3::Document) -> Self {
        let cut = document.cut.map(|cut| match cut {
            Cut::Snaplen => "snaplen",
            Cut::NotCaptured => "not captured",
            Cut::TooLong => "too long",
        });
        Iperf3Document { cut, json: document.json.clone(), packet: document.packet }
    }
}

/// The time of one cause.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct CauseTime {
    /// Its name.
    pub cause: &'static str,
    /// The longest span.
    pub longest: CauseSpan,
    /// In all.
    pub seconds: f64,
    /// Of the stream's duration, 0 to 1.
    pub share: f64,
}

/// A span of time between two packets.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct CauseSpan {
    /// The first packet.
    pub from_packet: u64,
    /// Its length.
    pub seconds: f64,
    /// The last packet.
    pub to_packet: u64,
}

impl CauseTime {
    /// The time of a stream by cause; `None` for one that was not explained.
    pub(crate) fn of(times: &[TimeShare]) -> Option<Vec<CauseTime>> {
        let each = times.iter().map(|time| {
            let (from_packet, to_packet) = time.longest.packets;
            CauseTime {
                cause: time.cause.name(),
                longest: CauseSpan { from_packet, seconds: seconds(time.longest.ns), to_packet },
                seconds: seconds(time.ns),
                share: time.share,
            }
        });
        (!times.is_empty()).then(|| each.collect())
    }
}

/// The ECN marks of a stream (RFC 3168, RFC 9768).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct Ecn {
    /// The mode that the handshake negotiated.
    pub mode: &'static str,
    /// The receiver's marks.
    pub receiver: EcnCounts,
    /// The sender's marks.
    pub sender: EcnCounts,
}

impl From<&(EcnMode, [EcnCounts; 2])> for Ecn {
    fn from((mode, [sender, receiver]): &(EcnMode, [EcnCounts; 2])) -> Self {
        Ecn { mode: mode.name(), receiver: *receiver, sender: *sender }
    }
}

/// The handshakes of a file; `L` is their list, or what serialises as one.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Serialize)]
pub struct HandshakesFile<L> {
    /// Where it broke off.
    pub broken: Option<Broken>,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Its name.
    pub file: String,
    /// Of each stream, the first ones.
    pub handshakes: L,
    /// Remarks, as sentences.
    pub notes: Vec<String>,
    /// Packets.
    pub packets: u64,
}

impl<L> HandshakesFile<L> {
    /// With these handshakes.
    pub fn new(capture: &Capture, handshakes: L) -> Self {
        file_object!(capture, HandshakesFile { handshakes })
    }
}
