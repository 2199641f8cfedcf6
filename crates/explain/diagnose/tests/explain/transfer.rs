//! Simulated transfers, whose limit is known.

use control::Algorithm;
use record::{Measurement, Sample};
use std::time::Duration;
use tcp::{Application, BufferSize, Reader, WindowSize};
use topology::PathSpec;
use twin::{ConnectionConfig, Scenario};
use units::{BitRate, ByteCount};

/// Bounds a run whose path carries more than intended.
const MAX_PACKETS: u64 = 200_000;

/// What each seed multiplies the bottleneck's rate by, and divides the RTT by: the BDP, and
/// what is given in its terms, stays.
const VARIED: [f64; 5] = [1.0, 0.8, 1.25, 0.9, 1.12];

/// One test between two hosts over a path.
#[derive(Debug, Clone)]
pub(crate) struct Transfer {
    /// The bottleneck's rate, Mbit/s.
    pub(crate) mbit: f64,
    pub(crate) rtt_ms: f64,
    /// The path's other options, as in `--link`.
    pub(crate) options: String,
    pub(crate) seconds: f64,
    pub(crate) streams: u32,
    /// Every stream.
    pub(crate) stream: ConnectionConfig,
    /// Connections that are not measured: when each begins, in seconds.
    pub(crate) cross: Vec<f64>,
    /// Whether both hosts scale their windows.
    pub(crate) scaled: bool,
}

/// A stream of CUBIC for 6 s, which nothing but the path limits.
pub(crate) fn over(mbit: f64, rtt_ms: f64, options: &str) -> Transfer {
    let ample = ByteCount::from_bytes(300_000_000);
    Transfer {
        mbit,
        rtt_ms,
        options: options.to_owned(),
        seconds: 6.0,
        streams: 1,
        stream: ConnectionConfig {
            buffer: BufferSize::Auto(ample),
            window: WindowSize::Auto(ample),
            ..ConnectionConfig::default()
        },
        cross: Vec::new(),
        scaled: true,
    }
}

impl Transfer {
    /// Bandwidth-delay product, bytes.
    pub(crate) fn bdp(&self) -> f64 {
        self.mbit * self.rtt_ms * 125.0
    }

    pub(crate) fn seconds(self, seconds: f64) -> Self {
        Transfer { seconds, ..self }
    }

    pub(crate) fn streams(self, streams: u32) -> Self {
        Transfer { streams, ..self }
    }

    pub(crate) fn congestion(mut self, algorithm: Algorithm) -> Self {
        self.stream.algorithm = algorithm;
        self
    }

    pub(crate) fn shared_with(self, cross: &[f64]) -> Self {
        Transfer { cross: cross.to_vec(), ..self }
    }

    /// The largest receive window, in BDP.
    pub(crate) fn receive_window(mut self, bdp: f64) -> Self {
        self.stream.window = WindowSize::Auto(ByteCount::from_f64(bdp * self.bdp()));
        self
    }

    /// Without window scaling (RFC 7323).
    pub(crate) fn unscaled(mut self) -> Self {
        self.stream.window = WindowSize::Auto(ByteCount::from_bytes(65_535));
        Transfer { scaled: false, ..self }
    }

    /// The send buffer, in BDP.
    pub(crate) fn send_buffer(mut self, bdp: f64) -> Self {
        self.stream.buffer = BufferSize::Auto(ByteCount::from_f64(bdp * self.bdp()));
        self
    }

    /// `-b`, for each stream, as a share of the bottleneck's rate.
    pub(crate) fn requested(mut self, share: f64) -> Self {
        let block = ByteCount::from_bytes(131_072);
        self.stream.application = Application::Rate { rate: self.share(share), block };
        self
    }

    /// `--fq-rate`, for each stream.
    pub(crate) fn paced(mut self, share: f64) -> Self {
        self.stream.max_pacing_rate = Some(self.share(share));
        self
    }

    /// A receiving application that reads at a share of the bottleneck's rate.
    pub(crate) fn read_at(mut self, share: f64) -> Self {
        let block = ByteCount::from_bytes(16_384);
        self.stream.reader = Reader::Rate { rate: self.share(share), block };
        self
    }

    fn share(&self, share: f64) -> BitRate {
        BitRate::from_bps_f64(self.mbit * 1e6 * share)
    }

    /// Simulates it: the same seed gives the same measurement.
    pub(crate) fn run(&self, seed: u64) -> Measurement {
        let varied = VARIED[seed as usize % VARIED.len()];
        let (mbit, rtt_ms) = (self.mbit * varied, self.rtt_ms / varied);
        let text = format!("rate={:.0}kbit,rtt={:.0}us,{}", mbit * 1e3, rtt_ms * 1e3, self.options);
        let path: Result<PathSpec, _> = text.trim_end_matches(',').parse();
        let path = path.unwrap_or_else(|error| panic!("{text}: {error}"));
        let [forward, reverse] = path.schedules(seed + 1);
        let mut connections: Vec<ConnectionConfig> = (0..self.streams)
            .map(|index| ConnectionConfig {
                start: Duration::from_micros(200) * index,
                ..self.stream
            })
            .collect();
        connections.extend(self.cross.iter().map(|start| ConnectionConfig {
            measured: false,
            start: Duration::from_secs_f64(*start),
            ..over(1.0, 1.0, "").stream
        }));
        let outcome = twin::run(&Scenario {
            connections,
            max_packets: MAX_PACKETS,
            ..Scenario::new(forward, reverse, Duration::from_secs_f64(self.seconds))
        });
        assert!(!outcome.truncated, "{text}");
        let mut m = outcome.measurement;
        for sample in m.streams.iter_mut().flat_map(|stream| &mut stream.sender) {
            sample.peer_window_scale = Some(if self.scaled { 7 } else { 0 });
        }
        m
    }
}

/// The receiver's samples alone.
pub(crate) fn receiver_only(mut m: Measurement) -> Measurement {
    m.streams.iter_mut().for_each(|stream| stream.sender.clear());
    m
}

/// The sender's samples alone, as against a foreign server.
pub(crate) fn sender_only(mut m: Measurement) -> Measurement {
    m.streams.iter_mut().for_each(|stream| stream.receiver.clear());
    m
}

/// As older versions wrote it, without the fields added since.
pub(crate) fn older(m: Measurement) -> Measurement {
    with_samples(m, |sample| Sample {
        ssthresh_bytes: None,
        max_pacing_rate_bps: None,
        ce_delivered: None,
        dsack_duplicates: None,
        reorderings: None,
        acks: None,
        peer_window_scale: None,
        ..sample
    })
}

/// One sample in every `seconds`.
pub(crate) fn every(mut m: Measurement, seconds: f64) -> Measurement {
    for stream in &mut m.streams {
        let mut next = 0.0;
        stream.sender.retain(|sample| is_due(sample.t_s, &mut next, seconds));
        next = 0.0;
        stream.receiver.retain(|sample| is_due(sample.t_s, &mut next, seconds));
    }
    m
}

/// As `watch` sees it: the sender's samples alone, one a second.
pub(crate) fn watched(m: Measurement) -> Measurement {
    let mut m = every(sender_only(m), 1.0);
    m.streams.iter_mut().for_each(|stream| stream.watched = true);
    m
}

fn is_due(t: f64, next: &mut f64, seconds: f64) -> bool {
    let due = t >= *next - 1e-6;
    if due {
        *next = t + seconds;
    }
    due
}

fn with_samples(mut m: Measurement, change: impl Fn(Sample) -> Sample) -> Measurement {
    for sample in m.streams.iter_mut().flat_map(|stream| &mut stream.sender) {
        *sample = change(*sample);
    }
    m
}
