//! The rule of `@cloudflare/speedtest` 1.14 (src/engines/BandwidthEngine, src/Results), applied to the
//! server's times.

use bench_harness::Fallible;
use serde_json::Value;
use std::path::Path;

/// `bandwidthMinRequestDuration` of its configuration, seconds, and `bandwidthPercentile`.
const MIN_SECONDS: f64 = 0.01;
const PERCENTILE: f64 = 0.9;
/// What a browser counts of a response besides its body: a constant of the Fetch standard (section
/// 4.7, `transferSize`), which the client prefers to its own estimate.
const RESPONSE_HEAD: f64 = 300.0;
/// Its estimate of headers, as a share of the body, for uploads (`ESTIMATED_HEADER_FRACTION`).
const HEADER_FRACTION: f64 = 0.005;

/// The rates that the rule gives for a log of the server, bit/s: down and up.
pub(crate) fn rates(log: &Path) -> Fallible<(f64, f64)> {
    let text = std::fs::read_to_string(log)?;
    let events = || {
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|event| event["event"] == "transferred")
    };
    let of = |direction: &str, bandwidth: fn(&Value) -> Option<(f64, f64)>| {
        let all = events().filter(|event| event["direction"] == direction);
        let long = all.filter_map(|event| bandwidth(&event));
        let mut rates: Vec<f64> =
            long.filter(|(_, seconds)| *seconds >= MIN_SECONDS).map(|(bits, s)| bits / s).collect();
        rates.sort_by(f64::total_cmp);
        percentile(&rates).ok_or_else(|| format!("the server logged no {direction}"))
    };
    Ok((of("download", download)?, of("upload", upload)?))
}

/// Bits of a download, and its seconds: the client's begin with its request and end with the last
/// byte, the server's are later by half an RTT each.
fn download(event: &Value) -> Option<(f64, f64)> {
    Some(((event["bytes"].as_f64()? + RESPONSE_HEAD) * 8.0, event["seconds"].as_f64()?))
}

/// Bits of an upload, and its seconds: the client's are longer by an RTT, as they end with the answer.
fn upload(event: &Value) -> Option<(f64, f64)> {
    let bits = event["bytes"].as_f64()? * (1.0 + HEADER_FRACTION) * 8.0;
    Some((bits, event["seconds"].as_f64()? + event["min_rtt_ms"].as_f64()? / 1e3))
}

/// With linear interpolation between the two nearest values.
fn percentile(sorted: &[f64]) -> Option<f64> {
    let place = sorted.len().checked_sub(1)? as f64 * PERCENTILE;
    let (low, high) = (sorted.get(place as usize)?, sorted.get(place.ceil() as usize)?);
    Some(low + (high - low) * place.fract())
}
