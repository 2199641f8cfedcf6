//! The values of fields.

use crate::date;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// It is there or not, without a value.
    Presence,
    /// An unsigned number of so many bits.
    Decimal(u8),
    /// The same, shown in hexadecimal.
    Hex(u8),
    /// A signed number of 32 bits.
    Signed,
    /// A bit.
    Boolean,
    /// A time or duration in nanoseconds; in filters seconds.
    Time,
    /// A date with a time, in nanoseconds since 1970.
    Date,
    /// An Ethernet address.
    Ethernet,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// Bytes, as far as they were captured.
    Bytes,
    /// Text from the file: not to be trusted.
    Text,
}

impl FieldKind {
    /// The kind in a few words, for tables of fields.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FieldKind::Presence => "presence",
            FieldKind::Decimal(_) | FieldKind::Hex(_) => "unsigned",
            FieldKind::Signed => "signed",
            FieldKind::Boolean => "boolean",
            FieldKind::Time => "seconds",
            FieldKind::Date => "date",
            FieldKind::Ethernet => "Ethernet address",
            FieldKind::Ipv4 => "IPv4 address",
            FieldKind::Ipv6 => "IPv6 address",
            FieldKind::Bytes => "bytes",
            FieldKind::Text => "text",
        }
    }

    /// Whether it is a number, of which bits can be masked.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self, FieldKind::Decimal(_) | FieldKind::Hex(_) | FieldKind::Signed)
    }
}

/// A value of a field in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// The field is there.
    Present,
    /// A number, or 0 and 1 of a bit.
    Integer(i64),
    /// Nanoseconds.
    Time(i64),
    /// An Ethernet address.
    Ethernet([u8; 6]),
    /// An IPv4 address.
    Ipv4(u32),
    /// An IPv6 address.
    Ipv6(u128),
    /// Bytes as captured.
    Bytes(&'a [u8]),
    /// Text of the file.
    Text(&'a str),
}

/// Bytes that are shown of a value.
const MAX_SHOWN: usize = 32;

impl Value<'_> {
    /// The value as it is shown for a field of that kind.
    pub fn write(&self, kind: FieldKind, out: &mut impl fmt::Write) -> fmt::Result {
        match *self {
            Value::Present => Ok(()),
            Value::Integer(number) => match kind {
                FieldKind::Hex(bits) => {
                    write!(out, "0x{number:0width$x}", width = usize::from(bits) / 4)
                }
                _ => write!(out, "{number}"),
            },
            Value::Time(ns) if kind == FieldKind::Date => date::write(ns, out),
            Value::Time(ns) => {
                let sign = if ns < 0 { "-" } else { "" };
                let ns = ns.unsigned_abs();
                write!(out, "{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
            }
            Value::Ethernet([a, b, c, d, e, f]) => {
                write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
            }
            Value::Ipv4(address) => write!(out, "{}", Ipv4Addr::from_bits(address)),
            Value::Ipv6(address) => write!(out, "{}", Ipv6Addr::from_bits(address)),
            Value::Bytes(bytes) => {
                for byte in bytes.iter().take(MAX_SHOWN) {
                    write!(out, "{byte:02x}")?;
                }
                if bytes.len() > MAX_SHOWN {
                    write!(out, "... ({} bytes)", bytes.len())?;
                }
                Ok(())
            }
            Value::Text(text) => out.write_str(text),
        }
    }
}
