//! The far end: it serves the files of one session of an agent, or those below a root for any
//! client with a token.

mod handshake;
mod listener;
mod session;

pub use listener::{CopyServer, CopyServerConfig};
pub(crate) use session::local_destination;
pub use session::{Root, RootDirectory};

use crate::hello::{self, ClientHello, ServerHello};
use crate::progress::{Figures, Progress};
use crate::{CopyError, sockets};
use host::lock::lock;
use host::stop::StopFlag;
use listener::Lanes;
use serde_json::Value;
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

/// Serves one copy for a client that started this program over ssh: `client` is its hello, ours
/// is passed to `answer`. `stop` is raised when the client has gone.
///
/// # Errors
/// Why the copy ended early.
pub fn serve_one(
    client: Value,
    answer: impl FnOnce(Value),
    address: Option<IpAddr>,
    stop: &StopFlag,
) -> Result<(), CopyError> {
    // Without it there are fewer descriptors.
    let _ = host::limits::raise_open_files();
    let client = hello::from_value::<ClientHello>(client)?;
    let listener = sockets::listener(None, 0).map_err(CopyError::socket)?;
    let tcp_port = listener.local_addr().map_err(CopyError::socket)?.port();
    let lanes = Lanes::new(Vec::new())?;
    let prepared = session::Prepared::new(&client, None, stop.clone())?;
    let hello = ServerHello::new(prepared.key(), prepared.udp_port(), tcp_port, address);
    answer(hello::to_value(&hello)?);
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
