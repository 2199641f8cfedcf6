//! Requests as they come: a thread reads the input to its end, which ends everything else.

use host::clock;
use host::lock::lock;
use host::stop::StopFlag;
use remote::protocol::{LineTooLong, Lines, MAX_REQUEST};
use std::io::{ErrorKind, Read};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How often a wait looks for the end.
const POLL: Duration = Duration::from_millis(20);

/// Requests that wait at most.
const WAITING: usize = 4;

/// Why there is no next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The input has ended, or the agent is to.
    Input,
    /// None came for too long.
    Late,
    /// A line is too long.
    TooLong(LineTooLong),
}

/// The lines of the input.
#[derive(Debug)]
pub(crate) struct Requests(Mutex<Option<Receiver<Line>>>);

type Line = Result<Vec<u8>, LineTooLong>;

impl Requests {
    /// Reads the input in a thread; its end raises `stop`.
    pub(crate) fn read(input: impl Read + Send + 'static, stop: StopFlag) -> Self {
        let (sender, lines) = sync_channel(WAITING);
        std::thread::spawn(move || {
            pass_on(input, &sender);
            stop.raise();
        });
        Requests(Mutex::new(Some(lines)))
    }

    /// The next line, within `limit`.
    pub(crate) fn next(&self, limit: Duration, stop: &StopFlag) -> Result<Vec<u8>, Ended> {
        let until = clock::now() + limit;
        loop {
            if let Some(line) = self.poll(POLL)? {
                return Ok(line);
            }
            if stop.is_raised() {
                return Err(Ended::Input);
            }
            if clock::now() >= until {
                return Err(Ended::Late);
            }
        }
    }

    /// A line, if one comes within `time`.
    pub(crate) fn poll(&self, time: Duration) -> Result<Option<Vec<u8>>, Ended> {
        let lines = lock(&self.0);
        let Some(lines) = lines.as_ref() else { return Err(Ended::Input) };
        match lines.recv_timeout(time) {
            Ok(line) => line.map(Some).map_err(Ended::TooLong),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Ended::Input),
        }
    }

    /// Only the end of the input matters from now on.
    pub(crate) fn discard(&self) {
        lock(&self.0).take();
    }
}

fn pass_on(mut input: impl Read, lines: &SyncSender<Line>) {
    let (mut buffer, mut found) = ([0; 4096], Lines::default());
    let mut listening = true;
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if listening {
            found.push(buffer.get(..count).unwrap_or_default());
        }
        while listening {
            match found.next_line(MAX_REQUEST) {
                Ok(None) => break,
                Ok(Some(line)) => listening = lines.send(Ok(line)).is_ok(),
                Err(error) => {
                    let _ = lines.send(Err(error));
                    listening = false;
                }
            }
        }
    }
}
