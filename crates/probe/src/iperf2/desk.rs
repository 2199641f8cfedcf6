//! What the threads of one endpoint share: whom to tell, numbers, the stop.

use super::event::{Event, Label};
use super::meter::Group;
use crate::StopFlag;
use host::clock;
use std::net::IpAddr;
use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};
use std::time::{Duration, Instant};
use std::{collections::BTreeMap, sync::Arc};

/// How long a thread sleeps or waits before it looks at the stop again.
pub(crate) const TICK: Duration = Duration::from_millis(50);

pub(crate) struct Desk<'a> {
    pub(crate) tell: &'a (dyn Fn(Event) + Sync),
    pub(crate) stop: &'a StopFlag,
    /// Time between rows; `None` for one at the end.
    pub(crate) interval: Option<Duration>,
    /// When everything ends.
    pub(crate) until: Option<Instant>,
    next_id: AtomicU32,
    groups: Mutex<BTreeMap<IpAddr, Arc<Group<'a>>>>,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(
        tell: &'a (dyn Fn(Event) + Sync),
        stop: &'a StopFlag,
        interval: Option<Duration>,
    ) -> Self {
        Desk {
            tell,
            stop,
            interval,
            until: None,
            next_id: AtomicU32::new(1),
            groups: Mutex::default(),
        }
    }

    pub(crate) fn label(&self, other_way: bool) -> Label {
        Label { id: self.next_id.fetch_add(1, Ordering::Relaxed), other_way }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_raised() || self.until.is_some_and(|until| clock::now() >= until)
    }

    /// The streams with one peer, whose rows are summed.
    pub(crate) fn group(&self, peer: IpAddr) -> Arc<Group<'a>> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        // What nobody else holds has ended.
        groups.retain(|_, group| Arc::strong_count(group) > 1);
        Arc::clone(groups.entry(peer).or_insert_with(|| Arc::new(Group::new(self.tell))))
    }
}
