//! The fields of payloads: HTTP, DNS, TLS, DHCP, NTP, SSH, and protocols of lines. Each segment is
//! read by itself.

use super::dns::{self, Message};
use super::{Emit, http, lines, tls};
use crate::application::{Application, Payload};
use crate::field::Field;
use crate::value::Value;
use crate::view::PacketView;
use capture::dissect::Protocol;

pub(crate) fn values(view: &PacketView<'_>, owner: Application, field: Field, emit: Emit<'_>) {
    if owner == Application::Dns
        && let Some(bytes) = multicast_dns(view)
    {
        return dns::values(Message { bytes, is_multicast: true }, field, emit);
    }
    let Some(payload) = Payload::of(view).filter(|it| it.has_fields_of(owner)) else { return };
    match owner {
        Application::Http => http::values(payload.bytes, field, emit),
        Application::Dns => dns::values(Message::of(&payload), field, emit),
        Application::Tls => tls::values(payload.bytes, field, emit),
        Application::Dhcp => dhcp(payload.bytes, field, emit),
        Application::Ntp => ntp(payload.bytes, field, emit),
        Application::Ftp | Application::Smtp | Application::Sip => {
            lines::values(&payload, field, emit);
        }
        Application::Ssh => ssh(payload.bytes, field, emit),
        _ => {}
    }
}

/// The message of multicast DNS, which has a layer of its own.
fn multicast_dns<'a>(view: &PacketView<'a>) -> Option<&'a [u8]> {
    let mut layers = view.layers.iter().enumerate();
    let (place, (_, layer)) = layers.find(|(_, (protocol, _))| *protocol == Protocol::Mdns)?;
    Some(view.bytes(place, layer))
}

/// Big-endian number of so many bytes.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<i64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte)))
}

/// Hands over a text that may not be UTF-8.
pub(super) fn put_text(bytes: &[u8], emit: Emit<'_>) {
    emit(Value::Text(&String::from_utf8_lossy(bytes)));
}

/// RFC 2131, section 2; options begin behind the magic number (RFC 2132).
fn dhcp(bytes: &[u8], field: Field, emit: Emit<'_>) {
    const OPTIONS: usize = 240;
    let address = |at| number(bytes, at, 4).and_then(|it| u32::try_from(it).ok()).map(Value::Ipv4);
    let value = match field {
        Field::DhcpType => number(bytes, 0, 1).map(Value::Integer),
        Field::DhcpId => number(bytes, 4, 4).map(Value::Integer),
        Field::DhcpIpClient => address(12),
        Field::DhcpIpYour => address(16),
        Field::DhcpIpServer => address(20),
        Field::DhcpHwMacAddr if bytes.get(1..3) == Some(&[1, 6]) => {
            bytes.get(28..).and_then(<[u8]>::first_chunk).copied().map(Value::Ethernet)
        }
        _ => None,
    };
    if let Some(value) = value {
        return emit(value);
    }
    let mut rest = bytes.get(OPTIONS..).unwrap_or_default();
    while let [kind, tail @ ..] = rest {
        if *kind == 0 {
            rest = tail;
            continue;
        }
        if field == Field::DhcpOptionType {
            emit(Value::Integer(i64::from(*kind)));
        }
        let Some((length, tail)) = tail.split_first().filter(|_| *kind != 255) else { return };
        let Some((data, tail)) = tail.split_at_checked(usize::from(*length)) else { return };
        match (field, *kind, data) {
            (Field::DhcpOptionDhcp, 53, [kind]) => emit(Value::Integer(i64::from(*kind))),
            (Field::DhcpOptionHostname, 12, name) => put_text(name, emit),
            _ => {}
        }
        rest = tail;
    }
}

/// RFC 5905, section 7.3.
fn ntp(bytes: &[u8], field: Field, emit: Emit<'_>) {
    let first = number(bytes, 0, 1);
    let number = match field {
        Field::NtpFlagsMode => first.map(|it| it & 7),
        Field::NtpFlagsVn => first.map(|it| it >> 3 & 7),
        Field::NtpStratum => number(bytes, 1, 1),
        _ => None,
    };
    super::put(number, emit);
}

/// The line that an end begins with (RFC 4253, section 4.2).
fn ssh(bytes: &[u8], field: Field, emit: Emit<'_>) {
    if field == Field::SshProtocol && bytes.starts_with(b"SSH-") {
        let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        put_text(bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default(), emit);
    }
}
