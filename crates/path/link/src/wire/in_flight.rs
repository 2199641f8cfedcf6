//! Packets on the wire, in order of release: 32 bytes for what is released together, beside
//! what the packets of a train have in common.

use crate::packet_fate::Packet;
use crate::{Delivery, Train, WindowFeedback};
use std::collections::VecDeque;
use units::Nanos;

/// The deliveries to come.
#[derive(Debug)]
pub(super) struct InFlight<P> {
    runs: VecDeque<Run>,
    trains: VecDeque<Shared<P>>,
    /// Number of the first of `trains`; they are numbered modulo 2^32.
    first: u32,
    /// Bits to flip, by the number of the train.
    flips: Vec<(u32, u64)>,
}

/// Packets of one train that are released together.
#[derive(Debug)]
struct Run {
    due: Nanos,
    /// See [`Delivery::sent_bytes`].
    sent_bytes: u64,
    start: u32,
    end: u32,
    /// How long before `due` the first of them reached the far end.
    spread_ns: u32,
    /// The number of what they have in common.
    train: u32,
}

/// What packets of a train have in common.
#[derive(Debug)]
struct Shared<P> {
    /// `None` once the last of its runs is released.
    payload: Option<P>,
    train: Train,
    busy_period: u64,
    runs: u32,
    marked: bool,
    feedback: WindowFeedback,
}

/// The last delivery, of which a packet may become a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) end: u32,
    pub(super) first_due: Nanos,
    pub(super) due: Nanos,
    pub(super) marked: bool,
    pub(super) feedback: WindowFeedback,
}

/// Where and when a packet reaches the far end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) due: Nanos,
    pub(super) flip: Option<u64>,
    pub(super) busy_period: u64,
    pub(super) sent_bytes: u64,
}

impl<P: Clone> InFlight<P> {
    pub(super) const fn new() -> Self {
        InFlight { runs: VecDeque::new(), trains: VecDeque::new(), first: 0, flips: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// When the first delivery is due.
    pub(super) fn front_due(&self) -> Option<Nanos> {
        self.runs.front().map(|run| run.due)
    }

    /// When the last delivery is due.
    pub(super) fn back_due(&self) -> Option<Nanos> {
        self.runs.back().map(|run| run.due)
    }

    /// The last delivery.
    pub(super) fn newest(&self) -> Option<Newest> {
        let run = self.runs.back()?;
        let shared = self.trains.get(run.train.wrapping_sub(self.first) as usize)?;
        let first_due = Nanos(run.due.0 - u64::from(run.spread_ns));
        let &Shared { marked, feedback, .. } = shared;
        Some(Newest { end: run.end, first_due, due: run.due, marked, feedback })
    }

    /// The next packet of the last delivery's train is released with it.
    pub(super) fn extend(&mut self, due: Nanos, sent_bytes: u64) {
        if let Some(run) = self.runs.back_mut() {
            let spread_ns = u64::from(run.spread_ns) + due.nanos_since(run.due);
            run.spread_ns = u32::try_from(spread_ns).unwrap_or(u32::MAX);
            run.end += 1;
            run.due = due;
            run.sent_bytes = sent_bytes;
        }
    }

    /// Adds a delivery of one packet, after all that are due at the same time or earlier.
    /// `follows`: the last delivery is of the same train and has no bit to flip.
    pub(super) fn insert(&mut self, packet: Packet<P>, arrival: &Arrival, follows: bool) {
        let Packet { payload, train, index, marked, feedback, .. } = packet;
        let &Arrival { due, flip, busy_period, sent_bytes } = arrival;
        let shares = |shared: &&mut Shared<P>| {
            follows
                && flip.is_none()
                && shared.payload.is_some()
                && shared.marked == marked
                && shared.feedback == feedback
                && shared.busy_period == busy_period
        };
        if let Some(shared) = self.trains.back_mut().filter(shares) {
            shared.runs += 1;
        } else {
            let payload = Some(payload);
            let shared = Shared { payload, train, busy_period, runs: 1, marked, feedback };
            push(&mut self.trains, shared);
        }
        let number = self.first.wrapping_add(self.trains.len() as u32 - 1);
        self.flips.extend(flip.map(|bit| (number, bit)));
        let run =
            Run { due, sent_bytes, start: index, end: index + 1, spread_ns: 0, train: number };
        if self.back_due().is_none_or(|last| last <= due) {
            push(&mut self.runs, run);
        } else {
            let before = self.runs.partition_point(|other| other.due <= due);
            self.runs.insert(before, run);
        }
    }

    /// Removes the first delivery.
    pub(super) fn pop(&mut self) -> Option<Delivery<P>> {
        let run = self.runs.pop_front()?;
        let shared = self.trains.get_mut(run.train.wrapping_sub(self.first) as usize)?;
        shared.runs -= 1;
        // The last one gets the handle itself instead of a clone.
        let payload =
            if shared.runs == 0 { shared.payload.take() } else { shared.payload.clone() }?;
        let &mut Shared { train, marked, feedback, busy_period, .. } = shared;
        let flip = self.take_flip(run.train);
        while self.trains.front().is_some_and(|shared| shared.payload.is_none()) {
            self.trains.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Some(Delivery {
            payload,
            train,
            packets: run.start..run.end,
            first_due: Nanos(run.due.0 - u64::from(run.spread_ns)),
            due: run.due,
            marked,
            feedback,
            flip,
            busy_period,
            sent_bytes: run.sent_bytes,
        })
    }

    /// The bit to flip of the only packet with that number.
    fn take_flip(&mut self, train: u32) -> Option<u64> {
        let at = self.flips.iter().position(|(number, _)| *number == train)?;
        Some(self.flips.swap_remove(at).1)
    }
}

/// Appends to a queue that has at most an eighth of its room unused, where doubling it would
/// leave half.
fn push<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(queue.len() / 8 + 32);
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_small() {
        assert_eq!(size_of::<Run>(), 32);
        // With the twin's handle of 48 bytes; at least two packets are a train of a bulk flow.
        assert!(size_of::<Shared<[u64; 6]>>() <= 104, "{}", size_of::<Shared<[u64; 6]>>());
        assert_eq!(size_of::<Train>(), 28);
    }
}
