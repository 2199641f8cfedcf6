//! Sizes and rates with up to four digits, as in iperf3's columns.

/// The unit of rates (`-f`): lower case for bits (powers of 1000), upper case for bytes
/// (powers of 1024). Sizes are always adaptive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Bits with the largest prefix that gives at least 1.
    #[default]
    Adaptive,
    /// Bits in units of 1000 to this power: 1 for kilo to 4 for tera.
    Bits(u8),
    /// Bytes in units of 1024 to this power.
    Bytes(u8),
}

impl Format {
    /// From the value of `-f`; only its first letter is used.
    #[must_use]
    pub fn from_letter(text: &str) -> Option<Self> {
        let letter = text.chars().next()?;
        let power = match letter.to_ascii_lowercase() {
            'k' => 1,
            'm' => 2,
            'g' => 3,
            't' => 4,
            _ => return None,
        };
        Some(if letter.is_ascii_uppercase() { Format::Bytes(power) } else { Format::Bits(power) })
    }
}

const BITS: [&str; 5] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"];
const BYTES: [&str; 5] = ["Byte", "KByte", "MByte", "GByte", "TByte"];

/// A number of bytes: `160 KBytes`, `1.50 MBytes`.
#[must_use]
pub fn size(bytes: u64) -> String {
    adaptive(float(bytes), 1024.0, &BYTES) + "s"
}

/// A rate given in bytes per second: ` 939 Mbits/sec`.
#[must_use]
pub fn rate(bytes_per_s: f64, format: Format) -> String {
    let text = match format {
        Format::Adaptive => adaptive(bytes_per_s * 8.0, 1000.0, &BITS),
        Format::Bits(power) => fixed(bytes_per_s * 8.0, 1000.0, power, &BITS),
        Format::Bytes(power) => fixed(bytes_per_s, 1024.0, power, &BYTES),
    };
    text + "s/sec"
}

fn adaptive(value: f64, step: f64, units: &[&str; 5]) -> String {
    let mut power = 0;
    let mut rest = value;
    while rest >= step && power < 4 {
        rest /= step;
        power += 1;
    }
    fixed(value, step, power, units)
}

fn fixed(value: f64, step: f64, power: u8, units: &[&str; 5]) -> String {
    let value = value / step.powi(i32::from(power));
    let unit = units.get(usize::from(power)).copied().unwrap_or_default();
    let places = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:4.places$} {unit}")
}

/// Two significant digits as C's `%.2g` gives them: `0`, `0.25`, `12`, `1e+02`.
#[must_use]
pub fn two_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let rounded = format!("{value:.1e}");
    let Some((digits, power)) = rounded.split_once('e') else { return rounded };
    let power: i32 = power.parse().unwrap_or(0);
    let bare = |text: &str| match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text.to_owned(),
    };
    if (-4..2).contains(&power) {
        let places = usize::try_from(1 - power).unwrap_or(0);
        return bare(&format!("{value:.places$}"));
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", bare(digits), power.abs())
}

/// Bytes per second; zero for a duration of zero.
#[must_use]
pub fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { float(bytes) / seconds } else { 0.0 }
}

/// The loss of datagrams in percent; zero without datagrams.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "53 bits are enough for a percentage")]
pub fn percent(lost: i64, packets: i64) -> f64 {
    if packets > 0 { 100.0 * lost as f64 / packets as f64 } else { 0.0 }
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are enough for four digits")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_powers_of_1024() {
        for (bytes, text) in [
            (0, "0.00 Bytes"),
            (163_840, " 160 KBytes"),
            (1_572_864, "1.50 MBytes"),
            (916_762, " 895 KBytes"),
            (1_047_728, "1023 KBytes"),
            (12_373_197, "11.8 MBytes"),
            (1_460_288_881, "1.36 GBytes"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn rates_use_powers_of_1000_or_the_format() {
        let gbit = 3.53e9 / 8.0;
        assert_eq!(rate(gbit, Format::Adaptive), "3.53 Gbits/sec");
        assert_eq!(rate(gbit, Format::Bits(2)), "3530 Mbits/sec");
        assert_eq!(rate(2_152_610_816.0, Format::Bytes(1)), "2102159 KBytes/sec");
        assert_eq!(rate(0.0, Format::Adaptive), "0.00 bits/sec");
        assert_eq!(rate(1e18, Format::Adaptive), "8000000 Tbits/sec");
        assert_eq!(Format::from_letter("Gx"), Some(Format::Bytes(3)));
        assert_eq!(Format::from_letter("b"), None);
        assert_eq!(Format::from_letter(""), None);
    }

    #[test]
    fn two_digits_as_in_c() {
        for (value, text) in [
            (0.0, "0"),
            (100.0, "1e+02"),
            (99.4, "99"),
            (99.6, "1e+02"),
            (12.0, "12"),
            (1.25, "1.2"),
            (0.25, "0.25"),
            (0.001_23, "0.0012"),
            (0.000_012_3, "1.2e-05"),
            (-3.0, "-3"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(two_digits(value), text);
        }
    }
}
