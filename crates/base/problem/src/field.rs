//! The fields of requests.

use serde::{Deserialize, Serialize};

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A field of a request, by the name that it has in a serialised request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Field {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Field {
            /// All of them.
            pub const ALL: &[Field] = &[$(Field::$variant,)*];

            /// The name in a serialised request.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$variant => $name,)*
                }
            }
        }
    };
}

fields! {
    /// The far host.
    Host = "host",
    /// Its port.
    Port = "port",
    /// A rate in bit/s.
    Rate = "rate",
    /// A round-trip time.
    Rtt = "rtt",
    /// The kind of probes or packets.
    Method = "method",
    /// The maximum number of hops.
    MaxHops = "max_hops",
    /// The interval between probes.
    Interval = "interval",
    /// Bytes of payload of a probe.
    Payload = "payload",
    /// TTL or hop limit of packets.
    Ttl = "ttl",
    /// The time after which a reply is late.
    Timeout = "timeout",
    /// A range of ports.
    Ports = "ports",
    /// The duration of a test, in seconds.
    Seconds = "seconds",
    /// The warm-up that a result omits, in seconds.
    OmitSeconds = "omit_seconds",
    /// Bytes that end a test.
    Bytes = "bytes",
    /// Blocks that end a test.
    Blocks = "blocks",
    /// Parallel streams.
    Streams = "streams",
    /// The size of the socket buffers.
    Window = "window",
    /// Bytes of a write or datagram.
    Block = "block",
    /// Blocks back to back.
    Burst = "burst",
    /// Congestion control.
    Congestion = "congestion",
    /// The maximum segment size.
    Mss = "mss",
    /// The IPv6 flow label.
    FlowLabel = "flow_label",
    /// The first rate of a train of datagrams.
    Train = "train",
    /// The first local port.
    LocalPort = "local_port",
    /// A CPU core.
    Core = "core",
    /// A file to send or to write.
    File = "file",
    /// Bytes of a file that are read at once.
    FileChunk = "file_chunk",
    /// The interval between samples.
    SampleEvery = "sample_every",
    /// The interval between reports.
    ReportEvery = "report_every",
    /// The transport protocol.
    Protocol = "protocol",
    /// RTT probes around a test.
    Latency = "latency",
    /// Whether a second test decides between two causes.
    Decide = "decide",
    /// How many tests are run.
    Repeat = "repeat",
    /// The maximum loss of a rate search.
    LossTarget = "loss_target",
    /// The duration of a try of a rate search.
    TrySeconds = "try_seconds",
    /// An earlier result to compare with.
    Compare = "compare",
    /// A list of servers.
    Servers = "servers",
    /// The duration of each test.
    Duration = "duration",
    /// The time for everything.
    Within = "within",
    /// The timeout without received data.
    ReceiveTimeout = "receive_timeout",
    /// The timeout of unacknowledged data.
    SendTimeout = "send_timeout",
    /// The timeout of a connection attempt.
    ConnectTimeout = "connect_timeout",
    /// How long the CPU's load is measured before a test.
    WatchLoad = "watch_load",
}
