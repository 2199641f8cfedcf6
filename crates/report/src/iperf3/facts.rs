//! What is rendered, in plain numbers: nothing here knows a socket.

/// Which end renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The end that asked for the test.
    Client,
    /// The end that listened.
    Server,
}

/// What carries the payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// One byte stream for each.
    #[default]
    Tcp,
    /// Numbered datagrams.
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

/// What the client asked for, with the defaults filled in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// What carries the payload.
    pub protocol: Protocol,
    /// Streams in each direction.
    pub streams: u32,
    /// Bytes of a write or a datagram.
    pub block: u64,
    /// Seconds left out at the start.
    pub omit: u64,
    /// Seconds of the test; zero where bytes or blocks end it.
    pub duration: u64,
    /// Bytes that end it; zero for none.
    pub bytes: u64,
    /// Blocks that end it; zero for none.
    pub blocks: u64,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidir: bool,
    /// The IP type of service.
    pub tos: u64,
    /// bit/s of each stream; zero for no limit.
    pub rate: u64,
    /// bit/s of the kernel's pacing; zero for none.
    pub fq_rate: u64,
    /// Socket buffers in bytes; zero for the kernel's own.
    pub window: u64,
    /// The TCP segment size asked; zero for the path's own.
    pub mss: u64,
    /// UDP segmentation by the kernel at the sender.
    pub gso: bool,
    /// The same at the receiver.
    pub gro: bool,
}

/// A stream and the numbers it is shown with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    /// Its id on the wire, which results go by.
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

/// A test as it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// Which end renders.
    pub side: Side,
    /// The system, as `uname -a` tells it.
    pub system: String,
    /// The server as the user named it, or the address of the client.
    pub peer_host: String,
    /// The port of that.
    pub peer_port: u16,
    /// Seconds since 1970.
    pub unix_s: f64,
    /// What ties the connections to the test.
    pub cookie: String,
    /// Segment size of the control connection, bytes.
    pub control_mss: u64,
    /// The kernel's send buffer of the first stream, bytes.
    pub send_buffer: u64,
    /// The kernel's receive buffer of the first stream, bytes.
    pub receive_buffer: u64,
    /// In order of creation.
    pub streams: Vec<Stream>,
    /// What was asked.
    pub asked: Asked,
    /// Seconds between rows; zero for none.
    pub interval_s: f64,
    /// `--title`.
    pub title: Option<String>,
    /// `--extra-data`.
    pub extra_data: Option<String>,
    /// The file of `-F`, and its size in bytes.
    pub file: Option<(String, u64)>,
}

impl Head {
    /// Whether this end sends, receives, or does both, as the order in which
    /// directions are shown: the client's first.
    #[must_use]
    pub fn directions(&self) -> Vec<bool> {
        match (self.asked.bidir, self.side) {
            (true, Side::Client) => vec![true, false],
            (true, Side::Server) => vec![false, true],
            (false, Side::Client) => vec![!self.asked.reverse],
            (false, Side::Server) => vec![self.asked.reverse],
        }
    }

    /// What stands behind the number of a stream where both ends send.
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

    /// Whether a direction is the one from the server to the client of a test
    /// of both: its sums have names of their own.
    #[must_use]
    pub(crate) fn is_backward(&self, sending: bool) -> bool {
        self.asked.bidir && (sending == (self.side == Side::Server))
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.asked.protocol == Protocol::Tcp
    }

    pub(crate) fn stream(&self, id: u32) -> Option<&Stream> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

/// The number in the first column: iperf3 shows the descriptor of the socket,
/// which is where other descriptors leave room. `index` counts from 0.
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
    /// Seconds since the test, or the part that counts, began.
    pub from_s: f64,
    /// Seconds since then.
    pub to_s: f64,
    /// Bytes written, or read.
    pub bytes: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Bytes.
    pub cwnd: u64,
    /// The far end's window, bytes.
    pub peer_window: u64,
    /// µs.
    pub rtt_us: u64,
    /// µs.
    pub rttvar_us: u64,
    /// Bytes of the largest packet the path takes.
    pub pmtu: u64,
    /// Packets by which the kernel has seen the order change.
    pub reorder: u64,
    /// Datagrams sent, or expected.
    pub packets: u64,
    /// Of them lost; less than none where late ones came after all.
    pub lost: i64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// ms.
    pub jitter_ms: f64,
    /// Left out of the result.
    pub omitted: bool,
}

/// A share of a core, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// All of it.
    pub total: f64,
    /// In its own code.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// A stream at the end of a test. What this end cannot know is zero.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StreamEnd {
    /// The stream's id.
    pub id: u32,
    /// Whether this end sends on it.
    pub sending: bool,
    /// Bytes that the sender wrote.
    pub sent: u64,
    /// Bytes that the receiver read.
    pub received: u64,
    /// Segments sent again.
    pub retransmits: i64,
    /// As in [`Row::reorder`], the last.
    pub reorder: u64,
    /// Largest in bytes.
    pub max_cwnd: u64,
    /// Largest in bytes.
    pub max_peer_window: u64,
    /// µs.
    pub max_rtt_us: u64,
    /// µs.
    pub min_rtt_us: u64,
    /// µs.
    pub mean_rtt_us: u64,
    /// Datagrams that the sender counted, without the omitted ones.
    pub packets_sent: i64,
    /// Datagrams up to the last one that the receiver saw, without the omitted ones.
    pub packets_received: i64,
    /// Datagrams lost, without the omitted ones.
    pub lost: i64,
    /// The peer does not tell how many of them were omitted: they are in `lost`.
    pub lost_with_omitted: bool,
    /// Datagrams that came after a later one, as far as this end saw.
    pub out_of_order: u64,
    /// ms.
    pub jitter_ms: f64,
}

/// A test as it ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct End {
    /// In order of creation.
    pub streams: Vec<StreamEnd>,
    /// Seconds that the sender of the first stream counted.
    pub sender_s: f64,
    /// Seconds that its receiver counted.
    pub receiver_s: f64,
    /// Of this end.
    pub cpu_local: Cpu,
    /// Of the far end.
    pub cpu_remote: Cpu,
    /// This end's congestion control.
    pub congestion_local: Option<String>,
    /// The far end's.
    pub congestion_remote: Option<String>,
    /// Whether the far end counts what it sends again.
    pub remote_counts_retransmits: bool,
    /// The server's own output.
    pub server_output: Option<ServerOutput>,
}

impl End {
    /// Whether retransmits of the sender of a direction are known.
    pub(crate) fn counts_retransmits(&self, sending: bool) -> bool {
        sending || self.remote_counts_retransmits
    }

    /// The congestion control of the sender and of the receiver of a direction.
    pub(crate) fn congestion(&self, sending: bool) -> (Option<&str>, Option<&str>) {
        let (local, remote) = (self.congestion_local.as_deref(), self.congestion_remote.as_deref());
        if sending { (local, remote) } else { (remote, local) }
    }
}

/// What a server printed, as it came.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Its lines.
    Text(String),
    /// Its document.
    Json(serde_json::Value),
}
