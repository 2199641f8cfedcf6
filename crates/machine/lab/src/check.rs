//! Saturates a link to check its emulation.

use crate::{Lab, LabError, LabHost};
use host::{clock, udp};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use units::BitRate;

/// The discard service's port (RFC 863); its socket is never read.
const DISCARD: u16 = 9;

/// Headers of an IPv4 datagram.
const HEADERS: u32 = 28;

/// Offered load relative to the link rate: above 1, so that the link stays busy.
const OVERLOAD: f64 = 1.1;

/// Offered load of an unlimited link: within the capacity of two cores.
const UNLIMITED: BitRate = BitRate::from_bps(5_000_000_000);

/// Serialisation time of one write.
const WRITE: Duration = Duration::from_millis(1);

/// Sleep of the sender between writes.
const NAP: Duration = Duration::from_micros(500);

/// Saturates the first link with UDP, first up and then down, each for that time;
/// the report has the result. `stop` ends it early.
///
/// # Errors
/// If a socket cannot be created.
pub fn fill(lab: &Lab, each: Duration, stop: &dyn Fn() -> bool) -> Result<(), LabError> {
    lab.begin();
    let (client, server) = (lab.client(), lab.server());
    let [up, down] = lab.path().directions().map(|direction| direction.rate().unwrap_or(UNLIMITED));
    for (from, to, rate) in [(client, server, up), (server, client, down)] {
        fill_direction(from, to, rate, lab.path().mtu(), each, stop)?;
    }
    // Packets in flight still arrive.
    std::thread::sleep(lab.path().rtt().duration());
    Ok(())
}

fn fill_direction(
    from: &LabHost,
    to: &LabHost,
    rate: BitRate,
    mtu: u32,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(), LabError> {
    let entering = LabError::system("entering a network namespace");
    let sending = LabError::system("saturating the link");
    let any = Ipv4Addr::UNSPECIFIED;
    let sink = to.namespace.run(|| UdpSocket::bind((any, DISCARD))).map_err(&entering)?;
    let sink = sink.map_err(&sending)?;
    // Without UDP GRO the kernel splits trains, at a higher cost.
    let _ = udp::coalesce(&sink);
    let target = SocketAddr::from((to.ipv4, DISCARD));
    let socket = from.namespace.run(|| UdpSocket::bind((any, 0))).map_err(entering)?;
    socket
        .and_then(|socket| {
            socket.connect(target)?;
            send(&socket, rate, mtu, time, stop)
        })
        .map_err(sending)
}

fn send(
    socket: &UdpSocket,
    rate: BitRate,
    mtu: u32,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let offered = rate.scaled(OVERLOAD);
    let payload = mtu.saturating_sub(HEADERS);
    let packets = offered.bytes_in(WRITE).bytes() / u64::from(mtu);
    // One write stays below 64 KiB.
    let most = usize::try_from(65_507 / payload.max(1)).unwrap_or(1).min(udp::MAX_SEGMENTS);
    let segments = usize::try_from(packets).unwrap_or(most).clamp(1, most.max(1));
    let payload = usize::try_from(payload).unwrap_or_default();
    let bytes = vec![0; payload * segments];
    if segments > 1 {
        udp::segment(socket, u16::try_from(payload).unwrap_or(u16::MAX))?;
    }
    let (start, mut sent) = (clock::now(), 0);
    while start.elapsed() < time && !stop() {
        let due = offered.bytes_in(start.elapsed()).bytes();
        while sent < due && start.elapsed() < time && !stop() {
            match socket.send(&bytes) {
                Ok(_) => sent += u64::from(mtu) * segments as u64,
                // The device or the socket is full: the link is busy.
                Err(error) if udp::is_full(&error) => break,
                Err(error) => return Err(error),
            }
        }
        std::thread::sleep(NAP);
    }
    Ok(())
}
