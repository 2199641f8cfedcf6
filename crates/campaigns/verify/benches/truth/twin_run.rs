//! One case in the simulated twin, in virtual time.

use crate::Fallible;
use crate::case::{Case, Cross};
use crate::draws::Draws;
use crate::twin_capture::TwinCapture;
use control::Algorithm;
use record::Measurement;
use std::time::Duration;
use tcp::{Application, BufferCheck, BufferSize, Reader, WindowSize};
use tcp_analysis::CongestionEvidence;
use topology::PathSpec;
use twin::{ConnectionConfig, DatagramSource, HostPauses, Outcome, Scenario};
use units::{BitRate, ByteCount};

/// Bounds a run whose path lets more through than its family reckons with.
const MAX_PACKETS: u64 = 2_000_000;
/// The largest window without window scaling (RFC 9293).
const UNSCALED: ByteCount = ByteCount::from_bytes(65_535);
/// Buffers that do not limit a stream: four times the largest BDP of the families.
const AMPLE: ByteCount = ByteCount::from_bytes(300_000_000);
/// `iperf3` writes and reads that much at once.
const BLOCK: ByteCount = ByteCount::from_bytes(131_072);
/// Streams begin to send one after the other.
const STAGGER: Duration = Duration::from_micros(200);
/// Sets the draws of the hosts apart from those of the case.
const HOSTS: u64 = 0x6057;
/// Size of the datagrams of cross traffic, with IP header.
const DATAGRAM: u32 = 1_200;

/// Simulates a case: the same seed gives the same outcome.
///
/// # Errors
/// The path is not valid.
pub(crate) fn run(case: &Case, seed: u64) -> Fallible<Outcome> {
    let (scenario, scale) = scenario(case, seed)?;
    Ok(with_scale(twin::run(&scenario), scale))
}

/// The same, with what captures at the sender and at the receiver show.
///
/// # Errors
/// As above.
pub(crate) fn run_captured(case: &Case, seed: u64) -> Fallible<(Outcome, [Measurement; 2])> {
    let (scenario, scale) = scenario(case, seed)?;
    let rtt = scenario.forward.start.delay + scenario.reverse.start.delay;
    let mss = ConnectionConfig::default().mss;
    let mut capture = TwinCapture::new(case, mss, scale > 0, rtt);
    let outcome = twin::run_observed(&scenario, &mut capture);
    Ok((with_scale(outcome, scale), capture.measurements(case)))
}

/// What captures at the sender and at the receiver show of the first stream's congestion
/// control.
///
/// # Errors
/// As above.
pub(crate) fn run_congestion(case: &Case, seed: u64) -> Fallible<[CongestionEvidence; 2]> {
    let (scenario, scale) = scenario(case, seed)?;
    let rtt = scenario.forward.start.delay + scenario.reverse.start.delay;
    let mss = ConnectionConfig::default().mss;
    let mut capture = TwinCapture::new(case, mss, scale > 0, rtt);
    let _ = twin::run_observed(&scenario, &mut capture);
    Ok(capture.congestion())
}

/// What is simulated, and the scale of the windows: Linux scales by 7 with the buffers that
/// are ample here.
fn scenario(case: &Case, seed: u64) -> Fallible<(Scenario, u8)> {
    let path: PathSpec = case.path.parse()?;
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(case.number as u64);
    let [up, down] = path.schedules(seed);
    let (forward, reverse) = if case.reverse { (down, up) } else { (up, down) };
    let unscaled = forward.start.window_scale.or(reverse.start.window_scale).is_some();
    // Of its own generator: the families draw the same cases for the lab, which has real hosts.
    let mut draws = Draws::new(seed ^ HOSTS, case.number);
    let buffer_check = buffer_check(&mut draws);
    let mut connections: Vec<ConnectionConfig> =
        (0..case.streams).map(|index| stream(case, unscaled, buffer_check, index)).collect();
    let mut datagrams = Vec::new();
    for cross in &case.cross {
        match *cross {
            Cross::Tcp { congestion, start_s } => connections.push(ConnectionConfig {
                measured: false,
                algorithm: algorithm(congestion),
                start: seconds(start_s),
                ecn: case.ecn,
                ..ample()
            }),
            Cross::OnOffUdp { rate, on_s, off_s } => datagrams.push(DatagramSource {
                rate,
                size: DATAGRAM,
                on: seconds(on_s),
                off: seconds(off_s),
                start: Duration::ZERO,
            }),
        }
    }
    let duration = seconds(case.seconds);
    let scenario = Scenario {
        connections,
        datagrams,
        sending_host: pauses(&mut draws, seed ^ 1),
        receiving_host: pauses(&mut draws, seed ^ 2),
        max_packets: MAX_PACKETS,
        ..Scenario::new(forward, reverse, duration)
    };
    Ok((scenario, if unscaled { 0 } else { 7 }))
}

fn with_scale(mut outcome: Outcome, scale: u8) -> Outcome {
    for stream in &mut outcome.measurement.streams {
        stream.sender.iter_mut().for_each(|sample| sample.peer_window_scale = Some(scale));
        stream.receiver.iter_mut().for_each(|sample| sample.window_scale = Some(scale));
    }
    outcome
}

/// A measured stream.
fn stream(case: &Case, unscaled: bool, buffer_check: BufferCheck, index: u32) -> ConnectionConfig {
    let application = case.rate.map_or(Application::Bulk, |rate| Application::Rate {
        rate,
        block: case.block.unwrap_or(BLOCK),
    });
    let window = case.receive_window.unwrap_or(AMPLE);
    let window = if unscaled { window.min(UNSCALED) } else { window };
    let ample = (BufferSize::Auto(case.send_buffer.unwrap_or(AMPLE)), WindowSize::Auto(window));
    // The kernel doubles what is set, and half of the receive buffer is window.
    let fixed = |set: ByteCount| {
        let sent = ByteCount::from_bytes(2 * set.bytes());
        (BufferSize::Fixed(sent), WindowSize::Fixed(set))
    };
    let (buffer, window) = case.window.map_or(ample, fixed);
    ConnectionConfig {
        start: STAGGER * index,
        measured: true,
        algorithm: algorithm(case.congestion),
        application,
        buffer,
        buffer_check,
        max_pacing_rate: case.pacing,
        window,
        reader: case.reader.map_or(Reader::Immediate, reader),
        ecn: case.ecn,
        ..ConnectionConfig::default()
    }
}

/// Kernels differ: half of the cases run as under each.
fn buffer_check(draws: &mut Draws) -> BufferCheck {
    if draws.chance(0.5) { BufferCheck::Always } else { BufferCheck::Unsent }
}

/// Half of the hosts are never late; others pause for 0.2 to 5 ms, as virtual machines do.
fn pauses(draws: &mut Draws, seed: u64) -> Option<HostPauses> {
    let paused = draws.chance(0.5);
    let (every, length) = (draws.log(0.02, 2.0), draws.log(0.000_2, 0.005));
    paused.then(|| HostPauses { every: seconds(every), length: seconds(length), seed })
}

fn ample() -> ConnectionConfig {
    ConnectionConfig {
        buffer: BufferSize::Auto(AMPLE),
        window: WindowSize::Auto(AMPLE),
        ..ConnectionConfig::default()
    }
}

/// Reads of 10 ms of its rate.
fn reader(rate: BitRate) -> Reader {
    let block = rate.bytes_in(Duration::from_millis(10)).bytes().clamp(4_096, BLOCK.bytes());
    Reader::Rate { rate, block: ByteCount::from_bytes(block) }
}

fn algorithm(congestion: &str) -> Algorithm {
    match congestion {
        "reno" => Algorithm::NewReno,
        "bbr" => Algorithm::Bbr,
        "bbr3" => Algorithm::Bbr3,
        _ => Algorithm::Cubic,
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
