//! flent's data files (version 3 and 4): series of rates and of ping RTTs on common times.
//!
//! The rates are those of netperf or iperf, in Mbit/s; the pings ran before, during and after. The
//! raw values have the times of each report: common times have some of them, or none, where reports
//! are further apart.
//! With `--socket-stats` there are the sender's window and RTT as well, but its losses are not
//! there as a series.

mod document;

use crate::{
    not_a_result::NotAResult,
    number::count,
    transfer::{self, MAX_STREAMS, Transfer},
    unix_seconds::unix_seconds,
};
use diagnose::latency::{Load, ProbeFlow, under_load};
use document::{Document, Metadata, RTT, RawValue, Report, Reports, direction};
use iperf3_proto::lenient::Scalar;
use record::{Direction, LatencyProbe, Measurement, ReceiverSample, Stream, TestSpec, Unavailable};

const WHAT: &str = "a flent data file";

/// Reports that are further apart than this have a gap between them, in seconds.
const GAP_S: f64 = 0.02;

/// Between the end of the load and the first ping that met no queue of it, in seconds.
const QUIET_S: f64 = 0.5;

/// A rate in Mbit/s over a time in seconds.
#[derive(Debug, Clone, Copy)]
struct Rate {
    from: f64,
    to: f64,
    mbit: f64,
}

/// The test of a file.
pub(crate) fn document(text: &str) -> Result<Measurement, NotAResult> {
    let document: Document = serde_json::from_str(text).map_err(|e| NotAResult::json(WHAT, &e))?;
    let times: Vec<f64> = document.x_values.iter().map(|x| x.real().unwrap_or(f64::NAN)).collect();
    let flows: Vec<(&String, Direction)> = document
        .results
        .all
        .keys()
        .filter_map(|name| Some((name, direction(name)?)))
        .take(MAX_STREAMS)
        .collect();
    if flows.is_empty() {
        return Err(NotAResult::empty(
            WHAT,
            "no series of TCP upload or download; accepted are tests such as tcp_upload and rrul",
        ));
    }
    let step = document.metadata.step_size.filter(|step| (0.01..=60.0).contains(step));
    let all = Series::of(&document, &flows, &times, step.unwrap_or(0.2));
    // Under load: from the start of the first rate of any flow to the end of the last.
    let loaded = || all.rates.iter().flatten();
    let load_from = loaded().map(|rate| rate.from).fold(f64::INFINITY, f64::min);
    let to = loaded().map(|rate| rate.to).fold(f64::NEG_INFINITY, f64::max);
    if load_from >= to {
        return Err(NotAResult::empty(WHAT, "no rates: every value is null, the test failed"));
    }
    let pings = &all.pings;
    let idle = pings.iter().filter(|(t, _)| *t < load_from).map(|(_, ms)| *ms);
    let idle = idle.fold(f64::INFINITY, f64::min);
    let mut unavailable = vec![
        Unavailable::SenderTimers,
        Unavailable::ReceiveWindow,
        Unavailable::CongestionWindow,
        Unavailable::Retransmissions,
    ];
    if pings.is_empty() {
        unavailable.push(Unavailable::Rtt);
    }
    if !idle.is_finite() {
        unavailable.push(Unavailable::IdleRtt);
    }
    let mut transfer = Transfer {
        tool: tool(&document.metadata),
        name: transfer::name(document.metadata.name.as_deref().unwrap_or_default()),
        started_unix_s: document.metadata.time.as_deref().and_then(unix_seconds).unwrap_or(0),
        spec: spec(&document.metadata, &flows, to - load_from),
        unavailable,
        ..Transfer::default()
    };
    if document.results.left_out > 0 {
        transfer.notes.push(format!(
            "the file has {} flows, of which {} are left out",
            flows.len() + document.results.left_out,
            document.results.left_out
        ));
    }
    for (index, (name, flow)) in flows.iter().enumerate() {
        let rates = all.rates.get(index).map(Vec::as_slice).unwrap_or_default();
        let rtts = all.rtts.get(index).filter(|rtts| !rtts.is_empty()).unwrap_or(pings);
        let mut stream = stream(load_from, rates, rtts, idle);
        stream.id = u32::try_from(index + 1).unwrap_or(u32::MAX);
        stream.reverse = *flow == Direction::Reverse;
        if let Some(meta) = document.metadata.series_meta.all.get(*name) {
            stream.congestion = meta.cong_control.clone();
            stream.retransmits = count(meta.tcpi_total_retrans);
        }
        transfer.streams.push(stream);
    }
    if transfer.streams.iter().all(|stream| stream.congestion.is_none()) {
        transfer.unavailable.push(Unavailable::CongestionControl);
    }
    let mut measurement = transfer.into_measurement();
    if !pings.is_empty() {
        let probes = pings
            .iter()
            .map(|(t, ms)| LatencyProbe { at_s: t - load_from, rtt_ms: Some(*ms) })
            .collect();
        let flow = ProbeFlow {
            method: "icmp".to_owned(),
            port: None,
            interval_ms: step.unwrap_or(0.2) * 1e3,
            probes,
        };
        let to_s = to - load_from;
        let load = Load { from_s: 1.0, to_s, quiet_s: to_s + QUIET_S };
        measurement.latency = Some(under_load(flow, None, load));
    }
    Ok(measurement)
}

/// The series of a file, by flow, on one clock.
struct Series {
    rates: Vec<Vec<Rate>>,
    /// Times and ms.
    rtts: Vec<Vec<(f64, f64)>>,
    pings: Vec<(f64, f64)>,
}

impl Reports {
    fn known(&self) -> Vec<Report> {
        let report = |value: &RawValue| match value {
            RawValue::Report(report) => Some(*report),
            RawValue::Other(_) => None,
        };
        self.0.iter().filter_map(report).collect()
    }
}

impl Series {
    /// As they were reported, if that is known of each flow; else as interpolated to common times.
    fn of(document: &Document, flows: &[(&String, Direction)], times: &[f64], step: f64) -> Self {
        let reports = |name: &String| document.raw_values.all.get(name).map(Reports::known);
        let raw = flows.iter().map(|(name, _)| reports(name).map(|all| rates(&all)));
        let raw: Option<Vec<Vec<Rate>>> = raw.collect();
        let is_known = |all: &Vec<Vec<Rate>>| {
            flows.iter().zip(all).all(|((name, _), rates)| {
                !rates.is_empty() || pairs(times, &document.results.all[*name].0).is_empty()
            })
        };
        let ping = document.results.all.keys().chain(document.raw_values.all.keys()).find(|name| {
            // Of several pings the first by name counts.
            name.starts_with("Ping") && !name.ends_with(" avg")
        });
        if let Some(rates) = raw.filter(is_known) {
            let at = |report: &Report, value: Option<f64>| value_at(report.t?, value?);
            let rtts = |(name, _): &(&String, Direction)| {
                let reports = reports(name).unwrap_or_default();
                reports.iter().filter_map(|one| at(one, one.tcp_rtt)).collect()
            };
            let pings = ping.and_then(reports).unwrap_or_default();
            return Series {
                rates,
                rtts: flows.iter().map(rtts).collect(),
                pings: pings.iter().filter_map(|one| at(one, one.val)).collect(),
            };
        }
        let series = |name: &String| {
            document.results.all.get(name).map_or_else(Vec::new, |one| pairs(times, &one.0))
        };
        Series {
            rates: flows.iter().map(|(name, _)| between(&series(name), step)).collect(),
            rtts: flows.iter().map(|(name, _)| series(&format!("{name}{RTT}"))).collect(),
            pings: ping.map_or_else(Vec::new, series),
        }
    }
}

/// The rates of reports, each over its own time.
fn rates(reports: &[Report]) -> Vec<Rate> {
    let mut all: Vec<Rate> = Vec::new();
    for report in reports {
        let (Some(to), Some(mbit)) = (report.t, report.val) else { continue };
        let seconds = report.dur.filter(|seconds| (0.0..=3600.0).contains(seconds));
        let from = match (seconds, all.last()) {
            (Some(seconds), _) => to - seconds,
            (None, Some(before)) => before.to,
            (None, None) => continue,
        };
        if value_at(to, mbit).is_some() && from < to && all.last().is_none_or(|last| to > last.to) {
            all.push(Rate { from, to, mbit });
        }
    }
    all
}

/// The rates of values at common times: each since the one before, the first over a step.
fn between(values: &[(f64, f64)], step: f64) -> Vec<Rate> {
    let mut before = values.first().map_or(0.0, |(t, _)| t - step);
    let mut all = Vec::new();
    for (t, mbit) in values {
        if *t > before {
            all.push(Rate { from: before, to: *t, mbit: *mbit });
            before = *t;
        }
    }
    all
}

fn value_at(t: f64, value: f64) -> Option<(f64, f64)> {
    (t.is_finite() && (0.0..1e9).contains(&value)).then_some((t, value))
}

fn tool(metadata: &Metadata) -> String {
    match &metadata.flent_version {
        Some(version) => format!("flent {version}"),
        None => "flent".to_owned(),
    }
}

fn spec(metadata: &Metadata, flows: &[(&String, Direction)], seconds: f64) -> TestSpec {
    let has = |wanted| flows.iter().any(|(_, direction)| *direction == wanted);
    let direction = match (has(Direction::Forward), has(Direction::Reverse)) {
        (true, true) => Direction::Both,
        (false, true) => Direction::Reverse,
        _ => Direction::Forward,
    };
    let forward = flows.iter().filter(|(_, one)| *one == Direction::Forward).count();
    let each = forward.max(flows.len() - forward);
    TestSpec {
        target: transfer::name(metadata.host.as_deref().unwrap_or_default()),
        direction,
        seconds,
        streams: u32::try_from(each).unwrap_or(1),
        ..TestSpec::default()
    }
}

/// The times and values of a series that has them.
fn pairs(times: &[f64], values: &[Scalar]) -> Vec<(f64, f64)> {
    let pair = |(t, value): (&f64, &Scalar)| value_at(*t, value.real()?);
    times.iter().zip(values).filter_map(pair).collect()
}

/// A flow as its receiver sees it: rates in Mbit/s as bytes, with the RTTs beside. Between two
/// reports nothing is known to have arrived.
fn stream(load_from: f64, rates: &[Rate], rtts: &[(f64, f64)], idle_ms: f64) -> Stream {
    let least = rtts.iter().map(|(_, ms)| *ms).fold(idle_ms, f64::min);
    let us = |ms: f64| count(Some(ms * 1e3)).and_then(|us| u32::try_from(us).ok());
    let min_rtt_us = us(least).filter(|_| least.is_finite());
    let first = ReceiverSample { min_rtt_us, ..ReceiverSample::default() };
    let (mut bytes, mut before, mut samples) = (0.0_f64, load_from, vec![first]);
    for rate in rates {
        if rate.from > before + GAP_S {
            samples.push(ReceiverSample {
                t_s: rate.from - load_from,
                received_bytes: bytes.round() as u64,
                ..first
            });
        }
        bytes += rate.mbit * 1e6 / 8.0 * (rate.to - rate.from);
        before = rate.to;
        let near = rtts.partition_point(|(time, _)| *time < rate.to);
        let rtt = rtts.get(near).or_else(|| rtts.last());
        samples.push(ReceiverSample {
            t_s: rate.to - load_from,
            received_bytes: bytes.round() as u64,
            rtt_us: rtt.and_then(|(_, ms)| us(*ms)).filter(|us| *us > 0),
            ..first
        });
    }
    let seconds = before - load_from;
    Stream {
        sent_bytes: bytes.round() as u64,
        received_bytes: bytes.round() as u64,
        sent_seconds: seconds,
        received_seconds: seconds,
        receiver: samples,
        ..Stream::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A file with flows that report every second, each beginning a second after the one before;
    /// `raw` removes or keeps the reports.
    fn file(flows: usize, raw: bool) -> String {
        let name = |flow: usize| format!("TCP upload::{flow}");
        let reports = |flow: usize| {
            let first = json!({"t": 1000.3 + flow as f64, "dur": 0.3, "val": 5.0});
            let rest = (1..=10)
                .map(|n| json!({"t": 1000.3 + flow as f64 + f64::from(n), "dur": 1.0, "val": 2.0}));
            Value::from_iter(std::iter::once(first).chain(rest))
        };
        let times: Vec<f64> = (0..200).map(|index| f64::from(index) / 10.0).collect();
        let values = |flow: usize| {
            let at = |t: &f64| {
                let since = t - 0.3 - flow as f64;
                let is_report = since > -0.05 && (since - since.round()).abs() < 0.05;
                (is_report && since < 10.5).then_some(if since < 0.5 { 5.0 } else { 2.0 })
            };
            times.iter().map(at).collect::<Value>()
        };
        let all = |value: &dyn Fn(usize) -> Value| {
            let all = (0..flows).map(|flow| (name(flow), value(flow)));
            Value::Object(all.collect())
        };
        let raw_values = if raw { all(&reports) } else { json!({}) };
        json!({
            "metadata": {"NAME": "tcp_nup", "STEP_SIZE": 0.1},
            "x_values": times,
            "results": all(&values),
            "raw_values": raw_values,
        })
        .to_string()
    }

    #[test]
    fn a_report_has_its_own_time() {
        let one = document(&file(1, true)).unwrap();
        // 5 Mbit/s for 0.3 s, then 2 Mbit/s for 10 s.
        assert_eq!(one.streams[0].received_bytes, 187_500 + 2_500_000);
        assert!((one.seconds() - 10.3).abs() < 1e-6, "{}", one.seconds());
        let later = document(&file(3, true)).unwrap();
        let third = &later.streams[2].receiver;
        let (start, first) = (&third[1], &third[2]);
        assert!((start.t_s - 2.0).abs() < 1e-6 && start.received_bytes == 0, "{start:?}");
        assert!((first.t_s - 2.3).abs() < 1e-6 && first.received_bytes == 187_500, "{first:?}");
    }

    #[test]
    fn nothing_arrives_between_reports() {
        let mut file: Value = serde_json::from_str(&file(1, true)).unwrap();
        let reports = file["raw_values"]["TCP upload::0"].as_array_mut().unwrap();
        reports.drain(3..8);
        let one = document(&file.to_string()).unwrap();
        assert_eq!(one.streams[0].received_bytes, 187_500 + 5 * 250_000);
        let flat = one.streams[0].receiver.windows(2).find(|pair| pair[1].t_s - pair[0].t_s > 4.0);
        let flat = flat.unwrap();
        assert_eq!(flat[0].received_bytes, flat[1].received_bytes);
    }

    #[test]
    fn without_reports_the_common_times_count() {
        let one = document(&file(1, false)).unwrap();
        let bytes = one.streams[0].received_bytes as f64;
        assert!((bytes / 2_562_500.0 - 1.0).abs() < 0.02, "{bytes}");
    }

    #[test]
    fn flows_that_are_left_out_are_said() {
        let all = document(&file(40, true)).unwrap();
        assert_eq!((all.streams.len(), all.notes.len()), (40, 0));
        let many = document(&file(MAX_STREAMS + 3, true)).unwrap();
        assert_eq!(many.streams.len(), MAX_STREAMS);
        assert_eq!(many.notes, ["the file has 259 flows, of which 3 are left out"]);
    }
}
