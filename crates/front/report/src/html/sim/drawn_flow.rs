//! What is drawn as one: a flow, or all flows of a group where there are many.

use record::{Measurement, SimFlow, SimReport, Stream};

/// Most of them in a plot.
const MAX: usize = 8;

/// A flow, or a group of flows.
#[derive(Debug)]
pub(super) struct DrawnFlow<'a> {
    /// `1 cubic`, or `4xbbr,start=30s`.
    pub(super) name: String,
    /// Its congestion control; of several together `other`.
    pub(super) control: &'a str,
    pub(super) flows: Vec<&'a SimFlow>,
    /// Of each flow.
    pub(super) streams: Vec<&'a [Stream]>,
}

impl<'a> DrawnFlow<'a> {
    /// Every flow, or every group where there are too many flows; of too many groups, the last ones
    /// are one.
    pub(super) fn all(report: &'a SimReport, measurement: &'a Measurement) -> Vec<Self> {
        let pairs: Vec<_> =
            report.flows.iter().map(|flow| (flow, flow.streams(&measurement.streams))).collect();
        let single = pairs.len() <= MAX;
        let same = |one: &(&SimFlow, &[Stream]), other: &(&SimFlow, &[Stream])| {
            !single && one.0.spec == other.0.spec
        };
        let mut drawn: Vec<Self> = pairs
            .chunk_by(same)
            .map(|group| DrawnFlow {
                name: match group {
                    [(only, _)] => format!("{} {}", only.id, only.control),
                    _ => group.first().map_or(String::new(), |one| one.0.spec.clone()),
                },
                control: group.first().map_or("", |one| one.0.control.as_str()),
                flows: group.iter().map(|one| one.0).collect(),
                streams: group.iter().map(|one| one.1).collect(),
            })
            .collect();
        if drawn.len() > MAX {
            let rest = drawn.split_off(MAX - 1);
            let flows: Vec<&SimFlow> = rest.iter().flat_map(|one| one.flows.clone()).collect();
            drawn.push(DrawnFlow {
                name: format!("{} other flows", flows.len()),
                control: "other",
                flows,
                streams: rest.into_iter().flat_map(|one| one.streams).collect(),
            });
        }
        drawn
    }
}
