//! The sending end of a connection.
//!
//! A driver calls [`Sender::on_acknowledgement`] for what arrives and
//! [`Sender::on_timeout`] at [`Sender::next_timeout`]; after either, it calls
//! [`Sender::transmit`] until that returns `None`.

mod acknowledgements;
mod info;
mod recovery;
mod timers;

pub use info::{Feedback, SenderInfo};
pub use recovery::Reductions;

use crate::application::{Application, WriteLimit};
use crate::kernel_version::KernelVersion;
use crate::limits::{Limit, LimitClock};
use crate::pacer::{self, Pacer};
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::send_buffer::{BufferCheck, BufferSize, SendBuffer};
use crate::{PacketRun, Segments};
use control::{CongestionControl, DeliveryRate, Phase, Reduction};
use recovery::Recovery;
use timers::Timers;
use units::{BitRate, Nanos, Rtt, WindowChange};

/// Settings of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderConfig {
    /// Payload of a packet, bytes; at least 1.
    pub mss: u32,
    /// What there is to send.
    pub application: Application,
    /// When the application ends.
    pub limit: WriteLimit,
    /// The send buffer.
    pub buffer: BufferSize,
    /// When a writer has to wait for room in it.
    pub buffer_check: BufferCheck,
    /// Most that the pacing rate may be (`SO_MAX_PACING_RATE`); makes any control paced.
    pub max_pacing_rate: Option<BitRate>,
    /// The window that the receiver advertised in the handshake, packets.
    pub peer_window: u64,
    /// RTT of the handshake.
    pub handshake_rtt: Option<Rtt>,
    /// The Linux that the sender follows.
    pub kernel: KernelVersion,
}

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender<C> {
    config: SenderConfig,
    mss: u64,
    control: C,
    board: Scoreboard,
    rtt: RttEstimator,
    rack: Rack,
    rate: DeliveryRate,
    buffer: SendBuffer,
    pacer: Pacer,
    limits: LimitClock,
    recovery: Recovery,
    timers: Timers,
    /// The packet before which the receiver's window ends.
    edge: u64,
    /// The receiver's newest timestamp value.
    echo: Nanos,
    /// CE marks that the receiver has counted.
    marked: u64,
    /// What routers have granted, as the newest acknowledgement has it.
    granted: WindowChange,
    /// What the receiver has reported.
    feedback: Feedback,
    /// When the last packet was sent.
    last_sent: Nanos,
    /// Packets retransmitted.
    retransmits: u64,
    reductions: Reductions,
    usage: WindowUsage,
    /// A probe of the tail or of the window is to be sent.
    probe: Option<Probe>,
}

/// A packet to be sent outside the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// RFC 8985 section 7.
    Tail,
    /// RFC 9293 section 3.8.6.1.
    Window,
}

/// How much of the congestion window was used within the last round trip (RFC 7661;
/// Linux's `tcp_cwnd_validate`).
#[derive(Debug, Clone, Copy, Default)]
struct WindowUsage {
    limited: bool,
    most_in_flight: u64,
    /// The round trip ends when this packet is acknowledged.
    end: u64,
}

impl<C: CongestionControl> Sender<C> {
    /// A sender with nothing sent.
    pub fn new(config: SenderConfig, control: C) -> Self {
        let mss = u64::from(config.mss.max(1));
        let mut rtt = RttEstimator::default();
        if let Some(sample) = config.handshake_rtt {
            rtt.update(sample.nanos());
        }
        let mut sender = Sender {
            config,
            mss,
            control,
            board: Scoreboard::default(),
            rtt,
            rack: Rack::new(),
            rate: DeliveryRate::default(),
            buffer: SendBuffer::new(
                config.application,
                config.buffer,
                config.buffer_check,
                config.limit,
                mss,
            ),
            pacer: Pacer::default(),
            limits: LimitClock::default(),
            recovery: Recovery::default(),
            timers: Timers::default(),
            edge: config.peer_window,
            echo: Nanos(0),
            marked: 0,
            granted: WindowChange::NONE,
            feedback: Feedback::default(),
            last_sent: Nanos(0),
            retransmits: 0,
            reductions: Reductions::default(),
            usage: WindowUsage::default(),
            probe: None,
        };
        sender.grow_buffer();
        sender
    }

    /// The congestion control.
    pub const fn control(&self) -> &C {
        &self.control
    }

    /// The congestion window in effect: in recovery, that of Proportional Rate Reduction.
    #[must_use]
    pub fn cwnd(&self) -> u64 {
        self.recovery.prr().map_or_else(|| self.control.cwnd(), Prr::cwnd)
    }

    /// What its data packets tell routers, if its control has it so: the window in packets and
    /// the RTT.
    #[must_use]
    pub fn router_header(&self) -> Option<(u64, Rtt)> {
        if !self.control.reads_router_feedback() {
            return None;
        }
        Some((self.cwnd(), self.rtt.smoothed()?))
    }

    /// Whether the application has ended and everything that was sent is acknowledged.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.buffer.has_ended() && self.board.una() == self.buffer.written()
    }

    /// The next burst to send now, if any.
    pub fn transmit(&mut self, now: Nanos) -> Option<Segments> {
        self.write(now);
        if let Some(probe) = self.probe.take()
            && let Some(segments) = self.send_probe(now, probe)
        {
            return Some(segments);
        }
        match self.next_burst(now) {
            Ok(Burst::Lost(packets)) => self.resend(now, packets),
            Ok(Burst::New(packets)) => {
                let segments = self.send_new(now, packets);
                self.check_space();
                Some(segments)
            }
            Err(limit) => {
                self.settle(now, limit);
                None
            }
        }
    }

    /// The application writes what it has and what fits.
    fn write(&mut self, now: Nanos) {
        let in_flight = self.board.in_flight();
        let starved = self.buffer.written() == self.board.nxt()
            && in_flight < self.cwnd()
            && !self.board.has_lost();
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let paced = self.is_paced() && self.pacer.next() > now;
        let sends = in_flight < self.cwnd() && nxt < self.edge && !paced;
        self.buffer.fill(now, una, nxt, sends);
        if starved && self.buffer.written() > self.board.nxt() {
            self.rate.set_app_limited(in_flight);
        }
    }

    /// Whether what may be sent now leaves a part of the congestion window free.
    fn leaves_window_unused(&self, now: Nanos) -> bool {
        let waits = self.is_paced() && self.pacer.next() > now;
        if self.board.has_lost() && !waits {
            return false;
        }
        let unsent = self.buffer.written().min(self.edge).saturating_sub(self.board.nxt());
        self.board.in_flight() + if waits { 0 } else { unsent } < self.cwnd()
    }

    /// After each burst, and so also between those that fill the window: the send buffer grows
    /// where the writer waits and the window is not full (Linux's `tcp_check_space`).
    fn check_space(&mut self) {
        if self.buffer.is_blocked() && self.board.in_flight() < self.cwnd() {
            self.grow_buffer();
        }
    }

    /// The send buffer grows with the congestion window (Linux's `tcp_sndbuf_expand`).
    fn grow_buffer(&mut self) {
        let window = self.cwnd().max(control::INITIAL_WINDOW);
        self.buffer.grow(window.saturating_mul(self.control.send_buffer_windows()));
    }

    fn next_burst(&self, now: Nanos) -> Result<Burst, Limit> {
        let cwnd = self.cwnd();
        let in_flight = self.board.in_flight();
        let quota = cwnd.saturating_sub(in_flight);
        let unsent = self.buffer.written() - self.board.nxt();
        let retransmit = self.board.has_lost() && !self.recovery.sends_new_first();
        if !retransmit && unsent == 0 {
            let blocked = self.buffer.is_blocked();
            return Err(if blocked { Limit::SendBuffer } else { Limit::Application });
        }
        if quota == 0 {
            return Err(Limit::Cwnd);
        }
        let full = self.burst_packets();
        let burst = if retransmit {
            Burst::Lost(quota.min(full))
        } else {
            let window = self.edge.saturating_sub(self.board.nxt());
            if window == 0 {
                return Err(Limit::Rwnd);
            }
            let room = quota.min(window);
            if room < full && room < unsent && self.defers(now, room, cwnd) {
                return Err(if quota <= window { Limit::Cwnd } else { Limit::Rwnd });
            }
            Burst::New(room.min(unsent).min(full))
        };
        if self.is_paced() && self.pacer.next() > now {
            return Err(Limit::Pacing);
        }
        Ok(burst)
    }

    /// Whether to wait for room for a whole burst: an acknowledgement is about to come,
    /// and little of the window is free (Linux's `tcp_tso_should_defer`).
    fn defers(&self, now: Nanos, room: u64, cwnd: u64) -> bool {
        let window = cwnd.min(self.edge - self.board.una());
        let head_age = self.board.head_sent().map_or(0, |sent| now.nanos_since(sent));
        self.recovery.phase() == Phase::Open
            && room * 3 < window
            && self.config.kernel.is_acknowledgement_near(head_age, self.rtt.smoothed_ns())
    }

    fn send_new(&mut self, now: Nanos, packets: u64) -> Segments {
        let in_flight = self.board.in_flight();
        if self.board.una() == self.board.nxt() {
            self.end_idle(now);
        }
        let snapshot = self.rate.on_send(now, in_flight, packets);
        let run = self.board.send_new(packets, now, snapshot);
        self.sent(now, run, false)
    }

    fn resend(&mut self, now: Nanos, packets: u64) -> Option<Segments> {
        let snapshot = self.rate.on_send(now, self.board.in_flight(), packets);
        let run = self.board.resend(packets, now, snapshot)?;
        if run.start == self.board.una() {
            self.restart_retransmission_timer(now);
        }
        Some(self.sent(now, run, true))
    }

    fn send_probe(&mut self, now: Nanos, probe: Probe) -> Option<Segments> {
        match probe {
            Probe::Window => {
                let una = self.board.una();
                let run = PacketRun::new(una, una);
                Some(Segments {
                    run,
                    sent: now,
                    echo: self.echo,
                    retransmission: false,
                    pushed: false,
                })
            }
            Probe::Tail => {
                let nxt = self.board.nxt();
                let is_new = self.buffer.written() > nxt && self.edge > nxt;
                let segments = if is_new {
                    self.send_new(now, 1)
                } else {
                    let snapshot = self.rate.on_send(now, self.board.in_flight(), 1);
                    let run = self.board.resend_tail(now, snapshot)?;
                    self.sent(now, run, true)
                };
                self.recovery.on_tail_probe(self.board.nxt(), !is_new);
                self.restart_retransmission_timer(now);
                Some(segments)
            }
        }
    }

    fn sent(&mut self, now: Nanos, run: PacketRun, retransmission: bool) -> Segments {
        let packets = run.len();
        if retransmission {
            self.retransmits += packets;
        }
        self.recovery.on_send(now, packets, retransmission);
        let rate = self.is_paced().then(|| self.pacing_rate()).flatten();
        self.pacer.on_send(now, packets, packets * self.mss, rate);
        self.last_sent = now;
        if self.timers.retransmission.is_none() {
            self.restart_retransmission_timer(now);
        }
        self.timers.sent = true;
        let pushed = self.pushes(run);
        Segments { run, sent: now, echo: self.echo, retransmission, pushed }
    }

    /// Whether the last packet of a burst has PSH: where it is the last that the application has
    /// written, be that the end of a write or where the writer waits for room; and in any burst
    /// of several packets, as captures of Linux 6.18 show.
    fn pushes(&self, run: PacketRun) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9293#section-3.9.1.2
        //# MUST set the PSH bit in the last buffered segment (i.e., when there is no more queued
        //# data to be sent) (MUST-61).
        run.end == self.buffer.written() || run.len() > 1
    }

    /// Nothing more can be sent for now.
    fn settle(&mut self, now: Nanos, limit: Limit) {
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let busy = nxt > una || self.buffer.written() > nxt;
        self.limits.set(now, limit, busy);
        self.validate_window(limit);
        self.timers.write =
            if limit == Limit::Application { self.buffer.next_write(now) } else { None };
        if limit == Limit::Rwnd && nxt == una {
            let timeout = now.plus_nanos(self.rtt.timeout_ns());
            self.timers.persist.get_or_insert(timeout);
        } else {
            self.timers.persist = None;
        }
        if std::mem::take(&mut self.timers.sent) {
            self.schedule_tail_probe(now);
        }
    }

    fn validate_window(&mut self, limit: Limit) {
        let in_flight = self.board.nxt() - self.board.una();
        let limited = limit == Limit::Cwnd || self.board.in_flight() >= self.cwnd();
        if !self.timers.sent && !limited {
            return;
        }
        let usage = &mut self.usage;
        if self.board.una() >= usage.end
            || limited
            || (!usage.limited && in_flight > usage.most_in_flight)
        {
            let end = self.board.nxt();
            *usage = WindowUsage { limited, most_in_flight: in_flight, end };
        }
    }

    /// Whether the window limited the sender, so that it may grow.
    fn is_cwnd_limited(&self) -> bool {
        let cwnd = self.control.cwnd();
        if self.control.ssthresh().is_none_or(|threshold| cwnd < threshold) {
            return cwnd < 2 * self.usage.most_in_flight;
        }
        self.usage.limited
    }

    /// The first data after a pause (RFC 2861).
    fn end_idle(&mut self, now: Nanos) {
        if self.board.nxt() == 0 {
            return;
        }
        let idle = now.nanos_since(self.last_sent);
        let timeouts = idle / self.rtt.base_timeout_ns().max(1);
        let timeouts = u32::try_from(timeouts).unwrap_or(u32::MAX);
        self.control.on_idle_end(now, idle, timeouts);
    }

    fn is_paced(&self) -> bool {
        self.config.max_pacing_rate.is_some() || self.control.pacing_rate().is_some()
    }

    /// The rate that bursts are sized by, and paced at where they are.
    fn pacing_rate(&self) -> Option<BitRate> {
        let rate = self.control.pacing_rate().or_else(|| {
            let srtt = self.rtt.smoothed()?;
            let ssthresh = self.control.ssthresh();
            let cwnd = self.cwnd().max(self.board.in_flight());
            Some(pacer::window_rate(cwnd, ssthresh, self.mss, srtt.nanos()))
        });
        match (rate, self.config.max_pacing_rate) {
            (Some(rate), Some(most)) => Some(rate.min(most)),
            (rate, most) => rate.or(most),
        }
    }

    fn burst_packets(&self) -> u64 {
        let least = self.control.min_burst();
        let rate = self.pacing_rate().unwrap_or(BitRate::ZERO);
        let min_rtt_ns = self.rtt.min_ns().unwrap_or(u64::MAX);
        let burst = pacer::burst_packets(rate, min_rtt_ns, self.mss, least);
        burst.min(self.control.max_burst().unwrap_or(u64::MAX)).max(1)
    }

    fn uses_prr(&self) -> bool {
        self.control.reduction() == Reduction::Proportional
    }
}

/// What to send next, and how many packets of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Burst {
    /// Retransmissions.
    Lost(u64),
    /// Packets that were not sent before.
    New(u64),
}
