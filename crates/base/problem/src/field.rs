//! The fields of requests.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A field of a request, by the name that it has in a serialised request.
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Memory for packets waiting to be written.
    Buffer = "buffer",
    /// Targets that a far box allows.
    Allow = "allow",
    /// The far box of a pair.
    Far = "far",
    /// The program that controls flows of a simulation.
    ControlProgram = "control",
    /// Flows of a simulation.
    Flows = "flows",
    /// Forwarded ports.
    Forward = "forwards",
    /// Files with the keys of a pair.
    KeyFiles = "key_files",
    /// Connections between two boxes that are kept ready.
    Lanes = "lanes",
    /// Connections that carry a session between two boxes.
    Connections = "connections",
    /// The time that flows have to end.
    Drain = "drain_s",
    /// Goodput of a direct transfer.
    DirectRate = "direct_rate",
    /// The maximum number of flows at a time.
    MaxFlows = "max_flows",
    /// The ratio by which data shrinks.
    Compressible = "compressible",
    /// The size of an object.
    Object = "object",
    /// The server whose objects an edge caches.
    Origin = "origin",
    /// The directory of an edge's cache.
    Cache = "cache",
    /// The most bytes of an edge's cache.
    MaxSize = "max_size",
    /// The time for which an edge's objects are fresh.
    Fresh = "fresh_s",
    /// The size of the parts in which an edge fetches objects.
    Slice = "slice",
    /// The RTT to an edge.
    EdgeRtt = "edge_rtt",
    /// A range of an object's bytes.
    Range = "range",
    /// Clients that ask at once.
    Clients = "clients",
    /// A connection of a file with several.
    Connection = "connection",
    /// Files to read.
    Files = "files",
    /// A plan of settings.
    Plan = "plan",
    /// A description of a part of the path.
    Note = "note",
    /// A file of them.
    Notes = "notes",
    /// Settings of a link.
    Settings = "settings",
    /// Directions of the data.
    Directions = "directions",
    /// Data from the far end.
    Reverse = "reverse",
    /// The number of repetitions of a test.
    Repeat = "repeat",
    /// Parallel connections.
    Streams = "streams",
    /// Consent to run programs.
    AllowCommands = "allow_commands",
    /// Consent to set sysctls of other hosts.
    AllowSysctls = "allow_sysctls",
    /// The maximum number of attempts.
    Attempts = "attempts",
    /// The testbed of a study.
    Testbed = "testbed",
    /// Every N-th cell of a study.
    Shard = "shard",
    /// Consent to leave out cells.
    SkipUnsupported = "skip_unsupported",
    /// The directory of a joined store.
    Into = "into",
    /// Captures of packets.
    Capture = "capture",
    /// The directory of results.
    Folder = "folder",
    /// True if a lab forwards to the machine's network.
    Nat = "nat",
    /// Environment variables of programs.
    Environment = "environment",
    /// An emulated path.
    Link = "link",
    /// Programs with their arguments.
    Programs = "programs",
    /// Seconds of a measurement.
    Seconds = "seconds",
    /// Settings of a host's kernel.
    Sysctls = "sysctls",
    /// The far host.
    Host = "host",
    /// The far host of a host that is examined.
    To = "to",
    /// The limits of a server's tests.
    Limits = "limits",
    /// The time that a server waits for its one test.
    IdleTimeout = "idle_timeout_s",
    /// UDT between the boxes of a boosted path.
    Udt = "udt",
    /// The UDP ports of a far box.
    UdtPorts = "udt_ports",
    /// A file with tokens.
    Tokens = "tokens",
    /// A file with a private key.
    PrivateKey = "private_key",
    /// A file with users.
    Users = "users",
    /// The address of a server's metrics.
    Metrics = "metrics",
    /// Names for which the metrics are served.
    MetricsHosts = "metrics_hosts",
    /// The address to listen on.
    Listen = "listen",
    /// The address of a speed test for browsers beside another server.
    Web = "web",
    /// Certificates of encrypted connections.
    Tls = "tls",
    /// Names of this host.
    HostNames = "names",
    /// A name of this host that has an IPv4 address alone.
    Ipv4Name = "ipv4_name",
    /// A name of this host that has an IPv6 address alone.
    Ipv6Name = "ipv6_name",
    /// The file of kept results.
    History = "history",
    /// The secret of a server's clients.
    Token = "token",
    /// The server at the far end of the speed test's second leg.
    Peer = "peer",
    /// Origins of pages that may use this server.
    AllowOrigins = "allow_origins",
    /// Bytes of a run of the speed test.
    MaxBytesPerRun = "max_bytes_per_run",
    /// The directory that copies are served from.
    Root = "root",
    /// The maximum number of concurrent copies.
    MaxCopies = "max_copies",
    /// The number of reports or probes.
    Count = "count",
    /// Ports of connections.
    Ports = "ports",
    /// Hosts at the other ends of connections.
    Destinations = "destinations",
    /// The files to copy.
    Sources = "sources",
    /// A rate to keep.
    Target = "target",
    /// Congestion control.
    Congestion = "congestion",
    /// Its port.
    Port = "port",
    /// A rate in bit/s.
    Rate = "rate",
    /// A round-trip time.
    Rtt = "rtt",
    /// The RTT between a host and its box.
    LanRtt = "lan_rtt",
    /// The rate between them.
    LanRate = "lan_rate",
    /// What a program keeps in flight.
    ProgramWindow = "program_window",
    /// The kind of probes or packets.
    Method = "method",
    /// Consent to any certificate.
    Insecure = "insecure",
    /// A network interface.
    Interface = "interface",
    /// The maximum number of hops.
    MaxHops = "max_hops",
    /// The interval between probes.
    Interval = "interval",
    /// An output file.
    Output = "output",
    /// The number of a packet.
    Packet = "packet",
    /// Bytes of payload of a probe.
    Payload = "payload",
    /// Bytes of a packet that are kept.
    Snaplen = "snaplen",
    /// TTL or hop limit of packets.
    Ttl = "ttl",
    /// The time after which a reply is late.
    Timeout = "timeout",
    /// The warm-up that a result omits, in seconds.
    OmitSeconds = "omit_seconds",
    /// Bytes that end a test.
    Bytes = "bytes",
    /// Blocks that end a test.
    Blocks = "blocks",
    /// The size of the socket buffers.
    Window = "window",
    /// Bytes of a write or datagram.
    Block = "block",
    /// Blocks back to back.
    Burst = "burst",
    /// The maximum segment size.
    Mss = "mss",
    /// The largest IP packet.
    Mtu = "mtu",
    /// A data reduction ratio.
    Ratio = "ratio",
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
    /// RTT probes around a test.
    Latency = "latency",
    /// True if a second test decides between two causes.
    Decide = "decide",
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
    /// How packets of a lab are taken up.
    Driver = "driver",
    /// The path of longhaul's program at another host.
    FarProgram = "far_program",
    /// A list of the fields of packets.
    Fields = "fields",
    /// A lab's host, whose settings are changed instead of this machine's.
    InLab = "in_lab",
    /// The initial window in segments.
    InitialWindow = "initial_window",
    /// The initial receive window in segments.
    InitialReceiveWindow = "initrwnd",
    /// The destination of a route.
    Route = "route",
    /// The lab, where several run.
    Lab = "lab",
    /// A packet loss.
    Loss = "loss",
    /// A server's limit of all tests' buffers.
    MaxMemory = "max_memory",
    /// A server's limit of one address.
    MaxPerAddress = "max_per_address",
    /// A server's limit of a test's streams.
    MaxStreams = "max_streams",
    /// A server's limit of a test's duration.
    MaxTime = "max_time",
    /// A server's limit of all tests' streams.
    MaxTotalStreams = "max_total_streams",
    /// The name of a lab that starts.
    Name = "name",
    /// The directory of results.
    Out = "out",
    /// Settings that are kept over a boot.
    Persist = "persist",
    /// A process.
    Pid = "pid",
    /// A file that records connections.
    Record = "record",
    /// Rotated files of a capture.
    Ring = "ring",
    /// The retransmission timeout.
    Rto = "rto",
    /// SACK blocks of each segment.
    Sack = "sack",
    /// A file that keeps a result.
    Save = "save",
    /// The command that starts a program at another host.
    Ssh = "ssh",
    /// The file of a client's token.
    TokenFile = "token_file",
    /// The name of a server in its clients' tokens.
    TokenName = "token_name",
    /// What carries a test or a copy.
    Transport = "transport",
    /// Trust in the source addresses of UDP.
    TrustUdp = "trust_udp",
    /// VLAN tags of each frame.
    Vlan = "vlan",
    /// Clients may write.
    Writable = "writable",
    /// The timeout without received data.
    ReceiveTimeout = "receive_timeout",
    /// The timeout of unacknowledged data.
    SendTimeout = "send_timeout",
    /// The timeout of a connection attempt.
    ConnectTimeout = "connect_timeout",
    /// The time for which the CPU's load is measured before a test.
    WatchLoad = "watch_load",
}

/// As a message names it: [`with_names`] puts a front end's name in its place.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "‹{}›", self.name())
    }
}

/// A message with each field (`‹rate›`) by the name that a front end gives it.
pub fn with_names(message: &str, name: impl Fn(Field) -> String) -> String {
    let mut parts = message.split('‹');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let field = part.split_once('›').and_then(|(field, rest)| {
            Some((*Field::ALL.iter().find(|one| one.name() == field)?, rest))
        });
        match field {
            Some((field, rest)) => text += &(name(field) + rest),
            None => text.extend(["‹", part]),
        }
    }
    text
}

/// An error's message for a document, which every front end shows: fields by their own names.
pub fn stored(error: impl fmt::Display) -> String {
    with_names(&error.to_string(), |field| field.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_fields_as_its_reader_knows_them() {
        let flag = |field: Field| format!("--{}", field.name());
        let text = &format!("give {}, {} or both", Field::Rate, Field::Rtt);
        assert_eq!(with_names(text, flag), "give --rate, --rtt or both");
        for text in ["", "‹", "a‹b›c", "‹rate", "›rate‹", "no field"] {
            assert_eq!(with_names(text, flag), text);
        }
        assert_eq!(with_names("‹‹rate›", flag), "‹--rate");
        assert_eq!(stored(text), "give rate, rtt or both");
    }

    #[test]
    fn each_field_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> =
            Field::ALL.iter().map(|field| field.name()).collect();
        assert_eq!(names.len(), Field::ALL.len());
    }
}
