//! What may be changed of a transfer, and the scenario with it.

use crate::Scenario;
use control::Algorithm;
use topology::{PathError, PathSpec};
use units::{BitRate, ByteCount};

/// Several flows instead of one: the factor, and the most streams that result.
const TIMES: u32 = 4;
const MAX_FLOWS: u32 = 8;
/// The share of the path's rate that pacing allows.
const PACED: f64 = 0.95;

/// A change of one side of a transfer, or of the options of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The run as it was.
    Nothing,
    /// An ample `tcp_rmem` at the receiver.
    ReceiveBuffer,
    /// An ample `tcp_wmem` at the sender.
    SendBuffer,
    /// An application that writes without a rate limit.
    UnlimitedSource,
    /// A receiving application that reads at once.
    FastReader,
    /// No maximum pacing rate.
    NoPacing,
    /// Another congestion control.
    Control(Algorithm),
    /// All streams together paced at 95 % of the path's rate, or of its policer's.
    Pacing,
    /// Four times the streams, at most 8. What the applications write and read stays the same.
    Flows,
    /// Both buffers ample.
    Buffers,
    /// fasterdata.es.net's advice for every host: both buffers ample, and BBR.
    BuffersAndBbr,
    /// `-b`: each stream's application writes at that rate at most.
    RateLimit(BitRate),
    /// `-w`: buffers of that size, as set, at both ends.
    SocketBuffer(ByteCount),
}

/// The single changes among which the best is sought, the simplest first.
pub const MENU: [Action; 10] = [
    Action::Nothing,
    Action::ReceiveBuffer,
    Action::SendBuffer,
    Action::UnlimitedSource,
    Action::FastReader,
    Action::NoPacing,
    Action::Control(Algorithm::Cubic),
    Action::Control(Algorithm::Bbr),
    Action::Pacing,
    Action::Flows,
];

impl Action {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::Nothing => "nothing",
            Action::ReceiveBuffer => "receive-buffer",
            Action::SendBuffer => "send-buffer",
            Action::UnlimitedSource => "unlimited-source",
            Action::FastReader => "fast-reader",
            Action::NoPacing => "no-pacing",
            Action::Control(algorithm) => algorithm.name(),
            Action::Pacing => "pacing",
            Action::Flows => "flows",
            Action::Buffers => "both-buffers",
            Action::BuffersAndBbr => "buffers-and-bbr",
            Action::RateLimit(_) => "rate-limit",
            Action::SocketBuffer(_) => "socket-buffer",
        }
    }

    /// The scenario with it; equal to the scenario where it changes nothing.
    ///
    /// # Errors
    /// The path of the scenario is not valid.
    pub fn applied(self, scenario: &Scenario) -> Result<Scenario, PathError> {
        let as_it_was = scenario.clone();
        Ok(match self {
            Action::Nothing => as_it_was,
            Action::ReceiveBuffer => Scenario { receive_window: None, ..as_it_was },
            Action::SendBuffer => Scenario { send_buffer: None, ..as_it_was },
            Action::UnlimitedSource => Scenario { rate: None, block: None, ..as_it_was },
            Action::FastReader => Scenario { reader: None, ..as_it_was },
            Action::NoPacing => Scenario { pacing: None, ..as_it_was },
            Action::Control(congestion) => Scenario { congestion, ..as_it_was },
            Action::Pacing => {
                let each = slowest(scenario)?
                    .map(|rate| rate.scaled(PACED / f64::from(scenario.streams.max(1))));
                Scenario { pacing: lower(scenario.pacing, each), ..as_it_was }
            }
            Action::Flows => with_flows(as_it_was),
            Action::Buffers => with_buffers(as_it_was),
            Action::BuffersAndBbr => {
                Scenario { congestion: Algorithm::Bbr, ..with_buffers(as_it_was) }
            }
            Action::RateLimit(rate) => {
                Scenario { rate: lower(scenario.rate, Some(rate)), ..as_it_was }
            }
            Action::SocketBuffer(bytes) => Scenario { window: Some(bytes), ..as_it_was },
        })
    }
}

fn with_buffers(scenario: Scenario) -> Scenario {
    Scenario { receive_window: None, send_buffer: None, ..scenario }
}

fn with_flows(scenario: Scenario) -> Scenario {
    let before = scenario.streams.max(1);
    let streams = before.saturating_mul(TIMES).min(MAX_FLOWS).max(before);
    let each = |rate: BitRate| rate.scaled(f64::from(before) / f64::from(streams));
    Scenario {
        streams,
        rate: scenario.rate.map(each),
        reader: scenario.reader.map(each),
        ..scenario
    }
}

/// The rate that the data's direction starts with, or its policer's if that is lower; `None` if
/// unlimited.
fn slowest(scenario: &Scenario) -> Result<Option<BitRate>, PathError> {
    let path: PathSpec = scenario.path.parse()?;
    let [up, down] = path.directions();
    let data = if scenario.reverse { down } else { up };
    Ok(lower(data.rate(), data.config().policer.map(|bucket| bucket.rate)))
}

fn lower(one: Option<BitRate>, other: Option<BitRate>) -> Option<BitRate> {
    one.into_iter().chain(other).min()
}
