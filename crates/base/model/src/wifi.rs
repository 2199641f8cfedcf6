//! The rate of a Wi-Fi link, and the part of it that TCP gets.

use units::BitRate;

/// The most of a Wi-Fi link's rate that TCP usually gets: two thirds. Preambles, contention,
/// acknowledgements of the link and TCP's own ACKs, which need the channel too, take the
/// rest. 802.11ax at 80 MHz with two streams has 1201 Mbit/s and measures about 800
/// (M3AAWG, "Understanding Network Performance", 2025).
pub const WIFI_TCP_SHARE: f64 = 2.0 / 3.0;

/// A standard of Wi-Fi whose rates are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WifiStandard {
    /// 802.11n, Wi-Fi 4.
    N,
    /// 802.11ac, Wi-Fi 5.
    Ac,
    /// 802.11ax, Wi-Fi 6.
    Ax,
}

impl WifiStandard {
    /// All, oldest first.
    pub const ALL: [WifiStandard; 3] = [WifiStandard::N, WifiStandard::Ac, WifiStandard::Ax];

    /// The standard that a text begins with, as in `802.11ax`.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standard| text.starts_with(standard.name()))
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            WifiStandard::N => "802.11n",
            WifiStandard::Ac => "802.11ac",
            WifiStandard::Ax => "802.11ax",
        }
    }

    /// The highest rate over a channel of `width_mhz` with this many spatial streams, without
    /// regard to the distance: `tones x bits x streams / symbol`, with the shortest guard
    /// interval (IEEE 802.11-2020, clauses 19.5 and 21.5; 802.11ax-2021, clause 27.5). `None`
    /// for other widths and numbers.
    #[must_use]
    pub fn rate(self, width_mhz: u32, streams: u32) -> Option<BitRate> {
        // Data tones, bits of a tone and symbol by modulation x coding, symbol in µs, streams.
        let (tones, bits, symbol_us, most_streams) = match (self, width_mhz) {
            // 64-QAM at 5/6 (MCS 7); 3.2 + 0.4 µs.
            (WifiStandard::N, 20) => (52.0, 5.0, 3.6, 4),
            (WifiStandard::N, 40) => (108.0, 5.0, 3.6, 4),
            // 256-QAM at 3/4 (MCS 8), which all numbers of streams have at 20 MHz; else at 5/6.
            (WifiStandard::Ac, 20) => (52.0, 6.0, 3.6, 8),
            (WifiStandard::Ac, 40) => (108.0, 20.0 / 3.0, 3.6, 8),
            (WifiStandard::Ac, 80) => (234.0, 20.0 / 3.0, 3.6, 8),
            (WifiStandard::Ac, 160) => (468.0, 20.0 / 3.0, 3.6, 8),
            // 1024-QAM at 5/6 (MCS 11); 12.8 + 0.8 µs.
            (WifiStandard::Ax, 20) => (234.0, 25.0 / 3.0, 13.6, 8),
            (WifiStandard::Ax, 40) => (468.0, 25.0 / 3.0, 13.6, 8),
            (WifiStandard::Ax, 80) => (980.0, 25.0 / 3.0, 13.6, 8),
            (WifiStandard::Ax, 160) => (1_960.0, 25.0 / 3.0, 13.6, 8),
            _ => return None,
        };
        let all = tones * bits * f64::from(streams);
        (1..=most_streams).contains(&streams).then(|| BitRate::from_bps_f64(all / symbol_us * 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::WifiStandard::{Ac, Ax, N};
    use super::*;

    #[test]
    fn rates_of_the_standards_tables() {
        for (standard, width, streams, mbit) in [
            (N, 20, 1, 72.2),
            (N, 40, 1, 150.0),
            (N, 40, 4, 600.0),
            (Ac, 20, 1, 86.7),
            (Ac, 40, 2, 400.0),
            (Ac, 80, 1, 433.3),
            (Ac, 80, 2, 866.7),
            (Ac, 160, 8, 6_933.3),
            (Ax, 80, 2, 1_201.0),
            (Ax, 20, 1, 143.4),
            (Ax, 160, 2, 2_402.0),
        ] {
            let rate = standard.rate(width, streams).unwrap().as_f64() / 1e6;
            assert!((rate - mbit).abs() < 0.1, "{standard:?} {width} {streams}: {rate}");
        }
        // 800 of 1201 Mbit/s.
        let share = Ax.rate(80, 2).unwrap().as_f64() / 1e6 * WIFI_TCP_SHARE;
        assert!((share - 800.7).abs() < 0.1);
        for (standard, width, streams) in
            [(Ax, 30, 1), (Ax, 80, 0), (Ax, 80, 9), (N, 80, 1), (N, 40, 5)]
        {
            assert_eq!(standard.rate(width, streams), None);
        }
    }

    #[test]
    fn standards_have_names() {
        for standard in WifiStandard::ALL {
            assert_eq!(WifiStandard::of(standard.name()), Some(standard));
        }
        assert_eq!(WifiStandard::of("802.11be"), None);
    }
}
