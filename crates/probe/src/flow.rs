//! One stream of a running test: its socket, and what passed over it.

use crate::{
    arrivals::{Arrivals, Counts},
    plan::Plan,
};
use host::cpu::ThreadClock;
use record::{LossBurst, Protocol};
use socket2::Socket;
use std::{
    io,
    net::{Shutdown, SocketAddr},
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Longest a thread stays in the kernel with nothing to do, and so the longest
/// it takes to notice the end.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// One stream of a running test.
pub(crate) struct Flow {
    pub(crate) id: u32,
    /// Whether this end sends.
    pub(crate) sending: bool,
    pub(crate) protocol: Protocol,
    pub(crate) socket: Socket,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Bytes written or read since the traffic began.
    bytes: AtomicU64,
    /// Datagrams sent since the traffic began.
    sent: AtomicU64,
    /// Where datagrams are received: taken for a moment after each batch.
    arrivals: Option<Mutex<Arrivals>>,
    clock: OnceLock<ThreadClock>,
    /// CPU the thread used in all, once it has ended.
    cpu: OnceLock<Duration>,
    core_wait: OnceLock<Duration>,
    broke: OnceLock<String>,
}

impl Flow {
    pub(crate) fn new(id: u32, sending: bool, plan: &Plan, socket: Socket) -> io::Result<Self> {
        socket.set_write_timeout(Some(LONGEST_WAIT))?;
        let address = |address: socket2::SockAddr| {
            address.as_socket().map(unmapped).ok_or_else(|| io::Error::other("no IP address"))
        };
        let arrivals = match plan.protocol {
            Protocol::Tcp => None,
            Protocol::Udp => {
                // Nobody closes a datagram socket from the other end.
                socket.set_read_timeout(Some(LONGEST_WAIT))?;
                (!sending).then(|| Mutex::new(Arrivals::new(plan.counter)))
            }
        };
        Ok(Flow {
            id,
            sending,
            protocol: plan.protocol,
            local: address(socket.local_addr()?)?,
            peer: address(socket.peer_addr()?)?,
            socket,
            bytes: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            arrivals,
            clock: OnceLock::new(),
            cpu: OnceLock::new(),
            core_wait: OnceLock::new(),
            broke: OnceLock::new(),
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Datagrams sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn count_sent(&self, datagrams: u64) {
        self.sent.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// The books of what arrived; `None` where this end sends, and for TCP.
    pub(crate) fn arrivals(&self) -> Option<MutexGuard<'_, Arrivals>> {
        // A reader that panicked leaves counts that are sound.
        Some(self.arrivals.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn counts(&self) -> Option<Counts> {
        Some(self.arrivals()?.counts())
    }

    pub(crate) fn bursts(&self) -> Vec<LossBurst> {
        self.arrivals().map(|arrivals| arrivals.clone()).map_or(Vec::new(), |a| a.bursts())
    }

    /// What the kernel answered when the stream failed before its end.
    pub(crate) fn broke(&self) -> Option<&str> {
        self.broke.get().map(String::as_str)
    }

    /// CPU its thread has used so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.cpu.get().copied().or_else(|| self.clock.get()?.read())
    }

    /// How long its thread has waited for a core so far.
    pub(crate) fn core_wait(&self) -> Option<Duration> {
        self.core_wait.get().copied().or_else(|| self.clock.get()?.waited())
    }

    /// The stream's thread begins.
    pub(crate) fn thread_begins(&self) {
        if let Ok(clock) = ThreadClock::of_this_thread() {
            let _ = self.clock.set(clock);
        }
    }

    /// The stream's thread ends, for this reason if it has one to complain of.
    pub(crate) fn thread_ends(&self, broke: Option<&io::Error>) {
        if let Some(error) = broke {
            let _ = self.broke.set(error.to_string());
        }
        if let Ok(used) = host::cpu::this_thread() {
            let _ = self.cpu.set(used);
        }
        if let Some(waited) = self.clock.get().and_then(|clock| clock.waited()) {
            let _ = self.core_wait.set(waited);
        }
    }

    pub(crate) fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// The IPv4 address behind a dual-stack socket's `::ffff:192.0.2.1`.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
