//! Signals as events instead of interruptions.

use crate::world::Ended;
use crate::{clock, sys};
use std::io;
use std::time::Duration;

/// What `kill`, systemd and shutdowns send to ask for an end.
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

/// Whether we were started to ignore it, by `nohup` or in a script's
/// background. A signal held back would reach us all the same.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: the structure lives across the call; null leaves the action as it is.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Heeds Ctrl-C and SIGQUIT again, which a script's background lets a program
/// ignore, and with it every program that it starts.
pub fn heed_interrupts() {
    // SAFETY: the default action is always valid for these signals.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::signal(libc::SIGQUIT, libc::SIG_DFL);
    }
}

/// Lets the ends of child processes be told to us, whatever the program that
/// started us had set: ignored, they would be lost.
pub(crate) fn hear_of_children() {
    // SAFETY: the default action is always valid for SIGCHLD.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Signals so close together are one: what is sent to a whole group reaches
/// us directly and passed on.
const SAME: Duration = Duration::from_millis(300);

/// After the first signal, waits for one that was meant as a second.
#[must_use]
pub fn wait_for_second() -> i32 {
    let first = clock::now();
    loop {
        let (signal, _) = wait_for_ending();
        if clock::now().duration_since(first) > SAME {
            return signal;
        }
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
