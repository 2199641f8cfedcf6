//! Samples a running test, at either end: TCP_INFO samples, interval reports, the
//! end of the warm-up, and the final counts.

mod outcome;
mod track;
mod unsent;

pub(crate) use outcome::{DatagramOutcome, Outcome, StreamOutcome, ThreadCpu};

use crate::{event::Interval, sampling::Schedule, stream::Stream, traffic::Traffic};
use host::{
    clock,
    cpu::{self, ProcessCpu},
    tcp_info::{self, MemInfo, TcpInfo, receiver_sample, sender_sample},
};
use iperf3_proto::cookie::COOKIE_LEN;
use record::{Protocol, ReceiverSample, Sample};
use std::time::{Duration, Instant};
use track::{Track, add};
use units::{BitRate, Rtt};
use unsent::LimitedSenders;

/// Configuration of a sampler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplerConfig {
    /// Whether this end opened the streams, and so sent the cookie on them.
    pub(crate) opened: bool,
    pub(crate) omit: Duration,
    /// Bytes that end the test, over all streams of one direction.
    pub(crate) limit: Option<u64>,
    /// Whether unsent data is limited while the path is short.
    pub(crate) limits_unsent: bool,
    /// Interval between samples after the start of the test.
    pub(crate) sample_every: Duration,
    pub(crate) report_every: Duration,
    /// Maximum samples kept per stream.
    pub(crate) max_samples: usize,
}

/// Samples a running test.
pub(crate) struct Sampler<'a> {
    config: SamplerConfig,
    streams: &'a [Stream],
    traffic: &'a Traffic,
    tracks: Vec<Track>,
    limited: Option<LimitedSenders>,
    schedule: Schedule,
    began: Instant,
    /// Start of the current phase: of the warm-up, then of the test.
    start: Instant,
    omitting: bool,
    next_sample: Instant,
    sampled_at: Instant,
    next_report: Instant,
    reported_to: Instant,
    ended: Option<Instant>,
    process: ProcessCpu,
}

impl<'a> Sampler<'a> {
    /// Starts as the traffic begins.
    pub(crate) fn begin(
        config: SamplerConfig,
        streams: &'a [Stream],
        traffic: &'a Traffic,
    ) -> Self {
        let now = clock::now();
        let schedule = Schedule::new(config.sample_every, streams.len(), config.omit);
        let track = |_| Track::new(config.max_samples, schedule.start_samples());
        let mut sampler = Sampler {
            config,
            streams,
            traffic,
            tracks: streams.iter().map(track).collect(),
            limited: config.limits_unsent.then(|| LimitedSenders::begin(streams, now)).flatten(),
            schedule,
            began: now,
            start: now,
            omitting: !config.omit.is_zero(),
            next_sample: now,
            sampled_at: now,
            next_report: now + config.report_every,
            reported_to: now,
            ended: None,
            process: cpu::this_process().unwrap_or_default(),
        };
        if sampler.omitting {
            sampler.next_sample = now + config.omit;
        } else {
            sampler.count_from(now);
        }
        sampler
    }

    /// When the traffic began, warm-up included.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// When counting began: after the warm-up, once that is over.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// The samples so far of each stream that this end sends.
    pub(crate) fn sent_samples(&self) -> impl Iterator<Item = &[Sample]> {
        let streams = self.streams.iter().zip(&self.tracks);
        streams.filter(|(stream, _)| stream.sending).map(|(_, track)| track.sender.samples())
    }

    /// When a test of `length` ends, counted from the actual end of the warm-up.
    pub(crate) fn end_after(&self, length: Duration) -> Instant {
        if self.omitting { self.began + self.config.omit + length } else { self.start + length }
    }

    /// When [`Sampler::tick`] is due next.
    pub(crate) fn next_tick(&self) -> Instant {
        let due = self.next_sample.min(self.next_report);
        self.limited.as_ref().map_or(due, |limited| due.min(limited.next_tick()))
    }

    /// Does what is due: samples, interval reports, the end of the warm-up.
    pub(crate) fn tick(&mut self, report: &mut dyn FnMut(Interval)) {
        let now = clock::now();
        if let Some(limited) = &mut self.limited {
            limited.tick(self.streams, now);
        }
        if self.omitting && now >= self.began + self.config.omit {
            self.report(now, report);
            self.omitting = false;
            self.count_from(now);
        }
        if now >= self.next_sample && !self.omitting {
            self.sample(now);
            let every = self.schedule.interval(self.next_sample - self.start);
            self.next_sample = next_after(self.next_sample, every, now);
        }
        if now >= self.next_report {
            self.report(now, report);
            self.next_report = next_after(self.next_report, self.config.report_every, now);
        }
    }

    /// Whether bytes end the test.
    pub(crate) fn has_limit(&self) -> bool {
        self.config.limit.is_some()
    }

    /// Whether this end stops sending at the limit. The end that opened the test ends it when it has
    /// counted all bytes. Where it does not count all that the other end sends, because datagrams
    /// are lost or because the warm-up ends at different bytes, the other end sends until then, as
    /// iperf3's server does.
    fn stops_at_limit(&self) -> bool {
        let loses = self.streams.iter().any(|stream| stream.protocol == Protocol::Udp);
        self.config.opened || !loses && self.config.omit.is_zero()
    }

    /// Whether all bytes of every direction have been received: read at this end,
    /// or acknowledged by the other.
    pub(crate) fn has_reached_limit(&self) -> bool {
        if self.traffic.train_has_ended() {
            return true;
        }
        if self.traffic.is_exhausted() {
            return self.is_acknowledged();
        }
        let Some(limit) = self.config.limit.filter(|_| !self.omitting) else { return false };
        let passed = |sending: bool| {
            let counted =
                self.streams.iter().zip(&self.tracks).filter(|(f, _)| f.sending == sending);
            let bytes = counted.map(|(stream, track)| stream.bytes() - track.base_bytes);
            bytes.reduce(u64::saturating_add).is_none_or(|bytes| bytes >= limit)
        };
        passed(false) && passed(true) && self.is_acknowledged()
    }

    /// Whether everything written here has been acknowledged.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.streams.iter().filter(|stream| stream.sending).all(|stream| match stream.protocol {
            Protocol::Tcp => TcpInfo::of(&stream.socket)
                .map_or(true, |info| info.unacked == 0 && info.notsent_bytes.unwrap_or(0) == 0),
            Protocol::Udt => stream.udt().is_flushed(),
            Protocol::Udp => true,
        })
    }

    /// Bytes received at this end since the traffic began, warm-up included.
    pub(crate) fn received(&self) -> u64 {
        self.streams.iter().filter(|stream| !stream.sending).map(Stream::bytes).sum()
    }

    /// What grows while a test makes progress: bytes read, written and acknowledged.
    pub(crate) fn progress(&self) -> u64 {
        let acknowledged = |stream: &Stream| match stream.protocol {
            Protocol::Tcp if stream.sending => {
                TcpInfo::of(&stream.socket).map_or(0, |info| info.delivered_bytes())
            }
            Protocol::Udt if stream.sending => stream.udt().acknowledged_bytes(),
            _ => 0,
        };
        self.streams.iter().map(|stream| stream.bytes().saturating_add(acknowledged(stream))).sum()
    }

    /// The first stream that failed.
    pub(crate) fn broken(&self) -> Option<(&Stream, &str)> {
        self.streams.iter().find_map(|stream| Some((stream, stream.broke()?)))
    }

    /// Ends the test now: stops the time and takes the last samples.
    pub(crate) fn end(&mut self) {
        self.end_at(clock::now());
    }

    /// The same for a test that ended at `now`, a moment ago.
    pub(crate) fn end_at(&mut self, now: Instant) {
        self.ended = Some(now);
        for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
            track.end(stream);
        }
        if !self.omitting {
            let t_s = (now - self.start).as_secs_f64();
            let every = self.schedule.interval(self.sampled_at - self.start);
            let instead = now - self.sampled_at < every / 2;
            for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
                let (sender, receiver) = take_sample(&self.config, t_s, stream);
                sender.into_iter().for_each(|sample| track.sender.end(sample, instead));
                receiver.into_iter().for_each(|sample| track.receiver.end(sample, instead));
            }
        }
    }

    /// The final counts, once all threads have stopped counting.
    pub(crate) fn finish(mut self, report: &mut dyn FnMut(Interval)) -> Outcome {
        let now = self.ended.unwrap_or_else(clock::now);
        // A last interval of a few milliseconds without data is omitted; otherwise the
        // intervals add up to the whole.
        let unreported = self
            .streams
            .iter()
            .zip(&self.tracks)
            .any(|(stream, track)| track.bytes(stream) != track.reported_bytes);
        if unreported || now - self.reported_to >= self.config.report_every / 10 {
            self.report(now, report);
        }
        let elapsed = now - self.start;
        let whole = (now - self.began).as_secs_f64().max(1e-3);
        let busiest = |sending: bool| {
            let streams = self.streams.iter().filter(|stream| stream.sending == sending);
            ThreadCpu::busiest(streams.filter_map(|stream| {
                let share = |time: Duration| time.as_secs_f64() / whole;
                let (used, waited) = (share(stream.cpu()?), stream.core_wait().map(share));
                Some(ThreadCpu { used, waited: waited.unwrap_or(0.0) })
            }))
        };
        let (sender_cpu, receiver_cpu) = (busiest(true), busiest(false));
        let process = cpu::this_process().unwrap_or_default().since(self.process);
        let streams = self.streams.iter().zip(self.tracks).map(|(stream, track)| {
            let tcp = stream.protocol == Protocol::Tcp;
            let udt =
                stream.udt().statistics().filter(|_| stream.protocol == Protocol::Udt).copied();
            let info = TcpInfo::of(&stream.socket).ok().filter(|_| tcp && stream.sending);
            let counts = track.counts(stream);
            StreamOutcome {
                id: stream.id,
                sending: stream.sending,
                bytes: track.bytes(stream) - track.base_bytes,
                retransmits: info
                    .map(|info| u64::from(info.total_retrans))
                    .or(udt.filter(|_| stream.sending).map(|udt| udt.sent.retransmitted))
                    .map(|count| count.saturating_sub(track.base_retransmits)),
                congestion: tcp_info::congestion(&stream.socket)
                    .ok()
                    .filter(|_| tcp)
                    .or(udt.map(|udt| udt.algorithm.to_owned())),
                unsent_limit: self
                    .limited
                    .as_ref()
                    .filter(|_| stream.sending)
                    .and_then(LimitedSenders::bytes),
                sender: track.sender.finish(),
                receiver: track.receiver.finish(),
                datagrams: (stream.protocol == Protocol::Udp).then(|| DatagramOutcome {
                    sent: stream.sent(),
                    omitted_sent: track.base_sent,
                    counts,
                    omitted: track.base_counts,
                    bursts: stream.bursts(),
                    fragmentation: stream.fragmentation,
                }),
                train: stream.train().map_or_else(Vec::new, |log| log.datagrams().to_vec()),
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

    /// Starts counting at `now`.
    fn count_from(&mut self, now: Instant) {
        if let Some(limit) = self.config.limit.filter(|_| self.stops_at_limit()) {
            self.traffic.limit(limit);
        }
        for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
            track.base_bytes = stream.bytes();
            track.reported_bytes = track.base_bytes;
            let state = *stream.udt();
            let info = TcpInfo::of(&stream.socket).unwrap_or_default();
            let (retransmits, delivered) = match state.statistics() {
                Some(udt) => (udt.sent.retransmitted, state.acknowledged_bytes()),
                None => (u64::from(info.total_retrans), info.delivered_bytes()),
            };
            track.base_retransmits = retransmits;
            track.reported_retransmits = retransmits;
            track.reported_delivered = delivered;
            track.base_sent = stream.sent();
            track.reported_sent = track.base_sent;
            if let Some(mut arrivals) = stream.arrivals() {
                arrivals.forget_jitter();
                track.base_counts = arrivals.counts();
                track.reported_counts = track.base_counts;
            }
        }
        self.start = now;
        self.reported_to = now;
        self.next_sample = now;
        self.next_report = now + self.config.report_every;
    }

    fn sample(&mut self, now: Instant) {
        self.sampled_at = now;
        let t_s = (now - self.start).as_secs_f64();
        for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
            let (sender, receiver) = take_sample(&self.config, t_s, stream);
            sender.into_iter().for_each(|sample| track.sender.push(sample));
            receiver.into_iter().for_each(|sample| track.receiver.push(sample));
        }
    }

    fn report(&mut self, now: Instant, report: &mut dyn FnMut(Interval)) {
        let span = now - self.reported_to;
        let blank = Interval {
            from_s: (self.reported_to - self.start).as_secs_f64(),
            to_s: (now - self.start).as_secs_f64(),
            omitted: self.omitting,
            ..Interval::default()
        };
        for sending in [true, false] {
            let mut sum = Interval { sending, ..blank };
            let mut count = 0;
            for (stream, track) in self.streams.iter().zip(&mut self.tracks) {
                if stream.sending != sending {
                    continue;
                }
                let interval = track.interval(
                    stream,
                    span,
                    Interval { stream: Some(stream.id), sending, ..blank },
                );
                add(&mut sum, &interval);
                count += 1;
                report(interval);
            }
            if count > 1 {
                sum.rate = BitRate::of(sum.bytes, span);
                if let Some(datagrams) = &mut sum.datagrams {
                    datagrams.jitter = Rtt::from_nanos(datagrams.jitter.nanos() / count);
                }
                report(sum);
            }
        }
        self.reported_to = now;
    }
}

/// Detects that nothing has been received for some time.
pub(crate) struct Silence {
    limit: Duration,
    seen: u64,
    since: Instant,
}

impl Silence {
    pub(crate) fn begin(limit: Duration) -> Self {
        Silence { limit, seen: 0, since: clock::now() }
    }

    /// The limit, if nothing was received for that long; `bytes` were received in
    /// total.
    pub(crate) fn over(&mut self, bytes: u64) -> Option<Duration> {
        let now = clock::now();
        if bytes > self.seen {
            (self.seen, self.since) = (bytes, now);
        }
        (now - self.since > self.limit).then_some(self.limit)
    }
}

/// One sample of a stream, of the sending or the receiving side.
fn take_sample(
    config: &SamplerConfig,
    t_s: f64,
    stream: &Stream,
) -> (Option<Sample>, Option<ReceiverSample>) {
    if stream.protocol == Protocol::Udt && stream.sending {
        let state = *stream.udt();
        let sample = state.sample(t_s, stream.bytes());
        return (sample.map(|sample| with_thread(sample, stream)), None);
    }
    if stream.protocol != Protocol::Tcp {
        let bytes = stream.bytes();
        return (None, (!stream.sending).then(|| receiver_sample(t_s, bytes, None, None)));
    }
    let info = TcpInfo::of(&stream.socket).ok();
    // Read after TCP_INFO, so that no sample has more bytes acknowledged than written.
    let bytes = stream.bytes();
    if stream.sending {
        let cookie = if config.opened { COOKIE_LEN as u64 } else { 0 };
        let sample = info.map(|info| sender_sample(t_s, bytes + cookie, &info));
        (sample.map(|sample| with_thread(sample, stream)), None)
    } else {
        let memory = MemInfo::of(&stream.socket).ok();
        let sample = receiver_sample(t_s, bytes, info.as_ref(), memory.as_ref());
        (None, Some(ReceiverSample { cpu_us: cpu_us(stream), ..sample }))
    }
}

/// With what the stream's thread read from its file, and its CPU time.
fn with_thread(sample: Sample, stream: &Stream) -> Sample {
    Sample { source_bytes: stream.source_bytes(), cpu_us: cpu_us(stream), ..sample }
}

fn cpu_us(stream: &Stream) -> Option<u64> {
    stream.cpu_share().and_then(|time| u64::try_from(time.as_micros()).ok())
}

/// The next multiple in the future: ticks missed in a stall are skipped.
fn next_after(due: Instant, every: Duration, now: Instant) -> Instant {
    if due + every > now { due + every } else { now + every }
}
