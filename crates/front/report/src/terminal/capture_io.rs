//! Packets, bytes or bits per interval of a capture, as curves.

use super::{
    Style,
    canvas::{self, Canvas},
    line::{Line, block, columns},
    plot::{LEFT, ROWS, framed},
    style,
};
use crate::axis::{Axis, COUNT, ELAPSED, RATE, Unit, readable};
use crate::wording;

/// Base unit byte/s.
const BYTE_RATE: &[Unit] = &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")];

/// The traffic of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoBin {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// A curve, one value for each interval.
#[derive(Debug, Clone)]
pub struct IoCurve {
    /// Its filter; from the command line.
    pub label: String,
    /// The intervals from the first packet of the capture on.
    pub bins: Vec<IoBin>,
}

/// The curves to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoUnit {
    /// Bits per second.
    Bits,
    /// Bytes per second.
    Bytes,
    /// Packets per interval.
    Packets,
}

impl IoUnit {
    fn value(self, bin: &IoBin, interval_s: f64) -> f64 {
        match self {
            IoUnit::Bits => bin.bytes as f64 * 8.0 / interval_s,
            IoUnit::Bytes => bin.bytes as f64 / interval_s,
            IoUnit::Packets => bin.packets as f64,
        }
    }

    fn units(self) -> &'static [Unit] {
        match self {
            IoUnit::Bits => RATE,
            IoUnit::Bytes => BYTE_RATE,
            IoUnit::Packets => COUNT,
        }
    }
}

/// The curves on one scale, and what each of them is.
#[must_use]
pub fn capture_io(curves: &[IoCurve], interval_s: f64, unit: IoUnit, style: &Style) -> String {
    let values: Vec<Vec<f64>> = curves
        .iter()
        .map(|curve| curve.bins.iter().map(|bin| unit.value(bin, interval_s)).collect())
        .collect();
    let peaks: Vec<f64> = values.iter().map(|it| it.iter().copied().fold(0.0, f64::max)).collect();
    let top = peaks.iter().copied().fold(0.0, f64::max);
    let count = values.iter().map(Vec::len).max().unwrap_or(0);
    let what = if unit == IoUnit::Packets { "packets per " } else { "in intervals of " };
    let title = format!("{what}{}", readable(interval_s, crate::axis::DELAY));
    let mut lines = vec![Line::new(style).to(LEFT).put(style::DIM, &title)];
    let width = style.text_width().saturating_sub(LEFT + 1);
    if top > 0.0 && width >= 20 {
        let y = Axis::over(top * 1.04, unit.units(), 6.0);
        let x = Axis::to(count as f64 * interval_s, ELAPSED, 8.0);
        let mut canvas = Canvas::new(width, ROWS, style.unicode);
        for (index, values) in values.iter().enumerate() {
            let point = |(at, value): (usize, &f64)| {
                (x.share((at as f64 + 0.5) * interval_s), y.share(*value))
            };
            canvas.curve(&values.iter().enumerate().map(point).collect::<Vec<_>>(), index);
        }
        lines.extend(framed(&canvas, (y.unit, y.shares()), (x.shares(), " s"), Vec::new(), style));
    }
    let labels = curves.iter().map(|curve| columns(&curve.label)).max().unwrap_or(0).min(40);
    for (index, (curve, peak)) in curves.iter().zip(&peaks).enumerate() {
        let (packets, bytes) = curve
            .bins
            .iter()
            .fold((0, 0), |(packets, bytes), bin| (packets + bin.packets, bytes + bin.bytes));
        let label: String = curve.label.chars().take(40).collect();
        let text = format!(
            "{}, {}, peak {}",
            wording::counted(packets, "packet"),
            wording::counted(bytes, "byte"),
            readable(*peak, unit.units())
        );
        let line = Line::new(style).to(LEFT);
        let line = line.put(style::run(index), &canvas::swatch(index, style.unicode));
        let line = line.put(style::PLAIN, " ").put(style::PLAIN, &label);
        lines.push(line.to(LEFT + 6 + labels).put(style::PLAIN, &text));
    }
    block(lines)
}
