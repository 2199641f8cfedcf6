//! Both ends of a connection, and what is noted of it.

use crate::ConnectionConfig;
use crate::measurement::Recording;
use crate::truth::{self, ConnectionTruth};
use control::{BbrMode, CongestionControl, Controller, Phase};
use record::SenderState;
use tcp::{LimitTimes, Receiver, ReceiverConfig, Sender, SenderConfig};
use units::{Nanos, Rtt};

/// Both ends of a connection.
pub(crate) struct Connection {
    pub(crate) config: ConnectionConfig,
    pub(crate) sender: Sender<Controller>,
    pub(crate) receiver: Receiver,
    pub(crate) started: bool,
    pub(crate) recording: Recording,
    /// What happened to its packets within the interval.
    pub(crate) current: ConnectionTruth,
    /// The readings at the end of the last interval of the ground truth.
    before: Readings,
}

/// Readings of both ends.
#[derive(Debug, Clone, Copy, Default)]
struct Readings {
    times: LimitTimes,
    read: u64,
    retransmits: u64,
    duplicates: u64,
    reductions: u64,
    timeouts: u64,
}

impl Connection {
    pub(crate) fn new(config: ConnectionConfig, handshake_rtt: Rtt, control: Controller) -> Self {
        let receiver = Receiver::new(ReceiverConfig {
            mss: config.mss,
            window: config.window,
            reader: config.reader,
            handshake_rtt: Some(handshake_rtt),
        });
        let sender = SenderConfig {
            mss: config.mss,
            application: config.application,
            limit: config.limit,
            buffer: config.buffer,
            buffer_check: config.buffer_check,
            max_pacing_rate: config.max_pacing_rate,
            peer_window: receiver.window(),
            handshake_rtt: Some(handshake_rtt),
            kernel: config.kernel,
        };
        let recording = Recording::of(control.name());
        Connection {
            config,
            sender: Sender::new(sender, control),
            receiver,
            started: false,
            recording,
            current: ConnectionTruth::default(),
            before: Readings::default(),
        }
    }

    /// What happened since the last call.
    pub(crate) fn truth(&mut self, now: Nanos) -> ConnectionTruth {
        let info = self.sender.info(now);
        let readings = Readings {
            times: info.times,
            read: self.receiver.read(),
            retransmits: info.retransmits,
            duplicates: self.receiver.duplicates(),
            reductions: info.reductions.begun,
            timeouts: info.reductions.timeouts,
        };
        let before = std::mem::replace(&mut self.before, readings);
        let control = self.sender.control();
        let mode = bbr_mode(control);
        let slow_start = match mode {
            Some(mode) => mode == BbrMode::Startup,
            None => control.ssthresh().is_none_or(|threshold| control.cwnd() < threshold),
        };
        let timed_out = info.phase == Phase::Loss || readings.timeouts > before.timeouts;
        let repairs = info.phase == Phase::Recovery || readings.reductions > before.reductions;
        let state = match mode {
            _ if timed_out => SenderState::Loss,
            Some(BbrMode::Startup) => SenderState::Startup,
            Some(BbrMode::Drain) => SenderState::Drain,
            Some(BbrMode::ProbeBw) => SenderState::ProbeBandwidth,
            Some(BbrMode::ProbeRtt) => SenderState::ProbeRtt,
            None if repairs => SenderState::Recovery,
            None if slow_start => SenderState::SlowStart,
            None => SenderState::CongestionAvoidance,
        };
        ConnectionTruth {
            measured: self.config.measured,
            times: truth::passed(&before.times, &readings.times),
            read: readings.read - before.read,
            unread: self.receiver.received() - readings.read,
            retransmits: readings.retransmits - before.retransmits,
            duplicates: readings.duplicates - before.duplicates,
            reductions: readings.reductions - before.reductions,
            slow_start,
            state,
            ..std::mem::take(&mut self.current)
        }
    }
}

const fn bbr_mode(control: &Controller) -> Option<BbrMode> {
    match control {
        Controller::Bbr(bbr) => Some(bbr.mode()),
        Controller::Bbr3(bbr) => Some(bbr.mode()),
        _ => None,
    }
}
