//! State that the threads of one endpoint share: callback, stream ids, stop flag.

use crate::event::{Event, Label};
use crate::meter::Group;
use crate::sockets;
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

/// Maximum number of reported peer errors per second: anyone can cause them.
const MAX_ERRORS: u32 = 20;

/// Limits the rate of reported errors.
#[derive(Default)]
struct ErrorLimit {
    since: Option<Instant>,
    reported: u32,
    suppressed: u64,
}

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
    errors: Mutex<ErrorLimit>,
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
            errors: Mutex::default(),
        }
    }

    pub(crate) fn label(&self, reverse: bool) -> Label {
        Label { id: self.next_id.fetch_add(1, Ordering::Relaxed), reverse }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_raised() || self.until.is_some_and(|until| clock::now() >= until)
    }

    /// Reports that a peer was refused or failed, at most [`MAX_ERRORS`] times a second;
    /// the rest are only counted.
    pub(crate) fn peer_error(&self, peer: SocketAddr, reason: &dyn ToString) {
        let mut errors = lock(&self.errors);
        let now = clock::now();
        let is_new_second = errors
            .since
            .is_none_or(|since| now.saturating_duration_since(since) >= Duration::from_secs(1));
        if is_new_second {
            (errors.since, errors.reported) = (Some(now), 0);
        }
        if errors.reported >= MAX_ERRORS {
            errors.suppressed += 1;
            return;
        }
        errors.reported += 1;
        let suppressed = std::mem::take(&mut errors.suppressed);
        drop(errors);
        let mut reason = reason.to_string();
        if suppressed > 0 {
            reason = format!("{reason} ({suppressed} further errors suppressed)");
        }
        (self.on_event)(Event::PeerError { peer: sockets::plain(peer), reason });
    }

    /// The group of streams with one peer, whose reports are summed.
    pub(crate) fn group(&self, peer: IpAddr) -> Arc<Group<'a>> {
        let mut groups = lock(&self.groups);
        // A group without other references has ended.
        groups.retain(|_, group| Arc::strong_count(group) > 1);
        Arc::clone(groups.entry(peer).or_insert_with(|| Arc::new(Group::new(self.on_event))))
    }
}
