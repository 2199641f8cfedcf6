//! Whether losses come where a queue is full.
//!
//! A queue drops what no longer fits: the round trips just before are the longest
//! there are. A policer and chance drop at any round trip, also over a path whose
//! packets take so long to send that its round trips look queued.

use record::{Measurement, Sample, Stream};

/// Fewer spells of losses tell nothing.
const LEAST_LOSSES: usize = 6;

/// In labelled transfers full queues lost at 0.78 and above, policers at 0.5 to 0.7.
const FULL: f64 = 0.74;

/// How long round trips are where a stream begins to lose segments: the mean, over
/// those intervals, of the share of all with shorter ones. 0.5 by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RttAtLosses(f64);

impl RttAtLosses {
    /// Whether it was a full queue that dropped.
    pub(crate) fn is_longest(self) -> bool {
        self.0 >= FULL
    }
}

/// Round trips that hardly differ tell nothing: a queue may be full all the time.
fn tells(sorted: &[u32]) -> bool {
    let at = |tenths: usize| sorted.get(sorted.len() * tenths / 10).map_or(0, |us| u64::from(*us));
    let queueing = at(5).saturating_sub(at(0));
    10 * at(9).saturating_sub(at(1)) >= queueing.max(1)
}

/// Of the stream that lost most often; `None` where all lost too seldom.
pub(crate) fn rtt_at_losses(m: &Measurement, from: f64, to: f64) -> Option<RttAtLosses> {
    let all = m.streams.iter().filter_map(|stream| of(stream, from, to));
    all.max_by_key(|(losses, _)| *losses).map(|(_, rtt)| rtt)
}

fn of(stream: &Stream, from: f64, to: f64) -> Option<(usize, RttAtLosses)> {
    let samples: Vec<&Sample> =
        stream.sender.iter().filter(|s| (from..=to).contains(&s.t_s) && s.rtt_us > 0).collect();
    // The loss is told a round trip after: the longer of the two samples around its interval.
    let pairs = samples.windows(2).filter_map(|pair| match pair {
        [a, b] => Some((a.rtt_us.max(b.rtt_us), b.retransmits > a.retransmits)),
        _ => None,
    });
    let pairs: Vec<(u32, bool)> = pairs.collect();
    let mut all: Vec<u32> = pairs.iter().map(|(rtt, _)| *rtt).collect();
    all.sort_unstable();
    if !tells(&all) {
        return None;
    }
    // The first interval of each spell: what is sent again after it was lost in it.
    let mut before = false;
    let begins = |(rtt, lossy): &(u32, bool)| {
        let lost_before = std::mem::replace(&mut before, *lossy);
        (*lossy && !lost_before).then_some(*rtt)
    };
    let lossy: Vec<u32> = pairs.iter().filter_map(begins).collect();
    if lossy.len() < LEAST_LOSSES {
        return None;
    }
    let shorter = |rtt: &u32| all.partition_point(|other| other < rtt) as f64;
    let ranks: f64 = lossy.iter().map(shorter).sum();
    Some((lossy.len(), RttAtLosses(ranks / (lossy.len() * all.len()) as f64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips that grow from 10 to 20 ms and fall back, with a loss where `loses` says so.
    fn sawtooth(loses: impl Fn(usize) -> bool) -> Stream {
        let mut stream = Stream::default();
        let mut lost = 0;
        for step in 0..400usize {
            lost += u64::from(loses(step));
            stream.sender.push(Sample {
                t_s: step as f64 * 0.05,
                rtt_us: 10_000 + 500 * (step % 20) as u32,
                retransmits: lost,
                ..Sample::default()
            });
        }
        stream
    }

    #[test]
    fn a_queue_drops_at_the_longest_ones() {
        let (losses, rtt) = of(&sawtooth(|step| step % 20 == 0), 0.0, 20.0).unwrap();
        assert!(losses == 19 && rtt.is_longest(), "{losses} {rtt:?}");
    }

    #[test]
    fn a_policer_and_chance_drop_at_any() {
        let (_, rtt) = of(&sawtooth(|step| step % 13 == 0), 0.0, 20.0).unwrap();
        assert!(!rtt.is_longest(), "{rtt:?}");
    }

    #[test]
    fn few_losses_tell_nothing() {
        assert_eq!(of(&sawtooth(|step| step % 100 == 0), 0.0, 20.0), None);
        assert_eq!(of(&Stream::default(), 0.0, 20.0), None);
    }
}
