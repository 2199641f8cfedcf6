//! A box that answers for its figures: on its user's control socket, and as a page of metrics.

use super::{figures, page};
use crate::metrics::MetricsServer;
use crate::{Fault, Problem, StopFlag};
use ::boost::{Far, Near, Totals};
use host::control::{Listener, Owner};
use host::{clock, cpu};
use record::{BoxRole, BoxStatus};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use units::BitRate;

/// Time for one line to a client of the control socket.
const SEND_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the end is noticed.
const POLL: Duration = Duration::from_millis(500);
/// The answer to a request of metrics for another host name.
const MISDIRECTED: &str = "This host name is not allowed. Use the box's IP address.\n";

/// A box whose totals can be read.
pub(in crate::boost) trait Observed: Send + Sync + 'static {
    fn totals(&self) -> Totals;

    /// The goodput that its saved time compares with.
    fn direct_rate(&self) -> Option<BitRate>;
}

impl Observed for Near {
    fn totals(&self) -> Totals {
        Near::totals(self)
    }

    fn direct_rate(&self) -> Option<BitRate> {
        Near::direct_rate(self)
    }
}

impl Observed for Far {
    fn totals(&self) -> Totals {
        Far::totals(self)
    }

    fn direct_rate(&self) -> Option<BitRate> {
        None
    }
}

/// A box that answers until this is dropped.
pub(in crate::boost) struct Serving {
    /// Where it serves metrics.
    metrics: Option<SocketAddr>,
    _server: Option<MetricsServer>,
    end: StopFlag,
}

impl Serving {
    /// Answers for `of`, with a page of metrics at an address if one is given.
    ///
    /// # Errors
    /// The address of the metrics is in use, or not this host's.
    pub(in crate::boost) fn start(
        role: BoxRole,
        of: Arc<impl Observed>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self, Problem> {
        let name = format!("{}-{:08x}", role.name(), host::random::seed() >> 32);
        let began = clock::unix_time().as_secs_f64();
        let read = {
            let name = name.clone();
            move || BoxStatus {
                started_unix_s: began,
                direct_rate_bps: of.direct_rate(),
                cpu_s: cpu::this_process().map(|cpu| cpu.total().as_secs_f64()).unwrap_or_default(),
                ..figures::of(name.clone(), role, &of.totals())
            }
        };
        let read = Arc::new(read);
        let end = StopFlag::new();
        // Where no such socket can be made, boost status does not list the box; it works all the same.
        if let Ok(listener) = Listener::bind(Owner::Boost, &name) {
            let (read, end) = (Arc::clone(&read), end.clone());
            let thread = std::thread::Builder::new().name("status".to_owned());
            let serve = move || serve(&listener, &*read, &end);
            thread.spawn(serve).map_err(|error| {
                Problem::new(Fault::Host, format!("cannot start a thread: {error}"))
            })?;
        }
        let page = move || page::write(&read());
        let server =
            metrics.map(|at| MetricsServer::start(at, &[], MISDIRECTED, page)).transpose()?;
        let metrics = server.as_ref().map(MetricsServer::address);
        Ok(Serving { metrics, _server: server, end })
    }
}

impl Serving {
    /// The URL of the metrics.
    pub(in crate::boost) fn address(&self) -> Option<String> {
        self.metrics.map(|at| format!("http://{at}/metrics"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.end.raise();
    }
}

/// One line to each client, one after the other.
fn serve(listener: &Listener, read: &dyn Fn() -> BoxStatus, end: &StopFlag) {
    while !end.is_raised() {
        match listener.accept(Some(POLL)) {
            Ok(Some(mut client)) => {
                // A client that has gone concerns nobody.
                let line = serde_json::to_string(&read()).unwrap_or_default();
                let _ = client.send_line(&line, SEND_TIMEOUT);
            }
            Ok(None) => {}
            Err(_) => std::thread::sleep(POLL),
        }
    }
}
