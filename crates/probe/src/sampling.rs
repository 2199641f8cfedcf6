//! Turning the kernel's readings into the record's samples, and keeping their
//! number bounded however long a test runs.

use host::tcp_info::{MemInfo, TcpInfo};
use record::{ReceiverSample, Sample};

/// Samples of one stream, oldest first: at most a fixed number, evenly spread.
///
/// When it is full every second sample goes, and from then on every second
/// reading is kept: a test of an hour has half the detail of one of half an
/// hour, over its whole length.
#[derive(Debug, Clone)]
pub(crate) struct Series<T> {
    samples: Vec<T>,
    most: usize,
    /// One reading in so many is kept.
    stride: u64,
    seen: u64,
}

impl<T> Series<T> {
    /// At most `most` samples, two at least.
    pub(crate) fn new(most: usize) -> Self {
        Series { samples: Vec::new(), most: most.max(2), stride: 1, seen: 0 }
    }

    /// Takes one reading.
    pub(crate) fn push(&mut self, sample: T) {
        if self.seen.is_multiple_of(self.stride) {
            self.samples.push(sample);
        }
        self.seen += 1;
        if self.samples.len() >= self.most {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = self.stride.saturating_mul(2);
        }
    }

    /// Takes the last reading, kept whatever the stride; in place of the one
    /// before where that is as good as the same moment.
    pub(crate) fn end(&mut self, last: T, instead: bool) {
        if instead && self.samples.len() > 1 {
            self.samples.pop();
        }
        self.samples.push(last);
    }

    pub(crate) fn finish(self) -> Vec<T> {
        self.samples
    }
}

/// The sending kernel's reading in the record's words. `written` counts what
/// the program handed over, the cookie included as the kernel does.
#[must_use]
pub fn sender_sample(t_s: f64, written: u64, info: &TcpInfo) -> Sample {
    let mss = u64::from(info.snd_mss);
    let acked = info.bytes_acked.unwrap_or(0);
    Sample {
        t_s,
        // A write still under way counts when it returns; the kernel may have
        // passed on much of it by then. The SYN counts as a byte acknowledged.
        written_bytes: written.max(acked.saturating_sub(1)),
        acked_bytes: acked,
        delivered_bytes: info.delivered_bytes(),
        mss_bytes: info.snd_mss,
        cwnd_bytes: u64::from(info.snd_cwnd) * mss,
        ssthresh_bytes: info.snd_ssthresh.map(|segments| u64::from(segments) * mss),
        in_flight_bytes: u64::from(info.in_flight_segments()) * mss,
        unsent_bytes: u64::from(info.notsent_bytes.unwrap_or(0)),
        peer_window_bytes: info.snd_wnd.map(u64::from),
        rtt_us: info.rtt_us,
        rttvar_us: info.rttvar_us,
        min_rtt_us: info.min_rtt_us,
        delivery_rate_bps: info.delivery_rate.unwrap_or(0).saturating_mul(8),
        delivery_app_limited: info.delivery_rate_app_limited,
        pacing_rate_bps: info.pacing_rate.map(|rate| rate.saturating_mul(8)),
        max_pacing_rate_bps: info.max_pacing_rate.map(|rate| rate.saturating_mul(8)),
        retransmits: u64::from(info.total_retrans),
        busy_us: info.busy_us.unwrap_or(0),
        rwnd_limited_us: info.rwnd_limited_us.unwrap_or(0),
        sndbuf_limited_us: info.sndbuf_limited_us.unwrap_or(0),
    }
}

/// The receiving side's reading in the record's words.
#[must_use]
pub fn receiver_sample(
    t_s: f64,
    received: u64,
    info: Option<&TcpInfo>,
    memory: Option<&MemInfo>,
) -> ReceiverSample {
    ReceiverSample {
        t_s,
        received_bytes: received,
        window_bytes: info.and_then(|info| info.rcv_wnd).map(u64::from),
        buffer_bytes: memory.map(|memory| u64::from(memory.receive_buffer)),
        // u32::MAX is what the kernel says where it has seen none.
        min_rtt_us: info.and_then(|info| info.min_rtt_us).filter(|us| *us < u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_bounded_and_even() {
        for count in [1u64, 9, 10, 11, 1000, 12_345] {
            let mut series = Series::new(10);
            for reading in 0..count {
                series.push(reading);
            }
            let kept = series.finish();
            assert!(!kept.is_empty() && kept.len() < 10, "{count}: {kept:?}");
            assert_eq!(kept[0], 0);
            let steps: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(steps.iter().all(|step| *step == steps[0]), "{count}: {kept:?}");
            assert!(count < 20 || kept[kept.len() - 1] * 2 > count, "{count}: {kept:?}");
        }
    }

    #[test]
    fn segments_become_bytes_and_bytes_become_bits() {
        let info = TcpInfo {
            snd_mss: 1000,
            snd_cwnd: 10,
            unacked: 9,
            sacked: 3,
            lost: 2,
            retrans: 1,
            delivery_rate: Some(125),
            bytes_acked: Some(7),
            ..TcpInfo::default()
        };
        let sample = sender_sample(1.0, 5, &info);
        assert_eq!((sample.cwnd_bytes, sample.in_flight_bytes), (10_000, 5_000));
        assert_eq!((sample.delivery_rate_bps, sample.ssthresh_bytes), (1000, None));
        assert_eq!(sample.delivered_bytes, 3007, "what is missing lies before three that came");
    }
}
