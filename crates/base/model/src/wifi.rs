//! The rate of a Wi-Fi link, and the part of it that TCP gets.

use units::BitRate;

/// The most of a Wi-Fi link's rate that TCP usually gets: two thirds. Preambles, contention,
/// acknowledgements of the link and TCP's own ACKs, which need the channel too, take the
/// rest. 802.11ax at 80 MHz with two streams has 1201 Mbit/s and measures about 800
/// (M3AAWG, "Understanding Network Performance", 2025).
pub const WIFI_TCP_SHARE: f64 = 2.0 / 3.0;

/// The length of an 802.11ax symbol with the shortest guard interval, 12.8 + 0.8 µs.
const SYMBOL_US: f64 = 13.6;

/// Bits of a tone and symbol with 1024-QAM at a coding rate of 5/6 (MCS 11).
const BITS_PER_TONE: f64 = 10.0 * 5.0 / 6.0;

/// The highest rate of 802.11ax (Wi-Fi 6) over a channel of `width_mhz` with this many
/// spatial streams, 1 to 8: `tones x bits x streams / symbol` (IEEE 802.11ax-2021, clause
/// 27.5). `None` for other widths and numbers.
#[must_use]
pub fn wifi_6_rate(width_mhz: u32, streams: u32) -> Option<BitRate> {
    let tones = match width_mhz {
        20 => 234.0,
        40 => 468.0,
        80 => 980.0,
        160 => 1_960.0,
        _ => return None,
    };
    let bits = tones * BITS_PER_TONE * f64::from(streams);
    (1..=8).contains(&streams).then(|| BitRate::from_bps_f64(bits / SYMBOL_US * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_the_standards_table() {
        let mbit = |width, streams| wifi_6_rate(width, streams).unwrap().as_f64() / 1e6;
        assert!((mbit(80, 2) - 1_201.0).abs() < 0.1);
        assert!((mbit(20, 1) - 143.4).abs() < 0.05);
        assert!((mbit(160, 2) - 2_402.0).abs() < 0.1);
        // 800 of 1201 Mbit/s.
        assert!((mbit(80, 2) * WIFI_TCP_SHARE - 800.7).abs() < 0.1);
        assert_eq!(
            (wifi_6_rate(30, 1), wifi_6_rate(80, 0), wifi_6_rate(80, 9)),
            (None, None, None)
        );
    }
}
