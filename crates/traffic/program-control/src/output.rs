//! What a program prints, of which the last line is kept for a message.

use rustix::fs::OFlags;
use std::io::{self, Read};

/// Bytes that are kept at most.
const KEPT: usize = 4096;
/// Characters of a line in a message.
const LINE: usize = 200;
/// Bytes taken at once, so that a program that prints without end is not read for ever.
const MAX_TAKEN: usize = 1 << 20;

/// The end of a program's standard output and error, read from a pipe.
#[derive(Debug)]
pub(crate) struct Output {
    pipe: io::PipeReader,
    kept: Vec<u8>,
}

impl Output {
    /// Reads from `pipe` from now on.
    pub(crate) fn new(pipe: io::PipeReader) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Output { pipe, kept: Vec::new() })
    }

    /// Takes what is there, so that the program does not wait for room in the pipe.
    pub(crate) fn take(&mut self) {
        let mut buffer = [0; KEPT];
        let mut taken = 0;
        // Empty, at its end, or broken: there is no more to take for now.
        while let Ok(length @ 1..) = self.pipe.read(&mut buffer) {
            self.kept.extend_from_slice(buffer.get(..length).unwrap_or_default());
            let excess = self.kept.len().saturating_sub(KEPT);
            self.kept.drain(..excess);
            taken += length;
            if taken >= MAX_TAKEN {
                break;
            }
        }
    }

    /// The last line that is not empty, at most 200 characters of it.
    pub(crate) fn last_line(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.kept);
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(LINE).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_line_is_kept_of_any_amount() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut output = Output::new(reader).unwrap();
        output.take();
        assert_eq!(output.last_line(), None, "nothing yet, and no wait");
        for number in 0..2_000 {
            writeln!(writer, "line {number}").unwrap();
            output.take();
        }
        write!(writer, "{}\n \n", "x".repeat(300)).unwrap();
        drop(writer);
        output.take();
        assert_eq!(output.last_line(), Some("x".repeat(200)));
        assert!(output.kept.len() <= KEPT);
    }
}
