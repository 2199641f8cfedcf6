//! What is counted, and how it is printed.

use crate::labels::Label;
use crate::run::Run;
use crate::truth::Retransmission;
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};
use tcp_analysis::{KIND_COUNT, RetransmissionKind};

/// Above the rows.
pub(crate) const HEADING: &str = "\
                         at the sender                            at the receiver\n\
path                      packets   right   exact   spurious       packets   right   exact   spurious";

/// No retransmission, or one without a label.
const NONE: usize = KIND_COUNT;

/// Counts of one place of capture.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// By true kind and label; the last ones: not retransmitted, no label.
    confusion: [[u32; KIND_COUNT + 1]; KIND_COUNT + 1],
    /// Unnecessary and recognised, unnecessary, labelled spurious and necessary.
    spurious: [u32; 3],
}

/// Counts at both hosts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Agreement([Counts; 2]);

/// Kinds that differ in the kernel: its states. The first retransmission of a recovery and
/// the others are in one, and so are an expiry of the timer and what follows.
const fn state(kind: usize) -> usize {
    match kind {
        0 | 1 => 0,
        2 | 3 => 2,
        other => other,
    }
}

impl Counts {
    fn shares(&self) -> (u32, f64, f64) {
        let (mut sum, mut right, mut exact) = (0, 0, 0);
        for (truth, row) in self.confusion.iter().enumerate() {
            for (label, count) in row.iter().enumerate() {
                sum += count;
                exact += if truth == label { *count } else { 0 };
                right += if state(truth) == state(label) { *count } else { 0 };
            }
        }
        let share = |count: u32| f64::from(count) / f64::from(sum.max(1)) * 100.0;
        (sum, share(right), share(exact))
    }
}

impl Agreement {
    /// Counts a capture.
    pub(crate) fn add(
        &mut self,
        run: &Run,
        truth: &HashMap<usize, Retransmission>,
        labels: &[Option<Label>],
        at_sender: bool,
    ) {
        let counts = &mut self.0[usize::from(!at_sender)];
        for (_, truth, label) in compared(run, truth, labels) {
            let row = truth.map_or(Some(NONE), |truth| truth.kind.map(|kind| kind as usize));
            let Some(row) = row else { continue };
            counts.confusion[row][label.kind.map_or(NONE, |kind| kind as usize)] += 1;
            let unnecessary = truth.is_some_and(|truth| truth.unnecessary);
            counts.spurious[0] += u32::from(unnecessary && label.spurious);
            counts.spurious[1] += u32::from(unnecessary);
            counts.spurious[2] += u32::from(!unnecessary && label.spurious);
        }
    }

    /// Adds those of another path.
    pub(crate) fn merge(&mut self, other: &Agreement) {
        for (sum, counts) in self.0.iter_mut().zip(&other.0) {
            for (sums, row) in sum.confusion.iter_mut().zip(&counts.confusion) {
                for (sum, count) in sums.iter_mut().zip(row) {
                    *sum += count;
                }
            }
            for (sum, count) in sum.spurious.iter_mut().zip(&counts.spurious) {
                *sum += count;
            }
        }
    }
}

/// The packets of a capture that were retransmitted or have a label.
fn compared<'a>(
    run: &'a Run,
    truth: &'a HashMap<usize, Retransmission>,
    labels: &'a [Option<Label>],
) -> impl Iterator<Item = (usize, Option<Retransmission>, Label)> + 'a {
    run.packets.iter().zip(labels).enumerate().filter_map(|(place, (packet, label))| {
        let label = label.filter(|_| packet.is_data)?;
        let truth = truth.get(&place).copied();
        (truth.is_some() || label.kind.is_some()).then_some((place, truth, label))
    })
}

/// A path's row.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) agreement: &'a Agreement,
}

impl Display for Row<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Row { name, agreement } = self;
        write!(f, "{name:<24}")?;
        for counts in &agreement.0 {
            let (sum, right, exact) = counts.shares();
            let spurious = format!("{}/{}", counts.spurious[0], counts.spurious[1]);
            write!(f, " {sum:>8} {right:>6.1}% {exact:>6.1}% {spurious:>10}    ")?;
        }
        Ok(())
    }
}

/// The confusion tables over all, and the promised shares.
pub(crate) struct Summary<'a>(pub(crate) &'a Agreement);

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let places = ["sender", "receiver"].into_iter().zip([99.0, 95.0]);
        for ((place, promised), counts) in places.zip(&self.0.0) {
            let (sum, right, _) = counts.shares();
            let verdict = if right >= promised { "kept" } else { "NOT KEPT" };
            writeln!(
                f,
                "At the {place}: {right:.2} % of {sum} right, promised {promised} %: {verdict}"
            )?;
            write!(f, "{:>18}", "true \\ label")?;
            for kind in RetransmissionKind::ALL {
                write!(f, " {:>15}", kind.name())?;
            }
            writeln!(f, " {:>15}", "none")?;
            for (row, name) in counts.confusion.iter().zip(names()) {
                write!(f, "{name:>18}")?;
                for count in row {
                    write!(f, " {count:>15}")?;
                }
                writeln!(f)?;
            }
            let [recognised, unnecessary, wrong] = counts.spurious;
            writeln!(
                f,
                "  spurious: {recognised} of {unnecessary} unnecessary ones recognised, \
                 {wrong} necessary ones so labelled\n"
            )?;
        }
        Ok(())
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    RetransmissionKind::ALL.into_iter().map(RetransmissionKind::name).chain(["not retransmitted"])
}

/// Lists the packets of a capture whose label is another one.
pub(crate) fn show(
    run: &Run,
    truth: &HashMap<usize, Retransmission>,
    labels: &[Option<Label>],
    at_sender: bool,
) {
    let place_name = if at_sender { "sender" } else { "receiver" };
    for (place, truth, label) in compared(run, truth, labels) {
        let kind = truth.and_then(|truth| truth.kind);
        let same =
            |kind: Option<RetransmissionKind>| kind.map_or(NONE, |kind| state(kind as usize));
        if same(kind) != same(label.kind) {
            let packet = &run.packets[place];
            let name =
                |kind: Option<RetransmissionKind>| kind.map_or("none", RetransmissionKind::name);
            println!(
                "  {place_name}: packet {} at {:.6} s, port {}: {}, labelled {}",
                place + 1,
                packet.arrived_ns as f64 / 1e9,
                packet.port,
                name(kind),
                name(label.kind),
            );
        }
    }
}
