//! One thread of a box: its sockets, its relays, its timers.

use crate::BoostError;
use crate::block_codec::BlockCodec;
use crate::counters::{Counters, NotBoosted};
use crate::event::Event;
use crate::local_flow::{FlowEnd, Local, LocalFlow};
use crate::pipes::PipePool;
use crate::relay::{LaneEnd, Notice, Pumped, Relay, SCRATCH_BYTES, Tools};
use host::clock;
use host::edge_poller::{Edge, EdgePoller};
use host::stop::StopFlag;
use host::wait::EventFd;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Interval at which timeouts and stop flags are checked.
const SWEEP: Duration = Duration::from_millis(250);
const WAKE: u64 = u64::MAX;
/// Interval at which the kernel is asked for each lane whether its peer is gone. Traffic is no reason
/// not to ask: what the local side sends moves into the send buffer of a dead lane, too.
pub(crate) const PEER_CHECK: Duration = Duration::from_secs(5);

/// Reports an event; must not wait.
pub(crate) type Report<'a> = &'a (dyn Fn(Event) + Sync);

/// The flags that end a box.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// Resets every flow, and ends.
    pub stop: &'a StopFlag,
    /// Accepts nothing more, and ends with the last flow.
    pub drain: &'a StopFlag,
}

/// What differs between the boxes.
pub(crate) trait Side {
    /// What other threads hand over.
    type Job: Send;

    fn job(&mut self, job: Self::Job, event_loop: &mut EventLoop);

    fn notice(&mut self, id: usize, notice: Notice, event_loop: &mut EventLoop);

    /// A lane was closed; its flow has been reset, or is `unproven`: far never took the lane.
    fn lane_ended(
        &mut self,
        id: usize,
        ended: EndedLane,
        unproven: Option<LocalFlow>,
        event_loop: &mut EventLoop,
    );

    /// Why a lane is to be closed now.
    fn overdue(&self, relay: &Relay, id: usize, now: Instant) -> Option<Overdue>;

    /// Called once in a while.
    fn sweep(&mut self, event_loop: &mut EventLoop);

    fn drain_timeout(&self) -> Duration;
}

/// A lane that was closed.
pub(crate) struct EndedLane {
    pub(crate) relay: Relay,
    pub(crate) end: LaneEnd,
}

/// A timeout that has passed.
pub(crate) enum Overdue {
    /// The lane failed, for this reason.
    Lane(String),
    /// A free lane is no longer needed.
    Unused,
    /// The flow is idle.
    Flow,
}

/// Hands jobs to a thread.
pub(crate) struct Inbox<J> {
    jobs: Sender<J>,
    wake: Arc<EventFd>,
    /// Raised once the thread has ended.
    pub(crate) has_ended: StopFlag,
}

impl<J> Clone for Inbox<J> {
    fn clone(&self) -> Self {
        Inbox {
            jobs: self.jobs.clone(),
            wake: Arc::clone(&self.wake),
            has_ended: self.has_ended.clone(),
        }
    }
}

impl<J> Inbox<J> {
    /// An inbox whose thread waits for `wake` and takes from the receiver.
    pub(crate) fn new(wake: Arc<EventFd>) -> (Self, Receiver<J>) {
        let (jobs, receiver) = channel();
        (Inbox { jobs, wake, has_ended: StopFlag::new() }, receiver)
    }

    /// Hands over a job. A thread that has ended drops it, which resets its connections.
    pub(crate) fn put(&self, job: J) {
        if self.jobs.send(job).is_ok() {
            self.wake.set();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.is_raised()
    }
}

/// The relays of a thread.
pub(crate) struct EventLoop {
    poller: EdgePoller,
    relays: Vec<Option<Relay>>,
    free: Vec<usize>,
    /// Freed in this round: an event of the old relay may still be in it.
    freed: Vec<usize>,
    again: Vec<usize>,
    pipes: PipePool,
    codec: BlockCodec,
    scratch: Vec<u8>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) now: Instant,
    /// Time that a test has passed over.
    #[cfg(test)]
    skipped: Duration,
}

/// A thread that is to run.
pub(crate) struct Prepared<J> {
    event_loop: EventLoop,
    jobs: Receiver<J>,
    has_ended: StopFlag,
}

/// Threads and their inboxes, in the same order.
type Threads<J> = (Vec<Prepared<J>>, Vec<Inbox<J>>);

/// Prepares so many threads, one at least.
pub(crate) fn prepare<J>(count: usize, counters: &Arc<Counters>) -> Result<Threads<J>, BoostError> {
    let all: io::Result<Vec<_>> = (0..count.max(1)).map(|_| prepare_one(counters)).collect();
    Ok(all.map_err(BoostError::Socket)?.into_iter().unzip())
}

fn prepare_one<J>(counters: &Arc<Counters>) -> io::Result<(Prepared<J>, Inbox<J>)> {
    let (mut poller, wake) = (EdgePoller::new()?, Arc::new(EventFd::new()?));
    poller.add(&*wake, WAKE)?;
    let (inbox, jobs) = Inbox::new(wake);
    let event_loop = EventLoop {
        poller,
        relays: Vec::new(),
        free: Vec::new(),
        freed: Vec::new(),
        again: Vec::new(),
        pipes: PipePool::new(Arc::clone(counters)),
        codec: BlockCodec::new(),
        scratch: vec![0; SCRATCH_BYTES],
        counters: Arc::clone(counters),
        now: clock::now(),
        #[cfg(test)]
        skipped: Duration::ZERO,
    };
    Ok((Prepared { event_loop, jobs, has_ended: inbox.has_ended.clone() }, inbox))
}

impl<J: Send> Prepared<J> {
    /// Runs until the box ends.
    pub(crate) fn run<S: Side<Job = J>>(self, side: &mut S, ending: Ending<'_>) {
        let Prepared { mut event_loop, jobs, has_ended } = self;
        let (mut next_sweep, mut drains_until) = (event_loop.now, None);
        let mut edges = Vec::new();
        loop {
            event_loop.round(next_sweep, &mut edges, &jobs, side);
            if event_loop.now < next_sweep {
                continue;
            }
            next_sweep = event_loop.now + SWEEP;
            event_loop.sweep(side);
            if ending.drain.is_raised() && drains_until.is_none() {
                drains_until = Some(event_loop.now + side.drain_timeout());
            }
            let is_drained = drains_until
                .is_some_and(|until| event_loop.now >= until || !event_loop.has_flows());
            if ending.stop.is_raised() || is_drained {
                has_ended.raise();
                // What was handed over before.
                event_loop.take_jobs(&jobs, side);
                return event_loop.stop(side);
            }
        }
    }
}

impl EventLoop {
    /// Serves what has changed, or the next change until a time.
    fn round<S: Side>(
        &mut self,
        until: Instant,
        edges: &mut Vec<Edge>,
        jobs: &Receiver<S::Job>,
        side: &mut S,
    ) {
        self.free.append(&mut self.freed);
        let mut ready = std::mem::take(&mut self.again);
        let timeout = if ready.is_empty() {
            until.saturating_duration_since(clock::now())
        } else {
            Duration::ZERO
        };
        if self.poller.wait(timeout, edges).is_err() {
            std::thread::sleep(SWEEP);
        }
        self.tell_time();
        for edge in edges.drain(..).filter(|edge| edge.token != WAKE) {
            let id = usize::try_from(edge.token >> 1).unwrap_or(usize::MAX);
            let Some(relay) = self.get(id) else { continue };
            if edge.token & 1 == 0 {
                relay.note_lane(edge);
            } else {
                relay.note_local(edge);
            }
            ready.push(id);
        }
        ready.sort_unstable();
        ready.dedup();
        for id in ready {
            self.pump(id, side);
        }
        // Lanes that have failed by now are gone: new flows get others.
        self.take_jobs(jobs, side);
    }

    fn take_jobs<S: Side>(&mut self, jobs: &Receiver<S::Job>, side: &mut S) {
        while let Ok(job) = jobs.try_recv() {
            side.job(job, self);
        }
    }

    fn tell_time(&mut self) {
        self.now = clock::now();
        #[cfg(test)]
        {
            self.now += self.skipped;
        }
    }

    /// Checks the timeouts.
    fn sweep<S: Side>(&mut self, side: &mut S) {
        self.close_overdue(side);
        side.sweep(self);
    }

    /// Adds a lane, and the local socket of its flow. Its turn comes at once.
    pub(crate) fn add(&mut self, relay: Relay) -> Result<usize, Box<(Relay, io::Error)>> {
        let id = self.free.pop().unwrap_or_else(|| {
            self.relays.push(None);
            self.relays.len() - 1
        });
        let token = (id as u64) << 1;
        if let Err(error) = self.poller.add(&relay.socket.stream, token) {
            self.free.push(id);
            return Err(Box::new((relay, error)));
        }
        self.counters.active_lanes.increment();
        if let Some(entry) = self.relays.get_mut(id) {
            *entry = Some(relay);
        }
        self.register_local(id);
        self.again.push(id);
        Ok(id)
    }

    /// Watches the local socket of a relay's flow.
    pub(crate) fn register_local(&mut self, id: usize) {
        let Some(Some(relay)) = self.relays.get_mut(id) else { return };
        let Some(flow) = &relay.flow else { return };
        let (Local::Connected(stream) | Local::Connecting(stream)) = &flow.local else { return };
        let stream: &TcpStream = stream;
        if self.poller.add(stream, (id as u64) << 1 | 1).is_err() {
            relay.local_unwatched();
        }
    }

    pub(crate) fn get(&mut self, id: usize) -> Option<&mut Relay> {
        self.relays.get_mut(id)?.as_mut()
    }

    pub(crate) fn relays(&self) -> impl Iterator<Item = (usize, &Relay)> {
        self.relays.iter().enumerate().filter_map(|(id, relay)| Some((id, relay.as_ref()?)))
    }

    /// Gives a relay a turn soon.
    pub(crate) fn wake(&mut self, id: usize) {
        self.again.push(id);
    }

    /// True while bytes of a flow may be on their way: until far has said that its target has
    /// taken everything.
    fn has_flows(&self) -> bool {
        self.relays().any(|(_, relay)| relay.flow.is_some())
    }

    fn pump<S: Side>(&mut self, id: usize, side: &mut S) {
        let mut notices = Vec::new();
        let Some(Some(relay)) = self.relays.get_mut(id) else { return };
        let mut tools = Tools {
            pipes: &mut self.pipes,
            codec: &mut self.codec,
            scratch: &mut self.scratch,
            counters: &self.counters,
            now: self.now,
        };
        let result = relay.pump(&mut tools, &mut notices);
        if let Ok(Pumped::Again) = result {
            self.again.push(id);
        }
        for notice in notices {
            side.notice(id, notice, self);
        }
        if let Err(end) = result {
            self.close(id, end, FlowEnd::Stopped, side);
        }
    }

    /// Closes a lane, and resets its flow if it has one.
    pub(crate) fn close<S: Side>(
        &mut self,
        id: usize,
        end: LaneEnd,
        of_flow: FlowEnd,
        side: &mut S,
    ) {
        let Some(mut relay) = self.relays.get_mut(id).and_then(Option::take) else { return };
        self.freed.push(id);
        self.counters.active_lanes.decrement();
        if relay.is_free() && !matches!(end, LaneEnd::Failed(_)) {
            // The end of the last flow may still be in the send buffer.
            let _ = host::socket::set_reset_on_close(&relay.socket.stream, false);
        }
        let of_flow = match &end {
            LaneEnd::Failed(why) => FlowEnd::LaneFailed(why.clone()),
            LaneEnd::ClosedByPeer | LaneEnd::Closed => of_flow,
        };
        let unproven = match end {
            LaneEnd::Failed(_) | LaneEnd::ClosedByPeer => relay.take_unproven(),
            LaneEnd::Closed => None,
        };
        if let Some(stream) = unproven.as_ref().and_then(LocalFlow::connected) {
            // Fails if it could not be watched.
            let _ = self.poller.remove(stream);
        }
        if relay.flow.as_ref().is_some_and(|flow| !flow.is_opened) {
            relay.answer_refusal(lane::Refusal::Unreachable);
        }
        let mut tools = Tools {
            pipes: &mut self.pipes,
            codec: &mut self.codec,
            scratch: &mut self.scratch,
            counters: &self.counters,
            now: self.now,
        };
        if let Some(summary) = relay.abandon(of_flow, &mut tools) {
            side.notice(id, Notice::FlowEnded(summary), self);
        }
        side.lane_ended(id, EndedLane { relay, end }, unproven, self);
    }

    /// Finds peers that are gone, which have not closed their lanes.
    fn find_lost(&mut self) -> Vec<usize> {
        let now = self.now;
        let lanes = self.relays.iter_mut().enumerate();
        let lost = lanes.filter_map(|(id, relay)| {
            let relay = relay.as_mut()?;
            let since = now.saturating_duration_since(relay.checked);
            if since < PEER_CHECK || !relay.socket.is_connected {
                return None;
            }
            relay.checked = now;
            crate::sockets::is_peer_gone(&relay.socket.stream).then_some(id)
        });
        lost.collect()
    }

    fn close_overdue<S: Side>(&mut self, side: &mut S) {
        for id in self.find_lost() {
            let end = LaneEnd::Failed("the other box no longer acknowledges anything".to_owned());
            self.close(id, end, FlowEnd::Stopped, side);
        }
        let overdue: Vec<_> = self
            .relays()
            .filter_map(|(id, relay)| Some((id, side.overdue(relay, id, self.now)?)))
            .collect();
        for (id, overdue) in overdue {
            let (end, of_flow) = match overdue {
                Overdue::Lane(why) => (LaneEnd::Failed(why), FlowEnd::Stopped),
                Overdue::Unused => (LaneEnd::Closed, FlowEnd::Stopped),
                Overdue::Flow => (LaneEnd::Closed, FlowEnd::IdleTimeout),
            };
            self.close(id, end, of_flow, side);
        }
    }

    fn stop<S: Side>(&mut self, side: &mut S) {
        for id in 0..self.relays.len() {
            self.close(id, LaneEnd::Closed, FlowEnd::Stopped, side);
        }
    }
}

/// Counts a flow that has ended, and reports it.
pub(crate) fn flow_ended(summary: crate::FlowSummary, counters: &Counters, report: Report<'_>) {
    counters.active_flows.decrement();
    counters.note_uncompressed(summary.uncompressed);
    match summary.end {
        FlowEnd::Refused(refusal) => counters.refuse(NotBoosted::Target(refusal)),
        ref end if end.is_reset() => counters.reset.increment(),
        _ => {}
    }
    report(Event::FlowEnded(summary));
}

#[cfg(test)]
impl<J: Send> Prepared<J> {
    /// The loop of a test, which it turns by hand.
    pub(crate) fn one() -> (Self, Inbox<J>) {
        prepare_one(&Arc::default()).unwrap()
    }

    pub(crate) const fn event_loop(&mut self) -> &mut EventLoop {
        &mut self.event_loop
    }

    /// Serves what changes within a moment.
    pub(crate) fn serve<S: Side<Job = J>>(&mut self, side: &mut S) {
        let until = clock::now() + Duration::from_millis(50);
        while clock::now() < until {
            self.event_loop.round(until, &mut Vec::new(), &self.jobs, side);
        }
    }

    pub(crate) fn stop<S: Side<Job = J>>(&mut self, side: &mut S) {
        self.event_loop.stop(side);
    }

    /// Checks the timeouts as if so much time had passed.
    pub(crate) fn pass<S: Side<Job = J>>(&mut self, time: Duration, side: &mut S) {
        self.event_loop.skipped += time;
        self.event_loop.tell_time();
        self.event_loop.sweep(side);
    }
}
