//! State that the threads of one endpoint share: callback, stream ids, stop flag.

use crate::event::{Event, Label};
use crate::meter::Group;
use crate::report_limit::ReportLimit;
use host::clock;
use host::lock::lock;
use host::stop::StopFlag;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{
    Mutex,
    atomic::{AtomicU32, Ordering},
};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};
use std::{collections::BTreeMap, sync::Arc};

/// How often waiting threads check the stop flag.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Starts a thread for a stream of a server.
///
/// # Errors
/// The system is out of threads or memory; `work` is dropped.
pub(crate) fn spawn<'s>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() + Send + 's,
) -> io::Result<()> {
    thread::Builder::new().name(THREAD_NAME.to_owned()).spawn_scoped(scope, work).map(drop)
}

/// The name of stream threads.
pub(crate) const THREAD_NAME: &str = "iperf2-stream";

pub(crate) struct Context<'a> {
    pub(crate) on_event: &'a (dyn Fn(Event) + Sync),
    pub(crate) stop: &'a StopFlag,
    /// Report interval; `None` for a report at the end only.
    pub(crate) interval: Option<Duration>,
    /// When the endpoint stops.
    pub(crate) until: Option<Instant>,
    next_id: AtomicU32,
    groups: Mutex<BTreeMap<IpAddr, Arc<Group<'a>>>>,
    /// Of a server: clients of theirs cause what it reports.
    pub(crate) report_limit: Option<Arc<ReportLimit>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        on_event: &'a (dyn Fn(Event) + Sync),
        stop: &'a StopFlag,
        interval: Option<Duration>,
    ) -> Self {
        Context {
            on_event,
            stop,
            interval,
            until: None,
            next_id: AtomicU32::new(1),
            groups: Mutex::default(),
            report_limit: None,
        }
    }

    pub(crate) fn label(&self, reverse: bool) -> Label {
        Label { id: self.next_id.fetch_add(1, Ordering::Relaxed), reverse }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_raised() || self.until.is_some_and(|until| clock::now() >= until)
    }

    /// Limits what is reported, as a server must.
    pub(crate) fn limited(self) -> Self {
        Context { report_limit: Some(Arc::new(ReportLimit::new())), ..self }
    }

    /// Reports that a peer was refused or failed, within the limit of errors.
    pub(crate) fn peer_error(&self, peer: SocketAddr, reason: &dyn ToString) {
        self.peer_error_at(peer, reason, clock::now());
    }

    pub(crate) fn peer_error_at(&self, peer: SocketAddr, reason: &dyn ToString, now: Instant) {
        self.report_suppressed(now, false);
        if self.report_limit.as_ref().is_none_or(|limit| limit.admits_error(now)) {
            let reason = reason.to_string();
            (self.on_event)(Event::PeerError { peer: host::address::canonical(peer), reason });
        }
    }

    /// Reports the number of suppressed reports, once a second and at the end.
    pub(crate) fn report_suppressed(&self, now: Instant, at_end: bool) {
        let event = self.report_limit.as_ref().and_then(|limit| limit.suppressed(now, at_end));
        if let Some(event) = event {
            (self.on_event)(event);
        }
    }

    /// The group of streams with one peer, whose reports are summed.
    pub(crate) fn group(&self, peer: IpAddr) -> Arc<Group<'a>> {
        let mut groups = lock(&self.groups);
        // A group without other references has ended.
        groups.retain(|_, group| Arc::strong_count(group) > 1);
        Arc::clone(groups.entry(peer).or_insert_with(|| Arc::new(Group::new(self.on_event))))
    }
}
