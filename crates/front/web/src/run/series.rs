//! Samples of a step's flows, and the measurement made of them.

use super::bulk::BulkFlow;
use super::message::{FlowSample, Plan, StepKind};
use super::step::SHOW_SECONDS;
use crate::connection::Connection;
use host::tcp_info::{TcpInfo, receiver_sample, sender_sample};
use record::{Direction, HostFacts, Measurement, ReceiverSample, Sample, Stream, TestSpec};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;
use units::ByteCount;

/// Least and most unsent bytes in a socket, and the time that they take: what waits there is in no
/// queue of the path, but would delay the echo of a probe.
const MIN_UNSENT: u64 = 128 << 10;
const MAX_UNSENT: u64 = 4 << 20;
const UNSENT_SECONDS: f64 = 0.01;
/// A writer that waits for the send buffer goes on when a third of it is free (sk_stream_write_space
/// in Linux), so that it is fuller than this at most times.
const FULL_BUFFER: f64 = 0.6;
/// What a request has received before its flow begins is not counted; IDs are iperf3's.
const FIRST_ID: u32 = 1;

/// What was sampled of a flow.
#[derive(Debug, Default)]
struct FlowSeries {
    /// Relative to the first one.
    sender: Vec<Sample>,
    receiver: Vec<ReceiverSample>,
    first: Option<Sample>,
    first_info: Option<TcpInfo>,
    last_info: Option<TcpInfo>,
    cpu: CpuSeries,
    unsent_limit: u64,
    buffer: BufferWatch,
}

/// How often the send buffer was full, with less than half of the unsent limit unsent.
#[derive(Debug, Default)]
struct BufferWatch {
    full: u32,
    of: u32,
    next_s: f64,
}

impl BufferWatch {
    /// Counts a sample; of the denser ones of the first seconds only some.
    fn count(&mut self, t_s: f64, is_full: bool) {
        if t_s >= self.next_s {
            self.next_s = t_s + SHOW_SECONDS;
            self.full += u32::from(is_full);
            self.of += 1;
        }
    }

    fn is_mostly_full(&self) -> bool {
        self.full * 2 > self.of
    }
}

/// CPU time of a thread at its first and last sample.
#[derive(Debug, Default, Clone, Copy)]
struct CpuSeries {
    first: Option<(f64, Duration, Duration)>,
    last: Option<(f64, Duration, Duration)>,
}

impl CpuSeries {
    /// Shares of a core: used, and waited for.
    fn shares(&self) -> Option<(f64, f64)> {
        let ((from, used, waited), (to, used_last, waited_last)) = (self.first?, self.last?);
        let seconds = to - from;
        let share = |from: Duration, to: Duration| to.saturating_sub(from).as_secs_f64() / seconds;
        (seconds > 0.0).then(|| (share(used, used_last), share(waited, waited_last)))
    }
}

/// The samples of a step.
#[derive(Debug)]
pub(super) struct Series {
    kind: StepKind,
    flows: Vec<FlowSeries>,
    /// Bytes of all flows at the last sample that was shown, by flow.
    shown: Vec<(f64, u64)>,
    /// CPU time of this process, first and last.
    process: Option<((f64, Duration), (f64, Duration))>,
    /// Bytes of all flows by time, every sample.
    pub(super) total: Vec<(f64, u64)>,
}

impl Series {
    pub(super) fn new(kind: StepKind, flows: usize) -> Self {
        Series {
            kind,
            flows: (0..flows).map(|_| FlowSeries::default()).collect(),
            shown: vec![(0.0, 0); flows],
            process: None,
            total: Vec::new(),
        }
    }

    /// Samples every flow at `t_s`.
    pub(super) fn sample(&mut self, t_s: f64, flows: &[BulkFlow]) {
        for (series, flow) in self.flows.iter_mut().zip(flows) {
            let state = &flow.state;
            let Ok(info) = state.connection.tcp_info() else { continue };
            if let Some(clock) = state.clock.get()
                && let Some(used) = clock.read()
            {
                let reading = (t_s, used, clock.waited().unwrap_or_default());
                series.cpu.first.get_or_insert(reading);
                series.cpu.last = Some(reading);
            }
            series.first_info.get_or_insert(info);
            series.last_info = Some(info);
            if self.kind == StepKind::Download {
                series.sample_sender(t_s, state.written.load(Ordering::Relaxed), &info);
                let is_full = series.has_full_buffer(&state.connection);
                series.buffer.count(t_s, is_full);
                series.adapt(flow);
            } else {
                // What arrived, whether it is read or not: the page may send before the step
                // begins, and what waits then is not of the step.
                let arrived =
                    info.bytes_received.zip(series.first_info.and_then(|info| info.bytes_received));
                let received = match arrived {
                    Some((now, then)) => now.saturating_sub(then),
                    None => state.received.load(Ordering::Relaxed),
                };
                let memory = state.connection.memory().ok();
                // Masks and headers are a thousandth, but make the socket look unread.
                let sample = receiver_sample(t_s, received, Some(&info), memory.as_ref());
                series.receiver.push(ReceiverSample { unread_bytes: None, ..sample });
            }
        }
        if let Ok(cpu) = host::cpu::this_process() {
            let last = (t_s, cpu.total());
            self.process = Some((self.process.map_or(last, |(first, _)| first), last));
        }
        let bytes = self.flows.iter().map(FlowSeries::bytes).sum();
        self.total.push((t_s, bytes));
    }

    /// The flows since the last call, for the page.
    pub(super) fn show(&mut self, t_s: f64) -> Vec<FlowSample> {
        let mut all = Vec::with_capacity(self.flows.len());
        for (series, shown) in self.flows.iter().zip(&mut self.shown) {
            let bytes = series.bytes();
            let seconds = t_s - shown.0;
            let rate = match seconds > 0.0 {
                true => bytes.saturating_sub(shown.1) as f64 * 8.0 / seconds,
                false => 0.0,
            };
            *shown = (t_s, bytes);
            let ms = |us: u32| f64::from(us) / 1e3;
            let sender = series.sender.last();
            all.push(FlowSample {
                rate,
                rtt: match sender {
                    Some(sample) => Some(ms(sample.rtt_us)),
                    None => series.receiver.last().and_then(|sample| sample.rtt_us).map(ms),
                },
                cwnd: sender.map(|sample| sample.cwnd_bytes),
                retransmits: sender.map(|sample| sample.retransmits),
            });
        }
        all
    }

    /// Bytes that arrived by the last sample.
    pub(super) fn bytes(&self) -> u64 {
        self.total.last().map_or(0, |(_, bytes)| *bytes)
    }

    /// Lost segments of all flows by those sent: retransmitted less those that were spurious;
    /// `None` where nothing was sent.
    pub(super) fn loss(&self) -> Option<f64> {
        let (mut lost, mut sent) = (0.0, 0.0);
        for series in self.flows.iter().filter(|_| self.kind == StepKind::Download) {
            let (first, last) = (series.first_info?, series.last_info?);
            let since = |of: fn(&TcpInfo) -> Option<u64>| -> Option<f64> {
                Some(of(&last)?.saturating_sub(of(&first).unwrap_or(0)) as f64)
            };
            let spurious = since(|info| info.dsack_dups.map(u64::from))? * f64::from(last.snd_mss);
            lost += (since(|info| info.bytes_retrans)? - spurious).max(0.0);
            sent += since(|info| info.bytes_sent)?;
        }
        (sent > 0.0).then(|| lost / sent)
    }

    /// Shares of a core that the busiest flow used and waited for. Flows that are requests have no
    /// thread of their own: where this process does nothing else, they share its time.
    fn server_cpu(&self, is_alone: bool) -> (Option<f64>, Option<f64>) {
        let threads = self.flows.iter().filter_map(|series| series.cpu.shares());
        if let Some((used, waited)) = threads.max_by(|a, b| a.0.total_cmp(&b.0)) {
            return (Some(used), Some(waited));
        }
        let Some((first, last)) = self.process.filter(|_| is_alone) else { return (None, None) };
        let seconds = last.0 - first.0;
        let threads = self.flows.len().clamp(1, host::cpu::cores() as usize);
        let used = last.1.saturating_sub(first.1).as_secs_f64() / seconds / threads as f64;
        (Some(used.min(1.0)).filter(|_| seconds > 0.0), None)
    }

    /// The measurement of the step, in whose terms the visitor is the client.
    pub(super) fn measurement(
        &self,
        plan: &Plan,
        congestion: Option<&str>,
        client: SocketAddr,
        browser_cpu: Option<f64>,
        is_alone: bool,
    ) -> Measurement {
        let download = self.kind == StepKind::Download;
        let seconds = self.total.last().map_or(0.0, |(t_s, _)| *t_s);
        let streams = self.flows.iter().zip(FIRST_ID..).map(|(series, id)| Stream {
            id,
            reverse: download,
            congestion: congestion.filter(|_| download).map(str::to_owned),
            sent_bytes: series.bytes(),
            received_bytes: series.bytes(),
            sent_seconds: seconds,
            received_seconds: seconds,
            retransmits: series.sender.last().map(|sample| sample.retransmits),
            unsent_limit_bytes: series.held_unsent(),
            sender: series.sender.clone(),
            receiver: series.receiver.clone(),
            ..Stream::default()
        });
        let (server, wait) = self.server_cpu(is_alone);
        Measurement {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_s: host::clock::unix_seconds(),
            spec: TestSpec {
                target: client.ip().to_string(),
                port: client.port(),
                direction: if download { Direction::Reverse } else { Direction::Forward },
                seconds: plan.seconds,
                streams: plan.flows,
                congestion: plan.congestion.clone(),
                fq_rate_bps: plan.pacing.filter(|_| download),
                limits_unsent: self.flows.iter().any(|series| series.held_unsent().is_some()),
                ..TestSpec::default()
            },
            host: HostFacts::default(),
            peer: format!("longhaul {}", env!("CARGO_PKG_VERSION")),
            streams: streams.collect(),
            sender_cpu: if download { server } else { browser_cpu },
            sender_core_wait: wait.filter(|_| download),
            receiver_cpu: if download { browser_cpu } else { server },
            receiver_core_wait: wait.filter(|_| !download),
            ..Measurement::default()
        }
    }
}

impl FlowSeries {
    fn bytes(&self) -> u64 {
        let sent = self.sender.last().map(|sample| sample.delivered_bytes);
        sent.or(self.receiver.last().map(|sample| sample.received_bytes)).unwrap_or(0)
    }

    fn sample_sender(&mut self, t_s: f64, written: u64, info: &TcpInfo) {
        let sample = sender_sample(t_s, written, info);
        // The answer to the upgrade has been acknowledged before.
        let first = *self.first.get_or_insert(Sample { t_s: 0.0, ..sample });
        self.sender.push(sample.since(&first));
    }

    /// Whether the send buffer, and not the limit of unsent bytes, is what holds up the writer.
    fn has_full_buffer(&self, connection: &Connection) -> bool {
        let Ok(memory) = connection.memory() else { return false };
        let unsent = self.sender.last().map_or(0, |sample| sample.unsent_bytes);
        let is_full = f64::from(memory.send_used) >= FULL_BUFFER * f64::from(memory.send_buffer);
        is_full && unsent < self.unsent_limit / 2
    }

    /// The limit of unsent bytes, unless it was mostly the send buffer that held up the writer.
    fn held_unsent(&self) -> Option<u64> {
        Some(self.unsent_limit).filter(|limit| *limit > 0 && !self.buffer.is_mostly_full())
    }

    /// Fits the socket's unsent bytes, and the frames, to the rate.
    fn adapt(&mut self, flow: &BulkFlow) {
        let Some(last) = self.sender.last() else { return };
        flow.state.rate.store(last.delivery_rate_bps, Ordering::Relaxed);
        let bytes = (last.delivery_rate_bps as f64 / 8.0 * UNSENT_SECONDS) as u64;
        let limit = bytes.clamp(MIN_UNSENT, MAX_UNSENT).next_power_of_two();
        if limit != self.unsent_limit {
            self.unsent_limit = limit;
            let _ = flow.state.connection.set_unsent_limit(Some(ByteCount::from_bytes(limit)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_judged_by_samples_that_are_apart() {
        let mut watch = BufferWatch::default();
        assert!(!watch.is_mostly_full());
        // Of ten samples within an interval one counts.
        for number in 0..10 {
            watch.count(f64::from(number) * SHOW_SECONDS / 10.0, true);
        }
        assert_eq!((watch.full, watch.of), (1, 1));
        assert!(watch.is_mostly_full());
        // Half of the samples is not most of them.
        watch.count(SHOW_SECONDS, false);
        assert_eq!((watch.full, watch.of), (1, 2));
        assert!(!watch.is_mostly_full());
        watch.count(SHOW_SECONDS * 2.5, true);
        assert!(watch.is_mostly_full());
    }

    #[test]
    fn the_limit_of_unsent_bytes_holds_a_writer_unless_its_buffer_is_full() {
        let mut series = FlowSeries::default();
        // Before the first sample of a sender there is no limit.
        assert_eq!(series.held_unsent(), None);
        series.unsent_limit = MIN_UNSENT;
        assert_eq!(series.held_unsent(), Some(MIN_UNSENT));
        series.buffer = BufferWatch { full: 1, of: 2, next_s: 0.0 };
        assert_eq!(series.held_unsent(), Some(MIN_UNSENT));
        series.buffer = BufferWatch { full: 2, of: 3, next_s: 0.0 };
        assert_eq!(series.held_unsent(), None);
    }
}
