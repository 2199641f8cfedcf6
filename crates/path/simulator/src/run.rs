//! One scenario in virtual time.

use crate::captures::{Captures, SimulatedCapture};
use crate::draws::Draws;
use crate::{CrossFlow, Scenario, ScenarioError, Truth};
use record::Measurement;
use std::time::Duration;
use tcp::{Application, BufferCheck, BufferSize, Reader, WindowSize};
use topology::PathSpec;
use twin::{ConnectionConfig, DatagramSource, Ecn, HostPauses, Outcome, TruthInterval};
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
/// Sets the draws of the hosts apart from those of the scenario.
const HOSTS: u64 = 0x6057;
/// Size of the datagrams of cross traffic, with IP header.
const DATAGRAM: u32 = 1_200;

/// What comes of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedRun {
    /// What a test between the two hosts measures.
    pub measurement: Measurement,
    /// What limited the transfer in fact.
    pub truth: Truth,
    /// The records that the truth is computed from, one for each 100 ms: no measurement has
    /// them.
    pub intervals: Vec<TruthInterval>,
    /// Packets that the application of each connection read: the measured streams first.
    pub read: Vec<u64>,
    /// The run ended early, after two million data packets.
    pub truncated: bool,
}

impl Scenario {
    /// Simulates the scenario in virtual time. The seed draws what the path and the hosts
    /// leave to chance: the same seed gives the same run.
    ///
    /// # Errors
    /// The path is not valid, or a bound is exceeded ([`Scenario::check`]).
    pub fn run(&self, seed: u64) -> Result<SimulatedRun, ScenarioError> {
        let (config, scale) = config(self, seed)?;
        self.finished(twin::run(&config), scale)
    }

    /// The same, with what captures at both hosts show: every packet is built, dissected
    /// and analysed, which takes several times as long.
    ///
    /// # Errors
    /// Those of [`Scenario::run`].
    pub fn run_captured(&self, seed: u64) -> Result<(SimulatedRun, Captures), ScenarioError> {
        let (config, scale) = config(self, seed)?;
        let rtt = config.forward.start.delay + config.reverse.start.delay;
        let mss = ConnectionConfig::default().mss;
        let mut capture = SimulatedCapture::new(self, mss, scale > 0, rtt);
        let outcome = twin::run_observed(&config, &mut capture);
        Ok((self.finished(outcome, scale)?, capture.finish(self)))
    }

    fn finished(&self, outcome: Outcome, scale: u8) -> Result<SimulatedRun, ScenarioError> {
        let Outcome { mut measurement, truth: intervals, read, truncated, .. } = outcome;
        for stream in &mut measurement.streams {
            stream.sender.iter_mut().for_each(|sample| sample.peer_window_scale = Some(scale));
            stream.receiver.iter_mut().for_each(|sample| sample.window_scale = Some(scale));
        }
        let truth = Truth::of(self, &intervals)?;
        Ok(SimulatedRun { measurement, truth, intervals, read, truncated })
    }
}

/// What the twin simulates, and the scale of the windows: Linux scales by 7 with the buffers
/// that are ample here.
fn config(scenario: &Scenario, seed: u64) -> Result<(twin::Scenario, u8), ScenarioError> {
    scenario.check()?;
    let path: PathSpec = scenario.path.parse()?;
    let seed = scenario.path_seed(seed);
    let [up, down] = path.schedules(seed);
    let (forward, reverse) = if scenario.reverse { (down, up) } else { (up, down) };
    let unscaled = forward.start.window_scale.or(reverse.start.window_scale).is_some();
    // Of its own generator: the families draw the same scenarios for real hosts.
    let mut draws = Draws::new(seed ^ HOSTS, scenario.number);
    let buffer_check = buffer_check(&mut draws);
    let streams = 0..scenario.streams;
    let mut connections: Vec<ConnectionConfig> =
        streams.map(|index| stream(scenario, unscaled, buffer_check, index)).collect();
    let mut datagrams = Vec::new();
    for flow in &scenario.cross {
        match *flow {
            CrossFlow::Tcp { congestion, start_s } => connections.push(ConnectionConfig {
                measured: false,
                algorithm: congestion,
                start: seconds(start_s),
                ecn: ecn(scenario),
                ..ample()
            }),
            CrossFlow::OnOffUdp { rate, on_s, off_s } => datagrams.push(DatagramSource {
                rate,
                size: DATAGRAM,
                on: seconds(on_s),
                off: seconds(off_s),
                start: Duration::ZERO,
            }),
        }
    }
    let duration = seconds(scenario.seconds);
    let config = twin::Scenario {
        connections,
        datagrams,
        sending_host: pauses(&mut draws, seed ^ 1),
        receiving_host: pauses(&mut draws, seed ^ 2),
        max_packets: MAX_PACKETS,
        ..twin::Scenario::new(forward, reverse, duration)
    };
    Ok((config, if unscaled { 0 } else { 7 }))
}

/// A measured stream.
fn stream(
    scenario: &Scenario,
    unscaled: bool,
    buffer_check: BufferCheck,
    index: u32,
) -> ConnectionConfig {
    let application = scenario.rate.map_or(Application::Bulk, |rate| Application::Rate {
        rate,
        block: scenario.block.unwrap_or(BLOCK),
    });
    let window = scenario.receive_window.unwrap_or(AMPLE);
    let window = if unscaled { window.min(UNSCALED) } else { window };
    let ample = (BufferSize::Auto(scenario.send_buffer.unwrap_or(AMPLE)), WindowSize::Auto(window));
    // The kernel doubles what is set, and half of the receive buffer is window.
    let fixed = |set: ByteCount| {
        let sent = ByteCount::from_bytes(set.bytes().saturating_mul(2));
        (BufferSize::Fixed(sent), WindowSize::Fixed(set))
    };
    let (buffer, window) = scenario.window.map_or(ample, fixed);
    ConnectionConfig {
        start: STAGGER * index,
        measured: true,
        algorithm: scenario.congestion,
        application,
        buffer,
        buffer_check,
        max_pacing_rate: scenario.pacing,
        window,
        reader: scenario.reader.map_or(Reader::Immediate, reader),
        ecn: ecn(scenario),
        ..ConnectionConfig::default()
    }
}

/// Real hosts have classic ECN alone.
const fn ecn(scenario: &Scenario) -> Ecn {
    if scenario.ecn { Ecn::Classic } else { Ecn::Off }
}

/// Kernels differ: half of the scenarios run as under each.
fn buffer_check(draws: &mut Draws) -> BufferCheck {
    if draws.chance(0.5) { BufferCheck::Always } else { BufferCheck::Unsent }
}

/// Half of the hosts are never late; others pause for 0.2 to 5 ms, as virtual machines do.
fn pauses(draws: &mut Draws, seed: u64) -> Option<HostPauses> {
    let paused = draws.chance(0.5);
    let (every, length) = (draws.log(0.02, 2.0), draws.log(0.000_2, 0.005));
    paused.then(|| HostPauses::Random { every: seconds(every), length: seconds(length), seed })
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

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
