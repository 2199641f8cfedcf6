//! Numbers in equations: five significant digits, so that a reader who recomputes an
//! equation gets the printed result.

use units::{BitRate, ByteCount, LossRatio, Rtt, percent_with, significant};

/// Up to five significant digits, no trailing zeros: `2.1625`, `17.3`, `100`.
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < 1e-3 {
        return format!("{value:.2e}");
    }
    significant(value, 5)
}

fn scaled(value: f64, unit: &str) -> String {
    // A value that rounds up to the next prefix is printed with it.
    const PREFIXES: [(f64, &str); 6] =
        [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    let (scale, prefix) =
        PREFIXES.into_iter().find(|(scale, _)| value >= *scale * 0.999_995).unwrap_or((1.0, ""));
    format!("{} {prefix}{unit}", digits(value / scale))
}

pub(crate) fn rate(rate: BitRate) -> String {
    scaled(rate.as_f64(), "bit/s")
}

pub(crate) fn bits(bits: f64) -> String {
    scaled(bits, "bit")
}

/// Decimal prefixes, except for a whole number of binary ones (`64 KiB`).
pub(crate) fn bytes(bytes: ByteCount) -> String {
    if bytes > ByteCount::ZERO && bytes.bytes().is_multiple_of(1 << 10) {
        let text = bytes.to_string();
        if text.contains("iB") {
            return text;
        }
    }
    scaled(bytes.as_f64(), "B")
}

pub(crate) fn rtt(rtt: Rtt) -> String {
    seconds(rtt.secs_f64())
}

pub(crate) fn seconds(seconds: f64) -> String {
    if seconds >= 10.0 {
        format!("{} s", digits(seconds))
    } else if seconds >= 1e-3 {
        format!("{} ms", digits(seconds * 1e3))
    } else {
        format!("{} µs", digits(seconds * 1e6))
    }
}

pub(crate) fn percent(share: f64) -> String {
    percent_with(share, 5)
}

/// A loss as it can be typed again; three digits are enough below 0.001 %.
pub(crate) fn loss(loss: LossRatio) -> String {
    let share = loss.fraction();
    percent_with(share, if share >= 1e-5 { 5 } else { 3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_five_digits() {
        for (value, text) in [
            (2.1625, "2.1625"),
            (17.3, "17.3"),
            (100.0, "100"),
            (163.6, "163.6"),
            (71.28125, "71.281"),
            (123_456.0, "123456"),
            (0.03, "0.03"),
            (2.95e-8, "2.95e-8"),
            (0.0, "0"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn losses_can_be_typed_again() {
        for (text, said) in [
            ("0.00000281%", "0.00000281 %"),
            ("0.0000100%", "0.00001 %"),
            ("1%", "1 %"),
            ("0.0103%", "0.0103 %"),
            ("0.0000000001%", "0.0000000001 %"),
            ("0", "0 %"),
        ] {
            let ratio: LossRatio = text.parse().unwrap();
            assert_eq!(loss(ratio), said);
            assert_eq!(said.parse(), Ok(ratio));
        }
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(bytes(ByteCount::from_bytes(65_536)), "64 KiB");
        assert_eq!(bytes(ByteCount::from_bytes(2_162_500)), "2.1625 MB");
        assert_eq!(rate(BitRate::from_bps(2_500_000_000)), "2.5 Gbit/s");
        assert_eq!(rate(BitRate::from_bps(999_999_000)), "1 Gbit/s");
        assert_eq!(rtt(Rtt::from_micros(163_600)), "163.6 ms");
        assert_eq!(seconds(25.5), "25.5 s");
    }
}
