//! What the samples say of the steady part, gathered once.

use crate::{
    bucket::{self, AtLosses},
    curve::{Curve, median, quantile},
    overflow::{self, RttAtLosses},
    steady,
};
use record::{Measurement, ReceiverSample, Sample, Steady, Stream};
use units::{BitRate, ByteCount, Rtt};

/// Facts over the steady part; a fact that could not be had is `None`.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) steady: Steady,
    /// The steady part began too late to speak for the test.
    pub(crate) late: bool,
    /// Coefficient of variation of the smoothed rate.
    pub(crate) variation: Option<f64>,
    /// Payload received over the steady part.
    pub(crate) goodput: BitRate,
    /// Payload received over the whole test.
    pub(crate) average: BitRate,
    pub(crate) streams: usize,
    pub(crate) min_rtt: Option<Rtt>,
    pub(crate) loaded_rtt: Option<Rtt>,
    pub(crate) mss: Option<ByteCount>,
    /// Each stream's median window, as announced to the sender or, where the
    /// sender does not tell, as the receiver says.
    pub(crate) windows: Option<Vec<ByteCount>>,
    /// How low the announced window fell: its 10th percentile over its most.
    pub(crate) window_floor: Option<f64>,
    /// Bytes in the send buffers, in flight or waiting: the mean over time, of all streams.
    pub(crate) held: Option<ByteCount>,
    /// Congestion windows over all streams.
    pub(crate) cwnd: Option<ByteCount>,
    /// Median of in flight over congestion window.
    pub(crate) cwnd_filled: Option<f64>,
    /// Congestion windows at the end over those halfway.
    pub(crate) cwnd_growth: Option<f64>,
    /// Share of samples whose delivery rate was held by the program.
    pub(crate) app_limited: f64,
    /// Median of bytes written and not sent.
    pub(crate) unsent: Option<f64>,
    /// Delivery rate while the program had data, over all streams.
    pub(crate) delivery: Option<BitRate>,
    /// Pacing rate over all streams.
    pub(crate) pacing: Option<BitRate>,
    /// The most that the programs let the pacing rates be, over all streams.
    pub(crate) max_pacing: Option<BitRate>,
    /// Median of in flight over announced window.
    pub(crate) window_filled: Option<f64>,
    /// Announced windows at the end over those halfway.
    pub(crate) window_growth: Option<f64>,
    /// How low a policer's bucket would be where segments are lost.
    pub(crate) bucket: Option<AtLosses>,
    /// How long round trips are where segments are lost.
    pub(crate) rtt_at_losses: Option<RttAtLosses>,
    /// Segments sent again over the whole test.
    pub(crate) retransmits: u64,
    /// Most of them between two samples, over the whole test.
    pub(crate) largest_burst: u64,
    /// The longest smoothed round trip of the whole test.
    pub(crate) peak_rtt: Option<Rtt>,
    /// Segments sent again over the steady part.
    pub(crate) steady_retransmits: f64,
    /// The same over the segments sent in it.
    pub(crate) loss: Option<f64>,
    /// Segments sent again for each pair of samples with any: how they come in bursts.
    pub(crate) burst: f64,
    /// Variance over mean of how many are sent again between two samples, of the
    /// stream with most of them: 1 by chance.
    pub(crate) dispersion: f64,
}

impl Evidence {
    pub(crate) fn gather(m: &Measurement) -> Self {
        let min_rtt = min_rtt(m);
        let part = steady::find(&arrived(m), m.spec.seconds, min_rtt.map(Rtt::secs_f64));
        let average = average(m);
        let (from, to) = part.map_or((0.0, length(m)), |part| (part.from, part.to));
        let window = Window { m, from, to };
        Evidence {
            steady: Steady { from_s: from, to_s: to },
            late: part.is_some_and(|part| part.late),
            variation: part.and_then(|part| part.variation),
            goodput: goodput(m, from, to).unwrap_or(average),
            average,
            streams: m.streams.len(),
            min_rtt,
            loaded_rtt: window
                .median(|s| (s.rtt_us > 0).then(|| f64::from(s.rtt_us)))
                .map(|us| Rtt::from_micros(us as u64)),
            mss: window
                .median(|s| (s.mss_bytes > 0).then(|| f64::from(s.mss_bytes)))
                .map(ByteCount::from_f64),
            windows: window.windows(),
            window_floor: window.window_floor(),
            // The mean: a full buffer empties and fills in steps of a whole write.
            held: window
                .mean(|s| s.written_bytes.saturating_sub(s.acked_bytes) as f64)
                .map(|each| ByteCount::from_f64(each * m.streams.len() as f64)),
            cwnd: window.sum(|s| Some(s.cwnd_bytes)).map(ByteCount::from_f64),
            cwnd_filled: window.median(|s| {
                (s.cwnd_bytes > 0).then(|| s.in_flight_bytes as f64 / s.cwnd_bytes as f64)
            }),
            cwnd_growth: growth(m, to, |s| Some(s.cwnd_bytes)),
            app_limited: window
                .mean(|s| f64::from(u8::from(s.delivery_app_limited)))
                .unwrap_or_default(),
            unsent: window.median(|s| Some(s.unsent_bytes as f64)),
            delivery: window
                .sum(|s| (!s.delivery_app_limited).then_some(s.delivery_rate_bps))
                .map(BitRate::from_bps_f64),
            pacing: window.sum(|s| s.pacing_rate_bps).map(BitRate::from_bps_f64),
            max_pacing: window.sum(|s| s.max_pacing_rate_bps).map(BitRate::from_bps_f64),
            window_filled: window.median(|s| {
                let window = s.peer_window_bytes.filter(|window| *window > 0)?;
                Some(s.in_flight_bytes as f64 / window as f64)
            }),
            window_growth: growth(m, to, |s| s.peer_window_bytes),
            // What slow start overshot by is lost at no level in particular.
            bucket: bucket::at_losses(m, from.max(to * steady::SETTLING), to),
            rtt_at_losses: overflow::rtt_at_losses(m, from.max(to * steady::SETTLING), to),
            retransmits: retransmits(m),
            largest_burst: largest_burst(m),
            peak_rtt: peak_rtt(m),
            steady_retransmits: window.growth(|s| s.retransmits),
            loss: window.loss(),
            burst: window.burst(),
            dispersion: window.dispersion(),
        }
    }

    /// Whether the rate hardly changes from one second to the next.
    pub(crate) fn is_flat(&self) -> bool {
        // A full bottleneck measures 1 to 3 %, CUBIC's sawtooth without a
        // queue 10 to 20 %, random loss more.
        self.variation.is_some_and(|variation| variation <= 0.1)
    }

    /// What queues add to the least round trip.
    pub(crate) fn queueing(&self) -> Option<Rtt> {
        let (least, loaded) = (self.min_rtt?, self.loaded_rtt?);
        Some(Rtt::from_nanos(loaded.nanos().saturating_sub(least.nanos())))
    }

    /// Whether a queue stands: 15 % on top of the least round trip and more
    /// than the kernel's own hesitation, or 5 ms whatever the path.
    pub(crate) fn has_standing_queue(&self) -> bool {
        self.min_rtt.zip(self.queueing()).is_some_and(|(least, queueing)| {
            let (least, queueing) = (least.millis_f64(), queueing.millis_f64());
            queueing > 5.0 || (queueing > 0.15 * least && queueing > 0.2)
        })
    }

    /// Whether a queue stands that loses, if anything is lost, what no longer fits.
    pub(crate) fn has_filling_queue(&self) -> bool {
        self.has_standing_queue() && self.rtt_at_losses.is_none_or(RttAtLosses::is_longest)
    }

    /// The streams' windows together.
    pub(crate) fn window_sum(&self) -> Option<ByteCount> {
        let windows = self.windows.as_ref()?;
        Some(windows.iter().fold(ByteCount::ZERO, |sum, window| sum.plus(*window)))
    }

    /// One stream's part of the goodput.
    pub(crate) fn per_stream(&self) -> BitRate {
        self.goodput.scaled(1.0 / self.streams.max(1) as f64)
    }
}

/// What arrived by time: as the senders know it, else as the receivers read it.
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

/// Payload a second over the steady part, in order: as the receiver read it,
/// else as it was acknowledged.
///
/// Where the part begins amid a recovery, bytes that arrived before it are
/// read within it; they are taken off again, or the goodput would exceed the
/// link.
fn goodput(m: &Measurement, from: f64, to: f64) -> Option<BitRate> {
    let mut bytes_a_second = 0.0;
    for stream in &m.streams {
        let received = receiver_curve(stream);
        let acked = sender_curve(stream, |s| s.acked_bytes);
        let delivered = sender_curve(stream, |s| s.delivered_bytes.max(s.acked_bytes));
        let in_order = received.slope(from, to).or_else(|| acked.slope(from, to))?;
        let hole = |t| delivered.at(t) - acked.at(t);
        let early = ((hole(from) - hole(to)) / (to - from)).max(0.0);
        bytes_a_second += (in_order - early).max(0.0);
    }
    (!m.streams.is_empty()).then(|| BitRate::from_bps_f64(bytes_a_second * 8.0))
}

fn average(m: &Measurement) -> BitRate {
    let bytes: f64 = m.streams.iter().map(|stream| stream.received_bytes as f64).sum();
    let seconds = m.seconds();
    if seconds > 0.0 { BitRate::from_bps_f64(bytes * 8.0 / seconds) } else { BitRate::ZERO }
}

fn length(m: &Measurement) -> f64 {
    let seconds = m.seconds();
    if seconds.is_finite() { seconds.max(0.0) } else { 0.0 }
}

fn min_rtt(m: &Measurement) -> Option<Rtt> {
    let sent = m.streams.iter().flat_map(|stream| &stream.sender).filter_map(|s| s.min_rtt_us);
    let came = m.streams.iter().flat_map(|stream| &stream.receiver).filter_map(|s| s.min_rtt_us);
    // A receiver has seen few round trips: they count where there are no others.
    let least = |all: &mut dyn Iterator<Item = u32>| all.filter(|us| *us > 0).min();
    let least = least(&mut { sent }).or_else(|| least(&mut { came }));
    least.map(|us| Rtt::from_micros(u64::from(us)))
}

fn largest_burst(m: &Measurement) -> u64 {
    let samples = m.streams.iter().flat_map(|stream| stream.sender.windows(2));
    let bursts = samples.filter_map(|pair| match pair {
        [before, after] => Some(after.retransmits.saturating_sub(before.retransmits)),
        _ => None,
    });
    bursts.max().unwrap_or(0)
}

fn peak_rtt(m: &Measurement) -> Option<Rtt> {
    let samples = m.streams.iter().flat_map(|stream| &stream.sender);
    samples.map(|s| s.rtt_us).max().map(|us| Rtt::from_micros(u64::from(us)))
}

/// The kernel's counters, and the program's where no kernel told.
fn retransmits(m: &Measurement) -> u64 {
    m.streams
        .iter()
        .map(|stream| {
            let sampled = stream.sender.last().map_or(0, |s| s.retransmits);
            sampled.max(stream.retransmits.unwrap_or(0))
        })
        .fold(0, u64::saturating_add)
}

/// Over the whole test: the last tenth against the tenth around its middle.
fn growth(m: &Measurement, to: f64, read: fn(&Sample) -> Option<u64>) -> Option<f64> {
    let around = |from: f64, to: f64| Window { m, from, to }.sum(read);
    let halfway = around(to * 0.45, to * 0.55)?;
    let end = around(to * 0.9, to)?;
    (halfway > 0.0).then(|| end / halfway)
}

/// The samples of a span of time.
struct Window<'a> {
    m: &'a Measurement,
    from: f64,
    to: f64,
}

impl Window<'_> {
    fn within<'s>(&self, stream: &'s Stream) -> impl Iterator<Item = &'s Sample> + use<'s> {
        let (from, to) = (self.from, self.to);
        stream.sender.iter().filter(move |s| (from..=to).contains(&s.t_s))
    }

    fn all(&self) -> impl Iterator<Item = &Sample> {
        self.m.streams.iter().flat_map(|stream| self.within(stream))
    }

    /// The median over every stream's samples.
    fn median(&self, read: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(self.all().filter_map(read))
    }

    fn mean(&self, read: impl Fn(&Sample) -> f64) -> Option<f64> {
        let (sum, count) =
            self.all().map(read).fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
        (count > 0.0).then(|| sum / count)
    }

    /// The sum over streams of each one's median; `None` where one has none.
    fn sum(&self, read: impl Fn(&Sample) -> Option<u64>) -> Option<f64> {
        let one = |stream| median(self.within(stream).filter_map(&read).map(|v| v as f64));
        let medians: Option<Vec<f64>> = self.m.streams.iter().map(one).collect();
        medians.filter(|medians| !medians.is_empty()).map(|medians| medians.iter().sum())
    }

    fn growth(&self, read: impl Fn(&Sample) -> u64) -> f64 {
        let each = self.m.streams.iter().map(|stream| {
            let curve = sender_curve(stream, &read);
            (curve.at(self.to) - curve.at(self.from)).max(0.0)
        });
        each.sum()
    }

    fn windows(&self) -> Option<Vec<ByteCount>> {
        if self.m.streams.is_empty() {
            return None;
        }
        let one = |stream: &Stream| {
            let told = self.within(stream).filter_map(|s| s.peer_window_bytes);
            let own = stream
                .receiver
                .iter()
                .filter(|s| (self.from..=self.to).contains(&s.t_s))
                .filter_map(|s: &ReceiverSample| s.window_bytes);
            let window = median(told.map(|w| w as f64)).or_else(|| median(own.map(|w| w as f64)));
            window.filter(|bytes| *bytes > 0.0).map(ByteCount::from_f64)
        };
        self.m.streams.iter().map(one).collect()
    }

    fn window_floor(&self) -> Option<f64> {
        let windows: Vec<f64> =
            self.all().filter_map(|s| s.peer_window_bytes).map(|w| w as f64).collect();
        let most = windows.iter().copied().fold(0.0, f64::max);
        let low = quantile(windows, 0.1)?;
        (most > 0.0).then(|| low / most)
    }

    fn loss(&self) -> Option<f64> {
        let again = self.growth(|s| s.retransmits);
        let mss = self.median(|s| (s.mss_bytes > 0).then(|| f64::from(s.mss_bytes)))?;
        let sent = self.growth(|s| s.delivered_bytes.max(s.acked_bytes)) / mss + again;
        (again > 0.0 && sent > 0.0).then(|| again / sent)
    }

    fn dispersion(&self) -> f64 {
        let of = |stream| {
            let counts: Vec<u64> = self.within(stream).map(|s| s.retransmits).collect();
            let steps = counts.windows(2).map(|pair| match pair {
                [before, after] => after.saturating_sub(*before) as f64,
                _ => 0.0,
            });
            let steps: Vec<f64> = steps.collect();
            let lost: f64 = steps.iter().sum();
            let mean = lost / steps.len() as f64;
            let squares: f64 = steps.iter().map(|step| (step - mean).powi(2)).sum();
            (lost, squares / lost)
        };
        let all = self.m.streams.iter().map(of).filter(|(lost, _)| *lost > 0.0);
        all.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(0.0, |(_, dispersion)| dispersion)
    }

    fn burst(&self) -> f64 {
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
