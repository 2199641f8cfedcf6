//! The idle path's round trip, by echoes the kernel of the far host answers.

use crate::{LabError, certificate};
use host::netns::NetNs;
use host::{clock, wait};
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
        .run(|| echo(to, path.rtt().duration(), PATIENCE, echoes))
        .and_then(|times| times)
        .map_err(LabError::system("measuring the idle path"))?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map(|time| time.saturating_sub(serialisation)))
}

/// How long before an answer is expected it is waited for awake: a sleeper
/// wakes late, and it is the path that is measured here, not the waking.
const AWAKE: Duration = Duration::from_millis(1);

fn echo(
    to: Ipv4Addr,
    path: Duration,
    patience: Duration,
    Echoes { count, apart }: Echoes,
) -> io::Result<Vec<Duration>> {
    // Who measures must not wait for who else runs; without the privilege the
    // figure is what an ordinary program would see.
    let _ = wait::raise_priority();
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    socket.set_nonblocking(true)?;
    let start = clock::now();
    let mut sent: Vec<Instant> = Vec::new();
    let mut came = vec![None; usize::from(count)];
    let mut buffer = [0; 64];
    loop {
        let now = clock::now();
        let next = sent.len();
        let next_at = start + apart * u32::try_from(next).unwrap_or(0);
        if next < came.len() && now >= next_at {
            let sequence = u16::try_from(next).unwrap_or(0).to_be_bytes();
            // Type 8, code 0; the kernel fills in checksum and identifier (RFC 792, icmp(7)).
            socket.send(&[8, 0, 0, 0, 0, 0, sequence[0], sequence[1], 0, 0, 0, 0, 0, 0, 0, 0])?;
            sent.push(now);
            continue;
        }
        match (&socket).read(&mut buffer) {
            Ok(length) if length >= 8 => {
                let sequence = usize::from(u16::from_be_bytes([buffer[6], buffer[7]]));
                if let (Some(came), Some(sent)) = (came.get_mut(sequence), sent.get(sequence)) {
                    came.get_or_insert(sent.elapsed());
                }
                continue;
            }
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let missing = sent.iter().zip(&came).find(|(_, came)| came.is_none());
        let expected = missing.map(|(sent, _)| *sent + path);
        if next == came.len() && expected.is_none_or(|at| now > at + patience) {
            return Ok(came.into_iter().flatten().collect());
        }
        let upcoming = [expected, (next < came.len()).then_some(next_at)];
        let first = upcoming.into_iter().flatten().min().unwrap_or(now);
        match first.checked_duration_since(now) {
            Some(left) if left > AWAKE * 2 => std::thread::sleep(left - AWAKE),
            // It is so late that a little more does not matter.
            None if now.duration_since(first) > AWAKE => std::thread::sleep(AWAKE / 20),
            _ => std::hint::spin_loop(),
        }
    }
}
