//! The Ethernet link, or the provisioned rate, that a measured goodput identifies.

use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use crate::{IpVersion, LINE_RATES, Payload, figures, line_class};
use units::BitRate;

const SOURCE: &str = "IEEE 802.3; RFC 791, 8200, 9293, 7323 (appendix A)";

/// A measured goodput.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineQuestion {
    /// The goodput of a bulk transfer.
    pub goodput: BitRate,
    /// The IP version of the transfer.
    pub ip: IpVersion,
}

/// Finds the link whose TCP payload rate the goodput is.
#[must_use]
pub fn line(question: &LineQuestion) -> CalcResult {
    let &LineQuestion { goodput, ip } = question;
    let class = line_class(goodput, ip);
    let header = ip.header() + 32;
    let equation = match class {
        Some(class) => format!(
            "{} x {} / 1538 = {}: {}",
            figures::rate(class.link),
            1_500 - header,
            figures::rate(class.goodput),
            class.means
        ),
        None => "not the payload rate of an Ethernet link: something else is the limit, such as a \
                 plan of another rate, Wi-Fi, a window or loss"
            .to_owned(),
    };
    CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "line",
        asked: Entries(vec![
            ("goodput_bps", Some(Value::Rate(goodput))),
            ("ip", Some(Value::Text(name(ip).to_owned()))),
        ]),
        answers: vec![Answer {
            key: "link_bps",
            label: "link".to_owned(),
            value: class.map(|class| Value::Rate(class.link)),
            equation,
            source: SOURCE,
        }],
        holds: vec![
            format!(
                "A frame of 1500 bytes takes 1538 on the wire: preamble 8, header 14, FCS 4, gap \
                 12. Headers take {header} of it ({} {}, TCP 20, timestamps 12). VLAN tags, SACK \
                 blocks and another MTU change the payload: longhaul calc overhead.",
                name(ip),
                ip.header()
            ),
            "For a transfer that no window, loss or CPU limits: the link may be any of the path, \
             at either end."
                .to_owned(),
        ],
        tables: vec![table(class.map(|class| class.link))],
        curve: None,
    }
}

const fn name(ip: IpVersion) -> &'static str {
    match ip {
        IpVersion::Ipv4 => "IPv4",
        IpVersion::Ipv6 => "IPv6",
    }
}

fn table(found: Option<BitRate>) -> Table {
    let goodput = |link, ip| Payload::on_ethernet(1_500, ip).goodput(link).map(Value::Rate);
    let rows = LINE_RATES.iter().map(|(link, _)| Row {
        cells: vec![
            Some(Value::Rate(*link)),
            goodput(*link, IpVersion::Ipv4),
            goodput(*link, IpVersion::Ipv6),
        ],
        marked: found == Some(*link),
    });
    Table {
        title: "TCP goodput of Ethernet links".to_owned(),
        columns: vec![
            Column { key: "link_bps", title: "link" },
            Column { key: "ipv4_bps", title: "over IPv4" },
            Column { key: "ipv6_bps", title: "over IPv6" },
        ],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_of_a_gigabit_in_a_plan_of_more() {
        let ask = |rate: &str, ip| line(&LineQuestion { goodput: rate.parse().unwrap(), ip });
        let found = ask("940mbit", IpVersion::Ipv4);
        assert_eq!(found.figure("link_bps"), Some(&Value::Rate("1gbit".parse().unwrap())));
        let answer = &found.answers[0];
        assert!(answer.equation.contains("x 1448 / 1538 = 941.48 Mbit/s"), "{answer:?}");
        assert!(answer.equation.contains("plan is faster"), "{answer:?}");
        assert_eq!(found.tables[0].rows.iter().filter(|row| row.marked).count(), 1);
        // 928 is a gigabit over IPv6 and nothing over IPv4.
        assert!(ask("928mbit", IpVersion::Ipv6).figure("link_bps").is_some());
        let none = ask("928mbit", IpVersion::Ipv4);
        assert_eq!(none.figure("link_bps"), None);
        assert!(none.answers[0].equation.contains("something else"), "{none:?}");
    }
}
