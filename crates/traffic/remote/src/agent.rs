//! Requests to an agent.

use crate::process::{Launcher, Process, RemoteError};
use crate::protocol::{
    Clock, FlowReply, FlowRequest, Hello, MAX_REPLY, MAX_RESULTS, Offset, Probe, Reply, Request,
    Secret, SysctlRequest, VERSION, parse_reply, write,
};
use host::clock;
use host::stop::StopFlag;
use record::Written;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Timeout of the first reply: ssh connects, and its user types a password.
pub const FIRST_REPLY: Duration = Duration::from_secs(300);
/// Timeout of a reply to a request that is carried out at once.
const REPLY: Duration = Duration::from_secs(30);
/// Timeout of a run's reply after its flows have ended: handshakes, results, and the
/// samples over ssh.
const AFTER_RUN: Duration = Duration::from_secs(120);

/// An agent that has said what it is. It ends when this is dropped.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    hello: Hello,
    clock: Clock,
    /// The agent's wall clock minus the one here, from the shortest exchange.
    wall: Option<(Duration, f64)>,
    /// Where the clock here began.
    origin: Instant,
}

impl Agent {
    /// Starts an agent; times are compared with those since `origin`.
    ///
    /// # Errors
    /// It cannot be started, or does not answer as an agent of this version.
    pub fn start(
        launcher: &Launcher,
        origin: Instant,
        stop: &StopFlag,
    ) -> Result<Self, RemoteError> {
        let mut process = Process::start(launcher)?;
        let reply = ask(&mut process, &[Request::Hello { version: VERSION }], FIRST_REPLY, stop)?;
        let Reply::Hello(hello) = reply else { return Err(unexpected(&process)) };
        Ok(Agent { process, hello: *hello, clock: Clock::default(), wall: None, origin })
    }

    /// Starts an agent and has it serve one copy: what both ends tell each other about it is
    /// exchanged in one round trip.
    ///
    /// # Errors
    /// As [`Agent::start`].
    pub fn start_copy(
        launcher: &Launcher,
        copy: Value,
        stop: &StopFlag,
    ) -> Result<(Self, Value), RemoteError> {
        let mut process = Process::start(launcher)?;
        let requests = [Request::Hello { version: VERSION }, Request::Copy(copy)];
        let reply = ask(&mut process, &requests, FIRST_REPLY, stop)?;
        let Reply::Hello(hello) = reply else { return Err(unexpected(&process)) };
        let origin = clock::now();
        let mut agent =
            Agent { process, hello: *hello, clock: Clock::default(), wall: None, origin };
        let Reply::Copy(answer) = agent.reply(REPLY, MAX_REPLY, stop)? else {
            return Err(unexpected(&agent.process));
        };
        Ok((agent, answer))
    }

    /// Its description of itself.
    #[must_use]
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Its host, for messages.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.process.host
    }

    /// Exchanges the time `count` times.
    ///
    /// # Errors
    /// It does not answer.
    pub fn compare_clocks(&mut self, count: u32, stop: &StopFlag) -> Result<(), RemoteError> {
        for _ in 0..count {
            let (sent, wall) = (self.origin.elapsed(), clock::unix_time());
            let reply = self.request(&Request::Time {}, REPLY, MAX_REPLY, stop)?;
            let received = self.origin.elapsed();
            let Reply::Time { clock_ns, unix_ns } = reply else {
                return Err(unexpected(&self.process));
            };
            self.clock.add(Probe { sent, received, remote: Duration::from_nanos(clock_ns) });
            let round_trip = received.saturating_sub(sent);
            if self.wall.is_none_or(|(shortest, _)| round_trip < shortest) {
                let here = (wall + round_trip / 2).as_secs_f64();
                let ahead = Duration::from_nanos(unix_ns).as_secs_f64() - here;
                self.wall = Some((round_trip, ahead));
            }
        }
        Ok(())
    }

    /// Its monotonic clock against the one here, at this moment.
    #[must_use]
    pub fn offset(&self) -> Option<Offset> {
        self.clock.offset(self.origin.elapsed())
    }

    /// By how many seconds its wall clock is ahead of the one here, and the most by which that
    /// can be wrong.
    #[must_use]
    pub fn wall_offset_s(&self) -> Option<(f64, f64)> {
        self.wall.map(|(round_trip, ahead)| (ahead, round_trip.as_secs_f64() / 2.0))
    }

    /// Sets sysctls; which it changed.
    ///
    /// # Errors
    /// It may not, or the journal cannot be written: nothing is set.
    pub fn tune(
        &mut self,
        settings: Vec<SysctlRequest>,
        stop: &StopFlag,
    ) -> Result<Vec<Written>, RemoteError> {
        match self.request(&Request::Tune { settings }, REPLY, MAX_REPLY, stop)? {
            Reply::Tuned { settings } => Ok(settings),
            _ => Err(unexpected(&self.process)),
        }
    }

    /// Reverts what it set; what is left, with the reason.
    ///
    /// # Errors
    /// It does not answer.
    pub fn revert(&mut self, stop: &StopFlag) -> Result<Vec<String>, RemoteError> {
        match self.request(&Request::Revert {}, REPLY, MAX_REPLY, stop)? {
            Reply::Reverted { left } => Ok(left),
            _ => Err(unexpected(&self.process)),
        }
    }

    /// Has it serve tests; the port, and whether it serves UDP.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn serve(&mut self, token: Secret, stop: &StopFlag) -> Result<(u16, bool), RemoteError> {
        match self.request(&Request::Serve { token }, REPLY, MAX_REPLY, stop)? {
            Reply::Serving { port, udp } => Ok((port, udp)),
            _ => Err(unexpected(&self.process)),
        }
    }

    /// Runs flows; `planned` is when the last one ends, from now. After an interruption the
    /// agent's flows have ended when it is dropped.
    ///
    /// # Errors
    /// It does not answer, or not for each flow.
    pub fn run(
        &mut self,
        token: Option<Secret>,
        flows: Vec<FlowRequest>,
        planned: Duration,
        stop: &StopFlag,
    ) -> Result<Vec<FlowReply>, RemoteError> {
        let count = flows.len();
        let limit = planned + AFTER_RUN;
        match self.request(&Request::Run { token, flows }, limit, MAX_RESULTS, stop)? {
            Reply::Ran { flows } if flows.len() == count => Ok(flows),
            _ => Err(unexpected(&self.process)),
        }
    }

    fn request(
        &mut self,
        request: &Request,
        limit: Duration,
        most: usize,
        stop: &StopFlag,
    ) -> Result<Reply, RemoteError> {
        send(&mut self.process, request, stop)?;
        self.reply(limit, most, stop)
    }

    fn reply(
        &mut self,
        limit: Duration,
        most: usize,
        stop: &StopFlag,
    ) -> Result<Reply, RemoteError> {
        receive(&mut self.process, limit, most, stop)
    }
}

/// Sends requests; the reply to the first one.
fn ask(
    process: &mut Process,
    requests: &[Request],
    limit: Duration,
    stop: &StopFlag,
) -> Result<Reply, RemoteError> {
    for request in requests {
        send(process, request, stop)?;
    }
    receive(process, limit, MAX_REPLY, stop)
}

fn send(process: &mut Process, request: &Request, stop: &StopFlag) -> Result<(), RemoteError> {
    let line = write(request).map_err(|why| process.protocol(why))?;
    process.send(&line, REPLY, stop)
}

fn receive(
    process: &mut Process,
    limit: Duration,
    most: usize,
    stop: &StopFlag,
) -> Result<Reply, RemoteError> {
    let line = process.receive(most, limit, stop)?;
    match parse_reply(&line).map_err(|error| process.protocol(error))? {
        Reply::Error { reason } => Err(RemoteError::Refused { host: process.host.clone(), reason }),
        reply => Ok(reply),
    }
}

fn unexpected(process: &Process) -> RemoteError {
    process.protocol("a reply to another request")
}

#[cfg(test)]
mod tests;
