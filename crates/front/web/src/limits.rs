//! Limits of connections and runs, in total and per address.

use crate::WebLimits;
use connection_limits::{Exceeded, Limit, SessionId, Shares};
use host::address_key::AddressKey;
use host::clock;
use host::lock::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// A connection without a request is safe from eviction for this long.
const GRACE_PERIOD: Duration = Duration::from_millis(500);

/// Handshakes of QUIC at a time.
const HANDSHAKES: [Limit; 1] = [Limit { all: 64, per_address: 4 }];

/// Runs at a time whose routes are probed.
const ROUTES: [Limit; 1] = [Limit { all: 16, per_address: 1 }];

/// Connections above the limits that are told so; those above them are closed at once.
pub(crate) const MAX_REFUSED: usize = 128;

/// What clients hold.
#[derive(Debug)]
pub(crate) struct Admission {
    connections: Mutex<Shares<1>>,
    closing: Mutex<HashMap<SessionId, Arc<Notify>>>,
    /// Connections of trusted proxies, which have no share per address.
    of_proxies: Arc<Semaphore>,
    runs: Mutex<Shares<1>>,
    /// Handshakes of QUIC.
    handshakes: Mutex<Shares<1>>,
    /// Probes of routes.
    routes: Mutex<Shares<1>>,
}

impl Admission {
    pub(crate) fn new(limits: &WebLimits) -> Arc<Self> {
        let limit = |all: u32, per_address: u32| {
            [Limit { all: all.into(), per_address: per_address.into() }]
        };
        let connections = limit(limits.connections, limits.connections_per_address);
        let runs = limit(limits.runs, limits.runs_per_address);
        Arc::new(Admission {
            connections: Mutex::new(Shares::new(connections, GRACE_PERIOD)),
            closing: Mutex::new(HashMap::new()),
            of_proxies: Arc::new(Semaphore::new(limits.connections as usize)),
            runs: Mutex::new(Shares::new(runs, GRACE_PERIOD)),
            handshakes: Mutex::new(Shares::new(HANDSHAKES, GRACE_PERIOD)),
            routes: Mutex::new(Shares::new(ROUTES, GRACE_PERIOD)),
        })
    }

    /// Admits a connection. The oldest connections without a request may be closed for it.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn connect(self: &Arc<Self>, key: AddressKey) -> Result<ConnectionTicket, Exceeded> {
        let mut evicted = Vec::new();
        let id = lock(&self.connections).admit(key, [1], clock::now(), &mut evicted)?;
        let close = Arc::new(Notify::new());
        let mut closing = lock(&self.closing);
        for victim in evicted {
            if let Some(close) = closing.remove(&victim) {
                close.notify_one();
            }
        }
        closing.insert(id, Arc::clone(&close));
        drop(closing);
        let admission = Arc::clone(self);
        Ok(ConnectionTicket { admission, id: Some(id), close, _permit: None })
    }

    /// Admits a connection of a trusted proxy, which is for clients of any address; `None` when
    /// there are as many of them as connections may be.
    pub(crate) fn connect_proxy(self: &Arc<Self>) -> Option<ConnectionTicket> {
        let permit = Arc::clone(&self.of_proxies).try_acquire_owned().ok();
        permit.map(|permit| {
            let (admission, close) = (Arc::clone(self), Arc::default());
            ConnectionTicket { admission, id: None, close, _permit: Some(permit) }
        })
    }

    /// Admits a run.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn run(self: &Arc<Self>, key: AddressKey) -> Result<Admitted, Exceeded> {
        self.place(key, |admission| &admission.runs)
    }

    /// Admits a handshake of QUIC, of which a run needs one.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn handshake(self: &Arc<Self>, key: AddressKey) -> Result<Admitted, Exceeded> {
        self.place(key, |admission| &admission.handshakes)
    }

    /// Admits the probes of a run's route.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(crate) fn route(self: &Arc<Self>, key: AddressKey) -> Result<Admitted, Exceeded> {
        self.place(key, |admission| &admission.routes)
    }

    fn place(
        self: &Arc<Self>,
        key: AddressKey,
        of: fn(&Admission) -> &Mutex<Shares<1>>,
    ) -> Result<Admitted, Exceeded> {
        let now = clock::now();
        let mut shares = lock(of(self));
        // What is in use is never idle, so nothing is evicted.
        let id = shares.admit(key, [1], now, &mut Vec::new())?;
        let _ = shares.take(id, [0], now, &mut Vec::new());
        Ok(Admitted { admission: Arc::clone(self), id, of })
    }

    /// Places of runs that are taken. That of a run is free before its end has been told.
    pub(crate) fn runs(&self) -> usize {
        lock(&self.runs).len()
    }
}

/// An admitted connection.
#[derive(Debug)]
pub(crate) struct ConnectionTicket {
    admission: Arc<Admission>,
    /// Its place; `None` of a proxy's.
    id: Option<SessionId>,
    close: Arc<Notify>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConnectionTicket {
    /// Counts a request: the connection is no longer closed for another one.
    pub(crate) fn used(&self) {
        if let Some(id) = self.id {
            let now = clock::now();
            let _ = lock(&self.admission.connections).take(id, [0], now, &mut Vec::new());
        }
    }

    /// Waits until it is to be closed for another address's.
    pub(crate) async fn evicted(&self) {
        self.close.notified().await;
    }
}

impl Drop for ConnectionTicket {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            lock(&self.admission.connections).release(id);
            lock(&self.admission.closing).remove(&id);
        }
    }
}

/// What was admitted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    id: SessionId,
    of: fn(&Admission) -> &Mutex<Shares<1>>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        lock((self.of)(&self.admission)).release(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(last: u8) -> AddressKey {
        AddressKey::of([192, 0, 2, last].into())
    }

    #[test]
    fn an_address_has_its_share_and_returns_it() {
        let limits = WebLimits { runs_per_address: 2, runs: 3, ..WebLimits::default() };
        let admission = Admission::new(&limits);
        let first = admission.run(key(1)).unwrap();
        let _second = admission.run(key(1)).unwrap();
        assert!(admission.run(key(1)).is_err());
        let _third = admission.run(key(2)).unwrap();
        assert!(admission.run(key(3)).is_err());
        drop(first);
        assert_eq!(admission.runs(), 2);
        admission.run(key(3)).unwrap();
    }

    #[test]
    fn one_route_of_an_address_is_probed_at_a_time_and_few_in_all() {
        let admission = Admission::new(&WebLimits::default());
        let first = admission.route(key(0)).unwrap();
        assert!(admission.route(key(0)).is_err());
        let _others: Vec<_> = (1..16).map(|last| admission.route(key(last)).unwrap()).collect();
        assert!(admission.route(key(16)).is_err());
        drop(first);
        admission.route(key(16)).unwrap();
    }

    #[test]
    fn idle_connections_make_room_for_another_address() {
        let limits = WebLimits { connections: 3, ..WebLimits::default() };
        let admission = Admission::new(&limits);
        let tickets: Vec<_> = (0..3).map(|_| admission.connect(key(1)).unwrap()).collect();
        tickets[0].used();
        let _other = admission.connect(key(2)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let soon = Duration::from_secs(1);
            tokio::time::timeout(soon, tickets[1].evicted()).await.unwrap();
            let soon = Duration::from_millis(20);
            assert!(tokio::time::timeout(soon, tickets[0].evicted()).await.is_err());
        });
    }
}
