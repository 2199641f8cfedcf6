//! The far end: it serves the files of one session over ssh, or those below a root for any
//! client with a token.

mod listener;
mod session;

pub use listener::{CopyServer, CopyServerConfig};
pub(crate) use session::local_destination;
pub use session::{Root, RootDirectory};

use crate::hello::{self, ClientHello, MAX_LINE, ServerHello};
use crate::progress::{Figures, Progress};
use crate::{CopyError, sockets};
use host::lock::lock;
use host::stop::StopFlag;
use listener::Lanes;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Mutex;

/// What happened at a server.
#[derive(Debug, Clone)]
pub enum Event {
    /// A copy began: from where, and what was asked for.
    Began {
        /// The client.
        from: SocketAddr,
        /// In words.
        what: String,
    },
    /// A copy ended.
    Ended {
        /// The client.
        from: SocketAddr,
        /// What was done.
        figures: Figures,
        /// Why it ended early.
        error: Option<CopyError>,
    },
    /// A connection was refused.
    Refused {
        /// The client.
        from: SocketAddr,
        /// Why.
        reason: String,
    },
}

/// Serves one copy for a client that started this program over ssh: its hello comes over
/// `input`, ours is passed to `answer`. The end of `input` ends the copy.
///
/// # Errors
/// Why the copy ended early.
pub fn serve_stdio(
    input: impl Read + Send + 'static,
    answer: impl FnOnce(&str),
    ssh_connection: Option<&str>,
    stop: &StopFlag,
) -> Result<(), CopyError> {
    // Without it there are fewer descriptors.
    let _ = host::limits::raise_open_files();
    let mut input = BufReader::new(input);
    let mut line = String::new();
    input
        .by_ref()
        .take(MAX_LINE as u64)
        .read_line(&mut line)
        .map_err(|error| CopyError::Local(format!("cannot read the client's hello: {error}")))?;
    let client = hello::read::<ClientHello>(line.trim_end())?;
    let listener = sockets::listener(None, 0).map_err(CopyError::socket)?;
    let tcp_port = listener.local_addr().map_err(CopyError::socket)?.port();
    let lanes = Lanes::new(Vec::new())?;
    let prepared = session::Prepared::new(&client, None, stop.clone())?;
    let address = ssh_connection.and_then(server_address);
    let hello = ServerHello::new(prepared.key(), prepared.udp_port(), tcp_port, address);
    answer(&(hello::write(&hello)? + "\n"));
    let client_gone = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut input, &mut std::io::sink());
        client_gone.raise();
    });
    let done = StopFlag::new();
    std::thread::scope(|scope| {
        let lane = lanes.add(prepared.client, &prepared);
        scope.spawn(|| listener::accept_lanes(&listener, &lanes, &done));
        let result = prepared.serve(&Root::Any, &Progress::default(), |_| {});
        done.raise();
        drop(lane);
        result
    })
}

/// The third field of `SSH_CONNECTION` (ssh(1)).
fn server_address(ssh_connection: &str) -> Option<IpAddr> {
    ssh_connection.split_whitespace().nth(2)?.parse().ok()
}

/// Counts what is held until it is dropped.
#[derive(Debug, Default)]
struct Slots(Mutex<usize>);

impl Slots {
    fn take(&self, most: usize) -> Option<Slot<'_>> {
        let mut count = lock(&self.0);
        (*count < most).then(|| {
            *count += 1;
            Slot(self)
        })
    }
}

struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.0) -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_servers() {
        let found = server_address("192.0.2.7 50522 2001:db8::1 22");
        assert_eq!(found, Some("2001:db8::1".parse().unwrap()));
        for wrong in ["", "1.2.3.4 5", "a b c d"] {
            assert_eq!(server_address(wrong), None);
        }
    }
}
