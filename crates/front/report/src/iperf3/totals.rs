//! Totals computed from interval rows and from the results that both ends report.

use super::facts::{Cpu, End, Head, Row, ServerOutput, Stream, StreamEnd};
use iperf3_proto::{Results, StreamResult};

/// The sums of a test's rows, without omitted ones.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    streams: Vec<Sum>,
}

#[derive(Debug, Clone, Default)]
struct Sum {
    end: StreamEnd,
    bytes: u64,
    packets: i64,
    seconds: f64,
    rtt_sum_us: u64,
    rtts: u64,
}

impl Totals {
    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        if row.omitted {
            return;
        }
        let sum = match self.streams.iter_mut().position(|sum| sum.end.id == row.id) {
            Some(index) => self.streams.get_mut(index),
            None => {
                let end = StreamEnd { id: row.id, sending: row.sending, ..StreamEnd::default() };
                self.streams.push(Sum { end, ..Sum::default() });
                self.streams.last_mut()
            }
        };
        let Some(sum) = sum else { return };
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        sum.packets = sum.packets.saturating_add_unsigned(row.packets);
        sum.seconds = sum.seconds.max(row.to_s);
        if row.rtt_us > 0 {
            sum.rtt_sum_us = sum.rtt_sum_us.saturating_add(row.rtt_us);
            sum.rtts += 1;
        }
        let end = &mut sum.end;
        end.retransmits = end.retransmits.saturating_add_unsigned(row.retransmits);
        end.lost = end.lost.saturating_add(row.lost);
        end.out_of_order = end.out_of_order.saturating_add(row.out_of_order);
        end.jitter_ms = row.jitter_ms;
        end.reorder = row.reorder;
        end.max_cwnd = end.max_cwnd.max(row.cwnd);
        end.max_peer_window = end.max_peer_window.max(row.peer_window);
        end.max_rtt_us = end.max_rtt_us.max(row.rtt_us);
        if row.rtt_us > 0 && (end.min_rtt_us == 0 || row.rtt_us < end.min_rtt_us) {
            end.min_rtt_us = row.rtt_us;
        }
        end.mean_rtt_us = sum.rtt_sum_us.checked_div(sum.rtts).unwrap_or(0);
    }

    /// The end of a test: from the results that each end reported; without them, from the
    /// rows of this end.
    #[must_use]
    pub fn end(&self, head: &Head, local: Option<&Results>, remote: Option<&Results>) -> End {
        let mut seconds: Option<(f64, f64)> = None;
        let streams = head.streams.iter().map(|stream| {
            let (local, remote) = (of(local, stream), of(remote, stream));
            let (local_s, end) = self.stream(stream, head.asked.omit > 0, local, remote);
            let remote_s = remote.and_then(StreamResult::seconds).unwrap_or(local_s);
            seconds.get_or_insert(if stream.sending {
                (local_s, remote_s)
            } else {
                (remote_s, local_s)
            });
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
            cpu_local: cpu(local),
            cpu_remote: cpu(remote),
            congestion_local: local.and_then(|end| end.congestion_used.clone()),
            congestion_remote: remote.and_then(|end| end.congestion_used.clone()),
            remote_counts_retransmits: remote.is_some_and(|end| end.sender_has_retransmits == 1),
            server_output: remote.and_then(|end| {
                let text = end.server_output_text.clone().map(ServerOutput::Text);
                end.server_output_json.clone().map(ServerOutput::Json).or(text)
            }),
        }
    }

    /// The totals of a stream, and the duration measured by this end in seconds.
    fn stream(
        &self,
        stream: &Stream,
        omits: bool,
        local: Option<&StreamResult>,
        remote: Option<&StreamResult>,
    ) -> (f64, StreamEnd) {
        let sum = self.streams.iter().find(|sum| sum.end.id == stream.id);
        let sum = sum.cloned().unwrap_or_default();
        let seconds = local.and_then(StreamResult::seconds).unwrap_or(sum.seconds);
        let bytes = local.map_or(sum.bytes, StreamResult::byte_count);
        let packets = local.map_or(sum.packets, counted_packets);
        let far_bytes = remote.map_or(0, StreamResult::byte_count);
        let far_packets = remote.map_or(0, counted_packets);
        let mut end = StreamEnd { id: stream.id, sending: stream.sending, ..sum.end };
        if stream.sending {
            (end.sent, end.received) = (bytes, far_bytes);
            (end.packets_sent, end.packets_received) = (packets, far_packets);
            if let Some(receiver) = remote {
                end.jitter_ms = receiver.jitter * 1e3;
                end.lost = counted_losses(receiver);
                // Versions before 3.14 do not report the losses of the omitted part.
                end.lost_with_omitted = omits && receiver.omitted_errors.is_none();
            }
            end.retransmits = local.map_or(end.retransmits, |it| it.retransmits.max(0));
        } else {
            (end.sent, end.received) = (far_bytes, bytes);
            (end.packets_sent, end.packets_received) = (far_packets, packets);
            if let Some(receiver) = local {
                end.jitter_ms = receiver.jitter * 1e3;
                end.lost = counted_losses(receiver);
            }
            end.retransmits = remote.map_or(0, |it| it.retransmits.max(0));
        }
        (seconds, end)
    }
}

fn of<'a>(end: Option<&'a Results>, stream: &Stream) -> Option<&'a StreamResult> {
    end.and_then(|end| end.stream(stream.id))
}

/// Datagrams without the omitted ones; saturating, as a peer's figures are untrusted.
fn counted_packets(stream: &StreamResult) -> i64 {
    stream.packets.saturating_sub(stream.omitted_packets.unwrap_or(0))
}

fn counted_losses(stream: &StreamResult) -> i64 {
    stream.errors.saturating_sub(stream.omitted_errors.unwrap_or(0))
}
