//! Idle RTT of a path, measured with ICMP echo.

use crate::{LabError, validity};
use host::netns::NetNs;
use host::{clock, wait};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};
use topology::PathSpec;
use units::ByteCount;

/// Number and spacing of the echoes: an odd number has a middle one.
#[derive(Clone, Copy)]
struct Echoes {
    count: u16,
    apart: Duration,
    /// Busy-wait before a reply is expected: the delay of a wake-up would be
    /// measured as part of the path.
    busy_wait: Duration,
}

const SINGLE_LINK: Echoes =
    Echoes { count: 21, apart: Duration::from_millis(2), busy_wait: Duration::from_millis(1) };

/// With many links measured at once, they must not delay each other.
const MANY_LINKS: Echoes =
    Echoes { count: 5, apart: Duration::from_millis(20), busy_wait: Duration::ZERO };

impl Echoes {
    /// Of one link among as many as are measured at once. As many busy-waiting
    /// real-time threads as cores would keep the emulator off all of them and delay
    /// every reply by their wait.
    fn new(many: bool) -> Self {
        let echoes = if many { MANY_LINKS } else { SINGLE_LINK };
        match thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => echoes,
            _ => Echoes { busy_wait: Duration::ZERO, ..echoes },
        }
    }
}

/// Poll interval for a late reply.
const LATE_POLL: Duration = Duration::from_micros(50);

/// Timeout for the last reply, in addition to the RTT of the path.
const ECHO_TIMEOUT: Duration = Duration::from_millis(250);

/// Length of one echo as an IP packet: headers of 20 and 8 bytes, 8 of payload.
const LENGTH: u64 = 36;

/// Median RTT without serialisation; `None` without a reply (the path may lose all
/// of them) or on a path too slow to measure.
pub(crate) fn measure(
    from: &NetNs,
    to: Ipv4Addr,
    path: &PathSpec,
    many: bool,
) -> Result<Option<Duration>, LabError> {
    let echoes = Echoes::new(many);
    let size = ByteCount::from_bytes(LENGTH + u64::from(path.overhead()));
    let serialisation: Duration = path
        .directions()
        .into_iter()
        .filter_map(|direction| Some(validity::constant_rate(direction)?.time_for(size)))
        .sum();
    // On a path so slow that echoes queue behind each other, the RTT is not idle.
    if serialisation > echoes.apart || path.rtt().duration() > Duration::from_secs(5) {
        return Ok(None);
    }
    let mut times = from
        .run(|| echo(to, path.rtt().duration(), ECHO_TIMEOUT, echoes))
        .and_then(|times| times)
        .map_err(LabError::system("measuring the idle RTT"))?;
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map(|time| time.saturating_sub(serialisation)))
}

fn echo(
    to: Ipv4Addr,
    path: Duration,
    timeout: Duration,
    Echoes { count, apart, busy_wait }: Echoes,
) -> io::Result<Vec<Duration>> {
    // Without real-time priority the figure is that of an ordinary program.
    let _ = wait::raise_priority();
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    socket.connect(&SockAddr::from(SocketAddr::from((to, 0))))?;
    socket.set_nonblocking(true)?;
    let start = clock::now();
    let mut sent: Vec<Instant> = Vec::new();
    let mut received = vec![None; usize::from(count)];
    let mut buffer = [0; 64];
    loop {
        let now = clock::now();
        let next = sent.len();
        let next_at = start + apart * u32::try_from(next).unwrap_or(0);
        if next < received.len() && now >= next_at {
            let sequence = u16::try_from(next).unwrap_or(0).to_be_bytes();
            // Type 8, code 0; the kernel fills in checksum and identifier (RFC 792, icmp(7)).
            socket.send(&[8, 0, 0, 0, 0, 0, sequence[0], sequence[1], 0, 0, 0, 0, 0, 0, 0, 0])?;
            sent.push(now);
            continue;
        }
        match (&socket).read(&mut buffer) {
            Ok(length) if length >= 8 => {
                let sequence = usize::from(u16::from_be_bytes([buffer[6], buffer[7]]));
                if let (Some(received), Some(sent)) =
                    (received.get_mut(sequence), sent.get(sequence))
                {
                    received.get_or_insert(sent.elapsed());
                }
                continue;
            }
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let missing = sent.iter().zip(&received).find(|(_, received)| received.is_none());
        let expected = missing.map(|(sent, _)| *sent + path);
        if next == received.len() && expected.is_none_or(|at| now > at + timeout) {
            return Ok(received.into_iter().flatten().collect());
        }
        let upcoming = [expected, (next < received.len()).then_some(next_at)];
        let first = upcoming.into_iter().flatten().min().unwrap_or(now);
        match first.checked_duration_since(now) {
            Some(left) if left > busy_wait * 2 => thread::sleep(left - busy_wait),
            // Already late: a short sleep does not matter.
            None if now.duration_since(first) >= busy_wait => thread::sleep(LATE_POLL),
            _ => std::hint::spin_loop(),
        }
    }
}
