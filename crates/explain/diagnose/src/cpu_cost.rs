//! CPU time per byte, and how much data lies between the applications.
//!
//! What one application has written and the other has yet to read passes through memory once:
//! through the caches if it is less than they hold. Both are measured in the run, so its
//! beginning, while autotuning has not yet grown the windows, shows what a byte costs with
//! small ones.

use crate::curve::{Curve, total};
use record::Measurement;

/// The shortest time over which both are compared, in seconds, and the most values.
const CELL_S: f64 = 0.02;
const MAX_CELLS: f64 = 4_000.0;

/// Bytes between the applications up to which a byte costs the least, within 12 %
/// (docs/design/local-paths.md: 0.5 to 8 MB).
const SMALL: f64 = 8e6;

/// Bytes that a cell needs for its CPU time to mean anything: the clock has steps of 1 ms with
/// some kernels.
const CELL_BYTES: f64 = 4e6;

/// A cell in which more was between the applications than this share of [`SMALL`] either way
/// is not counted: samples of both ends are up to a few ms apart.
const NEGATIVE: f64 = -0.25 * SMALL;

/// What a part of a test cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuCost {
    /// Bytes between the applications, all streams together: the mean over time.
    pub(crate) buffered: f64,
    /// CPU time of the threads of both ends, ns per byte; `None` where it was not measured.
    pub(crate) ns_per_byte: Option<f64>,
    /// The same over those parts of the whole test with at most [`SMALL`] between the
    /// applications; `None` without any.
    pub(crate) ns_while_small: Option<f64>,
}

impl CpuCost {
    /// How many times as much a byte costs as with little between the applications.
    pub(crate) fn growth(&self) -> Option<f64> {
        Some(self.ns_per_byte? / self.ns_while_small?)
    }
}

/// The counters of all streams over time.
#[derive(Debug)]
pub(crate) struct CpuCounters {
    written: Vec<Curve>,
    /// By the receiving application; acknowledged, where the receiver shares no samples.
    read: Vec<Curve>,
    cpu: Vec<Curve>,
    end: f64,
    cell: f64,
    ns_while_small: Option<f64>,
}

impl CpuCounters {
    /// Of every stream; `None` without samples of every sender.
    pub(crate) fn of(m: &Measurement) -> Option<Self> {
        let (mut written, mut read, mut cpu, mut end) = (vec![], vec![], vec![], f64::MAX);
        for stream in &m.streams {
            let sent = &stream.sender;
            let into = Curve::new(sent.iter().map(|s| (s.t_s, s.written_bytes)));
            let out = Curve::new(stream.receiver.iter().map(|s| (s.t_s, s.received_bytes)));
            let acked = || Curve::new(sent.iter().map(|s| (s.t_s, s.acked_bytes)));
            let out = if out.end().is_some() { out } else { acked() };
            end = end.min(into.end()?).min(out.end()?);
            written.push(into);
            read.push(out);
            let sender = sent.iter().filter_map(|s| Some((s.t_s, s.cpu_us?)));
            let receiver = stream.receiver.iter().filter_map(|s| Some((s.t_s, s.cpu_us?)));
            let threads = [Curve::new(sender), Curve::new(receiver)];
            cpu.extend(threads.into_iter().filter(|curve| curve.end().is_some()));
        }
        if written.is_empty() {
            return None;
        }
        let cell = CELL_S.max(end / MAX_CELLS);
        let mut all = CpuCounters { written, read, cpu, end, cell, ns_while_small: None };
        all.ns_while_small = all.while_small();
        Some(all)
    }

    /// What a part of the test cost.
    pub(crate) fn over(&self, from: f64, to: f64) -> Option<CpuCost> {
        let levels: Vec<f64> = self.cells(from, to).map(|t| self.buffered(t)).collect();
        Some(CpuCost {
            buffered: model::statistics::mean(&levels)?.max(0.0),
            ns_per_byte: ns_per_byte(self.cpu_us(from, to), self.bytes(from, to)),
            ns_while_small: self.ns_while_small,
        })
    }

    fn while_small(&self) -> Option<f64> {
        let (mut time, mut bytes) = (0.0, 0.0);
        // The first cell has what is only written, and the threads' start.
        for t in self.cells(0.0, self.end).skip(1) {
            let passed = self.bytes(t, t + self.cell);
            let small = |t: f64| (NEGATIVE..=SMALL).contains(&self.buffered(t));
            if small(t) && small(t + self.cell) && passed >= CELL_BYTES {
                time += self.cpu_us(t, t + self.cell);
                bytes += passed;
            }
        }
        ns_per_byte(time, bytes)
    }

    /// The starts of the cells in a part of the test.
    fn cells(&self, from: f64, to: f64) -> impl Iterator<Item = f64> {
        let count = ((to.min(self.end) - from) / self.cell).floor().max(0.0) as usize;
        let cell = self.cell;
        (0..count).map(move |index| from + index as f64 * cell)
    }

    /// Below 0 where the reader's sample is later than the writer's.
    fn buffered(&self, t: f64) -> f64 {
        total(&self.written, t) - total(&self.read, t)
    }

    fn bytes(&self, from: f64, to: f64) -> f64 {
        total(&self.read, to) - total(&self.read, from)
    }

    fn cpu_us(&self, from: f64, to: f64) -> f64 {
        total(&self.cpu, to) - total(&self.cpu, from)
    }
}

/// `None` where no CPU time was measured.
fn ns_per_byte(us: f64, bytes: f64) -> Option<f64> {
    (bytes > 0.0 && us > 0.0).then(|| us * 1e3 / bytes).filter(|ns| ns.is_finite())
}
