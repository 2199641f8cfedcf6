//! Starts this program in the background, detached from the terminal, and learns whether it
//! came up.

use crate::sys::check;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a program writes last to standard error while somebody waits for it.
const READY: u8 = 0;
/// Bytes of its messages that are kept.
const MAX_MESSAGES: u64 = 1 << 16;

/// How a program in the background came up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Whether it called [`ready`]; if not, it has ended.
    pub is_ready: bool,
    /// What it wrote to standard error before.
    pub messages: String,
}

/// Starts this program again with other arguments, in a new session (setsid(2))
/// and with standard streams on /dev/null, as daemon(3) does, and waits until it calls [`ready`] or
/// ends. The working directory is kept. `name` becomes `argv[0]`.
///
/// # Errors
/// The system error if the process cannot be created.
pub fn start(name: OsString, arguments: &[OsString]) -> io::Result<Started> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // SAFETY: setsid(2) is async-signal-safe and touches no memory of ours.
    unsafe {
        // A forked child is not a process group leader, so this cannot fail.
        command.pre_exec(|| check(libc::setsid()).map(drop));
    }
    let mut child = command.spawn()?;
    let mut messages = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(MAX_MESSAGES).read_to_end(&mut messages)?;
    }
    let is_ready = messages.last() == Some(&READY);
    if is_ready {
        messages.pop();
    } else {
        child.wait()?;
    }
    Ok(Started { is_ready, messages: String::from_utf8_lossy(&messages).into_owned() })
}

/// Informs whoever called [`start`] for this program; from then on its messages are nowhere.
///
/// # Errors
/// The system error, without /dev/null.
pub fn ready() -> io::Result<()> {
    let nowhere = crate::output_file::append(Path::new("/dev/null"))?;
    // Whoever started it may have gone.
    let _ = io::stderr().write_all(&[READY]);
    Ok(rustix::stdio::dup2_stderr(&nowhere)?)
}
