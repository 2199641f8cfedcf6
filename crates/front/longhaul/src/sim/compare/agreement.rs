//! How far simulated runs and those in a lab agree.

use model::statistics::{mean, mean_interval, median};
use record::{SimAgreement, SimRunFigures, SimVerdict};
use units::percent;

/// Level of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The figures under both: the goodput of all flows first.
pub(super) fn of(
    groups: &[&str],
    simulated: &[SimRunFigures],
    lab: &[SimRunFigures],
) -> Vec<SimAgreement> {
    let pairs: Vec<(&SimRunFigures, &SimRunFigures)> =
        simulated.iter().zip(lab).filter(|(_, lab)| lab.not_valid.is_empty()).collect();
    let figure = |name: String, unit: &str, of: &dyn Fn(&SimRunFigures) -> Option<f64>| {
        let both: Option<Vec<(f64, f64)>> =
            pairs.iter().map(|(simulated, lab)| Some((of(simulated)?, of(lab)?))).collect();
        agreement(name, unit, &both?)
    };
    let all = |run: &SimRunFigures| Some(run.all_bps.as_f64());
    let mut figures = vec![figure("goodput".to_owned(), "bit/s", &all)];
    if groups.len() > 1 {
        figures.extend(groups.iter().enumerate().map(|(index, name)| {
            let of = |run: &SimRunFigures| Some(run.goodput_bps.get(index)?.as_f64());
            figure(format!("goodput of {name}"), "bit/s", &of)
        }));
    }
    figures.push(figure("retransmits".to_owned(), "", &|run| Some(run.retransmits as f64)));
    figures.push(figure("median RTT".to_owned(), "ms", &|run| run.rtt_median_ms));
    figures.into_iter().flatten().collect()
}

fn agreement(figure: String, unit: &str, pairs: &[(f64, f64)]) -> Option<SimAgreement> {
    let (simulated, lab): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let logarithms: Option<Vec<f64>> = pairs
        .iter()
        .map(|(simulated, lab)| (*simulated > 0.0 && *lab > 0.0).then(|| (simulated / lab).ln()))
        .collect();
    let ratio = logarithms.as_deref().and_then(mean).map(f64::exp);
    let interval = logarithms.as_deref().and_then(|all| mean_interval(all, CONFIDENCE));
    Some(SimAgreement {
        figure,
        unit: unit.to_owned(),
        simulated: median(&simulated)?,
        lab: median(&lab)?,
        ratio,
        interval: interval.map(|interval| [interval.low.exp(), interval.high.exp()]),
    })
}

/// The verdict on the goodput of all flows. Without an interval there is none.
pub(super) fn verdict(
    figures: &[SimAgreement],
    lab: &[SimRunFigures],
    tolerance: f64,
) -> (SimVerdict, String) {
    let valid = lab.iter().filter(|run| run.not_valid.is_empty()).count();
    let within = percent(tolerance);
    let Some((ratio, [low, high])) =
        figures.first().and_then(|goodput| Some((goodput.ratio?, goodput.interval?)))
    else {
        let runs = if valid == 1 { "run" } else { "runs" };
        let sentence =
            format!("No verdict: {valid} valid {runs} in the lab; an interval needs at least 2.");
        return (SimVerdict::CannotTell, sentence);
    };
    let shown = format!(
        "the simulator's goodput is {ratio:.3} of the kernel's (95 % interval {low:.3} to {high:.3}, \
         {valid} pairs)"
    );
    if low >= 1.0 - tolerance && high <= 1.0 + tolerance {
        (SimVerdict::Agrees, format!("Agrees within {within}: {shown}."))
    } else if high < 1.0 - tolerance || low > 1.0 + tolerance {
        (SimVerdict::Differs, format!("Differs by more than {within}: {shown}."))
    } else {
        (
            SimVerdict::CannotTell,
            format!(
                "Neither agrees nor differs within {within}: {shown}; more runs narrow the interval."
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::BitRate;

    fn runs(goodputs: &[u64], invalid: &[usize]) -> Vec<SimRunFigures> {
        let run = |(index, mbit): (usize, &u64)| SimRunFigures {
            seed: index as u64,
            all_bps: BitRate::from_bps(mbit * 1_000_000),
            goodput_bps: vec![BitRate::from_bps(mbit * 1_000_000)],
            retransmits: 3,
            rtt_median_ms: Some(20.0),
            not_valid: if invalid.contains(&index) { vec!["late".to_owned()] } else { Vec::new() },
        };
        goodputs.iter().enumerate().map(run).collect()
    }

    fn verdict_of(simulated: &[u64], lab: &[u64], invalid: &[usize]) -> (SimVerdict, String) {
        let lab = runs(lab, invalid);
        let figures = of(&["cubic"], &runs(simulated, &[]), &lab);
        verdict(&figures, &lab, 0.1)
    }

    #[test]
    fn the_interval_decides_and_invalid_runs_do_not_count() {
        let [agrees, differs, wide] = [
            verdict_of(&[100, 101, 99], &[100, 100, 100], &[]),
            verdict_of(&[100, 101, 99], &[50, 50, 51], &[]),
            verdict_of(&[100, 100, 100], &[60, 100, 150], &[]),
        ];
        assert_eq!(agrees.0, SimVerdict::Agrees, "{}", agrees.1);
        assert_eq!(differs.0, SimVerdict::Differs, "{}", differs.1);
        assert_eq!(wide.0, SimVerdict::CannotTell, "{}", wide.1);
        // Without the invalid run, the others agree.
        let (verdict, sentence) = verdict_of(&[100, 101, 99], &[100, 5, 100], &[1]);
        assert_eq!(verdict, SimVerdict::Agrees, "{sentence}");
        let (verdict, sentence) = verdict_of(&[100, 100], &[100, 100], &[1]);
        assert_eq!(verdict, SimVerdict::CannotTell, "{sentence}");
        assert!(sentence.contains("1 valid run in the lab"), "{sentence}");
    }

    #[test]
    fn groups_have_a_row_each() {
        let run = |goodput: [u64; 2]| SimRunFigures {
            seed: 1,
            all_bps: BitRate::from_bps(goodput.iter().sum()),
            goodput_bps: goodput.map(BitRate::from_bps).to_vec(),
            retransmits: 0,
            rtt_median_ms: None,
            not_valid: Vec::new(),
        };
        let figures = of(&["cubic", "bbr"], &[run([4, 6])], &[run([2, 3])]);
        let names: Vec<&str> = figures.iter().map(|one| one.figure.as_str()).collect();
        assert_eq!(names, ["goodput", "goodput of cubic", "goodput of bbr", "retransmits"]);
        assert_eq!((figures[0].simulated, figures[0].ratio), (10.0, Some(2.0)));
        assert_eq!((figures[3].ratio, figures[0].interval), (None, None));
    }
}
