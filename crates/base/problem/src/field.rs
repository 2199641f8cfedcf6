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
    /// A plan of settings.
    Plan = "plan",
    /// Settings of a link.
    Settings = "settings",
    /// Directions of the data.
    Directions = "directions",
    /// How often a test is repeated.
    Repeat = "repeat",
    /// Parallel connections.
    Streams = "streams",
    /// Consent to run programs.
    AllowCommands = "allow_commands",
    /// Consent to set sysctls of other hosts.
    AllowSysctls = "allow_sysctls",
    /// How often something is tried.
    Attempts = "attempts",
    /// Captures of packets.
    Capture = "capture",
    /// The directory of results.
    Folder = "folder",
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
