use super::*;

const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

/// Numbers that look random, the same in each run.
struct Draws(u64);

impl Draws {
    /// Between 0 and `most`.
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) as i64) % most.max(1)
    }
}

/// A path with constant delays of both directions, a queue of up to 5 ms in each.
struct Path {
    there: i64,
    back: i64,
    seconds: i64,
}

impl Path {
    /// Samples of both directions for a clock of B: its time at a true time.
    fn samples(&self, clock: impl Fn(i64) -> i64) -> [Vec<ClockSample>; 2] {
        let mut draws = Draws(7);
        let [mut there, mut back] = [Vec::new(), Vec::new()];
        for at in (0..self.seconds * S).step_by(4 * MS as usize) {
            let at = at + 1_700_000_000 * S;
            let delay = self.there + draws.below(5 * MS);
            there.push(ClockSample { a_ns: at, b_ns: clock(at + delay) });
            let delay = self.back + draws.below(5 * MS);
            back.push(ClockSample { a_ns: at + delay, b_ns: clock(at) });
        }
        [there, back]
    }

    fn estimate(&self, clock: impl Fn(i64) -> i64) -> Clock {
        let [there, back] = self.samples(clock);
        Clock::estimate(&there, &back)
    }
}

/// True time since the captures began.
fn since(at: i64) -> i64 {
    at - 1_700_000_000 * S
}

#[test]
fn offset_and_drift_are_found() {
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 30 };
    let clock = path.estimate(|at| at + 3200 * MS + since(at) * 40 / 1_000_000);
    let [segment] = &clock.segments[..] else { panic!("{clock:?}") };
    assert_eq!((clock.basis, clock.unsuitable), (ClockBasis::BothDirections, None));
    let drift = segment.drift.unwrap();
    assert!((drift - 40e-6).abs() < 2e-6 && segment.drift_uncertainty < 20e-6, "{segment:?}");
    assert!((segment.offset_ns - 3200 * MS).abs() < MS / 5, "{segment:?}");
    assert!((segment.uncertainty_ns.unwrap() - 20 * MS).abs() < MS / 2);
    // Both ways of converting agree, and with the truth.
    let at = 1_700_000_020 * S;
    let truth = at + 3200 * MS + 20 * S * 40 / 1_000_000;
    assert!((at + clock.difference_ns(at) - truth).abs() < MS / 5);
    assert!((clock.in_a(truth) - at).abs() < MS / 5);
}

#[test]
fn the_error_is_half_of_the_asymmetry() {
    for (there, back) in [(10, 50), (50, 10), (5, 5)] {
        let path = Path { there: there * MS, back: back * MS, seconds: 10 };
        let clock = path.estimate(|at| at - 7 * S);
        let segment = clock.segments[0];
        let error = segment.offset_ns + 7 * S;
        assert!((error - (there - back) * MS / 2).abs() < MS / 5, "{there} {back}: {error}");
        assert!(error.abs() <= segment.uncertainty_ns.unwrap(), "{segment:?}");
        assert_eq!(segment.drift, None, "{segment:?}");
    }
}

#[test]
fn a_queue_that_fills_is_no_drift() {
    // The queue grows by 10 ms a second in one direction, which a clock cannot do to one.
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 10 };
    let [mut there, back] = path.samples(|at| at);
    for sample in &mut there {
        sample.b_ns += since(sample.a_ns) / 100;
    }
    let clock = Clock::estimate(&there, &back);
    assert_eq!((clock.segments.len(), clock.segments[0].drift), (1, None), "{clock:?}");
    assert!(clock.segments[0].offset_ns.abs() < 2 * MS, "{clock:?}");
}

#[test]
fn steps_are_found_where_they_were() {
    let path = Path { there: 20 * MS, back: 30 * MS, seconds: 20 };
    for by in [-250, -9, 9, 128, 5000] {
        let clock = path.estimate(|at| at + if since(at) < 8 * S { 0 } else { by * MS });
        let [before, after] = &clock.segments[..] else { panic!("{by}: {clock:?}") };
        let step = after.offset_ns - before.offset_ns;
        assert!((step - by * MS).abs() < MS, "{by}: {clock:?}");
        assert!((since(after.from_ns) - 8 * S).abs() < 100 * MS, "{by}: {clock:?}");
        assert_eq!(clock.unsuitable, None);
    }
}

#[test]
fn a_route_that_changes_is_no_step() {
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 20 };
    let [mut there, back] = path.samples(|at| at);
    for sample in there.iter_mut().filter(|sample| since(sample.a_ns) > 10 * S) {
        sample.b_ns += 30 * MS;
    }
    let clock = Clock::estimate(&there, &back);
    assert_eq!(clock.segments.len(), 1, "{clock:?}");
}

#[test]
fn an_upload_and_a_download_are_no_step() {
    // Queues of one direction first, of the other one later.
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 20 };
    let mut draws = Draws(3);
    let [mut there, mut back] = path.samples(|at| at);
    for sample in there.iter_mut().filter(|sample| (S..10 * S).contains(&since(sample.a_ns))) {
        sample.b_ns += draws.below(10 * MS) + 20 * MS;
    }
    for sample in back.iter_mut().filter(|sample| (10 * S..19 * S).contains(&since(sample.a_ns))) {
        sample.b_ns -= draws.below(10 * MS) + 20 * MS;
    }
    let clock = Clock::estimate(&there, &back);
    assert_eq!(clock.segments.len(), 1, "{clock:?}");
    assert!(clock.segments[0].offset_ns.abs() < MS, "{clock:?}");
}

#[test]
fn a_clock_that_jumps_about_is_unsuitable() {
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 30 };
    let clock = path.estimate(|at| at + since(at) / S % 2 * 500 * MS);
    assert!(clock.unsuitable.is_some(), "{clock:?}");
}

#[test]
fn one_direction_has_its_least_delay_as_zero() {
    let path = Path { there: 20 * MS, back: 20 * MS, seconds: 5 };
    let [there, back] = path.samples(|at| at + 2 * S);
    let forward = Clock::estimate(&there, &[]);
    assert_eq!(forward.basis, ClockBasis::OneDirection);
    assert!((forward.segments[0].offset_ns - 2020 * MS).abs() < MS / 5, "{forward:?}");
    assert_eq!(forward.segments[0].uncertainty_ns, None);
    let reverse = Clock::estimate(&[], &back);
    assert!((reverse.segments[0].offset_ns - 1980 * MS).abs() < MS / 5, "{reverse:?}");
    assert_eq!(Clock::estimate(&[], &[]).basis, ClockBasis::Nothing);
}

#[test]
fn any_times_are_accepted() {
    let mut draws = Draws(11);
    for count in [1, 2, 3, 50, 500] {
        let mut some = || -> Vec<ClockSample> {
            let time = |draws: &mut Draws| match draws.below(4) {
                0 => 1 << 62,
                1 => 0,
                _ => draws.below(1 << 30) * draws.below(1 << 30),
            };
            let all = (0..count).map(|_| {
                let a_ns = time(&mut draws);
                ClockSample { a_ns, b_ns: time(&mut draws) }
            });
            all.collect()
        };
        let (there, back) = (some(), some());
        let clock = Clock::estimate(&there, &back);
        for sample in there.iter().chain(&back) {
            let _ = (clock.in_a(sample.b_ns), clock.difference_ns(sample.a_ns));
        }
    }
}
