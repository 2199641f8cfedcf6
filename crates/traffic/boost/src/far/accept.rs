//! Connections of near boxes until they have proved their key: one thread for a listener.

use super::{FarConfig, NewLane};
use crate::address_share::{AddressShares, Full};
use crate::event::Event;
use crate::event_loop::{Ending, Inbox, Report};
use crate::far::targets::Job;
use crate::keys::{self, FarKeys, KeyId, PREAMBLE_BYTES};
use crate::mux;
use connection_limits::{
    Acceptor, Ended, HalfOpenLimits, Handshake, HandshakeCounts, HandshakeTicket,
};
use lane::{Carries, Preface};
use rustls::{Connection, ServerConnection};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connections that have proved nothing: about 20 KiB each where they know the ID of a key. A near
/// box connects 64 lanes for each of its threads at once.
const LIMITS: HalfOpenLimits =
    HalfOpenLimits { all: 1024, per_address: 512, timeout: Duration::from_secs(10) };
/// Interval at which the end of the box is noticed.
const POLL: Duration = Duration::from_millis(100);

/// Where lanes go.
pub(super) struct Sink<'a> {
    pub(super) config: &'a FarConfig,
    pub(super) inboxes: Vec<Inbox<Job>>,
    /// Where connections of sessions go.
    pub(super) sessions: Inbox<mux::far::Job>,
    pub(super) by_address: &'a AddressShares,
    pub(super) report: Report<'a>,
}

/// How far a connection has come.
enum Stage {
    /// Reads which key its peer has.
    Preamble,
    /// Proves the keys.
    Tls(Box<ServerConnection>),
    /// Without TLS.
    Plain,
}

struct Greeting<'a> {
    stream: TcpStream,
    peer: SocketAddr,
    keys: Option<&'a FarKeys>,
    stage: Stage,
    /// The preamble, then the preface.
    bytes: Vec<u8>,
    preface: Option<Preface>,
    key: Option<KeyId>,
    _ticket: HandshakeTicket<'a>,
}

impl Handshake for Greeting<'_> {
    type Outcome = Result<(), String>;

    fn connection(&self) -> &TcpStream {
        &self.stream
    }

    fn advance(&mut self) -> Option<Result<(), String>> {
        match self.try_advance() {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(why) => Some(Err(why)),
        }
    }

    fn is_waiting(&self) -> bool {
        matches!(&self.stage, Stage::Tls(tls) if tls.wants_write())
    }
}

impl Greeting<'_> {
    /// Whether the preface has arrived, from a peer with a known key.
    fn try_advance(&mut self) -> Result<bool, String> {
        if let Stage::Preamble = self.stage {
            if !self.read_plain(PREAMBLE_BYTES)? {
                return Ok(false);
            }
            let unknown = || "its key is unknown here: use the keys of one longhaul boost pair";
            let bytes = self.bytes.first_chunk().ok_or_else(unknown)?;
            let id = keys::parse_preamble(bytes).ok_or("it is not a near box with a key")?;
            let tls = self.keys.and_then(|keys| keys.server(&id)).ok_or_else(unknown)?;
            self.key = Some(id);
            self.stage = Stage::Tls(Box::new(tls.map_err(|error| error.to_string())?));
            self.bytes.clear();
        }
        let has_preface = match &mut self.stage {
            Stage::Tls(tls) => read_tls(tls, &self.stream, &mut self.bytes)?,
            Stage::Plain | Stage::Preamble => self.read_plain(Preface::BYTES)?,
        };
        if !has_preface {
            return Ok(false);
        }
        let preface = self.bytes.first_chunk().ok_or("it sent no preface")?;
        let preface = Preface::decode(*preface).map_err(|error| error.to_string())?;
        self.preface = Some(preface);
        Ok(true)
    }

    /// Reads up to a number of bytes, and no more. An error once they are another protocol.
    fn read_plain(&mut self, wanted: usize) -> Result<bool, String> {
        while self.bytes.len() < wanted {
            let mut buffer = [0; PREAMBLE_BYTES];
            let missing = wanted - self.bytes.len();
            match (&self.stream).read(buffer.split_at_mut(missing.min(PREAMBLE_BYTES)).0) {
                Ok(0) => return Err("it was closed before it proved its key".to_owned()),
                Ok(count) => {
                    self.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
                    self.check_protocol()?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(true)
    }

    /// The first eight bytes tell the protocol.
    fn check_protocol(&self) -> Result<(), String> {
        let Some(first) = self.bytes.first_chunk::<{ Preface::BYTES }>() else { return Ok(()) };
        let (is_plain, is_tls) =
            (Preface::decode(*first).is_ok(), keys::begins_preamble(&self.bytes));
        match (&self.stage, is_plain, is_tls) {
            (Stage::Preamble, true, _) => {
                Err("the near box has no key: give it the one that longhaul boost pair made for it"
                    .to_owned())
            }
            (Stage::Plain, _, true) => {
                Err("the near box has a key, and this one is started without any".to_owned())
            }
            (Stage::Preamble, _, false) => Err("it is not a near box of longhaul boost".to_owned()),
            _ => Ok(()),
        }
    }
}

fn read_tls(
    tls: &mut ServerConnection,
    stream: &TcpStream,
    preface: &mut Vec<u8>,
) -> Result<bool, String> {
    let mut stream = stream;
    loop {
        while tls.wants_write() {
            match tls.write_tls(&mut stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut buffer = [0; Preface::BYTES];
        let missing = Preface::BYTES - preface.len().min(Preface::BYTES);
        if let Ok(count) = tls.reader().read(buffer.split_at_mut(missing).0) {
            preface.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if preface.len() >= Preface::BYTES {
                return Ok(true);
            }
        }
        match tls.read_tls(&mut stream) {
            Ok(0) => return Err("it was closed before it proved its key".to_owned()),
            Ok(_) => {
                let processed = tls.process_new_packets();
                // The alert that says why.
                let _ = tls.write_tls(&mut stream);
                processed.map_err(|error| format!("it did not prove its key: {error}"))?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Accepts until the box ends.
pub(super) fn accept(listener: &TcpListener, sink: &Sink<'_>, ending: Ending<'_>) {
    let counts = HandshakeCounts::default();
    let keys = sink.config.keys.as_ref();
    let begin = |stream, peer, ticket| {
        let stage = if keys.is_some() { Stage::Preamble } else { Stage::Plain };
        Greeting {
            stream,
            peer,
            keys,
            stage,
            bytes: Vec::new(),
            preface: None,
            key: None,
            _ticket: ticket,
        }
    };
    let _ = listener.set_nonblocking(true);
    let Ok(mut acceptor) = Acceptor::new(listener, &counts, LIMITS, begin) else { return };
    let mut next = 0;
    let refused = |peer, why: String| (sink.report)(Event::LaneRefused { peer, why });
    let mut ended = |ended: Ended<Greeting<'_>>| match ended {
        Ended::Complete(_, own, Ok(())) => {
            let share = match sink.by_address.take(own.peer.ip()) {
                Ok(share) => share,
                Err(Full::Limit) => return refused(own.peer, "too many lanes".to_owned()),
                Err(Full::Share) => {
                    return refused(own.peer, "too many lanes of this address".to_owned());
                }
            };
            let tls = match own.stage {
                Stage::Tls(tls) => Some(Box::new(Connection::Server(*tls))),
                Stage::Plain | Stage::Preamble => None,
            };
            let Some(preface) = own.preface else { return };
            let Greeting { stream, peer, key, .. } = own;
            let lane = NewLane { stream, peer, tls, preface, key, share };
            match preface.carries {
                Carries::ManyFlows => sink.sessions.put(mux::far::Job::Link(lane)),
                Carries::OneFlow => {
                    let inbox = sink.inboxes.get(next % sink.inboxes.len().max(1));
                    next = next.wrapping_add(1);
                    if let Some(inbox) = inbox {
                        inbox.put(Job::Lane(lane));
                    }
                }
            }
        }
        Ended::Complete(_, own, Err(why)) => refused(own.peer, why),
        Ended::TimedOut(own) => refused(own.peer, "it did not prove its key in time".to_owned()),
        Ended::Evicted(own) => {
            refused(own.peer, "too many connections without a proven key".to_owned());
        }
    };
    while !ending.stop.is_raised() && !ending.drain.is_raised() {
        if acceptor.step(POLL, &mut ended).is_err() {
            std::thread::sleep(POLL);
        }
    }
}
