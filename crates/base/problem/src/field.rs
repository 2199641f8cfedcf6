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
    /// The far host of a host that is examined.
    To = "to",
    /// Parallel connections.
    Streams = "streams",
    /// The limits of a server's tests.
    Limits = "limits",
    /// How long a server waits for its one test.
    IdleTimeout = "idle_timeout_s",
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
    /// What is copied.
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
}
