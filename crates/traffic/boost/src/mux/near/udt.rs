//! UDT as what carries near's session.

use super::NearSide;
use crate::event::Event;
use crate::lane_socket::LaneSocket;
use crate::mux::engine::Engine;
use crate::mux::link::Link;
use crate::mux::udt_carrier::Keys;
use ::mux::UdtOffer;
use host::address::with_port;
use pinned_tls::PublicKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// After UDP did not reach far, it is tried again after so long.
const UDT_PAUSE: Duration = Duration::from_secs(600);

impl NearSide<'_> {
    /// Replaces the connection that has greeted by one over UDT; the number of that.
    pub(super) fn change_to_udt(
        &mut self,
        greeted: usize,
        offer: UdtOffer,
        engine: &mut Engine,
    ) -> Result<usize, String> {
        let (identity, algorithm) = self
            .udt_identity
            .take()
            .zip(self.config.udt)
            .ok_or("it offers UDT, for which it was not asked")?;
        let keys = Keys { identity, peer: PublicKey::from_bytes(offer.key), algorithm };
        let now = engine.now;
        let link = engine.links.get(greeted).ok_or("the connection has ended")?;
        let far = with_port(link.peer, offer.port);
        let stream = engine.carriers.connect(far, keys).map_err(|error| error.to_string())?;
        let socket = LaneSocket::accepted(stream, None, Arc::clone(self.counters));
        let carrying = Link::carrying(socket, link, now);
        let id = engine.add_link(carrying, self).ok_or("the system cannot watch its socket")?;
        engine.close_link(greeted, "UDT carries the session", self);
        Ok(id)
    }

    /// UDP does not reach far: TCP carries the session, from where it is.
    pub(super) fn udt_blocked(&mut self, far: SocketAddr, why: &str, engine: &Engine) {
        self.udt_at = engine.now + UDT_PAUSE;
        (self.report)(Event::UdtBlocked { far, why: why.to_owned() });
    }
}
