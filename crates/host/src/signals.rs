//! Signals as events instead of interruptions.

use crate::sys;
use crate::world::Ended;
use std::io;

const ENDINGS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

fn set(with_child: bool) -> libc::sigset_t {
    // SAFETY: sigemptyset makes the zeros a valid set; the numbers are valid signals.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in ENDINGS {
            libc::sigaddset(&raw mut set, signal);
        }
        if with_child {
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
        }
        set
    }
}

/// Holds back the signals that end a program, in this thread and in those it
/// starts, so that they can be waited for.
pub fn block() {
    let set = set(true);
    // SAFETY: a valid set; pthread_sigmask cannot fail with SIG_BLOCK.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Holds nothing back any more: for a program about to be started, which
/// inherits what is held back.
pub(crate) fn unblock() {
    let set = set(true);
    // SAFETY: a valid set; pthread_sigmask cannot fail with SIG_UNBLOCK.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Waits for a signal that asks to end (Ctrl-C, SIGTERM, SIGHUP, SIGQUIT) and
/// tells its number and whether it came from another program; a terminal
/// sends it to the whole foreground group, programs of ours included.
pub fn wait_for_ending() -> (i32, bool) {
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

/// Waits for process `child` to end, handing it the signals that only we were sent.
pub(crate) fn pass_on_until_end(child: libc::pid_t) -> io::Result<Ended> {
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
