//! The Ethernet link, or the provisioned rate, that a measured goodput identifies.

use super::CalcError;
use super::result::{Answer, CalcResult, Column, Entries, Row, SHEET_SCHEMA, Table, Value};
use crate::{IpVersion, LINE_RATES, LineClass, Payload, figures, line_class};
use units::BitRate;

const SOURCE: &str = "IEEE 802.3; RFC 791, 8200, 9293, 7323 (appendix A)";

const VERSIONS: [IpVersion; 2] = [IpVersion::Ipv4, IpVersion::Ipv6];

/// A measured goodput.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineQuestion {
    /// The goodput of a bulk transfer.
    pub goodput: BitRate,
    /// The IP version of the transfer; both are tried where it is not known.
    pub ip: Option<IpVersion>,
    /// The rate that the provider sells.
    pub plan: Option<BitRate>,
}

/// Finds the link whose TCP payload rate the goodput is, and its share of a plan's rate.
///
/// # Errors
/// If the plan's rate is zero.
pub fn line(question: &LineQuestion) -> Result<CalcResult, CalcError> {
    let &LineQuestion { goodput, ip, plan } = question;
    if plan == Some(BitRate::ZERO) {
        return Err(CalcError::ZeroPlan);
    }
    let tried = VERSIONS.into_iter().filter(|version| ip.is_none_or(|ip| ip == *version));
    let found: Vec<(IpVersion, LineClass)> =
        tried.clone().filter_map(|ip| Some((ip, line_class(goodput, ip)?))).collect();
    // Classes are 60 % apart, so both versions find the same link.
    let link = found.first().map(|(_, class)| class.link);
    let mut answers = vec![Answer {
        key: "link_bps",
        label: "link".to_owned(),
        value: link.map(Value::Rate),
        equation: equation(&found),
        source: SOURCE,
    }];
    answers.extend(plan.map(|plan| share_of(goodput, plan)));
    let headers = tried.map(|ip| format!("{} over {}", header(ip), name(ip)));
    Ok(CalcResult {
        schema: SHEET_SCHEMA,
        calculator: "line",
        asked: Entries(vec![
            ("goodput_bps", Some(Value::Rate(goodput))),
            ("ip", ip.map(|ip| Value::Text(name(ip).to_owned()))),
            ("plan_bps", plan.map(Value::Rate)),
        ]),
        answers,
        holds: vec![
            format!(
                "A frame of 1500 bytes takes 1538 on the wire: preamble 8, header 14, FCS 4, gap \
                 12. Headers of IP (IPv4 20, IPv6 40) and TCP (20, timestamps 12) take {} of it. \
                 VLAN tags, SACK blocks and another MTU change the payload: longhaul calc overhead.",
                headers.collect::<Vec<_>>().join(", ")
            ),
            "For a transfer that no window, loss or CPU limits: the link may be any of the path, \
             at either end."
                .to_owned(),
        ],
        tables: vec![table(link)],
        curve: None,
    })
}

fn equation(found: &[(IpVersion, LineClass)]) -> String {
    let Some((_, class)) = found.first() else {
        return "not the payload rate of an Ethernet link: something else is the limit, such as a \
                plan of another rate, Wi-Fi, a window or loss"
            .to_owned();
    };
    let rates = found.iter().map(|(ip, class)| {
        format!(
            "{} x {} / 1538 = {} over {}",
            figures::rate(class.link),
            1_500 - header(*ip),
            figures::rate(class.goodput),
            name(*ip)
        )
    });
    format!("{}: {}", rates.collect::<Vec<_>>().join(", or "), class.means)
}

fn share_of(goodput: BitRate, plan: BitRate) -> Answer {
    Answer {
        key: "share_of_plan",
        label: "share of the plan".to_owned(),
        value: Some(Value::Share(goodput.as_f64() / plan.as_f64())),
        equation: format!("goodput / plan = {} / {}", figures::rate(goodput), figures::rate(plan)),
        source: "the ratio of the two; headers take 5 to 7 % of a line rate",
    }
}

/// Bytes of IP and TCP headers in a full packet.
const fn header(ip: IpVersion) -> u32 {
    ip.header() + 32
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

    fn ask(rate: &str, ip: Option<IpVersion>, plan: Option<&str>) -> CalcResult {
        let plan = plan.map(|plan| plan.parse().unwrap());
        line(&LineQuestion { goodput: rate.parse().unwrap(), ip, plan }).unwrap()
    }

    #[test]
    fn a_gateway_of_a_gigabit_in_a_plan_of_more() {
        let found = ask("940mbit", Some(IpVersion::Ipv4), None);
        assert_eq!(found.figure("link_bps"), Some(&Value::Rate("1gbit".parse().unwrap())));
        let answer = &found.answers[0];
        assert!(answer.equation.contains("x 1448 / 1538 = 941.48 Mbit/s"), "{answer:?}");
        assert!(answer.equation.contains("plan is faster"), "{answer:?}");
        assert_eq!(found.tables[0].rows.iter().filter(|row| row.marked).count(), 1);
        // 928 is a gigabit over IPv6 and nothing over IPv4.
        assert!(ask("928mbit", Some(IpVersion::Ipv6), None).figure("link_bps").is_some());
        let none = ask("928mbit", Some(IpVersion::Ipv4), None);
        assert_eq!(none.figure("link_bps"), None);
        assert!(none.answers[0].equation.contains("something else"), "{none:?}");
    }

    #[test]
    fn without_a_version_both_are_tried() {
        for (rate, link) in [("2.32gbit", "2.5gbit"), ("930mbit", "1gbit"), ("941mbit", "1gbit")] {
            let found = ask(rate, None, None);
            assert_eq!(
                found.figure("link_bps"),
                Some(&Value::Rate(link.parse().unwrap())),
                "{rate}"
            );
            let over = |ip: &str| found.answers[0].equation.contains(&format!("over {ip}"));
            assert_eq!((over("IPv4"), over("IPv6")), (rate == "941mbit", rate != "941mbit"));
        }
        // 1.2 % below IPv4's payload rate, 0.2 % above IPv6's.
        let either = &ask("930.5mbit", None, None).answers[0].equation;
        assert!(either.contains("over IPv4, or") && either.contains("over IPv6"), "{either}");
        assert_eq!(ask("500mbit", None, None).figure("link_bps"), None);
    }

    #[test]
    fn the_share_of_a_plan() {
        let found = ask("978.75mbit", None, Some("1gbit"));
        assert_eq!(found.figure("share_of_plan"), Some(&Value::Share(0.97875)));
        assert_eq!(found.figure("link_bps"), None);
        let zero = LineQuestion { goodput: BitRate::ZERO, ip: None, plan: Some(BitRate::ZERO) };
        assert_eq!(line(&zero), Err(CalcError::ZeroPlan));
    }
}
