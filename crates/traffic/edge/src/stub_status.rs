//! nginx's page of its connections (`stub_status`), read over a Unix socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest answer.
const MAX_ANSWER: u64 = 4096;
/// Time limit of each read and write.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The clients' connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Open ones, that of this page among them.
    pub active: u64,
    /// Accepted since the start.
    pub accepted: u64,
    /// Those of `accepted` that were handled: all, unless a limit was reached.
    pub handled: u64,
    /// Requests.
    pub requests: u64,
}

impl Connections {
    /// Reads the page of the nginx that listens on `socket`.
    ///
    /// # Errors
    /// The system error, or an answer that is not such a page.
    pub fn read(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.write_all(b"GET /status HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
        let page = Self::parse(&String::from_utf8_lossy(&answer));
        page.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not nginx's status page"))
    }

    fn parse(answer: &str) -> Option<Self> {
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.split(' ').nth(1).filter(|status| *status == "200")?;
        let mut lines = body.lines();
        let active = lines.next()?.strip_prefix("Active connections:")?.trim().parse().ok()?;
        lines.next()?;
        let mut numbers = lines.next()?.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next()?;
        Some(Connections { active, accepted: next()?, handled: next()?, requests: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\nActive connections: 3 \n\
        server accepts handled requests\n 16 15 31070 \nReading: 0 Writing: 1 Waiting: 2 \n";

    #[test]
    fn a_page_and_what_is_none() {
        let page = Connections { active: 3, accepted: 16, handled: 15, requests: 31070 };
        assert_eq!(Connections::parse(PAGE), Some(page));
        for end in 0..PAGE.len() - 45 {
            let _ = Connections::parse(&PAGE[..end]);
        }
        for page in ["", "\r\n\r\n", &PAGE.replace("200", "404"), &PAGE.replace("16", "x")] {
            assert_eq!(Connections::parse(page), None, "{page}");
        }
    }
}
