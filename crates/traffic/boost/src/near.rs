//! The near box: accepts connections of applications, learns their targets, and carries each over
//! a lane to far.
//!
//! Lanes are kept ready and used again, the last used one first: its congestion window is the
//! largest. While many are being connected at once, flows wait for one of them.

mod accept;
mod lanes;
mod share;
mod unplaced;

use crate::address_share::{AddressShares, ShareTicket};
use crate::counters::{Counters, Totals};
use crate::event_loop::{Ending, Report, prepare};
use crate::ingress::{Ingress, Negotiation};
use crate::keys::PairKey;
use crate::mux;
use crate::sockets::LaneOptions;
use crate::{BoostError, Timeouts};
use connection_limits::HandshakeCounts;
use control::Algorithm;
use host::stop::StopFlag;
use lane::{Role, Target};
pub(crate) use lanes::ADDRESS_TIMEOUT;
use lanes::NearSide;
use share::Shares;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use units::BitRate;

/// Addresses of far that are waited for at its start.
const MAX_ADDRESSES: u32 = 8;
/// Time that threads may take beside the timeouts of lanes.
const REACH_MARGIN: Duration = Duration::from_secs(5);

/// Settings of the near box.
#[derive(Debug, Clone)]
pub struct NearConfig {
    /// Addresses of far, in the order in which they are tried.
    pub far: Vec<SocketAddr>,
    /// The key of this box; `None`: plaintext.
    pub key: Option<PairKey>,
    /// Lanes that are kept ready.
    pub lanes: usize,
    /// Carry all flows over connections that are replaced when they break, instead of lanes.
    pub mux: bool,
    /// Connections that carry the flows with `mux`; `None`: as many as capped buffers make necessary.
    pub connections: Option<usize>,
    /// The congestion control of UDT, which carries sessions instead of TCP where UDP reaches far;
    /// `None`: TCP does.
    pub udt: Option<Algorithm>,
    /// Compress on connections whose far box does as well.
    pub compresses: bool,
    /// Settings of their sockets.
    pub options: LaneOptions,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Most flows at a time; further connections are reset.
    pub max_flows: u64,
    /// Goodput of a direct transfer, where it is known: the time that flows are spared is at least
    /// that in which they would have passed at this rate.
    pub direct_rate: Option<BitRate>,
    /// Threads that carry flows, at least one.
    pub threads: usize,
}

/// A listening socket, and the protocol that its connections speak.
pub struct Listener {
    /// The socket; see [`crate::sockets::application_listener`].
    pub socket: TcpListener,
    /// Its protocol.
    pub ingress: Arc<dyn Ingress>,
}

/// A connection whose target is known.
pub(crate) struct NewFlow {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) target: Target,
    pub(crate) negotiation: Box<dyn Negotiation>,
    /// The first bytes for the target.
    pub(crate) early: Vec<u8>,
    /// Counts it for its application's address.
    pub(crate) share: ShareTicket,
}

/// A near box.
#[derive(Debug)]
pub struct Near {
    config: NearConfig,
    has_no_applications: StopFlag,
    counters: Arc<Counters>,
}

impl Near {
    /// A box that has carried nothing.
    #[must_use]
    pub fn new(config: NearConfig) -> Self {
        Near { config, has_no_applications: StopFlag::new(), counters: Arc::default() }
    }

    /// Tells the box that no application is left to receive anything: from here on, a flow that its
    /// application has ended is over once its target has got everything, and FIN.
    pub fn applications_have_ended(&self) {
        self.has_no_applications.raise();
    }

    /// Time until a far box is reached, or every address of it has failed.
    pub(crate) fn reach_timeout(&self) -> Duration {
        let addresses = u32::try_from(self.config.far.len()).unwrap_or(u32::MAX);
        REACH_MARGIN + lanes::CONNECT_TIMEOUT * addresses.clamp(1, MAX_ADDRESSES)
    }

    /// What it has carried so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.counters.totals()
    }

    /// The goodput of a direct transfer, as it was given.
    #[must_use]
    pub const fn direct_rate(&self) -> Option<BitRate> {
        self.config.direct_rate
    }

    /// Notes how many UDP datagrams the network of a program has refused so far.
    pub(crate) fn note_udp(&self, refused: u64) {
        self.counters.note_udp(refused);
    }

    /// Serves until it is stopped or drained. `report` must not wait.
    ///
    /// # Errors
    /// The system has no thread or no descriptor.
    pub fn serve(
        &self,
        listeners: Vec<Listener>,
        ending: Ending<'_>,
        report: Report<'_>,
    ) -> Result<(), BoostError> {
        let _ = host::limits::raise_open_files();
        let (threads, mux_thread, inboxes) = if self.config.mux {
            let (thread, inbox) = mux::engine::prepare(Role::Near, &self.counters)?;
            (Vec::new(), Some(thread), vec![inbox])
        } else {
            let (threads, inboxes) = prepare(self.config.threads, &self.counters)?;
            (threads, None, inboxes)
        };
        let shares = Shares::new(inboxes.len());
        // Limits are those of the box, however many listeners it has.
        let counts = HandshakeCounts::default();
        let by_address = AddressShares::new(self.config.max_flows);
        std::thread::scope(|scope| {
            for (index, thread) in threads.into_iter().enumerate() {
                let place = (&shares, index);
                let mut side = NearSide::new(&self.config, place, &self.counters, ending, report);
                side.has_no_applications = self.has_no_applications.clone();
                std::thread::Builder::new()
                    .name("boost".to_owned())
                    .spawn_scoped(scope, move || thread.run(&mut side, ending))
                    .map_err(BoostError::Socket)?;
            }
            if let Some(thread) = mux_thread {
                let has_none = self.has_no_applications.clone();
                let mut side =
                    mux::near::NearSide::new(&self.config, &self.counters, report, has_none);
                std::thread::Builder::new()
                    .name("boost-mux".to_owned())
                    .spawn_scoped(scope, move || thread.run(&mut side, ending))
                    .map_err(BoostError::Socket)?;
            }
            for listener in listeners {
                let (inboxes, counters, shares) = (inboxes.clone(), &self.counters, &shares);
                let (counts, by_address) = (&counts, &by_address);
                std::thread::Builder::new()
                    .name("accept".to_owned())
                    .spawn_scoped(scope, move || {
                        let sink = accept::Sink { inboxes, shares, counters, by_address, report };
                        accept::accept(listener, counts, &sink, ending);
                    })
                    .map_err(BoostError::Socket)?;
            }
            Ok(())
        })
        .inspect_err(|_| ending.stop.raise())
    }
}
