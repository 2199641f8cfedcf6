//! Loss models.

use rand_core::Rng;
use std::ops::RangeInclusive;
use std::sync::Arc;
use units::{LossRatio, Probability};

/// A loss model.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Independent loss with a constant probability.
    Bernoulli(LossRatio),
    /// Loss that depends on a state which changes at random.
    GilbertElliott(GilbertElliott),
    /// Loss of the listed packets.
    List(Arc<PacketList>),
    /// Loss of the listed data packets: of those longer than [`DATA_ABOVE`], in the order in
    /// which they leave the bottleneck. Acknowledgements, and what the queue drops, do not count,
    /// so that two senders that behave alike lose the same packets.
    DataList(Arc<PacketList>),
}

/// Longest packet that is not a data packet to [`Loss::DataList`], bytes: what every host of
/// IPv4 has to accept (RFC 791, section 3.1).
pub const DATA_ABOVE: u32 = 576;

/// The two-state model of Gilbert (1960) and Elliott (1963): a packet is lost with
/// the probability of the current state, then the state may change. The stationary
/// probability of the bad state is p / (p + r), its mean length 1 / r packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Transition probability from good to bad, per packet.
    pub p: Probability,
    /// Transition probability from bad to good, per packet.
    pub r: Probability,
    /// Loss probability in the bad state (1 - h in the literature).
    pub bad: Probability,
    /// Loss probability in the good state (1 - k in the literature).
    pub good: Probability,
}

impl GilbertElliott {
    /// The mean number of packets lost in one stay in the bad state: about 1 or less is as
    /// good as independent loss.
    #[must_use]
    pub fn losses_per_cluster(&self) -> f64 {
        self.bad.fraction() / self.r.fraction().max(f64::MIN_POSITIVE)
    }
}

/// A set of packet numbers: the first packet that arrives at a link is 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketList(Vec<RangeInclusive<u64>>);

impl PacketList {
    /// Whether it contains packet `number`.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let after = self.0.partition_point(|range| *range.start() <= number);
        after.checked_sub(1).is_some_and(|last| self.0[last].contains(&number))
    }

    /// Number of packets in it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(|range| range.end() - range.start() + 1).sum()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<RangeInclusive<u64>> for PacketList {
    fn from_iter<I: IntoIterator<Item = RangeInclusive<u64>>>(ranges: I) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_by_key(|range| *range.start());
        let mut apart: Vec<RangeInclusive<u64>> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => apart.push(range),
            }
        }
        PacketList(apart)
    }
}

/// State of a loss model.
#[derive(Debug)]
pub(crate) struct LossState {
    pub(crate) model: Loss,
    bad: bool,
    /// Data packets so far.
    data: u64,
}

/// The result of a draw, and its probability.
pub(crate) struct Draw {
    pub(crate) lost: bool,
    pub(crate) probability: f64,
}

impl Draw {
    fn certain(lost: bool) -> Self {
        Draw { lost, probability: f64::from(u8::from(lost)) }
    }
}

impl LossState {
    pub(crate) fn new(model: Loss) -> Self {
        LossState { model, bad: false, data: 0 }
    }

    /// Decides whether packet `number`, of `size` bytes, is lost.
    pub(crate) fn draw(&mut self, number: u64, size: u32, rng: &mut impl Rng) -> Draw {
        match &self.model {
            Loss::None => Draw { lost: false, probability: 0.0 },
            Loss::Bernoulli(ratio) => {
                Draw { lost: ratio.takes(rng.next_u64()), probability: ratio.fraction() }
            }
            Loss::GilbertElliott(model) => {
                let share = if self.bad { model.bad } else { model.good };
                let lost = share.takes(rng.next_u64());
                let change = if self.bad { model.r } else { model.p };
                self.bad ^= change.takes(rng.next_u64());
                Draw { lost, probability: share.fraction() }
            }
            Loss::List(list) => Draw::certain(list.contains(number)),
            Loss::DataList(list) => {
                let is_data = size > DATA_ABOVE;
                self.data += u64::from(is_data);
                Draw::certain(is_data && list.contains(self.data))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_independent_of_the_order() {
        #[expect(clippy::reversed_empty_ranges, reason = "that it is empty is the point")]
        const NONE: RangeInclusive<u64> = 9..=8;
        let list: PacketList = [7..=7, 1..=3, 3..=5, NONE, 6..=6].into_iter().collect();
        assert_eq!(list.0, [1..=7]);
        assert!(!list.contains(0) && list.contains(1) && list.contains(7) && !list.contains(8));
        assert_eq!(list.len(), 7);
    }
}
