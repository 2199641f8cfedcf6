//! The idle path's round trip, by echoes the kernel of the far host answers.

use crate::{LabError, certificate};
use host::clock;
use host::netns::NetNs;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use topology::PathSpec;
use units::ByteCount;

/// How many echoes, and how far apart: an odd number has a middle one.
#[derive(Clone, Copy)]
struct Echoes {
    count: u16,
    apart: Duration,
}

const ONE_LINK: Echoes = Echoes { count: 21, apart: Duration::from_millis(2) };

/// Where many links are measured at once, they must not wait for each other.
const MANY_LINKS: Echoes = Echoes { count: 5, apart: Duration::from_millis(20) };

/// Longest wait for the last answer beside the path's own round trip.
const PATIENCE: Duration = Duration::from_millis(250);

/// Length of one echo as an IP packet: headers of 20 and 8 bytes, 8 of payload.
const LENGTH: u64 = 36;

/// Median round trip over the answers, without serialisation; `None` where
/// none came back (a path can lose them all, or take longer than is worth waiting).
pub(crate) fn measure(
    from: &NetNs,
    to: Ipv4Addr,
    path: &PathSpec,
    many: bool,
) -> Result<Option<Duration>, LabError> {
    let echoes = if many { MANY_LINKS } else { ONE_LINK };
    let size = ByteCount::from_bytes(LENGTH + u64::from(path.overhead()));
    let serialisation: Duration = path
        .ways()
        .into_iter()
        .filter_map(|way| Some(certificate::constant_rate(way)?.time_for(size)))
        .sum();
    // On a path so slow that echoes queue behind each other they tell nothing.
    if serialisation > echoes.apart || path.rtt().duration() > Duration::from_secs(5) {
        return Ok(None);
    }
    let mut times = from
        .run(|| echo(to, path.rtt().duration() + PATIENCE, echoes))
        .and_then(|times| times)
        .map_err(LabError::system("measuring the idle path"))?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map(|time| time.saturating_sub(serialisation)))
}

fn echo(to: Ipv4Addr, patience: Duration, Echoes { count, apart }: Echoes) -> io::Result<Vec<Duration>> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    let start = clock::now();
    let mut sent: Vec<Instant> = Vec::new();
    let mut times = Vec::new();
    let mut buffer = [0; 64];
    loop {
        let now = clock::now();
        if sent.len() < usize::from(count)
            && now.duration_since(start) >= apart * u32::try_from(sent.len()).unwrap_or(0)
        {
            let sequence = u16::try_from(sent.len()).unwrap_or(0).to_be_bytes();
            // Type 8, code 0; the kernel fills in checksum and identifier (RFC 792, icmp(7)).
            socket.send(&[8, 0, 0, 0, 0, 0, sequence[0], sequence[1], 0, 0, 0, 0, 0, 0, 0, 0])?;
            sent.push(now);
            continue;
        }
        let all_sent = sent.len() == usize::from(count);
        let until = if all_sent { start + apart * count.into() + patience } else { now + apart };
        let left = until.saturating_duration_since(now);
        if times.len() == usize::from(count) || left.is_zero() {
            return Ok(times);
        }
        socket.set_read_timeout(Some(left))?;
        match (&socket).read(&mut buffer) {
            Ok(length) if length >= 8 => {
                let sequence = usize::from(u16::from_be_bytes([buffer[6], buffer[7]]));
                times.extend(sent.get(sequence).map(|sent| clock::now().duration_since(*sent)));
            }
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error),
        }
    }
}
