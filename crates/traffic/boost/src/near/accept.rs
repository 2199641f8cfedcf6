//! Connections of applications until their targets are known: one thread for a listener.

use super::share::Shares;
use super::{Listener, NewFlow};
use crate::address_share::{AddressShares, Full, ShareTicket};
use crate::counters::{Counters, NotBoosted};
use crate::event::Event;
use crate::event_loop::{Ending, Inbox, Report};
use crate::ingress::{Accepted, MAX_NEGOTIATION, Negotiation, Next};
use crate::relay::answer;
use crate::sockets;
use connection_limits::{
    Acceptor, Ended, HalfOpenLimits, Handshake, HandshakeCounts, HandshakeTicket,
};
use lane::{Refusal, Target};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Connections whose target is not known yet: a descriptor and at most 16 KiB each.
const LIMITS: HalfOpenLimits =
    HalfOpenLimits { all: 2048, per_address: 512, timeout: Duration::from_secs(10) };
/// Interval at which the end of the box is noticed.
const POLL: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 4096;

/// Where flows go.
pub(super) struct Sink<'a> {
    pub(super) inboxes: Vec<Inbox<NewFlow>>,
    pub(super) shares: &'a Shares,
    pub(super) counters: &'a Counters,
    pub(super) by_address: &'a AddressShares,
    pub(super) report: Report<'a>,
}

/// A connection that says where it is to go.
struct Negotiating<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    negotiation: Box<dyn Negotiation>,
    input: Vec<u8>,
    _ticket: HandshakeTicket<'a>,
}

/// What a negotiation came to.
enum Outcome {
    Open(Target),
    /// The reply was written.
    Closed(String),
    Failed(String),
}

impl Handshake for Negotiating<'_> {
    type Outcome = Outcome;

    fn connection(&self) -> &TcpStream {
        &self.stream
    }

    fn advance(&mut self) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.step() {
                return Some(outcome);
            }
            if self.input.len() >= MAX_NEGOTIATION {
                return Some(Outcome::Failed("its request is too long".to_owned()));
            }
            let mut buffer = [0; READ_BYTES];
            let most = READ_BYTES.min(MAX_NEGOTIATION - self.input.len());
            match (&self.stream).read(buffer.split_at_mut(most).0) {
                Ok(0) => return Some(Outcome::Failed("it was closed before its request".into())),
                Ok(count) => {
                    self.input.extend_from_slice(buffer.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Some(Outcome::Failed(error.to_string())),
            }
        }
    }
}

impl Negotiating<'_> {
    /// Gives the protocol what has arrived.
    fn step(&mut self) -> Option<Outcome> {
        let step = self.negotiation.advance(&self.input);
        self.input.drain(..step.used.min(self.input.len()));
        if let Next::Close(why) = step.next {
            answer(&self.stream, &step.reply);
            return Some(Outcome::Closed(why));
        }
        // Replies are short, and the send buffer is empty.
        if !step.reply.is_empty()
            && !(&self.stream).write(&step.reply).is_ok_and(|count| count == step.reply.len())
        {
            return Some(Outcome::Failed("it does not take the reply".to_owned()));
        }
        match step.next {
            Next::Read | Next::Close(_) => None,
            Next::Open(target) => Some(Outcome::Open(target)),
            Next::Reset(why) => Some(Outcome::Failed(why)),
        }
    }
}

/// Accepts until the box ends; connections without a target are counted over all listeners.
pub(super) fn accept(
    listener: Listener,
    counts: &HandshakeCounts,
    sink: &Sink<'_>,
    ending: Ending<'_>,
) {
    let Listener { socket, ingress } = listener;
    let begin = |stream: TcpStream, peer, ticket| {
        let local = prepare(&stream).unwrap_or(peer);
        let negotiation = ingress.begin(Accepted { peer, local });
        Negotiating { stream, peer, negotiation, input: Vec::new(), _ticket: ticket }
    };
    let _ = socket.set_nonblocking(true);
    let Ok(mut acceptor) = Acceptor::new(&socket, counts, LIMITS, begin) else { return };
    let mut ended = |ended: Ended<Negotiating<'_>>| {
        let refused = |peer, reason: NotBoosted, why: &str| {
            sink.counters.refuse(reason);
            (sink.report)(Event::RequestRefused { peer, why: why.to_owned() });
        };
        match ended {
            Ended::Complete(_, own, Outcome::Open(target)) => {
                if let Some((own, share)) = sink.admit(own) {
                    let Negotiating { stream, peer, negotiation, input: early, .. } = own;
                    let flow = NewFlow { stream, peer, target, negotiation, early, share };
                    sink.hand_over(flow);
                }
            }
            Ended::Complete(_, own, Outcome::Closed(why) | Outcome::Failed(why)) => {
                refused(own.peer, NotBoosted::Request, &why);
            }
            Ended::TimedOut(own) => {
                refused(own.peer, NotBoosted::Slow, "its request did not arrive in time");
            }
            Ended::Evicted(own) => {
                refused(own.peer, NotBoosted::HalfOpen, "too many connections without a request");
            }
        }
    };
    let drains = ingress.accepts_while_draining();
    let accepts = || match ending.drain.is_raised() {
        true if drains => sink.inboxes.iter().any(|inbox| !inbox.has_ended()),
        is_draining => !is_draining,
    };
    while !ending.stop.is_raised() && accepts() {
        if acceptor.step(POLL, &mut ended).is_err() {
            std::thread::sleep(POLL);
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<SocketAddr> {
    sockets::prepare_local(stream)?;
    sockets::local_address(stream)
}

impl Sink<'_> {
    /// Hands a flow to a thread. While the box drains, threads end one after another; the flow is reset
    /// if the last one has.
    fn hand_over(&self, flow: NewFlow) {
        let runs = |thread: usize| self.inboxes.get(thread).is_some_and(|inbox| !inbox.has_ended());
        match self.shares.choose(runs).and_then(|thread| self.inboxes.get(thread)) {
            Some(inbox) => inbox.put(flow),
            None => self.counters.active_flows.decrement(),
        }
    }

    /// Counts a flow, if there is room for one more.
    fn admit<'a>(&self, mut own: Negotiating<'a>) -> Option<(Negotiating<'a>, ShareTicket)> {
        let full = match self.by_address.take(own.peer.ip()) {
            Ok(share) => {
                self.counters.active_flows.increment();
                self.counters.flows.increment();
                return Some((own, share));
            }
            Err(full) => full,
        };
        if let Some(reply) = own.negotiation.refused(Refusal::Busy) {
            answer(&own.stream, &reply);
        }
        let (reason, why) = match full {
            Full::Limit => (NotBoosted::MaxFlows, "too many flows"),
            Full::Share => (NotBoosted::AddressShare, "too many flows of this address"),
        };
        self.counters.refuse(reason);
        (self.report)(Event::RequestRefused { peer: own.peer, why: why.to_owned() });
        None
    }
}
