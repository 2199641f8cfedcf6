//! Constants of a filter, by the kind of the field that they are compared with.

use super::error::{FilterError, quoted};
use super::lexer::Token;
use crate::date;
use crate::names::value_of;
use crate::value::{FieldKind, Value};
use core::cmp::Ordering;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::ops::Range;

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Literal {
    /// A number, or 0 and 1 of a bit.
    Integer(i64),
    /// Nanoseconds.
    Time(i64),
    /// An Ethernet address.
    Ethernet([u8; 6]),
    /// An IPv4 address and the length of its prefix.
    Ipv4(u32, u8),
    /// An IPv6 address and the length of its prefix.
    Ipv6(u128, u8),
    /// Bytes.
    Bytes(Box<[u8]>),
    /// Text.
    Text(Box<str>),
}

impl Literal {
    /// The constant that `token` is for a field of that kind.
    pub(super) fn of(
        token: &Token,
        kind: FieldKind,
        (name, names): (&str, &[(i64, &str)]),
        at: Range<usize>,
    ) -> Result<Literal, FilterError> {
        let wrong = |message: String| Err(FilterError::new(at.clone(), message));
        let character;
        let named = match token {
            Token::Word(text) => value_of(text.as_bytes(), names),
            Token::Quoted(bytes) => value_of(bytes, names),
            _ => None,
        };
        if let Some(number) = named {
            return Ok(Literal::Integer(number));
        }
        let text = match token {
            Token::Word(text) => text.as_str(),
            Token::Character(byte) if matches!(kind, FieldKind::Bytes | FieldKind::Text) => {
                return Literal::of(&Token::Quoted(vec![*byte]), kind, (name, names), at.clone());
            }
            Token::Character(byte) => {
                character = byte.to_string();
                character.as_str()
            }
            Token::Quoted(bytes) => {
                return match kind {
                    FieldKind::Date => match core::str::from_utf8(bytes).ok().and_then(date::parse)
                    {
                        Some(ns) => Ok(Literal::Time(ns)),
                        None => wrong(format!("this is not {}{}", article(kind), example(kind))),
                    },
                    FieldKind::Bytes => Ok(Literal::Bytes(bytes.clone().into())),
                    FieldKind::Text => match core::str::from_utf8(bytes) {
                        Ok(text) => Ok(Literal::Text(text.into())),
                        Err(_) => wrong("the text is not UTF-8".to_owned()),
                    },
                    _ if !names.is_empty() => {
                        wrong(no_such_name(name, &String::from_utf8_lossy(bytes), names))
                    }
                    _ => wrong(format!(
                        "{name} is {}: write it without quotation marks",
                        article(kind)
                    )),
                };
            }
            _ => return wrong(format!("{} is expected here", article(kind))),
        };
        let parsed = match kind {
            FieldKind::Presence => {
                return wrong(format!(
                    "{name} has no value: write it alone, to test whether it is there"
                ));
            }
            FieldKind::Decimal(bits) | FieldKind::Hex(bits) => match integer(text) {
                Some(number) if number < 0 => None,
                Some(number) if number >> bits != 0 => {
                    let most = (1_i64 << bits) - 1;
                    return wrong(format!(
                        "{} is too large for {name}: at most {most}",
                        quoted(text)
                    ));
                }
                other => other.map(Literal::Integer),
            },
            FieldKind::Signed => integer(text).map(Literal::Integer),
            FieldKind::Boolean => match text {
                "0" | "false" | "False" | "FALSE" => Some(Literal::Integer(0)),
                "1" | "true" | "True" | "TRUE" => Some(Literal::Integer(1)),
                _ => None,
            },
            FieldKind::Time => seconds(text).map(Literal::Time),
            FieldKind::Date => date::parse(text).or_else(|| seconds(text)).map(Literal::Time),
            FieldKind::Ethernet => hexadecimal(text)
                .and_then(|bytes| bytes.first_chunk().copied().filter(|_| bytes.len() == 6))
                .map(Literal::Ethernet),
            FieldKind::Ipv4 => prefixed(text, 32).and_then(|(address, prefix)| {
                let address: Ipv4Addr = address.parse().ok()?;
                Some(Literal::Ipv4(address.to_bits(), prefix))
            }),
            FieldKind::Ipv6 => prefixed(text, 128).and_then(|(address, prefix)| {
                let address: Ipv6Addr = address.parse().ok()?;
                Some(Literal::Ipv6(address.to_bits(), prefix))
            }),
            FieldKind::Bytes => hexadecimal(text).map(|bytes| Literal::Bytes(bytes.into())),
            FieldKind::Text => Some(Literal::Text(text.into())),
        };
        match parsed {
            Some(literal) => Ok(literal),
            None if !names.is_empty() && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                wrong(no_such_name(name, text, names))
            }
            None => wrong(format!("{} is not {}{}", quoted(text), article(kind), example(kind))),
        }
    }

    /// The order of a value relative to the constant; `None` where they cannot be compared.
    /// An address compares by the bits of the prefix.
    #[inline]
    pub(super) fn order(&self, value: &Value<'_>) -> Option<Ordering> {
        Some(match (value, self) {
            (Value::Integer(a), Literal::Integer(b)) | (Value::Time(a), Literal::Time(b)) => {
                a.cmp(b)
            }
            (Value::Ethernet(a), Literal::Ethernet(b)) => a.cmp(b),
            (Value::Ipv4(a), Literal::Ipv4(b, prefix)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(*prefix)).unwrap_or(0);
                (a & mask).cmp(&(b & mask))
            }
            (Value::Ipv6(a), Literal::Ipv6(b, prefix)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(*prefix)).unwrap_or(0);
                (a & mask).cmp(&(b & mask))
            }
            (Value::Bytes(a), Literal::Bytes(b)) => (*a).cmp(b),
            (Value::Text(a), Literal::Text(b)) => (*a).cmp(b),
            _ => return None,
        })
    }

    /// Whether the constant is a part of a value.
    #[inline]
    pub(super) fn is_in(&self, value: &Value<'_>) -> bool {
        match (value, self) {
            (Value::Bytes(hay), Literal::Bytes(needle)) => contains(hay, needle),
            (Value::Text(hay), Literal::Text(needle)) => hay.contains(&**needle),
            _ => false,
        }
    }
}

fn no_such_name(field: &str, text: &str, names: &[(i64, &str)]) -> String {
    let text = text.to_lowercase();
    let score = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &text);
    let scored = names.iter().map(|(_, name)| (score(name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.75);
    if let Some((_, name)) = best {
        return format!("{field} has no value of that name; did you mean \"{name}\"?");
    }
    const MAX: usize = 4;
    let some: Vec<String> = names.iter().take(MAX).map(|(_, name)| format!("\"{name}\"")).collect();
    let more = if names.len() > MAX { " and others" } else { "" };
    format!("{field} has no value of that name; it has {}{more}, and numbers", some.join(", "))
}

/// Whether `needle` is in `hay`.
fn contains(hay: &[u8], needle: &[u8]) -> bool {
    let Some(first) = needle.first() else { return true };
    let Some(last) = hay.len().checked_sub(needle.len()) else { return false };
    let starts = hay.get(..=last).unwrap_or_default().iter().enumerate();
    let mut starts = starts.filter(|(_, byte)| *byte == first);
    starts.any(|(at, _)| hay.get(at..at + needle.len()) == Some(needle))
}

/// Decimal, `0x` hexadecimal, or octal after a 0.
pub(super) fn integer(text: &str) -> Option<i64> {
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let prefixed = |lower: &str, upper: &str| {
        digits.strip_prefix(lower).or_else(|| digits.strip_prefix(upper))
    };
    let (digits, radix) = match (prefixed("0x", "0X"), prefixed("0b", "0B")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
        _ => (digits, 10),
    };
    let number = u32::from_str_radix(digits, radix).ok().map(i64::from)?;
    Some(if negative { -number } else { number })
}

/// Decimal seconds with up to 9 decimals, in nanoseconds.
fn seconds(text: &str) -> Option<i64> {
    let (digits, negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty())
        || !is_number(whole)
        || !is_number(part)
        || part.len() > 9
    {
        return None;
    }
    let nanoseconds: i64 = format!("{part:0<9}").parse().ok()?;
    let whole_seconds = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let total = whole_seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)?;
    Some(if negative { -total } else { total })
}

/// Bytes in hexadecimal, two digits each, with `:`, `-` or nothing between them.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &str| {
        let is_pair = pair.len() == 2 && pair.bytes().all(|it| it.is_ascii_hexdigit());
        u8::from_str_radix(pair, 16).ok().filter(|_| is_pair)
    };
    // Cisco's form has four digits between dots.
    if text.contains('.') {
        let is_quad = |part: &str| part.len() == 4;
        let joined: String = text.split('.').filter(|part| is_quad(part)).collect();
        return if text.split('.').all(is_quad) { hexadecimal(&joined) } else { None };
    }
    let separator = [':', '-'].into_iter().find(|it| text.contains(*it));
    if let Some(separator) = separator {
        return text.split(separator).map(byte).collect();
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // One byte may have one digit.
    if digits.len() == 1 {
        return u8::from_str_radix(digits, 16).ok().map(|byte| vec![byte]);
    }
    let places = (0..digits.len()).step_by(2);
    let bytes: Option<Vec<u8>> = places.map(|at| byte(digits.get(at..at + 2)?)).collect();
    bytes.filter(|bytes| !bytes.is_empty())
}

/// An address and the length of its prefix.
fn prefixed(text: &str, longest: u8) -> Option<(&str, u8)> {
    let Some((address, prefix)) = text.split_once('/') else { return Some((text, longest)) };
    prefix.parse().ok().filter(|prefix| *prefix <= longest).map(|prefix| (address, prefix))
}

fn article(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Presence => "a name alone",
        FieldKind::Decimal(_) | FieldKind::Hex(_) => "an unsigned number",
        FieldKind::Signed => "a number",
        FieldKind::Boolean => "0 or 1",
        FieldKind::Time => "a time in seconds",
        FieldKind::Date => "a date",
        FieldKind::Ethernet => "an Ethernet address",
        FieldKind::Ipv4 => "an IPv4 address",
        FieldKind::Ipv6 => "an IPv6 address",
        FieldKind::Bytes => "a sequence of bytes",
        FieldKind::Text => "a text",
    }
}

fn example(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Decimal(_) | FieldKind::Hex(_) => ", such as 80 or 0x50",
        FieldKind::Time => ", such as 0.25",
        FieldKind::Date => ", such as \"2023-11-14 22:13:20\" (UTC)",
        FieldKind::Ethernet => ", such as 00:11:22:33:44:55",
        FieldKind::Ipv4 => ", such as 10.0.0.1 or 10.0.0.0/8",
        FieldKind::Ipv6 => ", such as fd00::1 or fd00::/8",
        FieldKind::Bytes => ", such as 47:45:54 or \"GET\"",
        _ => "",
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Integer(number) => write!(f, "{number}"),
            Literal::Time(ns) => Value::Time(*ns).write(FieldKind::Time, f),
            Literal::Ethernet(address) => Value::Ethernet(*address).write(FieldKind::Ethernet, f),
            Literal::Ipv4(address, 32) => write!(f, "{}", Ipv4Addr::from_bits(*address)),
            Literal::Ipv4(address, prefix) => {
                write!(f, "{}/{prefix}", Ipv4Addr::from_bits(*address))
            }
            Literal::Ipv6(address, 128) => write!(f, "{}", Ipv6Addr::from_bits(*address)),
            Literal::Ipv6(address, prefix) => {
                write!(f, "{}/{prefix}", Ipv6Addr::from_bits(*address))
            }
            Literal::Bytes(bytes) => {
                f.write_str("\"")?;
                bytes.iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
                f.write_str("\"")
            }
            Literal::Text(text) => {
                f.write_str("\"")?;
                for c in text.chars() {
                    match c {
                        '"' | '\\' => write!(f, "\\{c}")?,
                        c => write!(f, "{c}")?,
                    }
                }
                f.write_str("\"")
            }
        }
    }
}
