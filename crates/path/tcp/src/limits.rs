//! What a sender waits for, over time.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// What keeps a sender from sending more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Limit {
    /// The application has nothing to send.
    #[default]
    Application,
    /// The congestion window.
    Cwnd,
    /// The receiver's window.
    Rwnd,
    /// The send buffer: all in it is in flight, and the application waits for room.
    SendBuffer,
    /// The pacing rate.
    Pacing,
}

/// Time in each state, in ns, and Linux's timers of `TCP_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitTimes {
    /// Limited by the application.
    pub application_ns: u64,
    /// Limited by the congestion window.
    pub cwnd_ns: u64,
    /// Limited by the receiver's window (`tcpi_rwnd_limited`).
    pub rwnd_ns: u64,
    /// Limited by the send buffer (`tcpi_sndbuf_limited`).
    pub send_buffer_ns: u64,
    /// Limited by the pacing rate.
    pub pacing_ns: u64,
    /// With data to send or in flight, whatever the limit (`tcpi_busy_time`).
    pub busy_ns: u64,
}

/// The state since when, and the times so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitClock {
    limit: Limit,
    busy: bool,
    since: Nanos,
    times: LimitTimes,
}

impl LimitClock {
    /// From now on that limit holds; `busy` with data to send or in flight.
    pub(crate) fn set(&mut self, now: Nanos, limit: Limit, busy: bool) {
        if limit == self.limit && busy == self.busy {
            return;
        }
        self.times = self.times(now);
        self.since = now;
        self.limit = limit;
        self.busy = busy;
    }

    pub(crate) const fn limit(&self) -> Limit {
        self.limit
    }

    /// The times up to now.
    pub(crate) fn times(&self, now: Nanos) -> LimitTimes {
        let passed = now.nanos_since(self.since);
        let mut times = self.times;
        *match self.limit {
            Limit::Application => &mut times.application_ns,
            Limit::Cwnd => &mut times.cwnd_ns,
            Limit::Rwnd => &mut times.rwnd_ns,
            Limit::SendBuffer => &mut times.send_buffer_ns,
            Limit::Pacing => &mut times.pacing_ns,
        } += passed;
        if self.busy {
            times.busy_ns += passed;
        }
        times
    }
}
