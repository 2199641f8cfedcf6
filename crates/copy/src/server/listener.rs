//! TCP connections of clients: a preamble says which key a client has, then TLS proves it.

use super::session::{Prepared, Root};
use super::{Event, Slots};
use crate::CopyError;
use crate::hello::{
    self, ClientHello, MAX_LINE, PREAMBLE_BYTES, ServerHello, ServerRefusal, key_id, parse_preamble,
};
use crate::progress::Progress;
use crate::sockets;
use crate::transport::Session;
use crate::transport::tls::Tls;
use copy_proto::message::Request;
use host::address_key::AddressKey;
use host::lock::lock;
use host::stop::StopFlag;
use host::{clock, wait};
use pinned_tls::{Identity, PublicKey};
use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// What a client may take for its preamble, and for everything before a copy begins.
const PREAMBLE: Duration = Duration::from_secs(3);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How often a stop is noticed.
const POLL: Duration = Duration::from_millis(100);
/// Connections that have not shown a key yet: of all clients, and of one address.
const MAX_UNKNOWN: usize = 128;
const MAX_UNKNOWN_PER_ADDRESS: usize = 16;
/// TCP connections of one copy.
const MAX_LANES: usize = 64;

/// What a connection with a known key is for.
#[derive(Clone)]
enum Purpose {
    /// It asks for a copy.
    Bootstrap,
    /// It carries one.
    Lane(Arc<Session>, Arc<Slots>),
}

/// A key that clients may show.
#[derive(Clone)]
struct Known {
    identity: Identity,
    client: PublicKey,
    purpose: Purpose,
}

/// The keys that clients may show, by their IDs.
pub(super) struct Lanes(Mutex<HashMap<[u8; 32], Known>>);

/// A copy's key, until it is dropped.
pub(super) struct Lane<'a> {
    lanes: &'a Lanes,
    id: [u8; 32],
}

impl Lanes {
    /// Those of clients with one of the tokens.
    pub(super) fn new(tokens: Vec<String>) -> Result<Self, CopyError> {
        let mut known = HashMap::new();
        for token in tokens {
            let [client, identity] = hello::token_identities(&token)?;
            let client = client.public_key();
            known.insert(key_id(client), Known { identity, client, purpose: Purpose::Bootstrap });
        }
        Ok(Lanes(Mutex::new(known)))
    }

    /// Admits the TCP connections of a copy.
    pub(super) fn add(&self, client: PublicKey, prepared: &Prepared) -> Lane<'_> {
        let id = key_id(client);
        let purpose = Purpose::Lane(Arc::clone(&prepared.session), Arc::default());
        let known = Known { identity: prepared.identity.clone(), client, purpose };
        // A token's key is never replaced.
        lock(&self.0).entry(id).or_insert(known);
        Lane { lanes: self, id }
    }

    fn find(&self, id: &[u8; 32]) -> Option<Known> {
        lock(&self.0).get(id).cloned()
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        let mut known = lock(&self.lanes.0);
        if known.get(&self.id).is_some_and(|known| matches!(known.purpose, Purpose::Lane(..))) {
            known.remove(&self.id);
        }
    }
}

/// Accepts the TCP connections of one copy, and nothing else, until it is `done`.
pub(super) fn accept_lanes(listener: &TcpListener, lanes: &Lanes, done: &StopFlag) {
    let unknown = Unknown::default();
    std::thread::scope(|scope| {
        let is_done = || done.is_raised();
        accept(listener, is_done, |stream, from| {
            let Some(admitted) = unknown.admit(from) else { return };
            // Without a thread the connection is closed.
            let _ = Builder::new().spawn_scoped(scope, move || {
                let Ok((known, tls)) = identify(stream, lanes) else { return };
                carry(known, tls, admitted);
            });
        });
    });
}

fn accept(
    listener: &TcpListener,
    stop: impl Fn() -> bool,
    mut accepted: impl FnMut(TcpStream, SocketAddr),
) {
    let _ = listener.set_nonblocking(true);
    while !stop() {
        match listener.accept() {
            Ok((stream, from)) => accepted(stream, from),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let _ = wait::readable([listener.as_fd()], Some(POLL));
            }
            // The client is gone, or descriptors have run out for the moment.
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Connections that have not shown a key, by address.
#[derive(Default)]
struct Unknown(Mutex<HashMap<AddressKey, usize>>);

struct Admitted<'a> {
    unknown: &'a Unknown,
    key: AddressKey,
}

impl Unknown {
    fn admit(&self, from: SocketAddr) -> Option<Admitted<'_>> {
        let mut counts = lock(&self.0);
        let key = AddressKey::of(from.ip());
        let all: usize = counts.values().sum();
        let own = counts.get(&key).copied().unwrap_or(0);
        if all >= MAX_UNKNOWN || own >= MAX_UNKNOWN_PER_ADDRESS {
            return None;
        }
        counts.insert(key, own + 1);
        Some(Admitted { unknown: self, key })
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut counts = lock(&self.unknown.0);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

/// Reads the preamble, and completes TLS with whoever has the key it names.
fn identify(stream: TcpStream, lanes: &Lanes) -> Result<(Known, Tls), CopyError> {
    let began = clock::now();
    let preamble = read_preamble(&stream, began + PREAMBLE)?;
    let id = parse_preamble(&preamble)
        .ok_or_else(|| CopyError::Protocol("not a client of longhaul copy".into()))?;
    let known = lanes.find(&id).ok_or(CopyError::Authentication)?;
    let mut tls = Tls::server(stream, &known.identity, known.client)?;
    tls.handshake(began + HANDSHAKE)?;
    Ok((known, tls))
}

fn read_preamble(
    mut stream: &TcpStream,
    until: Instant,
) -> Result<[u8; PREAMBLE_BYTES], CopyError> {
    let (mut preamble, mut length) = ([0; PREAMBLE_BYTES], 0);
    stream.set_nonblocking(true).map_err(CopyError::socket)?;
    while length < PREAMBLE_BYTES {
        match stream.read(&mut preamble[length..]) {
            Ok(0) => return Err(CopyError::Connection("closed".into())),
            Ok(count) => length += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let left = until.saturating_duration_since(clock::now());
                if left.is_zero() {
                    return Err(CopyError::Connection("no preamble came".into()));
                }
                wait::ready(&stream, false, left).map_err(CopyError::socket)?;
            }
            Err(error) => return Err(CopyError::socket(error)),
        }
    }
    Ok(preamble)
}

/// Carries a copy over one more connection.
fn carry(known: Known, mut tls: Tls, admitted: Admitted<'_>) {
    let Purpose::Lane(session, slots) = known.purpose else { return };
    let Some(_slot) = slots.take(MAX_LANES) else { return };
    let until = clock::now() + HANDSHAKE;
    let Ok(kind) = tls.receive_line(MAX_LINE, until) else { return };
    drop(admitted);
    tls.carry(&session, kind == crate::client::CONTROL_LANE);
}

/// Settings of a server.
#[derive(Debug)]
pub struct CopyServerConfig {
    /// Address to listen on; `None`: all.
    pub bind: Option<IpAddr>,
    /// TCP port; each copy uses a UDP port of its own.
    pub port: u16,
    /// The files.
    pub root: Root,
    /// Who may: the clients with one of these.
    pub tokens: Vec<String>,
    /// Copies at a time.
    pub max_copies: usize,
}

/// A server for clients with tokens.
pub struct CopyServer {
    listener: TcpListener,
    lanes: Lanes,
    root: Root,
    bind: Option<IpAddr>,
    max_copies: usize,
    copies: Slots,
    unknown: Unknown,
}

impl CopyServer {
    /// Shortest token, bytes: 16 hexadecimal digits are 64 bits.
    pub const MIN_TOKEN: usize = 16;

    /// Listens.
    ///
    /// # Errors
    /// The port is in use, a token is too short, or the system gives no random numbers.
    pub fn bind(config: CopyServerConfig) -> Result<Self, CopyError> {
        // Without it there are fewer descriptors.
        let _ = host::limits::raise_open_files();
        host::random::check().map_err(|error| CopyError::Local(error.to_string()))?;
        if config.tokens.iter().any(|token| token.len() < CopyServer::MIN_TOKEN) {
            return Err(CopyError::Local(
                "a token for copies has 16 characters or more, or whoever sees a handshake can \
                 guess it; make one with openssl rand -hex 16"
                    .into(),
            ));
        }
        let listener = sockets::listener(config.bind, config.port).map_err(|error| {
            let port = config.port;
            CopyError::Local(format!("cannot listen on TCP port {port} for copies: {error}"))
        })?;
        Ok(CopyServer {
            listener,
            lanes: Lanes::new(config.tokens)?,
            root: config.root,
            bind: config.bind,
            max_copies: config.max_copies,
            copies: Slots::default(),
            unknown: Unknown::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system error.
    pub fn local_address(&self) -> Result<SocketAddr, CopyError> {
        self.listener.local_addr().map_err(CopyError::socket)
    }

    /// Serves clients until `stop`, which ends their copies; `drain` ends once they have
    /// ended.
    pub fn serve(&self, stop: &StopFlag, drain: &StopFlag, report: &(dyn Fn(Event) + Sync)) {
        std::thread::scope(|scope| {
            let is_over = || stop.is_raised() || drain.is_raised();
            accept(&self.listener, is_over, |stream, from| {
                let Some(admitted) = self.unknown.admit(from) else {
                    let reason = "too many connections without a key".into();
                    report(Event::Refused { from, reason });
                    return;
                };
                let serve = move || {
                    if let Err(error) = self.serve_connection(stream, from, admitted, stop, report)
                    {
                        report(Event::Refused { from, reason: error.to_string() });
                    }
                };
                if let Err(error) = Builder::new().spawn_scoped(scope, serve) {
                    let reason = format!("no thread: {error}");
                    report(Event::Refused { from, reason });
                }
            });
        });
    }

    fn serve_connection(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        admitted: Admitted<'_>,
        stop: &StopFlag,
        report: &(dyn Fn(Event) + Sync),
    ) -> Result<(), CopyError> {
        let (known, mut tls) = identify(stream, &self.lanes)?;
        if let Purpose::Lane(..) = known.purpose {
            carry(known, tls, admitted);
            return Ok(());
        }
        let until = clock::now() + HANDSHAKE;
        let hello = hello::read::<ClientHello>(&tls.receive_line(MAX_LINE, until)?)?;
        let Some(_slot) = self.copies.take(self.max_copies) else {
            let reason = "the server is busy with other copies; try again later";
            tls.send_line(&hello::write(&ServerRefusal::new(reason))?, until)?;
            return Err(CopyError::Local("too many copies".into()));
        };
        drop(admitted);
        // Ends with the client's connection, or with the server.
        let copy_stop = StopFlag::new();
        let prepared = Prepared::new(&hello, self.bind, copy_stop.clone())?;
        let _lane = self.lanes.add(prepared.client, &prepared);
        let port = self.local_address()?.port();
        let answer = ServerHello::new(prepared.key(), prepared.udp_port(), port, None);
        tls.send_line(&hello::write(&answer)?, until)?;
        let (progress, done) = (Progress::default(), StopFlag::new());
        let began = |request: &Request| report(Event::Began { from, what: described(request) });
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.is_raised() {
                    if stop.is_raised() || tls.is_closed() {
                        copy_stop.raise();
                        return;
                    }
                    std::thread::sleep(POLL);
                }
            });
            let result = prepared.serve(&self.root, &progress, began);
            done.raise();
            result
        });
        let figures = progress.figures();
        report(Event::Ended { from, figures, error: result.err() });
        Ok(())
    }
}

fn described(request: &Request) -> String {
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    match request {
        Request::Receive { destination, .. } if destination.is_empty() => "receives".to_owned(),
        Request::Receive { destination, .. } => format!("receives into {}", text(destination)),
        Request::Send { sources, .. } => {
            let names: Vec<_> = sources.iter().take(3).map(|path| text(path)).collect();
            let more = if sources.len() > 3 { ", …" } else { "" };
            format!("sends {}{more}", names.join(", "))
        }
    }
}
