//! The object `end`: the totals of both ends.

use super::facts::{Cpu, End, Head, StreamEnd};
use super::json_rows::{Figures, finite};
use super::summary::{file_percent, total};
use serde::Serialize;

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Totals {
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<Vec<Stream>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent_bidir_reverse: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received_bidir_reverse: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilization_percent: Option<CpuUtilization>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_tcp_congestion: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_tcp_congestion: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Stream {
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diskfile: Option<File>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<Figures>,
}

#[derive(Debug, Clone, Serialize)]
struct File {
    sent: u64,
    received: u64,
    size: u64,
    percent_sent: u64,
    percent_received: u64,
    filename: String,
}

#[derive(Debug, Clone, Serialize)]
struct CpuUtilization {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    remote_total: f64,
    remote_user: f64,
    remote_system: f64,
}

impl CpuUtilization {
    fn of(host: Cpu, remote: Cpu) -> Self {
        CpuUtilization {
            host_total: finite(host.total),
            host_user: finite(host.user),
            host_system: finite(host.system),
            remote_total: finite(remote.total),
            remote_user: finite(remote.user),
            remote_system: finite(remote.system),
        }
    }
}

impl Totals {
    pub(crate) fn of(head: &Head, end: &End) -> Self {
        let (mut totals, mut all) = (Totals::default(), Vec::new());
        for sending in head.directions() {
            let streams: Vec<&StreamEnd> =
                end.streams.iter().filter(|stream| stream.sending == sending).collect();
            all.extend(streams.iter().map(|stream| of_stream(head, end, stream)));
            let sum = StreamEnd { sending, ..total(&streams, head.asked.streams) };
            let (both, sent, received) = sums(head, end, &sum);
            if head.is_bidir_reverse(sending) {
                totals.sum_bidir_reverse = both;
                totals.sum_sent_bidir_reverse = Some(sent);
                totals.sum_received_bidir_reverse = Some(received);
            } else {
                (totals.sum, totals.sum_sent, totals.sum_received) =
                    (both, Some(sent), Some(received));
            }
            if head.is_tcp() {
                // In a bidirectional test, the last direction wins, as in iperf3.
                let (sender, receiver) = end.congestion(sending);
                totals.sender_tcp_congestion = sender.map(str::to_owned);
                totals.receiver_tcp_congestion = receiver.map(str::to_owned);
            }
        }
        totals.streams = Some(all);
        totals.cpu_utilization_percent = Some(CpuUtilization::of(end.cpu_local, end.cpu_remote));
        totals
    }
}

/// Datagrams of a stream: the sender's count if known, else the receiver's.
fn packets(stream: &StreamEnd) -> i64 {
    if stream.packets_sent > 0 { stream.packets_sent } else { stream.packets_received }
}

fn of_stream(head: &Head, end: &End, stream: &StreamEnd) -> Stream {
    let socket = Some(head.stream(stream.id).map_or(0, |stream| stream.socket));
    let sent = Figures { socket, ..Figures::over(0.0, end.sender_s, stream.sent, stream.sending) };
    let diskfile = head.file.as_ref().map(|(name, size)| File {
        sent: stream.sent,
        received: stream.received,
        size: *size,
        percent_sent: file_percent(stream.sent, *size),
        percent_received: file_percent(stream.received, *size),
        filename: name.clone(),
    });
    if !head.is_tcp() {
        let udp = Figures {
            out_of_order: Some(stream.out_of_order),
            ..sent.datagrams(stream.jitter_ms, stream.lost, packets(stream))
        };
        return Stream { udp: Some(udp), diskfile, ..Stream::default() };
    }
    let counts = end.counts_retransmits(stream.sending);
    let received = Figures::over(0.0, end.receiver_s, stream.received, stream.sending);
    Stream {
        sender: Some(if counts { sent.extremes(stream) } else { sent }),
        receiver: Some(Figures { socket, ..received }),
        diskfile,
        udp: None,
    }
}

/// The sums of one direction: both, sent, received. `both` exists for UDP only; its
/// bytes are the sender's, its time is the receiver's.
fn sums(head: &Head, end: &End, sum: &StreamEnd) -> (Option<Figures>, Figures, Figures) {
    let sent = Figures::over(0.0, end.sender_s, sum.sent, sum.sending);
    let received = Figures::over(0.0, end.receiver_s, sum.received, sum.sending);
    if head.is_tcp() {
        let retransmits = end.counts_retransmits(sum.sending).then_some(sum.retransmits);
        return (None, Figures { retransmits, ..sent }, received);
    }
    let both = Figures {
        bits_per_second: sent.bits_per_second,
        ..Figures::over(0.0, end.receiver_s, sum.sent, sum.sending)
    };
    (
        Some(both.datagrams(sum.jitter_ms, sum.lost, packets(sum))),
        Figures { sender: true, ..sent.datagrams(0.0, 0, sum.packets_sent) },
        Figures {
            sender: false,
            ..received.datagrams(sum.jitter_ms, sum.lost, sum.packets_received)
        },
    )
}
