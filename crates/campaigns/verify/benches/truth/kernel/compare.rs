//! The same path under the kernel and in the simulation.

use crate::pauses::Measured;
use crate::{ATTEMPTS, Fallible, SEED, lab_run, scenarios};
use record::{Measurement, Sample};
use simulator::Scenario;
use std::time::Duration;
use topology::PathSpec;
use twin::ConnectionConfig;

/// What a run is compared by.
#[derive(Debug, Clone, Copy)]
struct Figures {
    goodput_mbps: f64,
    retransmits: f64,
    rtt_median_ms: f64,
    rtt_p90_ms: f64,
    /// Median window, in packets, at the sample before retransmits.
    cwnd_at_losses: f64,
}

pub(crate) fn compare(runs: usize, only: Option<&str>) -> Fallible<()> {
    println!(
        "| scenario | | goodput, Mbit/s | retransmits | RTT median, ms | RTT p90, ms | cwnd at losses |\n\
         |---|---|---|---|---|---|---|"
    );
    for (name, case) in scenarios::compared() {
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let (mut kernel, mut simulated) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let seed = SEED + run as u64;
            let case = scenarios::of_run(&case, seed);
            let run = lab_run::run_valid(&case, seed, ATTEMPTS, true)?;
            let one = figures(&run.measurement);
            let pauses = Measured::of(&case, run.records.as_deref().unwrap_or_default());
            let simulation = figures(&simulate(&case, seed, &pauses)?);
            let paused_ms = pauses.total_ns() / 1_000_000;
            eprintln!("{name}, seed {seed}: kernel {} {}", Row(one), run.not_valid.join("; "));
            eprintln!("{name}, seed {seed}: twin {} {paused_ms} ms of pauses", Row(simulation));
            if run.not_valid.is_empty() {
                kernel.push(one);
            }
            simulated.push(simulation);
        }
        println!("| {name} | kernel ({} runs) | {}", kernel.len(), Row(medians(&kernel)));
        println!("| | twin | {}", Row(medians(&simulated)));
    }
    Ok(())
}

/// The simulation of a bulk transfer without cross traffic.
fn simulate(case: &Scenario, seed: u64, pauses: &Measured) -> Fallible<Measurement> {
    let path: PathSpec = case.path.parse()?;
    let [forward, reverse] = path.schedules(seed);
    let connection = ConnectionConfig { algorithm: case.congestion, ..ConnectionConfig::default() };
    let duration = Duration::try_from_secs_f64(case.seconds)?;
    let scenario = twin::Scenario {
        connections: vec![connection],
        sending_host: Some(pauses.sending.clone()),
        receiving_host: Some(pauses.receiving.clone()),
        ..twin::Scenario::new(forward, reverse, duration)
    };
    Ok(twin::run(&scenario).measurement)
}

fn figures(measurement: &Measurement) -> Figures {
    let stream = measurement.streams.first();
    let samples = stream.map(|stream| stream.sender.as_slice()).unwrap_or_default();
    let goodput = stream.map_or(0.0, |stream| {
        stream.received_bytes as f64 * 8.0 / 1e6 / stream.received_seconds.max(1e-3)
    });
    // The simulation's samples are denser in the ramp-up.
    let even = every_100_ms(samples);
    let rtts: Vec<f64> = even.iter().map(|sample| f64::from(sample.rtt_us) / 1e3).collect();
    let windows = even.windows(2).filter_map(|pair| match pair {
        [before, after] if after.retransmits > before.retransmits => {
            Some(before.cwnd_bytes as f64 / f64::from(before.mss_bytes.max(1)))
        }
        _ => None,
    });
    Figures {
        goodput_mbps: goodput,
        retransmits: stream.and_then(|stream| stream.retransmits).unwrap_or(0) as f64,
        rtt_median_ms: quantile(&rtts, 0.5),
        rtt_p90_ms: quantile(&rtts, 0.9),
        cwnd_at_losses: quantile(&windows.collect::<Vec<_>>(), 0.5),
    }
}

/// The samples at multiples of 100 ms: the latest before each.
fn every_100_ms(samples: &[Sample]) -> Vec<Sample> {
    let end = samples.last().map_or(0.0, |sample| sample.t_s);
    let count = (end * 10.0).floor() as usize;
    let at = |index: usize| samples.partition_point(|s| s.t_s <= (index + 1) as f64 / 10.0);
    (0..count).filter_map(|index| samples.get(at(index).checked_sub(1)?).copied()).collect()
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn medians(runs: &[Figures]) -> Figures {
    let median = |of: fn(&Figures) -> f64| quantile(&runs.iter().map(of).collect::<Vec<_>>(), 0.5);
    Figures {
        goodput_mbps: median(|one| one.goodput_mbps),
        retransmits: median(|one| one.retransmits),
        rtt_median_ms: median(|one| one.rtt_median_ms),
        rtt_p90_ms: median(|one| one.rtt_p90_ms),
        cwnd_at_losses: median(|one| one.cwnd_at_losses),
    }
}

struct Row(Figures);

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { goodput_mbps, retransmits, rtt_median_ms, rtt_p90_ms, cwnd_at_losses } =
            self.0;
        write!(
            f,
            "{goodput_mbps:.1} | {retransmits:.0} | {rtt_median_ms:.1} | {rtt_p90_ms:.1} | "
        )?;
        if cwnd_at_losses.is_nan() {
            write!(f, "none |")
        } else {
            write!(f, "{cwnd_at_losses:.0} |")
        }
    }
}
