//! Values as iperf3's flags take them: numbers with unit letters, and their bounds.

use std::ops::RangeInclusive;

/// A text that is not a value of its flag, with what would be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum ValueError {
    #[error("give {min} to {max} {unit}")]
    Bounds { min: u32, max: u32, unit: &'static str },
    #[error("give a number, optionally with the suffix K, M, G or T: {example}")]
    Scaled { example: &'static str },
    #[error("the maximum is 2^63 - 1")]
    TooLarge,
    #[error("give 1 to 86400000 milliseconds")]
    Milliseconds,
    #[error("give at most 512M")]
    Buffer,
    #[error("give a port, 1 to 65535, or a range such as 5201-5210")]
    Ports,
    #[error("give 0.1 to 60 seconds, or 0 for no interval reports")]
    ReportInterval,
    #[error("give CPUs from 0 to 1024, as in 2 or 2,3")]
    Cpus,
    #[error("give 1 to 1000 blocks after the slash, as in 50M/10")]
    Blocks,
    #[error("give 0.1 to 60 seconds after the slash, as in 1G/5")]
    AveragingTime,
    #[error("give up to three numbers from 1 to 32767, as in 10/2/3")]
    KeepAlive,
    #[error("the first number must exceed the product of the other two")]
    KeepAliveIdle,
    #[error("give at most 127 probes")]
    Probes,
    #[error("give 0 to 255, also as 0x… or 0…")]
    Tos,
    #[error("give 0 to 63, or ef, va, cs0 to cs7, af11 to af43")]
    Dscp,
}

/// A whole number between two bounds.
pub trait Bounded {
    /// The least.
    const MIN: u32;
    /// The greatest.
    const MAX: u32;
    /// Its unit, as a word.
    const WHAT: &'static str;
}

/// A decimal number; its fraction is ignored, as in iperf3.
///
/// # Errors
/// [`ValueError`].
pub fn number<B: Bounded>(text: &str) -> Result<u32, ValueError> {
    let (value, rest) = real(text).ok_or_else(|| outside::<B>())?;
    if !rest.is_empty() {
        return Err(outside::<B>());
    }
    within::<B>(value.trunc())
}

/// A whole number, decimal, octal (`0…`) or hexadecimal (`0x…`).
///
/// # Errors
/// [`ValueError`].
pub fn under<B: Bounded>(text: &str) -> Result<u32, ValueError> {
    let value = whole(text).ok_or_else(|| outside::<B>())?;
    u32::try_from(value)
        .ok()
        .filter(|value| (B::MIN..=B::MAX).contains(value))
        .ok_or_else(|| outside::<B>())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are checked first"
)]
fn within<B: Bounded>(value: f64) -> Result<u32, ValueError> {
    if value >= f64::from(B::MIN) && value <= f64::from(B::MAX) {
        Ok(value as u32)
    } else {
        Err(outside::<B>())
    }
}

fn outside<B: Bounded>() -> ValueError {
    ValueError::Bounds { min: B::MIN, max: B::MAX, unit: B::WHAT }
}

/// The number that a text begins with, and the rest of the text.
fn real(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let longest = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E')))
        .unwrap_or(text.len());
    // An `e` need not begin an exponent, so shorter prefixes are tried.
    (1..=longest).rev().find_map(|end| {
        let (number, rest) = text.split_at_checked(end)?;
        let value: f64 = number.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some((value, rest))
    })
}

fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn scaled(text: &str, step: f64, example: &'static str) -> Result<u64, ValueError> {
    let wrong = ValueError::Scaled { example };
    let (value, rest) = real(text).ok_or(wrong)?;
    // Only the first letter counts: `10Mbit` is `10M`.
    let power = match rest.chars().next().map(|letter| letter.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return Err(wrong),
    };
    if !rest.chars().all(|c| c.is_ascii_alphabetic()) {
        return Err(wrong);
    }
    let value = value * step.powi(power);
    // 2^63: the protocol has signed 64-bit numbers.
    if value >= 9_223_372_036_854_775_808.0 {
        return Err(ValueError::TooLarge);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are checked just above"
    )]
    Ok(value as u64)
}

/// A size or a count: K is 1024.
///
/// # Errors
/// [`ValueError`].
pub fn size(text: &str) -> Result<u64, ValueError> {
    scaled(text, 1024.0, "128K")
}

/// A rate in bit/s: K is 1000.
///
/// # Errors
/// [`ValueError`].
pub fn rate(text: &str) -> Result<u64, ValueError> {
    scaled(text, 1000.0, "50M")
}

/// Milliseconds, with iperf3's unit letters.
///
/// # Errors
/// [`ValueError`].
pub fn milliseconds(text: &str) -> Result<u64, ValueError> {
    match size(text)? {
        value @ 1..=86_400_000 => Ok(value),
        _ => Err(ValueError::Milliseconds),
    }
}

/// A socket buffer: 512 MiB at most (`MAX_TCP_BUFFER`).
///
/// # Errors
/// [`ValueError`].
pub fn buffer(text: &str) -> Result<u64, ValueError> {
    match size(text)? {
        value @ 0..=536_870_912 => Ok(value),
        _ => Err(ValueError::Buffer),
    }
}

/// Ports to try, in order.
pub type Ports = RangeInclusive<u16>;

/// One port, or a range to try in order.
///
/// # Errors
/// [`ValueError`].
pub fn ports(text: &str) -> Result<Ports, ValueError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let port = |text: &str| port(text).ok_or(ValueError::Ports);
    let range = port(first)?..=port(last)?;
    if range.is_empty() { Err(ValueError::Ports) } else { Ok(range) }
}

/// Seconds between interval reports.
///
/// # Errors
/// [`ValueError`].
pub fn report_interval(text: &str) -> Result<f64, ValueError> {
    match real(text) {
        Some((value, "")) if value == 0.0 || (0.1..=60.0).contains(&value) => Ok(value),
        _ => Err(ValueError::ReportInterval),
    }
}

/// The CPU of this end, and of the server.
#[derive(Debug, Clone, Copy)]
pub struct Affinity {
    /// The CPU here.
    pub here: u32,
    /// The server's.
    pub server: Option<u32>,
}

/// CPUs, here and at the server.
///
/// # Errors
/// [`ValueError`].
pub fn affinity(text: &str) -> Result<Affinity, ValueError> {
    let core = |text: &str| {
        let value = whole(text).and_then(|value| u32::try_from(value).ok());
        value.filter(|core| *core <= 1024).ok_or(ValueError::Cpus)
    };
    let (here, server) = match text.split_once(',') {
        Some((here, server)) => (here, Some(server)),
        None => (text, None),
    };
    Ok(Affinity { here: core(here)?, server: server.map(core).transpose()? })
}

/// A rate, and the number of blocks per burst.
#[derive(Debug, Clone, Copy)]
pub struct Burst {
    /// bit/s.
    pub rate: u64,
    /// Blocks per burst.
    pub blocks: Option<u32>,
}

/// A rate, with blocks per burst after a slash.
///
/// # Errors
/// [`ValueError`].
pub fn burst(text: &str) -> Result<Burst, ValueError> {
    let (rate_text, blocks) = match text.split_once('/') {
        Some((rate, blocks)) => (rate, Some(blocks)),
        None => (text, None),
    };
    let blocks = blocks
        .map(|blocks| match blocks.parse() {
            Ok(blocks @ 1..=1000) => Ok(blocks),
            _ => Err(ValueError::Blocks),
        })
        .transpose()?;
    Ok(Burst { rate: rate(rate_text)?, blocks })
}

/// A limit in bit/s, and the averaging time in seconds.
#[derive(Debug, Clone, Copy)]
pub struct CappedRate {
    /// bit/s.
    pub rate: u64,
    /// The averaging time.
    pub seconds: Option<f64>,
}

/// A limit, with the averaging time after a slash.
///
/// # Errors
/// [`ValueError`].
pub fn capped_rate(text: &str) -> Result<CappedRate, ValueError> {
    let (rate_text, seconds) = match text.split_once('/') {
        Some((rate, seconds)) => (rate, Some(seconds)),
        None => (text, None),
    };
    let seconds = seconds
        .map(|seconds| report_interval(seconds).map_err(|_| ValueError::AveragingTime))
        .transpose()?;
    Ok(CappedRate { rate: rate(rate_text)?, seconds })
}

/// TCP keepalive: seconds before the first probe, seconds between probes, count.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepAlive {
    /// Seconds before the first probe.
    pub idle_s: Option<u32>,
    /// Seconds between probes.
    pub interval_s: Option<u32>,
    /// Probes.
    pub count: Option<u32>,
}

/// Up to three numbers, separated by slashes.
///
/// # Errors
/// [`ValueError`].
pub fn keepalive(text: &str) -> Result<KeepAlive, ValueError> {
    let mut parts = text.splitn(3, '/').map(|part| match part {
        "" => Ok(None),
        // Maxima of the kernel (include/net/tcp.h: MAX_TCP_KEEPIDLE, MAX_TCP_KEEPCNT).
        part => match part.parse() {
            Ok(value @ 1..=32_767) => Ok(Some(value)),
            _ => Err(ValueError::KeepAlive),
        },
    });
    let mut next = || parts.next().unwrap_or(Ok(None));
    let given = KeepAlive { idle_s: next()?, interval_s: next()?, count: next()? };
    if let KeepAlive { idle_s: Some(idle), interval_s: Some(interval), count: Some(count) } = given
        && idle <= interval.saturating_mul(count)
    {
        return Err(ValueError::KeepAliveIdle);
    }
    if given.count.is_some_and(|count| count > 127) {
        return Err(ValueError::Probes);
    }
    Ok(given)
}

/// The TOS byte of the IP header.
///
/// # Errors
/// [`ValueError`].
pub fn tos(text: &str) -> Result<u8, ValueError> {
    whole(text).and_then(|value| u8::try_from(value).ok()).ok_or(ValueError::Tos)
}

/// The same byte from a DSCP or its name (RFC 2474, 2597, 3246, 5865), or from
/// the name of a TOS bit (RFC 1349).
///
/// # Errors
/// [`ValueError`].
pub fn dscp(text: &str) -> Result<u8, ValueError> {
    let name = text.to_ascii_lowercase();
    let digit = |index: usize, least: u8, most: u8| {
        let digit = name.as_bytes().get(index)?.wrapping_sub(b'0');
        (least..=most).contains(&digit).then_some(digit)
    };
    let named = match name.as_str() {
        "ef" => Some(46 << 2),
        "va" => Some(44 << 2),
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        _ if name.len() == 3 && name.starts_with("cs") => digit(2, 0, 7).map(|class| class << 5),
        _ if name.len() == 4 && name.starts_with("af") => {
            digit(2, 1, 4).zip(digit(3, 1, 3)).map(|(class, drop)| (class << 5) | (drop << 3))
        }
        _ => None,
    };
    let number = || whole(text).and_then(|value| u8::try_from(value).ok()).filter(|it| *it <= 63);
    named.or_else(|| number().map(|value| value << 2)).ok_or(ValueError::Dscp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_1024s_and_rates_1000s() {
        assert_eq!((size("128K"), rate("128K")), (Ok(131_072), Ok(128_000)));
        assert_eq!((size("1.5m"), rate("10Mbit")), (Ok(1_572_864), Ok(10_000_000)));
        assert_eq!((rate("1e6"), rate("2.5g")), (Ok(1_000_000), Ok(2_500_000_000)));
        for text in ["", "K", "-1", "1x", "nan", "inf", "1e400", "8388608T", "1 2", "10M%"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn classes_have_names() {
        for (text, octet) in [
            ("ef", 0xb8),
            ("AF43", 0x98),
            ("cs7", 0xe0),
            ("va", 0xb0),
            ("lowdelay", 0x10),
            ("63", 0xfc),
            ("0x0a", 0x28),
            ("010", 0x20),
        ] {
            assert_eq!(dscp(text), Ok(octet), "{text}");
        }
        for text in ["64", "af50", "cs8", "", "-1", "afé"] {
            assert!(dscp(text).is_err(), "{text}");
        }
        assert_eq!((tos("064"), tos("0x34"), tos("52")), (Ok(52), Ok(52), Ok(52)));
        assert!(tos("256").is_err());
    }

    #[test]
    fn values_after_a_slash() {
        let burst = burst("50M/10").unwrap();
        assert_eq!((burst.rate, burst.blocks), (50_000_000, Some(10)));
        for text in ["50M/0", "50M/1001", "50M/", "/3"] {
            assert!(super::burst(text).is_err(), "{text}");
        }
        let probes = keepalive("10/2/3").unwrap();
        assert_eq!((probes.idle_s, probes.interval_s, probes.count), (Some(10), Some(2), Some(3)));
        assert_eq!(keepalive("/5").unwrap().interval_s, Some(5));
        assert!(keepalive("").unwrap().idle_s.is_none());
        for text in ["6/2/3", "a", "0", "//200"] {
            assert!(keepalive(text).is_err(), "{text}");
        }
        assert!(capped_rate("1G/61").is_err() && capped_rate("1G/2").is_ok());
    }

    #[test]
    fn port_ranges() {
        assert_eq!(ports("5201-5210"), Ok(5201..=5210));
        assert_eq!(ports("1"), Ok(1..=1));
        for text in ["0", "65536", "9-8", "-", "a", "5201-"] {
            assert!(ports(text).is_err(), "{text}");
        }
    }
}
