//! A server's UDP data in the reverse direction, within the budget of the client's
//! address.

use crate::context;
use crate::credit::Budget;
use crate::error::Iperf2Error;
use crate::event::Event;
use crate::flows::ReverseRequest;
use crate::meter::{Meter, Start};
use crate::server::Trust;
use crate::session::{ServerState, port};
use crate::sockets;
use crate::udp::{self, UdpPath};
use host::address::{beside, canonical, with_port};
use host::clock;
use iperf2_proto::{ClientHeader, Mode};
use problem::Field;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, Scope};
use std::time::Duration;

impl<'a, 'd> ServerState<'a, 'd>
where
    'a: 'd,
{
    /// Starts the reverse direction of a UDP stream, if permitted.
    pub(crate) fn reverse_udp<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        socket: &'s UdpSocket,
        request: ReverseRequest,
    ) {
        let (context, limits) = (self.context, &self.config.limits);
        let ReverseRequest { peer, asked, header, credit } = request;
        let trusted = match limits.trust {
            Trust::None => false,
            Trust::Loopback => peer.ip().to_canonical().is_loopback(),
            Trust::All => true,
        };
        if header.mode == Mode::Reverse && !trusted {
            context.peer_error(
                peer,
                &format!(
                    "refused -u -R: source addresses can be forged; permit it with {}, or run \
                     both directions at once",
                    Field::TrustUdp
                ),
            );
            return;
        }
        let budget = match trusted {
            true => Budget::Unlimited,
            false => Budget::Received { flow: credit, idle: limits.idle_timeout },
        };
        let slot = match self.slots.take(peer.ip()) {
            Ok(slot) => slot,
            Err(full) => {
                context.peer_error(peer, &full);
                return;
            }
        };
        let work = move || {
            let _slot = slot;
            if let Err(error) = self.send_reverse(socket, (peer, asked), &header, &budget) {
                context.peer_error(peer, &error);
            }
        };
        if let Err(error) = context::spawn(scope, work) {
            context.peer_error(peer, &format!("cannot start a thread: {error}"));
        }
    }

    fn send_reverse(
        &self,
        socket: &UdpSocket,
        (peer, asked): (SocketAddr, Option<IpAddr>),
        header: &ClientHeader,
        budget: &Budget,
    ) -> Result<(), Iperf2Error> {
        let context = self.context;
        let mut plan = self.plan(header, true);
        if header.length == 0 && canonical(peer).is_ipv4() {
            plan.length = iperf2_proto::DEFAULT_DATAGRAM_V4;
        }
        let failed = |source| Iperf2Error::Aborted { peer: canonical(peer), source };
        let mode = header.mode;
        // With -R the server's direction is the only one.
        let label = context.label(mode != Mode::Reverse);
        if matches!(mode, Mode::Reverse | Mode::FullDuplex) {
            let local = canonical(socket.local_addr().map_err(failed)?);
            let local = match asked {
                Some(asked) => beside(asked, local.port(), peer),
                None => sockets::local_towards(local, peer),
            };
            let ends = (local, canonical(peer));
            let begun = clock::now();
            let start = Start { label, ends, mode, tcp: None, connecting: None, begun };
            let meter = Meter::start(context, start, begun);
            let path = UdpPath::To(socket, peer, asked);
            return udp::send(context, &path, &plan, None, budget, meter).map(drop).map_err(failed);
        }
        let peer = with_port(canonical(peer), port(header)?);
        // The client accepts the reverse stream from the server's address only.
        let server = canonical(socket.local_addr().map_err(failed)?);
        let server = asked.map_or(server, |asked| beside(asked, 0, peer));
        let bind = (!server.ip().is_unspecified()).then(|| with_port(server, 0));
        let socket = sockets::connect_udp(peer, bind, &self.config.options)?;
        let buffer = sockets::buffer(&socket, true);
        let connecting = Some(Event::Connecting { peer, buffer });
        let local = socket.local_addr().map_err(failed)?;
        // On one machine the client may not have opened its socket yet.
        thread::sleep(Duration::from_millis(1));
        let begun = clock::now();
        let (ends, mode) = ((local, peer), Mode::Reverse);
        let start = Start { label, ends, mode, tcp: None, connecting, begun };
        let meter = Meter::start(context, start, begun);
        let stream = (meter.label(), meter.ends());
        let path = UdpPath::Connected(&socket);
        let sent = udp::send(context, &path, &plan, None, budget, meter).map_err(failed)?;
        if !sent.ended {
            // Without a last datagram there is no report.
            return Ok(());
        }
        let stream = sent.reported.then_some(stream);
        udp::await_report(context, &socket, &plan, None, budget, sent.number, stream)
            .map_err(failed)
    }
}
