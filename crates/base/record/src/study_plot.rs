//! Plots that a study's plan names.

use crate::{FlowFigures, StudyRun};
use serde::{Deserialize, Serialize};

/// A plot of a plan.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyPlot {
    /// Before its caption, such as `Figure 1`.
    pub title: Option<String>,
    /// What it looks like.
    pub kind: PlotKind,
    /// The factor along its first axis; of boxes, the one with a box for each value. Of lines
    /// `window` also where `total_window` is the factor: the window of each stream.
    pub x: Option<String>,
    /// The factor with a curve for each value, or along the second axis.
    pub by: Option<String>,
    /// The flow whose figure is plotted; `None`: the only one.
    pub flow: Option<String>,
    /// What is plotted.
    pub y: Figure,
    /// A line that the figures are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// A remark below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A line of a plot that no run is measured for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reference {
    /// The window, or the sum of the windows, over the RTT of the path (RFC 7323, section 1.1).
    #[serde(rename = "window/rtt")]
    WindowOverRtt,
}

impl Reference {
    /// Every reference.
    pub const ALL: [Reference; 1] = [Reference::WindowOverRtt];

    /// As in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reference::WindowOverRtt => "window/rtt",
        }
    }
}

/// What a plot looks like.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Means with confidence intervals over a numeric factor.
    Lines,
    /// Means over two numeric factors, as heights.
    Surface,
    /// The same as colours.
    Heatmap,
    /// Quartiles of the runs.
    Box,
    /// The empirical cumulative distribution of the runs.
    Cdf,
    /// A row for each cell.
    Rows,
}

impl PlotKind {
    /// Every kind.
    pub const ALL: [PlotKind; 6] = [
        PlotKind::Lines,
        PlotKind::Surface,
        PlotKind::Heatmap,
        PlotKind::Box,
        PlotKind::Cdf,
        PlotKind::Rows,
    ];

    /// As in plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PlotKind::Lines => "lines",
            PlotKind::Surface => "surface",
            PlotKind::Heatmap => "heatmap",
            PlotKind::Box => "box",
            PlotKind::Cdf => "cdf",
            PlotKind::Rows => "rows",
        }
    }
}

/// A numeric figure of a flow, by the name of its column in exports.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Figure {
    /// Goodput.
    #[serde(rename = "throughput_bps")]
    Throughput,
    /// Goodput of each stream, in the mean.
    #[serde(rename = "per_stream_bps")]
    PerStream,
    /// Goodput in the steady state.
    #[serde(rename = "steady_bps")]
    Steady,
    /// What the application wrote.
    #[serde(rename = "sent_bps")]
    Sent,
    /// Retransmitted segments.
    #[serde(rename = "retransmits")]
    Retransmits,
    /// The lowest RTT.
    #[serde(rename = "min_rtt_ms")]
    MinRtt,
    /// The mean smoothed RTT.
    #[serde(rename = "mean_rtt_ms")]
    MeanRtt,
    /// The highest advertised window.
    #[serde(rename = "window_bytes")]
    Window,
    /// Share of datagrams lost.
    #[serde(rename = "loss")]
    Loss,
    /// Datagrams received after one that was sent later.
    #[serde(rename = "out_of_order")]
    OutOfOrder,
    /// Interarrival jitter.
    #[serde(rename = "jitter_ms")]
    Jitter,
    /// The probability of the finding's limit.
    #[serde(rename = "probability")]
    Probability,
    /// The multiplicative decrease factor.
    #[serde(rename = "decrease_factor")]
    DecreaseFactor,
    /// Full acknowledgements per data packet.
    #[serde(rename = "acks_per_packet")]
    AcksPerPacket,
    /// Light acknowledgements per data packet.
    #[serde(rename = "light_acks_per_packet")]
    LightAcksPerPacket,
    /// NAKs.
    #[serde(rename = "naks")]
    Naks,
    /// Rate increase over alpha(x).
    #[serde(rename = "growth_over_alpha")]
    GrowthOverAlpha,
    /// Rate of the disk.
    #[serde(rename = "disk_bps")]
    Disk,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Bit/s.
    Rate,
    /// Milliseconds.
    Millis,
    /// Bytes.
    Bytes,
    /// 0 to 1.
    Share,
    /// A number.
    Count,
}

impl Figure {
    /// Every figure.
    pub const ALL: [Figure; 18] = [
        Figure::Throughput,
        Figure::PerStream,
        Figure::Steady,
        Figure::Sent,
        Figure::Retransmits,
        Figure::MinRtt,
        Figure::MeanRtt,
        Figure::Window,
        Figure::Loss,
        Figure::OutOfOrder,
        Figure::Jitter,
        Figure::Probability,
        Figure::DecreaseFactor,
        Figure::AcksPerPacket,
        Figure::LightAcksPerPacket,
        Figure::Naks,
        Figure::GrowthOverAlpha,
        Figure::Disk,
    ];

    /// Its column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Figure::Throughput => "throughput_bps",
            Figure::PerStream => "per_stream_bps",
            Figure::Steady => "steady_bps",
            Figure::Sent => "sent_bps",
            Figure::Retransmits => "retransmits",
            Figure::MinRtt => "min_rtt_ms",
            Figure::MeanRtt => "mean_rtt_ms",
            Figure::Window => "window_bytes",
            Figure::Loss => "loss",
            Figure::OutOfOrder => "out_of_order",
            Figure::Jitter => "jitter_ms",
            Figure::Probability => "probability",
            Figure::DecreaseFactor => "decrease_factor",
            Figure::AcksPerPacket => "acks_per_packet",
            Figure::LightAcksPerPacket => "light_acks_per_packet",
            Figure::Naks => "naks",
            Figure::GrowthOverAlpha => "growth_over_alpha",
            Figure::Disk => "disk_bps",
        }
    }

    /// For captions.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Figure::Throughput => "Goodput",
            Figure::PerStream => "Goodput of each stream",
            Figure::Steady => "Steady goodput",
            Figure::Sent => "Sending rate",
            Figure::Retransmits => "Retransmitted segments",
            Figure::MinRtt => "Minimum RTT",
            Figure::MeanRtt => "Mean RTT",
            Figure::Window => "Advertised window",
            Figure::Loss => "Loss",
            Figure::OutOfOrder => "Datagrams out of order",
            Figure::Jitter => "Jitter",
            Figure::Probability => "Probability of the limit",
            Figure::DecreaseFactor => "Multiplicative decrease factor",
            Figure::AcksPerPacket => "Full acknowledgements per data packet",
            Figure::LightAcksPerPacket => "Light acknowledgements per data packet",
            Figure::Naks => "NAKs",
            Figure::GrowthOverAlpha => "Rate increase over alpha(x)",
            Figure::Disk => "Rate of the disk",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn quantity(self) -> Quantity {
        match self {
            Figure::Throughput
            | Figure::PerStream
            | Figure::Steady
            | Figure::Sent
            | Figure::Disk => Quantity::Rate,
            Figure::MinRtt | Figure::MeanRtt | Figure::Jitter => Quantity::Millis,
            Figure::Window => Quantity::Bytes,
            Figure::Loss
            | Figure::Probability
            | Figure::DecreaseFactor
            | Figure::AcksPerPacket
            | Figure::LightAcksPerPacket
            | Figure::GrowthOverAlpha => Quantity::Share,
            Figure::Retransmits | Figure::OutOfOrder | Figure::Naks => Quantity::Count,
        }
    }

    /// Its value of a flow of so many streams; `None` if the flow has none.
    #[must_use]
    pub fn of(self, flow: &FlowFigures, streams: u32) -> Option<f64> {
        match self {
            Figure::Throughput => Some(flow.throughput_bps),
            Figure::PerStream => Some(flow.throughput_bps / f64::from(streams.max(1))),
            Figure::Steady => flow.steady_bps,
            Figure::Sent => Some(flow.sent_bps),
            Figure::Retransmits => flow.retransmits.map(|count| count as f64),
            Figure::MinRtt => flow.min_rtt_ms,
            Figure::MeanRtt => flow.mean_rtt_ms,
            Figure::Window => flow.window_bytes.map(|bytes| bytes as f64),
            Figure::Loss => flow.loss,
            Figure::OutOfOrder => flow.out_of_order.map(|count| count as f64),
            Figure::Jitter => flow.jitter_ms,
            Figure::Probability => flow.probability,
            Figure::DecreaseFactor => flow.decrease_factor,
            Figure::AcksPerPacket => flow.acks_per_packet,
            Figure::LightAcksPerPacket => flow.light_acks_per_packet,
            Figure::Naks => flow.naks.map(|count| count as f64),
            Figure::GrowthOverAlpha => flow.growth_over_alpha,
            Figure::Disk => flow.disk_bps,
        }
    }
}

impl StudyPlot {
    /// The value of a run whose flows have so many streams each: of its flow, or of all flows
    /// together for their goodput and for their loss.
    #[must_use]
    pub fn value(&self, run: &StudyRun, streams: u32) -> Option<f64> {
        match (&self.flow, run.flows.as_slice()) {
            (Some(name), _) => self.y.of(run.flow(name)?, streams),
            (None, []) => None,
            (None, [only]) => self.y.of(only, streams),
            (None, flows) => match self.y {
                Figure::Throughput => Some(run.throughput_bps()),
                Figure::PerStream => {
                    let all = f64::from(streams.max(1)) * flows.len() as f64;
                    Some(run.throughput_bps() / all)
                }
                Figure::Loss => run.loss(),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for figure in Figure::ALL {
            assert_eq!(serde_json::json!(figure), figure.name());
        }
        for kind in PlotKind::ALL {
            assert_eq!(serde_json::json!(kind), kind.name());
        }
        for reference in Reference::ALL {
            assert_eq!(serde_json::json!(reference), reference.name());
        }
    }
}
