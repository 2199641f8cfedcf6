//! A session at this box: its connections, and the flows of its streams.

use crate::address_share::ShareTicket;
use crate::keys::KeyId;
use mux::{Reassembly, Session, SessionId, StreamId};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

/// A session at this box.
pub(crate) struct Live {
    pub(super) session: Session,
    pub(super) id: SessionId,
    /// The near box that it is of; `None`: plaintext.
    pub(super) key: Option<KeyId>,
    pub(super) peer: SocketAddr,
    /// Far: counts it for the address of near that began it.
    pub(super) share: Option<ShareTicket>,
    pub(super) links: Vec<usize>,
    /// Index of the connection that gets the next bytes.
    pub(super) turn: usize,
    /// Bytes that have arrived before earlier ones.
    pub(super) held: Reassembly,
    pub(super) last_ping: Instant,
    /// Since when it has no connection.
    pub(super) unlinked: Option<Instant>,
    pub(super) streams: HashMap<StreamId, usize>,
    /// This box offers compressed blocks, or both do once far has answered.
    pub(super) compresses: bool,
    /// A compressed block that has not arrived as a whole: at most 64 KiB.
    pub(super) block: Vec<u8>,
    /// Flows whose socket or peer has news: each delivers what it holds, then is in `queue`.
    pub(super) woken: Vec<usize>,
    /// Flows that may have something to send.
    pub(super) queue: VecDeque<usize>,
}

impl Live {
    pub(super) fn new(
        session: Session,
        id: SessionId,
        key: Option<KeyId>,
        peer: SocketAddr,
        now: Instant,
    ) -> Self {
        Live {
            session,
            id,
            key,
            peer,
            share: None,
            links: Vec::new(),
            turn: 0,
            held: Reassembly::default(),
            last_ping: now,
            unlinked: Some(now),
            streams: HashMap::new(),
            compresses: false,
            block: Vec::new(),
            woken: Vec::new(),
            queue: VecDeque::new(),
        }
    }
}
