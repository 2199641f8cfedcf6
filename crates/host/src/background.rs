//! A program of one's own that goes on when the terminal is gone.

use crate::sys::check;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts this program again with other arguments, in a session of its own
/// (setsid(2)) and with nothing to read or write, as daemon(3) leaves it. The
/// working directory stays. `name` is what it is called as; gives its process id.
///
/// # Errors
/// What the system says where there is no room for a process.
pub fn start(name: OsString, arguments: &[OsString]) -> io::Result<u32> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: setsid(2) is a system call that touches no memory, so it may be
    // made between fork and exec.
    unsafe {
        // A child that was just forked leads no group, so this cannot fail.
        command.pre_exec(|| check(libc::setsid()).map(drop));
    }
    Ok(command.spawn()?.id())
}
