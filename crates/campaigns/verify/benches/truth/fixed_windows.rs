//! Whether a fixed window is named, and how near its prediction is: windows and buffers of 32 KiB to
//! 4 MiB, at most 0.7 BDP, with CUBIC, Reno and BBR, in both directions, by sysctls and by `-w`.

use crate::lab_run::{LabRun, ThreadShare};
use crate::lab_truth::HostInterval;
use crate::options::Options;
use crate::{Fallible, LAB_ATTEMPTS, each_in_parallel, fresh_seed, lab_run, threads};
use record::{Confidence, Finding, Limit, Measurement};
use simulator::draws::{BasePath, Draws, KERNEL_CONTROLS};
use simulator::{Scenario, Truth};
use units::ByteCount;

/// The range of what is in flight in all streams, bytes, and its largest share of the BDP.
const IN_FLIGHT: (f64, f64) = (32.0 * 1024.0, 4.0 * 1024.0 * 1024.0);
const MAX_OF_BDP: f64 = 0.7;

/// The ranges of the path: Mbit/s and ms.
const RATES: (f64, f64) = (10.0, 500.0);
const RTTS: (f64, f64) = (10.0, 300.0);

/// How far a prediction may be from what was achieved, as a share of it.
const NEAR: f64 = 0.08;

/// The share of the time for which a thread may wait for a core.
const WAITED: f64 = 0.15;

/// The kernel's windows are up to this multiple of what was set. A send buffer may hold more than its
/// size where all of it is sent at once (`tcp`, `BufferCheck`); it bounds nothing then.
const WIDER: f64 = 1.5;

/// What bounds the bytes in flight.
const SETTINGS: [(&str, &[Limit]); 3] = [
    ("tcp_rmem", &[Limit::ReceiveWindow, Limit::FixedWindow]),
    ("tcp_wmem", &[Limit::SendBuffer, Limit::FixedWindow]),
    // Of both ends: the smaller of the two is the kernel's.
    ("-w", &[Limit::ReceiveWindow, Limit::SendBuffer, Limit::FixedWindow]),
];

/// What a run showed.
struct Done {
    case: Scenario,
    /// The limit that cost the most, by the ground truth.
    truth: Limit,
    /// Whether the window bounded what was in flight, and limited the transfer.
    is_fixed: bool,
    finding: Finding,
}

/// The case of a number: 18 in a row have every setting, control and direction.
fn case(seed: u64, number: usize) -> Scenario {
    let mut draws = Draws::new(seed, number);
    let streams = if number / 18 % 4 == 3 { draws.between(2.0, 5.0) as u32 } else { 1 };
    let each = f64::from(streams);
    let in_flight = draws.log(IN_FLIGHT.0 * each, IN_FLIGHT.1);
    let fits = |base: &BasePath| in_flight <= MAX_OF_BDP * base.bdp();
    let base = (0..1_000).map(|_| draws.base_within(RATES, RTTS)).find(fits);
    let base = base.unwrap_or(BasePath { rate: RATES.1, rtt: RTTS.1, seconds: 0.0 });
    let window = Some(ByteCount::from_f64(in_flight / each));
    let path = format!("{},{}", base.path(), draws.drop_tail(&base, (0.3, 4.0), 20.0));
    let case = Scenario {
        number,
        family: SETTINGS[number % 3].0,
        congestion: KERNEL_CONTROLS[number / 3 % 3],
        reverse: number / 9 % 2 == 1,
        streams,
        ..Scenario::new(path, 4.0 + 0.02 * base.rtt)
    };
    match number % 3 {
        0 => Scenario { receive_window: window, ..case },
        1 => Scenario { send_buffer: window, ..case },
        _ => Scenario { window, ..case },
    }
}

/// Runs the cases and prints a table.
pub(crate) fn measure(options: &Options) -> Fallible<()> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    println!("seed {seed}");
    let (part, of) = options.part;
    let numbers = (0..options.runs).filter(|number| number % of == part % of);
    let cases: Vec<Scenario> = numbers.map(|number| case(seed, number)).collect();
    let threads = if options.twin { threads() } else { 1 };
    let all = each_in_parallel(&cases, threads, |case| Ok(run(options, seed, case)))?;
    let all: Vec<Done> = all.into_iter().flatten().collect();
    println!("\nseed {seed}: {} runs, {} not valid", all.len(), cases.len() - all.len());
    report(&all);
    Ok(())
}

/// Runs and explains a case, as on a real path; `None` where the lab was not valid.
fn run(options: &Options, seed: u64, case: &Scenario) -> Option<Done> {
    let (measured, intervals) = if options.twin {
        case.run(seed).map(|it| (it.measurement, it.intervals)).ok()?
    } else {
        let attempt = || lab_run::run_valid(case, seed, LAB_ATTEMPTS, false).map(of_idle_machine);
        let again = |run: LabRun| if run.not_valid.is_empty() { Ok(run) } else { attempt() };
        match attempt().and_then(again) {
            Ok(run) if run.not_valid.is_empty() => (run.measurement, run.truth),
            Ok(run) => {
                println!("{}: not valid: {}", case, run.not_valid.join("; "));
                return None;
            }
            Err(error) => {
                println!("{case}: {error}");
                return None;
            }
        }
    };
    let truth = Truth::of(case, &intervals).ok()?.limit;
    let is_window = [Limit::ReceiveWindow, Limit::SendBuffer, Limit::WindowScaling];
    let is_fixed = is_window.contains(&truth) && !exceeds(case, &measured);
    let finding = diagnose::explain(&Measurement { path: None, ..measured });
    let done = Done { case: case.clone(), truth, is_fixed, finding };
    done.tell();
    Some(done)
}

/// Whether more was ever in flight than was set.
fn exceeds(case: &Scenario, m: &Measurement) -> bool {
    let window = case.window.or(case.receive_window).map(|set| WIDER * set.as_f64());
    let set = window.or(case.send_buffer.map(ByteCount::as_f64));
    let samples = m.streams.iter().flat_map(|stream| &stream.sender);
    let most = samples.map(|s| s.in_flight_bytes).max().unwrap_or(0);
    set.is_some_and(|set| most as f64 > set)
}

/// A run whose threads waited for a core is not valid: a receiver that does not run closes its
/// window.
fn of_idle_machine(mut run: LabRun) -> LabRun {
    let waited = |share: ThreadShare| share.waited;
    let mean = |read: &dyn Fn(&HostInterval) -> f64| {
        run.hosts.iter().map(read).sum::<f64>() / run.hosts.len().max(1) as f64
    };
    let waits = mean(&|host| waited(host.sender_cpu)).max(mean(&|host| waited(host.receiver_cpu)));
    if waits > WAITED {
        run.not_valid
            .push(format!("a thread waited for a core for {:.0} % of the time", waits * 1e2));
    }
    run
}

impl Done {
    fn is_named(&self) -> bool {
        let expected = SETTINGS.iter().find(|(name, _)| *name == self.case.family);
        self.finding.limit.is_some_and(|limit| expected.is_some_and(|(_, of)| of.contains(&limit)))
    }

    /// Prediction over what was achieved.
    fn ratio(&self) -> Option<f64> {
        let predicted = self.finding.predicted_bps?.as_f64();
        Some(predicted / self.finding.throughput_bps.as_f64().max(1.0))
    }

    fn is_near(&self) -> bool {
        self.ratio().is_some_and(|ratio| (ratio - 1.0).abs() <= NEAR)
    }

    fn is_sure(&self) -> bool {
        self.finding.confidence == Some(Confidence::Sure)
    }

    fn tell(&self) {
        let verdict = match (self.is_named(), self.is_near()) {
            _ if !self.is_fixed => "no fixed window",
            (true, true) => return,
            (true, false) => "prediction off",
            (false, _) if self.is_sure() => "WRONG",
            (false, _) => "wrong",
        };
        println!(
            "{verdict}: {}: true {}, found {}, prediction {:.2}",
            self.case,
            self.truth.name(),
            self.finding.limit.map_or("none", Limit::name),
            self.ratio().unwrap_or(f64::NAN),
        );
        println!("    {}", self.finding.sentence);
    }
}

fn report(all: &[Done]) {
    let (fixed, others): (Vec<&Done>, Vec<&Done>) = all.iter().partition(|done| done.is_fixed);
    println!("{} were not limited by a fixed window", others.len());
    println!(
        "{:<20}{:>6}{:>8}{:>8}{:>12}{:>8}",
        "", "runs", "named", "near", "sure, wrong", "right"
    );
    let row = |name: &str, chosen: &dyn Fn(&Done) -> bool| {
        let of: Vec<&Done> = fixed.iter().filter(|done| chosen(done)).copied().collect();
        let count = |holds: &dyn Fn(&Done) -> bool| of.iter().filter(|done| holds(done)).count();
        let (named, near) = (count(&Done::is_named), count(&Done::is_near));
        let wrong = count(&|done| done.is_sure() && !done.is_named());
        let right = count(&|done| done.is_named() && done.is_near());
        println!("{name:<20}{:>6}{named:>8}{near:>8}{wrong:>12}{right:>8}", of.len());
    };
    row("all", &|_| true);
    for (name, _) in SETTINGS {
        row(name, &|done| done.case.family == name);
    }
    for control in KERNEL_CONTROLS {
        row(control.name(), &|done| done.case.congestion == control);
    }
    row("forward", &|done| !done.case.reverse);
    row("-R", &|done| done.case.reverse);
    row("-P 1", &|done| done.case.streams == 1);
    row("-P 2 to 4", &|done| done.case.streams > 1);
    let both = fixed.iter().filter(|done| done.case.window.is_some());
    let of = |limit| both.clone().filter(|done| done.finding.limit == Some(limit)).count();
    let (receive, send) = (of(Limit::ReceiveWindow), of(Limit::SendBuffer));
    println!("-w: {receive} named as receive windows, {send} as send buffers");
}
