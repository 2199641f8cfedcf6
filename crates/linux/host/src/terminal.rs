//! Raw mode of the terminal, and its restoration.

use crate::lock::lock;
use crate::sys;
use std::io;
use std::sync::Mutex;

/// Original settings while raw mode is on; per process, as the terminal is.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

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
        // SAFETY: the structure lives across the call, which fills it.
        let before = unsafe {
            let mut before: libc::termios = std::mem::zeroed();
            sys::check(libc::tcgetattr(libc::STDIN_FILENO, &raw mut before))?;
            before
        };
        let mut ours = before;
        ours.c_lflag &= !(libc::ICANON | libc::ECHO);
        // A read returns what is available, at least one byte.
        ours.c_cc[libc::VMIN] = 1;
        ours.c_cc[libc::VTIME] = 0;
        // 0 is _POSIX_VDISABLE: a stopped program would leave the terminal in raw mode.
        ours.c_cc[libc::VSUSP] = 0;
        *lock(&BEFORE) = Some(before);
        set(&ours)?;
        Ok(RawMode(()))
    }

    /// Reads keys, once standard input is readable; zero bytes if it was closed.
    ///
    /// # Errors
    /// The system error.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the pointer and length are the slice's.
        sys::retry(|| unsafe {
            libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len())
        })
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

fn set(settings: &libc::termios) -> io::Result<()> {
    // SAFETY: the structure lives across the call.
    sys::check(unsafe {
        libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, std::ptr::from_ref(settings))
    })
    .map(drop)
}
