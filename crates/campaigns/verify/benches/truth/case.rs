//! One transfer over its own path: what the lab runs under a real kernel, and the simulated
//! twin in virtual time.

use units::{BitRate, ByteCount};

/// A transfer, and the traffic beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Case {
    /// The family that it was drawn from.
    pub(crate) family: &'static str,
    /// Its number within the seed.
    pub(crate) number: usize,
    /// The path, in the syntax of `--link`.
    pub(crate) path: String,
    /// Congestion control of the measured streams: `cubic`, `reno` or `bbr`.
    pub(crate) congestion: &'static str,
    /// Measured streams (`-P`).
    pub(crate) streams: u32,
    /// The server sends (`-R`): `down.` is the direction of the data.
    pub(crate) reverse: bool,
    pub(crate) seconds: f64,
    /// Rate limit of the application, for each stream (`-b`).
    pub(crate) rate: Option<BitRate>,
    /// Pacing rate of each socket (`--fq-rate`).
    pub(crate) pacing: Option<BitRate>,
    /// Bytes per write.
    pub(crate) block: Option<ByteCount>,
    /// Rate at which the receiving application reads, for each stream; `None`: at once.
    pub(crate) reader: Option<BitRate>,
    /// Payload that each send buffer holds at most; `None`: ample.
    pub(crate) send_buffer: Option<ByteCount>,
    /// The largest receive window, in payload bytes; `None`: ample. The lab sets twice as
    /// much as `tcp_rmem`'s maximum.
    pub(crate) receive_window: Option<ByteCount>,
    /// Both buffers of the socket at the client and at the server (`-w`).
    pub(crate) window: Option<ByteCount>,
    /// Settings of both hosts in addition to what the path needs; the lab only.
    pub(crate) sysctls: Vec<(String, String)>,
    /// The streams negotiate ECN (RFC 3168).
    pub(crate) ecn: bool,
    /// Traffic beside the streams, in their direction and through the same bottleneck.
    pub(crate) cross: Vec<Cross>,
}

/// One flow of cross traffic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cross {
    /// A bulk TCP connection without end.
    Tcp {
        congestion: &'static str,
        /// When it begins, seconds after the start; 0: with the streams.
        start_s: f64,
    },
    /// Datagrams of 1200 bytes (IP) at a constant rate while on; it begins with it.
    OnOffUdp { rate: BitRate, on_s: f64, off_s: f64 },
}

impl Case {
    /// A bulk transfer of one stream over a path, forward, with CUBIC.
    pub(crate) fn new(family: &'static str, number: usize, path: String, seconds: f64) -> Self {
        Case {
            family,
            number,
            path,
            congestion: "cubic",
            streams: 1,
            reverse: false,
            seconds,
            rate: None,
            pacing: None,
            block: None,
            reader: None,
            send_buffer: None,
            receive_window: None,
            window: None,
            sysctls: Vec::new(),
            ecn: false,
            cross: Vec::new(),
        }
    }
}
