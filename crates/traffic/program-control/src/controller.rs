//! A program as congestion control of one flow.

use crate::process::Process;
use crate::records::{Event, Reply};
use crate::{ControlProgram, ProgramError};
use control::{Ack, Congestion, CongestionControl, Reduction};
use units::{BitRate, Nanos};

/// What a program is told of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowParameters {
    /// Its number, from 1.
    pub number: u64,
    /// Payload of a packet, bytes.
    pub mss: u32,
    /// For random numbers.
    pub seed: u64,
}

/// A program that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("congestion control '{program}' of flow {flow}: {error}")]
pub struct StartError {
    /// Its name.
    pub program: String,
    /// The flow that it was for.
    pub flow: u64,
    /// What was wrong.
    pub error: ProgramError,
}

/// Congestion control by a program of its own process, one for each flow.
///
/// A program that fails is ended; [`CongestionControl::failure`] says what it did, and the
/// answers stay as they were.
#[derive(Debug)]
pub struct ProgramController {
    name: String,
    /// `None` once it has failed.
    process: Option<Process>,
    reply: Reply,
    failure: Option<String>,
}

impl ProgramController {
    /// Starts the program for a flow and waits for its first answer. To be called by a thread
    /// that lives longer than the controller: the program ends with it.
    ///
    /// # Errors
    /// It cannot be started, ends, does not answer in time, speaks another version, or its
    /// answer makes no sense; `is_stopped` while the answer is due.
    pub fn start(
        program: &ControlProgram,
        flow: FlowParameters,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, StartError> {
        let FlowParameters { number, mss, seed } = flow;
        let name = program.name();
        match Process::start(program, &Event::Start { mss, seed, flow: number }, is_stopped) {
            Ok((process, reply)) => {
                Ok(ProgramController { name, process: Some(process), reply, failure: None })
            }
            Err(error) => Err(StartError { program: name, flow: number, error }),
        }
    }

    fn tell(&mut self, event: &Event<'_>) {
        let Some(process) = &mut self.process else { return };
        match process.ask(event) {
            Ok(reply) => self.reply = reply,
            Err(error) => {
                self.failure = Some(error.to_string());
                self.process = None;
            }
        }
    }
}

impl Drop for ProgramController {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
    }
}

impl CongestionControl for ProgramController {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.tell(&Event::Ack(ack));
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.tell(&Event::Congestion(congestion));
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        self.tell(&Event::RecoveryEnd(now));
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.tell(&Event::Timeout(congestion));
    }

    fn undo(&mut self, now: Nanos) {
        self.tell(&Event::Undo(now));
    }

    fn on_idle_end(&mut self, now: Nanos, idle_ns: u64, timeouts: u32) {
        self.tell(&Event::IdleEnd { now, idle_ns, timeouts });
    }

    fn cwnd(&self) -> u64 {
        self.reply.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        self.reply.ssthresh
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.reply.pacing
    }

    fn reduction(&self) -> Reduction {
        self.reply.reduction
    }

    fn min_burst(&self) -> u64 {
        self.reply.min_burst
    }

    fn send_buffer_windows(&self) -> u64 {
        self.reply.send_buffer_windows
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
