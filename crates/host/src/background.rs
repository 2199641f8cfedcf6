//! Starts this program in the background, detached from the terminal.

use crate::sys::check;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts this program again with other arguments, in a new session (setsid(2))
/// and with standard streams on /dev/null, as daemon(3) does. The working
/// directory is kept. `name` becomes `argv[0]`. Returns the process ID.
///
/// # Errors
/// The system error if the process cannot be created.
pub fn start(name: OsString, arguments: &[OsString]) -> io::Result<u32> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: setsid(2) is async-signal-safe and touches no memory of ours.
    unsafe {
        // A forked child is not a process group leader, so this cannot fail.
        command.pre_exec(|| check(libc::setsid()).map(drop));
    }
    Ok(command.spawn()?.id())
}
