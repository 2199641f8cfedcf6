//! Sizes and rates as iperf 2 takes and prints them.
//!
//! Small letters are powers of 1000, capitals powers of 1024, for bytes and
//! for bits: `-n 20K` is 20 480 bytes, `-b 1M` is 1 048 576 bit/s.

use std::fmt;

/// A number with one letter of `kmgKMG`, whole.
///
/// # Errors
/// One line: what was given and what can be.
pub fn parse(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.char_indices().last() {
        Some((at, letter)) if letter.is_ascii_alphabetic() => {
            let factor = match letter {
                'k' => 1e3,
                'm' => 1e6,
                'g' => 1e9,
                'K' => 1024f64,
                'M' => 1024f64.powi(2),
                'G' => 1024f64.powi(3),
                _ => return Err(wrong(text)),
            };
            (&text[..at], factor)
        }
        _ => (text, 1.0),
    };
    let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| plain).ok_or_else(|| wrong(text))?;
    let value = value * factor;
    // Past 2^53 a double is no longer exact, and no test is that long.
    if value > 2f64.powi(53) {
        return Err(format!("'{text}' is too much; give less than 2^53"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=2^53")]
    Ok(value as u64)
}

fn wrong(text: &str) -> String {
    format!("'{text}' is no number; give one with or without a letter of kmgKMG, such as 64K")
}

/// How fast a stream is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Bits per second.
    Bits(u64),
    /// Datagrams or writes per second.
    Packets(u64),
}

impl Pace {
    /// Reads what `-b` takes: `50m`, `1G`, `1000pps`.
    ///
    /// # Errors
    /// One line: what was given and what can be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pace = match text.strip_suffix("pps") {
            Some(number) => Pace::Packets(parse(number)?),
            None => Pace::Bits(parse(text)?),
        };
        match pace {
            Pace::Bits(0) | Pace::Packets(0) => {
                Err(format!("'{text}' would send nothing; give a rate such as 50m or 1000pps"))
            }
            pace => Ok(pace),
        }
    }

    /// Bits per second with writes of `length` bytes.
    #[must_use]
    pub fn bits_per_second(self, length: u32) -> u64 {
        match self {
            Pace::Bits(bits) => bits,
            Pace::Packets(packets) => packets.saturating_mul(u64::from(length) * 8),
        }
    }
}

/// How figures are printed: `-f`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Format {
    /// Rates in bytes; sizes always are.
    bytes: bool,
    /// Power of the prefix; what fits where none was asked.
    power: Option<u8>,
}

const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];

impl Format {
    /// Reads the letter: small for bits, capital for bytes.
    ///
    /// # Errors
    /// One line: what was given and what can be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let power = match text.to_ascii_lowercase().as_str() {
            "b" => Some(0),
            "k" => Some(1),
            "m" => Some(2),
            "g" => Some(3),
            "t" => Some(4),
            "a" => None,
            _ => return Err(format!("'{text}' is no format; give one letter of kmgaKMGA")),
        };
        Ok(Format { bytes: text.chars().all(char::is_uppercase), power })
    }

    /// Bytes, in four figures: `11.9 MBytes`.
    #[must_use]
    pub fn size(self, bytes: u64) -> String {
        Figure { value: as_f64(bytes), bytes: true, power: self.power }.to_string()
    }

    /// A rate, from bytes and seconds: `50.0 Mbits/sec`. Zero where no time
    /// has passed.
    #[must_use]
    pub fn rate(self, bytes: u64, seconds: f64) -> String {
        let per_second = if seconds > 0.0 { as_f64(bytes) / seconds } else { 0.0 };
        let value = if self.bytes { per_second } else { per_second * 8.0 };
        format!("{}/sec", Figure { value, bytes: self.bytes, power: self.power })
    }
}

#[expect(clippy::cast_precision_loss, reason = "for four figures in print")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

struct Figure {
    value: f64,
    bytes: bool,
    power: Option<u8>,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, unit) = if self.bytes { (1024.0, "Bytes") } else { (1000.0, "bits") };
        let (mut value, mut power) = (self.value, 0usize);
        let wanted = self.power.map(usize::from);
        while power + 1 < PREFIXES.len() && wanted.map_or(value >= step, |wanted| power < wanted) {
            value /= step;
            power += 1;
        }
        // Four places: each limit is where rounding would take a fifth.
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
    fn capitals_are_powers_of_1024() {
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

    /// As version 2.1.8 printed them.
    #[test]
    fn four_figures() {
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
