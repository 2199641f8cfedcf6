//! Numbers as an equation shows them: five significant digits, so that a
//! reader who does the sum again gets what is printed.

use units::{BitRate, ByteCount, LossRatio, Rtt};

/// Up to five significant digits, no trailing zeros: `2.1625`, `17.3`, `100`.
pub(crate) fn digits(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() < 1e-3 {
        return format!("{value:.2e}");
    }
    let before_point = value.abs().log10().floor() + 1.0;
    // 0 to 8: a number of places, clamped before it is converted.
    let places = (5.0 - before_point).clamp(0.0, 8.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn scaled(value: f64, unit: &str) -> String {
    // What five digits round up to the next prefix is said in it.
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
    format!("{} %", digits(share * 100.0))
}

/// A loss in percent with three digits and no exponent, as it may be given again.
pub(crate) fn loss(loss: LossRatio) -> String {
    let percent = loss.fraction() * 100.0;
    if percent >= 1e-3 || percent == 0.0 {
        return format!("{} %", digits(percent));
    }
    // A ratio has twelve places, so a percentage has ten.
    let places = (2.0 - percent.log10().floor()).clamp(0.0, 10.0) as usize;
    format!("{} %", format!("{percent:.places$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_and_no_more() {
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
    fn losses_can_be_given_again() {
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
