//! The figures in words.

use super::figures::{Figures, Group, Mistake, Share};
use super::{Arm, ArmFigures};
use std::fmt;

/// Mistakes that are listed.
const LISTED: usize = 25;

impl Arm {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Arm::Finding => "finding",
            Arm::FindingForRate => "finding for rate",
            Arm::Nothing => "nothing",
            Arm::BuffersAndBbr => "buffers and BBR",
            Arm::Best => "best of the menu",
        }
    }
}

/// In percent, with Wilson's 95 % interval: `87.3 (83 to 91)`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(interval) = model::wilson_interval(self.of, self.all) else {
            return f.pad("-");
        };
        let percent = self.of as f64 * 100.0 / self.all as f64;
        let (low, high) = (interval.low * 100.0, interval.high * 100.0);
        f.pad(&format!("{percent:.1} ({low:.0} to {high:.0})"))
    }
}

impl fmt::Display for ArmFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(
            f,
            "{:<17}{:<17}{:<17}{:>6.1}{:>6.1}  {:<15}{:>6.1}{:>6.1}",
            self.right.to_string(),
            self.right_with_gain.to_string(),
            self.honest_no.to_string(),
            percent(self.regret),
            percent(self.regret_p90),
            self.slower.to_string(),
            percent(self.harm),
            percent(self.harm_p90),
        )
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group { cause_right, arms } = &self.all;
        writeln!(f, "All figures in percent, shares with their 95 % intervals (Wilson)\n")?;
        writeln!(f, "cause right       {cause_right}")?;
        writeln!(
            f,
            "{:<18}{:<17}{:<17}{:<17}{:>6}{:>6}  {:<15}{:>6}{:>6}",
            "",
            "action right",
            "where one gains",
            "honest no",
            "regret",
            "p90",
            "slower",
            "harm",
            "p90"
        )?;
        for (arm, figures) in Arm::ALL.into_iter().zip(arms) {
            writeln!(f, "{:<18}{figures}", arm.name())?;
        }
        let best = self.best.iter().map(|(name, count)| format!("{name} {count}"));
        writeln!(f, "\nThe simplest right action: {}\n", best.collect::<Vec<_>>().join(", "))?;
        groups(f, "family", self.families.iter().map(|(name, group)| (*name, group)))?;
        writeln!(f)?;
        groups(f, "found", self.found.iter().map(|(limit, group)| (limit.name(), group)))?;
        writeln!(f, "\nWrong advice: runs, of these with the right cause, mean regret")?;
        for Mistake { found, advised, best, runs, regret } in self.mistakes.iter().take(LISTED) {
            let missed = regret * 100.0 / runs.all.max(1) as f64;
            let found = found.name();
            writeln!(
                f,
                "{:4} {:4} {missed:4.0} %  {found:<21} advised {advised:<17} best {best}",
                runs.all, runs.of
            )?;
        }
        Ok(())
    }
}

/// A line for each group: its runs, the cause, the action of four arms, and the finding's regret.
fn groups<'a>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    all: impl Iterator<Item = (&'a str, &'a Group)>,
) -> fmt::Result {
    writeln!(
        f,
        "{title:<22}{:>4}  {:<17}{:<17}{:<17}{:<17}{:<17}{:>6}{:>6}",
        "runs",
        "cause right",
        "action right",
        "for rate",
        "nothing",
        "buffers and BBR",
        "regret",
        "p90"
    )?;
    for (name, Group { cause_right, arms: [finding, for_rate, nothing, buffers, _] }) in all {
        writeln!(
            f,
            "{name:<22}{:>4}  {:<17}{:<17}{:<17}{:<17}{:<17}{:>6.1}{:>6.1}",
            cause_right.all,
            cause_right.to_string(),
            finding.right.to_string(),
            for_rate.right.to_string(),
            nothing.right.to_string(),
            buffers.right.to_string(),
            finding.regret * 100.0,
            finding.regret_p90 * 100.0,
        )?;
    }
    Ok(())
}
