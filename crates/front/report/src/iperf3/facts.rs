//! The input of the formatters: parameters and figures of a test, in plain numbers.

/// The end that prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The transport protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// As iperf3 names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}

/// The test parameters, with defaults filled in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The transport protocol.
    pub protocol: Protocol,
    /// Streams in each direction.
    pub streams: u32,
    /// Block length in bytes: of a write, or of a datagram.
    pub block: u64,
    /// Seconds omitted at the start.
    pub omit: u64,
    /// Duration in seconds; zero if bytes or blocks end the test.
    pub duration: u64,
    /// Bytes to send; zero for no such limit.
    pub bytes: u64,
    /// Blocks to send; zero for no such limit.
    pub blocks: u64,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidir: bool,
    /// The IP type of service (DSCP and ECN).
    pub tos: u64,
    /// Target rate per stream in bit/s; zero for unlimited.
    pub rate: u64,
    /// Rate of the kernel's pacing (`SO_MAX_PACING_RATE`) in bit/s; zero for none.
    pub fq_rate: u64,
    /// Socket buffer size in bytes; zero for the kernel's default.
    pub window: u64,
    /// The requested MSS in bytes; zero for the default.
    pub mss: u64,
    /// UDP segmentation offload (GSO) at the sender.
    pub gso: bool,
    /// UDP receive offload (GRO) at the receiver.
    pub gro: bool,
}

/// A stream and its addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// Stream id in the protocol, used in results.
    pub id: u32,
    /// The number in the first column.
    pub socket: u32,
    /// Whether this end sends on it.
    pub sending: bool,
    /// This end's address.
    pub local_host: String,
    /// This end's port.
    pub local_port: u16,
    /// The far end's address.
    pub remote_host: String,
    /// The far end's port.
    pub remote_port: u16,
}

/// The start of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The end that prints.
    pub side: Side,
    /// The system, in the format of `uname -a`.
    pub system: String,
    /// The server as given by the user, or the address of the client.
    pub peer_host: String,
    /// Its port.
    pub peer_port: u16,
    /// Seconds since 1970.
    pub unix_s: f64,
    /// The cookie that identifies the test's connections.
    pub cookie: String,
    /// Segment size of the control connection, bytes.
    pub control_mss: u64,
    /// Actual send buffer of the first stream, bytes.
    pub send_buffer: u64,
    /// Actual receive buffer of the first stream, bytes.
    pub receive_buffer: u64,
    /// In order of creation.
    pub streams: Vec<Stream>,
    /// The test parameters.
    pub asked: Asked,
    /// Report interval in seconds; zero for none.
    pub interval_s: f64,
    /// `--title`.
    pub title: Option<String>,
    /// `--extra-data`.
    pub extra_data: Option<String>,
    /// The file of `-F`, and its size in bytes.
    pub file: Option<(String, u64)>,
}

impl Head {
    /// The directions in the order in which they are printed, the client's first; `true`
    /// where this end sends.
    #[must_use]
    pub fn directions(&self) -> Vec<bool> {
        match (self.asked.bidir, self.side) {
            (true, Side::Client) => vec![true, false],
            (true, Side::Server) => vec![false, true],
            (false, Side::Client) => vec![!self.asked.reverse],
            (false, Side::Server) => vec![self.asked.reverse],
        }
    }

    /// The role printed after the stream number in a bidirectional test.
    #[must_use]
    pub(crate) fn role(&self, sending: bool) -> &'static str {
        match (self.asked.bidir, sending, self.side) {
            (false, ..) => "",
            (true, true, Side::Client) => "[TX-C]",
            (true, false, Side::Client) => "[RX-C]",
            (true, true, Side::Server) => "[TX-S]",
            (true, false, Side::Server) => "[RX-S]",
        }
    }

    /// Whether a direction is the reverse one of a bidirectional test: its sums have
    /// separate keys.
    #[must_use]
    pub(crate) fn is_bidir_reverse(&self, sending: bool) -> bool {
        self.asked.bidir && (sending == (self.side == Side::Server))
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.asked.protocol == Protocol::Tcp
    }

    pub(crate) fn stream(&self, id: u32) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

/// The number in the first column: iperf3 prints the socket's file descriptor, which
/// depends on the descriptors opened before. `index` counts from 0.
#[must_use]
pub const fn socket(index: u32, side: Side, protocol: Protocol) -> u32 {
    match (side, protocol, index) {
        (_, _, 0) => 5,
        (Side::Server, Protocol::Tcp, 1) => 8,
        (Side::Server, Protocol::Tcp, _) => 7 + 2 * index,
        (Side::Server, Protocol::Udp, 1) => 6,
        (_, _, 1) => 7,
        (_, _, 2) => 9,
        _ => 6 + 2 * index,
    }
}

/// One stream over one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The stream's id.
    pub id: u32,
    /// Whether this end sends on it.
    pub sending: bool,
    /// Start, in seconds since the test (without omitted seconds) began.
    pub from_s: f64,
    /// End, likewise.
    pub to_s: f64,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Receive window of the peer, bytes.
    pub peer_window: u64,
    /// Smoothed RTT, µs.
    pub rtt_us: u64,
    /// RTT variation, µs.
    pub rttvar_us: u64,
    /// Path MTU, bytes.
    pub pmtu: u64,
    /// Reordering seen by the kernel, packets.
    pub reorder: u64,
    /// Datagrams sent, or expected.
    pub packets: u64,
    /// Datagrams lost; negative if late ones of an earlier interval arrived.
    pub lost: i64,
    /// Datagrams received out of order.
    pub out_of_order: u64,
    /// Interarrival jitter, ms.
    pub jitter_ms: f64,
    /// Not counted in the result.
    pub omitted: bool,
}

/// CPU utilization in percent of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// Total.
    pub total: f64,
    /// User time.
    pub user: f64,
    /// System time.
    pub system: f64,
}

/// The totals of a stream; zero where this end has no figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamEnd {
    /// The stream's id.
    pub id: u32,
    /// Whether this end sends on it.
    pub sending: bool,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Retransmitted segments.
    pub retransmits: i64,
    /// The last [`Row::reorder`].
    pub reorder: u64,
    /// Largest congestion window, bytes.
    pub max_cwnd: u64,
    /// Largest receive window of the peer, bytes.
    pub max_peer_window: u64,
    /// Highest smoothed RTT, µs.
    pub max_rtt_us: u64,
    /// Lowest smoothed RTT, µs.
    pub min_rtt_us: u64,
    /// Mean smoothed RTT, µs.
    pub mean_rtt_us: u64,
    /// Datagrams sent, without the omitted ones.
    pub packets_sent: i64,
    /// Datagrams up to the highest sequence number received, without the omitted ones.
    pub packets_received: i64,
    /// Datagrams lost, without the omitted ones.
    pub lost: i64,
    /// Whether `lost` includes the omitted part, as the peer does not report it separately.
    pub lost_with_omitted: bool,
    /// Datagrams received out of order, if this end receives.
    pub out_of_order: u64,
    /// Interarrival jitter, ms.
    pub jitter_ms: f64,
}

/// The end of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// In order of creation.
    pub streams: Vec<StreamEnd>,
    /// Duration measured by the sender of the first stream, seconds.
    pub sender_s: f64,
    /// Duration measured by its receiver, seconds.
    pub receiver_s: f64,
    /// CPU utilization of this end.
    pub cpu_local: Cpu,
    /// CPU utilization of the far end.
    pub cpu_remote: Cpu,
    /// This end's congestion control.
    pub congestion_local: Option<String>,
    /// The far end's.
    pub congestion_remote: Option<String>,
    /// Whether the far end reports retransmissions.
    pub remote_counts_retransmits: bool,
    /// The server's own output.
    pub server_output: Option<ServerOutput>,
}

impl End {
    /// Whether the retransmissions of a direction's sender are known.
    pub(crate) fn counts_retransmits(&self, sending: bool) -> bool {
        sending || self.remote_counts_retransmits
    }

    /// The congestion control of the sender and of the receiver of a direction.
    pub(crate) fn congestion(&self, sending: bool) -> (Option<&str>, Option<&str>) {
        let (local, remote) = (self.congestion_local.as_deref(), self.congestion_remote.as_deref());
        if sending { (local, remote) } else { (remote, local) }
    }
}

/// Output of the server, unmodified.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Text.
    Text(String),
    /// JSON.
    Json(iperf3_proto::JsonText),
}
