//! The far box: accepts lanes and connects their flows to targets.

mod accept;
mod targets;

use crate::address_share::{AddressShares, ShareTicket};
use crate::counters::{Counters, Totals};
use crate::event_loop::{Ending, Report, prepare};
use crate::keys::{FarKeys, KeyId};
use crate::mux;
use crate::policy::DestinationPolicy;
use crate::resolver::Resolver;
use crate::{BoostError, Timeouts};
use ::lane::Role;
use control::Algorithm;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::Arc;
use targets::FarSide;

/// Settings of the far box.
pub struct FarConfig {
    /// The keys of this box; `None`: plaintext.
    pub keys: Option<FarKeys>,
    /// Where it may connect.
    pub policy: Arc<dyn DestinationPolicy>,
    /// Compress on connections whose near box does as well.
    pub compresses: bool,
    /// The congestion control of UDT, for near boxes that ask for it.
    pub udt: Algorithm,
    /// Its UDP ports; `None`: any that is free.
    pub udt_ports: Option<RangeInclusive<u16>>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Most lanes at a time; further ones are refused.
    pub max_lanes: u64,
    /// Threads that carry flows, at least one.
    pub threads: usize,
}

/// A lane whose peer has proved its key.
pub(crate) struct NewLane {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) tls: Option<Box<rustls::Connection>>,
    pub(crate) preface: lane::Preface,
    /// The key that its peer has proved.
    pub(crate) key: Option<KeyId>,
    /// Counts it for near's address.
    pub(crate) share: ShareTicket,
}

/// A far box.
pub struct Far {
    config: FarConfig,
    counters: Arc<Counters>,
}

impl Far {
    /// A box that has carried nothing.
    #[must_use]
    pub fn new(config: FarConfig) -> Self {
        Far { config, counters: Arc::default() }
    }

    /// What it has carried so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counters.totals()
    }

    /// Serves lanes of these listeners until it is stopped or drained. `report` must not wait.
    ///
    /// # Errors
    /// The system has no thread or no descriptor.
    pub fn serve(
        &self,
        listeners: Vec<TcpListener>,
        ending: Ending<'_>,
        report: Report<'_>,
    ) -> Result<(), BoostError> {
        let _ = host::limits::raise_open_files();
        let (threads, inboxes) = prepare(self.config.threads, &self.counters)?;
        let (mux_thread, sessions) = mux::engine::prepare(Role::Far, &self.counters)?;
        let by_address = AddressShares::new(self.config.max_lanes);
        std::thread::scope(|scope| {
            let resolver = Resolver::start(scope, ending.stop).map_err(BoostError::Socket)?;
            for (thread, inbox) in threads.into_iter().zip(&inboxes) {
                let mut side = FarSide::new(
                    &self.config,
                    resolver.clone(),
                    inbox.clone(),
                    &self.counters,
                    ending,
                    report,
                );
                std::thread::Builder::new()
                    .name("boost".to_owned())
                    .spawn_scoped(scope, move || thread.run(&mut side, ending))
                    .map_err(BoostError::Socket)?;
            }
            let mut side = mux::far::FarSide::new(
                &self.config,
                resolver.clone(),
                sessions.clone(),
                &self.counters,
                report,
            );
            std::thread::Builder::new()
                .name("boost-mux".to_owned())
                .spawn_scoped(scope, move || mux_thread.run(&mut side, ending))
                .map_err(BoostError::Socket)?;
            for listener in listeners {
                let (inboxes, sessions) = (inboxes.clone(), sessions.clone());
                let (config, by_address) = (&self.config, &by_address);
                std::thread::Builder::new()
                    .name("accept".to_owned())
                    .spawn_scoped(scope, move || {
                        let sink = accept::Sink { config, inboxes, sessions, by_address, report };
                        accept::accept(&listener, &sink, ending);
                    })
                    .map_err(BoostError::Socket)?;
            }
            Ok(())
        })
        .inspect_err(|_| ending.stop.raise())
    }
}
