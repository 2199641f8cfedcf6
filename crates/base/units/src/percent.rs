//! Shares of a whole, and how they are printed.

use crate::significant;

/// Larger percentages are printed as `>9999 %`: no column has room for them.
const MAX: f64 = 9999.0;

/// `part` of `whole` (1 is all of it); zero if `whole` is zero.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A share (0.5 is 50 %) with two significant digits, and whole percent from 10 %:
/// `97 %`, `3.2 %`, `0.01 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    percent_with(share, 2)
}

/// A share with so many significant digits: `percent_with(0.123_45, 3)` is `12.3 %`.
/// A share that is no number is `-`.
#[must_use]
pub fn percent_with(share: f64, digits: u8) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "-".to_owned(),
        p if p > MAX => format!(">{MAX} %"),
        p => format!("{} %", significant(p, digits)),
    }
}

/// A relative change (0.5 is 50 % more): `+12.3 %`, `-40 %`, and from +100 % on the
/// factor, `12.2 times`.
#[must_use]
pub fn change(share: f64) -> String {
    match share {
        s if s >= 1.0 && s.is_finite() => format!("{} times", significant(1.0 + s, 3)),
        s if s > 0.0 => format!("+{}", percent_with(s, 3)),
        s => percent_with(s, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::{change, percent, percent_with, share};

    #[test]
    fn two_significant_digits_and_whole_percent_from_ten() {
        for (share, text) in [
            (0.0, "0 %"),
            (-0.0, "0 %"),
            (0.97, "97 %"),
            (0.032, "3.2 %"),
            (0.01, "1 %"),
            (0.000_103, "0.01 %"),
            (0.5, "50 %"),
            (1.234, "123 %"),
            (99.99, "9999 %"),
            (100.0, ">9999 %"),
            (-0.25, "-25 %"),
            (3e-8, "0.000003 %"),
            (1e-300, "0 %"),
            (f64::NAN, "-"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn as_many_digits_as_asked() {
        assert_eq!(percent_with(0.123_45, 3), "12.3 %");
        assert_eq!(percent_with(0.001_234_5, 5), "0.12345 %");
        assert_eq!(percent_with(12.0, 1), "1200 %");
    }

    #[test]
    fn a_change_of_100_percent_and_more_is_a_factor() {
        for (share, text) in [
            (0.123_4, "+12.3 %"),
            (0.999, "+99.9 %"),
            (1.0, "2 times"),
            (11.2, "12.2 times"),
            (-0.4, "-40 %"),
            (0.0, "0 %"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(change(share), text);
        }
    }

    #[test]
    fn nothing_of_nothing_is_no_share() {
        assert_eq!((share(1, 4), share(0, 0), share(3, 0)), (0.25, 0.0, 0.0));
    }
}
