//! The highest rate of datagrams that a path carries (`--find-rate`).

use super::{TestArgs, config, failure};
use crate::console::Console;
use crate::failure::{DONE, FAILED, Failure, Outcome};
use crate::stop;
use host::clock;
use probe::StopFlag;
use probe::client::{self, ClientConfig};
use probe::search::{Ending, Search, Step};
use record::{Direction, FIND_RATE_SCHEMA, FindRateReport, Measurement, Protocol, RateTry, Stream};
use report::terminal;
use std::time::Duration;
use units::BitRate;

/// Where the search begins; it doubles from here.
const FIRST: BitRate = BitRate::from_bps(1_000_000);

/// The highest rate that is tried where none is given: 1 Tbit/s.
const MOST: BitRate = BitRate::from_bps(1_000_000_000_000);

/// Tries at most; a search over a path that is what it was takes 20 to 30.
const TRIES: u32 = 80;

/// What arrives at less than this share of the rate at which it is sent waits
/// in a queue that grows: no loss yet, but a rate that does not last.
const ARRIVES: f64 = 0.985;

/// Growing samples of a receiver that make a rate.
const LEAST_SAMPLES: usize = 5;

pub(super) fn run(args: &TestArgs, console: &mut Console) -> Outcome {
    let stop = stop::on_signals();
    let target = args.extras.loss_target.fraction();
    let mut config = ClientConfig {
        protocol: Protocol::Udp,
        seconds: args.extras.try_time,
        rate: None,
        ..config(args)
    };
    let each = config.streams.max(1);
    let most = args.bitrate.and_then(|pace| pace.0);
    let most = most.map_or(MOST, |rate| rate.scaled(f64::from(each)));
    let mut search = Search::new(FIRST.min(most), most, TRIES);
    let (mut tries, mut peer, mut why) = (Vec::new(), String::new(), None);
    let started_unix_s = clock::unix_seconds();
    let style = console.out;
    if !args.forms.json {
        console.print(&(terminal::try_header(&style) + "\n"));
    }
    let ending = loop {
        let asked = match search.next() {
            Step::Over(ending) => break name(ending),
            Step::Try(_) if stop.is_raised() => break "interrupted",
            Step::Try(asked) => asked,
        };
        config.rate = Some(asked.scaled(1.0 / f64::from(each)));
        console.live(&format!("trying {asked} …"));
        match attempt(&config, asked, target, &stop) {
            Ok(Some((tried, far))) => {
                peer = far;
                search.tell(tried.within, tried.sent_bps);
                if args.forms.json {
                    console.say(&terminal::try_row(&tried, &console.err));
                } else {
                    console.print(&(terminal::try_row(&tried, &style) + "\n"));
                }
                tries.push(tried);
            }
            Ok(None) => break "interrupted",
            Err(error) if tries.is_empty() => return Err(error),
            Err(error) => {
                why = Some(error);
                break "failed";
            }
        }
        // The machine's own load was looked at once.
        config.watch_load = Duration::ZERO;
    };
    let mut report = FindRateReport {
        schema: FIND_RATE_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        target: args.host.clone(),
        peer,
        reverse: config.direction == Direction::Reverse,
        loss_target: target,
        try_s: config.seconds,
        rate_bps: None,
        loss: None,
        lossy_bps: search.failed(),
        ending: ending.to_owned(),
        tries,
        sentence: String::new(),
    };
    settle(&mut report, search.found());
    report.sentence = sentence(&report);
    let text = if args.forms.json {
        serde_json::to_string_pretty(&report).map_err(Failure::work)? + "\n"
    } else {
        terminal::find_rate(&report, &style)
    };
    console.print(&text);
    let whole = !matches!(ending, "interrupted" | "failed") && report.rate_bps.is_some();
    match why {
        Some(error) => Err(error),
        None => Ok(if whole { DONE } else { FAILED }),
    }
}

/// One try; `None` where it was interrupted.
fn attempt(
    config: &ClientConfig,
    asked: BitRate,
    target: f64,
    stop: &StopFlag,
) -> Result<Option<(RateTry, String)>, Failure> {
    let report = match client::run(config, &mut |_| {}, stop) {
        Ok(report) => report,
        Err(_) if stop.is_raised() => return Ok(None),
        Err(error) => return Err(failure(error)),
    };
    if stop.is_raised() || report.theirs.is_none() {
        return Ok(None);
    }
    let measurement = report.measurement;
    Ok(Some((judged(&measurement, asked, target), measurement.peer)))
}

/// What came of a try.
fn judged(measurement: &Measurement, asked: BitRate, target: f64) -> RateTry {
    let streams = &measurement.streams;
    let per_second = |bytes: u64, seconds: f64| {
        if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
    };
    let sent: f64 = streams.iter().map(|s| per_second(s.sent_bytes, s.sent_seconds)).sum();
    let counted: f64 =
        streams.iter().map(|s| per_second(s.received_bytes, s.received_seconds)).sum();
    let seen: Option<f64> = streams.iter().map(arrival).sum();
    let (received, lost) = streams
        .iter()
        .filter_map(|stream| stream.datagrams.as_ref())
        .fold((0, 0), |(received, lost), d| (received + d.received, lost + d.lost));
    // Where nothing arrived nobody knows how much was lost: all of it.
    let loss = if received == 0 { 1.0 } else { lost as f64 / (received + lost) as f64 };
    let grows = loss <= target && seen.is_some_and(|seen| seen < ARRIVES * sent);
    RateTry {
        asked_bps: asked,
        sent_bps: BitRate::from_bps_f64(sent),
        received_bps: BitRate::from_bps_f64(seen.unwrap_or(counted)),
        loss,
        within: loss <= target && !grows,
    }
}

/// The rate at which datagrams came in, in bit/s, from the second tenth of the
/// receiver's samples to the last that grew; `None` where it shares too few.
fn arrival(stream: &Stream) -> Option<f64> {
    let samples = &stream.receiver;
    let grew = samples.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        (before.received_bytes > 0 && after.received_bytes > before.received_bytes)
            .then_some((before, after))
    });
    let grew: Vec<_> = grew.collect();
    let (first, last) = (grew.get(1)?.0, grew.get(grew.len().checked_sub(2)?)?.1);
    let seconds = last.t_s - first.t_s;
    (grew.len() >= LEAST_SAMPLES && seconds > 0.0)
        .then(|| last.received_bytes.saturating_sub(first.received_bytes) as f64 * 8.0 / seconds)
}

/// The rate and loss of the tries that passed at the rate found; where the
/// sender is the limit, of the try that passed with most.
fn settle(report: &mut FindRateReport, found: Option<BitRate>) {
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
    // Timing at the receiver makes it no more than was asked for.
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
            "interrupted" | "failed" => "It ended before any rate held.".to_owned(),
            _ => format!(
                "No rate was found that loses no more than {target} %: even the lowest tried \
                 loses more, whatever the rate."
            ),
        };
    };
    let held = format!("{rate} of payload arrive with {:.3} % lost", loss * 100.0);
    match (report.ending.as_str(), report.lossy_bps) {
        ("found", Some(lossy)) => format!(
            "The path carries {rate}: {held}, within the {target} % asked for, and {lossy} do \
             not hold."
        ),
        ("sender-limited", _) => format!(
            "The path carries at least {rate}: {held}, and this sender sends no faster; larger \
             datagrams (-l) or more streams (-P) may."
        ),
        ("highest-asked", _) => {
            format!("The path carries at least {rate}: {held}, and no more was to be tried.")
        }
        ("interrupted" | "failed", _) => {
            format!("It ended early: {held}, the highest rate that held until then.")
        }
        (_, _) => format!("After {} tries: {held}; the path changes.", report.tries.len()),
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
    fn what_arrives_is_taken_between_first_and_last() {
        // Nothing for half a second, then 1000 bytes each 100 ms: 80 kbit/s.
        let late = stream(|i| i.saturating_sub(5) * 1000);
        assert!((arrival(&late).unwrap() - 80e3).abs() < 1e-6);
        assert_eq!(arrival(&stream(|_| 0)), None);
        assert_eq!(arrival(&Stream::default()), None);
        assert_eq!(arrival(&stream(|i| i.min(3) * 1000)), None);
    }
}
