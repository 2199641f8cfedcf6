//! The terminal we were started on, set to give keys one at a time, and set back.

use crate::sys;
use std::io;
use std::sync::{Mutex, PoisonError};

/// Settings as they were, while ours hold; of the process, since the terminal is.
static BEFORE: Mutex<Option<libc::termios>> = Mutex::new(None);

/// Keys come at once and are not echoed, for as long as this lives (termios(3)).
/// Ctrl-C still raises SIGINT; Ctrl-Z is a key.
#[derive(Debug)]
pub struct Keys(());

impl Keys {
    /// Sets standard input so.
    ///
    /// # Errors
    /// The system's own: it is no terminal.
    pub fn listen() -> io::Result<Self> {
        // SAFETY: the structure lives across the call, which fills it.
        let before = unsafe {
            let mut before: libc::termios = std::mem::zeroed();
            sys::check(libc::tcgetattr(libc::STDIN_FILENO, &raw mut before))?;
            before
        };
        let mut ours = before;
        ours.c_lflag &= !(libc::ICANON | libc::ECHO);
        // A read gives what is there, a byte at least.
        ours.c_cc[libc::VMIN] = 1;
        ours.c_cc[libc::VTIME] = 0;
        // 0 is _POSIX_VDISABLE: a stopped program would leave the terminal as it is.
        ours.c_cc[libc::VSUSP] = 0;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        set(&ours)?;
        Ok(Keys(()))
    }

    /// What was typed, once standard input is readable; zero bytes where it has closed.
    ///
    /// # Errors
    /// The system's own.
    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the pointer and length are the slice's.
        sys::retry(|| unsafe {
            libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len())
        })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        restore();
    }
}

/// Sets the terminal back, from whatever thread is about to end the process.
pub fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // There is nobody left to tell.
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
