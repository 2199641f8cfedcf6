//! Lines out of bytes, of a bounded length.

/// A line is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {0} bytes")]
pub struct LineTooLong(pub usize);

/// What has arrived, and is no complete line yet or was not asked for yet.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Bytes of the buffer that have no end of a line.
    searched: usize,
}

impl Lines {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next line, without its end; `None` until it is complete.
    ///
    /// # Errors
    /// It has more than `most` bytes, whether it is complete or not.
    pub fn next_line(&mut self, most: usize) -> Result<Option<Vec<u8>>, LineTooLong> {
        let rest = self.buffer.get(self.searched..).unwrap_or_default();
        match rest.iter().position(|byte| *byte == b'\n') {
            Some(at) if self.searched + at > most => Err(LineTooLong(most)),
            Some(at) => {
                let end = self.searched + at;
                let after = self.buffer.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.buffer, after);
                line.truncate(end);
                self.searched = 0;
                Ok(Some(line))
            }
            None if self.buffer.len() > most => Err(LineTooLong(most)),
            None => {
                self.searched = self.buffer.len();
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_however_they_arrive() {
        for size in 1..8 {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in b"one\n\ntwo\nthr".chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next_line(8).unwrap() {
                    found.push(String::from_utf8(line).unwrap());
                }
            }
            assert_eq!(found, ["one", "", "two"], "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_is_bounded_also_without_an_end() {
        let mut lines = Lines::default();
        lines.push(b"12345\n");
        assert_eq!(lines.next_line(4), Err(LineTooLong(4)));
        assert_eq!(lines.next_line(5), Ok(Some(b"12345".to_vec())));
        lines.push(b"12345");
        assert_eq!(lines.next_line(5), Ok(None));
        lines.push(b"6");
        assert_eq!(lines.next_line(5), Err(LineTooLong(5)));
    }
}
