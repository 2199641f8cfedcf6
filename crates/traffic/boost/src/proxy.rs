//! The ingress of `--proxy`: SOCKS5 and HTTP CONNECT at one listener.

use crate::ingress::{Accepted, Ingress, MAX_NEGOTIATION, Negotiation, Next, Step};
use lane::Refusal;
use socks::Handshake;
pub use socks::Token;

// A head is refused by name before near stops reading it.
const _: () = assert!(socks::MAX_HEAD < MAX_NEGOTIATION);

/// A proxy, which asks for a token if it has one.
#[derive(Debug, Clone, Default)]
pub struct Proxy {
    /// The password of SOCKS5 or of HTTP's basic authentication.
    pub token: Option<Token>,
}

impl Ingress for Proxy {
    fn begin(&self, _accepted: Accepted) -> Box<dyn Negotiation> {
        Box::new(ProxyNegotiation(Handshake::new(self.token.clone())))
    }
}

struct ProxyNegotiation(Handshake);

impl Negotiation for ProxyNegotiation {
    fn advance(&mut self, input: &[u8]) -> Step {
        let mut reply = Vec::new();
        match self.0.advance(input, &mut reply) {
            Ok(progress) => {
                let next = progress.target.map_or(Next::Read, Next::Open);
                Step { used: progress.used, reply, next }
            }
            // Without an answer, nobody is there who understands one.
            Err(denial) if reply.is_empty() => {
                Step { used: 0, reply, next: Next::Reset(denial.to_string()) }
            }
            Err(denial) => Step { used: input.len(), reply, next: Next::Close(denial.to_string()) },
        }
    }

    fn opened(&mut self) -> Vec<u8> {
        self.0.protocol().map(socks::Protocol::accepted).unwrap_or_default()
    }

    fn refused(&mut self, reason: Refusal) -> Option<Vec<u8>> {
        self.0.protocol().map(|protocol| protocol.refused(reason))
    }
}
