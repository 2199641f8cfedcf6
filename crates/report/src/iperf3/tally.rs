//! From rows, and from what both ends report, to totals.

use super::facts::{Cpu, End, Head, Row, ServerOutput, Stream, StreamEnd};
use iperf3::{Results, StreamResult};

/// What the rows of a test add up to. Omitted rows count only for what the
/// kernel goes on counting.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    streams: Vec<Seen>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    sum: StreamEnd,
    bytes: u64,
    packets: i64,
    seconds: f64,
    rtt_sum_us: u64,
    rtts: u64,
}

impl Tally {
    /// Takes a row in.
    pub fn add(&mut self, row: &Row) {
        if row.omitted {
            return;
        }
        let seen = match self.streams.iter_mut().position(|seen| seen.sum.id == row.id) {
            Some(index) => self.streams.get_mut(index),
            None => {
                let sum = StreamEnd { id: row.id, sending: row.sending, ..StreamEnd::default() };
                self.streams.push(Seen { sum, ..Seen::default() });
                self.streams.last_mut()
            }
        };
        let Some(seen) = seen else { return };
        seen.bytes = seen.bytes.saturating_add(row.bytes);
        seen.packets = seen.packets.saturating_add_unsigned(row.packets);
        seen.seconds = seen.seconds.max(row.to_s);
        if row.rtt_us > 0 {
            seen.rtt_sum_us = seen.rtt_sum_us.saturating_add(row.rtt_us);
            seen.rtts += 1;
        }
        let sum = &mut seen.sum;
        sum.retransmits = sum.retransmits.saturating_add_unsigned(row.retransmits);
        sum.lost = sum.lost.saturating_add(row.lost);
        sum.out_of_order = sum.out_of_order.saturating_add(row.out_of_order);
        sum.jitter_ms = row.jitter_ms;
        sum.reorder = row.reorder;
        sum.max_cwnd = sum.max_cwnd.max(row.cwnd);
        sum.max_peer_window = sum.max_peer_window.max(row.peer_window);
        sum.max_rtt_us = sum.max_rtt_us.max(row.rtt_us);
        if row.rtt_us > 0 && (sum.min_rtt_us == 0 || row.rtt_us < sum.min_rtt_us) {
            sum.min_rtt_us = row.rtt_us;
        }
        sum.mean_rtt_us = seen.rtt_sum_us.checked_div(seen.rtts).unwrap_or(0);
    }

    /// The end of a test: what each end reported of itself where it did, and
    /// the rows for this end where it did not.
    #[must_use]
    pub fn end(&self, head: &Head, ours: Option<&Results>, theirs: Option<&Results>) -> End {
        let mut seconds: Option<(f64, f64)> = None;
        let streams = head.streams.iter().map(|stream| {
            let (ours, theirs) = (of(ours, stream), of(theirs, stream));
            let (here, end) = self.stream(stream, head.asked.omit > 0, ours, theirs);
            let there = theirs.and_then(StreamResult::seconds).unwrap_or(here);
            seconds.get_or_insert(if stream.sending { (here, there) } else { (there, here) });
            end
        });
        let streams = streams.collect();
        let (sender_s, receiver_s) = seconds.unwrap_or_default();
        let cpu = |end: Option<&Results>| {
            end.map_or_else(Cpu::default, |end| Cpu {
                total: end.cpu_util_total,
                user: end.cpu_util_user,
                system: end.cpu_util_system,
            })
        };
        End {
            streams,
            sender_s,
            receiver_s,
            cpu_local: cpu(ours),
            cpu_remote: cpu(theirs),
            congestion_local: ours.and_then(|end| end.congestion_used.clone()),
            congestion_remote: theirs.and_then(|end| end.congestion_used.clone()),
            remote_counts_retransmits: theirs.is_some_and(|end| end.sender_has_retransmits == 1),
            server_output: theirs.and_then(|end| {
                let text = end.server_output_text.clone().map(ServerOutput::Text);
                end.server_output_json.clone().map(ServerOutput::Json).or(text)
            }),
        }
    }

    /// A stream at its end, and the seconds that this end counted.
    fn stream(
        &self,
        stream: &Stream,
        omits: bool,
        ours: Option<&StreamResult>,
        theirs: Option<&StreamResult>,
    ) -> (f64, StreamEnd) {
        let seen = self.streams.iter().find(|seen| seen.sum.id == stream.id);
        let seen = seen.cloned().unwrap_or_default();
        let seconds = ours.and_then(StreamResult::seconds).unwrap_or(seen.seconds);
        let bytes = ours.map_or(seen.bytes, StreamResult::byte_count);
        let packets = ours.map_or(seen.packets, counted_packets);
        let far_bytes = theirs.map_or(0, StreamResult::byte_count);
        let far_packets = theirs.map_or(0, counted_packets);
        let mut end = StreamEnd { id: stream.id, sending: stream.sending, ..seen.sum };
        if stream.sending {
            (end.sent, end.received) = (bytes, far_bytes);
            (end.packets_sent, end.packets_received) = (packets, far_packets);
            if let Some(receiver) = theirs {
                end.jitter_ms = receiver.jitter * 1e3;
                end.lost = counted_losses(receiver);
                // Versions before 3.14 do not tell what the omitted part lost.
                end.lost_with_omitted = omits && receiver.omitted_errors.is_none();
            }
            end.retransmits = ours.map_or(end.retransmits, |it| it.retransmits.max(0));
        } else {
            (end.sent, end.received) = (far_bytes, bytes);
            (end.packets_sent, end.packets_received) = (far_packets, packets);
            if let Some(receiver) = ours {
                end.jitter_ms = receiver.jitter * 1e3;
                end.lost = counted_losses(receiver);
            }
            end.retransmits = theirs.map_or(0, |it| it.retransmits.max(0));
        }
        (seconds, end)
    }
}

fn of<'a>(end: Option<&'a Results>, stream: &Stream) -> Option<&'a StreamResult> {
    end.and_then(|end| end.stream(stream.id))
}

/// Datagrams without the omitted ones; a peer's figures may be anything.
fn counted_packets(stream: &StreamResult) -> i64 {
    stream.packets.saturating_sub(stream.omitted_packets.unwrap_or(0))
}

fn counted_losses(stream: &StreamResult) -> i64 {
    stream.errors.saturating_sub(stream.omitted_errors.unwrap_or(0))
}
