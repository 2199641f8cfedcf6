//! The state of one connection across polls.

use host::sock_diag::{self, Bbr, Connection};
use record::{ConnectionSample, Shares};
use std::collections::VecDeque;
use std::net::SocketAddr;
use units::BitRate;

/// Samples kept of a connection that carries payload: the input of its finding.
const HISTORY_LEN: usize = 30;

/// Samples kept of the followed connection.
const FOLLOWED_LEN: usize = 600;

/// Seconds without payload after which the history is discarded.
const IDLE_S: f64 = 10.0;

/// A connection and its samples.
#[derive(Debug)]
pub(crate) struct Track {
    /// The last poll that contained it.
    pub(crate) poll: u64,
    pub(crate) state: u8,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) inode: u32,
    pub(crate) uid: u32,
    pub(crate) congestion: Option<Box<str>>,
    pub(crate) bbr: Option<Bbr>,
    /// Whether the selected process has it open; `None` until checked.
    pub(crate) wanted: Option<bool>,
    pub(crate) now: ConnectionSample,
    pub(crate) before: Option<ConnectionSample>,
    /// When it last carried payload, or was first seen, seconds.
    pub(crate) last_active_s: f64,
    /// Samples since it began to carry payload, oldest first.
    pub(crate) history: VecDeque<ConnectionSample>,
    /// Whether a longer history is kept.
    pub(crate) followed: bool,
}

impl Track {
    pub(crate) fn new(poll: u64, t_s: f64, connection: &Connection<'_>) -> Self {
        Track {
            poll,
            state: connection.state,
            local: connection.local,
            remote: connection.remote,
            inode: connection.inode,
            uid: connection.uid,
            congestion: connection.congestion.map(Into::into),
            bbr: connection.bbr,
            wanted: None,
            now: sample(t_s, connection),
            before: None,
            last_active_s: t_s,
            history: VecDeque::new(),
            followed: false,
        }
    }

    /// Takes in the result of another poll.
    pub(crate) fn update(&mut self, poll: u64, t_s: f64, connection: &Connection<'_>) {
        let before = std::mem::replace(&mut self.now, sample(t_s, connection));
        (self.poll, self.state, self.bbr) = (poll, connection.state, connection.bbr);
        self.before = Some(before);
        if self.inode != connection.inode {
            // Accepted or closed since: another owner, or none.
            (self.inode, self.uid, self.wanted) = (connection.inode, connection.uid, None);
        }
        if self.congestion.as_deref() != connection.congestion {
            self.congestion = connection.congestion.map(Into::into);
        }
        if self.is_active() {
            self.last_active_s = t_s;
            if self.history.is_empty() {
                self.history.push_back(before);
            }
        }
        if self.followed || (self.is_active() || !self.history.is_empty()) {
            self.history.push_back(self.now);
        }
        if !self.followed && t_s - self.last_active_s > IDLE_S {
            self.history = VecDeque::new();
        }
        let limit = if self.followed { FOLLOWED_LEN } else { HISTORY_LEN };
        while self.history.len() > limit {
            self.history.pop_front();
        }
    }

    /// Whether it carried payload in either direction over the interval.
    pub(crate) fn is_active(&self) -> bool {
        self.before.is_some_and(|before| payload(&before, &self.now) != (0, 0))
    }

    /// Send and receive rates over the interval.
    pub(crate) fn rates(&self) -> Option<(BitRate, BitRate)> {
        self.before.and_then(|before| rates(&before, &self.now))
    }

    /// Segments retransmitted over the interval.
    pub(crate) fn retransmits(&self) -> u64 {
        let before = self.before.map_or(self.now.sent.retransmits, |seen| seen.sent.retransmits);
        self.now.sent.retransmits.saturating_sub(before)
    }

    /// Shares of the interval by cause, if it sent anything and `TCP_INFO` has timers.
    pub(crate) fn shares(&self) -> Option<Shares> {
        let before = self.before.filter(|before| self.now.has_timers && before.has_timers)?;
        let has_sent = self.now.sent.busy_us > before.sent.busy_us;
        let shares = diagnose::shares_between(&before.sent, &self.now.sent);
        shares.filter(|_| has_sent)
    }

    /// The state as RFC 9293 calls it.
    pub(crate) fn state_name(&self) -> &'static str {
        match self.state {
            sock_diag::ESTABLISHED => "established",
            sock_diag::SYN_SENT => "syn-sent",
            sock_diag::SYN_RECV => "syn-received",
            sock_diag::FIN_WAIT1 => "fin-wait-1",
            sock_diag::FIN_WAIT2 => "fin-wait-2",
            sock_diag::CLOSE_WAIT => "close-wait",
            sock_diag::LAST_ACK => "last-ack",
            sock_diag::CLOSING => "closing",
            _ => "other",
        }
    }
}

/// Payload bytes acknowledged and received between two samples.
pub(crate) fn payload(before: &ConnectionSample, now: &ConnectionSample) -> (u64, u64) {
    // bytes_acked counts the SYN, which is not payload.
    let acked = |seen: &ConnectionSample| seen.sent.acked_bytes.max(1);
    (
        acked(now).saturating_sub(acked(before)),
        now.received.received_bytes.saturating_sub(before.received.received_bytes),
    )
}

/// Send and receive rates between two samples; `None` if no time passed.
pub(crate) fn rates(
    before: &ConnectionSample,
    now: &ConnectionSample,
) -> Option<(BitRate, BitRate)> {
    let seconds = now.sent.t_s - before.sent.t_s;
    let (sent, received) = payload(before, now);
    let rate = |bytes: u64| BitRate::from_bps_f64(bytes as f64 * 8.0 / seconds);
    (seconds > 0.0).then(|| (rate(sent), rate(received)))
}

/// Converts the kernel's view of a connection to a sample.
pub(crate) fn sample(t_s: f64, connection: &Connection<'_>) -> ConnectionSample {
    let info = connection.info.unwrap_or_default();
    let acked = info.bytes_acked.unwrap_or(0);
    let written = acked.saturating_add(u64::from(connection.send_queue));
    let received = info.bytes_received.unwrap_or(0);
    let memory = connection.memory.as_ref();
    ConnectionSample {
        sent: host::tcp_info::sender_sample(t_s, written, &info),
        received: host::tcp_info::receiver_sample(t_s, received, Some(&info), memory),
        unread_bytes: u64::from(connection.receive_queue),
        has_timers: info.busy_us.is_some(),
    }
}
