//! A measurement of what a file says of one transfer.

use record::{
    Action, AlsoShows, Direction, Measurement, Stream, TestSpec, ToolResult, Unavailable,
};

/// Most characters of a name that a file gives: of a host, a tool or a congestion control.
pub(crate) const MAX_NAME: usize = 120;

/// Streams of one transfer: iperf3 has at most 128 in each direction.
pub(crate) const MAX_STREAMS: usize = 256;

/// Samples of a stream; of more, every second one is kept.
const MAX_SAMPLES: usize = 20_000;

/// Longest test that is proposed, in seconds.
const MAX_S: f64 = 60.0;

/// One transfer in a file.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    /// The tool and its version.
    pub(crate) tool: String,
    /// Which transfer of the file it is; empty if there is one alone.
    pub(crate) name: String,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) started_unix_s: u64,
    /// What was asked for, as far as the file says.
    pub(crate) spec: TestSpec,
    pub(crate) streams: Vec<Stream>,
    pub(crate) unavailable: Vec<Unavailable>,
    /// CPU time of the sending and of the receiving thread, as a share of a core.
    pub(crate) cpu: [Option<f64>; 2],
    pub(crate) notes: Vec<String>,
}

impl Transfer {
    pub(crate) fn into_measurement(mut self) -> Measurement {
        for stream in &mut self.streams {
            thin(&mut stream.sender);
            thin(&mut stream.receiver);
        }
        self.unavailable.sort_unstable();
        self.unavailable.dedup();
        let [sender_cpu, receiver_cpu] = self.cpu;
        let tool = ToolResult {
            tool: self.tool.clone(),
            transfer: self.name,
            unavailable: self.unavailable,
            next_test: next_test(&self.spec),
        };
        Measurement {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: self.started_unix_s,
            spec: self.spec,
            peer: self.tool,
            streams: self.streams,
            sender_cpu,
            receiver_cpu,
            notes: self.notes,
            tool: Some(tool),
            ..Measurement::default()
        }
    }
}

/// The test of longhaul's that would reveal what a file does not say: the same one, with the
/// second test that decides between likely causes.
fn next_test(spec: &TestSpec) -> String {
    let mut spec = TestSpec { seconds: spec.seconds.min(MAX_S), ..spec.clone() };
    if spec.direction == Direction::Reverse {
        // The sender's, which this host may lack.
        spec.congestion = None;
    }
    Action::Test(Box::new(spec), AlsoShows::Cause).command()
}

/// Keeps every second sample until there are few enough, the first always.
fn thin<T>(samples: &mut Vec<T>) {
    while samples.len() > MAX_SAMPLES {
        let mut keep = false;
        samples.retain(|_| {
            keep = !keep;
            keep
        });
    }
}

/// Names each of several tests by its number.
pub(crate) fn number(tests: &mut [Measurement]) {
    let count = tests.len();
    for (number, one) in (1..).zip(tests) {
        if let Some(tool) = one.tool.as_mut().filter(|_| count > 1) {
            tool.transfer = format!("test {number} of {count}");
        }
    }
}

/// The direction of a test with these streams, and how many of them each direction has.
pub(crate) fn direction(streams: &[Stream]) -> (Direction, u32) {
    let reverse = streams.iter().filter(|stream| stream.reverse).count();
    let forward = streams.len() - reverse;
    let direction = match (forward, reverse) {
        (_, 0) => Direction::Forward,
        (0, _) => Direction::Reverse,
        _ => Direction::Both,
    };
    (direction, u32::try_from(forward.max(reverse)).unwrap_or(1))
}

/// At most [`MAX_NAME`] characters of a name.
pub(crate) fn name(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

/// Bytes as a JSON number has them, a share of a core as a percentage.
pub(crate) fn core_share(percent: Option<f64>) -> Option<f64> {
    percent.filter(|percent| (0.0..=100_000.0).contains(percent)).map(|percent| percent / 100.0)
}
