//! A program whose connections are boosted without its knowledge and without root: it runs in a
//! network of its own, where a connection to any address is accepted by near, which is outside.
//!
//! ```text
//!   network of the program              │ network of the host
//!                                       │
//!   program ──TCP to any address──> listener ──> near ══ lane ══> far ──> that address
//!           ──DNS to any server───> sockets ───> relay
//!           ──other UDP──> port unreachable
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`network`] | the program's network: routes, rules, listeners |
//! | `signals` | signals before, during and after the program |
//!
//! To be called in the sandbox of [`host::sandbox`]: whatever ends this process ends the program, and
//! with the program everything that it started.

pub mod network;
mod signals;

pub use network::{NetworkError, Ports, ProgramNetwork};
pub use signals::Signals;

use crate::BoostError;
use crate::dns::Upstream;
use crate::event::Event;
use crate::event_loop::Ending;
use crate::near::{Listener, Near};
use crate::transparent::Transparent;
use host::clock;
use host::netns::NetNs;
use host::program::{ExitCode, Identity, Reaper, Streams};
use host::stop::StopFlag;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// Interval at which signals and ends are noticed.
const POLL: Duration = Duration::from_millis(50);
/// Interval at which refused datagrams are counted, in polls.
const COUNT_POLLS: u32 = 20;

/// Who answers the program's DNS queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameServer {
    /// The name server of far: names have the addresses that they have there.
    #[default]
    Far,
    /// The server that the program asks, from this host.
    Near,
}

/// The reason that a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Its network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The near box.
    #[error(transparent)]
    Boost(#[from] BoostError),
    /// Far.
    #[error("cannot reach the far box: {0}")]
    Unreachable(String),
    /// A signal, before the program was started.
    #[error("interrupted")]
    Interrupted,
    /// The program.
    #[error("cannot start {program}: {reason}")]
    Start {
        /// Its name.
        program: String,
        /// The system's reason.
        reason: String,
    },
}

/// Waits until far is reached, a signal comes, near has ended, or the time is over.
fn wait_for_far(
    reached: &Receiver<Result<(), String>>,
    stop: &StopFlag,
    has_ended: impl Fn() -> bool,
    timeout: Duration,
) -> Result<(), ProgramError> {
    let until = clock::now() + timeout;
    loop {
        match reached.recv_timeout(POLL) {
            Ok(result) => return result.map_err(ProgramError::Unreachable),
            Err(_) if stop.is_raised() || has_ended() => return Err(ProgramError::Interrupted),
            Err(_) if clock::now() >= until => {
                return Err(ProgramError::Unreachable("no answer".to_owned()));
            }
            Err(_) => {}
        }
    }
}

/// A near box that has failed is the reason for whatever came of the program.
fn outcome(
    served: Result<(), BoostError>,
    ran: Result<Ran, ProgramError>,
) -> Result<Ran, ProgramError> {
    served?;
    ran
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Who answers its DNS queries.
    pub name_server: NameServer,
    /// The ports whose connections are boosted.
    pub ports: Ports,
}

/// A program that has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Its exit code, 128 plus the number of a signal that ended it.
    pub code: ExitCode,
    /// When it was started, far being reached.
    pub began: Instant,
    /// When it had ended.
    pub ended: Instant,
}

impl Program {
    /// Runs the program behind `near`. Signals to this process alone are passed on; those of a terminal
    /// reach the program by themselves. After its end, near delivers what it still holds, and waits for
    /// no more than that once all that it started has ended.
    ///
    /// # Errors
    /// [`ProgramError`]: the program has not run.
    pub fn run(
        &self,
        near: &Near,
        signals: &Signals,
        report: &(dyn Fn(Event) + Sync),
    ) -> Result<Ran, ProgramError> {
        let mut network = ProgramNetwork::create(&self.ports)?;
        let (stop, drain) = (signals.stop(), StopFlag::new());
        let ending = Ending { stop, drain: &drain };
        let upstream = match self.name_server {
            NameServer::Near => Upstream::Near,
            NameServer::Far => Upstream::Far {
                network: Arc::clone(&network.namespace),
                name_server: network::NAME_SERVER,
            },
        };
        let mut listeners = Vec::new();
        for socket in network.take_listeners() {
            let name_server = Some(network::NAME_SERVER);
            // In the program's network every address is its own.
            let (is_own, accepts_while_draining): (fn(_) -> bool, _) = (|_| false, false);
            let ingress = Transparent { name_server, is_own, accepts_while_draining };
            listeners.push(Listener { socket, ingress: Arc::new(ingress) });
        }
        // Whether far was reached first, or why not.
        let (first, reached) = sync_channel(1);
        let report = |event: Event| {
            let state = match &event {
                Event::FarReached { .. } => Some(Ok(())),
                Event::FarUnreachable { far, why } => Some(Err(format!("{far}: {why}"))),
                _ => None,
            };
            // Only the first counts; it is this function's own result.
            if state.is_none_or(|state| first.try_send(state).is_err()) {
                report(event);
            }
        };
        std::thread::scope(|scope| {
            let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
            let serving = thread("near");
            let serving = serving.spawn_scoped(scope, || near.serve(listeners, ending, &report));
            let serving = serving.map_err(BoostError::Socket)?;
            if let Some(sockets) = network.take_dns() {
                // Without it, names do not resolve, which programs say.
                let serve = move || drop(sockets.serve(&upstream, stop));
                drop(thread("dns").spawn_scoped(scope, serve));
            }
            let namespace = Arc::clone(&network.namespace);
            let count = move || count_udp(&namespace, near, stop);
            // Without it, refused datagrams are not counted.
            drop(thread("count").spawn_scoped(scope, count));
            let has_ended = || serving.is_finished();
            let run = || -> Result<Ran, ProgramError> {
                wait_for_far(&reached, stop, has_ended, near.reach_timeout())?;
                let began = clock::now();
                let code = self.start_and_wait(&network, signals)?;
                Ok(Ran { code, began, ended: clock::now() })
            };
            let ran = run();
            match ran {
                Ok(_) => drain.raise(),
                Err(_) => stop.raise(),
            }
            while !serving.is_finished() {
                if !host::program::has_children() {
                    near.applications_have_ended();
                }
                std::thread::sleep(POLL);
            }
            let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            stop.raise();
            outcome(served, ran)
        })
    }

    /// Starts the program and waits for its end.
    fn start_and_wait(
        &self,
        network: &ProgramNetwork,
        signals: &Signals,
    ) -> Result<ExitCode, ProgramError> {
        let mut reaper = Reaper::start(None);
        reaper.set_identity(Identity::Caller);
        let start = || {
            reaper.start_program(&network.namespace, &self.command, Streams::Ours).map_err(
                |error| ProgramError::Start {
                    program: self
                        .command
                        .first()
                        .cloned()
                        .unwrap_or_default()
                        .display()
                        .to_string(),
                    reason: error.to_string(),
                },
            )
        };
        signals.run(start)
    }
}

/// Counts the datagrams that the program's network refuses, until the end.
fn count_udp(namespace: &NetNs, near: &Near, stop: &StopFlag) {
    // The network of a thread that counts may change.
    let read = || namespace.run(network::refused_datagrams).ok().flatten();
    loop {
        if let Some(refused) = read() {
            near.note_udp(refused);
        }
        for _ in 0..COUNT_POLLS {
            if stop.is_raised() {
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_box_that_ends_ends_the_wait_for_far_and_is_the_reason() {
        let (_first, reached) = sync_channel(1);
        let long = Duration::from_secs(3600);
        let ran = |()| Ran { code: 0, began: clock::now(), ended: clock::now() };
        let waited = wait_for_far(&reached, &StopFlag::new(), || true, long);
        let failed = Err(BoostError::Socket(std::io::ErrorKind::OutOfMemory.into()));
        let error = outcome(failed, waited.map(ran)).unwrap_err();
        assert!(matches!(error, ProgramError::Boost(BoostError::Socket(_))), "{error}");
        let waited = wait_for_far(&reached, &StopFlag::new(), || false, Duration::ZERO);
        let error = outcome(Ok(()), waited.map(ran)).unwrap_err();
        assert!(matches!(error, ProgramError::Unreachable(_)), "{error}");
    }
}
