//! flent's data files (version 3 and 4): series of rates and of ping RTTs on common times.
//!
//! The rates are those of netperf or iperf, in Mbit/s; the pings ran before, during and after.
//! With `--socket-stats` there are the sender's window and RTT as well, but its losses are not
//! there as a series.

use crate::{
    format::NotAResult,
    ndt7::unix_seconds,
    number::{self, count},
    transfer::{self, MOST_NAME, Transfer},
};
use diagnose::latency::{Load, ProbeFlow, under_load};
use iperf3_proto::lenient::{Scalar, short_text};
use record::{Direction, LatencyProbe, Measurement, ReceiverSample, Stream, TestSpec, Unavailable};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

const WHAT: &str = "a flent data file";

/// Times of a series: more than an hour of flent's default of 0.2 s.
const MOST_TIMES: usize = 20_000;

/// Flows, and series of flows and pings.
const MOST_FLOWS: usize = 32;
const MOST_SERIES: usize = 256;

/// Between the end of the load and the first ping that met no queue of it, in seconds.
const QUIET_S: f64 = 0.5;

#[derive(Debug, Deserialize)]
struct Document {
    metadata: Metadata,
    #[serde(deserialize_with = "number::list::<_, MOST_TIMES, _>")]
    x_values: Vec<Scalar>,
    results: ByName<Values>,
}

/// A series; null where it has no value.
#[derive(Debug, Deserialize)]
struct Values(#[serde(deserialize_with = "number::list::<_, MOST_TIMES, _>")] Vec<Scalar>);

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "UPPERCASE")]
struct Metadata {
    #[serde(deserialize_with = "short_text::<120, _>")]
    host: Option<String>,
    #[serde(deserialize_with = "short_text::<60, _>")]
    name: Option<String>,
    #[serde(deserialize_with = "short_text::<40, _>")]
    time: Option<String>,
    #[serde(deserialize_with = "short_text::<40, _>")]
    flent_version: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    step_size: Option<f64>,
    series_meta: ByName<SeriesMeta>,
}

/// What belongs to the names of flows and pings; other names are skipped.
#[derive(Debug)]
struct ByName<T>(BTreeMap<String, T>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByName<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByNameVisitor(PhantomData))
    }
}

struct ByNameVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ByNameVisitor<T> {
    type Value = ByName<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the names of series")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByName<T>, A::Error> {
        let mut all = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let is_ours = name.starts_with("TCP") || name.starts_with("Ping");
            if is_ours && name.len() <= MOST_NAME && all.len() < MOST_SERIES {
                all.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(ByName(all))
    }
}

/// What a runner said of its series.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "UPPERCASE")]
struct SeriesMeta {
    #[serde(deserialize_with = "short_text::<40, _>")]
    cong_control: Option<String>,
    #[serde(deserialize_with = "number::maybe")]
    tcpi_total_retrans: Option<f64>,
}

/// The test of a file.
pub(crate) fn document(text: &str) -> Result<Measurement, NotAResult> {
    let document: Document = serde_json::from_str(text).map_err(|e| NotAResult::json(WHAT, &e))?;
    let times: Vec<f64> = document.x_values.iter().map(|x| x.real().unwrap_or(f64::NAN)).collect();
    let flows: Vec<(&String, Direction)> = document
        .results
        .0
        .keys()
        .filter_map(|name| Some((name, direction(name)?)))
        .take(MOST_FLOWS)
        .collect();
    if flows.is_empty() {
        return Err(NotAResult::empty(
            WHAT,
            "no series of TCP upload or download; accepted are tests such as tcp_upload and rrul",
        ));
    }
    // Under load: from the first to the last rate of any flow.
    let loaded = flows.iter().filter_map(|(name, _)| span(&times, &document.results.0[*name].0));
    let (from, to) = loaded.fold((f64::INFINITY, 0.0), |(from, to), (first, last)| {
        (f64::min(from, first), f64::max(to, last))
    });
    if from >= to {
        return Err(NotAResult::empty(WHAT, "no rates: every value is null, the test failed"));
    }
    let step = document.metadata.step_size.filter(|step| (0.01..=60.0).contains(step));
    let load_from = from - step.unwrap_or(0.2);
    let pings = pings(&document, &times);
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
    for (id, (name, flow)) in (1..).zip(&flows) {
        let rtts = document.results.0.get(&format!("{name}::tcp_rtt"));
        let rtts = rtts.map_or_else(|| pings.clone(), |series| pairs(&times, &series.0));
        let rates = pairs(&times, &document.results.0[*name].0);
        let mut stream = stream(load_from, &rates, &rtts, idle);
        stream.id = id;
        stream.reverse = *flow == Direction::Reverse;
        if let Some(meta) = document.metadata.series_meta.0.get(*name) {
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

fn tool(metadata: &Metadata) -> String {
    match &metadata.flent_version {
        Some(version) => format!("flent {version}"),
        None => "flent".to_owned(),
    }
}

/// The direction of a flow's series; `None` for sums, means, pings and socket statistics.
fn direction(name: &str) -> Option<Direction> {
    let computed = [" sum", " avg", "totals", "::tcp_", " fairness"];
    if !name.starts_with("TCP") || computed.iter().any(|word| name.contains(word)) {
        return None;
    }
    if name.contains("upload") {
        Some(Direction::Forward)
    } else {
        name.contains("download").then_some(Direction::Reverse)
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
    let pair = |(t, value): (&f64, &Scalar)| Some((*t, value.real()?));
    let pairs = times.iter().zip(values).filter_map(pair);
    pairs.filter(|(t, value)| t.is_finite() && (0.0..1e9).contains(value)).collect()
}

fn span(times: &[f64], values: &[Scalar]) -> Option<(f64, f64)> {
    let pairs = pairs(times, values);
    Some((pairs.first()?.0, pairs.last()?.0))
}

/// The RTTs of the ping through the same path, in ms; several are told apart by their names,
/// of which the first counts.
fn pings(document: &Document, times: &[f64]) -> Vec<(f64, f64)> {
    let is_ping = |name: &&String| name.starts_with("Ping") && !name.ends_with(" avg");
    let first = document.results.0.keys().find(is_ping);
    first.map_or_else(Vec::new, |name| pairs(times, &document.results.0[name].0))
}

/// A flow as its receiver sees it: rates in Mbit/s as bytes, with the RTTs beside.
fn stream(from: f64, rates: &[(f64, f64)], rtts: &[(f64, f64)], idle_ms: f64) -> Stream {
    let least = rtts.iter().map(|(_, ms)| *ms).fold(idle_ms, f64::min);
    let us = |ms: f64| count(Some(ms * 1e3)).and_then(|us| u32::try_from(us).ok());
    let min_rtt_us = us(least).filter(|_| least.is_finite());
    let first = ReceiverSample { min_rtt_us, ..ReceiverSample::default() };
    let (mut bytes, mut before, mut samples) = (0.0, from, vec![first]);
    for (t, mbit) in rates {
        if *t <= before {
            continue;
        }
        bytes += mbit * 1e6 / 8.0 * (t - before);
        before = *t;
        let near = rtts.partition_point(|(time, _)| time < t);
        let rtt = rtts.get(near).or_else(|| rtts.last());
        samples.push(ReceiverSample {
            t_s: t - from,
            received_bytes: bytes as u64,
            rtt_us: rtt.and_then(|(_, ms)| us(*ms)).filter(|us| *us > 0),
            ..first
        });
    }
    let seconds = before - from;
    Stream {
        sent_bytes: bytes as u64,
        received_bytes: bytes as u64,
        sent_seconds: seconds,
        received_seconds: seconds,
        receiver: samples,
        ..Stream::default()
    }
}
