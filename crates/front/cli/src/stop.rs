//! Signals: the first one ends the work in good order, the second one at once.

use host::signals;
use perf::StopFlag;

/// A flag that the first signal raises; the second one ends the process.
/// To be called before any thread is started.
pub(crate) fn on_signals() -> StopFlag {
    let stop = StopFlag::new();
    raise_on_signals(&stop);
    stop
}

/// Raises an existing flag at the first signal.
pub(crate) fn raise_on_signals(stop: &StopFlag) {
    signals::block();
    let raised = stop.clone();
    std::thread::spawn(move || {
        signals::wait_for_termination();
        raised.raise();
        std::process::exit(128 + signals::wait_for_second());
    });
}

/// For a server: a flag to stop at once, and one to drain, that is to stop once
/// running tests have finished. SIGTERM drains and any signal after it stops;
/// Ctrl-C stops. One more signal ends the process.
/// To be called before any thread is started.
pub(crate) fn for_server() -> (StopFlag, StopFlag) {
    signals::block();
    let flags = (StopFlag::new(), StopFlag::new());
    let (stop, drain) = flags.clone();
    std::thread::spawn(move || {
        let (signal, _) = signals::wait_for_termination();
        if signal == signals::TERMINATE {
            drain.raise();
            let _ = signals::wait_for_second();
        }
        stop.raise();
        std::process::exit(128 + signals::wait_for_second());
    });
    flags
}
