//! The request of the arguments of `longhaul test`.

use super::TestArgs;
use crate::failure::Failure;
use longhaul::Problem;
use longhaul::test::{
    ClientConfig, Earlier, EndAfter, Family, LatencyProbes, TcpOptions, TestMode, TestRequest,
    Transport, UdpOptions, UdtOptions,
};
use record::Direction;
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

/// Converts the arguments to a request; reads the earlier result to compare with.
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
        transfer: transfer(args)?,
        mode,
        latency: (modes.latency || modes.brief).then_some(LatencyProbes { port }),
        fits_path: args.length == Some(Length::Auto),
        autotuning: args.autotuning,
        compare: modes.compare.as_deref().map(Earlier::load).transpose()?,
    })
}

/// The transport, with those options that it has. Those of TCP are checked with any.
fn transport(args: &TestArgs) -> Result<Transport, Failure> {
    let sockets = &args.sockets;
    let tcp = TcpOptions {
        mss: sockets.mss,
        nodelay: sockets.nodelay,
        mptcp: sockets.mptcp,
        zerocopy: match (sockets.zerocopy, sockets.no_zerocopy) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        skip_rx_copy: sockets.skip_rx_copy,
        ..TcpOptions::default()
    };
    tcp.check().map_err(Problem::from)?;
    Ok(match (args.udp || args.modes.find_rate, args.udt) {
        (true, _) => Transport::Udp(UdpOptions {
            segment: !sockets.no_segmentation,
            coalesce: !sockets.no_coalescing,
            ..UdpOptions::default()
        }),
        (_, true) => Transport::Udt(UdtOptions {
            native: args.native,
            fallback: (!args.no_fallback).then_some(tcp),
            ..UdtOptions::default()
        }),
        _ => Transport::Tcp(tcp),
    })
}

fn transfer(args: &TestArgs) -> Result<ClientConfig, Failure> {
    let default_rate = (args.udp && !args.modes.find_rate).then_some(UDP_RATE);
    Ok(ClientConfig {
        ports: args.port.clone(),
        transport: transport(args)?,
        bind: args.bind,
        family: Family::from_flags(args.ipv4, args.ipv6),
        end: args.bytes.map_or(EndAfter::Seconds(args.time), EndAfter::Bytes),
        omit_seconds: args.omit,
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
        tos: args.sockets.tos,
        dont_fragment: args.sockets.dont_fragment,
        device: args.sockets.device.clone(),
        token: args.sockets.token.value(),
        // At most a day, as for the duration of a test.
        report_every: Duration::from_secs_f64(args.interval.min(86_400.0)),
        ..ClientConfig::new(&args.host)
    })
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
