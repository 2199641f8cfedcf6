//! The figures of a flow, from its measurement and its finding.

mod decrease;
mod increase;
mod series;
mod udt;

use increase::Increases;
use record::{Finding, FlowFigures, Measurement, Protocol};
use study::program::Reported;
use udt::Feedback;

/// The figures of a flow; `began_s` is when its data began, since the first flow's.
pub(crate) fn of(name: &str, began_s: f64, m: &Measurement, finding: &Finding) -> FlowFigures {
    let samples = || m.streams.iter().flat_map(|stream| &stream.sender);
    let datagrams = || m.streams.iter().filter_map(|stream| stream.datagrams.as_ref());
    let is_udp = m.spec.protocol == Protocol::Udp;
    let (received, lost) =
        datagrams().fold((0u64, 0u64), |sum, one| (sum.0 + one.received, sum.1 + one.lost));
    let jitters: Vec<f64> = datagrams().map(|one| one.jitter.secs_f64() * 1e3).collect();
    let rtts: Vec<f64> =
        samples().map(|sample| f64::from(sample.rtt_us) / 1e3).filter(|rtt| *rtt > 0.0).collect();
    let feedback = Feedback::of(&m.streams);
    let increases = Increases::of(&m.streams);
    let likely = finding.posterior.first().filter(|one| Some(one.limit) == finding.limit);
    FlowFigures {
        name: name.to_owned(),
        began_s,
        seconds: m.seconds(),
        throughput_bps: rate(m, |stream| (stream.received_bytes, stream.received_seconds)),
        steady_bps: (!is_udp).then(|| finding.throughput_bps.as_f64()),
        sent_bps: rate(m, |stream| (stream.sent_bytes, stream.sent_seconds)),
        retransmits: m.streams.iter().map(|stream| stream.retransmits).sum(),
        min_rtt_ms: finding.min_rtt.map(|rtt| rtt.secs_f64() * 1e3),
        mean_rtt_ms: model::statistics::mean(&rtts),
        window_bytes: samples().filter_map(|sample| sample.peer_window_bytes).max(),
        loss: (is_udp && received + lost > 0).then(|| lost as f64 / (received + lost) as f64),
        out_of_order: is_udp.then(|| datagrams().map(|one| one.reordered).sum()),
        jitter_ms: model::statistics::mean(&jitters).filter(|_| is_udp),
        limit: finding.limit,
        probability: likely.map(|one| one.probability),
        decrease_factor: decrease::factor(&m.streams),
        acks_per_packet: feedback.and_then(|all| all.acks_per_packet()),
        light_acks_per_packet: feedback.and_then(|all| all.light_acks_per_packet()),
        naks: feedback.map(|all| all.naks),
        increases: increases.map(|all| all.count),
        increases_by_alpha: increases.map(|all| all.by_alpha),
        growth_over_alpha: increases.and_then(|all| all.over_alpha()),
        disk_bps: series::disk_rate(m),
        disk_series_bps: series::disk_per_second(m),
        nak_series: udt::naks_per_second(&m.streams),
        series_bps: series::per_second(m),
    }
}

/// Those of a program's flow: its goodput is what the program says, the rest is the kernel's. With
/// an origin behind the server, what was sent is the origin's.
pub(crate) fn as_reported(figures: FlowFigures, reported: Reported) -> FlowFigures {
    let seconds = reported.seconds.unwrap_or(figures.seconds);
    let origin = reported.origin.filter(|_| seconds > 0.0);
    FlowFigures {
        throughput_bps: reported.rate.as_f64(),
        sent_bps: origin.map_or(figures.sent_bps, |bytes| bytes.as_f64() * 8.0 / seconds),
        seconds,
        ..figures
    }
}

/// Bit/s over the longest time of a stream.
fn rate(m: &Measurement, of: impl Fn(&record::Stream) -> (u64, f64)) -> f64 {
    let parts: Vec<(u64, f64)> = m.streams.iter().map(of).collect();
    let seconds = parts.iter().map(|part| part.1).fold(0.0, f64::max);
    let bytes: u64 = parts.iter().map(|part| part.0).sum();
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
