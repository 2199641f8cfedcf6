//! Native mode over sockets: a server whose socket is not connected, and a client whose
//! address changes during the transfer, as behind a NAT that forgets it.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use control::Algorithm;
use host::clock;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use udt::{CloseReason, Identity, NativeConfig, NativeConnection};
use udt_socket::{Driver, Next, peer_address};
use units::Nanos;

const TOTAL: usize = 20_000_000;
const MOVES_AFTER: usize = 5_000_000;
const DEADLINE: Duration = Duration::from_secs(60);

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

fn identity(seed: u8) -> Identity {
    Identity::new(&[seed; 32]).unwrap()
}

fn config(secret: u8) -> NativeConfig {
    NativeConfig {
        packet_bytes: NativeConfig::IPV4_PACKET_BYTES,
        max_buffer: 65_536,
        algorithm: Algorithm::Bbr3,
        secret: [secret; 32],
    }
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Passes datagrams between a client and a server, after a while from another socket.
fn relay(front: &UdpSocket, server: SocketAddr, done: &AtomicBool) -> [u16; 2] {
    let mut back = socket();
    let first = back.local_addr().unwrap().port();
    let (mut client, mut passed, mut buffer) = (None, 0, [0; 2_000]);
    front.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    back.set_nonblocking(true).unwrap();
    while !done.load(Ordering::Relaxed) {
        if let Ok((length, from)) = front.recv_from(&mut buffer) {
            client = Some(from);
            let before = passed;
            passed += length;
            if before < MOVES_AFTER && passed >= MOVES_AFTER {
                back = socket();
                back.set_nonblocking(true).unwrap();
            }
            let _ = back.send_to(&buffer[..length], server);
        }
        while let (Ok(length), Some(client)) = (back.recv(&mut buffer), client) {
            let _ = front.send_to(&buffer[..length], client);
        }
    }
    [first, back.local_addr().unwrap().port()]
}

/// Receives all, and gives the port of the peer at the end.
fn serve(socket: UdpSocket) -> io::Result<u16> {
    let mut driver = Driver::new(socket)?;
    let mut connection =
        NativeConnection::server(driver.now(), config(1), identity(2), identity(1).public_key());
    let (mut received, mut buffer, mut port) = (0, vec![0; 1 << 16], 0);
    let until = driver.now().plus(DEADLINE);
    driver.run(&mut connection, &mut |now: Nanos, connection: &mut NativeConnection| {
        loop {
            let count = connection.read(&mut buffer);
            for (offset, found) in buffer[..count].iter().enumerate() {
                assert_eq!(*found, byte(received + offset), "at {}", received + offset);
            }
            received += count;
            if count == 0 {
                break;
            }
        }
        port = connection.peer_address().map_or(port, |peer| peer.port);
        if now > until { Next::Never } else { Next::At(until) }
    })?;
    assert_eq!((received, connection.closed()), (TOTAL, Some(CloseReason::Peer)));
    Ok(port)
}

fn send(server: SocketAddr) -> io::Result<()> {
    let socket = socket();
    socket.connect(server)?;
    let mut driver = Driver::new(socket)?;
    let (own, peer) = (identity(1), identity(2).public_key());
    let mut connection =
        NativeConnection::client(driver.now(), config(2), peer_address(server), &own, peer)
            .unwrap();
    let all: Vec<u8> = (0..TOTAL).map(byte).collect();
    let mut written = 0;
    let until = driver.now().plus(DEADLINE);
    driver.run(&mut connection, &mut |now: Nanos, connection: &mut NativeConnection| {
        written += connection.write(&all[written..]);
        if written == TOTAL {
            connection.close();
        }
        if now > until { Next::Never } else { Next::At(until) }
    })?;
    assert_eq!((written, connection.closed()), (TOTAL, Some(CloseReason::Local)));
    Ok(())
}

#[test]
fn a_transfer_goes_on_where_the_address_changes() {
    let (front, back) = (socket(), socket());
    let (client_peer, server) = (front.local_addr().unwrap(), back.local_addr().unwrap());
    let done = AtomicBool::new(false);
    let began = clock::now();
    thread::scope(|scope| {
        let relayed = scope.spawn(|| relay(&front, server, &done));
        let served = scope.spawn(move || serve(back));
        send(client_peer).unwrap();
        let port = served.join().unwrap().unwrap();
        done.store(true, Ordering::Relaxed);
        let [first, second] = relayed.join().unwrap();
        assert!(first != second && port == second, "{first}, {second}: {port}");
    });
    assert!(clock::now() - began < DEADLINE);
}
