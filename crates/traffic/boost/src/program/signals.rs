//! Signals to this process: before the program exists they end its start, while it runs they are
//! passed on, and after its end they give up what near still delivers.

use super::ProgramError;
use host::lock::lock;
use host::program::{ExitCode, Program};
use host::signals;
use host::stop::StopFlag;
use std::sync::{Arc, Mutex};

/// Signals, which a thread waits for as long as the process lives.
#[derive(Debug, Clone)]
pub struct Signals {
    stop: StopFlag,
    /// The program while it runs.
    running: Arc<Mutex<Option<Program>>>,
}

impl Signals {
    /// Waits for signals from here on. The process has blocked them ([`signals::block`]).
    #[must_use]
    pub fn watch() -> Self {
        let watched = Signals { stop: StopFlag::new(), running: Arc::default() };
        let signals = watched.clone();
        std::thread::spawn(move || {
            loop {
                let (signal, from_program) = signals::wait_for_termination();
                match &*lock(&signals.running) {
                    // Those of a terminal reach it by themselves.
                    Some(program) if from_program => program.signal(signal),
                    Some(_) => {}
                    None => signals.stop.raise(),
                }
            }
        });
        watched
    }

    /// Raised by a signal while no program runs.
    #[must_use]
    pub const fn stop(&self) -> &StopFlag {
        &self.stop
    }

    /// Starts the program, unless a signal has come, and waits for its end.
    pub(super) fn run(
        &self,
        start: impl FnOnce() -> Result<Program, ProgramError>,
    ) -> Result<ExitCode, ProgramError> {
        let program = {
            let mut running = lock(&self.running);
            if self.stop.is_raised() {
                return Err(ProgramError::Interrupted);
            }
            running.insert(start()?).clone()
        };
        let code = program.wait();
        *lock(&self.running) = None;
        Ok(code)
    }
}
