//! What of one stream has been told, and what its next report row is.

use crate::{
    arrivals::Counts,
    event::{DatagramInterval, Interval},
    flow::Flow,
    sampling::Series,
};
use host::tcp_info::TcpInfo;
use record::{Protocol, ReceiverSample, Sample};
use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// One stream's counts at the end of the warm-up (`base`) and of the last row
/// (`told`), and its samples.
pub(super) struct Track {
    pub(super) base_bytes: u64,
    pub(super) base_retransmits: u32,
    /// Datagrams sent, and the books of those received, when the warm-up ended.
    pub(super) base_sent: u64,
    pub(super) base_counts: Counts,
    pub(super) told_bytes: u64,
    pub(super) told_retransmits: u32,
    pub(super) told_delivered: u64,
    pub(super) told_sent: u64,
    pub(super) told_counts: Counts,
    pub(super) sender: Series<Sample>,
    pub(super) receiver: Series<ReceiverSample>,
}

impl Track {
    pub(super) fn new(most: usize) -> Self {
        Track {
            base_bytes: 0,
            base_retransmits: 0,
            base_sent: 0,
            base_counts: Counts::default(),
            told_bytes: 0,
            told_retransmits: 0,
            told_delivered: 0,
            told_sent: 0,
            told_counts: Counts::default(),
            sender: Series::new(most),
            receiver: Series::new(most),
        }
    }

    /// What passed over `flow` since the last row.
    pub(super) fn row(&mut self, flow: &Flow, span: Duration, blank: Interval) -> Interval {
        let mut row = blank;
        let bytes = flow.bytes();
        row.bytes = ByteCount::from_bytes(bytes - self.told_bytes);
        row.rate = BitRate::of(row.bytes, span);
        self.told_bytes = bytes;
        match (flow.protocol, flow.sending) {
            (Protocol::Tcp, true) => {
                if let Ok(info) = TcpInfo::of(&flow.socket) {
                    self.tcp_row(&info, span, &mut row);
                }
            }
            (Protocol::Tcp, false) => row.arrival_rate = Some(row.rate),
            (Protocol::Udp, true) => {
                let sent = flow.sent();
                row.datagrams = Some(DatagramInterval {
                    packets: sent - self.told_sent,
                    ..DatagramInterval::default()
                });
                self.told_sent = sent;
            }
            (Protocol::Udp, false) => {
                row.arrival_rate = Some(row.rate);
                let (counts, told) = (flow.counts().unwrap_or_default(), self.told_counts);
                row.datagrams = Some(DatagramInterval {
                    packets: counts.highest - told.highest,
                    // One counted as lost before may have come since.
                    lost: counts.lost().saturating_sub(told.lost()),
                    out_of_order: counts.reordered - told.reordered,
                    jitter: counts.jitter(),
                });
                self.told_counts = counts;
            }
        }
        row
    }

    fn tcp_row(&mut self, info: &TcpInfo, span: Duration, row: &mut Interval) {
        let delivered = info.delivered_bytes();
        let arrived = delivered.saturating_sub(self.told_delivered);
        // Short segments count as full ones until they are acknowledged: what was told
        // of them is not told again.
        self.told_delivered = self.told_delivered.max(delivered);
        row.arrival_rate = Some(BitRate::of(ByteCount::from_bytes(arrived), span));
        let again = info.total_retrans.saturating_sub(self.told_retransmits);
        self.told_retransmits = info.total_retrans;
        row.retransmits = Some(u64::from(again));
        row.cwnd =
            Some(ByteCount::from_bytes(u64::from(info.snd_cwnd)).times(u64::from(info.snd_mss)));
        row.peer_window = info.snd_wnd.map(|window| ByteCount::from_bytes(window.into()));
        row.rtt = Some(Rtt::from_micros(u64::from(info.rtt_us)));
        row.rttvar = Some(Rtt::from_micros(u64::from(info.rttvar_us)));
        row.pmtu = Some(info.pmtu);
    }
}

/// Adds a stream's row to the sum of its direction; jitters add up and are
/// divided by whoever knows their number.
pub(super) fn add(sum: &mut Interval, row: &Interval) {
    let bps = |rate: Option<BitRate>| rate.map_or(0, BitRate::bps);
    sum.bytes = sum.bytes.plus(row.bytes);
    if row.arrival_rate.is_some() {
        let both = bps(row.arrival_rate).saturating_add(bps(sum.arrival_rate));
        sum.arrival_rate = Some(BitRate::from_bps(both));
    }
    if let Some(again) = row.retransmits {
        sum.retransmits = Some(sum.retransmits.unwrap_or(0) + again);
    }
    if let Some(of_row) = row.datagrams {
        let all = sum.datagrams.get_or_insert_default();
        all.packets += of_row.packets;
        all.lost += of_row.lost;
        all.out_of_order += of_row.out_of_order;
        all.jitter = Rtt::from_nanos(all.jitter.nanos().saturating_add(of_row.jitter.nanos()));
    }
}
