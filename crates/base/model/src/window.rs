//! Bandwidth-delay product, windows, and the socket buffers for them.

use units::{BitRate, ByteCount, Rtt};

/// Maximum window without the window scale option: RFC 9293's 16-bit field, rounded to
/// 64 KiB as is usual (its maximum is 65535).
pub const UNSCALED_WINDOW: ByteCount = ByteCount::from_bytes(1 << 16);

/// Maximum shift of the window scale option (RFC 7323, section 2.3).
pub const MAX_SHIFT: u8 = 14;

/// Maximum window that TCP can advertise: 65535 shifted by [`MAX_SHIFT`], one unit
/// below 1 GiB (RFC 7323, section 2.3).
pub const MAX_WINDOW: ByteCount = ByteCount::from_bytes(65_535 << MAX_SHIFT);

/// Share of a receive buffer that Linux advertises as window before the first
/// packets (`TCP_DEFAULT_SCALING_RATIO`, kernel 6.6 and later; with
/// `tcp_adv_win_scale` = 1, the earlier default, also half).
pub const INITIAL_WINDOW_SHARE: f64 = 0.5;

/// Share of a receive buffer that Linux advertises as window once packets of 1500 bytes have
/// arrived one by one: payload over the memory that holds it (`tcp_measure_rcv_mss`, kernel 6.6 and
/// later), measured behind a TUN device.
pub const STEADY_WINDOW_SHARE: f64 = 198.0 / 256.0;

/// Factor on the buffer computed from the window share: the share falls below its
/// initial half when packets are smaller than the memory that holds them.
pub const HEAD_ROOM: f64 = 2.0;

/// A window above TCP's maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a window of {window} exceeds 1 GiB (65535 x 2^14 bytes), the maximum that RFC 7323 can \
     announce: use at least {streams} streams"
)]
pub struct WindowTooLarge {
    /// The requested window.
    pub window: ByteCount,
    /// The minimum number of streams that share it within the limit.
    pub streams: u64,
}

/// Bandwidth-delay product: `rate x RTT`, the data in flight that just fills the path.
/// Rounded down; RFC 7323, section 1.1.
#[must_use]
pub fn bdp(rate: BitRate, rtt: Rtt) -> ByteCount {
    rate.bytes_in(rtt.duration())
}

/// The rate of one window per RTT: `window / RTT`, in payload, as windows count
/// payload. `None` for an RTT of zero. RFC 7323, section 1.1.
#[must_use]
pub fn window_rate(window: ByteCount, rtt: Rtt) -> Option<BitRate> {
    (rtt > Rtt::ZERO).then(|| BitRate::of(window, rtt.duration()))
}

/// The smallest window for `rate`: the product of [`bdp`], rounded up.
#[must_use]
pub fn window_for(rate: BitRate, rtt: Rtt) -> ByteCount {
    let bit_nanos = u128::from(rate.bps()) * u128::from(rtt.nanos());
    let bytes = bit_nanos.div_ceil(8_000_000_000);
    ByteCount::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// The equal share of a window for each of `streams` parallel connections, rounded up.
/// Zero streams count as one.
#[must_use]
pub fn per_stream(window: ByteCount, streams: u32) -> ByteCount {
    ByteCount::from_bytes(window.bytes().div_ceil(u64::from(streams.max(1))))
}

/// The smallest shift of the window scale option, 0 to 14, with `65535 x 2^N` >=
/// `window` (RFC 7323, section 2.3).
///
/// # Errors
/// If 14 is not enough.
pub fn window_scale(window: ByteCount) -> Result<u8, WindowTooLarge> {
    (0..=MAX_SHIFT)
        .find(|shift| window.bytes() <= 65_535 << shift)
        .ok_or(WindowTooLarge { window, streams: window.bytes().div_ceil(MAX_WINDOW.bytes()) })
}

/// The socket buffer for `window`: `window / share x` [`HEAD_ROOM`], at least four times
/// the window. A share outside 0 to 1 counts as [`INITIAL_WINDOW_SHARE`].
#[must_use]
pub fn buffer_for(window: ByteCount, share: f64) -> ByteCount {
    let share = if share > 0.0 && share <= 1.0 { share } else { INITIAL_WINDOW_SHARE };
    let asked = ByteCount::from_f64(window.as_f64() / share * HEAD_ROOM);
    asked.max(window.times(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> BitRate {
        text.parse().unwrap()
    }
    fn rtt(text: &str) -> Rtt {
        text.parse().unwrap()
    }
    fn bytes(n: u64) -> ByteCount {
        ByteCount::from_bytes(n)
    }

    #[test]
    fn frankfurt_to_las_vegas() {
        assert_eq!(bdp(rate("100mbit"), rtt("173ms")), bytes(2_162_500));
        // The source counts 1 Mbit as 1024 x 1024 bit and gets 18140365 bit,
        // which is 2.1625 MByte of 1024 x 1024 bytes.
        let binary = BitRate::from_bps(100 << 20);
        assert_eq!(bdp(binary, rtt("173ms")).bytes(), 18_140_365 / 8);
        assert!((18_140_365.0_f64 / 8.0 / f64::from(1 << 20) - 2.1625).abs() < 1e-4);
    }

    #[test]
    fn home_fibre_to_far_servers() {
        assert_eq!(bdp(rate("2.5gbit"), rtt("163.6ms")), bytes(51_125_000));
        assert_eq!(bdp(rate("2.5gbit"), rtt("228.1ms")), bytes(71_281_250));
    }

    #[test]
    fn window_limited_rates_of_frankfurt_to_las_vegas() {
        for (window, streams, mbit) in
            [(64 << 10, 1, 3.0306), (128 << 10, 1, 6.0611), (128 << 10, 10, 60.611)]
        {
            let one = window_rate(bytes(window), rtt("173ms")).unwrap();
            let all = one.as_f64() * f64::from(streams) / 1e6;
            assert!((all - mbit).abs() < 1e-3, "{all} {mbit}");
        }
        // The source prints 2.89, in Mbit of 1024 x 1024.
        let one = window_rate(bytes(64 << 10), rtt("173ms")).unwrap();
        assert!((one.as_f64() / f64::from(1 << 20) - 2.89).abs() < 1e-2);
    }

    #[test]
    fn no_round_trip_no_rate() {
        assert_eq!(window_rate(UNSCALED_WINDOW, Rtt::ZERO), None);
    }

    #[test]
    fn the_window_for_a_rate_reaches_it() {
        let window = window_for(rate("100mbit"), Rtt::from_nanos(173_000_001));
        assert_eq!(window, bytes(2_162_501));
        assert!(window_rate(window, Rtt::from_nanos(173_000_001)).unwrap() >= rate("100mbit"));
    }

    #[test]
    fn shifts_grow_with_the_window() {
        for (window, shift) in [
            (0, 0),
            (65_535, 0),
            (65_536, 1),
            (2_162_500, 6),
            (65_535 << 7, 7),
            ((65_535 << 7) + 1, 8),
            (MAX_WINDOW.bytes(), 14),
        ] {
            assert_eq!(window_scale(bytes(window)), Ok(shift), "{window}");
        }
    }

    #[test]
    fn past_the_last_shift_the_limit_is_named() {
        let error = window_scale(bytes(MAX_WINDOW.bytes() + 1)).unwrap_err();
        assert_eq!(error.streams, 2);
        assert!(error.to_string().contains("RFC 7323"), "{error}");
    }

    #[test]
    fn streams_share_a_window() {
        assert_eq!(per_stream(bytes(2_162_500), 10), bytes(216_250));
        assert_eq!(per_stream(bytes(10), 3), bytes(4));
        assert_eq!(per_stream(bytes(10), 0), bytes(10));
    }

    #[test]
    fn buffers_are_four_windows_or_more() {
        assert_eq!(buffer_for(bytes(25_000_000), 0.5), bytes(100_000_000));
        assert_eq!(buffer_for(bytes(25_000_000), 0.25), bytes(200_000_000));
        assert_eq!(buffer_for(bytes(25_000_000), 0.9), bytes(100_000_000));
        assert_eq!(buffer_for(bytes(25_000_000), f64::NAN), bytes(100_000_000));
        assert_eq!(buffer_for(bytes(u64::MAX), 0.5), bytes(u64::MAX));
    }

    proptest::proptest! {
        #[test]
        fn any_numbers_are_answered(a: u64, b: u64, n: u32, share: f64) {
            let (rate, rtt, size) = (BitRate::from_bps(a), Rtt::from_nanos(b), bytes(a));
            let _ = (bdp(rate, rtt), window_rate(size, rtt), window_scale(size));
            let _ = (per_stream(size, n), buffer_for(size, share));
            proptest::prop_assert!(window_for(rate, rtt) >= bdp(rate, rtt));
        }
    }
}
