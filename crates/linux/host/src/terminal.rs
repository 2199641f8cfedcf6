//! Raw mode of the terminal, and its restoration.

use crate::lock::lock;
use rustix::stdio::stdin;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use std::io;
use std::sync::Mutex;

/// Original settings while raw mode is on; per process, as the terminal is.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Unbuffered keyboard input without echo, for as long as this exists
/// (termios(3)). Ctrl-C still raises SIGINT; Ctrl-Z is a key.
#[derive(Debug)]
pub struct RawMode(());

impl RawMode {
    /// Switches standard input to raw mode.
    ///
    /// # Errors
    /// The system error: standard input is not a terminal.
    pub fn enable() -> io::Result<Self> {
        let before = termios::tcgetattr(stdin())?;
        let mut ours = before.clone();
        ours.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        // A read returns what is available, at least one byte.
        ours.special_codes[SpecialCodeIndex::VMIN] = 1;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        // 0 is _POSIX_VDISABLE: a stopped program would leave the terminal in raw mode.
        ours.special_codes[SpecialCodeIndex::VSUSP] = 0;
        *lock(&BEFORE) = Some(before);
        set(&ours)?;
        Ok(RawMode(()))
    }

    /// Reads keys, once standard input is readable; zero bytes if it was closed.
    ///
    /// # Errors
    /// The system error.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut *bytes))?)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, from any thread that is about to end the process.
pub fn restore() {
    if let Some(before) = lock(&BEFORE).take() {
        // There is nobody to report an error to.
        let _ = set(&before);
    }
}

fn set(settings: &Termios) -> io::Result<()> {
    Ok(termios::tcsetattr(stdin(), OptionalActions::Now, settings)?)
}
