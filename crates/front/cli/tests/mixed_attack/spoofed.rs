//! Datagrams with a forged source, and the host whose address it is.

use crate::addresses;
use crate::schedule::Stop;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{SocketAddr, UdpSocket};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// The victim's port.
const VICTIM_PORT: u16 = 7000;

/// Counts the bytes that reach the victim.
pub(crate) fn watch<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope Stop,
) -> ScopedJoinHandle<'scope, usize> {
    let socket = UdpSocket::bind((addresses::VICTIM, VICTIM_PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    scope.spawn(move || {
        let (mut bytes, mut buffer) = (0, vec![0; 65_536]);
        while !stop.is_raised() {
            bytes += socket.recv(&mut buffer).unwrap_or(0);
        }
        bytes
    })
}

/// Sends datagrams in the victim's name, one a turn: greetings of every version,
/// headers of iperf 2's that ask for traffic, and garbage.
pub(crate) fn sender<'a>() -> Box<dyn FnMut(u32) -> bool + Send + 'a> {
    // IPPROTO_RAW: the IP header is ours to write (raw(7)).
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
    let to = SocketAddr::from((addresses::SERVER, addresses::PORT));
    let mut amplifier = [&[0, 0, 0, 1][..], &[0; 12]].concat();
    for word in [0x8801_0001u32, 1, 5001, 65_507, 0, u32::MAX] {
        amplifier.extend(word.to_be_bytes());
    }
    let noise: Vec<u8> = (0..=255).cycle().take(1400).collect();
    let (new, old) = (b"9876".to_vec(), vec![0x15, 0xcd, 0x5b, 0x07]);
    let payloads = [new, old, amplifier, noise, Vec::new()];
    Box::new(move |turn| {
        let payload = &payloads[usize::try_from(turn).unwrap() % payloads.len()];
        // Every other one has a source port of its own, as from many flows.
        let own = 1024 + u16::try_from(turn % 60_000).unwrap();
        let port = if turn % 2 == 0 { VICTIM_PORT } else { own };
        socket.send_to(&packet(port, payload), &to.into()).is_ok()
    })
}

/// An IPv4 packet of the victim's (RFC 791, RFC 768). The kernel fills in the
/// header's checksum; UDP's may be zero.
fn packet(port: u16, payload: &[u8]) -> Vec<u8> {
    let udp = u16::try_from(8 + payload.len()).unwrap();
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(addresses::VICTIM.octets());
    packet.extend(addresses::SERVER.octets());
    for word in [port, addresses::PORT, udp, 0] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    packet
}
