//! Accepts a client's streams and sets the requested socket options.

use super::{
    admission::{AdmittedTest, Arrival},
    state::ServerState,
};
use crate::{PerfError, Role, control::Control, plan::Plan, socket, stream::Stream};
use host::{
    clock, listener_congestion,
    tcp_info::{self, CongestionError},
};
use iperf3_proto::{Params, State, datagram};
use record::Protocol;
use socket2::Socket;
use std::{
    collections::HashSet,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// Added for each stream to the timeout for all streams: iperf3 opens one after
/// the other, and RTTs reach 600 ms.
const EACH_STREAM: Duration = Duration::from_millis(600);
/// Interval between checks of the control connection while waiting for streams.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a session waits for others of its client's address that open UDP
/// streams; clients wait 30 s.
const UDP_CLAIM_TIMEOUT: Duration = Duration::from_secs(25);

/// A session that waits for its client's streams.
pub(super) struct StreamSetup<'a> {
    pub(super) state: &'a ServerState<'a>,
    pub(super) control: &'a mut Control,
    pub(super) params: &'a Params,
    pub(super) plan: &'a Plan,
    pub(super) notes: &'a mut Vec<String>,
    /// Its streams count as they arrive.
    pub(super) test: &'a AdmittedTest<'a>,
}

impl StreamSetup<'_> {
    /// Requests the client's streams and waits for them.
    pub(super) fn run(mut self) -> Result<Vec<Stream>, PerfError> {
        let each = self.params.streams();
        let both = self.params.bidirectional;
        let wanted = if both { 2 * each } else { each };
        let sockets = match self.plan.protocol {
            Protocol::Tcp => self.connections(wanted)?,
            Protocol::Udp | Protocol::Udt => self.datagrams(wanted)?,
        };
        let address = self.control.address();
        let mut streams = Vec::new();
        for (index, socket) in (0..).zip(sockets) {
            // In both directions at once, the client's own come first.
            let sending = if both { index >= each } else { self.params.reverse };
            self.prepare(&socket, sending, index == 0);
            let stream = Stream::new(iperf3_proto::stream_id(index), sending, self.plan, socket);
            streams.push(stream.map_err(|source| PerfError::System {
                operation: "set up a stream",
                address,
                source,
            })?);
        }
        Ok(streams)
    }

    fn connections(&mut self, wanted: u32) -> Result<Vec<Socket>, PerfError> {
        let test = self.test;
        self.control.send_state(State::CreateStreams)?;
        let mut deadlines = self.deadlines(wanted);
        let mut arrived: Vec<Arrival> = Vec::new();
        while arrived.len() < deadlines.wanted {
            if let Some(stream) = self.next(&test.streams, &deadlines, arrived.len())? {
                test.take_stream(arrived.len(), self.control.address())?;
                arrived.push(stream);
                deadlines.renew();
            }
        }
        arrived.sort_by_key(|(arrival, _)| *arrival);
        Ok(arrived.into_iter().map(|(_, stream)| stream.into()).collect())
    }

    fn datagrams(&mut self, wanted: u32) -> Result<Vec<Socket>, PerfError> {
        let (peer, local) = (self.control.address(), self.control.local());
        let until = clock::now() + UDP_CLAIM_TIMEOUT;
        let is_over = || self.test.is_evicted() || clock::now() >= until;
        let claim = self.state.udp.claim(peer.ip(), wanted as usize, is_over);
        self.check_admitted()?;
        let claim = claim.ok_or(PerfError::StreamsMissing {
            address: peer,
            arrived: 0,
            requested: wanted,
        })?;
        self.control.send_state(State::CreateStreams)?;
        let mut deadlines = self.deadlines(wanted);
        let (mut sockets, mut known) = (Vec::new(), HashSet::new());
        while sockets.len() < deadlines.wanted {
            let Some(from) = self.next(claim.connects(), &deadlines, sockets.len())? else {
                continue;
            };
            if !known.insert(from) {
                continue;
            }
            self.test.take_stream(sockets.len(), peer)?;
            let socket = self.state.udp.open(local, from)?;
            // Before the reply, after which the client may send.
            if self.plan.coalesce {
                let _ = host::udp::coalesce(&socket);
            }
            if self.plan.train.is_some() {
                let _ = host::udp::timestamps(&socket);
            }
            let _ = socket.send(&datagram::CONNECT_REPLY);
            sockets.push(socket);
            deadlines.renew();
        }
        Ok(sockets)
    }

    fn deadlines(&self, wanted: u32) -> Deadlines {
        let handshake = self.state.config.limits.handshake;
        let now = clock::now();
        Deadlines {
            wanted: wanted as usize,
            handshake,
            whole: now + handshake + EACH_STREAM * wanted,
            until: now + handshake,
        }
    }

    /// The next stream to arrive, or `None` after a poll interval.
    fn next<T>(
        &mut self,
        arrivals: &Receiver<T>,
        deadlines: &Deadlines,
        arrived: usize,
    ) -> Result<Option<T>, PerfError> {
        match arrivals.recv_timeout(POLL_INTERVAL) {
            Ok(stream) => Ok(Some(stream)),
            Err(RecvTimeoutError::Timeout) => {
                // The client sends nothing now unless it aborts.
                self.control.poll(clock::now())?;
                if self.state.stop.is_raised() {
                    return Err(PerfError::Interrupted);
                }
                self.check_admitted()?;
                if clock::now() >= deadlines.until {
                    return Err(PerfError::StreamsMissing {
                        address: self.control.address(),
                        arrived,
                        requested: u32::try_from(deadlines.wanted).unwrap_or(u32::MAX),
                    });
                }
                Ok(None)
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.check_admitted()?;
                Err(PerfError::Interrupted)
            }
        }
    }

    fn check_admitted(&self) -> Result<(), PerfError> {
        if self.test.is_evicted() {
            return Err(PerfError::Evicted { address: self.control.address() });
        }
        Ok(())
    }

    /// Sets the requested socket options; an option that the kernel refuses is
    /// noted, as iperf3 does, and the test runs without it.
    fn prepare(&mut self, socket: &Socket, sending: bool, first: bool) {
        let (params, peer) = (self.params, self.control.address());
        let mut notes = Vec::new();
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        // The buffers of a UDT connection are its own.
        let is_udt = self.plan.protocol == Protocol::Udt;
        let window = positive(params.window).filter(|_| !is_udt).map(ByteCount::from_bytes);
        if let Some(window) = window
            && socket::set_window(socket, window).is_ok()
        {
            notes.extend(socket::clamp_note(socket, window, sending, Role::Server));
        }
        if let Some(tos) = u8::try_from(params.tos).ok().filter(|tos| *tos > 0) {
            let _ = socket::set_tos(socket, peer, tos);
        }
        if self.plan.protocol != Protocol::Tcp {
            if params.dont_fragment {
                let _ = host::socket::set_dont_fragment(socket, peer.is_ipv6(), true);
            }
        } else {
            let asked = params.congestion.as_ref().filter(|_| sending);
            let set = asked.map(|name| set_congestion(socket, name));
            if let Some(Err(error)) = &set {
                notes.push(format!("on the server: {error}"));
            }
            if !matches!(set, Some(Ok(()))) {
                listener_congestion::restore_default(socket);
            }
            if params.nodelay {
                let _ = socket.set_tcp_nodelay(true);
            }
            if let Some(mss) = u32::try_from(params.mss).ok().filter(|mss| *mss > 0) {
                let _ = socket.set_tcp_mss(mss);
            }
        }
        let smooth = self.plan.rate.filter(|_| self.plan.burst == 0).map(|rate| rate.scaled(1.1));
        let paced = positive(params.fqrate).map(BitRate::from_bps).or(smooth);
        if let Some(rate) = paced.filter(|_| sending) {
            let _ = host::socket::set_max_pacing_rate(socket, rate);
        }
        if first {
            *self.notes = notes;
        }
    }
}

/// Sets a client's congestion control, if the kernel has it already: setting
/// any other as root would load a kernel module of the client's choice (tcp(7)).
fn set_congestion(socket: &Socket, name: &str) -> Result<(), CongestionError> {
    let available = tcp_info::available_congestion();
    if !available.split_whitespace().any(|known| known == name) {
        return Err(CongestionError::Unknown { name: name.to_owned(), available });
    }
    tcp_info::set_congestion(socket, name)
}

/// Deadlines for a session's streams.
struct Deadlines {
    wanted: usize,
    handshake: Duration,
    /// For all streams.
    whole: Instant,
    /// For the next stream.
    until: Instant,
}

impl Deadlines {
    fn renew(&mut self) {
        self.until = (clock::now() + self.handshake).min(self.whole);
    }
}
