//! Datagrams of a UDT peer, and of anyone who can send to a server. An input is a sequence of
//! datagrams, each after its length in two bytes.

use control::{Algorithm, UdtRules};
use udt::{
    Config, Connection, Control, Identity, Incoming, Listener, NativeConfig, NativeConnection,
    Packet, PeerAddress, Sequence,
};
use units::Nanos;

const PEER: PeerAddress = PeerAddress { address: [1; 16], port: 9, zone: 0 };
const STEP_NS: u64 = 7_000_000;
/// Bytes that each datagram may make the other end send.
const MAX: usize = 64 * 1_500;

fn sequence_of(mut input: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        let (length, rest) = input.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len()).min(1_500);
        let (datagram, rest) = rest.split_at(length);
        input = rest;
        Some(datagram.to_vec())
    })
}

/// What the peer of an open connection sends; every packet names the connection.
pub(crate) fn datagrams(input: &[u8]) {
    let Some(mut connection) = accepted() else { return };
    connection.write(&[7; 20_000]);
    let (mut now, mut out, mut buffer) = (Nanos(0), Vec::new(), [0; 4_096]);
    for mut datagram in sequence_of(input).take(256) {
        if let Some(destination) = datagram.get_mut(12..16) {
            destination.copy_from_slice(&connection.socket_id().to_be_bytes());
        }
        connection.receive(now, now, [&datagram[..]]);
        let mut sent = 0;
        while connection.poll_transmit(now, 64, &mut out).is_some() && sent < MAX {
            sent += out.len();
        }
        while connection.read(&mut buffer) > 0 {}
        now = now.plus_nanos(STEP_NS);
        connection.on_timeout(now);
        let _ = (connection.next_timeout(), connection.statistics(now));
    }
}

fn accepted() -> Option<Connection> {
    let config = |id| Config::new(id, Sequence::new(0), Algorithm::Udt(UdtRules::Udt));
    let mut client = Connection::client(Nanos(0), config(1));
    let mut listener = Listener::new([1; 32], 1);
    let mut out = Vec::new();
    for _ in 0..2 {
        client.poll_transmit(Nanos(0), 1, &mut out)?;
        let Ok(Packet::Control(_, Control::Handshake(asked))) = Packet::parse(&out) else {
            return None;
        };
        match listener.on_handshake(Nanos(0), &PEER, &asked, &config(2)) {
            Incoming::Reply(answer) => client.receive(Nanos(0), Nanos(0), [&answer[..]]),
            Incoming::Accept(_, connection) => return Some(*connection),
            Incoming::Ignore => return None,
        }
    }
    None
}

/// What anyone sends to a server in native mode.
pub(crate) fn native_datagrams(input: &[u8]) {
    let Ok(identity) = Identity::new(&[1; 32]) else { return };
    let client = identity.public_key();
    let config = NativeConfig {
        packet_bytes: NativeConfig::IPV4_PACKET_BYTES,
        max_buffer: 64,
        algorithm: Algorithm::Bbr3,
        secret: [2; 32],
    };
    let mut server = NativeConnection::server(Nanos(0), config, identity, client);
    let (mut now, mut out) = (Nanos(0), Vec::new());
    for datagram in sequence_of(input).take(256) {
        server.receive(now, now, PEER, [&datagram[..]]);
        while server.poll_transmit(now, 1, &mut out).is_some() {}
        now = now.plus_nanos(STEP_NS);
        server.on_timeout(now);
        assert!(!server.is_established(), "nobody has the key");
    }
}
