//! Real programs, unmodified, beside the gain that `boost plan` predicts for them.

mod setup;

use crate::LONGHAUL;
use crate::hosts::{Hosts, SMALL_WINDOW, Validity};
use crate::meter::{self, Times};
use crate::planned;
use bench_harness::{Fallible, median};
use record::{BoostKind, BoostOption};
use setup::{Program, Setup};
use std::thread;

/// The promised distance between measured and predicted gain, and the least gain behind 64 KiB.
const WITHIN: f64 = 0.2;
const LEAST_GAIN: f64 = 3.0;

/// Direct transfers under loss run at the same time: each carries 4 of 100 Mbit/s in a lab of its own.
const TOGETHER: usize = 4;

/// What the hosts and the path are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Default,
    Loss,
    Window,
}

impl Condition {
    const ALL: [Condition; 3] = [Condition::Default, Condition::Loss, Condition::Window];

    const fn name(self) -> &'static str {
        match self {
            Condition::Default => "default",
            Condition::Loss => "0.1 % loss",
            Condition::Window => "64 KiB",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Condition::Loss => "rate=100mbit,rtt=173ms,loss=0.1%",
            Condition::Default | Condition::Window => "rate=100mbit,rtt=173ms",
        }
    }

    /// Settings of the server's host: scaling is off if either end does not offer it.
    const fn server(self) -> &'static str {
        match self {
            Condition::Window => SMALL_WINDOW,
            Condition::Default | Condition::Loss => "",
        }
    }
}

/// How the program's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ingress {
    Direct,
    Run,
    Gateway,
}

/// Measures the programs of the rows whose names contain `only`.
pub(crate) fn measure(rounds: usize, is_short: bool, only: &str) -> Fallible<()> {
    println!(
        "{:<28} {:<8} {:>9} {:>9} {:>7} {:>19}  ok",
        "program, path", "ingress", "direct", "boosted", "gain", "predicted"
    );
    let setup = Setup::prepare()?;
    for condition in Condition::ALL {
        for program in Program::ALL {
            let name = format!("{}, {}", program.name(), condition.name());
            if !name.contains(only) {
                continue;
            }
            if let Some(missing) = program.missing() {
                println!("{name:<28} not measured: apt-get install {missing}");
                continue;
            }
            if let Err(error) = row(&name, &setup, program, condition, rounds, is_short) {
                println!("{name:<28} not measured: {error}");
            }
        }
    }
    Ok(())
}

fn row(
    name: &str,
    setup: &Setup,
    program: Program,
    condition: Condition,
    rounds: usize,
    is_short: bool,
) -> Fallible<()> {
    let pair = predicted(program, condition)?;
    let factor = pair.factor.ok_or("the plan predicts nothing")?;
    let of = |ingress, times| -> Fallible<(f64, bool)> {
        let run = |number| once(setup, program, (condition, number), ingress, &pair, times);
        let results: Vec<(f64, Validity)> = match (ingress, condition) {
            (Ingress::Direct, Condition::Loss) => together(run)?,
            _ => (0..rounds).map(run).collect::<Fallible<_>>()?,
        };
        let rates: Vec<f64> = results.iter().map(|(rate, _)| *rate).collect();
        // Under loss single transfers differ, and the plan predicts their mean.
        let rate = match condition {
            Condition::Loss => rates.iter().sum::<f64>() / rates.len() as f64,
            Condition::Default | Condition::Window => median(&rates),
        };
        Ok((rate, results.iter().all(|(_, validity)| validity.0)))
    };
    let measured = if is_short { 6 } else { 15 };
    // The file lasts 21 s at the rate of the link.
    let boosted = Times { skipped: 5, measured };
    let direct = match condition {
        Condition::Loss => Times { skipped: 8, measured: if is_short { 30 } else { 120 } },
        Condition::Default | Condition::Window => boosted,
    };
    let (direct, was_valid) = of(Ingress::Direct, direct)?;
    for (ingress, title) in [(Ingress::Run, "run"), (Ingress::Gateway, "gateway")] {
        let (rate, is_valid) = of(ingress, boosted)?;
        let gain = rate / direct;
        let is_near = (gain / factor.expected - 1.0).abs() <= WITHIN;
        let is_enough =
            condition != Condition::Window || gain >= LEAST_GAIN || pair.reason.is_some();
        let predicted = format!("{:.2} ({:.2} to {:.2})", factor.expected, factor.low, factor.high);
        let (direct, rate) = (direct / 1e6, rate / 1e6);
        let verdict = if is_near && is_enough { "yes" } else { "NO" };
        let doubt = if was_valid && is_valid { "" } else { ", lab not valid" };
        println!(
            "{name:<28} {title:<8} {direct:>9.2} {rate:>9.2} {gain:>7.2} {predicted:>19}  \
             {verdict}{doubt}"
        );
    }
    if let Some(reason) = pair.reason {
        println!("    x 1: {}", reason.sentence());
    }
    Ok(())
}

/// The plan's option of a pair, for the program's own window where it has one.
fn predicted(program: Program, condition: Condition) -> Fallible<BoostOption> {
    let mut words = vec![condition.path().to_owned()];
    if condition == Condition::Window {
        words.extend(["--window".to_owned(), "64KiB".to_owned()]);
    }
    if let Some(known) = program.known_as() {
        let programs = planned::transfer(&words)?.programs;
        let found = programs.iter().find(|one| one.name.contains(known));
        let window = found.ok_or_else(|| format!("the plan does not know {known}"))?.window_bytes;
        words.extend(["--program-window".to_owned(), window.bytes().to_string()]);
    }
    Ok(planned::option(&planned::transfer(&words)?, BoostKind::Pair)?.clone())
}

fn together<T: Send>(run: impl Fn(usize) -> Fallible<T> + Sync) -> Fallible<Vec<T>> {
    let run = &run;
    thread::scope(|scope| {
        let runs: Vec<_> = (0..TOGETHER).map(|number| scope.spawn(move || run(number))).collect();
        let results = runs.into_iter().map(|run| run.join().map_err(|_| "a lab panicked")?);
        results.collect()
    })
}

fn once(
    setup: &Setup,
    program: Program,
    (condition, number): (Condition, usize),
    ingress: Ingress,
    pair: &BoostOption,
    times: Times,
) -> Fallible<(f64, Validity)> {
    let folder = setup.folder()?;
    let lanes = planned::lanes(pair);
    let mut command = setup.command(program, folder.path());
    let mut services = vec![("server", setup.service(program, folder.path())?)];
    if ingress != Ingress::Direct {
        let far =
            format!("{LONGHAUL} boost far -l 0.0.0.0:7425 --insecure --allow 10.0.0.0/8:*{lanes}");
        services.push(("far", far));
    }
    match ingress {
        Ingress::Direct => {}
        Ingress::Run => {
            command = format!("{LONGHAUL} boost run --far far --insecure{lanes} -- {command}");
        }
        Ingress::Gateway => services.push((
            "near",
            format!(
                "{LONGHAUL} boost near --far far --insecure --transparent {} --interface lab0{lanes}",
                program.port()
            ),
        )),
    }
    let metered = meter::command(times, folder.path(), &command)?;
    let validity = Hosts {
        // Each run loses other packets.
        path: &format!("{},seed={}", condition.path(), number + 1),
        app: r#"congestion = "cubic""#,
        server: &format!("congestion = \"cubic\"\n{}", condition.server()),
        services,
        lanes: planned::congestion(&lanes),
        command: &format!("sleep 1; {metered}"),
    }
    .run(folder.path())?;
    Ok((meter::goodput(folder.path())?, validity))
}
