//! A test's course from the first byte to the last: samples, report rows, the
//! end of the warm-up, and the counts when it is over. The same at both ends.

mod outcome;
mod track;

pub(crate) use outcome::{DatagramOutcome, FlowOutcome, Outcome, ThreadCpu};

use crate::{
    event::Interval,
    flow::Flow,
    sampling::{receiver_sample, sender_sample},
    traffic::Traffic,
};
use host::{
    clock,
    cpu::{self, ProcessCpu},
    tcp_info::{self, MemInfo, TcpInfo},
};
use iperf3::cookie::COOKIE_LEN;
use record::{Protocol, ReceiverSample, Sample};
use std::time::{Duration, Instant};
use track::{Track, add};
use units::{BitRate, ByteCount, Rtt};

/// How a test is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch {
    /// Whether this end opened the streams, and so wrote the cookie on them.
    pub(crate) opened: bool,
    pub(crate) omit: Duration,
    /// Bytes that end the test, over all streams of one direction.
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

    /// Whether what there was to carry has passed in every direction: read at
    /// this end, or written and acknowledged by the other.
    pub(crate) fn has_reached_limit(&self) -> bool {
        if self.traffic.is_exhausted() {
            return self.is_acknowledged();
        }
        let Some(limit) = self.watch.limit.filter(|_| !self.omitting) else { return false };
        let passed = |sending: bool| {
            let counted = self.flows.iter().zip(&self.tracks).filter(|(f, _)| f.sending == sending);
            let bytes = counted.map(|(flow, track)| flow.bytes() - track.base_bytes);
            bytes.reduce(u64::saturating_add).is_none_or(|bytes| bytes >= limit)
        };
        passed(false) && passed(true) && self.is_acknowledged()
    }

    /// Whether the receivers' kernels have all that was written here.
    fn is_acknowledged(&self) -> bool {
        self.flows.iter().filter(|f| f.sending && f.protocol == Protocol::Tcp).all(|flow| {
            TcpInfo::of(&flow.socket)
                .map_or(true, |info| info.unacked == 0 && info.notsent_bytes.unwrap_or(0) == 0)
        })
    }

    /// Bytes received at this end since the traffic began, the warm-up included.
    pub(crate) fn received(&self) -> u64 {
        self.flows.iter().filter(|flow| !flow.sending).map(Flow::bytes).sum()
    }

    /// Bytes that passed since the traffic began, both ways.
    pub(crate) fn passed(&self) -> u64 {
        self.flows.iter().map(Flow::bytes).sum()
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
        // A row of a few milliseconds in which nothing passed says nothing; with
        // the others the rows add up to the whole.
        let untold = self
            .flows
            .iter()
            .zip(&self.tracks)
            .any(|(flow, track)| flow.bytes() != track.told_bytes);
        if untold || now - self.reported_to >= self.watch.report_every / 10 {
            self.report(now, tell);
        }
        let elapsed = now - self.start;
        let whole = (now - self.began).as_secs_f64().max(1e-3);
        let busiest = |sending: bool| {
            let flows = self.flows.iter().filter(|flow| flow.sending == sending);
            ThreadCpu::busiest(flows.filter_map(|flow| {
                let share = |time: Duration| time.as_secs_f64() / whole;
                let (used, waited) = (share(flow.cpu()?), flow.core_wait().map(share));
                Some(ThreadCpu { used, waited: waited.unwrap_or(0.0) })
            }))
        };
        let (sender_cpu, receiver_cpu) = (busiest(true), busiest(false));
        let process = cpu::this_process().unwrap_or_default().since(self.process);
        let streams = self.flows.iter().zip(self.tracks).map(|(flow, track)| {
            let tcp = flow.protocol == Protocol::Tcp;
            let info = TcpInfo::of(&flow.socket).ok().filter(|_| tcp && flow.sending);
            FlowOutcome {
                id: flow.id,
                sending: flow.sending,
                bytes: flow.bytes() - track.base_bytes,
                retransmits: info.map(|info| {
                    u64::from(info.total_retrans.saturating_sub(track.base_retransmits))
                }),
                congestion: tcp_info::congestion(&flow.socket).ok().filter(|_| tcp),
                sender: track.sender.finish(),
                receiver: track.receiver.finish(),
                datagrams: (!tcp).then(|| DatagramOutcome {
                    sent: flow.sent(),
                    omitted_sent: track.base_sent,
                    counts: flow.counts().unwrap_or_default(),
                    omitted: track.base_counts,
                    bursts: flow.bursts(),
                }),
            }
        });
        Outcome {
            seconds: elapsed.as_secs_f64(),
            streams: streams.collect(),
            sender_cpu,
            receiver_cpu,
            process,
            elapsed: now - self.began,
        }
    }

    /// Everything counts from `now` on.
    fn count_from(&mut self, now: Instant) {
        if let Some(limit) = self.watch.limit {
            self.traffic.limit(limit);
        }
        for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
            track.base_bytes = flow.bytes();
            track.told_bytes = track.base_bytes;
            let info = TcpInfo::of(&flow.socket).unwrap_or_default();
            track.base_retransmits = info.total_retrans;
            track.told_retransmits = track.base_retransmits;
            track.told_delivered = info.delivered_bytes();
            track.base_sent = flow.sent();
            track.told_sent = track.base_sent;
            if let Some(mut arrivals) = flow.arrivals() {
                arrivals.forget_jitter();
                track.base_counts = arrivals.counts();
                track.told_counts = track.base_counts;
            }
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
            sending: true,
            from_s: (self.reported_to - self.start).as_secs_f64(),
            to_s: (now - self.start).as_secs_f64(),
            bytes: ByteCount::ZERO,
            rate: BitRate::ZERO,
            arrival_rate: None,
            retransmits: None,
            cwnd: None,
            peer_window: None,
            rtt: None,
            rttvar: None,
            pmtu: None,
            datagrams: None,
            omitted: self.omitting,
        };
        for sending in [true, false] {
            let mut sum = Interval { sending, ..blank };
            let mut count = 0;
            for (flow, track) in self.flows.iter().zip(&mut self.tracks) {
                if flow.sending != sending {
                    continue;
                }
                let row =
                    track.row(flow, span, Interval { stream: Some(flow.id), sending, ..blank });
                add(&mut sum, &row);
                count += 1;
                tell(row);
            }
            if count > 1 {
                sum.rate = BitRate::of(sum.bytes, span);
                if let Some(datagrams) = &mut sum.datagrams {
                    datagrams.jitter = Rtt::from_nanos(datagrams.jitter.nanos() / count);
                }
                tell(sum);
            }
        }
        self.reported_to = now;
    }
}

/// How long nothing has come.
pub(crate) struct Silence {
    limit: Duration,
    seen: u64,
    since: Instant,
}

impl Silence {
    pub(crate) fn begin(limit: Duration) -> Self {
        Silence { limit, seen: 0, since: clock::now() }
    }

    /// The limit, where nothing has come for so long; `bytes` have come in all.
    pub(crate) fn over(&mut self, bytes: u64) -> Option<Duration> {
        let now = clock::now();
        if bytes > self.seen {
            (self.seen, self.since) = (bytes, now);
        }
        (now - self.since > self.limit).then_some(self.limit)
    }
}

/// One reading of a flow: of the sending or of the receiving side.
fn reading(watch: &Watch, t_s: f64, flow: &Flow) -> (Option<Sample>, Option<ReceiverSample>) {
    if flow.protocol == Protocol::Udp {
        let bytes = flow.bytes();
        return (None, (!flow.sending).then(|| receiver_sample(t_s, bytes, None, None)));
    }
    let info = TcpInfo::of(&flow.socket).ok();
    // Read after the kernel, so that no sample has more acknowledged than written.
    let bytes = flow.bytes();
    if flow.sending {
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
