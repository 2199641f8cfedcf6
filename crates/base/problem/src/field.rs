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
    /// Memory for packets that wait to be written.
    Buffer = "buffer",
    /// A connection of a file with several.
    Connection = "connection",
    /// Files to read.
    Files = "files",
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
}
