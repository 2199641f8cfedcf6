//! Steps of the clock that stamps the packets.
//!
//! A step shows in a direction whose time goes one way and whose own numbers another. Timestamps
//! (RFC 7323) are a clock of the host's: where they go on as before while the capture's time jumps,
//! the capture's clock was set. Without them, a direction whose time goes back while its data or
//! ACKs advance shows the same; packets that were only stored out of order have older numbers.

use crate::sequence::after;
use capture::dissect::TcpSegment;

/// The least step back, and forward, that is looked for, in ns.
const MIN_BACK_NS: i64 = 10_000_000;
const MIN_FORWARD_NS: i64 = 100_000_000;

/// Packets within this time before and behind a jump are compared, in ns.
const NEAR_NS: i64 = 1_000_000_000;

/// Steps that are bridged at most.
const MAX_STEPS: usize = 1000;

/// The tick of timestamps that is assumed, in ns, and the time over which it is measured.
const TICK_NS: f64 = 1e6;
const MEASURED_NS: i64 = 200_000_000;

/// A step, from a packet on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) packet: u64,
    /// By how much the clock was set, in ns; negative: back.
    pub(super) by_ns: i64,
    /// What is added to the times from here on, with the steps before, in ns.
    pub(super) shift_ns: i64,
}

/// A direction of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    /// Jumps of the capture before its last packet.
    jumps: u32,
    packets: u32,
    last_ns: u64,
    end: u32,
    ack: u32,
    value: u32,
    /// Where its timestamps are measured from.
    first: Option<(u32, u64)>,
}

/// A jump that may be a step.
#[derive(Debug, Clone)]
struct Jump {
    packet: u64,
    before_ns: u64,
    at_ns: u64,
    /// By how much to shift, as each direction shows it.
    shifts_ns: Vec<i64>,
    is_refuted: bool,
}

/// Looks for steps.
#[derive(Debug, Default)]
pub(super) struct ClockFinder {
    last_ns: u64,
    jumps: u32,
    jump: Option<Jump>,
    halves: Vec<[Half; 2]>,
    steps: Vec<Step>,
}

/// Times since 1970 stay below 2^63 ns until 2262.
fn since(later_ns: u64, earlier_ns: u64) -> i64 {
    later_ns.wrapping_sub(earlier_ns) as i64
}

impl ClockFinder {
    #[inline]
    pub(super) fn add(&mut self, stream: u32, packet: u64, time_ns: u64, segment: &TcpSegment<'_>) {
        let passed = since(time_ns, self.last_ns);
        if self.last_ns != 0 && (passed <= -MIN_BACK_NS || passed >= MIN_FORWARD_NS) {
            self.close();
            self.jumps = self.jumps.wrapping_add(1);
            self.jump = Some(Jump {
                packet,
                before_ns: self.last_ns,
                at_ns: time_ns,
                shifts_ns: Vec::new(),
                is_refuted: false,
            });
        }
        self.last_ns = time_ns;
        let at = stream as usize;
        if self.halves.len() <= at {
            self.halves.resize(at + 1, Default::default());
        }
        let Some(halves) = self.halves.get_mut(at) else { return };
        let half = &mut halves[segment.direction.index()];
        let value = segment.options().timestamps.map_or(0, |(value, _)| value);
        if half.packets > 0
            && half.jumps.wrapping_add(1) == self.jumps
            && let Some(jump) = &mut self.jump
        {
            half.testify(jump, time_ns, value, segment);
        }
        half.follow(self.jumps, time_ns, value, segment);
    }

    fn close(&mut self) {
        let Some(mut jump) = self.jump.take() else { return };
        if jump.is_refuted || jump.shifts_ns.is_empty() || self.steps.len() >= MAX_STEPS {
            return;
        }
        jump.shifts_ns.sort_unstable();
        let middle = jump.shifts_ns.len() / 2;
        let Some(shift) = jump.shifts_ns.get(middle).copied() else { return };
        // Never before the packet before.
        let least = since(jump.before_ns, jump.at_ns);
        let shift = shift.max(least);
        let before = self.steps.last().map_or(0, |step| step.shift_ns);
        self.steps.push(Step { packet: jump.packet, by_ns: -shift, shift_ns: before + shift });
    }

    pub(super) fn finish(mut self) -> Vec<Step> {
        self.close();
        self.steps
    }
}

impl Half {
    fn follow(&mut self, jumps: u32, time_ns: u64, value: u32, segment: &TcpSegment<'_>) {
        if self.jumps != jumps || self.packets == 0 {
            self.first = (value != 0).then_some((value, time_ns));
        }
        self.first = self.first.or((value != 0).then_some((value, time_ns)));
        self.jumps = jumps;
        self.packets = self.packets.saturating_add(1);
        (self.last_ns, self.value) = (time_ns, value);
        (self.end, self.ack) = (segment.next_seq(), segment.ack);
    }

    /// The tick of its timestamps, in ns, from the last jump on.
    fn tick_ns(&self) -> f64 {
        let Some((value, first_ns)) = self.first else { return TICK_NS };
        let ticks = self.value.wrapping_sub(value) as i32;
        let passed = since(self.last_ns, first_ns);
        if ticks > 0 && passed >= MEASURED_NS { passed as f64 / f64::from(ticks) } else { TICK_NS }
    }

    /// The first packet behind a jump: what it says of it.
    fn testify(&self, jump: &mut Jump, time_ns: u64, value: u32, segment: &TcpSegment<'_>) {
        if since(jump.before_ns, self.last_ns) > NEAR_NS || since(time_ns, jump.at_ns) > NEAR_NS {
            return;
        }
        let passed = since(time_ns, self.last_ns);
        let is_back = since(jump.at_ns, jump.before_ns) < 0;
        if value == 0 || self.value == 0 {
            // What was lost or idle meanwhile looks like a step forward.
            if is_back && passed < 0 {
                let advances = after(segment.next_seq(), self.end) || after(segment.ack, self.ack);
                let is_old = after(self.end, segment.next_seq()) && after(self.ack, segment.ack);
                jump.is_refuted |= is_old;
                if advances {
                    jump.shifts_ns.push(since(jump.before_ns, jump.at_ns));
                }
            }
            return;
        }
        let ticks = value.wrapping_sub(self.value) as i32;
        let by_host = (f64::from(ticks) * self.tick_ns()) as i64;
        let is_step = if is_back {
            // Of a direction that was stored out of order, the numbers go back as well.
            passed < 0 && ticks >= 0
        } else {
            ticks >= 0 && 2 * by_host <= passed && passed - by_host >= MIN_FORWARD_NS / 2
        };
        if is_step {
            jump.shifts_ns.push(by_host - passed);
        } else if (is_back && ticks < 0) || (!is_back && passed > 0) {
            jump.is_refuted = true;
        }
    }
}
