//! Output in the format of iperf 2, for programs that parse it.

use crate::client::ClientConfig;
use crate::{DatagramStats, Event, IntervalReport, Label};
use iperf2_proto::{Format, Mode, Pace, quantity::QuantityError};
use std::net::SocketAddr;
use std::time::Duration;
use units::{share, significant};

const RULE: &str = "------------------------------------------------------------\n";

/// The columns of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Columns {
    Plain,
    Received,
}

/// Formats the events of one endpoint; keeps track of the last table header.
pub struct Text {
    format: Format,
    udp: bool,
    window: Option<u64>,
    client: bool,
    /// Of a UDP client.
    pub pace: Option<(ClientConfig, Option<Pace>)>,
    columns: Option<Columns>,
}

impl Text {
    /// Of a client or a server, with the socket buffer that was asked for, bytes.
    #[must_use]
    pub fn new(format: Format, udp: bool, window: Option<u64>, client: bool) -> Self {
        Text { format, udp, window, client, pace: None, columns: None }
    }

    fn protocol(&self) -> &'static str {
        if self.udp { "UDP" } else { "TCP" }
    }

    /// The banner of a server.
    pub fn listening(&self, port: u16, buffer: Option<u64>) -> String {
        let first = format!("Server listening on {} port {port}\n", self.protocol());
        format!("{RULE}{first}{}{RULE}", self.buffer(buffer))
    }

    fn buffer(&self, bytes: Option<u64>) -> String {
        let Some(bytes) = bytes else { return String::new() };
        let name = if self.udp { "UDP buffer" } else { "TCP window" };
        let size = |bytes| {
            let size = Format::default().size(bytes);
            size.strip_suffix('s').map_or_else(|| size.clone(), str::to_owned)
        };
        let note = match self.window {
            Some(asked) => format!("(asked: {})", size(asked).trim_start()),
            None => "(default)".to_owned(),
        };
        format!("{name} size: {} {note}\n", size(bytes))
    }

    /// The lines of an event, each with its line break; empty if it has none.
    pub fn lines(&mut self, event: &Event) -> String {
        match event {
            Event::Connecting { peer, buffer } => self.connecting(*peer, *buffer),
            Event::Listening { port } => self.listening(*port, None),
            Event::Connected { label, local, peer, mode, tcp } => {
                self.columns = None;
                let direction = match mode {
                    Mode::Reverse => " (reverse)",
                    Mode::FullDuplex => " (full-duplex)",
                    Mode::Normal | Mode::TradeOff | Mode::Dual => "",
                };
                let tcp = tcp.map_or_else(String::new, |tcp| {
                    format!(" (icwnd/mss/irtt={}/{}/{})", tcp.window_kib, tcp.mss, tcp.rtt_us)
                });
                // A client's -R stream is its only one: only its reports have the star.
                let star = label.reverse && !(self.client && *mode == Mode::Reverse);
                let label = Label { reverse: star, ..*label };
                format!(
                    "{}local {} port {} connected with {} port {}{direction}{tcp}\n",
                    name(Some(label)),
                    local.ip(),
                    local.port(),
                    peer.ip(),
                    peer.port()
                )
            }
            Event::Interval(row) => self.row(row),
            Event::Sent { label, datagrams } => {
                format!("[{:3}] Sent {datagrams} datagrams\n", label.id)
            }
            Event::Report { label, ends, report } => {
                let row = IntervalReport {
                    label: Some(*label),
                    ends: Some(*ends),
                    sending: true,
                    from: Duration::ZERO,
                    to: report.time,
                    bytes: report.bytes,
                    whole: true,
                    received: Some(DatagramStats {
                        datagrams: report.datagrams,
                        lost: report.lost,
                        late: report.late,
                        jitter: Some(report.jitter),
                    }),
                };
                self.columns = None;
                format!("[{:3}] Server Report:\n{}", label.id, self.row(&row))
            }
            Event::NoReport { .. } | Event::PeerError { .. } | Event::Suppressed { .. } => {
                String::new()
            }
        }
    }

    fn connecting(&self, peer: SocketAddr, buffer: Option<u64>) -> String {
        let mut text = format!(
            "{RULE}Client connecting to {}, {} port {}\n",
            peer.ip(),
            self.protocol(),
            peer.port()
        );
        if let Some((config, pace)) = &self.pace {
            let length = config.block(peer.is_ipv6());
            let rate =
                pace.unwrap_or(Pace::Bits(iperf2_proto::DEFAULT_RATE)).bits_per_second(length);
            let gap_us = f64::from(length) * 8e6 / rate.max(1) as f64;
            text += &format!("Sending {length} byte datagrams, one in {gap_us:.2} us\n");
        }
        text + &self.buffer(buffer) + RULE
    }

    fn row(&mut self, row: &IntervalReport) -> String {
        let columns = match row.received {
            Some(DatagramStats { jitter: Some(_), .. }) => Columns::Received,
            _ => Columns::Plain,
        };
        let mut text = String::new();
        // A sum has no table header.
        if row.label.is_some() && self.columns.replace(columns) != Some(columns) {
            text += match columns {
                Columns::Plain => "[ ID] Interval       Transfer     Bandwidth\n",
                Columns::Received => {
                    "[ ID] Interval       Transfer     Bandwidth        Jitter   \
                     Lost/Total Datagrams\n"
                }
            };
        }
        let (from, to) = (row.from.as_secs_f64(), row.to.as_secs_f64());
        let time = format!("{}{from:.4}-{to:.4} sec", name(row.label));
        text += &format!(
            "{time}  {}  {}",
            self.format.size(row.bytes),
            self.format.rate(row.bytes, to - from)
        );
        if let Some(DatagramStats { datagrams, lost, late, jitter }) = row.received {
            let jitter =
                jitter.map_or_else(String::new, |j| format!("{:6.3} ms", j.as_secs_f64() * 1e3));
            let percent = significant(100.0 * share(lost, datagrams), 2);
            text += &format!("  {jitter} {lost}/{datagrams} ({percent}%)");
            if late > 0 {
                text += &format!("\n{time}  {late} datagrams received out-of-order");
            }
        }
        text + "\n"
    }
}

fn name(label: Option<Label>) -> String {
    match label {
        Some(Label { id, reverse: false }) => format!("[{id:3}] "),
        Some(Label { id, reverse: true }) => format!("[{:>3}] ", format!("*{id}")),
        None => "[SUM] ".to_owned(),
    }
}

/// `-S`: a number, or a name of RFC 2474 (csN), 2597 (afXY), 3246 (ef), 1349.
pub fn tos(text: &str) -> Result<u8, QuantityError> {
    let digits = |text: &str| -> Option<Vec<u8>> {
        text.bytes().map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect()
    };
    let class = |prefix: &str| text.strip_prefix(prefix).and_then(digits);
    let found = match text {
        "ef" => Some(0xb8),
        "le" => Some(0x04),
        "lowdelay" => Some(0x10),
        "throughput" => Some(0x08),
        "reliability" => Some(0x04),
        _ => match (class("cs").as_deref(), class("af").as_deref()) {
            (Some(&[class @ 0..=7]), _) => Some(class << 5),
            (_, Some(&[class @ 1..=4, drop @ 1..=3])) => Some(class << 5 | drop << 3),
            _ => match text.strip_prefix("0x") {
                Some(hex) => u8::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            },
        },
    };
    found.ok_or_else(|| QuantityError::TypeOfService(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(received: Option<DatagramStats>) -> IntervalReport {
        IntervalReport {
            label: Some(Label { id: 1, reverse: false }),
            ends: None,
            sending: false,
            from: Duration::ZERO,
            to: Duration::from_micros(2_000_400),
            bytes: 12_505_290,
            whole: true,
            received,
        }
    }

    /// The output of version 2.1.8.
    #[test]
    fn reports() {
        let mut text = Text::new(Format::default(), true, None, true);
        let received = DatagramStats {
            datagrams: 8507,
            lost: 4,
            late: 0,
            jitter: Some(Duration::from_micros(2)),
        };
        assert_eq!(
            text.lines(&Event::Interval(row(Some(received)))),
            "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
             [  1] 0.0000-2.0004 sec  11.9 MBytes  50.0 Mbits/sec   0.002 ms 4/8507 (0.047%)\n"
        );
        // The header once, the sum without jitter.
        let sum = IntervalReport {
            label: None,
            received: Some(DatagramStats { jitter: None, late: 1, ..received }),
            ..row(None)
        };
        assert_eq!(
            text.lines(&Event::Interval(sum)),
            "[SUM] 0.0000-2.0004 sec  11.9 MBytes  50.0 Mbits/sec   4/8507 (0.047%)\n\
             [SUM] 0.0000-2.0004 sec  1 datagrams received out-of-order\n"
        );
        let plain = IntervalReport { label: Some(Label { id: 2, reverse: true }), ..row(None) };
        assert_eq!(
            text.lines(&Event::Interval(plain)),
            "[ ID] Interval       Transfer     Bandwidth\n\
             [ *2] 0.0000-2.0004 sec  11.9 MBytes  50.0 Mbits/sec\n"
        );
    }

    #[test]
    fn banners() {
        let text = Text::new(Format::default(), false, None, false);
        assert!(text.listening(5001, Some(131_072)).contains(
            "Server listening on TCP port 5001\nTCP window size:  128 KByte (default)\n"
        ));
    }

    #[test]
    fn types_of_service_are_parsed() {
        assert_eq!(tos("ef"), Ok(184));
        assert_eq!(tos("cs1"), Ok(32));
        assert_eq!(tos("af41"), Ok(136));
        assert_eq!(tos("0x10"), Ok(16));
        assert!(["", "af5", "cs8", "256", "-1", "afxy"].iter().all(|text| tos(text).is_err()));
    }
}
