//! One connection, from look to look.

use host::sock_diag::{self, Bbr, Connection};
use record::{Seen, Shares};
use std::collections::VecDeque;
use std::net::SocketAddr;
use units::BitRate;

/// Looks that are kept of a connection that carries payload: what the verdict on it
/// stands on.
const HISTORY: usize = 30;

/// Looks that are kept of the one that is followed.
const FOLLOWED: usize = 600;

/// After so many seconds without payload, looks are not kept any more.
const QUIET_S: f64 = 10.0;

/// A connection and what was seen of it.
#[derive(Debug)]
pub(crate) struct Track {
    /// The last look that it was in.
    pub(crate) look: u64,
    pub(crate) state: u8,
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    pub(crate) inode: u32,
    pub(crate) uid: u32,
    pub(crate) congestion: Option<Box<str>>,
    pub(crate) bbr: Option<Bbr>,
    /// Whether the process asked for has it open; `None` until looked for.
    pub(crate) wanted: Option<bool>,
    pub(crate) now: Seen,
    pub(crate) before: Option<Seen>,
    /// When it last carried payload, or was first seen.
    pub(crate) moved_s: f64,
    /// Looks at it while it carries payload, oldest first.
    pub(crate) history: VecDeque<Seen>,
    /// Whether more of them are kept.
    pub(crate) followed: bool,
}

impl Track {
    pub(crate) fn new(look: u64, t_s: f64, connection: &Connection<'_>) -> Self {
        Track {
            look,
            state: connection.state,
            local: connection.local,
            remote: connection.remote,
            inode: connection.inode,
            uid: connection.uid,
            congestion: connection.congestion.map(Into::into),
            bbr: connection.bbr,
            wanted: None,
            now: seen(t_s, connection),
            before: None,
            moved_s: t_s,
            history: VecDeque::new(),
            followed: false,
        }
    }

    /// Another look at it.
    pub(crate) fn see(&mut self, look: u64, t_s: f64, connection: &Connection<'_>) {
        let before = std::mem::replace(&mut self.now, seen(t_s, connection));
        (self.look, self.state, self.bbr) = (look, connection.state, connection.bbr);
        self.before = Some(before);
        if self.inode != connection.inode {
            // Accepted or closed since: another owner, or none.
            (self.inode, self.uid, self.wanted) = (connection.inode, connection.uid, None);
        }
        if self.congestion.as_deref() != connection.congestion {
            self.congestion = connection.congestion.map(Into::into);
        }
        if self.has_moved() {
            self.moved_s = t_s;
            if self.history.is_empty() {
                self.history.push_back(before);
            }
        }
        if self.followed || (self.has_moved() || !self.history.is_empty()) {
            self.history.push_back(self.now);
        }
        if !self.followed && t_s - self.moved_s > QUIET_S {
            self.history = VecDeque::new();
        }
        let most = if self.followed { FOLLOWED } else { HISTORY };
        while self.history.len() > most {
            self.history.pop_front();
        }
    }

    /// Whether payload went either way over the interval.
    pub(crate) fn has_moved(&self) -> bool {
        self.before.is_some_and(|before| moved(&before, &self.now) != (0, 0))
    }

    /// What it sent and received over the interval.
    pub(crate) fn rates(&self) -> Option<(BitRate, BitRate)> {
        self.before.and_then(|before| rates(&before, &self.now))
    }

    /// Segments sent again over the interval.
    pub(crate) fn retransmits(&self) -> u64 {
        let before = self.before.map_or(self.now.sent.retransmits, |seen| seen.sent.retransmits);
        self.now.sent.retransmits.saturating_sub(before)
    }

    /// The interval by cause, where it had anything to send and the kernel tells.
    pub(crate) fn shares(&self) -> Option<Shares> {
        let before = self.before.filter(|before| self.now.has_clocks && before.has_clocks)?;
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

/// Payload bytes sent and acknowledged, and received, between two looks.
pub(crate) fn moved(before: &Seen, now: &Seen) -> (u64, u64) {
    // The SYN counts as a byte acknowledged, and is none.
    let acked = |seen: &Seen| seen.sent.acked_bytes.max(1);
    (
        acked(now).saturating_sub(acked(before)),
        now.received.received_bytes.saturating_sub(before.received.received_bytes),
    )
}

/// The same a second; `None` where no time passed.
pub(crate) fn rates(before: &Seen, now: &Seen) -> Option<(BitRate, BitRate)> {
    let seconds = now.sent.t_s - before.sent.t_s;
    let (sent, received) = moved(before, now);
    let rate = |bytes: u64| BitRate::from_bps_f64(bytes as f64 * 8.0 / seconds);
    (seconds > 0.0).then(|| (rate(sent), rate(received)))
}

/// One look in the record's words.
fn seen(t_s: f64, connection: &Connection<'_>) -> Seen {
    let info = connection.info.unwrap_or_default();
    let acked = info.bytes_acked.unwrap_or(0);
    let written = acked.saturating_add(u64::from(connection.send_queue));
    let received = info.bytes_received.unwrap_or(0);
    let memory = connection.memory.as_ref();
    Seen {
        sent: probe::sender_sample(t_s, written, &info),
        received: probe::receiver_sample(t_s, received, Some(&info), memory),
        unread_bytes: u64::from(connection.receive_queue),
        has_clocks: info.busy_us.is_some(),
    }
}
