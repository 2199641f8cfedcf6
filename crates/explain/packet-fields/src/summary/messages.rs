//! The last column of multicast DNS, DHCPv6, BPDUs and iperf3's control connections, in Wireshark's
//! words where it has them.

use crate::field::Field;
use crate::iperf3_control::Message;
use crate::names::{DHCPV6_MESSAGES, DNS_TYPES};
use crate::value::Value;
use crate::values::{dhcpv6, stp};
use crate::view::PacketView;
use core::fmt::{self, Write};

/// Questions, records, addresses or messages that are shown of a packet.
const MAX_SHOWN: usize = 8;

/// The numbers of a field.
fn numbers(view: &PacketView<'_>, field: Field) -> Vec<i64> {
    let mut found = Vec::new();
    view.each_value(field, |value| {
        if let Value::Integer(number) = value
            && found.len() < MAX_SHOWN
        {
            found.push(number);
        }
    });
    found
}

fn number(view: &PacketView<'_>, field: Field) -> Option<i64> {
    numbers(view, field).first().copied()
}

/// The values of a field, each behind `before`.
fn values(out: &mut String, view: &PacketView<'_>, field: Field, before: &str) -> fmt::Result {
    let (mut shown, mut written) = (0, Ok(()));
    view.each_value(field, |value| {
        shown += 1;
        if shown <= MAX_SHOWN && written.is_ok() {
            written = out.write_str(before);
            written = written.and_then(|()| value.write(field.description().kind, out));
        }
    });
    written
}

pub(super) fn mdns(out: &mut String, view: &PacketView<'_>) -> fmt::Result {
    let Some(response) = number(view, Field::DnsFlagsResponse) else {
        return out.write_str("malformed");
    };
    let is_response = response == 1;
    let what = if is_response { "Standard query response" } else { "Standard query" };
    write!(out, "{what} 0x{:04x}", number(view, Field::DnsId).unwrap_or(0))?;
    let mut names = Vec::new();
    view.each_value(Field::DnsQryName, |value| {
        if let Value::Text(name) = value
            && names.len() < MAX_SHOWN
        {
            names.push(graphic(name));
        }
    });
    let field = if is_response { Field::DnsRespType } else { Field::DnsQryType };
    for (place, kind) in numbers(view, field).into_iter().enumerate() {
        let known = DNS_TYPES.iter().find(|(its, _)| *its == kind);
        match known.and_then(|(_, long)| long.split(' ').next()) {
            Some(short) => write!(out, " {short}")?,
            None => write!(out, " type {kind}")?,
        }
        if let Some(name) = names.get(place).filter(|_| !is_response) {
            write!(out, " {name}")?;
        }
    }
    Ok(())
}

/// The name with `?` for each character that is not graphic ASCII.
fn graphic(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

pub(super) fn dhcpv6(out: &mut String, view: &PacketView<'_>) -> fmt::Result {
    for (place, kind) in numbers(view, Field::Dhcpv6MsgType).into_iter().enumerate() {
        let gap = if place > 0 { " " } else { "" };
        match DHCPV6_MESSAGES.iter().find(|(its, _)| *its == kind) {
            Some((_, name)) => write!(out, "{gap}{name}")?,
            None => write!(out, "{gap}Message Type {kind}")?,
        }
        if place == 0 && dhcpv6::RELAYED.contains(&kind) {
            values(out, view, Field::Dhcpv6LinkAddr, " L: ")?;
        }
    }
    values(out, view, Field::Dhcpv6Xid, " XID: ")?;
    values(out, view, Field::Dhcpv6DuidBytes, " DUID: ")?;
    values(out, view, Field::Dhcpv6IaAddress, " IAA: ")
}

pub(super) fn stp(out: &mut String, view: &PacketView<'_>) -> fmt::Result {
    let kind = match (number(view, Field::StpType), number(view, Field::StpVersion)) {
        (Some(stp::TOPOLOGY_CHANGE), _) => return out.write_str("Topology Change Notification"),
        (Some(0), _) => "Conf.",
        (Some(stp::RAPID), Some(2)) => "RST.",
        (Some(stp::RAPID), Some(3)) => "MST.",
        (Some(stp::RAPID), Some(4)) => "SPT.",
        _ => return out.write_str("unknown BPDU"),
    };
    let changes = number(view, Field::StpFlagsTc) == Some(1);
    write!(out, "{kind} {}Root = ", if changes { "TC + " } else { "" })?;
    values(out, view, Field::StpRootPriority, "")?;
    values(out, view, Field::StpRootExtension, "/")?;
    values(out, view, Field::StpRootAddress, "/")?;
    values(out, view, Field::StpRootCost, "  Cost = ")?;
    values(out, view, Field::StpPort, "  Port = ")
}

pub(super) fn iperf3(out: &mut String, view: &PacketView<'_>) -> fmt::Result {
    let Some((control, segment)) = view.iperf3.as_ref().zip(view.segment) else { return Ok(()) };
    let (mut found, mut length) = (Vec::new(), None);
    control.each(segment.payload, &mut |message| {
        let text = match message {
            Message::Cookie(cookie) => format!("cookie {cookie}"),
            Message::State(state) => state.to_string(),
            Message::Length(bytes) => {
                length = Some(bytes);
                format!("JSON, {bytes} bytes")
            }
            Message::Text if length.take().is_some() => return,
            Message::Text => "JSON, continued".to_owned(),
            Message::Error => "error numbers".to_owned(),
        };
        if found.len() < MAX_SHOWN {
            found.push(text);
        }
    });
    out.write_str(&found.join(", "))
}
