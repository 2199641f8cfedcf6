//! The lines at the end of a test.

use super::facts::{Cpu, End, Head, Protocol, ServerOutput, Side, StreamEnd};
use super::number::{self, Format};
use super::text::{DATAGRAMS, SEPARATOR, begin, datagrams, heading};
use crate::untrusted::{clean, json};

/// From the separator to the last row; a client says [`done`] after it.
#[must_use]
pub fn summary(head: &Head, end: &End, format: Format, verbose: bool) -> Vec<String> {
    let directions = head.directions();
    let columns = match head.asked.protocol {
        Protocol::Tcp if directions.iter().any(|sending| end.counts_retransmits(*sending)) => {
            "         Retr"
        }
        Protocol::Tcp => "",
        Protocol::Udp => DATAGRAMS,
    };
    let mut lines = vec![SEPARATOR.to_owned()];
    if verbose {
        lines.push("Test Complete. Summary Results:".to_owned());
    }
    lines.push(heading(head, columns));
    for sending in directions {
        let table = Table { head, end, format, verbose, sending };
        let streams: Vec<&StreamEnd> =
            end.streams.iter().filter(|stream| stream.sending == sending).collect();
        for stream in &streams {
            let socket = head.stream(stream.id).map_or(0, |stream| stream.socket);
            table.both_ends(&format!("{socket:3}"), stream, false, &mut lines);
        }
        if head.asked.streams > 1 {
            table.both_ends("SUM", &total(&streams, head.asked.streams), true, &mut lines);
        }
        if verbose {
            table.hosts(&mut lines);
        }
    }
    match &end.server_output {
        Some(ServerOutput::Text(text)) => {
            let text: Vec<String> = text.lines().map(clean).collect();
            lines.push(format!("\nServer output:\n{}\n", text.join("\n")));
        }
        Some(ServerOutput::Json(value)) => {
            let text = json(&super::json_format::pretty(value));
            lines.push(format!("\nServer JSON output:\n{text}"));
        }
        None => {}
    }
    lines
}

/// The last lines of a client.
#[must_use]
pub fn done() -> Vec<String> {
    vec![String::new(), "iperf Done.".to_owned()]
}

/// The sum over the streams of one direction.
pub(crate) fn total(streams: &[&StreamEnd], of: u32) -> StreamEnd {
    let mut sum = StreamEnd::default();
    for stream in streams {
        sum.sending = stream.sending;
        sum.sent = sum.sent.saturating_add(stream.sent);
        sum.received = sum.received.saturating_add(stream.received);
        sum.retransmits = sum.retransmits.saturating_add(stream.retransmits);
        sum.packets_sent = sum.packets_sent.saturating_add(stream.packets_sent);
        sum.packets_received = sum.packets_received.saturating_add(stream.packets_received);
        sum.lost = sum.lost.saturating_add(stream.lost);
        sum.jitter_ms += stream.jitter_ms / f64::from(of.max(1));
    }
    sum
}

struct Table<'a> {
    head: &'a Head,
    end: &'a End,
    format: Format,
    verbose: bool,
    sending: bool,
}

impl Table<'_> {
    /// The sender's row and the receiver's. A server prints before it has the client's
    /// figures and omits the client's row.
    fn both_ends(&self, id: &str, stream: &StreamEnd, is_sum: bool, lines: &mut Vec<String>) {
        let server = self.head.side == Side::Server;
        let missing = |end: &str| format!("[{id}] ({end} statistics not available)");
        if server && !self.sending {
            if self.verbose && (self.head.is_tcp() || !is_sum) {
                lines.push(missing("sender"));
            }
        } else {
            lines.push(self.sender(id, stream, is_sum));
        }
        if !is_sum && !self.head.is_tcp() && stream.out_of_order > 0 {
            lines.push(format!(
                "[SUM]{} {:4.1}-{:4.1} sec  {} datagrams received out-of-order",
                self.head.role(self.sending),
                0.0,
                self.end.sender_s,
                stream.out_of_order
            ));
        }
        if !is_sum && let Some((name, size)) = &self.head.file {
            let moved = if self.sending { stream.sent } else { stream.received };
            lines.push(format!(
                "        Sent {} / {} ({}%) of {}",
                number::size(moved),
                number::size(*size),
                file_percent(moved, *size),
                clean(name)
            ));
        }
        if server && self.sending {
            if self.verbose && (self.head.is_tcp() || !is_sum) {
                lines.push(missing("receiver"));
            }
        } else {
            lines.push(self.receiver(id, stream));
        }
    }

    fn begin(&self, id: &str, seconds: f64, bytes: u64) -> String {
        begin(id, self.head.role(self.sending), (0.0, seconds), bytes, self.format)
    }

    fn sender(&self, id: &str, stream: &StreamEnd, is_sum: bool) -> String {
        let begin = self.begin(id, self.end.sender_s, stream.sent);
        match self.head.asked.protocol {
            Protocol::Tcp if !self.end.counts_retransmits(self.sending) => {
                format!("{begin}                  sender")
            }
            Protocol::Tcp => {
                let room = if is_sum { "             " } else { "            " };
                format!("{begin}  {:3}{room}sender", stream.retransmits)
            }
            Protocol::Udp => begin + &datagrams(0.0, 0, stream.packets_sent, "sender"),
        }
    }

    fn receiver(&self, id: &str, stream: &StreamEnd) -> String {
        let begin = self.begin(id, self.end.receiver_s, stream.received);
        let packets = stream.packets_received;
        match self.head.asked.protocol {
            Protocol::Tcp => format!("{begin}                  receiver"),
            Protocol::Udp if stream.lost_with_omitted => {
                format!("{begin}  {:5.3} ms  Unknown/{packets}  receiver", stream.jitter_ms)
            }
            Protocol::Udp => begin + &datagrams(stream.jitter_ms, stream.lost, packets, "receiver"),
        }
    }

    /// CPU utilization and congestion control.
    fn hosts(&self, lines: &mut Vec<String>) {
        let (sender, receiver) = ("sender", "receiver");
        if self.sending {
            lines.push(self.cpu_utilization(sender, receiver));
            if self.head.asked.bidir {
                lines.push(self.cpu_utilization(receiver, sender));
            }
        }
        if self.head.is_tcp() {
            let (sender, receiver) = self.end.congestion(self.sending);
            lines.extend(sender.map(|name| format!("snd_tcp_congestion {}", clean(name))));
            lines.extend(receiver.map(|name| format!("rcv_tcp_congestion {}", clean(name))));
        }
    }

    fn cpu_utilization(&self, here: &str, there: &str) -> String {
        let share =
            |cpu: &Cpu| format!("{:.1}% ({:.1}%u/{:.1}%s)", cpu.total, cpu.user, cpu.system);
        format!(
            "CPU Utilization: local/{here} {}, remote/{there} {}",
            share(&self.end.cpu_local),
            share(&self.end.cpu_remote)
        )
    }
}

/// The share of a file that was moved, in whole percent; 100 for an empty file.
pub(crate) fn file_percent(moved: u64, size: u64) -> u64 {
    match size {
        0 => 100,
        _ => u64::try_from(u128::from(moved) * 100 / u128::from(size)).unwrap_or(u64::MAX),
    }
}
