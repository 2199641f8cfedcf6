//! Gathering a client's streams, and giving each what was asked of it.

use super::{
    accept::{Arrival, Hall},
    door,
};
use crate::{ProbeError, control::Control, extra::Who, flow::Flow, plan::Plan, socket};
use host::{clock, tcp_info};
use iperf3::{Params, State, datagram};
use record::Protocol;
use socket2::Socket;
use std::{
    collections::HashSet,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};
use units::{BitRate, ByteCount};

/// Longest all streams together may take to arrive: 128 over a round trip of 600 ms.
const ALL_STREAMS: Duration = Duration::from_secs(120);
/// How often the client's connection is looked at while its streams are awaited.
const LOOK: Duration = Duration::from_millis(50);
/// How long a session may wait for others of its client's address that open
/// UDP streams: clients wait 30 s for their turn.
const TURN: Duration = Duration::from_secs(25);

/// A session that waits for its client's streams.
pub(super) struct Gathering<'a> {
    pub(super) hall: &'a Hall<'a>,
    pub(super) control: &'a mut Control,
    pub(super) params: &'a Params,
    pub(super) plan: &'a Plan,
    pub(super) notes: &'a mut Vec<String>,
}

impl Gathering<'_> {
    /// Tells the client to open its streams, and waits for them.
    pub(super) fn run(mut self, arrivals: &Receiver<Arrival>) -> Result<Vec<Flow>, ProbeError> {
        let each = self.params.streams();
        let both = self.params.bidirectional;
        let wanted = if both { 2 * each } else { each };
        let sockets = match self.plan.protocol {
            Protocol::Tcp => self.connections(arrivals, wanted)?,
            Protocol::Udp => self.datagrams(wanted)?,
        };
        let address = self.control.address();
        let mut flows = Vec::new();
        for (index, socket) in (0..).zip(sockets) {
            // In both directions at once, the client's own come first.
            let sending = if both { index >= each } else { self.params.reverse };
            self.prepare(&socket, sending, index == 0);
            let flow = Flow::new(iperf3::stream_id(index), sending, self.plan, socket);
            flows.push(flow.map_err(|source| ProbeError::System {
                operation: "set up a stream",
                address,
                source,
            })?);
        }
        Ok(flows)
    }

    fn connections(
        &mut self,
        arrivals: &Receiver<Arrival>,
        wanted: u32,
    ) -> Result<Vec<Socket>, ProbeError> {
        self.control.say(State::CreateStreams)?;
        let mut patience = self.patience(wanted);
        let mut arrived: Vec<Arrival> = Vec::new();
        while arrived.len() < patience.wanted {
            if let Some(stream) = self.next(arrivals, &patience, arrived.len())? {
                arrived.push(stream);
                patience.renew();
            }
        }
        arrived.sort_by_key(|(arrival, _)| *arrival);
        Ok(arrived.into_iter().map(|(_, stream)| stream.into()).collect())
    }

    fn datagrams(&mut self, wanted: u32) -> Result<Vec<Socket>, ProbeError> {
        let (peer, local) = (self.control.address(), self.control.local());
        let until = clock::now() + TURN;
        let turn = self.hall.door.turn(peer.ip(), wanted as usize, until);
        let turn =
            turn.ok_or(ProbeError::StreamsMissing { address: peer, arrived: 0, asked: wanted })?;
        self.control.say(State::CreateStreams)?;
        let mut patience = self.patience(wanted);
        let (mut sockets, mut known) = (Vec::new(), HashSet::new());
        while sockets.len() < patience.wanted {
            let Some(from) = self.next(turn.greetings(), &patience, sockets.len())? else {
                continue;
            };
            if !known.insert(from) {
                continue;
            }
            let socket = door::open(local, from)?;
            // Before the answer, which lets the client go on.
            if self.plan.coalesce {
                let _ = host::udp::coalesce(&socket);
            }
            let _ = socket.send(&datagram::ANSWER);
            sockets.push(socket);
            patience.renew();
        }
        Ok(sockets)
    }

    fn patience(&self, wanted: u32) -> Patience {
        let handshake = self.hall.config.limits.handshake;
        let now = clock::now();
        Patience {
            wanted: wanted as usize,
            handshake,
            whole: now + ALL_STREAMS,
            until: now + handshake,
        }
    }

    /// The next to arrive, or nothing for a while.
    fn next<T>(
        &mut self,
        arrivals: &Receiver<T>,
        patience: &Patience,
        arrived: usize,
    ) -> Result<Option<T>, ProbeError> {
        match arrivals.recv_timeout(LOOK) {
            Ok(stream) => Ok(Some(stream)),
            Err(RecvTimeoutError::Timeout) => {
                // The client has nothing to say now, unless it gives up.
                self.control.poll(clock::now())?;
                if self.hall.stop.is_raised() {
                    return Err(ProbeError::Interrupted);
                }
                if clock::now() >= patience.until {
                    return Err(ProbeError::StreamsMissing {
                        address: self.control.address(),
                        arrived,
                        asked: u32::try_from(patience.wanted).unwrap_or(u32::MAX),
                    });
                }
                Ok(None)
            }
            Err(RecvTimeoutError::Disconnected) => Err(ProbeError::Interrupted),
        }
    }

    /// Gives a stream what the client asked for; what the kernel refuses is
    /// noted, as it is with iperf3, and the test goes on without.
    fn prepare(&mut self, socket: &Socket, sending: bool, first: bool) {
        let (params, peer) = (self.params, self.control.address());
        let mut notes = Vec::new();
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        if let Some(window) = positive(params.window).map(ByteCount::from_bytes)
            && socket::set_window(socket, window).is_ok()
        {
            notes.extend(socket::clamp_note(socket, window, sending, Who::Server));
        }
        if let Some(tos) = u8::try_from(params.tos).ok().filter(|tos| *tos > 0) {
            let _ = socket::set_tos(socket, peer, tos);
        }
        if self.plan.protocol == Protocol::Udp {
            if params.dont_fragment {
                let _ = host::socket::set_dont_fragment(socket, peer.is_ipv6(), true);
            }
        } else {
            if let Some(name) = params.congestion.as_ref().filter(|_| sending)
                && let Err(error) = tcp_info::set_congestion(socket, name)
            {
                notes.push(format!("on the server: {error}"));
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

/// How long streams are awaited.
struct Patience {
    wanted: usize,
    handshake: Duration,
    /// For all of them.
    whole: Instant,
    /// For the next one.
    until: Instant,
}

impl Patience {
    fn renew(&mut self) {
        self.until = (clock::now() + self.handshake).min(self.whole);
    }
}
