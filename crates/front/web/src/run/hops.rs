//! Probes of the routers on the route of a run's probe connection: a thread for each run that has
//! them, which ends with the run.

use crate::connection::Connection;
use crate::limits::Admission;
use host::lock::lock;
use probe::{ConnectionRoute, Phase, ProbeError, connection_route};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The numbers of phases.
pub(super) const IDLE: u8 = 0;
pub(super) const DOWNLOAD: u8 = 1;
pub(super) const UPLOAD: u8 = 2;
const REST: u8 = 254;
const END: u8 = 255;
/// A thread's stack.
const STACK: usize = 256 << 10;

/// The reason for which nothing was probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotProbed {
    /// The page opened no probe connection.
    NoConnection,
    /// The connection is a reverse proxy's.
    Proxied,
    /// As many runs as may be probed are.
    Busy,
    /// What failed. The text is shown to whoever has a kept result's link, so it is a fixed one:
    /// errors of the system name the visitor's address.
    Failed(&'static str),
}

impl NotProbed {
    /// In words that follow "not probed: ".
    pub(super) const fn words(&self) -> &'static str {
        match self {
            NotProbed::NoConnection => "there was no probe connection",
            NotProbed::Proxied => "a reverse proxy is in between",
            NotProbed::Busy => "other runs are being probed",
            NotProbed::Failed(why) => why,
        }
    }
}

impl From<ProbeError> for NotProbed {
    fn from(error: ProbeError) -> Self {
        NotProbed::Failed(match error {
            ProbeError::RawSockets => "the server has no CAP_NET_RAW",
            ProbeError::SilentConnection { .. } => "the probe connection was silent",
            ProbeError::System { .. } => "the system of the server refused the probes",
            _ => "the probes failed",
        })
    }
}

#[derive(Debug)]
enum State {
    Off(NotProbed),
    /// A probe connection is awaited.
    Wanted,
    Running(JoinHandle<Result<ConnectionRoute, ProbeError>>),
}

/// The probes of a run.
#[derive(Debug)]
pub(super) struct HopProbes {
    state: Mutex<State>,
    phase: Arc<AtomicU8>,
}

impl HopProbes {
    pub(super) fn new() -> Self {
        let phase = Arc::new(AtomicU8::new(REST));
        HopProbes { state: Mutex::new(State::Off(NotProbed::NoConnection)), phase }
    }

    /// Lets the next probe connection begin them.
    pub(super) fn want(&self, is_proxied: bool) {
        *lock(&self.state) =
            if is_proxied { State::Off(NotProbed::Proxied) } else { State::Wanted };
    }

    /// Begins them on the route of a connection, if they are wanted; that to a proxy is not probed.
    pub(super) fn begin(
        &self,
        connection: &Connection,
        admission: &Arc<Admission>,
        is_proxied: bool,
    ) {
        let mut state = lock(&self.state);
        if !matches!(*state, State::Wanted) {
            return;
        }
        if is_proxied {
            *state = State::Off(NotProbed::Proxied);
            return;
        }
        let Ok(ticket) = admission.route(connection.key()) else {
            *state = State::Off(NotProbed::Busy);
            return;
        };
        let (local, peer) = (connection.local(), connection.peer());
        let phase = Arc::clone(&self.phase);
        let work = move || {
            let _ticket = ticket;
            connection_route(local, peer, &|| match phase.load(Ordering::Relaxed) {
                END => Phase::End,
                REST => Phase::Rest,
                number => Phase::Measure(number),
            })
        };
        let thread = thread::Builder::new().name("route".to_owned()).stack_size(STACK).spawn(work);
        *state = match thread {
            Ok(thread) => State::Running(thread),
            Err(_) => State::Off(NotProbed::Failed("the server cannot start a thread")),
        };
    }

    /// Says what is measured from now on; `None` for nothing.
    pub(super) fn enter(&self, phase: Option<u8>) {
        // The end is final.
        let next = |now| (now != END).then_some(phase.unwrap_or(REST));
        let _ = self.phase.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Ends them, and waits for their thread, which looks at the phase 50 times a second.
    pub(super) async fn finish(&self) -> Result<ConnectionRoute, NotProbed> {
        self.phase.store(END, Ordering::Relaxed);
        let state = std::mem::replace(&mut *lock(&self.state), State::Off(NotProbed::NoConnection));
        let thread = match state {
            State::Running(thread) => thread,
            State::Wanted => return Err(NotProbed::NoConnection),
            State::Off(why) => return Err(why),
        };
        let ended = tokio::task::spawn_blocking(move || thread.join()).await;
        match ended {
            Ok(Ok(Ok(route))) => Ok(route),
            Ok(Ok(Err(error))) => Err(error.into()),
            _ => Err(NotProbed::Failed("its thread failed")),
        }
    }
}

/// With its run.
impl Drop for HopProbes {
    fn drop(&mut self) {
        self.phase.store(END, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WebLimits;
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn a_route_that_may_not_be_probed_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let connection = Connection::of(&listener.accept().await.unwrap().0, false).unwrap();
            let admission = Admission::new(&WebLimits::default());
            let proxied = HopProbes::new();
            proxied.want(false);
            proxied.begin(&connection, &admission, true);
            assert_eq!(proxied.finish().await, Err(NotProbed::Proxied));
            let _other_run = admission.route(connection.key()).unwrap();
            let busy = HopProbes::new();
            busy.want(false);
            busy.begin(&connection, &admission, false);
            assert_eq!(busy.finish().await, Err(NotProbed::Busy));
        });
    }
}
