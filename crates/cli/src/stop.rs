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

/// For a server: a flag to stop at once, and one to stop once its clients have
/// gone. SIGTERM raises the latter first, anything after it the former; Ctrl-C
/// raises the former. One signal more ends the process.
/// To be called before any thread is started.
pub(crate) fn for_server() -> (StopFlag, StopFlag) {
    signals::block();
    let flags = (StopFlag::new(), StopFlag::new());
    let (stop, drain) = flags.clone();
    std::thread::spawn(move || {
        let (signal, _) = signals::wait_for_ending();
        if signal == signals::TERMINATE {
            drain.raise();
            let _ = signals::wait_for_second();
        }
        stop.raise();
        std::process::exit(128 + signals::wait_for_second());
    });
    flags
}
