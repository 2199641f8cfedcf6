//! The payload rate of a line rate: the overhead of each frame.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use super::{CalcError, check_mtu};
use crate::{ETHERNET_FRAMING, IpVersion, Payload, VLAN_TAG, figures, share_of};
use problem::Field;
use units::BitRate;

/// UDP header in bytes (RFC 768).
const UDP_HEADER: u32 = 8;

/// Minimum MTU of IPv6 (RFC 8200, section 5).
const MIN_MTU_IPV6: u32 = 1_280;

const SOURCE: &str = "IEEE 802.3; RFC 791, 8200, 9293, 7323 (appendix A), 2018 (section 3), 768";

/// A line and the contents of its frames.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadQuestion {
    /// The Ethernet line rate, including preamble and inter-frame gap.
    pub rate: BitRate,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// The IP version.
    pub ip: IpVersion,
    /// VLAN tags on each frame, 0 to 2.
    pub vlan_tags: u32,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// SACK blocks in each segment: 0 to 3 with timestamps, 0 to 4 without.
    pub sack_blocks: u32,
    /// UDP instead of TCP.
    pub udp: bool,
}

impl OverheadQuestion {
    fn payload(&self) -> Payload {
        let framing = ETHERNET_FRAMING + VLAN_TAG * self.vlan_tags;
        Payload {
            mtu: self.mtu,
            ip: self.ip,
            timestamps: self.timestamps,
            sack_blocks: self.sack_blocks,
            framing,
        }
    }
}

/// Computes the payload share of a frame, and the payload rate.
///
/// # Errors
/// If the frame is not possible.
pub fn overhead(question: &OverheadQuestion) -> Result<CalcResult, CalcError> {
    let &OverheadQuestion { rate, mtu, ip, vlan_tags, timestamps, sack_blocks, udp } = question;
    check_mtu(mtu, if ip == IpVersion::Ipv6 { MIN_MTU_IPV6 } else { 0 })?;
    if vlan_tags > 2 {
        let tags = format!("{vlan_tags} VLAN tags");
        return Err(CalcError::Frame(tags, Field::Vlan, "0, 1 or 2 (IEEE 802.1ad)"));
    }
    let most = if timestamps { 3 } else { 4 };
    if sack_blocks > most {
        let blocks = format!("{sack_blocks} SACK blocks");
        let room = "up to 3, or up to 4 without timestamps (RFC 2018, section 3)";
        return Err(CalcError::Frame(blocks, Field::Sack, room));
    }
    let payload = question.payload();
    let bytes =
        if udp { mtu.saturating_sub(ip.header() + UDP_HEADER) } else { payload.mss().unwrap_or(0) };
    let wire = payload.wire_bytes();
    let share = f64::from(bytes) / wire as f64;
    let case = case_name(question);
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "overhead",
        asked: Entries(vec![
            ("rate_bps", Some(Value::Rate(rate))),
            ("mtu_bytes", Some(Value::Count(u64::from(mtu)))),
            ("case", Some(Value::Text(case.clone()))),
        ]),
        answers: vec![
            Answer {
                key: "payload_bps",
                label: "payload".to_owned(),
                value: Some(Value::Rate(rate.scaled(share))),
                equation: format!(
                    "rate x payload / frame = {} x {bytes} / {wire}: {case}",
                    figures::rate(rate)
                ),
                source: SOURCE,
            },
            Answer {
                key: "payload_share",
                label: "share".to_owned(),
                value: Some(Value::Share(share)),
                equation: format!("payload / frame = {bytes} / {wire}"),
                source: SOURCE,
            },
            Answer {
                key: "frames_per_s",
                label: "frames per second".to_owned(),
                value: Some(Value::Number((rate.as_f64() / (wire as f64 * 8.0)).round())),
                equation: format!("rate / frame = {} / ({wire} x 8 bit)", figures::rate(rate)),
                source: SOURCE,
            },
        ],
        holds: holds(),
        tables: vec![parts(question, bytes, wire), cases(rate, vlan_tags)],
        curve: None,
    })
}

fn holds() -> Vec<String> {
    vec![
        "Full-sized frames without retransmissions. Data segments of a one-way transfer have no \
         SACK blocks: those are in the ACKs of the opposite direction, and only after a loss. \
         The rate is Ethernet's, after line coding; Wi-Fi and PPPoE have more overhead."
            .to_owned(),
        "The rows '12 + 24' follow a published calculation with 2.314 and 2.282 of 2.5 Gbit/s: 3 \
         SACK blocks in every segment, without the 4 bytes of the SACK option header and padding."
            .to_owned(),
    ]
}

fn case_name(question: &OverheadQuestion) -> String {
    let ip = if question.ip == IpVersion::Ipv4 { "IPv4" } else { "IPv6" };
    let mut name = match (question.udp, question.timestamps) {
        (true, _) => format!("UDP over {ip}"),
        (false, true) => format!("TCP over {ip}, timestamps"),
        (false, false) => format!("TCP over {ip}, no timestamps"),
    };
    if !question.udp {
        name += &match question.sack_blocks {
            0 => ", one-way data".to_owned(),
            1 => ", 1 SACK block in every segment".to_owned(),
            n => format!(", {n} SACK blocks in every segment"),
        };
    }
    match question.vlan_tags {
        0 => {}
        1 => name += ", 1 VLAN tag",
        n => name += &format!(", {n} VLAN tags"),
    }
    name
}

/// The parts of a frame.
fn parts(question: &OverheadQuestion, payload: u32, wire: u64) -> Table {
    let tcp = question.payload();
    let transport = if question.udp { UDP_HEADER } else { 20 };
    let stamps = if question.timestamps { 12 } else { 0 };
    let options: &[(&str, u32)] = if question.udp {
        &[]
    } else {
        &[("TCP timestamps, padded", stamps), ("SACK option", tcp.options() - stamps)]
    };
    let before = [
        ("preamble and SFD", 8),
        ("Ethernet header", 14),
        ("VLAN tags", VLAN_TAG * question.vlan_tags),
        ("IP header", question.ip.header()),
        (if question.udp { "UDP header" } else { "TCP header" }, transport),
    ];
    let after = [("payload", payload), ("frame check sequence", 4), ("inter-frame gap", 12)];
    let row = |name: &str, bytes: u64, marked| Row {
        cells: vec![
            Some(Value::Text(name.to_owned())),
            Some(Value::Count(bytes)),
            Some(Value::Share(bytes as f64 / wire as f64)),
        ],
        marked,
    };
    let rows = before.iter().chain(options).chain(&after).filter(|(_, bytes)| *bytes > 0);
    let mut rows: Vec<Row> =
        rows.map(|(name, bytes)| row(name, u64::from(*bytes), *name == "payload")).collect();
    rows.push(row("total on the wire", wire, false));
    Table {
        title: "a full-sized frame".to_owned(),
        columns: vec![
            Column { key: "part", title: "part" },
            Column { key: "bytes", title: "bytes" },
            Column { key: "share", title: "share" },
        ],
        rows,
    }
}

/// Common cases at the same rate.
fn cases(rate: BitRate, vlan_tags: u32) -> Table {
    use IpVersion::{Ipv4, Ipv6};
    let framing = ETHERNET_FRAMING + VLAN_TAG * vlan_tags;
    let tcp =
        |mtu, ip, timestamps, sack_blocks| Payload { mtu, ip, timestamps, sack_blocks, framing };
    let mut rows = Vec::new();
    let mut add = |name: &str, mtu: u32, payload: Option<u32>| {
        let wire = mtu + framing;
        let share = payload.and_then(|payload| share_of(payload, wire));
        rows.push(Row {
            cells: vec![
                Some(Value::Text(name.to_owned())),
                Some(Value::Count(u64::from(mtu))),
                payload.map(|payload| Value::Count(u64::from(payload))),
                share.map(Value::Share),
                share.map(|share| Value::Rate(rate.scaled(share))),
            ],
            marked: false,
        });
    };
    for mtu in [1500, 9000] {
        for (ip, name) in [(Ipv4, "TCP/IPv4"), (Ipv6, "TCP/IPv6")] {
            let one_way = tcp(mtu, ip, true, 0).mss();
            add(&format!("{name} one-way data, timestamps"), mtu, one_way);
            if mtu > 1500 {
                continue;
            }
            add(&format!("{name} no timestamps"), mtu, tcp(mtu, ip, false, 0).mss());
            add(&format!("{name} timestamps, 3 SACK blocks"), mtu, tcp(mtu, ip, true, 3).mss());
            let counted = one_way.and_then(|mss| mss.checked_sub(24));
            add(&format!("{name} options counted 12 + 24"), mtu, counted);
        }
        add("UDP/IPv4", mtu, Some(mtu - Ipv4.header() - UDP_HEADER));
        add("UDP/IPv6", mtu, Some(mtu - Ipv6.header() - UDP_HEADER));
    }
    Table {
        title: format!("payload of a {} line", figures::rate(rate)),
        columns: vec![
            Column { key: "case", title: "case" },
            Column { key: "mtu_bytes", title: "MTU" },
            Column { key: "payload_bytes", title: "payload" },
            Column { key: "share", title: "share" },
            Column { key: "payload_bps", title: "rate" },
        ],
        rows,
    }
}

#[cfg(test)]
mod tests;
