//! A lower bound on the time of a transfer over a TCP connection of its own.
//!
//! ```text
//!   T(0) = RTT
//!   T(N) = (k + 1/2) RTT,   k = ceil(log2(N / IW + 1))     windows of slow start that hold N bytes
//!
//!   0      SYN
//!   1      SYN/ACK arrives; IW bytes leave
//!   2      they are acknowledged; 2 IW leave
//!   …
//!   k      the k-th window leaves: (2^k - 1) IW bytes in all
//!   k+1/2  its last byte arrives
//! ```
//!
//! It is a lower bound as no window leaves before the one ahead of it is acknowledged, windows at most
//! double each RTT (RFC 5681, section 3.1; also in BBR's startup), and nothing here takes time but the
//! path: no serialisation, queue, loss, pause of an application, or receive window. Bytes of the server
//! leave half an RTT later, once the handshake is complete at its end (RFC 9293, section 3.5), so the
//! bound holds for them too. It assumes IW = 10 segments of 1448 bytes (RFC 6928, with timestamps in a
//! path MTU of 1500), and no data in the SYN (RFC 7413).

use crate::ramp::{INITIAL_WINDOW_SEGMENTS, slow_start};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

const MSS: ByteCount = ByteCount::from_bytes(1448);

/// Least time from SYN until the last of `size` bytes has arrived; with the goodput of a direct
/// transfer, at least `RTT + size / goodput`. `None` for an RTT of zero.
#[must_use]
pub fn least_transfer_time(
    size: ByteCount,
    rtt: Rtt,
    goodput: Option<BitRate>,
) -> Option<Duration> {
    // (2^k - 1) IW >= N is 2^k IW >= N + IW.
    let window = size.plus(MSS.times(INITIAL_WINDOW_SEGMENTS));
    let windows = slow_start(window, MSS, rtt)?.rounds;
    let rtt = rtt.duration();
    let of_windows = if windows == 0 { rtt } else { rtt.checked_mul(windows)? + rtt / 2 };
    let of_goodput = goodput.map_or(Duration::ZERO, |rate| rtt.saturating_add(rate.time_for(size)));
    Some(of_windows.max(of_goodput))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(bytes: u64, goodput: Option<&str>) -> Duration {
        let goodput = goodput.map(|rate| rate.parse().unwrap());
        least_transfer_time(ByteCount::from_bytes(bytes), "173ms".parse().unwrap(), goodput)
            .unwrap()
    }

    #[test]
    fn windows_of_slow_start_take_a_round_trip_each() {
        for (bytes, micros) in [
            (0, 173_000),
            (1, 259_500),
            (14_480, 259_500),
            (14_481, 432_500),
            (3 * 14_480, 432_500),
            (3 * 14_480 + 1, 605_500),
            (1_000_000, 1_297_500),
        ] {
            assert_eq!(least(bytes, None), Duration::from_micros(micros), "{bytes}");
        }
        assert_eq!(least_transfer_time(ByteCount::ZERO, Rtt::ZERO, None), None);
    }

    #[test]
    fn a_goodput_counts_where_it_takes_longer() {
        // 8 Mbit at 3.03 Mbit/s are 2.64 s.
        let slow = least(1_000_000, Some("3.03mbit"));
        assert!((slow.as_secs_f64() - (0.173 + 8.0 / 3.03)).abs() < 1e-6, "{slow:?}");
        assert_eq!(least(1_000_000, Some("1gbit")), least(1_000_000, None));
        assert_eq!(least(0, Some("1kbit")), Duration::from_millis(173));
    }

    /// Time at which the last byte arrives of a sender that sends whatever its window allows at once.
    fn simulated(bytes: u64, rtt_ms: u64) -> u64 {
        let (mut cwnd, mut sent, mut acknowledged) = (14_480, 0, 0);
        // When segments are acknowledged, and their bytes.
        let mut flight = std::collections::VecDeque::new();
        let (mut now, mut arrived) = (rtt_ms, 0);
        loop {
            while sent < bytes && sent - acknowledged < cwnd {
                let segment = (bytes - sent).min(1448).min(cwnd - (sent - acknowledged));
                sent += segment;
                flight.push_back((now + rtt_ms, segment));
                arrived = now + rtt_ms / 2;
            }
            let Some((at, segment)) = flight.pop_front() else { return arrived };
            (now, cwnd, acknowledged) = (at, cwnd + segment, acknowledged + segment);
        }
    }

    #[test]
    fn a_sender_that_nothing_slows_down_takes_as_long() {
        for bytes in [1, 1448, 14_480, 14_481, 50_000, 101_360, 101_361, 1_000_000, 30_000_000] {
            let (size, rtt) = (ByteCount::from_bytes(bytes), "100ms".parse().unwrap());
            let bound = least_transfer_time(size, rtt, None).unwrap();
            assert_eq!(bound, Duration::from_millis(simulated(bytes, 100)), "{bytes}");
        }
    }
}
