//! Parses and prints sizes and rates as iperf 2 does.
//!
//! Lower-case suffixes are powers of 1000, upper-case ones powers of 1024, for bytes and
//! bits: `-n 20K` is 20 480 bytes, `-b 1M` is 1 048 576 bit/s.

use std::fmt;

/// A text that is not a quantity: one line with the text and the valid format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum QuantityError {
    #[error("'{0}' is not a number; give one with an optional suffix of kmgKMG, such as 64K")]
    Number(String),
    #[error("'{0}' is too large; give less than 2^53")]
    TooLarge(String),
    #[error("'{0}' would send nothing; give a rate such as 50m or 1000pps")]
    Zero(String),
    #[error("'{0}' is not a format; give one letter of kmgaKMGA")]
    Format(String),
    #[error("'{0}' is not a type of service; give 0 to 255, ef, cs1, af11")]
    TypeOfService(String),
}

/// Parses a number with an optional suffix of `kmgKMG`; rounds down.
///
/// # Errors
/// [`QuantityError`].
pub fn parse(text: &str) -> Result<u64, QuantityError> {
    let wrong = || QuantityError::Number(text.to_owned());
    let (number, factor) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            let factor = match letter {
                'k' => 1e3,
                'm' => 1e6,
                'g' => 1e9,
                'K' => 1024f64,
                'M' => 1024f64.powi(2),
                'G' => 1024f64.powi(3),
                _ => return Err(wrong()),
            };
            (&text[..at], factor)
        }
        _ => (text, 1.0),
    };
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain).ok_or_else(wrong)?;
    let value = value * factor;
    // Above 2^53 a double is not exact.
    if value > 2f64.powi(53) {
        return Err(QuantityError::TooLarge(text.to_owned()));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=2^53")]
    Ok(value as u64)
}

/// The target rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Bits per second.
    Bits(u64),
    /// Datagrams or writes per second.
    Packets(u64),
}

impl Pace {
    /// Parses the argument of `-b`: `50m`, `1G`, `1000pps`.
    ///
    /// # Errors
    /// [`QuantityError`].
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let pace = match text.strip_suffix("pps") {
            Some(number) => Pace::Packets(parse(number)?),
            None => Pace::Bits(parse(text)?),
        };
        match pace {
            Pace::Bits(0) | Pace::Packets(0) => Err(QuantityError::Zero(text.to_owned())),
            pace => Ok(pace),
        }
    }

    /// The rate in bit/s for writes of `length` bytes.
    #[must_use]
    pub fn bits_per_second(self, length: u32) -> u64 {
        match self {
            Pace::Bits(bits) => bits,
            Pace::Packets(packets) => packets.saturating_mul(u64::from(length) * 8),
        }
    }
}

/// The output format: `-f`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Format {
    /// Rates in bytes; sizes always are in bytes.
    bytes: bool,
    /// Power of the prefix; automatic if `None`.
    power: Option<u8>,
}

const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];

impl Format {
    /// Parses the letter: lower case for bits, upper case for bytes.
    ///
    /// # Errors
    /// [`QuantityError`].
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let power = match text.to_ascii_lowercase().as_str() {
            "b" => Some(0),
            "k" => Some(1),
            "m" => Some(2),
            "g" => Some(3),
            "t" => Some(4),
            "a" => None,
            _ => return Err(QuantityError::Format(text.to_owned())),
        };
        Ok(Format { bytes: text.chars().all(char::is_uppercase), power })
    }

    /// A size with three digits: `11.9 MBytes`.
    #[must_use]
    pub fn size(self, bytes: u64) -> String {
        Quantity { value: as_f64(bytes), bytes: true, power: self.power }.to_string()
    }

    /// A rate from bytes and seconds: `50.0 Mbits/sec`; zero if no time has passed.
    #[must_use]
    pub fn rate(self, bytes: u64, seconds: f64) -> String {
        let per_second = if seconds > 0.0 { as_f64(bytes) / seconds } else { 0.0 };
        let value = if self.bytes { per_second } else { per_second * 8.0 };
        format!("{}/sec", Quantity { value, bytes: self.bytes, power: self.power })
    }
}

#[expect(clippy::cast_precision_loss, reason = "only three digits are printed")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

struct Quantity {
    value: f64,
    bytes: bool,
    power: Option<u8>,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, unit) = if self.bytes { (1024.0, "Bytes") } else { (1000.0, "bits") };
        let (mut value, mut power) = (self.value, 0usize);
        let wanted = self.power.map(usize::from);
        while power + 1 < PREFIXES.len() && wanted.map_or(value >= step, |wanted| power < wanted) {
            value /= step;
            power += 1;
        }
        // Four characters: each limit is where rounding would add a fifth.
        let places = match value {
            v if v < 0.9995 => 3,
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        write!(f, "{value:4.places$} {}{unit}", PREFIXES[power])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_case_suffixes_are_powers_of_1024() {
        assert_eq!(parse("20K"), Ok(20_480));
        assert_eq!(parse("20k"), Ok(20_000));
        assert_eq!(parse("1.5M"), Ok(1_572_864));
        assert_eq!(parse("8"), Ok(8));
        assert_eq!(Pace::parse("50m"), Ok(Pace::Bits(50_000_000)));
        assert_eq!(Pace::parse("100pps"), Ok(Pace::Packets(100)));
        for wrong in ["", "K", "-1", "1e9", "inf", "nan", "1KB", "1x", "9999999999G", "ä"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Pace::parse("0").is_err());
    }

    /// The output of version 2.1.8.
    #[test]
    fn sizes_and_rates_match_iperf2() {
        let bits = Format::default();
        assert_eq!(bits.size(25_165_824), "24.0 MBytes");
        assert_eq!(bits.size(137_216), " 134 KBytes");
        assert_eq!(bits.rate(12_500_000, 1.0), " 100 Mbits/sec");
        assert_eq!(bits.rate(125_000, 1.0), "1.00 Mbits/sec");
        assert_eq!(bits.rate(127_500, 1.0), "1.02 Mbits/sec");
        assert_eq!(bits.rate(0, 0.0), "0.000 bits/sec");
        let bytes = Format::parse("K").unwrap();
        assert_eq!(bytes.rate(125_952, 1.0), " 123 KBytes/sec");
        let giga = Format::parse("g").unwrap();
        assert_eq!(giga.size(128_000), "0.000 GBytes");
        assert_eq!(giga.rate(128_000, 1.0), "0.001 Gbits/sec");
        assert!(Format::parse("x").is_err());
    }
}
