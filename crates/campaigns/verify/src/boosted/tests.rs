//! The schedule and the statistics, with runs from a list in virtual time.

use super::*;
use problem::Fault;
use record::{BoostMeasure, BoostVerdict, BoostVerification};
use units::ByteCount;

/// Runs take the times of a list, in order; each advances a virtual clock.
struct Script {
    /// Seconds of a direct and of a boosted run; `None`: it fails.
    times: [Vec<Option<f64>>; 2],
    goodput_bps: Option<[u64; 2]>,
    /// Goodput of the CUBIC flow alone, beside direct, beside boosted.
    cubic: [u64; 3],
    /// So many of the flow's tests fail first.
    lost: u32,
    now_s: f64,
    /// The time at which the user interrupts it.
    stop_s: f64,
    log: String,
}

impl Script {
    fn new(direct: &[f64], boosted: &[f64]) -> Self {
        let some = |times: &[f64]| times.iter().copied().map(Some).rev().collect();
        Script {
            times: [some(direct), some(boosted)],
            goodput_bps: None,
            cubic: [90_000_000, 45_000_000, 18_000_000],
            lost: 0,
            now_s: 0.0,
            stop_s: f64::INFINITY,
            log: String::new(),
        }
    }

    fn verify(&mut self, repeats: u32, harm_rounds: u32) -> BoostVerification {
        let done = run(BoostSchedule { repeats, harm_rounds }, self).unwrap();
        compare(done, "cmd".to_owned(), None, None)
    }
}

fn index(way: BoostWay) -> usize {
    usize::from(way == BoostWay::Boosted)
}

impl BoostRunner for Script {
    fn run(&mut self, way: BoostWay) -> Result<BoostRun, Problem> {
        let time = self.times[index(way)].pop().expect("as many as are run");
        self.now_s += time.unwrap_or(1.0);
        if way == BoostWay::Boosted && self.is_stopped() {
            // Its box does not get ready.
            return Err(Problem::new(Fault::Interrupted, "interrupted"));
        }
        Ok(BoostRun {
            way,
            seconds: time.unwrap_or(1.0),
            setup_s: None,
            // Only boxes count bytes.
            bytes: (way == BoostWay::Boosted).then(|| ByteCount::from_bytes(500_000_000)),
            goodput_bps: self.goodput_bps.map(|rates| BitRate::from_bps(rates[index(way)])),
            cpu_s: if way == BoostWay::Boosted { 2.0 } else { 0.5 },
            failed: time.is_none().then(|| "exit code 1".to_owned()),
        })
    }

    fn cubic(&mut self, beside: Option<BoostWay>, seconds: f64) -> Result<BitRate, Problem> {
        self.now_s += seconds;
        if self.lost > 0 {
            self.lost -= 1;
            return Err(Problem::new(Fault::Host, "lost"));
        }
        Ok(BitRate::from_bps(self.cubic[beside.map_or(0, |way| 1 + index(way))]))
    }

    fn report(&mut self, progress: BoostProgress<'_>) {
        self.log += match progress {
            BoostProgress::Run { way: BoostWay::Direct, .. } => "A",
            BoostProgress::Run { way: BoostWay::Boosted, .. } => "B",
            BoostProgress::Cubic { beside: None, .. } => "-",
            BoostProgress::Cubic { beside: Some(BoostWay::Direct), .. } => "a",
            BoostProgress::Cubic { beside: Some(BoostWay::Boosted), .. } => "b",
            BoostProgress::Ended(_) | BoostProgress::CubicEnded(_) => "",
        };
    }

    fn is_stopped(&self) -> bool {
        self.now_s >= self.stop_s
    }
}

#[test]
fn a_gain_has_its_interval_and_its_price() {
    let mut script = Script::new(&[12.0, 12.6, 11.7, 12.3], &[3.0, 3.1, 3.0, 2.9]);
    let found = script.verify(4, 0);
    assert_eq!(script.log, "ABBAABBA");
    let gain = found.gain.unwrap();
    // ln of 4, 12.6/3.1, 3.9, 12.3/2.9: mean 1.3986, deviation 0.0358, t(0.95, 3) = 3.182.
    assert!((gain.ratio - 4.05).abs() < 0.01 && gain.pairs == 4, "{gain:?}");
    assert!((gain.low.unwrap() - 3.82).abs() < 0.02 && (gain.high.unwrap() - 4.29).abs() < 0.02);
    assert_eq!(found.verdict, BoostVerdict::Gain);
    // 0.5 s and 2 s for half a gigabyte each.
    assert_eq!((found.direct.cpu_s_per_gb, found.boosted.cpu_s_per_gb), (Some(1.0), Some(4.0)));
    assert!(found.sentence.starts_with("Gain ×4.05 (95 % interval ×3.8"), "{}", found.sentence);
    assert!(found.sentence.contains("CPU time per GB: 1 s direct, 4 s boosted"), "{found:?}");
}

#[test]
fn drift_of_the_path_is_no_gain_and_noise_is_no_answer() {
    // A run is 1 % slower than the one before it, boosted or not.
    let at = |runs: [i32; 4]| runs.map(|run| 10.0 * 1.01f64.powi(run));
    let found = Script::new(&at([0, 3, 4, 7]), &at([1, 2, 5, 6])).verify(4, 0);
    assert!((found.gain.unwrap().ratio - 1.0).abs() < 1e-9);
    assert_eq!(found.verdict, BoostVerdict::NoGain, "{}", found.sentence);
    let found = Script::new(&[10.0, 12.0, 9.0, 11.0], &[8.0, 11.0, 10.0, 7.0]).verify(4, 0);
    assert_eq!(found.verdict, BoostVerdict::CannotTell);
    assert!(found.sentence.contains("repeat more often"), "{}", found.sentence);
    let found = Script::new(&[10.0; 2], &[20.0, 21.0]).verify(2, 0);
    assert!(found.sentence.starts_with("No gain: boosted runs are slower"), "{}", found.sentence);
    let one = Script::new(&[10.0], &[2.0]).verify(1, 0);
    assert_eq!((one.verdict, one.gain.unwrap().low), (BoostVerdict::CannotTell, None));
}

#[test]
fn goodput_is_compared_where_the_command_reports_it() {
    let mut script = Script::new(&[10.0; 2], &[10.0; 2]);
    script.goodput_bps = Some([3_000_000, 90_000_000]);
    let found = script.verify(2, 0);
    assert_eq!(found.measure, BoostMeasure::Goodput);
    assert!((found.gain.unwrap().ratio - 30.0).abs() < 1e-9);
    assert!(found.sentence.contains("medians 3 Mbit/s direct, 90 Mbit/s boosted"), "{found:?}");
}

#[test]
fn failed_runs_are_counted_and_their_pairs_left_out() {
    let mut script = Script::new(&[10.0; 4], &[5.0; 4]);
    script.times[1][2] = None;
    let found = script.verify(4, 0);
    assert_eq!((found.boosted.completed, found.boosted.failed), (3, 1));
    assert_eq!(found.gain.unwrap().pairs, 3);
    assert!(found.sentence.contains("1 of 4 boosted runs failed"), "{}", found.sentence);
    let mut never = Script::new(&[10.0; 2], &[5.0; 2]);
    never.times[1] = vec![None, None];
    let found = never.verify(2, 1);
    assert_eq!((found.gain, found.verdict), (None, BoostVerdict::CannotTell));
    assert_eq!(never.log, "ABBA", "without a boosted transfer there is no harm of one");
    let mut both = Script::new(&[], &[]);
    both.times = [vec![None; 2], vec![None; 2]];
    let problem = run(BoostSchedule { repeats: 2, harm_rounds: 0 }, &mut both).unwrap_err();
    assert!(problem.message.contains("fails both ways"), "{problem}");
    assert_eq!(both.log, "AB");
}

#[test]
fn harm_is_the_share_of_a_cubic_flow_that_is_taken_away() {
    let mut script = Script::new(&[40.0; 2], &[20.0; 2]);
    let found = script.verify(2, 2);
    assert_eq!(script.log, "ABBA-abba-");
    let harm = found.harm.unwrap();
    assert_eq!((harm.direct, harm.boosted), (0.5, 0.8));
    // Within the shorter of the two transfers.
    assert_eq!((harm.seconds, harm.rounds), (16.0, 2));
    assert!(found.sentence.ends_with("harm 0.50 and 0.80."), "{}", found.sentence);
    let mut lost = Script { lost: 1, ..Script::new(&[40.0; 2], &[20.0; 2]) };
    let found = lost.verify(2, 2);
    assert_eq!((found.harm.unwrap().rounds, found.notes.len()), (1, 1));
    let mut short = Script::new(&[4.0; 2], &[1.0; 2]);
    let found = short.verify(2, 2);
    assert_eq!((short.log.as_str(), found.harm), ("ABBA", None));
    assert!(found.notes[0].contains("the flow needs 5 s"), "{:?}", found.notes);
}

#[test]
fn an_interruption_leaves_what_was_measured() {
    let mut script = Script::new(&[10.0; 4], &[5.0; 4]);
    script.stop_s = 21.0;
    let found = script.verify(4, 1);
    assert!(found.interrupted);
    assert_eq!(found.runs.len(), 3, "the fourth was cut off");
    let mut script = Script { stop_s: 14.0, ..Script::new(&[10.0; 4], &[5.0; 4]) };
    let found = script.verify(4, 1);
    assert!(found.interrupted);
    assert_eq!(found.runs.len(), 1, "the second could not begin");
}
