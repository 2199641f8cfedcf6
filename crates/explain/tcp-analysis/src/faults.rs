//! What capturing added to the packets: copies by a mirror port, and steps of the clock.
//!
//! [`FaultFinder`] looks at every segment of a capture once; [`Faults`] then corrects the packets
//! for an analysis that reads them again.

mod clock;
mod copies;

use capture::dissect::{PacketDirection, TcpSegment};
use clock::{ClockFinder, Step};
use copies::CopyFinder;
use record::Caveat;

/// Streams that are looked at: the first ones, with 128 bytes each, as a capture may have millions.
const MAX_STREAMS: u32 = 1 << 18;

/// Looks for faults.
#[derive(Debug, Default)]
pub struct FaultFinder {
    copies: CopyFinder,
    clock: ClockFinder,
}

impl FaultFinder {
    /// Takes the next segment: the number of its stream and of its packet, its time, and the RTT
    /// of the connection as far as it is known, in ns.
    #[inline]
    pub fn add(
        &mut self,
        stream: u32,
        packet: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        rtt_ns: Option<u64>,
    ) {
        if stream >= MAX_STREAMS || self.copies.add(stream, packet, time_ns, segment, rtt_ns) {
            return;
        }
        self.clock.add(stream, packet, time_ns, segment);
    }

    /// Takes the next segment whose options were captured in part; the clock needs whole ones.
    #[inline]
    pub fn add_cut(
        &mut self,
        stream: u32,
        packet: u64,
        time_ns: u64,
        segment: &TcpSegment<'_>,
        rtt_ns: Option<u64>,
    ) {
        if stream < MAX_STREAMS {
            self.copies.add(stream, packet, time_ns, segment, rtt_ns);
        }
    }

    /// What was found.
    #[must_use]
    pub fn finish(self) -> Faults {
        Faults { copies: self.copies.finish(), steps: self.clock.finish() }
    }
}

/// The faults of a capture.
#[derive(Debug, Default)]
pub struct Faults {
    copies: copies::Copies,
    steps: Vec<Step>,
}

impl Faults {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty() && self.steps.is_empty()
    }

    /// The time of a packet without steps; `None` for a copy.
    #[must_use]
    #[inline]
    pub fn corrected_ns(
        &self,
        stream: u32,
        direction: PacketDirection,
        packet: u64,
        time_ns: u64,
    ) -> Option<u64> {
        if self.copies.has(stream, direction, packet) {
            return None;
        }
        // Few steps, and most captures have none.
        let before = self.steps.iter().take_while(|step| step.packet <= packet).last();
        Some(before.map_or(time_ns, |step| time_ns.saturating_add_signed(step.shift_ns)))
    }

    /// What it hides of a stream.
    #[must_use]
    pub fn caveats(&self, stream: u32) -> Vec<Caveat> {
        let packets = self.copies.count(stream);
        let copies = (packets > 0).then_some(Caveat::MirrorCopies { packets });
        copies.into_iter().chain(self.clock_caveat()).collect()
    }

    fn clock_caveat(&self) -> Option<Caveat> {
        let largest =
            self.steps.iter().map(|step| step.by_ns).max_by_key(|ns| ns.unsigned_abs())?;
        Some(Caveat::ClockSteps {
            steps: u32::try_from(self.steps.len()).unwrap_or(u32::MAX),
            largest_s: largest as f64 / 1e9,
        })
    }
}
