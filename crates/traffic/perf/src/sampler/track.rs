//! Counts of one stream since its last interval report.

use crate::{
    arrivals::Counts,
    event::{DatagramInterval, Interval},
    sampling::Series,
    stream::Stream,
};
use host::tcp_info::TcpInfo;
use record::{Protocol, ReceiverSample, Sample};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// One stream's counts at the end of the warm-up (`base`) and at the last interval
/// report (`reported`), and its samples.
pub(super) struct Track {
    pub(super) base_bytes: u64,
    pub(super) base_retransmits: u64,
    /// Datagrams sent, and counts of those received, at the end of the warm-up.
    pub(super) base_sent: u64,
    pub(super) base_counts: Counts,
    pub(super) reported_bytes: u64,
    pub(super) reported_retransmits: u64,
    pub(super) reported_delivered: u64,
    pub(super) reported_sent: u64,
    pub(super) reported_counts: Counts,
    /// Bytes and counts of received datagrams at the end of the test; its thread goes on counting
    /// those that were still in flight.
    pub(super) ended: Option<(u64, Counts)>,
    pub(super) sender: Series<Sample>,
    pub(super) receiver: Series<ReceiverSample>,
}

impl Track {
    /// Keeps at most `max` samples, and the first `start` of them for certain.
    pub(super) fn new(max: usize, start: usize) -> Self {
        Track {
            base_bytes: 0,
            base_retransmits: 0,
            base_sent: 0,
            base_counts: Counts::default(),
            reported_bytes: 0,
            reported_retransmits: 0,
            reported_delivered: 0,
            reported_sent: 0,
            reported_counts: Counts::default(),
            ended: None,
            sender: Series::new(max, start),
            receiver: Series::new(max, start),
        }
    }

    /// Ends a stream of received datagrams.
    pub(super) fn end(&mut self, stream: &Stream) {
        self.ended = stream.counts().map(|counts| (stream.bytes(), counts));
    }

    /// Bytes until now, or until the end of the test.
    pub(super) fn bytes(&self, stream: &Stream) -> u64 {
        self.ended.map_or_else(|| stream.bytes(), |(bytes, _)| bytes)
    }

    /// Counts of received datagrams, likewise.
    pub(super) fn counts(&self, stream: &Stream) -> Counts {
        let counts = self.ended.map(|(_, counts)| counts);
        counts.or_else(|| stream.counts()).unwrap_or_default()
    }

    /// The interval since the last report.
    pub(super) fn interval(
        &mut self,
        stream: &Stream,
        span: Duration,
        blank: Interval,
    ) -> Interval {
        let mut interval = blank;
        let bytes = self.bytes(stream);
        interval.bytes = ByteCount::from_bytes(bytes - self.reported_bytes);
        interval.rate = BitRate::of(interval.bytes, span);
        self.reported_bytes = bytes;
        match (stream.protocol, stream.sending) {
            (Protocol::Tcp, true) => {
                if let Ok(info) = TcpInfo::of(&stream.socket) {
                    self.tcp_interval(&info, span, &mut interval);
                }
            }
            (Protocol::Udt, true) => self.udt_interval(stream, span, &mut interval),
            (Protocol::Tcp | Protocol::Udt, false) => interval.arrival_rate = Some(interval.rate),
            (Protocol::Udp, true) => {
                let sent = stream.sent();
                interval.datagrams = Some(DatagramInterval {
                    packets: sent - self.reported_sent,
                    ..DatagramInterval::default()
                });
                self.reported_sent = sent;
            }
            (Protocol::Udp, false) => {
                interval.arrival_rate = Some(interval.rate);
                let (counts, reported) = (self.counts(stream), self.reported_counts);
                interval.datagrams = Some(DatagramInterval {
                    packets: counts.highest - reported.highest,
                    // A datagram counted as lost before may have arrived since.
                    lost: counts.lost().saturating_sub(reported.lost()),
                    out_of_order: counts.reordered - reported.reordered,
                    jitter: counts.jitter(),
                });
                self.reported_counts = counts;
            }
        }
        interval
    }

    /// Bytes delivered and segments retransmitted since the last report.
    fn progress(
        &mut self,
        delivered: u64,
        retransmitted: u64,
        span: Duration,
        interval: &mut Interval,
    ) {
        let arrived = delivered.saturating_sub(self.reported_delivered);
        // Short segments count as full ones until they are acknowledged: the count may
        // decrease, but bytes are reported only once.
        self.reported_delivered = self.reported_delivered.max(delivered);
        interval.arrival_rate = Some(BitRate::of(ByteCount::from_bytes(arrived), span));
        let retransmits = retransmitted.saturating_sub(self.reported_retransmits);
        self.reported_retransmits = retransmitted;
        interval.retransmits = Some(retransmits);
    }

    fn udt_interval(&mut self, stream: &Stream, span: Duration, interval: &mut Interval) {
        let state = *stream.udt();
        let Some(udt) = state.statistics() else { return };
        self.progress(state.acknowledged_bytes(), udt.sent.retransmitted, span, interval);
        let bytes =
            |packets: u64| Some(ByteCount::from_bytes(packets).times(state.payload_bytes()));
        interval.cwnd = bytes(udt.cwnd);
        interval.peer_window = bytes(udt.flow_window);
        interval.rtt = udt.rtt;
        interval.rttvar = Some(udt.rtt_variance);
    }

    fn tcp_interval(&mut self, info: &TcpInfo, span: Duration, interval: &mut Interval) {
        self.progress(info.delivered_bytes(), info.total_retrans.into(), span, interval);
        interval.cwnd =
            Some(ByteCount::from_bytes(u64::from(info.snd_cwnd)).times(u64::from(info.snd_mss)));
        interval.peer_window = info.snd_wnd.map(|window| ByteCount::from_bytes(window.into()));
        interval.rtt = Some(Rtt::from_micros(u64::from(info.rtt_us)));
        interval.rttvar = Some(Rtt::from_micros(u64::from(info.rttvar_us)));
        interval.pmtu = Some(info.pmtu);
    }
}

/// Adds a stream's interval to the sum of its direction; the caller divides the
/// summed jitter by the number of streams.
pub(super) fn add(sum: &mut Interval, interval: &Interval) {
    let bps = |rate: Option<BitRate>| rate.map_or(0, BitRate::bps);
    sum.bytes = sum.bytes.plus(interval.bytes);
    if interval.arrival_rate.is_some() {
        let both = bps(interval.arrival_rate).saturating_add(bps(sum.arrival_rate));
        sum.arrival_rate = Some(BitRate::from_bps(both));
    }
    if let Some(retransmits) = interval.retransmits {
        sum.retransmits = Some(sum.retransmits.unwrap_or(0) + retransmits);
    }
    if let Some(datagrams) = interval.datagrams {
        let all = sum.datagrams.get_or_insert_default();
        all.packets += datagrams.packets;
        all.lost += datagrams.lost;
        all.out_of_order += datagrams.out_of_order;
        all.jitter = Rtt::from_nanos(all.jitter.nanos().saturating_add(datagrams.jitter.nanos()));
    }
}
