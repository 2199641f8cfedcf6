//! The request of the arguments of `longhaul test`.

use super::TestArgs;
use crate::failure::Failure;
use longhaul::test::{ClientConfig, Earlier, Family, LatencyProbes, TestMode, TestRequest};
use record::{Direction, Protocol};
use std::path::Path;
use std::time::Duration;
use units::{BitRate, ByteCount, ParseError};

/// Default rate of UDP, as in iperf3: a test must not flood a path by default.
const UDP_RATE: BitRate = BitRate::from_bps(1_000_000);

/// A rate limit, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace(Option<BitRate>);

/// As with iperf3, a bare number is in bit/s, and 0 means no limit.
pub(super) fn rate_or_unlimited(text: &str) -> Result<Pace, ParseError> {
    if text == "0" {
        return Ok(Pace(None));
    }
    let is_bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let text = if is_bare { &format!("{text}bit") } else { text };
    text.parse().map(|rate| Pace(Some(rate)))
}

/// The value of `-l`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Length {
    /// The largest datagram that is not fragmented.
    Auto,
    Bytes(ByteCount),
}

/// Parses the value of `-l`.
pub(super) fn length(text: &str) -> Result<Length, ParseError> {
    if text == "auto" {
        return Ok(Length::Auto);
    }
    text.parse().map(Length::Bytes)
}

/// What the arguments ask for; reads the earlier result to compare with.
pub(super) fn of(args: &TestArgs) -> Result<TestRequest, Failure> {
    let modes = &args.modes;
    let mode = match (modes.find_rate, modes.repeat) {
        (true, _) => TestMode::FindRate {
            loss_target: modes.loss_target.fraction(),
            try_seconds: modes.try_time,
        },
        (_, Some(count)) => TestMode::Repeat { count },
        _ => TestMode::Once {
            decide: modes.decide,
            capture: args.pcap.as_deref().map(Path::to_owned),
        },
    };
    let port = modes.latency_port.unwrap_or(LatencyProbes::default().port);
    Ok(TestRequest {
        transfer: transfer(args),
        mode,
        latency: (modes.latency || modes.brief).then_some(LatencyProbes { port }),
        fits_path: args.length == Some(Length::Auto),
        falls_back: !args.no_fallback,
        autotuning: args.autotuning,
        compare: modes.compare.as_deref().map(Earlier::load).transpose()?,
    })
}

fn transfer(args: &TestArgs) -> ClientConfig {
    let default_rate = (args.udp && !args.modes.find_rate).then_some(UDP_RATE);
    ClientConfig {
        ports: args.port.clone(),
        protocol: match (args.udp || args.modes.find_rate, args.udt) {
            (true, _) => Protocol::Udp,
            (_, true) => Protocol::Udt,
            _ => Protocol::Tcp,
        },
        native: args.native,
        bind: args.bind,
        family: Family::from_flags(args.ipv4, args.ipv6),
        seconds: args.time,
        omit_seconds: args.omit,
        bytes: args.bytes,
        streams: args.parallel,
        window: args.window,
        block: match args.length {
            Some(Length::Bytes(length)) => Some(length),
            Some(Length::Auto) | None => None,
        },
        rate: args.bitrate.map_or(default_rate, |pace| pace.0),
        congestion: args.congestion.clone(),
        direction: match (args.bidir, args.reverse) {
            (true, _) => Direction::Both,
            (_, true) => Direction::Reverse,
            _ => Direction::Forward,
        },
        mss: args.sockets.mss,
        nodelay: args.sockets.nodelay,
        tos: args.sockets.tos,
        mptcp: args.sockets.mptcp,
        zerocopy: match (args.sockets.zerocopy, args.sockets.no_zerocopy) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        skip_rx_copy: args.sockets.skip_rx_copy,
        segment: !args.sockets.no_segmentation,
        coalesce: !args.sockets.no_coalescing,
        dont_fragment: args.sockets.dont_fragment,
        device: args.sockets.device.clone(),
        token: args.sockets.token.value(),
        // At most a day, as for the duration of a test.
        report_every: Duration::from_secs_f64(args.interval.min(86_400.0)),
        ..ClientConfig::new(&args.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_size_or_auto() {
        assert_eq!(length("auto"), Ok(Length::Auto));
        assert_eq!(length("20k"), Ok(Length::Bytes(ByteCount::from_bytes(20_480))));
        assert!(length("automatic").is_err());
    }
}
