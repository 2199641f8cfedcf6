//! Result of a test at one end, and its form as iperf3 results.

use crate::{arrivals::Counts, stream::Stream};
use host::cpu::ProcessCpu;
use iperf3_proto::{Results, StreamResult};
use record::{Datagrams, Fragmentation, LossBurst, ReceiverSample, Sample, TimedDatagram};
use std::time::Duration;
use units::ByteCount;

/// CPU time and run-queue delay of a thread over a test, as shares of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ThreadCpu {
    pub(crate) used: f64,
    /// Time spent runnable while other threads had the core.
    pub(crate) waited: f64,
}

impl ThreadCpu {
    /// The thread with the highest CPU demand: time used plus time waited.
    pub(crate) fn busiest(threads: impl IntoIterator<Item = Self>) -> Option<Self> {
        let wanted = |cpu: &Self| cpu.used + cpu.waited;
        threads.into_iter().max_by(|one, other| wanted(one).total_cmp(&wanted(other)))
    }
}

/// Result of a test at this end.
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) streams: Vec<StreamOutcome>,
    /// CPU of the sending thread with the highest demand.
    pub(crate) sender_cpu: Option<ThreadCpu>,
    /// The same for the receiving threads.
    pub(crate) receiver_cpu: Option<ThreadCpu>,
    pub(super) process: ProcessCpu,
    pub(super) elapsed: Duration,
}

pub(crate) struct StreamOutcome {
    pub(crate) id: u32,
    /// Whether this end sent.
    pub(crate) sending: bool,
    pub(crate) bytes: u64,
    pub(crate) retransmits: Option<u64>,
    pub(crate) congestion: Option<String>,
    /// The limit of unsent bytes at last, if this end sent and had one.
    pub(crate) unsent_limit: Option<ByteCount>,
    pub(crate) sender: Vec<Sample>,
    pub(crate) receiver: Vec<ReceiverSample>,
    pub(crate) datagrams: Option<DatagramOutcome>,
    /// When datagrams arrived at this end; in a train only.
    pub(crate) train: Vec<TimedDatagram>,
}

/// A UDP stream's counts, warm-up included, and those of the warm-up alone.
pub(crate) struct DatagramOutcome {
    /// Sent by this end.
    pub(crate) sent: u64,
    pub(crate) omitted_sent: u64,
    /// Received by this end.
    pub(crate) counts: Counts,
    pub(crate) omitted: Counts,
    pub(crate) bursts: Vec<LossBurst>,
    /// How this end's datagrams are fragmented.
    pub(crate) fragmentation: Option<Fragmentation>,
}

impl DatagramOutcome {
    /// The record of what this end received, in datagrams of `length` bytes.
    pub(crate) fn received(&self, length: usize) -> Datagrams {
        Datagrams {
            length_bytes: u32::try_from(length).unwrap_or(u32::MAX),
            sent: None,
            received: self.counts.received,
            lost: self.counts.lost(),
            duplicates: self.counts.duplicates,
            reordered: self.counts.reordered,
            reorder_extent: self.counts.extent,
            jitter: self.counts.jitter(),
            loss_bursts: self.bursts.clone(),
            fragmentation: None,
        }
    }
}

impl Outcome {
    /// Counts the datagrams that arrived since the end of the test: they were in flight, not lost.
    pub(crate) fn count_late(&mut self, streams: &[Stream]) {
        for (outcome, stream) in self.streams.iter_mut().zip(streams) {
            if let Some((datagrams, counts)) = outcome.datagrams.as_mut().zip(stream.counts()) {
                (datagrams.counts, datagrams.bursts) = (counts, stream.bursts());
            }
        }
    }

    /// Bytes of one direction, as this end counted them.
    pub(crate) fn bytes(&self, sending: bool) -> u64 {
        self.streams.iter().filter(|s| s.sending == sending).map(|stream| stream.bytes).sum()
    }

    /// The outcome as iperf3 reports it.
    pub(crate) fn results(&self) -> Results {
        let percent =
            |time: Duration| 100.0 * time.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-3);
        let sends = self.streams.iter().any(|stream| stream.sending);
        let tcp = self.streams.iter().any(|stream| stream.datagrams.is_none());
        Results {
            cpu_util_total: percent(self.process.total()),
            cpu_util_user: percent(self.process.user),
            cpu_util_system: percent(self.process.system),
            sender_has_retransmits: if sends { i64::from(tcp) } else { -1 },
            congestion_used: self.streams.first().and_then(|stream| stream.congestion.clone()),
            streams: self.streams.iter().map(|stream| stream.result(self.seconds)).collect(),
            ..Results::default()
        }
    }
}

impl StreamOutcome {
    fn result(&self, seconds: f64) -> StreamResult {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let mut result = StreamResult {
            id: i64::from(self.id),
            bytes: count(self.bytes),
            retransmits: self.retransmits.map_or(-1, count),
            end_time: Some(seconds),
            ..StreamResult::default()
        };
        if let Some(datagrams) = &self.datagrams {
            let (packets, omitted_packets) = if self.sending {
                (datagrams.sent, datagrams.omitted_sent)
            } else {
                (datagrams.counts.highest, datagrams.omitted.highest)
            };
            result.packets = count(packets);
            result.omitted_packets = Some(count(omitted_packets));
            result.errors = count(datagrams.counts.lost());
            result.omitted_errors = Some(count(datagrams.omitted.lost()));
            result.jitter = datagrams.counts.jitter_s();
        }
        result
    }
}
