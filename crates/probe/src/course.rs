//! A test's course from the first byte to the last: samples, report rows, the
//! end of the warm-up, and the counts when it is over. The same at both ends.

use crate::{
    event::Interval,
    sampling::{Series, receiver_sample, sender_sample},
    traffic::{Flow, Traffic},
};
use host::{
    clock,
    cpu::{self, ProcessCpu},
    tcp_info::{self, MemInfo, TcpInfo},
};
use iperf3::{Results, StreamResult, cookie::COOKIE_LEN};
use record::{ReceiverSample, Sample};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount, Rtt};

/// How a test is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) sending: bool,
    /// Whether this end opened the streams, and so wrote the cookie on them.
    pub(crate) opened: bool,
    pub(crate) omit: Duration,
    /// Bytes that end the test, over all streams.
    pub(crate) limit: Option<u64>,
    pub(crate) sample_every: Duration,
    pub(crate) report_every: Duration,
    /// Samples kept for each stream.
    pub(crate) most_samples: usize,
}

/// A running test.
pub(crate) struct Course<'a> {
    watch: Watch,
    flows: &'a [Flow],
    traffic: &'a Traffic,
    tracks: Vec<Track>,
    began: Instant,
    /// Start of what counts: of the warm-up while it runs, of the test then.
    start: Instant,
    omitting: bool,
    next_sample: Instant,
    sampled_at: Instant,
    next_report: Instant,
    reported_to: Instant,
    ended: Option<Instant>,
    process: ProcessCpu,
}

struct Track {
    base_bytes: u64,
    base_retransmits: u32,
    told_bytes: u64,
    told_retransmits: u32,
    told_delivered: u64,
    sender: Series<Sample>,
    receiver: Series<ReceiverSample>,
}

/// What a test came to, at this end.
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) streams: Vec<FlowOutcome>,
    /// Most CPU one traffic thread used, as a share of one core.
    pub(crate) cpu: Option<f64>,
    process: ProcessCpu,
    elapsed: Duration,
}

pub(crate) struct FlowOutcome {
    pub(crate) id: u32,
    pub(crate) bytes: u64,
    pub(crate) retransmits: Option<u64>,
    pub(crate) congestion: Option<String>,
    pub(crate) sender: Vec<Sample>,
    pub(crate) receiver: Vec<ReceiverSample>,
}

impl<'a> Course<'a> {
    /// The traffic begins.
    pub(crate) fn begin(watch: Watch, flows: &'a [Flow], traffic: &'a Traffic) -> Self {
        let now = clock::now();
        let mut course = Course {
            watch,
            flows,
            traffic,
            tracks: flows.iter().map(|_| Track::new(watch.most_samples)).collect(),
            began: now,
            start: now,
            omitting: !watch.omit.is_zero(),
            next_sample: now,
            sampled_at: now,
            next_report: now + watch.report_every,
            reported_to: now,
            ended: None,
            process: cpu::this_process().unwrap_or_default(),
        };
        if course.omitting {
            course.next_sample = now + watch.omit;
        } else {
            course.count_from(now);
        }
        course
    }

    /// When the traffic began, the warm-up included.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// When a test of `length` is over; the time counts from the warm-up's actual end.
    pub(crate) fn end_after(&self, length: Duration) -> Instant {
        if self.omitting { self.began + self.watch.omit + length } else { self.start + length }
    }

    /// When [`Course::tick`] has something to do next.
    pub(crate) fn next_tick(&self) -> Instant {
        self.next_sample.min(self.next_report)
    }

    /// Does what is due: samples, report rows, the end of the warm-up.
    pub(crate) fn tick(&mut self, tell: &mut dyn FnMut(Interval)) {
        let now = clock::now();
        if self.omitting && now >= self.began + self.watch.omit {
            self.report(now, tell);
            self.omitting = false;
            self.count_from(now);
        }
        if now >= self.next_sample && !self.omitting {
            self.sample(now);
            self.next_sample = next_after(self.next_sample, self.watch.sample_every, now);
        }
        if now >= self.next_report {
            self.report(now, tell);
            self.next_report = next_after(self.next_report, self.watch.report_every, now);
        }
    }

    /// Whether bytes end the test rather than time.
    pub(crate) fn has_limit(&self) -> bool {
        self.watch.limit.is_some()
    }

    /// Whether the bytes that end the test have passed: read at this end, or
    /// written and acknowledged by the other.
    pub(crate) fn has_reached_limit(&self) -> bool {
        let Some(limit) = self.watch.limit.filter(|_| !self.omitting) else { return false };
        let counted = self.flows.iter().zip(&self.tracks);
        let bytes: u64 = counted.map(|(flow, track)| flow.bytes() - track.base_bytes).sum();
        bytes >= limit
            && (!self.watch.sending
                || self.flows.iter().all(|flow| {
                    TcpInfo::of(&flow.socket).map_or(true, |info| {
                        info.unacked == 0 && info.notsent_bytes.unwrap_or(0) == 0
                    })
                }))
    }

    /// The first stream that failed.
    pub(crate) fn broken(&self) -> Option<(&Flow, &str)> {
        self.flows.iter().find_map(|flow| Some((flow, flow.broke()?)))
    }

    /// The test is over now: the time stops, and the last samples are taken.
    pub(crate) fn end(&mut self) {
        let now = clock::now();
        self.ended = Some(now);
        if !self.omitting {
            let t_s = (now - self.start).as_secs_f64();
            let instead = now - self.sampled_at < self.watch.sample_every / 2;
            for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
                let (sender, receiver) = reading(&self.watch, t_s, flow);
                sender.into_iter().for_each(|sample| track.sender.end(sample, instead));
                receiver.into_iter().for_each(|sample| track.receiver.end(sample, instead));
            }
        }
    }

    /// The counts, once no thread counts any more.
    pub(crate) fn finish(mut self, tell: &mut dyn FnMut(Interval)) -> Outcome {
        let now = self.ended.unwrap_or_else(clock::now);
        // A row of a few milliseconds says nothing.
        if now - self.reported_to >= self.watch.report_every / 10 {
            self.report(now, tell);
        }
        let elapsed = now - self.start;
        let whole = (now - self.began).as_secs_f64().max(1e-3);
        let cpu = self.flows.iter().filter_map(Flow::cpu).max();
        let process = cpu::this_process().unwrap_or_default().since(self.process);
        let sending = self.watch.sending;
        let streams = self.flows.iter().zip(self.tracks).map(|(flow, track)| {
            let info = TcpInfo::of(&flow.socket).ok().filter(|_| sending);
            FlowOutcome {
                id: flow.id,
                bytes: flow.bytes() - track.base_bytes,
                retransmits: info.map(|info| {
                    u64::from(info.total_retrans.saturating_sub(track.base_retransmits))
                }),
                congestion: tcp_info::congestion(&flow.socket).ok().filter(|_| sending),
                sender: track.sender.finish(),
                receiver: track.receiver.finish(),
            }
        });
        Outcome {
            seconds: elapsed.as_secs_f64(),
            streams: streams.collect(),
            cpu: cpu.map(|used| used.as_secs_f64() / whole),
            process,
            elapsed: now - self.began,
        }
    }

    /// Everything counts from `now` on.
    fn count_from(&mut self, now: Instant) {
        if let Some(limit) = self.watch.limit.filter(|_| self.watch.sending) {
            self.traffic.limit(limit);
        }
        for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
            track.base_bytes = flow.bytes();
            track.told_bytes = track.base_bytes;
            let info = TcpInfo::of(&flow.socket).unwrap_or_default();
            track.base_retransmits = info.total_retrans;
            track.told_retransmits = track.base_retransmits;
            track.told_delivered = info.delivered_bytes();
        }
        self.start = now;
        self.reported_to = now;
        self.next_sample = now;
        self.next_report = now + self.watch.report_every;
    }

    fn sample(&mut self, now: Instant) {
        self.sampled_at = now;
        let t_s = (now - self.start).as_secs_f64();
        for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
            let (sender, receiver) = reading(&self.watch, t_s, flow);
            sender.into_iter().for_each(|sample| track.sender.push(sample));
            receiver.into_iter().for_each(|sample| track.receiver.push(sample));
        }
    }

    fn report(&mut self, now: Instant, tell: &mut dyn FnMut(Interval)) {
        let span = now - self.reported_to;
        let blank = Interval {
            stream: None,
            from_s: (self.reported_to - self.start).as_secs_f64(),
            to_s: (now - self.start).as_secs_f64(),
            bytes: ByteCount::ZERO,
            rate: BitRate::ZERO,
            arrival_rate: None,
            retransmits: None,
            cwnd: None,
            rtt: None,
            omitted: self.omitting,
        };
        let mut sum = blank;
        for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
            let bytes = flow.bytes();
            let mut row = Interval { stream: Some(flow.id), ..blank };
            row.bytes = ByteCount::from_bytes(bytes - track.told_bytes);
            row.rate = BitRate::of(row.bytes, span);
            track.told_bytes = bytes;
            if !self.watch.sending {
                row.arrival_rate = Some(row.rate);
            } else if let Ok(info) = TcpInfo::of(&flow.socket) {
                let delivered = info.delivered_bytes();
                let arrived = delivered.saturating_sub(track.told_delivered);
                track.told_delivered = delivered;
                row.arrival_rate = Some(BitRate::of(ByteCount::from_bytes(arrived), span));
                let again = info.total_retrans.saturating_sub(track.told_retransmits);
                track.told_retransmits = info.total_retrans;
                row.retransmits = Some(u64::from(again));
                row.cwnd = Some(
                    ByteCount::from_bytes(u64::from(info.snd_cwnd)).times(u64::from(info.snd_mss)),
                );
                row.rtt = Some(Rtt::from_micros(u64::from(info.rtt_us)));
                sum.retransmits = Some(sum.retransmits.unwrap_or(0) + u64::from(again));
            }
            sum.bytes = sum.bytes.plus(row.bytes);
            sum.arrival_rate = row.arrival_rate.map(|rate| {
                BitRate::from_bps(
                    rate.bps().saturating_add(sum.arrival_rate.map_or(0, BitRate::bps)),
                )
            });
            tell(row);
        }
        if self.flows.len() > 1 {
            sum.rate = BitRate::of(sum.bytes, span);
            tell(sum);
        }
        self.reported_to = now;
    }
}

impl Track {
    fn new(most: usize) -> Self {
        Track {
            base_bytes: 0,
            base_retransmits: 0,
            told_bytes: 0,
            told_retransmits: 0,
            told_delivered: 0,
            sender: Series::new(most),
            receiver: Series::new(most),
        }
    }
}

impl Outcome {
    /// Bytes over all streams.
    pub(crate) fn bytes(&self) -> u64 {
        self.streams.iter().map(|stream| stream.bytes).sum()
    }

    /// The outcome as iperf3 reports it.
    pub(crate) fn results(&self, sending: bool) -> Results {
        let percent =
            |time: Duration| 100.0 * time.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-3);
        let retransmits =
            |stream: &FlowOutcome| stream.retransmits.and_then(|count| i64::try_from(count).ok());
        Results {
            cpu_util_total: percent(self.process.total()),
            cpu_util_user: percent(self.process.user),
            cpu_util_system: percent(self.process.system),
            sender_has_retransmits: if sending { 1 } else { -1 },
            congestion_used: self.streams.first().and_then(|stream| stream.congestion.clone()),
            streams: self
                .streams
                .iter()
                .map(|stream| StreamResult {
                    id: i64::from(stream.id),
                    bytes: i64::try_from(stream.bytes).unwrap_or(i64::MAX),
                    retransmits: retransmits(stream).unwrap_or(-1),
                    end_time: Some(self.seconds),
                    ..StreamResult::default()
                })
                .collect(),
            longhaul: None,
        }
    }
}

/// One reading of a flow: of the sending or of the receiving side.
fn reading(watch: &Watch, t_s: f64, flow: &Flow) -> (Option<Sample>, Option<ReceiverSample>) {
    let info = TcpInfo::of(&flow.socket).ok();
    // Read after the kernel, so that no sample has more acknowledged than written.
    let bytes = flow.bytes();
    if watch.sending {
        let cookie = if watch.opened { COOKIE_LEN as u64 } else { 0 };
        (info.map(|info| sender_sample(t_s, bytes + cookie, &info)), None)
    } else {
        let memory = MemInfo::of(&flow.socket).ok();
        (None, Some(receiver_sample(t_s, bytes, info.as_ref(), memory.as_ref())))
    }
}

/// The next multiple that lies ahead: after a stall no ticks are made up for.
fn next_after(due: Instant, every: Duration, now: Instant) -> Instant {
    if due + every > now { due + every } else { now + every }
}
