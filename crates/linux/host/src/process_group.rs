//! A program in a process group of its own, which does not outlive this process, with its CPU time
//! once it has ended.

use crate::cpu::{ProcessCpu, from_timeval};
use crate::{clock, signals, sys};
use rustix::process::Signal;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Interval at which its end is looked for.
const POLL: Duration = Duration::from_millis(2);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupEnd {
    /// Its status.
    pub status: ExitStatus,
    /// CPU time of the program and of its descendants that were waited for (wait4(2)).
    pub cpu: ProcessCpu,
}

/// A running program. When it ends, or this is dropped, the rest of its group is killed. However this
/// process ends, the kernel sends SIGTERM to the program (`PR_SET_PDEATHSIG`), which should then end
/// what it has started.
#[derive(Debug)]
pub struct ProcessGroup {
    process: libc::pid_t,
    end: Option<GroupEnd>,
}

impl ProcessGroup {
    /// Starts the program; signals of the terminal do not reach it. The second value has the pipes
    /// that `command` asks for; it is not to be waited for. To be called by a thread that lives longer
    /// than the program: the kernel's signal is sent when that thread ends.
    ///
    /// # Errors
    /// The system error.
    pub fn start(command: &mut Command) -> io::Result<(Self, Child)> {
        let parent = std::process::id();
        // SAFETY: between fork and exec only system calls are made, on plain numbers.
        unsafe {
            command.pre_exec(move || {
                signals::unblock();
                rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
                // If the parent died before that call, the signal never comes.
                if std::os::unix::process::parent_id() != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        let child = command.process_group(0).spawn()?;
        let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
        Ok((ProcessGroup { process, end: None }, child))
    }

    /// Its end, if it has ended. What it left in its group is killed.
    ///
    /// # Errors
    /// The system error: somebody else has waited for it.
    pub fn poll(&mut self) -> io::Result<Option<GroupEnd>> {
        if self.end.is_none() && self.has_ended()? {
            // Before it is waited for, as its number is its own until then.
            // SAFETY: plain numbers.
            unsafe { libc::kill(-self.process, libc::SIGKILL) };
            self.end = Some(self.collect()?);
        }
        Ok(self.end)
    }

    fn has_ended(&self) -> io::Result<bool> {
        let process = libc::id_t::try_from(self.process).map_err(io::Error::other)?;
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: a zeroed structure is valid, and it outlives the call.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            sys::check(libc::waitid(libc::P_PID, process, &raw mut info, flags))?;
            Ok(info.si_pid() != 0)
        }
    }

    fn collect(&self) -> io::Result<GroupEnd> {
        let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: both outlive the call; a zeroed rusage is valid.
        let usage = unsafe {
            sys::check(libc::wait4(self.process, &raw mut status, 0, usage.as_mut_ptr()))?;
            usage.assume_init()
        };
        let [user, system] = [usage.ru_utime, usage.ru_stime].map(from_timeval);
        Ok(GroupEnd { status: ExitStatus::from_raw(status), cpu: ProcessCpu { user, system } })
    }

    /// Waits for its end, at most `limit`, or until `is_stopped`.
    ///
    /// # Errors
    /// As [`ProcessGroup::poll`].
    pub fn wait(
        &mut self,
        limit: Duration,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<Option<GroupEnd>> {
        let since = clock::now();
        loop {
            let end = self.poll()?;
            if end.is_some() || since.elapsed() >= limit || is_stopped() {
                return Ok(end);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Sends SIGTERM to the program, which may pass it on, and SIGKILL to the group after `grace`.
    ///
    /// # Errors
    /// As [`ProcessGroup::poll`].
    pub fn terminate(&mut self, grace: Duration) -> io::Result<GroupEnd> {
        self.signal(self.process, signals::TERMINATE);
        if let Some(end) = self.wait(grace, &|| false)? {
            return Ok(end);
        }
        self.signal(-self.process, libc::SIGKILL);
        loop {
            if let Some(end) = self.wait(grace, &|| false)? {
                return Ok(end);
            }
        }
    }

    fn signal(&mut self, to: libc::pid_t, signal: i32) {
        // Not once its number may be another process's.
        if matches!(self.poll(), Ok(None)) {
            // SAFETY: plain numbers; the leader of the group has not been waited for.
            unsafe { libc::kill(to, signal) };
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(-self.process, libc::SIGKILL);
        while let Ok(None) = self.poll() {
            std::thread::sleep(POLL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    const LONG: Duration = Duration::from_secs(30);

    fn shell(script: &str) -> (ProcessGroup, Child) {
        let mut command = Command::new("sh");
        ProcessGroup::start(command.args(["-c", script]).stdout(Stdio::piped())).unwrap()
    }

    #[test]
    fn cpu_time_is_that_of_the_program_and_its_children() {
        let (mut group, _child) =
            shell("i=0; (while [ $i -lt 20000 ]; do i=$((i+1)); done); exit 3");
        let end = group.wait(LONG, &|| false).unwrap().unwrap();
        assert_eq!(end.status.code(), Some(3));
        assert!(end.cpu.total() > Duration::ZERO);
        assert_eq!(group.poll().unwrap(), Some(end), "it is waited for once");
    }

    #[test]
    fn a_group_ends_as_a_whole() {
        use std::io::Read;
        let (mut group, mut child) = shell("sleep 1000 & sleep 1000");
        assert_eq!(group.wait(Duration::ZERO, &|| false).unwrap(), None);
        assert_eq!(group.wait(LONG, &|| true).unwrap(), None);
        assert_eq!(group.terminate(LONG).unwrap().status.signal(), Some(signals::TERMINATE));
        // The one in the background held the pipe as well.
        let mut rest = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        // So does what a program leaves behind, and a program that is no longer wanted.
        let (mut group, mut child) = shell("sleep 1000 &");
        assert!(group.wait(LONG, &|| false).unwrap().unwrap().status.success());
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
        let (group, mut child) = shell("trap '' TERM; sleep 1000");
        drop(group);
        child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    }

    #[test]
    fn it_ends_with_the_thread_that_started_it() {
        let (mut group, _child) = std::thread::spawn(|| shell("exec sleep 1000")).join().unwrap();
        let end = group.wait(LONG, &|| false).unwrap().unwrap();
        assert_eq!(end.status.signal(), Some(signals::TERMINATE));
    }

    #[test]
    fn what_a_killed_program_leaves_is_killed() {
        use std::io::Read;
        let (mut group, mut child) = shell("sleep 1000 & sleep 1000");
        // SAFETY: plain numbers; it has not been waited for.
        unsafe { libc::kill(group.process, libc::SIGKILL) };
        assert!(group.wait(LONG, &|| false).unwrap().is_some());
        child.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    }
}
