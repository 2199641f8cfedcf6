//! Idle RTT of a path, measured with ICMP echo.

use crate::LabError;
use host::netns::NetNs;
use host::{clock, wait};
use link::Rate;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};
use topology::{PathDirection, PathSpec};
use units::{BitRate, ByteCount};

/// An idle RTT, without serialisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdleRtt {
    pub(crate) rtt: Duration,
    /// Where the delay varies: `rtt` is then the mean of the echoes, otherwise their median.
    pub(crate) standard_error: Option<Duration>,
}

/// Number and spacing of the echoes: an odd number has a middle one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Echoes {
    count: u16,
    apart: Duration,
    /// Busy-wait before a reply is expected: the delay of a wake-up would be
    /// measured as part of the path.
    busy_wait: Duration,
    /// Whether the delay varies from packet to packet.
    varies: bool,
}

const SINGLE_LINK: Echoes = Echoes {
    count: 21,
    apart: Duration::from_millis(2),
    busy_wait: Duration::from_millis(1),
    varies: false,
};

/// With many links measured at once, they must not delay each other.
const MANY_LINKS: Echoes =
    Echoes { count: 5, apart: Duration::from_millis(20), busy_wait: Duration::ZERO, varies: false };

/// Time for the echoes of a link whose delay varies, unless another is given.
const USUAL_TIME: Duration = Duration::from_millis(600);

/// Spacing of these echoes, in units of the jitter's scale. In order, a packet is delivered no
/// earlier than the one before it: echoes close to each other would all have the longest delay
/// of any. At this spacing that adds less than 1 % of the scale, of Pareto jitter 6 %.
const SCALES_APART: u32 = 6;

/// Number of these echoes, if there is time: at least, and at most.
const VARYING_COUNTS: (u32, u32) = (5, 201);

impl Echoes {
    /// Of one link among as many as are measured at once. As many busy-waiting
    /// real-time threads as cores would keep the emulator off all of them and delay
    /// every reply by their wait.
    ///
    /// `time` is the most for a link whose delay varies; `None` if it does not suffice.
    pub(crate) fn new(path: &PathSpec, many: bool, time: Option<Duration>) -> Option<Self> {
        let echoes = if many { MANY_LINKS } else { SINGLE_LINK };
        let directions = path.directions().map(PathDirection::config);
        if directions.iter().any(|config| config.jitter.is_some() || config.reorder.is_some()) {
            let jitters = directions.iter().filter_map(|config| config.jitter);
            let in_order = jitters.filter(|jitter| !jitter.overtake);
            let apart = in_order.map(|jitter| jitter.scale.saturating_mul(SCALES_APART)).max();
            let apart = apart.unwrap_or_default().max(echoes.apart);
            let (least, most) = VARYING_COUNTS;
            let fitting = time.unwrap_or(USUAL_TIME).as_nanos() / apart.as_nanos().max(1);
            let count = u16::try_from(fitting.min(u128::from(most))).ok()?;
            let busy_wait = Duration::ZERO;
            return (u32::from(count) >= least).then_some(Echoes {
                count,
                apart,
                busy_wait,
                varies: true,
            });
        }
        Some(match thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => echoes,
            _ => Echoes { busy_wait: Duration::ZERO, ..echoes },
        })
    }

    /// What the times of the echoes say; `None` without a reply.
    fn idle_rtt(&self, mut times: Vec<Duration>, serialisation: Duration) -> Option<IdleRtt> {
        if !self.varies {
            times.sort_unstable();
            let rtt = times.get(times.len() / 2)?.saturating_sub(serialisation);
            return Some(IdleRtt { rtt, standard_error: None });
        }
        let count = u32::try_from(times.len()).ok().filter(|count| *count > 1)?;
        let mean = times.iter().sum::<Duration>() / count;
        let squares = times.iter().map(|time| time.abs_diff(mean).as_secs_f64().powi(2));
        let variance = squares.sum::<f64>() / f64::from(count - 1);
        let error = (variance / f64::from(count)).sqrt();
        Some(IdleRtt {
            rtt: mean.saturating_sub(serialisation),
            standard_error: Duration::try_from_secs_f64(error).ok(),
        })
    }
}

/// Poll interval for a late reply.
const LATE_POLL: Duration = Duration::from_micros(50);

/// Timeout for the last reply, in addition to the RTT of the path.
const ECHO_TIMEOUT: Duration = Duration::from_millis(250);

/// Length of one echo as an IP packet: headers of 20 and 8 bytes, 8 of payload.
const LENGTH: u64 = 36;

/// RTT without serialisation; `None` without a reply (the path may lose all
/// of them), on a path too slow to measure, or without echoes.
pub(crate) fn measure(
    from: &NetNs,
    to: Ipv4Addr,
    path: &PathSpec,
    echoes: Option<Echoes>,
) -> Result<Option<IdleRtt>, LabError> {
    let Some(echoes) = echoes else { return Ok(None) };
    let size = ByteCount::from_bytes(LENGTH + u64::from(path.overhead()));
    let serialisation: Duration = path
        .directions()
        .into_iter()
        .filter_map(|direction| Some(constant_rate(direction)?.time_for(size)))
        .sum();
    // On a path so slow that echoes queue behind each other, the RTT is not idle.
    if serialisation > echoes.apart || path.mean_rtt() > Duration::from_secs(5) {
        return Ok(None);
    }
    // Where the delay varies, a reply may be early, and much later than expected.
    let (expected, timeout) = match echoes.varies {
        true => (Duration::ZERO, ECHO_TIMEOUT + path.mean_rtt() + echoes.apart * 2),
        false => (path.rtt().duration(), ECHO_TIMEOUT),
    };
    let times = from
        .run(|| echo(to, expected, timeout, echoes))
        .and_then(|times| times)
        .map_err(LabError::system("measuring the idle RTT"))?;
    Ok(echoes.idle_rtt(times, serialisation))
}

fn echo(
    to: Ipv4Addr,
    path: Duration,
    timeout: Duration,
    Echoes { count, apart, busy_wait, .. }: Echoes,
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
        let missing = sent.iter().zip(&received).filter(|(_, received)| received.is_none());
        let mut missing = missing.map(|(sent, _)| *sent + path);
        let expected = missing.next();
        // An echo that was lost must not end the wait for the last one.
        let last = missing.next_back().or(expected);
        if next == received.len() && last.is_none_or(|at| now > at + timeout) {
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

/// The rate, if it is constant.
pub(crate) fn constant_rate(direction: &PathDirection) -> Option<BitRate> {
    match direction.config().rate {
        Rate::Constant(rate) => Some(rate),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echoes(link: &str, time: Option<u64>) -> Option<Echoes> {
        Echoes::new(&link.parse().unwrap(), false, time.map(Duration::from_millis))
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn echoes_of_a_path_with_jitter_do_not_hold_each_other_up() {
        let jitter = echoes("rate=1gbit,rtt=40ms,jitter=5ms", None).unwrap();
        assert_eq!((jitter.varies, jitter.apart, jitter.count), (true, ms(30), 20));
        let down = echoes("rate=1gbit,rtt=40ms,down.jitter=exponential:5ms", Some(6000)).unwrap();
        assert_eq!((down.apart, down.count), (ms(30), 200));
        // They may overtake each other.
        let overtaking = echoes("rate=1gbit,rtt=40ms,jitter=5ms,overtake=yes", None).unwrap();
        assert_eq!((overtaking.apart, overtaking.count), (ms(2), 201));
        // Four do not suffice.
        assert_eq!(echoes("rate=1gbit,rtt=40ms,jitter=20ms", None).map(|some| some.count), Some(5));
        assert_eq!(echoes("rate=1gbit,rtt=40ms,jitter=21ms", None), None);
        assert!(!echoes("rate=1gbit,rtt=40ms", None).unwrap().varies);
    }

    #[test]
    fn a_varying_rtt_is_a_mean_and_any_other_a_median() {
        let times = || vec![ms(41), ms(45), ms(40), ms(90)];
        let jitter = echoes("rate=1gbit,rtt=40ms,jitter=5ms", None).unwrap();
        let mean = jitter.idle_rtt(times(), ms(1)).unwrap();
        // Deviations -13, -9, -14, 36: a variance of 1742 / 3, over 4 echoes.
        let error = mean.standard_error.unwrap().as_secs_f64() * 1e3;
        assert_eq!(mean.rtt, ms(53));
        assert!((error - (1742.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-6, "{error}");
        assert_eq!(jitter.idle_rtt(vec![ms(41)], ms(1)), None);
        let plain = echoes("rate=1gbit,rtt=40ms", None).unwrap();
        let median = IdleRtt { rtt: ms(44), standard_error: None };
        assert_eq!(plain.idle_rtt(times(), ms(1)), Some(median));
    }
}
