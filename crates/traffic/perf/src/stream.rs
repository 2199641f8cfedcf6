//! One stream of a running test: its socket and counters.

use crate::{
    arrivals::{Arrivals, Counts},
    plan::Plan,
    traffic::TrainLog,
    udt_state::UdtState,
};
use host::address::canonical;
use host::cpu::ThreadClock;
use record::{Fragmentation, LossBurst, Protocol};
use socket2::Socket;
use std::{
    io,
    net::{Shutdown, SocketAddr},
    sync::{
        Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Timeout of blocking calls, and so the maximum time to notice the end of the test.
pub(crate) const SOCKET_TIMEOUT: Duration = Duration::from_millis(50);

/// Maximum pause between datagrams still in flight at the end of the test, and the maximum time to
/// wait for them in all: a path with queues per flow delivers the control connection's messages
/// before the datagrams that wait.
pub(crate) const DATAGRAM_TIMEOUT: Duration = Duration::from_millis(50);
pub(crate) const DATAGRAM_DRAIN: Duration = Duration::from_secs(1);

/// One stream of a running test.
pub(crate) struct Stream {
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
    /// Bytes read from the file that is sent; unset if it sends none.
    source: OnceLock<AtomicU64>,
    /// Counts of received datagrams, locked once per batch.
    arrivals: Option<Mutex<Arrivals>>,
    /// How its datagrams are fragmented on the route from here.
    pub(crate) fragmentation: Option<Fragmentation>,
    /// The arrival times of a train.
    train: Option<Mutex<TrainLog>>,
    /// State of a UDT connection, updated by its thread.
    udt: Mutex<UdtState>,
    clock: OnceLock<ThreadClock>,
    /// The streams that its thread carries.
    carried: OnceLock<u32>,
    /// Total CPU time of the thread, once it has ended.
    cpu: OnceLock<Duration>,
    core_wait: OnceLock<Duration>,
    broke: OnceLock<String>,
}

impl Stream {
    pub(crate) fn new(id: u32, sending: bool, plan: &Plan, socket: Socket) -> io::Result<Self> {
        socket.set_write_timeout(Some(SOCKET_TIMEOUT))?;
        let address = |address: socket2::SockAddr| {
            address.as_socket().map(canonical).ok_or_else(|| io::Error::other("no IP address"))
        };
        let arrivals = match plan.protocol {
            Protocol::Tcp | Protocol::Udt => None,
            Protocol::Udp => {
                // A peer cannot close a datagram socket: reads need a timeout.
                socket.set_read_timeout(Some(SOCKET_TIMEOUT))?;
                (!sending).then(|| Mutex::new(Arrivals::new(plan.counter)))
            }
        };
        let peer = address(socket.peer_addr()?)?;
        Ok(Stream {
            id,
            sending,
            protocol: plan.protocol,
            fragmentation: fragmentation(plan, &socket, peer),
            local: address(socket.local_addr()?)?,
            peer,
            socket,
            bytes: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            source: OnceLock::new(),
            arrivals,
            train: (plan.train.is_some() && !sending).then(Mutex::default),
            udt: Mutex::new(UdtState::default()),
            clock: OnceLock::new(),
            carried: OnceLock::new(),
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

    /// It sends a file, of which nothing has been read.
    pub(crate) fn begin_source(&self) {
        let _ = self.source.set(AtomicU64::new(0));
    }

    pub(crate) fn count_source(&self, bytes: usize) {
        if let Some(source) = self.source.get() {
            source.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Bytes read from the file that is sent; `None` if it sends none.
    pub(crate) fn source_bytes(&self) -> Option<u64> {
        Some(self.source.get()?.load(Ordering::Relaxed))
    }

    /// Counts of received datagrams; `None` if this end sends, and for TCP.
    pub(crate) fn arrivals(&self) -> Option<MutexGuard<'_, Arrivals>> {
        Some(host::lock::lock(self.arrivals.as_ref()?))
    }

    /// The arrival times of a train; `None` if this end sends, and in other tests.
    pub(crate) fn train(&self) -> Option<MutexGuard<'_, TrainLog>> {
        Some(host::lock::lock(self.train.as_ref()?))
    }

    /// State of its UDT connection.
    pub(crate) fn udt(&self) -> MutexGuard<'_, UdtState> {
        host::lock::lock(&self.udt)
    }

    pub(crate) fn counts(&self) -> Option<Counts> {
        Some(self.arrivals()?.counts())
    }

    pub(crate) fn bursts(&self) -> Vec<LossBurst> {
        self.arrivals().map(|arrivals| arrivals.clone()).map_or(Vec::new(), |a| a.bursts())
    }

    /// The kernel's error and what to do, if the stream failed during the test.
    pub(crate) fn broke(&self) -> Option<&str> {
        self.broke.get().map(String::as_str)
    }

    /// CPU time of its thread so far, which may be that of other streams as well.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.cpu.get().copied().or_else(|| self.clock.get()?.read())
    }

    /// Its share of that time, as large as that of each other stream of the thread.
    pub(crate) fn cpu_share(&self) -> Option<Duration> {
        Some(self.cpu()? / self.carried.get().copied().unwrap_or(1))
    }

    /// Run-queue delay of its thread so far.
    pub(crate) fn core_wait(&self) -> Option<Duration> {
        self.core_wait.get().copied().or_else(|| self.clock.get()?.waited())
    }

    /// Records the start of the stream's thread, which carries so many streams.
    pub(crate) fn thread_begins(&self, streams: usize) {
        let _ = self.carried.set(u32::try_from(streams).unwrap_or(u32::MAX).max(1));
        if let Ok(clock) = ThreadClock::of_this_thread() {
            let _ = self.clock.set(clock);
        }
    }

    /// Records that the stream failed.
    pub(crate) fn breaks(&self, error: &io::Error) {
        let _ = self.broke.set(host::remedy::with_advice(error, "repeat the test"));
    }

    /// Records the end of the stream's thread.
    pub(crate) fn thread_ends(&self) {
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

/// How datagrams are fragmented on the route to `peer`.
fn fragmentation(plan: &Plan, socket: &Socket, peer: SocketAddr) -> Option<Fragmentation> {
    let length = u32::try_from(plan.block).ok().filter(|_| plan.protocol == Protocol::Udp)?;
    let of_socket = socket.local_addr().ok()?.as_socket()?;
    let mtu = host::socket::route_mtu(socket, of_socket.is_ipv6()).ok()?;
    Fragmentation::of(length, mtu, peer.is_ipv6())
}
