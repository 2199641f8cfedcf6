//! The statistics of a segment: the evidence by which the causes are told apart.
//!
//! Each is one number, dimensionless where possible, with a name. One that the samples
//! cannot give (no sender's timers, no losses, no requested rate) is absent, and says
//! nothing: the posterior then rests on the others. The definitions are also those that the
//! weights in `causes/weights.csv` were fitted to; changing one means fitting again
//! (docs/design/diagnosis.md).
//!
//! | group | module | source |
//! |---|---|---|
//! | what the sender waited for, windows, hosts | `sender` | Linux `tcp_chrono`; RFC 7323 |
//! | delivered rate and RTT over time | `network` | Sundaresan et al., IMC 2017; Veno |
//! | losses, with the state before them | `losses` | Flach et al., SIGCOMM 2016; RFC 8289 |
//! | growth of the congestion window | `growth` | RFC 5681, RFC 9438 |
//! | what a receiver alone sees | `arrivals` | Linux `tcp_rcv_rtt_update`, `rcv_ooopack` |
//! | levels of rate and queue from block to block | `levels` | queueing delay = bytes / rate |

mod arrivals;
mod growth;
mod levels;
mod losses;
mod network;
mod sender;
mod statistic;

pub(crate) use statistic::Statistic;

use crate::{
    cpu_cost::CpuCounters,
    curve::{Curve, total},
    events::{self, Event},
    facts::Facts,
    series::{Series, Step},
};
use arrivals::Arrivals;
use model::statistics::percentile;
use record::{Measurement, Stream};
use units::Rtt;

/// A test, prepared for the statistics of its segments.
pub(crate) struct Prepared<'a> {
    pub(crate) facts: Facts<'a>,
    pub(crate) series: Series,
    pub(crate) min_rtt: f64,
    events: Vec<Vec<Event>>,
    arrivals: Arrivals,
    /// Delivered bytes by stream, from the senders' samples or the receivers'.
    delivered: Vec<Curve>,
    /// Bytes that the receiving application read, by stream.
    read: Vec<Curve>,
    /// CPU time and bytes between the applications; `None` without every sender's samples.
    cpu: Option<CpuCounters>,
    /// The 97th percentile of the rates over the whole test, bit/s.
    peak: f64,
    /// The step of the grid on which rates are compared, seconds.
    grid: f64,
}

/// The minimum RTT that is assumed where none was measured, in seconds.
const FALLBACK_RTT: f64 = 0.001;

/// Most values of a grid of rates.
const GRID_VALUES: f64 = 4_000.0;

impl<'a> Prepared<'a> {
    pub(crate) fn new(facts: Facts<'a>, delivered: Vec<Curve>) -> Self {
        let m = facts.m;
        let series = Series::of(m);
        let min_rtt = facts.min_rtt.map(Rtt::secs_f64).unwrap_or(FALLBACK_RTT).max(1e-6);
        let events = series.streams.iter().map(|steps| events::find(steps, min_rtt)).collect();
        let end = delivered.iter().filter_map(Curve::end).fold(0.0, f64::max);
        let grid = 0.1f64.max(end / GRID_VALUES);
        let read =
            |stream: &Stream| Curve::new(stream.receiver.iter().map(|s| (s.t_s, s.received_bytes)));
        let read = m.streams.iter().map(read).collect();
        let arrivals = Arrivals::of(m, min_rtt);
        let cpu = CpuCounters::of(m);
        let mut this = Prepared {
            facts,
            series,
            min_rtt,
            events,
            arrivals,
            delivered,
            read,
            cpu,
            peak: 0.0,
            grid,
        };
        this.peak = percentile(&this.rates(0.0, end), 0.97).unwrap_or(0.0);
        this
    }

    /// The end of the last sample, seconds.
    pub(crate) fn end(&self) -> f64 {
        self.delivered.iter().filter_map(Curve::end).fold(0.0, f64::max)
    }

    /// The median time between samples, in seconds: the sender's, else the receiver's.
    pub(crate) fn step(&self) -> Option<f64> {
        let sent: Vec<f64> = self.series.streams.iter().flatten().map(Step::seconds).collect();
        let pairs = self.facts.m.streams.iter().flat_map(|stream| stream.receiver.windows(2));
        let gaps = pairs.filter_map(|pair| Some(pair.get(1)?.t_s - pair.first()?.t_s));
        let received = || model::statistics::median(&gaps.collect::<Vec<f64>>());
        model::statistics::median(&sent).or_else(received).filter(|step| *step > 0.0)
    }

    /// Delivered rates of all streams together on a grid, bit/s.
    pub(crate) fn rates(&self, from: f64, to: f64) -> Vec<f64> {
        // A span beyond the samples, of a file with absurd times, has no rates.
        let count = ((to - from) / self.grid).round().clamp(0.0, 2.0 * GRID_VALUES) as usize;
        let at = |index: usize| total(&self.delivered, from + index as f64 * self.grid);
        let mut before = at(0);
        (1..=count)
            .map(|index| {
                let now = at(index);
                let rate = (now - before) * 8.0 / self.grid;
                before = now;
                rate
            })
            .collect()
    }

    /// The mean delivered rate, bit/s.
    pub(crate) fn rate(&self, from: f64, to: f64) -> f64 {
        let bytes = total(&self.delivered, to) - total(&self.delivered, from);
        bytes * 8.0 / (to - from).max(1e-9)
    }

    /// The mean RTT, in seconds; `None` without samples.
    pub(crate) fn rtt(&self, from: f64, to: f64) -> Option<f64> {
        let streams = self.series.within(from, to);
        let rtts: Vec<f64> = streams.iter().flat_map(|s| s.iter()).filter_map(Step::rtt).collect();
        model::statistics::mean(&rtts)
    }

    /// The 97th percentile of the rates over the whole test, bit/s.
    pub(crate) const fn peak(&self) -> f64 {
        self.peak
    }

    /// At receivers alone: steps with segments out of order, by segment.
    pub(crate) fn late_steps_per_segment(&self) -> f64 {
        self.arrivals.late_steps_per_segment()
    }

    /// The statistics of a part of the test.
    pub(crate) fn over(&self, from: f64, to: f64) -> Statistics {
        let streams = self.series.within(from, to);
        let inside = |event: &&Event| event.at > from + 1e-9 && event.at <= to + 1e-9;
        let events: Vec<Vec<Event>> = self
            .events
            .iter()
            .map(|events| events.iter().filter(inside).copied().collect())
            .collect();
        let part = Part { test: self, from, to, streams, events };
        let values = vec![None; Statistic::ALL.len()];
        let mut all = Statistics { source: SampleSource::of(self.facts.m), values };
        sender::add(&part, &mut all);
        network::add(&part, &mut all);
        losses::add(&part, &mut all);
        growth::add(&part, &mut all);
        levels::add(&part, &mut all);
        self.arrivals.add(from, to, self.min_rtt, &mut all);
        all
    }
}

/// A part of a test.
struct Part<'a> {
    test: &'a Prepared<'a>,
    from: f64,
    to: f64,
    /// The steps of each stream that end in it.
    streams: Vec<&'a [Step]>,
    /// The congestion events of each stream in it.
    events: Vec<Vec<Event>>,
}

impl Part<'_> {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.streams.iter().flat_map(|steps| steps.iter())
    }

    fn seconds(&self) -> f64 {
        (self.to - self.from).max(1e-9)
    }

    /// Every value that a step gives.
    fn values(&self, read: impl Fn(&Step) -> Option<f64>) -> Vec<f64> {
        self.steps().filter_map(read).filter(|value| value.is_finite()).collect()
    }

    /// The mean of a figure of the steps; `None` without any.
    fn mean(&self, read: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
        model::statistics::mean(&self.values(read))
    }

    /// The sum of a figure of the steps; `None` without any.
    fn sum(&self, read: impl Fn(&Step) -> Option<f64>) -> Option<f64> {
        let values = self.values(read);
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Each step's queueing delay at its end, in seconds.
    fn queueing(&self) -> Vec<f64> {
        self.values(|step| Some((step.rtt()? - self.test.min_rtt).max(0.0)))
    }
}

/// Whose samples they are: what a capture shows is in part an estimate, so other terms are
/// fitted to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SampleSource {
    /// The kernels' (TCP_INFO).
    #[default]
    Kernel,
    /// A capture's.
    Capture,
}

impl SampleSource {
    fn of(m: &Measurement) -> Self {
        let captured = m.streams.iter().any(|stream| stream.captured.is_some());
        if captured { SampleSource::Capture } else { SampleSource::Kernel }
    }
}

/// The value of each statistic; absent without its samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    pub(crate) source: SampleSource,
    /// In the order of [`Statistic::ALL`].
    values: Vec<Option<f64>>,
}

impl Statistics {
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(values: [(Statistic, Option<f64>); N]) -> Self {
        let mut all = Statistics { values: vec![None; Statistic::ALL.len()], ..Self::default() };
        values.into_iter().for_each(|(statistic, value)| all.add(statistic, value));
        all
    }

    fn add(&mut self, statistic: Statistic, value: Option<f64>) {
        if let Some(place) = self.values.get_mut(statistic as usize) {
            *place = value.filter(|value| value.is_finite());
        }
    }

    /// Every statistic with its name, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> + '_ {
        Statistic::ALL.iter().map(|statistic| (statistic.name(), self.get(*statistic)))
    }

    /// One of them.
    pub(crate) fn get(&self, statistic: Statistic) -> Option<f64> {
        self.values.get(statistic as usize).copied().flatten()
    }

    /// Whether a statistic is known and at least `least`.
    pub(crate) fn reaches(&self, statistic: Statistic, least: f64) -> bool {
        self.get(statistic).is_some_and(|value| value >= least)
    }

    /// The first that is known: what the sender saw, else what the receiver did.
    pub(crate) fn first(&self, statistics: [Statistic; 2]) -> Option<f64> {
        statistics.into_iter().find_map(|statistic| self.get(statistic))
    }
}

/// ln(value + floor): compresses a figure that spans orders of magnitude, with a floor below
/// which differences mean nothing.
fn ln(value: f64, floor: f64) -> f64 {
    (value.max(0.0) + floor).ln()
}

/// The share of values for which `holds`.
fn share(values: &[f64], holds: impl Fn(f64) -> bool) -> Option<f64> {
    let count = values.iter().filter(|value| holds(**value)).count();
    (!values.is_empty()).then(|| count as f64 / values.len() as f64)
}

/// The coefficient of variation.
fn variation(values: &[f64]) -> Option<f64> {
    let mean = model::statistics::mean(values).filter(|mean| *mean > 0.0)?;
    Some(model::statistics::deviation(values)? / mean)
}
