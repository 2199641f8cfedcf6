//! Signals handled synchronously.

use crate::sandbox::Ended;
use crate::{clock, sys};
use std::io;
use std::time::Duration;

/// The signal that `kill`, systemd and shutdowns send.
pub const TERMINATE: i32 = libc::SIGTERM;

const ENDINGS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

fn set(with_child: bool) -> libc::sigset_t {
    // SAFETY: sigemptyset makes the zeros a valid set; the numbers are valid signals.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in ENDINGS.into_iter().filter(|signal| !is_ignored(*signal)) {
            libc::sigaddset(&raw mut set, signal);
        }
        if with_child {
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
        }
        set
    }
}

/// Whether the signal was ignored when we were started, as SIGHUP by nohup(1). Blocking it would
/// deliver it nevertheless.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: the structure lives across the call; null leaves the action as it is.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Restores the default action of SIGINT and SIGQUIT, which a script's background jobs
/// inherit as ignored, for this program and those that it starts.
pub fn restore_interrupts() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: the default action is always valid for these signals.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Restores the default action of SIGHUP, which nohup(1) has ignored, for this program and
/// those that it starts.
pub fn restore_hangup() {
    // SAFETY: the default action is always valid for SIGHUP.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
}

/// Restores the default action of SIGCHLD: if inherited as ignored, exit codes
/// would be lost.
pub(crate) fn restore_sigchld() {
    // SAFETY: the default action is always valid for SIGCHLD.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Signals within this time count as one: a signal sent to the process group
/// reaches us directly and also forwarded.
const SAME: Duration = Duration::from_millis(300);

/// Waits for a second signal after the first.
#[must_use]
pub fn wait_for_second() -> i32 {
    let first = clock::now();
    loop {
        let (signal, _) = wait_for_termination();
        if clock::now().duration_since(first) > SAME {
            return signal;
        }
    }
}

/// Blocks the termination signals in this thread and in those that it starts, so
/// that they can be waited for.
pub fn block() {
    let set = set(true);
    // SAFETY: a valid set; pthread_sigmask cannot fail with SIG_BLOCK.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Unblocks all signals, for a program about to be started, which inherits the mask.
pub(crate) fn unblock() {
    let set = set(true);
    // SAFETY: a valid set; pthread_sigmask cannot fail with SIG_UNBLOCK.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for a termination signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT). Returns its
/// number and whether another program sent it; a terminal sends it to the whole
/// foreground process group, which includes programs that we started.
pub fn wait_for_termination() -> (i32, bool) {
    let set = set(false);
    loop {
        let (signal, info) = wait(&set);
        if ENDINGS.contains(&signal) {
            return (signal, info.si_code <= 0);
        }
    }
}

fn wait(set: &libc::sigset_t) -> (libc::c_int, libc::siginfo_t) {
    // SAFETY: both structures live across the call.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigwaitinfo(set, &raw mut info);
        (signal, info)
    }
}

/// Waits for process `child` to end and forwards signals that only we received.
pub(crate) fn forward_until_exit(child: libc::pid_t) -> io::Result<Ended> {
    let set = set(true);
    loop {
        let mut status = 0;
        // SAFETY: `status` lives across the call.
        let done = sys::check(unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) })?;
        if done == child {
            if libc::WIFEXITED(status) {
                return Ok(Ended::Code(libc::WEXITSTATUS(status)));
            }
            if libc::WIFSIGNALED(status) {
                return Ok(Ended::Signal(libc::WTERMSIG(status)));
            }
        }
        let (signal, info) = wait(&set);
        if ENDINGS.contains(&signal) && info.si_code <= 0 {
            // SAFETY: the child is ours and has not been waited for.
            unsafe { libc::kill(child, signal) };
        }
    }
}
