//! A UDT connection in native mode that carries a session.

use super::Session;
use super::pump::Pump;
use crate::CopyError;
use crate::client::PathMtu;
use crate::protocol::message::Carrier;
use std::time::Duration;
use udt::{NativeConfig, NativeConnection};
use udt_socket::{NativeSocket, Next};
use units::Nanos;

/// How often the session is asked for more to send.
const POLL: Duration = Duration::from_millis(1);
/// How often the lost packets are counted.
const COUNT: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 256 << 10;
/// What an end that finished waits for the peer to acknowledge.
const LINGER: Duration = Duration::from_secs(3);

/// Carries the session until it ends. A server's handshake may have completed on a
/// connection that the client has given up, so it waits for the client to use it. `on_smaller`
/// learns once if the path does not carry packets of the usual size.
pub(crate) fn carry(
    socket: &mut NativeSocket,
    session: &Session,
    is_client: bool,
    on_smaller: &dyn Fn(PathMtu),
) {
    let mut pump = Pump::new(session, Carrier::Udt, is_client, true);
    let mut buffer = vec![0; READ_BYTES];
    let (mut done_since, mut counted_at) = (None, Nanos(0));
    let (mut is_mtu_known, is_ipv4) = (false, socket.is_ipv4());
    let carried = socket.run(&mut |now: Nanos, connection: &mut NativeConnection| {
        loop {
            let pending = pump.pending();
            let written = if pending.is_empty() { 0 } else { connection.write(pending) };
            if written == 0 {
                break;
            }
            pump.advance(written);
        }
        while pump.has_room() {
            match connection.read(&mut buffer) {
                0 => break,
                length => pump.received(&buffer[..length]),
            }
        }
        if now.since(counted_at) >= COUNT {
            counted_at = now;
            let statistics = connection.statistics(now);
            let (sent, received) = (statistics.sent, statistics.received);
            let packets = sent.packets + received.packets + received.missing;
            session.data_path().count(packets, sent.lost + received.missing);
            if let Some((carries, drops)) = connection.smaller_packets()
                && drops <= carries + NativeConfig::MTU_PRECISION
                && !std::mem::replace(&mut is_mtu_known, true)
            {
                on_smaller(PathMtu::of_udp(carries, drops, !is_ipv4));
            }
        }
        if pump.has_failed() {
            connection.abort(udt::CloseReason::Local);
            return Next::Never;
        }
        if pump.is_done() && is_client && session.is_answered() {
            connection.abort(udt::CloseReason::Local);
            return Next::Never;
        }
        if pump.is_done() {
            connection.close();
            if now >= done_since.get_or_insert(now).plus(LINGER) {
                return Next::Never;
            }
        }
        Next::At(now.plus(POLL))
    });
    // It was over before the search.
    if let (Some((carries, drops)), false) = (socket.connection().smaller_packets(), is_mtu_known) {
        on_smaller(PathMtu::of_udp(carries, drops, !is_ipv4));
    }
    if let Err(error) = carried {
        session.fail(CopyError::Connection(error.to_string()));
    }
    match socket.connection().closed() {
        Some(udt::CloseReason::Peer | udt::CloseReason::Local) | None => {}
        Some(why) if !pump.is_done() => session.fail(CopyError::Connection(why.to_string())),
        Some(_) => {}
    }
    // What had no room before.
    loop {
        match socket.connection().read(&mut buffer) {
            0 => break,
            length => pump.received(&buffer[..length]),
        }
    }
    pump.ended();
}
