//! Whether a step helped, by the statistics of its tests.

use diagnose::repeats;
use record::{Direction, Finding, RemedyPlace, RunFigures, StepVerdict, StepWay};
use units::BitRate;

/// A difference of a smaller share is not worth a setting, real or not.
const WORTH: f64 = 0.02;

/// The tests of one direction.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) without: Vec<RunFigures>,
    pub(super) with: Vec<RunFigures>,
    /// The first test without the step, explained.
    pub(super) found: Option<Finding>,
}

/// What they come to. `keys` are the step's settings, `congestion` the
/// congestion control among them.
pub(super) fn way(
    direction: Direction,
    runs: Runs,
    keys: &[&str],
    congestion: Option<&str>,
) -> StepWay {
    let comparison = repeats::compare(&runs.without, &runs.with);
    let (predicted_bps, prediction) = runs.found.as_ref().map_or_else(
        || (None, String::new()),
        |found| predicted(found, direction, keys, congestion),
    );
    let of_predicted_gain = predicted_bps.and_then(|predicted| {
        let gain = predicted.as_f64() - comparison.baseline_bps;
        (gain > 0.0).then(|| comparison.difference_bps / gain)
    });
    StepWay {
        direction,
        before_summary: repeats::summary(&runs.without),
        before: runs.without,
        after_summary: repeats::summary(&runs.with),
        after: runs.with,
        comparison,
        predicted_bps,
        prediction,
        of_predicted_gain,
    }
}

/// What the finding promises of these settings.
fn predicted(
    found: &Finding,
    direction: Direction,
    keys: &[&str],
    congestion: Option<&str>,
) -> (Option<BitRate>, String) {
    let ours = place(direction);
    let asked = congestion.map(|name| format!("-C {name}"));
    let remedy = found.remedies.iter().find(|remedy| match remedy.place {
        RemedyPlace::Call => asked.as_deref() == Some(&remedy.command),
        place => place == ours && remedy.setting.as_deref().is_some_and(|key| keys.contains(&key)),
    });
    match remedy {
        Some(remedy) => (remedy.expects_bps, remedy.why.clone()),
        None => (None, "none: this is not what the finding says holds it".to_owned()),
    }
}

/// Which end of a transfer this host is.
pub(super) fn place(direction: Direction) -> RemedyPlace {
    if direction == Direction::Reverse { RemedyPlace::Receiver } else { RemedyPlace::Sender }
}

/// Keeps what helped one direction and hurt none.
pub(super) fn decide(ways: &[StepWay]) -> (StepVerdict, String) {
    let share = |way: &StepWay| {
        let real = way.comparison.real == Some(true);
        way.comparison.difference_share.filter(|_| real).unwrap_or(0.0)
    };
    let helped = ways.iter().find(|way| share(way) >= WORTH);
    let hurt = ways.iter().find(|way| share(way) <= -WORTH);
    let said =
        |way: Option<&StepWay>| way.map(|way| way.comparison.sentence.clone()).unwrap_or_default();
    match (helped, hurt) {
        (Some(_), None) => (StepVerdict::Kept, said(helped)),
        (_, Some(_)) => (StepVerdict::RolledBack, said(hurt)),
        (None, None) if ways.iter().any(|way| share(way) != 0.0) => (
            StepVerdict::RolledBack,
            format!(
                "The difference is real and under {:.0} %, too little for a setting.",
                WORTH * 100.0
            ),
        ),
        (None, None) => (StepVerdict::RolledBack, said(ways.first())),
    }
}
