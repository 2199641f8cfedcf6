//! Packets and bytes per interval, of as many curves as there are filters. How many intervals there
//! are is bounded: where there would be more, ten of them become one.

use report::terminal::IoBin;
use std::time::Duration;

/// Most intervals.
const MAX_BINS: usize = 1 << 16;

/// The interval that the others are multiples of, and how many there are at most, where none was
/// asked for.
const FINEST_NS: u64 = 1_000_000;
const MAX_DRAWN: usize = 200;

pub(crate) struct Bins {
    width_ns: u64,
    /// The requested interval.
    asked: Option<Duration>,
    start_ns: Option<u64>,
    curves: Vec<Vec<IoBin>>,
    /// Intervals up to the last packet.
    length: usize,
}

impl Bins {
    pub(crate) fn new(curves: usize, interval: Option<Duration>) -> Self {
        let asked = interval.and_then(|it| u64::try_from(it.as_nanos()).ok());
        Bins {
            width_ns: asked.unwrap_or(FINEST_NS).max(1),
            asked: interval,
            start_ns: None,
            curves: vec![Vec::new(); curves],
            length: 0,
        }
    }

    /// The interval of a packet. One that is earlier than the first packet is in the first.
    pub(crate) fn at(&mut self, time_ns: u64) -> usize {
        let since = time_ns.saturating_sub(*self.start_ns.get_or_insert(time_ns));
        while since / self.width_ns >= MAX_BINS as u64 {
            self.join(10);
        }
        // Below the bound.
        let bin = (since / self.width_ns) as usize;
        self.length = self.length.max(bin + 1);
        bin
    }

    pub(crate) fn count(&mut self, curve: usize, bin: usize, bytes: u32) {
        let Some(bins) = self.curves.get_mut(curve) else { return };
        if bins.len() <= bin {
            bins.resize(bin + 1, IoBin::default());
        }
        if let Some(bin) = bins.get_mut(bin) {
            bin.packets += 1;
            bin.bytes += u64::from(bytes);
        }
    }

    /// Makes one interval of `count`.
    fn join(&mut self, count: usize) {
        self.width_ns = self.width_ns.saturating_mul(count as u64);
        self.length = self.length.div_ceil(count);
        for bins in &mut self.curves {
            let joined = bins.chunks(count).map(|part| {
                let add = |a: IoBin, b: &IoBin| IoBin {
                    packets: a.packets + b.packets,
                    bytes: a.bytes + b.bytes,
                };
                part.iter().fold(IoBin::default(), add)
            });
            *bins = joined.collect();
        }
    }

    /// Chooses a round interval where none was asked for, and makes curves equally long; what to
    /// say of an interval that was too short.
    pub(crate) fn finish(&mut self) -> Option<String> {
        if self.asked.is_none() {
            let mut rounds = (0..6).flat_map(|power| [1, 2, 5].map(|it| it * 10_usize.pow(power)));
            let factor = rounds.find(|it| self.length.div_ceil(*it) <= MAX_DRAWN);
            self.join(factor.unwrap_or(1));
        }
        let length = self.length;
        self.curves.iter_mut().for_each(|bins| bins.resize(length, IoBin::default()));
        let asked = self.asked.filter(|it| it.as_nanos() != u128::from(self.width_ns))?;
        Some(format!(
            "Intervals of {} s instead of {} s: there are at most {MAX_BINS}.",
            self.interval_s(),
            asked.as_secs_f64()
        ))
    }

    pub(crate) fn curves(&self) -> impl Iterator<Item = &[IoBin]> {
        self.curves.iter().map(Vec::as_slice)
    }

    pub(crate) fn interval_s(&self) -> f64 {
        self.width_ns as f64 / 1e9
    }

    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(bins: &Bins) -> Vec<u64> {
        bins.curves().next().unwrap().iter().map(|bin| bin.packets).collect()
    }

    #[test]
    fn packets_are_in_their_interval() {
        let mut bins = Bins::new(1, Some(Duration::from_millis(100)));
        for time_ms in [1000, 1099, 1100, 900, 1350] {
            let bin = bins.at(time_ms * 1_000_000);
            bins.count(0, bin, 10);
        }
        assert_eq!(bins.finish(), None);
        assert_eq!(packets(&bins), [3, 1, 0, 1]);
    }

    /// However far apart packets are, none is lost, and there are few intervals.
    #[test]
    fn intervals_are_bounded() {
        for interval in [None, Some(Duration::from_nanos(1))] {
            let mut bins = Bins::new(2, interval);
            for time_ns in [0, 5, 1_000_000, 86_400_000_000_000, u64::MAX] {
                let bin = bins.at(time_ns);
                bins.count(0, bin, 1);
            }
            assert_eq!(bins.finish().is_some(), interval.is_some());
            assert_eq!(packets(&bins).iter().sum::<u64>(), 5);
            let most = if interval.is_some() { MAX_BINS } else { MAX_DRAWN };
            assert!(bins.curves().all(|bins| bins.len() <= most && !bins.is_empty()));
        }
    }
}
