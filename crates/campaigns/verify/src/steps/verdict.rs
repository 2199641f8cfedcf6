//! Decides whether a step helped, from the statistics of its tests.

use diagnose::repeats;
use record::{
    Direction, Finding, RemedyCommand, RemedyPlace, RunFigures, StepDirection, StepVerdict,
};
use units::BitRate;

/// A smaller relative difference does not justify a setting.
const MIN_GAIN: f64 = 0.02;

/// The tests of one direction.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) without: Vec<RunFigures>,
    pub(super) with: Vec<RunFigures>,
    /// The first test without the step, explained.
    pub(super) found: Option<Finding>,
}

/// The result of one direction. `keys` are the step's settings, `congestion`
/// the congestion control among them.
pub(super) fn direction_result(
    direction: Direction,
    runs: Runs,
    keys: &[&str],
    congestion: Option<&str>,
) -> StepDirection {
    let comparison = repeats::compare(&runs.without, &runs.with);
    let (predicted_bps, prediction) = runs.found.as_ref().map_or_else(
        || (None, String::new()),
        |found| predicted(found, direction, keys, congestion),
    );
    let of_predicted_gain = predicted_bps.and_then(|predicted| {
        let gain = predicted.as_f64() - comparison.baseline_bps;
        (gain > 0.0).then(|| comparison.difference_bps / gain)
    });
    StepDirection {
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

/// The gain that the finding predicts for these settings.
fn predicted(
    found: &Finding,
    direction: Direction,
    keys: &[&str],
    congestion: Option<&str>,
) -> (Option<BitRate>, String) {
    let ours = place(direction);
    let asked = congestion.map(|name| RemedyCommand::CongestionControl(name.to_owned()));
    let remedy = found.remedies.iter().find(|remedy| match remedy.place {
        RemedyPlace::Call => asked.as_ref() == Some(&remedy.command),
        place => place == ours && remedy.setting.as_deref().is_some_and(|key| keys.contains(&key)),
    });
    match remedy {
        Some(remedy) => (remedy.expects_bps, remedy.why.clone()),
        None => (None, "none: the finding names another limit".to_owned()),
    }
}

/// Which end of a transfer this host is.
pub(super) fn place(direction: Direction) -> RemedyPlace {
    if direction == Direction::Reverse { RemedyPlace::Receiver } else { RemedyPlace::Sender }
}

/// Keeps what helped one direction and hurt none.
pub(super) fn decide(ways: &[StepDirection]) -> (StepVerdict, String) {
    let share = |way: &StepDirection| {
        let real = way.comparison.real == Some(true);
        way.comparison.difference_share.filter(|_| real).unwrap_or(0.0)
    };
    let helped = ways.iter().find(|way| share(way) >= MIN_GAIN);
    let hurt = ways.iter().find(|way| share(way) <= -MIN_GAIN);
    let said = |way: Option<&StepDirection>| {
        way.map(|way| way.comparison.sentence.clone()).unwrap_or_default()
    };
    match (helped, hurt) {
        (Some(_), None) => (StepVerdict::Kept, said(helped)),
        (_, Some(_)) => (StepVerdict::RolledBack, said(hurt)),
        (None, None) if ways.iter().any(|way| share(way) != 0.0) => (
            StepVerdict::RolledBack,
            format!(
                "The difference is significant but below {:.0} %, too little to keep a setting.",
                MIN_GAIN * 100.0
            ),
        ),
        (None, None) => (StepVerdict::RolledBack, said(ways.first())),
    }
}
