//! The peer's address. Where an authentic packet comes from another one, that is validated
//! before anything else is sent there (RFC 9000 section 8.2).

use crate::cookie::PeerAddress;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use units::Nanos;

/// A challenge is repeated after this time, ns, and this often.
const REPEAT_NS: u64 = 250_000_000;
const MAX_CHALLENGES: u32 = 12;
/// Bytes sent to an address that is not validated, for each that came from it.
const AMPLIFICATION: u64 = 3;

/// Where the peer is.
#[derive(Debug)]
pub(crate) struct Path {
    address: PeerAddress,
    candidate: Option<Candidate>,
    secret: [u8; 32],
    challenges: u64,
}

/// An address that is being validated.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    address: PeerAddress,
    challenge: u64,
    received: u64,
    sent: u64,
    sends: u32,
    next: Nanos,
}

impl Path {
    pub(crate) const fn new(address: PeerAddress, secret: [u8; 32]) -> Self {
        Path { address, candidate: None, secret, challenges: 0 }
    }

    /// The validated address.
    pub(crate) const fn address(&self) -> PeerAddress {
        self.address
    }

    /// An authentic packet came; `is_newest` if it has the largest number, so that it is no
    /// late one from the address before.
    pub(crate) fn on_packet(
        &mut self,
        now: Nanos,
        from: PeerAddress,
        bytes: usize,
        is_newest: bool,
    ) {
        if from == self.address {
            if is_newest {
                self.candidate = None;
            }
            return;
        }
        let challenge = match &mut self.candidate {
            Some(candidate) if candidate.address == from => {
                candidate.received += bytes as u64;
                return;
            }
            _ if !is_newest => return,
            _ => self.challenge(),
        };
        let received = bytes as u64;
        let candidate =
            Candidate { address: from, challenge, received, sent: 0, sends: 0, next: now };
        self.candidate = Some(candidate);
    }

    /// A number that nobody else can guess.
    fn challenge(&mut self) -> u64 {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# The endpoint MUST use unpredictable data in every PATH_CHALLENGE frame so that it
        //# can associate the peer's response with the corresponding PATH_CHALLENGE.
        self.challenges += 1;
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return 0 };
        mac.update(b"path challenge");
        mac.update(&self.challenges.to_be_bytes());
        mac.finalize().into_bytes().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
    }

    /// The peer returned a challenge from that address. True if it has moved there.
    pub(crate) fn on_response(&mut self, from: PeerAddress, response: u64) -> bool {
        let moved = self
            .candidate
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.3
            //# Path validation succeeds when a PATH_RESPONSE frame is received that contains
            //# the data that was sent in a previous PATH_CHALLENGE frame.
            .is_some_and(|moving| moving.address == from && moving.challenge == response);
        if moved {
            self.address = from;
            self.candidate = None;
        }
        moved
    }

    /// A challenge that is due, and where to; a packet with it has `bytes`.
    pub(crate) fn poll(&mut self, now: Nanos, bytes: usize) -> Option<(PeerAddress, u64)> {
        let candidate = self.candidate.as_mut()?;
        if candidate.sends >= MAX_CHALLENGES {
            self.candidate = None;
            return None;
        }
        let bytes = bytes as u64;
        if now < candidate.next || candidate.sent + bytes > AMPLIFICATION * candidate.received {
            return None;
        }
        candidate.sent += bytes;
        candidate.sends += 1;
        candidate.next = now.plus_nanos(REPEAT_NS);
        Some((candidate.address, candidate.challenge))
    }

    /// When a challenge is due.
    pub(crate) fn next_timeout(&self, bytes: usize) -> Option<Nanos> {
        let candidate = self.candidate.as_ref()?;
        let may_send = candidate.sent + bytes as u64 <= AMPLIFICATION * candidate.received;
        may_send.then_some(candidate.next)
    }
}
