//! State shared by a server's threads.

use super::{
    ServerConfig,
    admission::{Admission, AdmittedTest, Cost, Refused},
    udp_accept::UdpAccept,
};
use crate::{Observer, RefusalReason, ServerEvent, StopFlag, memory_budget::MemoryBudget};
use connection_limits::{HandshakeCounts, ThreadSlots};
use host::address_key::AddressKey;
use iperf3_proto::Cookie;
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// State of a running server.
pub(super) struct ServerState<'a> {
    pub(super) config: &'a ServerConfig,
    pub(super) stop: &'a StopFlag,
    pub(super) observer: &'a dyn Observer,
    /// Whether UDP streams can be opened.
    pub(super) has_udp: bool,
    pub(super) udp: UdpAccept,
    pub(super) admission: Admission,
    /// Memory for messages of all sessions.
    pub(super) message_memory: Arc<MemoryBudget>,
    pub(super) handshakes: &'a HandshakeCounts,
    /// Threads of clients that are not admitted, or no longer.
    pub(super) threads: ThreadSlots,
    numbers: AtomicU64,
    served: AtomicBool,
    closed: AtomicBool,
}

impl<'a> ServerState<'a> {
    pub(super) fn new(
        config: &'a ServerConfig,
        has_udp: bool,
        handshakes: &'a HandshakeCounts,
        stop: &'a StopFlag,
        observer: &'a dyn Observer,
    ) -> Self {
        ServerState {
            config,
            stop,
            observer,
            has_udp,
            udp: UdpAccept::default(),
            admission: Admission::new(config),
            message_memory: MemoryBudget::new(config.limits.message_memory),
            handshakes,
            // The rest is for handshakes that are being read.
            threads: ThreadSlots::new(config.limits.half_open / 2),
            numbers: AtomicU64::new(0),
            served: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    /// The number of the next session, from 1.
    pub(super) fn next_session(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records that a test ran; ends a one-off server.
    pub(super) fn test_ran(&self) {
        if self.config.one_off {
            self.served.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a one-off server has served its test.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Ordering::Relaxed)
    }

    /// The last session has ended.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Whether a new client of this address could be admitted now.
    pub(super) fn check_address(&self, client: AddressKey) -> Result<(), Refused> {
        self.check_draining()?;
        self.admission.check_address(client)
    }

    /// Admits a test, unless the server is shutting down.
    pub(super) fn admit(
        &self,
        cookie: &Cookie,
        client: AddressKey,
        cost: Cost,
    ) -> Result<AdmittedTest<'_>, Refused> {
        self.check_draining()?;
        self.admission.admit(cookie, client, cost)
    }

    fn check_draining(&self) -> Result<(), Refused> {
        if self.config.drain.is_raised() {
            let why = "the server is shutting down";
            return Err(Refused::now(RefusalReason::Draining, why));
        }
        Ok(())
    }

    pub(super) fn emit(&self, event: ServerEvent) {
        self.observer.event(event);
    }

    pub(super) fn refuse(&self, peer: SocketAddr, reason: RefusalReason, why: &str) {
        self.emit(ServerEvent::Refused { peer, reason, why: why.to_owned() });
    }
}
