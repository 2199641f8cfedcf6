//! MPTCP connections (RFC 8684): which streams are subflows of the same one.
//!
//! The first subflow exchanges the keys of both ends (MP_CAPABLE, section 3.1); the SYN of a further
//! one has the token of the end that receives it (MP_JOIN, section 3.2), the first 32 bits of a hash
//! of that end's key: SHA-256, in version 0 SHA-1.

use capture::dissect::TcpSegment;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

const KIND: u8 = 30;
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;

/// Connections and subflows that are kept.
const MAX_CONNECTIONS: usize = 1 << 14;
const MAX_SUBFLOWS: usize = 1 << 16;

/// A subflow's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subflow {
    /// The number of the MPTCP connection, in the order of appearance, from 0.
    pub connection: u32,
    /// Whether it joined the connection, instead of beginning it.
    pub is_joined: bool,
}

/// The MPTCP connections of a capture.
#[derive(Debug, Default)]
pub struct MptcpConnections {
    /// The connection of a token.
    tokens: HashMap<u32, u32>,
    subflows: HashMap<u32, Subflow>,
    connections: u32,
}

impl MptcpConnections {
    /// Looks at a segment of the stream with this number.
    #[inline]
    pub fn add(&mut self, stream: u32, segment: &TcpSegment<'_>) {
        // Keys and tokens are in the handshake; the third packet may repeat the keys with data.
        if segment.option_bytes().contains(&KIND) {
            self.look(stream, segment);
        }
    }

    fn look(&mut self, stream: u32, segment: &TcpSegment<'_>) {
        for option in segment.each_option().filter(|option| option.kind == KIND) {
            match option.data {
                [first, _, rest @ ..] if first >> 4 == MP_CAPABLE => {
                    self.capable(stream, first & 0x0f, rest);
                }
                [first, _, a, b, c, d, ..]
                    if first >> 4 == MP_JOIN && segment.flags.is_first_syn() =>
                {
                    self.join(stream, u32::from_be_bytes([*a, *b, *c, *d]));
                }
                _ => {}
            }
        }
    }

    /// The keys of an MP_CAPABLE option: in version 1 none, that of the sender or both.
    fn capable(&mut self, stream: u32, version: u8, keys: &[u8]) {
        let Some(connection) = self.subflow(stream, false, None) else { return };
        // What follows the keys is the length of the data.
        for key in keys.as_chunks::<8>().0.iter().take(2) {
            self.name(token(version, key), connection);
        }
    }

    fn join(&mut self, stream: u32, token: u32) {
        let known = self.tokens.get(&token).copied();
        if let Some(connection) = self.subflow(stream, true, known) {
            self.name(token, connection);
        }
    }

    fn name(&mut self, token: u32, connection: u32) {
        if self.tokens.len() < 2 * MAX_CONNECTIONS {
            self.tokens.entry(token).or_insert(connection);
        }
    }

    /// The connection of a stream, a new one unless it is known.
    fn subflow(&mut self, stream: u32, is_joined: bool, known: Option<u32>) -> Option<u32> {
        if let Some(subflow) = self.subflows.get(&stream) {
            return Some(subflow.connection);
        }
        let has_room = self.subflows.len() < MAX_SUBFLOWS
            && (known.is_some() || (self.connections as usize) < MAX_CONNECTIONS);
        if !has_room {
            return None;
        }
        let connection = known.unwrap_or(self.connections);
        self.connections = self.connections.max(connection + 1);
        self.subflows.insert(stream, Subflow { connection, is_joined });
        Some(connection)
    }

    /// What a stream is of a connection; `None` where it has no MPTCP.
    #[must_use]
    pub fn of(&self, stream: u32) -> Option<Subflow> {
        self.subflows.get(&stream).copied()
    }

    /// The streams of each connection, in order.
    #[must_use]
    pub fn connections(&self) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); self.connections as usize];
        for (stream, subflow) in &self.subflows {
            if let Some(streams) = all.get_mut(subflow.connection as usize) {
                streams.push(*stream);
            }
        }
        all.iter_mut().for_each(|streams| streams.sort_unstable());
        all
    }
}

fn token(version: u8, key: &[u8; 8]) -> u32 {
    let first = |hash: &[u8]| hash.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    if version == 0 { first(&sha1::Sha1::digest(key)) } else { first(&Sha256::digest(key)) }
}
