//! Search for the highest UDP rate that meets a loss target.

use super::TestEvent;
use crate::{Problem, StopFlag};
use host::clock;
use perf::client::{self, ClientConfig};
use perf::search::{Ending, Search, Step};
use record::{
    Direction, FIND_RATE_SCHEMA, FindRateReport, Measurement, RateTry, Stream, TryFailure,
};
use std::time::Duration;
use units::BitRate;

/// Rate of the first try; it doubles from here.
const FIRST: BitRate = BitRate::from_bps(1_000_000);

/// Default upper limit of the search: 1 Tbit/s.
const MAX: BitRate = BitRate::from_bps(1_000_000_000_000);

/// Maximum number of tries; over a path whose rate is constant 20 to 30 suffice.
const TRIES: u32 = 80;

/// Share of the sending rate below which the arrival rate shows a growing queue:
/// no loss yet, but the rate cannot be sustained.
const SUSTAINED: f64 = 0.985;

/// Minimum number of receiver samples with new data for an arrival rate.
const MIN_SAMPLES: usize = 5;

/// Searches below `limit`, the highest rate of each stream. Fails if the first try does.
pub(super) fn run(
    mut config: ClientConfig,
    limit: Option<BitRate>,
    target: f64,
    on_event: &mut dyn FnMut(TestEvent),
    stop: &StopFlag,
) -> Result<FindRateReport, Problem> {
    let each = config.streams.max(1);
    let most = limit.map_or(MAX, |rate| rate.scaled(f64::from(each)));
    let mut search = Search::new(FIRST.min(most), most, TRIES);
    let (mut tries, mut peer, mut failed) = (Vec::new(), String::new(), None);
    let started_unix_s = clock::unix_seconds();
    let ending = loop {
        let rate = match search.next() {
            Step::Over(ending) => break name(ending),
            Step::Try(_) if stop.is_raised() => break "interrupted",
            Step::Try(rate) => rate,
        };
        config.rate = Some(rate.scaled(1.0 / f64::from(each)));
        on_event(TestEvent::Trying(rate));
        match attempt(&config, rate, target, stop) {
            Ok(Some((tried, server))) => {
                peer = server;
                search.record(tried.within, tried.sent_bps);
                on_event(TestEvent::Tried(tried));
                tries.push(tried);
            }
            Ok(None) => break "interrupted",
            Err(error) if tries.is_empty() => return Err(error),
            Err(error) => {
                failed = Some(error);
                break "failed";
            }
        }
        // The first try has checked the load of this machine.
        config.watch_load = Duration::ZERO;
    };
    let mut report = FindRateReport {
        schema: FIND_RATE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        target: config.host,
        peer,
        reverse: config.direction == Direction::Reverse,
        loss_target: target,
        try_s: config.end.seconds().unwrap_or_default(),
        rate_bps: None,
        loss: None,
        lossy_bps: search.failed(),
        ending: ending.to_owned(),
        tries,
        sentence: String::new(),
    };
    set_result(&mut report, search.found());
    report.sentence = sentence(&report);
    if let Some(problem) = failed {
        on_event(TestEvent::Incomplete(problem));
    }
    Ok(report)
}

/// One try; `None` if it was interrupted.
fn attempt(
    config: &ClientConfig,
    rate: BitRate,
    target: f64,
    stop: &StopFlag,
) -> Result<Option<(RateTry, String)>, Problem> {
    let report = match client::run(config, &mut |_| {}, stop) {
        Ok(report) => report,
        Err(_) if stop.is_raised() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if stop.is_raised() || report.theirs.is_none() {
        return Ok(None);
    }
    let measurement = report.measurement;
    Ok(Some((rate_try(&measurement, rate, target), measurement.peer)))
}

/// The result of a try.
fn rate_try(measurement: &Measurement, rate: BitRate, target: f64) -> RateTry {
    let streams = &measurement.streams;
    let per_second = |bytes: u64, seconds: f64| {
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    };
    let sent: f64 = streams.iter().map(|s| per_second(s.sent_bytes, s.sent_seconds)).sum();
    let reported: f64 =
        streams.iter().map(|s| per_second(s.received_bytes, s.received_seconds)).sum();
    let arriving: Option<f64> = streams.iter().map(arrival_rate).sum();
    let (received, lost) = streams
        .iter()
        .filter_map(|stream| stream.datagrams.as_ref())
        .fold((0, 0), |(received, lost), d| (received + d.received, lost + d.lost));
    // If nothing arrived, the receiver cannot count losses: all was lost.
    let loss = if received == 0 { 1.0 } else { lost as f64 / (received + lost) as f64 };
    let grows = arriving.is_some_and(|rate| rate < SUSTAINED * sent);
    let failed = match (received, loss > target, grows) {
        (0, ..) => Some(TryFailure::NothingArrived),
        (_, true, _) => Some(TryFailure::Loss),
        (_, _, true) => Some(TryFailure::QueueGrows),
        _ => None,
    };
    RateTry {
        asked_bps: rate,
        sent_bps: BitRate::from_bps_f64(sent),
        received_bps: BitRate::from_bps_f64(arriving.unwrap_or(reported)),
        loss,
        within: failed.is_none(),
        failed,
    }
}

/// Arrival rate in bit/s, from the receiver's second sample with new data to the
/// last; `None` where it reports too few.
fn arrival_rate(stream: &Stream) -> Option<f64> {
    let samples = &stream.receiver;
    let grew = samples.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        (before.received_bytes > 0 && after.received_bytes > before.received_bytes)
            .then_some((before, after))
    });
    let grew: Vec<_> = grew.collect();
    let (first, last) = (grew.get(1)?.0, grew.get(grew.len().checked_sub(2)?)?.1);
    let seconds = last.t_s - first.t_s;
    (grew.len() >= MIN_SAMPLES && seconds > 0.0)
        .then(|| last.received_bytes.saturating_sub(first.received_bytes) as f64 * 8.0 / seconds)
}

/// Sets rate and loss: the mean of the tries that met the target at the rate
/// found or, where the sender was the limit, the fastest try that met it.
fn set_result(report: &mut FindRateReport, found: Option<BitRate>) {
    let passed: Vec<&RateTry> = if report.ending == "sender-limited" {
        let within = report.tries.iter().filter(|t| t.within);
        within.max_by_key(|t| t.received_bps).into_iter().collect()
    } else {
        report.tries.iter().filter(|t| t.within && Some(t.asked_bps) == found).collect()
    };
    let mean = |figure: fn(&RateTry) -> f64| {
        let sum: f64 = passed.iter().map(|tried| figure(tried)).sum();
        (!passed.is_empty()).then(|| sum / passed.len() as f64)
    };
    // Timing errors at the receiver must not raise it above the requested rate.
    let most = passed.first().map_or(BitRate::ZERO, |tried| tried.asked_bps);
    let rate = mean(|tried| tried.received_bps.as_f64());
    let loss = mean(|tried| tried.loss);
    report.rate_bps = rate.map(|rate| BitRate::from_bps_f64(rate).min(most));
    report.loss = loss;
}

fn name(ending: Ending) -> &'static str {
    match ending {
        Ending::Found => "found",
        Ending::SenderLimited => "sender-limited",
        Ending::HighestAsked => "highest-asked",
        Ending::LossyAtLeast => "lossy-at-least",
        Ending::TriesUsedUp => "tries-used-up",
    }
}

fn sentence(report: &FindRateReport) -> String {
    let target = report.loss_target * 100.0;
    let (Some(rate), Some(loss)) = (report.rate_bps, report.loss) else {
        return match report.ending.as_str() {
            "interrupted" | "failed" => "Stopped before any rate met the loss target.".to_owned(),
            _ => {
                let why = match report.tries.last().and_then(|tried| tried.failed) {
                    Some(TryFailure::QueueGrows) => "arrives more slowly than it is sent",
                    Some(TryFailure::NothingArrived) => "does not arrive at all",
                    Some(TryFailure::Loss) | None => "loses more",
                };
                format!(
                    "No rate meets the loss target of {target} %: even the lowest rate tried {why}."
                )
            }
        };
    };
    let met = format!("{rate} of payload arrived with {:.3} % loss", loss * 100.0);
    match (report.ending.as_str(), report.lossy_bps) {
        ("found", Some(lossy)) => format!(
            "The path sustains {rate}: {met} (target {target} %), and {lossy} {}.",
            missed(report, lossy)
        ),
        ("sender-limited", _) => format!(
            "The path sustains at least {rate}: {met}. The sender is the limit; try larger \
             datagrams or more streams."
        ),
        ("highest-asked", _) => {
            format!(
                "The path sustains at least {rate}: {met}. The search was limited to this rate."
            )
        }
        ("interrupted" | "failed", _) => {
            format!("Stopped early. The highest rate that met the target so far: {met}.")
        }
        (_, _) => format!(
            "No stable result after {} tries: {met}; the capacity of the path varies.",
            report.tries.len()
        ),
    }
}

/// The way in which a rate missed the target.
fn missed(report: &FindRateReport, rate: BitRate) -> &'static str {
    let mut of_rate = report.tries.iter().filter(|tried| tried.asked_bps == rate);
    match of_rate.find_map(|tried| tried.failed) {
        Some(TryFailure::QueueGrows) => "arrives more slowly than it is sent",
        Some(TryFailure::NothingArrived) => "does not arrive at all",
        Some(TryFailure::Loss) | None => "misses the target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::ReceiverSample;

    fn stream(bytes: impl Fn(u64) -> u64) -> Stream {
        let sample = |i: u64| ReceiverSample {
            t_s: i as f64 / 10.0,
            received_bytes: bytes(i),
            ..ReceiverSample::default()
        };
        Stream { receiver: (0..=20).map(sample).collect(), ..Stream::default() }
    }

    #[test]
    fn the_arrival_rate_is_taken_between_first_and_last_arrival() {
        // Nothing for half a second, then 1000 bytes each 100 ms: 80 kbit/s.
        let late = stream(|i| i.saturating_sub(5) * 1000);
        assert!((arrival_rate(&late).unwrap() - 80e3).abs() < 1e-6);
        assert_eq!(arrival_rate(&stream(|_| 0)), None);
        assert_eq!(arrival_rate(&Stream::default()), None);
        assert_eq!(arrival_rate(&stream(|i| i.min(3) * 1000)), None);
    }
}
