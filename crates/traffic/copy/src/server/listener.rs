//! TCP connections of clients: a preamble says which key a client has, then TLS proves it.

use super::handshake::{self, Named, POLL, Pass, ProofCounts, Proofs};
use super::session::{Prepared, Root};
use super::{Event, Slots};
use crate::CopyError;
use crate::client::segments;
use crate::hello::{self, ClientHello, MAX_LINE, ServerHello, ServerRefusal, key_id};
use crate::progress::Progress;
use crate::protocol::message::Request;
use crate::sockets;
use crate::transport::Session;
use crate::transport::tls::Tls;
use host::lock::lock;
use host::stop::StopFlag;
use pinned_tls::{Identity, PublicKey};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Instant;

/// TCP connections of one copy.
const MAX_LANES: usize = 64;

/// The purpose of a connection with a known key.
#[derive(Clone)]
pub(super) enum Purpose {
    /// It asks for a copy.
    Bootstrap,
    /// It carries one.
    Lane(Arc<Session>, Arc<Slots>),
}

/// A key that clients may show.
#[derive(Clone)]
pub(super) struct Known {
    identity: Identity,
    client: PublicKey,
    pub(super) purpose: Purpose,
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

    pub(super) fn find(&self, id: &[u8; 32]) -> Option<Known> {
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
    let counts = ProofCounts::default();
    let proofs = Proofs::new(&counts);
    std::thread::scope(|scope| {
        let named = |named| {
            // Without a thread the connection is closed.
            let _ = Builder::new().spawn_scoped(scope, move || {
                let Named { connection, known, until, pass, .. } = named;
                let Ok(tls) = prove(connection, &known, until) else { return };
                carry(known, tls, until, Some(pass));
            });
        };
        handshake::accept(listener, lanes, &proofs, || done.is_raised(), named, |_, _| {});
    });
}

/// Completes TLS with whoever has the key that the preamble named.
fn prove(connection: TcpStream, known: &Known, until: Instant) -> Result<Tls, CopyError> {
    let mut tls = Tls::server(connection, &known.identity, known.client)?;
    tls.handshake(until)?;
    Ok(tls)
}

/// Carries a copy over one more connection.
fn carry(known: Known, mut tls: Tls, until: Instant, pass: Option<Pass<'_, '_>>) {
    let Purpose::Lane(session, slots) = known.purpose else { return };
    let Some(_slot) = slots.take(MAX_LANES) else { return };
    let Ok(mut kind) = tls.receive_line(segments::MAX_TRIAL, until) else { return };
    if segments::is_trial(&kind) {
        let answer = segments::trial_line(&tls);
        if tls.send_line(&answer, until).is_err() {
            return;
        }
        let Ok(joins) = tls.receive_line(MAX_LINE, until) else { return };
        kind = joins;
    }
    drop(pass);
    tls.carry(&session, kind == crate::client::CONTROL_LANE);
}

/// Settings of a server.
#[derive(Debug)]
pub struct CopyServerConfig {
    /// Address to listen on, whose port is not used; `None`: all.
    pub bind: Option<SocketAddr>,
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
    bind: Option<SocketAddr>,
    max_copies: usize,
    copies: Slots,
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
                "a token for copies needs at least 16 characters, or anyone who sees a handshake \
                 can guess it; make one with openssl rand -hex 16"
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
        let counts = ProofCounts::default();
        let proofs = Proofs::new(&counts);
        std::thread::scope(|scope| {
            let is_over = || stop.is_raised() || drain.is_raised();
            let refused = |from, reason| report(Event::Refused { from, reason });
            let named = |named| {
                let Named { from, .. } = named;
                let serve = move || self.serve_connection(named, stop, report);
                if let Err(error) = Builder::new().spawn_scoped(scope, serve) {
                    refused(from, format!("no thread: {error}"));
                }
            };
            handshake::accept(&self.listener, &self.lanes, &proofs, is_over, named, refused);
        });
    }

    fn serve_connection(
        &self,
        named: Named<'_, '_>,
        stop: &StopFlag,
        report: &(dyn Fn(Event) + Sync),
    ) {
        let Named { connection, from, known, until, pass } = named;
        let mut pass = Some(pass);
        let result = prove(connection, &known, until).and_then(|tls| {
            self.serve_proven((known, tls, from), until, &mut pass, (stop, report))
        });
        if let Err(error) = result {
            let reason = pass.map_or_else(|| error.to_string(), |pass| pass.reason(&error));
            report(Event::Refused { from, reason });
        }
    }

    /// Serves a client with a key. It keeps its place among those that have proved none until
    /// its copy, or the one that it carries, is known.
    fn serve_proven(
        &self,
        (known, mut tls, from): (Known, Tls, SocketAddr),
        until: Instant,
        pass: &mut Option<Pass<'_, '_>>,
        (stop, report): (&StopFlag, &(dyn Fn(Event) + Sync)),
    ) -> Result<(), CopyError> {
        if let Purpose::Lane(..) = known.purpose {
            carry(known, tls, until, pass.take());
            return Ok(());
        }
        let hello = hello::read::<ClientHello>(&tls.receive_line(MAX_LINE, until)?)?;
        let Some(_slot) = self.copies.take(self.max_copies) else {
            let reason = "the server is busy with other copies; try again later";
            tls.send_line(&hello::write(&ServerRefusal::new(reason))?, until)?;
            return Err(CopyError::Local("too many copies".into()));
        };
        drop(pass.take());
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
