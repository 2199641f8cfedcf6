//! The UDP streams that are received on one port, identified by their source.
//!
//! Source addresses can be forged, so all that is sent to an address, including reports,
//! is paid from its [`Credit`], and nothing is sent before the second datagram of a
//! stream. The numbers of streams with one datagram, per address and in total are
//! limited.

use crate::context::Context;
use crate::credit::{Credit, FlowCredit};
use crate::meter::{Meter, Start};
use crate::server::Limits;
use crate::slots::LimitReached;
use host::address::canonical;
use host::address_key::AddressKey;
use host::clock;
use iperf2_proto::{ClientHeader, Datagram, Mode, ReceiveStats, report};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of streams with one datagram so far; beyond it, the oldest one of the
/// address with the most streams is removed.
const MAX_HALF_OPEN: usize = 256;

/// Timeout of a stream with one datagram.
const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(4);

/// How long the report of an ended stream is repeated on request.
const LINGER: Duration = Duration::from_secs(3);

/// Maximum number of reports per stream.
const MAX_REPORTS: u64 = 10;

/// Maximum sequence number of the first datagram of a stream.
const MAX_FIRST_NUMBER: u64 = 1_000_000;

/// Idle time after which a stream may be evicted when all slots are in use.
const EVICTABLE_AFTER: Duration = Duration::from_secs(2);

/// How much longer than its flow a reverse stream may last.
const REVERSE_GRACE: Duration = Duration::from_secs(1);

/// The limits of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum number of concurrent streams.
    pub(crate) streams: usize,
    /// Maximum number of streams per address.
    pub(crate) per_address: usize,
    /// Timeout of an idle stream.
    pub(crate) idle_timeout: Duration,
}

impl Bounds {
    pub(crate) fn of(limits: &Limits) -> Self {
        let count = |streams| usize::try_from(streams).unwrap_or(usize::MAX);
        Bounds {
            streams: count(limits.streams),
            per_address: count(limits.max_per_address()),
            idle_timeout: limits.idle_timeout,
        }
    }
}

/// The socket that all streams share.
pub(crate) trait FlowSocket {
    /// Sends a datagram if the socket has room for it.
    fn send(&self, bytes: &[u8], peer: SocketAddr);
    /// The local address of datagrams from a peer.
    fn local_towards(&self, peer: SocketAddr) -> SocketAddr;
}

/// A stream that requests data in the reverse direction.
pub(crate) struct ReverseRequest {
    /// The source address, as the socket reports it.
    pub(crate) peer: SocketAddr,
    /// The address of this host that the stream was sent to, if it is known.
    pub(crate) asked: Option<IpAddr>,
    pub(crate) header: ClientHeader,
    /// Pays for the data if the address is not trusted.
    pub(crate) credit: Arc<FlowCredit>,
}

pub(crate) struct UdpFlows<'a, 'd> {
    context: &'d Context<'a>,
    bounds: Bounds,
    /// The only accepted source, if any.
    pub(crate) only: Option<IpAddr>,
    /// Whether these are reverse streams of a client's test.
    reverse: bool,
    /// At most [`MAX_HALF_OPEN`] streams more than `bounds` permits.
    flows: HashMap<SocketAddr, UdpFlow<'a>>,
    /// Number of streams that have ended.
    pub(crate) ended: usize,
}

struct UdpFlow<'a> {
    key: AddressKey,
    header: Option<ClientHeader>,
    begun: Instant,
    last_received: Instant,
    stats: ReceiveStats,
    /// From the second datagram until the last.
    meter: Option<Meter<'a>>,
    credit: Arc<FlowCredit>,
    ended: Option<Ended>,
}

struct Ended {
    report: [u8; report::LENGTH],
    sent: u64,
}

impl UdpFlow<'_> {
    fn is_half_open(&self) -> bool {
        self.meter.is_none() && self.ended.is_none()
    }

    /// The reverse direction that the client requests, if any.
    fn request(&self, peer: SocketAddr) -> Option<ReverseRequest> {
        let header = self.header.filter(|header| header.mode != Mode::Normal)?;
        Some(ReverseRequest { peer, asked: None, header, credit: Arc::clone(&self.credit) })
    }

    /// Number of streams that share the credit of this address, including reverse ones.
    fn streams_of_address(&self) -> usize {
        Arc::strong_count(self.credit.credit())
    }
}

impl Drop for UdpFlow<'_> {
    fn drop(&mut self) {
        self.credit.end(clock::now());
    }
}

impl<'a, 'd> UdpFlows<'a, 'd> {
    pub(crate) fn new(context: &'d Context<'a>, bounds: Bounds) -> Self {
        UdpFlows { context, bounds, only: None, reverse: false, flows: HashMap::new(), ended: 0 }
    }

    /// Whether a stream has arrived.
    pub(crate) fn has_started(&self) -> bool {
        self.ended > 0 || !self.flows.is_empty()
    }

    /// Number of streams that it has state of.
    pub(crate) fn count(&self) -> usize {
        self.flows.len()
    }

    /// Takes a datagram that arrived at this time, also given as the time since 1970.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        peer: SocketAddr,
        (now, unix): (Instant, Duration),
        socket: &dyn FlowSocket,
        on_request: &mut dyn FnMut(ReverseRequest),
    ) {
        let Some(datagram) = Datagram::decode(bytes) else { return };
        if self.only.is_some_and(|only| only != peer.ip().to_canonical()) {
            return;
        }
        let is_restart = datagram.number == 1 && !datagram.last;
        if is_restart && self.flows.get(&peer).is_some_and(|flow| flow.ended.is_some()) {
            self.flows.remove(&peer);
        }
        let first = !self.flows.contains_key(&peer);
        if first {
            // Late datagrams of an ended test do not start a stream.
            if datagram.last || datagram.number > MAX_FIRST_NUMBER {
                return;
            }
            let header = ClientHeader::decode_datagram(bytes).unwrap_or_default();
            self.insert(peer, header, now);
        }
        let second = !first && self.flows.get(&peer).is_some_and(UdpFlow::is_half_open);
        if second && let Err(full) = self.make_slot(peer, now) {
            self.flows.remove(&peer);
            self.context.peer_error_at(peer, &full, now);
            return;
        }
        let Some(flow) = self.flows.get_mut(&peer) else { return };
        flow.last_received = now;
        flow.credit.credit().receive(bytes.len());
        if let Some(ended) = &mut flow.ended {
            if datagram.last {
                send_report(socket, peer, ended, flow.credit.credit());
            }
            return;
        }
        match &mut flow.meter {
            Some(meter) => {
                meter.tick(now);
                meter.arrive(&datagram, bytes.len(), unix);
            }
            None => {
                flow.stats.arrive(datagram.number, bytes.len() as u64, datagram.sent, unix);
            }
        }
        if second {
            let peer = canonical(peer);
            let ends = (socket.local_towards(peer), peer);
            flow.meter = Some(start_meter(self.context, ends, flow, self.reverse, now));
        }
        let due = |request: &ReverseRequest| match request.header.mode {
            // The client sends only one datagram; the server checks whether it is trusted.
            Mode::Reverse => first,
            Mode::Dual | Mode::FullDuplex => second,
            Mode::Normal | Mode::TradeOff => false,
        };
        if let Some(request) = flow.request(peer).filter(due) {
            on_request(request);
        }
        if datagram.last {
            let Some(meter) = flow.meter.take() else { return };
            let report = meter.finish(now).encode();
            self.ended += 1;
            let ended = flow.ended.insert(Ended { report, sent: 0 });
            if flow.header.is_none_or(|header| !header.no_report) {
                send_report(socket, peer, ended, flow.credit.credit());
            }
            let after = flow.request(peer).filter(|request| request.header.mode == Mode::TradeOff);
            let lasted = now.saturating_duration_since(flow.begun);
            flow.credit
                .end(now + REVERSE_GRACE + after.as_ref().map_or(Duration::ZERO, |_| lasted));
            if let Some(request) = after {
                on_request(request);
            }
        }
    }

    /// Inserts a new stream.
    fn insert(&mut self, peer: SocketAddr, header: Option<ClientHeader>, now: Instant) {
        self.make_room();
        let key = AddressKey::of(peer.ip());
        let known = self.flows.values().find(|flow| flow.key == key);
        let credit = known.map_or_else(
            || Arc::new(Credit::new(peer.ip())),
            |flow| Arc::clone(flow.credit.credit()),
        );
        let flow = UdpFlow {
            key,
            header,
            begun: now,
            last_received: now,
            stats: ReceiveStats::default(),
            meter: None,
            credit: Arc::new(FlowCredit::new(credit)),
            ended: None,
        };
        self.flows.insert(peer, flow);
    }

    /// Removes a stream with one datagram, or an ended one, if there are too many: the oldest of
    /// the address with the most streams, so that no address takes another's report. Active
    /// streams are limited by [`UdpFlows::make_slot`].
    fn make_room(&mut self) {
        let half_open = self.flows.values().filter(|flow| flow.is_half_open()).count();
        let evicted = if half_open >= MAX_HALF_OPEN {
            let half_open = self.flows.iter().filter(|(_, flow)| flow.is_half_open());
            half_open.max_by_key(|(_, flow)| {
                (flow.streams_of_address(), std::cmp::Reverse(flow.last_received))
            })
        } else if self.flows.len() >= self.bounds.streams.saturating_add(MAX_HALF_OPEN) {
            let ended = self.flows.iter().filter(|(_, flow)| flow.ended.is_some());
            ended.max_by_key(|(_, flow)| {
                (flow.streams_of_address(), std::cmp::Reverse(flow.last_received))
            })
        } else {
            None
        };
        if let Some(peer) = evicted.map(|(&peer, _)| peer) {
            self.flows.remove(&peer);
        }
    }

    /// Frees a slot for one more active stream, if possible.
    fn make_slot(&mut self, peer: SocketAddr, now: Instant) -> Result<(), LimitReached> {
        let key = AddressKey::of(peer.ip());
        let (mut all, mut of_address) = (0, 0);
        for flow in self.flows.values().filter(|flow| flow.meter.is_some()) {
            all += 1;
            of_address += usize::from(flow.key == key);
        }
        let full = if of_address >= self.bounds.per_address {
            LimitReached::Address(key)
        } else if all >= self.bounds.streams {
            LimitReached::Total
        } else {
            return Ok(());
        };
        let is_evictable = |(_, flow): &(&SocketAddr, &UdpFlow<'_>)| {
            let matches = full == LimitReached::Total || flow.key == key;
            matches
                && flow.meter.is_some()
                && now.saturating_duration_since(flow.last_received) >= EVICTABLE_AFTER
        };
        let idlest =
            self.flows.iter().filter(is_evictable).min_by_key(|(_, flow)| flow.last_received);
        let idlest = idlest.map(|(&peer, _)| peer).ok_or(full)?;
        if let Some(mut flow) = self.flows.remove(&idlest) {
            if let Some(meter) = flow.meter.take() {
                meter.finish(flow.last_received);
            }
            let reason = "idle: the stream was evicted for a new one";
            self.context.peer_error_at(idlest, &reason, now);
        }
        Ok(())
    }

    /// Reports due intervals and ends idle streams.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.context.report_suppressed(now, false);
        let (context, idle_timeout) = (self.context, self.bounds.idle_timeout);
        self.flows.retain(|peer, flow| {
            let quiet = now.saturating_duration_since(flow.last_received);
            if flow.ended.is_some() {
                return quiet < LINGER;
            }
            let Some(meter) = &mut flow.meter else { return quiet < HALF_OPEN_TIMEOUT };
            if quiet < idle_timeout {
                meter.tick(now);
                return true;
            }
            if let Some(meter) = flow.meter.take() {
                meter.finish(flow.last_received);
            }
            let reason = format!("idle timeout: no datagrams for {} s", idle_timeout.as_secs_f64());
            context.peer_error_at(*peer, &reason, now);
            false
        });
    }

    /// Ends all active streams.
    pub(crate) fn close(mut self, now: Instant) {
        for (_, mut flow) in self.flows.drain() {
            if let Some(meter) = flow.meter.take() {
                meter.finish(flow.last_received);
            }
        }
        self.context.report_suppressed(now, true);
    }
}

/// Reports a new stream and starts counting it.
fn start_meter<'a>(
    context: &Context<'a>,
    ends: (SocketAddr, SocketAddr),
    flow: &UdpFlow<'_>,
    reverse: bool,
    now: Instant,
) -> Meter<'a> {
    let start = Start {
        label: context.label(reverse),
        ends,
        mode: flow.header.map_or(Mode::Normal, |header| header.mode),
        tcp: None,
        connecting: None,
        begun: flow.begun,
    };
    Meter::start(context, start, now).with_stats(flow.stats)
}

/// Sends a report if the address has credit for it.
fn send_report(socket: &dyn FlowSocket, peer: SocketAddr, ended: &mut Ended, credit: &Credit) {
    if ended.sent < MAX_REPORTS && credit.pay_for_one(report::LENGTH) {
        ended.sent += 1;
        socket.send(&ended.report, peer);
    }
}
