//! A finding beside the truth, and the tables.

use crate::cases::Case;
use crate::headline;
use crate::views::View;
use record::{Caveat, Confidence, Finding, Limit, Measurement};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The shares of time with nothing to send below and from which the application is no limit, or is
/// one; in between both are right, and nothing is scored.
const BUSY: f64 = 0.4;
const IDLE: f64 = 0.6;

/// The probability from which a finding counts as sure of itself.
const CONFIDENT: f64 = 0.9;

/// How a finding compares with the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Unknown,
    Wrong,
    ConfidentlyWrong,
}

/// A view of a run with its finding.
pub(crate) struct Scored {
    pub(crate) family: &'static str,
    pub(crate) view: View,
    pub(crate) verdict: Verdict,
    pub(crate) contradiction: Option<String>,
    truth: Limit,
    found: Limit,
    probability: f64,
    sentence: String,
}

/// The true limit of a run; `None` where two are as right.
pub(crate) fn truth(case: &Case, idle_share: f64) -> Option<Limit> {
    match case.control {
        Some(limit) => (idle_share < BUSY).then_some(limit),
        None => (idle_share >= IDLE).then_some(Limit::Application),
    }
}

impl Scored {
    pub(crate) fn new(
        case: &Case,
        view: View,
        truth: Limit,
        (finding, m): (&Finding, &Measurement),
    ) -> Self {
        let found = finding.limit.unwrap_or(Limit::Unknown);
        let probability = finding.posterior.first().map_or(0.0, |p| p.probability);
        let is_sure = finding.confidence == Some(Confidence::Sure) || probability >= CONFIDENT;
        let of_one =
            |caveat: &Caveat| matches!(caveat, Caveat::DataOnly | Caveat::AcknowledgementsOnly);
        let verdict = match found {
            // One direction shows no limit, and that is said first.
            Limit::Unknown if view == View::OneDirection => {
                let is_said = finding.caveats.first().is_some_and(of_one);
                if is_said { Verdict::Right } else { Verdict::Unknown }
            }
            Limit::Unknown => Verdict::Unknown,
            _ if found == truth => Verdict::Right,
            _ if is_sure => Verdict::ConfidentlyWrong,
            _ => Verdict::Wrong,
        };
        let contradiction = diagnose::contradiction(finding, m).map(|why| format!("{why:?}"));
        let contradiction = contradiction.or_else(|| {
            headline::contradiction(&finding.sentence, finding.throughput_bps.as_f64())
        });
        let sentence = finding.sentence.clone();
        let family = case.family;
        Scored { family, view, verdict, contradiction, truth, found, probability, sentence }
    }
}

impl fmt::Display for Scored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scored { view, verdict, truth, found, probability, sentence, .. } = self;
        let verdict = match verdict {
            Verdict::Right => "right",
            Verdict::Unknown => "unknown",
            Verdict::Wrong => "wrong",
            Verdict::ConfidentlyWrong => "SURELY WRONG",
        };
        let (truth, found) = (truth.name(), found.name());
        write!(
            f,
            "  {:<13} {verdict}: {truth}, found {found} {probability:.2}: {sentence}",
            view.name()
        )?;
        match &self.contradiction {
            Some(why) => write!(f, "\n    CONTRADICTION: {why}"),
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Counts {
    views: u32,
    right: u32,
    unknown: u32,
    wrong: u32,
    surely_wrong: u32,
    contradictions: u32,
}

impl Counts {
    fn add(&mut self, one: &Scored) {
        self.views += 1;
        match one.verdict {
            Verdict::Right => self.right += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Wrong => self.wrong += 1,
            Verdict::ConfidentlyWrong => self.surely_wrong += 1,
        }
        self.contradictions += u32::from(one.contradiction.is_some());
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u32| f64::from(part) * 100.0 / f64::from(self.views.max(1));
        write!(
            f,
            "{:5} {:7.1} {:8.1} {:6.1} {:13.1} {:15}",
            self.views,
            percent(self.right),
            percent(self.unknown),
            percent(self.wrong),
            percent(self.surely_wrong),
            self.contradictions
        )
    }
}

/// The results by family, by view, and of all.
pub(crate) fn table(all: &[Scored]) -> String {
    let mut families: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut views: BTreeMap<View, Counts> = BTreeMap::new();
    let mut total = Counts::default();
    for one in all {
        families.entry(one.family).or_default().add(one);
        views.entry(one.view).or_default().add(one);
        total.add(one);
    }
    let mut text =
        format!("{:<14} views right % unknown % wrong % surely wrong % contradictions\n", "");
    let mut row = |name: &str, counts: &Counts| {
        let _ = writeln!(text, "{name:<14} {counts}");
    };
    families.iter().for_each(|(name, counts)| row(name, counts));
    views.iter().for_each(|(view, counts)| row(view.name(), counts));
    row("all", &total);
    text
}
