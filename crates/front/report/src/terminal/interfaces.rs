//! The interfaces of a host with their traffic.

use super::{
    Style,
    line::{Line, block, wrap},
    style,
};
use record::InterfacesReport;
use units::BitRate;

/// Where the columns of figures end, behind the name.
const RECEIVED: usize = 16;
const PACKETS: usize = 10;
const SENT: usize = 18;

/// A row for each interface.
#[must_use]
pub fn interfaces(report: &InterfacesReport, style: &Style) -> String {
    let names = report.interfaces.iter().map(|it| it.name.chars().count());
    let name = names.max().unwrap_or(0).clamp(9, 15);
    let columns = [name + RECEIVED, name + RECEIVED + PACKETS, name + RECEIVED + PACKETS + SENT]
        .map(|column| column + 2);
    let addresses = columns[2] + PACKETS + 2;
    let header = ["received", "pkt/s", "sent"].into_iter().zip(columns);
    let mut line = Line::new(style).put(style::DIM, "interface");
    for (title, column) in header {
        line = line.right(style::DIM, title, column);
    }
    let mut line = line.right(style::DIM, "pkt/s", addresses - 2);
    // Two addresses of IPv6 beside the figures, or all of them below.
    let beside = style.width >= addresses + 48;
    if beside {
        line = line.to(addresses).put(style::DIM, "addresses");
    }
    let mut lines = vec![line];
    for interface in &report.interfaces {
        let figures = [
            rate(interface.received_bps),
            count(interface.received_packets_per_s),
            rate(interface.sent_bps),
        ];
        let mut line = Line::new(style).put(style::STRONG, &interface.name);
        for (figure, column) in figures.iter().zip(columns) {
            line = line.right(style::PLAIN, figure, column);
        }
        line = line.right(style::PLAIN, &count(interface.sent_packets_per_s), addresses - 2);
        let state = if interface.up { "" } else { "down" };
        let addresses_text = interface.addresses.join(" ");
        let indent = if beside { addresses } else { 2 };
        let words = if beside { format!("{addresses_text} {state}") } else { addresses_text };
        let mut texts = wrap(style, words.trim(), style.width.saturating_sub(indent).max(1));
        texts.retain(|text| !text.is_empty());
        if beside && !texts.is_empty() {
            line = line.to(indent).put(style::PLAIN, &texts.remove(0));
        } else if !state.is_empty() {
            line = line.to(addresses).put(style::DIM, state);
        }
        lines.push(line);
        let rest = texts.iter().map(|text| Line::new(style).to(indent).put(style::DIM, text));
        lines.extend(rest);
    }
    block(lines)
}

fn rate(rate: Option<BitRate>) -> String {
    rate.map_or_else(|| "0".to_owned(), |rate| rate.to_string())
}

fn count(per_second: f64) -> String {
    format!("{per_second:.0}")
}

#[cfg(test)]
mod tests {
    use super::super::fit::{assert_fits, styles};
    use super::*;
    use record::InterfaceTraffic;

    #[test]
    fn interfaces_fit_any_terminal() {
        let interface = |name: &str, up| InterfaceTraffic {
            name: name.to_owned(),
            up,
            addresses: vec!["192.0.2.2/24".to_owned(), "2001:db8:1:2:3:4:5:6/64".to_owned()],
            received_bps: Some(BitRate::from_bps(9_870_000_000)),
            sent_bps: None,
            received_packets_per_s: 812_345.0,
            sent_packets_per_s: 0.4,
        };
        let report = InterfacesReport {
            schema: String::new(),
            version: String::new(),
            seconds: 1.0,
            interfaces: vec![interface("eth0", true), interface("a-longer-name-1", false)],
        };
        for style in styles() {
            assert_fits(&interfaces(&report, &style), &style);
        }
    }
}
