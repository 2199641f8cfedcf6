//! The UDP streams that come to one port, told apart by where they come from.
//!
//! Addresses of datagrams can be forged, so nothing here sends but reports,
//! each at most as long as what has come, and what a stream takes in memory is
//! bounded before it has shown that it is one.

use super::desk::{Desk, TICK};
use super::event::{Event, Label};
use super::meter::Meter;
use super::open;
use super::tcp::may_go_on;
use super::udp::LONGEST;
use host::clock;
use iperf2::{Account, ClientHeader, Datagram, Mode, report};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant};

/// Streams of one datagram so far; more make the oldest be forgotten.
const HALF_OPEN: usize = 64;

/// How long a stream of one datagram is remembered.
const HALF_OPEN_TIME: Duration = Duration::from_secs(4);

/// How long an ended stream's report is repeated when it is asked for.
const LINGER: Duration = Duration::from_secs(3);

/// Reports of one stream at most.
const REPORTS: u64 = 10;

/// No test begins with a higher number, however much of it was lost.
const FIRST_NUMBERS: u64 = 1_000_000;

/// A stream that asks for the other way, or has ended.
pub(crate) struct Asked {
    /// As the socket knows it.
    pub(crate) peer: SocketAddr,
    pub(crate) header: ClientHeader,
    /// Bytes that have come, and go on coming.
    pub(crate) came: Arc<AtomicU64>,
    pub(crate) ended: bool,
}

pub(crate) struct Flows<'a, 'd> {
    desk: &'d Desk<'a>,
    socket: &'d UdpSocket,
    local: SocketAddr,
    /// Streams at the same time.
    most: usize,
    silence: Duration,
    /// The only address that may send.
    only: Option<IpAddr>,
    /// Whether these streams are the other way of a client's test.
    other_way: bool,
    flows: HashMap<SocketAddr, Flow<'a>>,
    buffer: Vec<u8>,
    ticked: Instant,
    /// Streams that have come to their end.
    pub(crate) ended: usize,
}

struct Flow<'a> {
    header: Option<ClientHeader>,
    begun: Instant,
    seen: Instant,
    account: Account,
    /// From the second datagram on.
    meter: Option<Meter<'a>>,
    came: Arc<AtomicU64>,
    ended: Option<Ended>,
}

struct Ended {
    report: [u8; report::LENGTH],
    told: u64,
}

impl<'a, 'd> Flows<'a, 'd> {
    pub(crate) fn new(
        desk: &'d Desk<'a>,
        socket: &'d UdpSocket,
        most: usize,
        silence: Duration,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(TICK))?;
        Ok(Flows {
            desk,
            socket,
            local: open::plain(socket.local_addr()?),
            most,
            silence,
            only: None,
            other_way: false,
            flows: HashMap::new(),
            buffer: vec![0; LONGEST as usize],
            ticked: clock::now(),
            ended: 0,
        })
    }

    /// For the other way of a client's test.
    pub(crate) fn only_from(mut self, peer: IpAddr) -> Self {
        self.only = Some(peer);
        self
    }

    /// Whether a stream came.
    pub(crate) fn has_begun(&self) -> bool {
        self.ended > 0 || !self.flows.is_empty()
    }

    /// Takes one datagram, or waits a moment for it.
    pub(crate) fn step(&mut self, asked: &mut dyn FnMut(Asked)) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let read = self.socket.recv_from(&mut buffer);
        let now = clock::now();
        let result = match read {
            Ok((length, peer)) => {
                self.take(&buffer[..length], peer, now, asked);
                Ok(())
            }
            Err(error) if may_go_on(&error) => Ok(()),
            // An answer to an earlier report: nobody is there any more.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(error),
        };
        self.buffer = buffer;
        if now.saturating_duration_since(self.ticked) >= TICK / 2 {
            self.ticked = now;
            self.tick(now);
        }
        result
    }

    fn take(&mut self, bytes: &[u8], peer: SocketAddr, now: Instant, asked: &mut dyn FnMut(Asked)) {
        let Some(datagram) = Datagram::decode(bytes) else { return };
        if self.only.is_some_and(|only| only != peer.ip().to_canonical()) {
            return;
        }
        let again = datagram.number == 1 && !datagram.last;
        if again && self.flows.get(&peer).is_some_and(|flow| flow.ended.is_some()) {
            self.flows.remove(&peer);
        }
        if !self.flows.contains_key(&peer) {
            // What an ended test left behind begins no new one.
            if datagram.last || datagram.number > FIRST_NUMBERS || !self.make_room() {
                return;
            }
            let flow = Flow {
                header: ClientHeader::decode_datagram(bytes).unwrap_or_default(),
                begun: now,
                seen: now,
                account: Account::default(),
                meter: None,
                came: Arc::default(),
                ended: None,
            };
            if let Some(header) = flow.header.filter(|header| header.mode != Mode::Normal) {
                flow.came.store(bytes.len() as u64, Ordering::Relaxed);
                asked(Asked { peer, header, came: Arc::clone(&flow.came), ended: false });
                flow.came.store(0, Ordering::Relaxed);
            }
            self.flows.insert(peer, flow);
        }
        let Some(flow) = self.flows.get_mut(&peer) else { return };
        flow.seen = now;
        let came = flow.came.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        if let Some(ended) = &mut flow.ended {
            if datagram.last {
                repeat(self.socket, peer, ended, came);
            }
            return;
        }
        match &mut flow.meter {
            Some(meter) => {
                meter.tick(now);
                meter.arrive(&datagram, bytes.len(), clock::unix_time());
            }
            None => {
                let (length, time) = (bytes.len() as u64, clock::unix_time());
                flow.account.arrive(datagram.number, length, datagram.sent, time);
                if flow.account.received > 1 || datagram.last {
                    let peer = open::plain(peer);
                    let ends = (open::local_towards(self.local, peer), peer);
                    flow.meter = Some(announce(self.desk, ends, flow, self.other_way));
                }
            }
        }
        if datagram.last {
            let Some(meter) = flow.meter.take() else { return };
            let report = meter.finish(now).encode();
            self.ended += 1;
            let ended = flow.ended.insert(Ended { report, told: 0 });
            if flow.header.is_none_or(|header| !header.no_report) {
                repeat(self.socket, peer, ended, came);
            }
            if let Some(header) = flow.header.filter(|header| header.mode != Mode::Normal) {
                asked(Asked { peer, header, came: Arc::clone(&flow.came), ended: true });
            }
        }
    }

    /// Makes room for one more: a stream of one datagram goes before one that
    /// has ended; others stay.
    fn make_room(&mut self) -> bool {
        let half_open = |flow: &Flow<'_>| flow.meter.is_none() && flow.ended.is_none();
        let count = self.flows.values().filter(|flow| half_open(flow)).count();
        if self.flows.len() < self.most && count < HALF_OPEN {
            return true;
        }
        let oldest = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.meter.is_none())
            .min_by_key(|(_, flow)| (!half_open(flow), flow.seen))
            .map(|(&peer, _)| peer);
        oldest.is_some_and(|peer| self.flows.remove(&peer).is_some())
    }

    fn tick(&mut self, now: Instant) {
        let (desk, silence) = (self.desk, self.silence);
        self.flows.retain(|peer, flow| {
            let quiet = now.saturating_duration_since(flow.seen);
            if flow.ended.is_some() {
                return quiet < LINGER;
            }
            let Some(meter) = &mut flow.meter else { return quiet < HALF_OPEN_TIME };
            if quiet < silence {
                meter.tick(now);
                return true;
            }
            if let Some(meter) = flow.meter.take() {
                meter.finish(flow.seen);
            }
            let why = format!("silent for {} s: the stream is taken as ended", silence.as_secs());
            (desk.tell)(Event::Trouble { peer: open::plain(*peer), why });
            false
        });
    }

    /// Ends all streams that have not.
    pub(crate) fn close(mut self) {
        for (_, flow) in self.flows.drain() {
            if let Some(meter) = flow.meter {
                meter.finish(flow.seen);
            }
        }
    }
}

fn announce<'a>(
    desk: &Desk<'a>,
    (local, peer): (SocketAddr, SocketAddr),
    flow: &Flow<'_>,
    other_way: bool,
) -> Meter<'a> {
    let label: Label = desk.label(other_way);
    let mode = flow.header.map_or(Mode::Normal, |header| header.mode);
    (desk.tell)(Event::Connected { label, local, peer, mode, tcp: None });
    Meter::new(desk, label, (local, peer), flow.begun).with_account(flow.account)
}

/// Sends a report, unless the reports would be more than what has come.
fn repeat(socket: &UdpSocket, peer: SocketAddr, ended: &mut Ended, came: u64) {
    let all = (ended.told + 1) * report::LENGTH as u64;
    if ended.told < REPORTS && all <= came {
        ended.told += 1;
        let _ = socket.send_to(&ended.report, peer);
    }
}
