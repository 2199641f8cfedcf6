//! Figures of a span of time, from the samples of all streams.

use super::Level;
use crate::curve::Curve;
use model::statistics;
use record::{Measurement, ReceiverSample, Sample, Stream};
use units::{BitRate, ByteCount, Rtt};

/// Delivered bytes over time: by the senders' samples, else by the receivers'.
pub(crate) fn arrived(m: &Measurement) -> Vec<Curve> {
    m.streams
        .iter()
        .map(|stream| {
            let delivered = sender_curve(stream, |s| s.delivered_bytes.max(s.acked_bytes));
            if delivered.end().is_some() { delivered } else { receiver_curve(stream) }
        })
        .collect()
}

fn sender_curve(stream: &Stream, read: impl Fn(&Sample) -> u64) -> Curve {
    Curve::new(stream.sender.iter().map(|s| (s.t_s, read(s))))
}

fn receiver_curve(stream: &Stream) -> Curve {
    Curve::new(stream.receiver.iter().map(|s| (s.t_s, s.received_bytes)))
}

/// Payload rate over the steady part, in order: as the receiver read it, else as it
/// was acknowledged.
///
/// If the part begins during a recovery, bytes that arrived before it are read within
/// it; they are subtracted, or the goodput would exceed the link rate. Of a receiver alone they
/// are known by its segments.
pub(super) fn goodput(m: &Measurement, from: f64, to: f64) -> Option<BitRate> {
    let mut bytes_a_second = 0.0;
    for stream in &m.streams {
        let received = receiver_curve(stream);
        let acked = sender_curve(stream, |s| s.acked_bytes);
        let delivered = sender_curve(stream, |s| s.delivered_bytes.max(s.acked_bytes));
        let in_order = received.slope(from, to).or_else(|| acked.slope(from, to))?;
        let arrived = segments_curve(stream);
        let hole = |t| match delivered.end() {
            Some(_) => delivered.at(t) - acked.at(t),
            None if arrived.end().is_some() => arrived.at(t) - received.at(t),
            None => 0.0,
        };
        let early = ((hole(from) - hole(to)) / (to - from)).max(0.0);
        bytes_a_second += (in_order - early).max(0.0);
    }
    (!m.streams.is_empty()).then(|| BitRate::from_bps_f64(bytes_a_second * 8.0))
}

/// Bytes of the segments that a receiver got, in order or not. Empty where it does not count
/// segments, or got none out of order: segments of an interface without losses may have any size.
fn segments_curve(stream: &Stream) -> Curve {
    let counted = |s: &ReceiverSample| {
        let (segments, early) = (f64::from(s.segments?), f64::from(s.out_of_order?));
        Some((s.t_s, segments, early, s.received_bytes as f64))
    };
    let all: Vec<_> = stream.receiver.iter().filter_map(counted).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Curve::default() };
    let size = (last.3 - first.3) / (last.1 - first.1);
    if !(size.is_finite() && size > 0.0 && last.2 > first.2) {
        return Curve::default();
    }
    // What is early is at most what came out of order.
    let arrived = |(t_s, segments, early, in_order): &(f64, f64, f64, f64)| {
        let bytes = first.3 + (segments - first.1) * size;
        (*t_s, bytes.clamp(*in_order, in_order + (early - first.2).max(0.0) * size) as u64)
    };
    Curve::new(all.iter().map(arrived))
}

pub(super) fn average(m: &Measurement) -> BitRate {
    let bytes: f64 = m.streams.iter().map(|stream| stream.received_bytes as f64).sum();
    let seconds = m.seconds();
    if seconds > 0.0 { BitRate::from_bps_f64(bytes * 8.0 / seconds) } else { BitRate::ZERO }
}

pub(super) fn length(m: &Measurement) -> f64 {
    let seconds = m.seconds();
    if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }
}

/// The shortest credible RTT estimate of a receiver, in µs. Its estimate of 1 µs is the
/// kernel's floor and no measurement; TCP over loopback takes about 10 µs.
const MIN_RECEIVER_RTT_US: u32 = 5;

pub(crate) fn min_rtt(m: &Measurement) -> Option<Rtt> {
    let sent = m.streams.iter().flat_map(|stream| &stream.sender).filter_map(|s| s.min_rtt_us);
    let received =
        m.streams.iter().flat_map(|stream| &stream.receiver).filter_map(|s| s.min_rtt_us);
    // A receiver samples few RTTs: they count only if the sender has none.
    let sent = sent.filter(|us| *us > 0).min();
    let least = sent.or_else(|| received.filter(|us| *us >= MIN_RECEIVER_RTT_US).min());
    least.map(|us| Rtt::from_micros(u64::from(us)))
}

pub(super) fn peak_rtt(m: &Measurement) -> Option<Rtt> {
    let samples = m.streams.iter().flat_map(|stream| &stream.sender);
    samples.map(|s| s.rtt_us).max().map(|us| Rtt::from_micros(u64::from(us)))
}

/// The kernel's counters, or the application's if there are no samples.
pub(super) fn retransmits(m: &Measurement) -> u64 {
    m.streams
        .iter()
        .map(|stream| {
            let sampled = stream.sender.last().map_or(0, |s| s.retransmits);
            sampled.max(stream.retransmits.unwrap_or(0))
        })
        .fold(0, u64::saturating_add)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    statistics::median(&values.collect::<Vec<f64>>())
}

/// The mean of values with weights; `None` without any.
fn weighted_mean(values: &[(f64, f64)]) -> Option<f64> {
    let (sum, all) = values.iter().fold((0.0, 0.0), |(sum, all), (v, w)| (sum + v * w, all + w));
    (all > 0.0).then(|| sum / all)
}

/// A mean that differs from the median by no more than this share is of noise.
const NOISE: f64 = 0.05;

/// The median of values with weights, or the mean where they vary: bytes in flight follow a window
/// that closes and opens.
fn typical(values: &[(f64, f64)]) -> Option<f64> {
    let (median, mean) = (statistics::weighted_median(values)?, weighted_mean(values)?);
    Some(if (mean - median).abs() <= NOISE * median { median } else { mean })
}

/// The samples of a span of time.
pub(super) struct Window<'a> {
    pub(super) m: &'a Measurement,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Window<'_> {
    fn within<'s>(&self, stream: &'s Stream) -> impl Iterator<Item = &'s Sample> + use<'s> {
        let (from, to) = (self.from, self.to);
        stream.sender.iter().filter(move |s| (from..=to).contains(&s.t_s))
    }

    fn all(&self) -> impl Iterator<Item = &Sample> {
        self.m.streams.iter().flat_map(|stream| self.within(stream))
    }

    /// A figure of a stream's samples, each with the time since the sample before: they are close
    /// at the start of a test, and would count ten times there.
    fn weighted(&self, stream: &Stream, read: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
        let first = stream.sender.first().map(|first| (None, first));
        let later = stream.sender.windows(2).filter_map(|pair| Some((pair.first(), pair.get(1)?)));
        let inside = |(_, s): &(Option<&Sample>, &Sample)| (self.from..=self.to).contains(&s.t_s);
        let figure = |(before, s): (Option<&Sample>, &Sample)| {
            // The first one, and one at the time of another, count for a moment.
            let since = before.map_or(0.0, |before| s.t_s - before.t_s.max(self.from));
            Some((read(s)?, since.max(1e-9)))
        };
        first.into_iter().chain(later).filter(inside).filter_map(figure).collect()
    }

    /// The median over the time of every stream.
    pub(super) fn median(&self, read: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let streams = self.m.streams.iter().flat_map(|stream| self.weighted(stream, &read));
        statistics::weighted_median(&streams.collect::<Vec<(f64, f64)>>())
    }

    /// The mean over the time of every stream.
    pub(super) fn mean(&self, read: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let streams = self.m.streams.iter().flat_map(|s| self.weighted(s, &read));
        weighted_mean(&streams.collect::<Vec<(f64, f64)>>())
    }

    /// The mean RTT of the bytes that were delivered.
    pub(super) fn mean_rtt(&self) -> Option<Rtt> {
        let delivered = |s: &Sample| s.delivered_bytes.max(s.acked_bytes);
        let one = |stream| {
            let samples: Vec<&Sample> = self.within(stream).filter(|s| s.rtt_us > 0).collect();
            let pairs = samples.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)));
            let weigh = |(before, s): (&Sample, &Sample)| {
                (f64::from(s.rtt_us), delivered(s).saturating_sub(delivered(before)) as f64)
            };
            pairs.map(weigh).collect::<Vec<(f64, f64)>>()
        };
        let all: Vec<(f64, f64)> = self.m.streams.iter().flat_map(one).collect();
        weighted_mean(&all).map(|us| Rtt::from_micros(us as u64))
    }

    /// The sum over streams of each one's median; `None` if a stream has no value.
    pub(super) fn sum(&self, read: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let one = |stream| {
            let values = self.weighted(stream, |s| read(s).map(|value| value as f64));
            statistics::weighted_median(&values)
        };
        let medians: Option<Vec<f64>> = self.m.streams.iter().map(one).collect();
        medians.filter(|medians| !medians.is_empty()).map(|medians| medians.iter().sum())
    }

    pub(super) fn growth(&self, read: impl Fn(&Sample) -> u64) -> f64 {
        let each = self.m.streams.iter().map(|stream| {
            let curve = sender_curve(stream, &read);
            (curve.at(self.to) - curve.at(self.from)).max(0.0)
        });
        each.sum()
    }

    pub(super) fn windows(&self) -> Option<Vec<ByteCount>> {
        if self.m.streams.is_empty() {
            return None;
        }
        let one = |stream: &Stream| {
            let advertised = self.weighted(stream, |s| s.peer_window_bytes.map(|w| w as f64));
            let own = stream
                .receiver
                .iter()
                .filter(|s| (self.from..=self.to).contains(&s.t_s))
                .filter_map(|s: &ReceiverSample| s.window_bytes);
            let window = typical(&advertised)
                .or_else(|| typical(&own.map(|w| (w as f64, 1.0)).collect::<Vec<_>>()));
            window.filter(|bytes| *bytes > 0.0).map(ByteCount::from_f64)
        };
        self.m.streams.iter().map(one).collect()
    }

    pub(super) fn window_floor(&self) -> Option<f64> {
        let windows: Vec<f64> =
            self.all().filter_map(|s| s.peer_window_bytes).map(|w| w as f64).collect();
        let most = windows.iter().copied().fold(0.0, f64::max);
        let low = statistics::percentile(&windows, 0.1)?;
        (most > 0.0).then(|| low / most)
    }

    pub(super) fn loss(&self) -> Option<f64> {
        let retransmitted = self.growth(|s| s.retransmits);
        let mss = self.median(|s| (s.mss_bytes > 0).then(|| f64::from(s.mss_bytes)))?;
        let sent = self.growth(|s| s.delivered_bytes.max(s.acked_bytes)) / mss + retransmitted;
        (retransmitted > 0.0 && sent > 0.0).then(|| retransmitted / sent)
    }

    pub(super) fn backlog_at_losses(&self, least: Rtt) -> Option<f64> {
        let least = least.nanos() as f64 / 1e3;
        let backlog = |s: &Sample| {
            let segments = s.cwnd_bytes as f64 / f64::from(s.mss_bytes.max(1));
            segments * (1.0 - least / f64::from(s.rtt_us.max(1))).max(0.0)
        };
        let at_losses = self.m.streams.iter().flat_map(|stream| {
            let samples: Vec<&Sample> = self.within(stream).filter(|s| s.rtt_us > 0).collect();
            let lossy = samples.windows(2).filter_map(|pair| match pair {
                // The window before the reduction; a loss is detected an RTT later.
                [a, b] if b.retransmits > a.retransmits => Some(backlog(a)),
                _ => None,
            });
            lossy.collect::<Vec<f64>>()
        });
        median(at_losses)
    }

    pub(super) fn ends(&self) -> Option<[Level; 2]> {
        let quarter = (self.to - self.from) / 4.0;
        let level = |from: f64, to: f64| {
            let part = Window { m: self.m, from, to };
            let rtts = part.all().map(|s| s.rtt_us).filter(|us| *us > 0);
            Some(Level {
                goodput: goodput(self.m, from, to)?,
                rtt: rtts.min().map(|us| Rtt::from_micros(u64::from(us))),
            })
        };
        let ends = [level(self.from, self.from + quarter), level(self.to - quarter, self.to)];
        match ends {
            [Some(first), Some(last)] => Some([first, last]),
            _ => None,
        }
    }

    pub(super) fn burst(&self) -> f64 {
        let (mut lossy, mut lost) = (0.0, 0.0);
        for stream in &self.m.streams {
            let counts: Vec<u64> = self.within(stream).map(|s| s.retransmits).collect();
            for pair in counts.windows(2) {
                if let [before, after] = pair
                    && after > before
                {
                    lossy += 1.0;
                    lost += (after - before) as f64;
                }
            }
        }
        if lossy > 0.0 { lost / lossy } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::goodput;
    use crate::evidence::Evidence;
    use crate::example::{close, sampled, samples};
    use crate::facts::Facts;
    use record::{Measurement, ReceiverSample, Sample, Stream};
    use units::{ByteCount, Rtt};

    fn evidence(change: impl Fn(u64, &mut Sample)) -> Evidence {
        Evidence::over(&Facts::of(&sampled(samples(10.0, 10.0, change))), 0.0, 10.0)
    }

    #[test]
    fn the_mean_rtt_is_that_of_the_bytes() {
        // Nine of ten bytes wait in a queue, for half of the time.
        let e = evidence(|index, s| {
            s.delivered_bytes = 10_000 * (index / 2) + 9_000 * (index % 2);
            s.acked_bytes = s.delivered_bytes;
            s.rtt_us = if index % 2 == 1 { 60_000 } else { 20_000 };
        });
        close(e.mean_rtt.map(Rtt::millis_f64), 56.0);
        assert_eq!(evidence(|_, s| s.rtt_us = 0).mean_rtt, None);
    }

    #[test]
    fn a_receiver_that_fills_a_hole_does_not_exceed_the_line() {
        // 10 MB/s arrive all the time; of 1 s to 2 s nothing is in order before 2.1 s.
        let sample = |tick: u32| {
            let arrived = u64::from(tick) * 1_000_000;
            ReceiverSample {
                t_s: f64::from(tick) / 10.0,
                received_bytes: if (10..21).contains(&tick) { 10_000_000 } else { arrived },
                segments: Some(7 + tick * 1000),
                out_of_order: Some(3 + 1000 * (tick.clamp(10, 20) - 10)),
                ..ReceiverSample::default()
            }
        };
        let mut receiver: Vec<_> = (0..=100).map(sample).collect();
        let measured = |receiver: &[ReceiverSample]| {
            let stream = Stream { receiver: receiver.to_vec(), ..Stream::default() };
            let measurement = Measurement { streams: vec![stream], ..Measurement::default() };
            goodput(&measurement, 2.0, 10.0).unwrap().as_f64() / 8e6
        };
        close(Some(measured(&receiver)), 10.0);
        // Without any out of order, segments of other sizes say nothing.
        let mut smaller = receiver.clone();
        for sample in &mut smaller {
            (sample.segments, sample.out_of_order) =
                (Some((sample.t_s * 100.0).sqrt() as u32), Some(3));
            sample.received_bytes = (sample.t_s * 1e7) as u64;
        }
        close(Some(measured(&smaller)), 10.0);
        // Without counts, a jump and a burst look the same.
        receiver.iter_mut().for_each(|sample| sample.segments = None);
        assert!(measured(&receiver) > 11.0);
    }

    #[test]
    fn a_window_that_closes_and_opens_is_its_mean() {
        let window = |change: &dyn Fn(u64) -> u64| {
            let e = evidence(|index, s| s.peer_window_bytes = Some(change(index)));
            e.window_sum().map(ByteCount::as_f64)
        };
        close(window(&|index| if index % 3 == 0 { 10_000 } else { 100_000 }), 70_000.0);
        assert_eq!(window(&|index| 65_535 - index % 3 / 2), Some(65_535.0), "noise");
    }
}
