//! Ctrl-C: once to end in good order, twice to end at once.

use host::signals;
use probe::StopFlag;

/// A flag that the first signal raises; a second one ends the process.
/// To be called before any thread is started.
pub(crate) fn on_signals() -> StopFlag {
    signals::block();
    let stop = StopFlag::new();
    let raised = stop.clone();
    std::thread::spawn(move || {
        signals::wait_for_ending();
        raised.raise();
        std::process::exit(128 + signals::wait_for_second());
    });
    stop
}
