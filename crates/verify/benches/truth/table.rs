//! The confusion matrix: what was made against what was found.

use record::Limit;
use std::{collections::BTreeMap, fmt};

/// In the order of rows and columns.
const LIMITS: [Limit; 11] = [
    Limit::ReceiveWindow,
    Limit::SendBuffer,
    Limit::Application,
    Limit::PathRate,
    Limit::Loss,
    Limit::Policer,
    Limit::Pacing,
    Limit::Ramp,
    Limit::Cpu,
    Limit::Congestion,
    Limit::Unknown,
];

#[derive(Default)]
pub(crate) struct Table {
    counts: BTreeMap<(usize, usize), u32>,
    all: u32,
    right: u32,
    surely_wrong: u32,
}

impl Table {
    pub(crate) fn add(&mut self, truth: Limit, found: Limit, sure: bool) {
        let at = |limit| LIMITS.iter().position(|other| *other == limit).unwrap_or_default();
        *self.counts.entry((at(truth), at(found))).or_default() += 1;
        self.all += 1;
        self.right += u32::from(truth == found);
        self.surely_wrong += u32::from(truth != found && sure);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |row, column| self.counts.get(&(row, column)).copied().unwrap_or_default();
        let rows = (0..LIMITS.len()).filter(|row| (0..LIMITS.len()).any(|c| count(*row, c) > 0));
        let columns: Vec<usize> =
            (0..LIMITS.len()).filter(|c| (0..LIMITS.len()).any(|row| count(row, *c) > 0)).collect();
        write!(f, "{:<16}", "made \\ found")?;
        for column in &columns {
            write!(f, "{:>15}", LIMITS[*column].name())?;
        }
        writeln!(f)?;
        for row in rows {
            write!(f, "{:<16}", LIMITS[row].name())?;
            for column in &columns {
                match count(row, *column) {
                    0 => write!(f, "{:>15}", ".")?,
                    n => write!(f, "{n:>15}")?,
                }
            }
            writeln!(f)?;
        }
        let percent = |part: u32| f64::from(part) * 100.0 / f64::from(self.all.max(1));
        writeln!(
            f,
            "\n{} runs: right {:.1} % (promised 95), sure and wrong {:.1} % (promised 1 at most)",
            self.all,
            percent(self.right),
            percent(self.surely_wrong)
        )
    }
}
