//! What a receiver alone sees: arrivals, segments out of order, its estimate of the RTT, and
//! data that its application has not read. Only where no sender was sampled: a sender knows
//! its losses and RTT better.

use super::{Statistic, Statistics, ln, share, variation};
use crate::series;
use model::statistics::{median, percentile};
use record::{Measurement, ReceiverSample};

/// Segments out of order within this many RTTs, and within this many seconds, are one event:
/// what was sent after a loss arrives for one RTT, and a retransmission may be lost as well.
const EVENT_RTTS: f64 = 2.0;
const EVENT_S: f64 = 0.25;

/// The rate after an event is that of this many RTTs after it, and of this many seconds.
const AFTER_RTTS: f64 = 4.0;
const AFTER_S: f64 = 0.5;

/// The time between two samples of one stream's receiver.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    to: f64,
    /// Payload read, bit/s.
    rate: f64,
    segments: Option<f64>,
    out_of_order: Option<f64>,
    /// At its end, in seconds.
    rtt: Option<f64>,
    window: Option<f64>,
    unread: Option<f64>,
    /// Whether its windows are without a scale.
    unscaled: Option<bool>,
}

/// Segments out of order that follow one loss, or come from reordering.
#[derive(Debug, Clone, Copy)]
struct Gap {
    at: f64,
    segments: f64,
    /// Before it: the highest rate in bit/s, and the highest queueing delay in seconds.
    rate: f64,
    queueing: f64,
    /// The median rate after it over the rate before.
    kept: Option<f64>,
}

/// The arrivals of every stream, prepared for the statistics of parts.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    streams: Vec<Vec<Arrival>>,
    gaps: Vec<Vec<Gap>>,
}

impl Arrivals {
    /// None where a sender was sampled.
    pub(super) fn of(m: &Measurement, min_rtt: f64) -> Self {
        if m.streams.iter().any(|stream| !stream.sender.is_empty()) {
            return Arrivals::default();
        }
        let streams: Vec<Vec<Arrival>> =
            m.streams.iter().map(|stream| arrivals(&stream.receiver)).collect();
        let gaps = streams.iter().map(|arrivals| gaps(arrivals, min_rtt)).collect();
        Arrivals { streams, gaps }
    }

    /// Steps in which segments arrived out of order, by the segments of all steps.
    pub(super) fn late_steps_per_segment(&self) -> f64 {
        let steps = || self.streams.iter().flatten();
        let late = steps().filter(|a| a.out_of_order.is_some_and(|count| count > 0.0)).count();
        late as f64 / steps().filter_map(|a| a.segments).sum::<f64>().max(1.0)
    }

    /// Adds the statistics of a part: all absent without arrivals.
    pub(super) fn add(&self, from: f64, to: f64, min_rtt: f64, all: &mut Statistics) {
        let inside = |at: f64| at > from + 1e-9 && at <= to + 1e-9;
        let streams: Vec<Vec<Arrival>> = self
            .streams
            .iter()
            .map(|arrivals| arrivals.iter().filter(|a| inside(a.to)).copied().collect())
            .collect();
        let gaps: Vec<Vec<Gap>> = self
            .gaps
            .iter()
            .map(|gaps| gaps.iter().filter(|gap| inside(gap.at)).copied().collect())
            .collect();
        delays(&streams, min_rtt, all);
        losses(&streams, &gaps, (from, to), min_rtt, all);
        windows(&streams, min_rtt, all);
    }
}

fn arrivals(samples: &[ReceiverSample]) -> Vec<Arrival> {
    let arrival = |(before, after): (ReceiverSample, ReceiverSample)| {
        let growth = |read: fn(&ReceiverSample) -> Option<u32>| {
            Some(f64::from(read(&after)?.saturating_sub(read(&before)?)))
        };
        let bytes = after.received_bytes.saturating_sub(before.received_bytes) as f64;
        Arrival {
            to: after.t_s,
            rate: bytes * 8.0 / (after.t_s - before.t_s),
            segments: growth(|s| s.segments),
            out_of_order: growth(|s| s.out_of_order),
            rtt: after.rtt_us.map(|us| f64::from(us) / 1e6),
            window: after.window_bytes.map(|bytes| bytes as f64),
            unread: after.unread_bytes.map(|bytes| bytes as f64),
            unscaled: after.window_scale.map(|scale| scale == 0),
        }
    };
    series::ends(samples, |sample| sample.t_s).into_iter().map(arrival).collect()
}

/// Events in the order of time.
fn gaps(arrivals: &[Arrival], min_rtt: f64) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    let mut last = f64::NEG_INFINITY;
    let queueing = |a: &Arrival| a.rtt.map_or(0.0, |rtt| (rtt - min_rtt).max(0.0));
    for (index, arrival) in arrivals.iter().enumerate() {
        let Some(segments) = arrival.out_of_order.filter(|count| *count > 0.0) else { continue };
        let rtt = arrival.rtt.unwrap_or(min_rtt).max(min_rtt);
        let since = arrival.to - std::mem::replace(&mut last, arrival.to);
        if let Some(gap) = gaps.last_mut()
            && since <= EVENT_S.max(EVENT_RTTS * rtt)
        {
            gap.segments += segments;
            continue;
        }
        let earlier = arrivals.get(index.saturating_sub(3)..index).unwrap_or_default();
        let most = |read: &dyn Fn(&Arrival) -> f64| earlier.iter().map(read).fold(0.0, f64::max);
        let rate = most(&|a| a.rate);
        let after = AFTER_S.max(AFTER_RTTS * rtt);
        let later = arrivals.iter().skip(index + 1).take_while(|a| a.to <= arrival.to + after);
        let later: Vec<f64> = later.map(|a| a.rate).collect();
        let kept = median(&later).filter(|_| rate > 0.0).map(|later| (later / rate).min(2.0));
        gaps.push(Gap { at: arrival.to, segments, rate, queueing: most(&queueing), kept });
    }
    gaps
}

fn delays(streams: &[Vec<Arrival>], min_rtt: f64, all: &mut Statistics) {
    let rtts = streams.iter().flatten().filter_map(|arrival| arrival.rtt);
    let queueing: Vec<f64> = rtts.map(|rtt| (rtt - min_rtt).max(0.0)).collect();
    let at = |share: f64| percentile(&queueing, share);
    let relative = |q: f64| ln(q / min_rtt, 1e-2);
    all.add(Statistic::RxQ10Ms, at(0.1).map(|q| ln(q * 1e3, 0.5)));
    all.add(Statistic::RxQ50Ms, at(0.5).map(|q| ln(q * 1e3, 0.5)));
    all.add(Statistic::RxQ95Ms, at(0.95).map(|q| ln(q * 1e3, 0.5)));
    all.add(Statistic::RxQ50PerRtt, at(0.5).map(relative));
    all.add(Statistic::RxQ95PerRtt, at(0.95).map(relative));
    let levels = at(0.1).zip(at(0.5)).zip(at(0.9));
    all.add(
        Statistic::RxQSpread,
        levels.map(|((low, middle), high)| ln((high - low) / (middle + 1e-3), 1e-2)),
    );
    // A rate that follows the RTT's inverse is that of a window; at a bottleneck only the RTT
    // varies.
    all.add(Statistic::RxRateByRtt, slope(streams));
}

/// The slope of ln(rate) over ln(RTT), -2 to 2.
fn slope(streams: &[Vec<Arrival>]) -> Option<f64> {
    let (mut squares, mut products, mut count) = (0.0, 0.0, 0.0);
    for arrivals in streams {
        let points: Vec<(f64, f64)> = arrivals
            .iter()
            .filter(|arrival| arrival.rate > 0.0)
            .filter_map(|arrival| Some((arrival.rtt?.ln(), arrival.rate.ln())))
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .collect();
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
        squares += points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
        products += points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
        count += n;
    }
    // An RTT that hardly varies tells nothing: less than 3 %.
    let varies = squares / f64::max(count, 1.0) > 0.03f64.powi(2);
    (count >= 8.0 && varies).then(|| (products / squares).clamp(-2.0, 2.0))
}

fn losses(
    streams: &[Vec<Arrival>],
    gaps: &[Vec<Gap>],
    (from, to): (f64, f64),
    min_rtt: f64,
    all: &mut Statistics,
) {
    let steps = || streams.iter().flatten();
    let late: Vec<f64> = steps().filter_map(|arrival| arrival.out_of_order).collect();
    let known = !late.is_empty();
    let every: Vec<&Gap> = gaps.iter().flatten().collect();
    let count = every.len() as f64;
    all.add(Statistic::RxLnEvents, known.then(|| ln(count, 0.5)));
    let rtts = (to - from).max(1e-9) / min_rtt * streams.len().max(1) as f64;
    all.add(Statistic::RxLnEventsPerRtt, known.then(|| ln(count / rtts, 1e-4)));
    let segments: f64 = steps().filter_map(|arrival| arrival.segments).sum();
    let out_of_order: f64 = late.iter().sum();
    let ratio = (known && segments > 0.0).then(|| out_of_order / segments);
    all.add(Statistic::RxLnOutOfOrder, ratio.map(|ratio| ln(ratio, 1e-6)));
    all.add(Statistic::RxStepsOutOfOrder, share(&late, |count| count > 0.0));
    let of = |read: fn(&Gap) -> f64| every.iter().map(|gap| read(gap)).collect::<Vec<f64>>();
    let sizes = of(|gap| gap.segments);
    all.add(Statistic::RxPerEvent, median(&sizes).map(|size| ln(size, 0.0)));
    all.add(Statistic::RxMostPerEvent, percentile(&sizes, 1.0).map(|size| ln(size, 0.0)));
    // What was sent after a loss, for one RTT, arrives out of order: 1; by reordering less.
    let windows: Vec<f64> = every
        .iter()
        .map(|gap| gap.segments * 12_000.0 / (gap.rate * (min_rtt + gap.queueing)).max(12_000.0))
        .collect();
    all.add(Statistic::RxWindowsPerEvent, median(&windows).map(|windows| ln(windows, 1e-2)));
    let queueing = of(|gap| gap.queueing);
    all.add(Statistic::RxQAtEventMs, median(&queueing).map(|q| ln(q * 1e3, 0.5)));
    all.add(Statistic::RxQAtEventPerRtt, median(&queueing).map(|q| ln(q / min_rtt, 1e-2)));
    let mut rates = Vec::new();
    for (gaps, arrivals) in gaps.iter().zip(streams) {
        let own: Vec<f64> = arrivals.iter().map(|arrival| arrival.rate).collect();
        if let Some(ceiling) = percentile(&own, 0.97).filter(|rate| *rate > 0.0) {
            rates.extend(gaps.iter().map(|gap| (gap.rate / ceiling).min(1.5)));
        }
    }
    all.add(Statistic::RxRateAtEvent, median(&rates));
    all.add(Statistic::RxRateAtEventVariation, variation(&rates).map(|cv| ln(cv, 1e-2)));
    let kept: Vec<f64> = every.iter().filter_map(|gap| gap.kept).collect();
    all.add(Statistic::RxKeptAfterEvent, median(&kept));
    let between: Vec<f64> = gaps
        .iter()
        .flat_map(|gaps| gaps.windows(2))
        .filter_map(|pair| Some(pair.get(1)?.at - pair.first()?.at))
        .collect();
    let mean = model::statistics::mean(&between);
    all.add(Statistic::RxGapRtts, mean.map(|gap| ln(gap / min_rtt, 0.1)));
    all.add(Statistic::RxGapVariation, variation(&between).filter(|_| between.len() >= 3));
    let last = every.iter().map(|gap| gap.at).fold(from, f64::max);
    all.add(Statistic::RxSinceEvent, (count > 0.0).then(|| (to - last) / (to - from).max(1e-9)));
}

fn windows(streams: &[Vec<Arrival>], min_rtt: f64, all: &mut Statistics) {
    let steps = || streams.iter().flatten();
    // A window per RTT as it is, queueing included: 1 where the window is the limit.
    let turned = |arrival: &Arrival| {
        let window = arrival.window.filter(|window| *window > 0.0)?;
        let rtt = arrival.rtt?.max(min_rtt);
        Some((arrival.rate / 8.0 * rtt / window).min(4.0))
    };
    let turned: Vec<f64> = steps().filter_map(turned).collect();
    all.add(Statistic::RxWindowTurned, median(&turned).map(|turned| ln(turned, 1e-2)));
    let windows: Vec<f64> = steps().filter_map(|arrival| arrival.window).collect();
    let largest = windows.iter().copied().fold(0.0, f64::max);
    let low = percentile(&windows, 0.1).filter(|_| largest > 0.0);
    all.add(Statistic::RxWindowFloor, low.map(|low| low / largest));
    all.add(Statistic::RxLnWindow64k, low.map(|_| ln(largest / 65_535.0, 1e-3)));
    let unscaled = steps().last().and_then(|arrival| arrival.unscaled);
    all.add(Statistic::RxUnscaled, unscaled.map(|unscaled| f64::from(u8::from(unscaled))));
    let unread: Vec<f64> = steps().filter_map(|arrival| arrival.unread).collect();
    let share = |unread: f64| (largest > 0.0).then(|| (unread / largest).min(2.0));
    all.add(Statistic::RxUnread, median(&unread).and_then(share));
}

#[cfg(test)]
mod tests {
    use crate::statistics::Statistic;
    use crate::{
        example::{close, sampled, samples},
        prepared,
    };
    use record::ReceiverSample;

    /// A statistic of 10 s at 10 Mbit/s and 20 ms, as a receiver sees it.
    fn of(name: &str, change: impl Fn(u64, &mut ReceiverSample)) -> Option<f64> {
        let mut m = sampled(samples(10.0, 10.0, |_, _| {}));
        m.streams[0].sender.clear();
        m.streams[0].receiver = (0..=100)
            .map(|index| {
                let mut sample = ReceiverSample {
                    t_s: index as f64 / 10.0,
                    received_bytes: index * 125_000,
                    window_bytes: Some(50_000),
                    min_rtt_us: Some(20_000),
                    rtt_us: Some(20_000),
                    unread_bytes: Some(0),
                    segments: Some(index as u32 * 100),
                    out_of_order: Some(0),
                    ..ReceiverSample::default()
                };
                change(index, &mut sample);
                sample
            })
            .collect();
        prepared(&m).over(0.0, 10.0).get(Statistic::named(name).unwrap())
    }

    #[test]
    fn a_queue_shows_in_the_receivers_rtt() {
        close(of("rx_q50_ms", |_, _| {}), 0.5f64.ln());
        close(of("rx_q50_ms", |_, s| s.rtt_us = Some(35_000)), 15.5f64.ln());
        close(of("rx_q50_per_rtt", |_, s| s.rtt_us = Some(40_000)), 1.01f64.ln());
        assert_eq!(of("rx_q50_ms", |_, s| s.rtt_us = None), None);
    }

    #[test]
    fn segments_out_of_order_are_events() {
        close(of("rx_ln_events", |_, _| {}), 0.5f64.ln());
        // 20 segments each second: 25 kB of 1250 bytes, a window of 10 Mbit/s over 20 ms.
        let each_second = |index: u64, s: &mut ReceiverSample| {
            s.out_of_order = Some(20 * ((index + 5) / 10) as u32);
        };
        close(of("rx_ln_events", each_second), 10.5f64.ln());
        close(of("rx_per_event", each_second), 20f64.ln());
        close(of("rx_ln_out_of_order", each_second), (0.02f64 + 1e-6).ln());
        close(of("rx_kept_after_event", each_second), 1.0);
        let seconds = of("rx_gap_rtts", each_second).unwrap();
        close(Some(seconds), 50.1f64.ln());
        assert_eq!(of("rx_kept_after_event", |_, _| {}), None, "no event");
    }

    #[test]
    fn an_application_that_reads_too_slowly_leaves_data_unread() {
        close(of("rx_unread", |_, _| {}), 0.0);
        close(of("rx_unread", |_, s| s.unread_bytes = Some(40_000)), 0.8);
    }

    #[test]
    fn a_full_window_is_turned_over_each_round_trip() {
        close(of("rx_window_turned", |_, s| s.window_bytes = Some(25_000)), 1.01f64.ln());
    }

    #[test]
    fn a_window_without_a_scale_is_seen() {
        assert_eq!(of("rx_unscaled", |_, _| {}), None);
        assert_eq!(of("rx_unscaled", |_, s| s.window_scale = Some(0)), Some(1.0));
        assert_eq!(of("rx_unscaled", |_, s| s.window_scale = Some(7)), Some(0.0));
    }

    #[test]
    fn a_senders_samples_take_precedence() {
        let m = sampled(samples(10.0, 10.0, |_, _| {}));
        assert_eq!(prepared(&m).over(0.0, 10.0).get(Statistic::RxLnEvents), None);
    }
}
