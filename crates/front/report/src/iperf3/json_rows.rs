//! The figures of an interval or a total, as an object of the JSON document.

use super::facts::{Head, Protocol, Row, StreamEnd};
use super::number::{per_second, percent};
use super::text;
use serde::Serialize;

/// Any object with figures; each kind omits the keys it does not have.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<u32>,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retransmits: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snd_cwnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snd_wnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rttvar: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pmtu: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reorder: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_snd_cwnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_snd_wnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean_rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_packets: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) out_of_order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<bool>,
    pub(crate) sender: bool,
}

impl Figures {
    /// Bytes over a time span.
    pub(crate) fn over(from_s: f64, to_s: f64, bytes: u64, sender: bool) -> Self {
        let (start, end) = (finite(from_s), finite(to_s));
        Figures {
            start,
            end,
            seconds: end - start,
            bytes,
            bits_per_second: per_second(bytes, end - start) * 8.0,
            sender,
            ..Figures::default()
        }
    }

    /// With datagram counts.
    pub(crate) fn datagrams(self, jitter_ms: f64, lost: i64, packets: i64) -> Self {
        Figures {
            jitter_ms: Some(finite(jitter_ms)),
            lost_packets: Some(lost),
            packets: Some(packets),
            lost_percent: Some(percent(lost, packets)),
            ..self
        }
    }

    /// With the TCP_INFO extremes of a sender over the whole test.
    pub(crate) fn extremes(self, stream: &StreamEnd) -> Self {
        Figures {
            retransmits: Some(stream.retransmits),
            reorder: Some(stream.reorder),
            max_snd_cwnd: Some(stream.max_cwnd),
            max_snd_wnd: Some(stream.max_peer_window),
            max_rtt: Some(stream.max_rtt_us),
            min_rtt: Some(stream.min_rtt_us),
            mean_rtt: Some(stream.mean_rtt_us),
            ..self
        }
    }

    fn of(row: &Row, protocol: Protocol, socket: Option<u32>) -> Self {
        let packets = i64::try_from(row.packets).unwrap_or(i64::MAX);
        let plain = Figures {
            socket,
            omitted: Some(row.omitted),
            ..Figures::over(row.from_s, row.to_s, row.bytes, row.sending)
        };
        match (protocol, row.sending) {
            (Protocol::Tcp, false) => plain,
            (Protocol::Tcp, true) => {
                let of_stream = |value| socket.map(|_| value);
                Figures {
                    retransmits: i64::try_from(row.retransmits).ok(),
                    snd_cwnd: of_stream(row.cwnd),
                    snd_wnd: of_stream(row.peer_window),
                    rtt: of_stream(row.rtt_us),
                    rttvar: of_stream(row.rttvar_us),
                    pmtu: of_stream(row.pmtu),
                    reorder: of_stream(row.reorder),
                    ..plain
                }
            }
            (Protocol::Udp, true) => Figures { packets: Some(packets), ..plain },
            (Protocol::Udp, false) => plain.datagrams(row.jitter_ms, row.lost, packets),
        }
    }
}

/// One interval of all streams.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Interval {
    streams: Vec<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Figures>,
}

impl Interval {
    pub(crate) fn of(head: &Head, rows: &[Row]) -> Self {
        let mut interval = Interval { streams: Vec::new(), sum: None, sum_bidir_reverse: None };
        for sending in head.directions() {
            let of_direction: Vec<&Row> =
                rows.iter().filter(|row| row.sending == sending).collect();
            interval.streams.extend(of_direction.iter().map(|row| {
                let socket = head.stream(row.id).map_or(0, |stream| stream.socket);
                Figures::of(row, head.asked.protocol, Some(socket))
            }));
            let sum = text::sum(head, &of_direction, rows);
            let sum = sum.map(|row| Figures::of(&row, head.asked.protocol, None));
            if head.is_bidir_reverse(sending) {
                interval.sum_bidir_reverse = sum;
            } else {
                interval.sum = sum;
            }
        }
        interval
    }
}

/// JSON has no NaN and no infinity.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
