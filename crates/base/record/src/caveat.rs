//! What the source of a measurement cannot show.

use serde::{Deserialize, Serialize};

/// A property of a capture or of a tool's file that hides part of the transfer. A finding
/// states it first, and names no limit that rests on what is hidden.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Caveat {
    /// The capture begins after the handshake: the options of the SYNs are unknown, among them
    /// the window scale (RFC 7323, section 2.2).
    NoHandshake {
        /// The least scale of the receiver's windows that the bytes in flight prove.
        scale_at_least: Option<u8>,
    },
    /// The capture has the data and no acknowledgements.
    DataOnly,
    /// The capture has the acknowledgements and no data.
    AcknowledgementsOnly,
    /// A mirror port delivered packets twice; the copies are left out of the analysis.
    MirrorCopies {
        /// The copies.
        packets: u64,
    },
    /// The capture's clock was stepped; times behind a step are shifted to continue before it.
    ClockSteps {
        /// The steps.
        steps: u32,
        /// The largest one, in seconds; negative: backwards.
        largest_s: f64,
    },
    /// Packets were captured too short for their TCP header or options.
    TruncatedHeaders {
        /// The packets.
        packets: u64,
    },
    /// Seconds at the start are missing from the figures (iperf3's `-O`).
    OmittedSeconds {
        /// Their number.
        seconds: f64,
        /// Segments retransmitted within them; `None` if that is unknown.
        retransmits: Option<u64>,
    },
    /// The samples are further apart than the limits they would have to show.
    SparseSamples {
        /// The median interval, in seconds.
        interval_s: f64,
    },
    /// The transfer took no longer than one round trip: it has no steady rate.
    WithinOneRoundTrip,
}

impl Caveat {
    /// One sentence, with the consequence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Caveat::NoHandshake { scale_at_least: None } => {
                "The handshake was not captured: the window scale is unknown.".to_owned()
            }
            Caveat::NoHandshake { scale_at_least: Some(scale) } => format!(
                "The handshake was not captured: the bytes in flight prove a window scale of at \
                 least {scale}, so windows are lower bounds."
            ),
            Caveat::DataOnly => "Only the direction of the data was captured: RTT, windows, bytes \
                                 in flight and what was received are unknown."
                .to_owned(),
            Caveat::AcknowledgementsOnly => "Only the acknowledgements were captured: \
                                             retransmissions and what the sender waited for are \
                                             unknown."
                .to_owned(),
            Caveat::MirrorCopies { packets } => format!(
                "{packets} packets were captured twice, as a mirror port delivers them; the \
                 copies are left out."
            ),
            Caveat::ClockSteps { steps, largest_s } => format!(
                "The capture's clock was stepped {} by {} s{}; later times are shifted to continue.",
                if *largest_s < 0.0 { "back" } else { "forward" },
                units::significant(largest_s.abs(), 3),
                if *steps > 1 { format!(" at most, {steps} times") } else { String::new() },
            ),
            Caveat::TruncatedHeaders { packets } => format!(
                "{packets} packets were captured without their whole TCP header: capture with \
                 a larger snaplen (-s 128)."
            ),
            Caveat::OmittedSeconds { seconds, retransmits } => {
                let seconds = units::significant(*seconds, 3);
                match retransmits {
                    Some(0) => format!(
                        "The first {seconds} s are omitted from the figures (-O); nothing was \
                         retransmitted in them."
                    ),
                    Some(count) => format!(
                        "The first {seconds} s are omitted from the figures (-O); {count} \
                         segments were retransmitted in them."
                    ),
                    None => format!(
                        "The first {seconds} s are omitted from the figures (-O), with their \
                         retransmissions."
                    ),
                }
            }
            Caveat::SparseSamples { interval_s } => format!(
                "Samples are {} s apart: losses and changes between two of them are not told \
                 apart.",
                units::significant(*interval_s, 2)
            ),
            Caveat::WithinOneRoundTrip => {
                "The transfer took no longer than one round trip: it has no steady rate.".to_owned()
            }
        }
    }
}
