//! The records of `include/longhaul_control.h`, version [`VERSION`]: words of 64 bits.

use control::{Ack, Congestion, MAX_WINDOW, Phase, Reduction};
use units::{BitRate, Nanos};

/// "LHCTRL" and two zeros, in the order of bytes in memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LHCTRL\0\0");
/// Version of the records.
pub const VERSION: u64 = 1;

/// Word of the page where the header is: magic, version, the program's version.
pub const HEADER: usize = 0;
/// Word of the header that the program writes its version into.
pub const PROGRAM_VERSION: usize = 2;
/// Word of the bell of events.
pub const EVENT_BELL: usize = 8;
/// Word where an event is.
pub const EVENT: usize = 16;
/// Word of the bell of replies.
pub const REPLY_BELL: usize = 56;
/// Word where a reply is.
pub const REPLY: usize = 64;

/// Words of an event.
pub const EVENT_WORDS: usize = 32;
/// Words of a reply.
pub const REPLY_WORDS: usize = 8;

/// Highest pacing rate of a reply, bit/s: 1.1 Pbit/s.
const MAX_PACING_BPS: u64 = 1 << 50;
/// Largest minimum burst, packets, and most windows of the send buffer.
const MAX_FACTOR: u64 = 64;

/// What a program is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// The flow begins.
    Start {
        /// Payload of a packet, bytes.
        mss: u32,
        /// For random numbers.
        seed: u64,
        /// Number of the flow, from 1.
        flow: u64,
    },
    /// [`control::CongestionControl::on_ack`].
    Ack(&'a Ack),
    /// [`control::CongestionControl::on_congestion`].
    Congestion(&'a Congestion),
    /// [`control::CongestionControl::on_recovery_end`].
    RecoveryEnd(Nanos),
    /// [`control::CongestionControl::on_retransmission_timeout`].
    Timeout(&'a Congestion),
    /// [`control::CongestionControl::undo`].
    Undo(Nanos),
    /// [`control::CongestionControl::on_idle_end`].
    IdleEnd {
        /// When.
        now: Nanos,
        /// How long nothing was in flight.
        idle_ns: u64,
        /// How many retransmission timeouts that is.
        timeouts: u32,
    },
    /// The simulation has ended; no answer is due.
    Stop,
}

/// Places of an event's fields, in words.
mod field {
    pub(super) const KIND: usize = 0;
    pub(super) const NOW: usize = 1;
    pub(super) const FLAGS: usize = 2;
    pub(super) const PHASE: usize = 3;
    pub(super) const NEWLY_ACKED: usize = 4;
    pub(super) const NEWLY_DELIVERED: usize = 5;
    pub(super) const NEWLY_LOST: usize = 6;
    pub(super) const DELIVERED: usize = 7;
    pub(super) const NEWLY_MARKED: usize = 8;
    pub(super) const ACKED_TO: usize = 9;
    pub(super) const SENT_TO: usize = 10;
    pub(super) const IN_FLIGHT: usize = 11;
    pub(super) const PRIOR_IN_FLIGHT: usize = 12;
    pub(super) const RTT: usize = 13;
    pub(super) const SRTT: usize = 14;
    pub(super) const RATE_DELIVERED: usize = 15;
    pub(super) const RATE_PRIOR_DELIVERED: usize = 16;
    pub(super) const RATE_INTERVAL: usize = 17;
    pub(super) const RATE_IN_FLIGHT: usize = 18;
    pub(super) const RATE_LOST: usize = 19;
    pub(super) const FIRST_LOST: usize = 20;
    pub(super) const LOST: usize = 21;
    pub(super) const IDLE: usize = 22;
    pub(super) const TIMEOUTS: usize = 23;
    pub(super) const MSS: usize = 24;
    pub(super) const SEED: usize = 25;
    pub(super) const FLOW: usize = 26;
}

/// Flags of an event.
mod event_flag {
    pub(super) const CWND_LIMITED: u64 = 1;
    pub(super) const RTT: u64 = 2;
    pub(super) const SRTT: u64 = 4;
    pub(super) const RATE: u64 = 8;
    pub(super) const RATE_APP_LIMITED: u64 = 16;
    pub(super) const IS_NEW: u64 = 32;
}

/// Flags of a reply.
mod reply_flag {
    pub(super) const PACED: u64 = 1;
    pub(super) const SSTHRESH: u64 = 2;
    pub(super) const CONTROLS_RECOVERY: u64 = 4;
    pub(super) const ALL: u64 = PACED | SSTHRESH | CONTROLS_RECOVERY;
}

impl Event<'_> {
    /// What it is, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Event::Start { .. } => "the start of the flow",
            Event::Ack(_) => "an acknowledgement",
            Event::Congestion(_) => "the beginning of a recovery",
            Event::RecoveryEnd(_) => "the end of a recovery",
            Event::Timeout(_) => "a retransmission timeout",
            Event::Undo(_) => "the undoing of a recovery",
            Event::IdleEnd { .. } => "the end of an idle time",
            Event::Stop => "the end of the simulation",
        }
    }

    /// When it happened, in virtual time.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        match *self {
            Event::Start { .. } | Event::Stop => Nanos(0),
            Event::Ack(ack) => ack.now,
            Event::Congestion(congestion) | Event::Timeout(congestion) => congestion.now,
            Event::RecoveryEnd(now) | Event::Undo(now) | Event::IdleEnd { now, .. } => now,
        }
    }

    /// Its `kind` (`LH_START` and so on).
    const fn kind(&self) -> u64 {
        match self {
            Event::Start { .. } => 1,
            Event::Ack(_) => 2,
            Event::Congestion(_) => 3,
            Event::RecoveryEnd(_) => 4,
            Event::Timeout(_) => 5,
            Event::Undo(_) => 6,
            Event::IdleEnd { .. } => 7,
            Event::Stop => 8,
        }
    }

    /// Its record.
    #[must_use]
    pub fn to_words(&self) -> [u64; EVENT_WORDS] {
        let mut words = [0; EVENT_WORDS];
        words[field::KIND] = self.kind();
        words[field::NOW] = self.now().0;
        match *self {
            Event::Start { mss, seed, flow } => {
                words[field::MSS] = u64::from(mss);
                words[field::SEED] = seed;
                words[field::FLOW] = flow;
            }
            Event::Ack(ack) => write_ack(&mut words, ack),
            Event::Congestion(congestion) | Event::Timeout(congestion) => {
                words[field::FLAGS] = flag(congestion.is_new, event_flag::IS_NEW);
                words[field::IN_FLIGHT] = congestion.in_flight;
                words[field::SENT_TO] = congestion.sent_to;
                words[field::FIRST_LOST] = congestion.first_lost;
                words[field::LOST] = congestion.lost;
            }
            Event::IdleEnd { idle_ns, timeouts, .. } => {
                words[field::IDLE] = idle_ns;
                words[field::TIMEOUTS] = u64::from(timeouts);
            }
            Event::RecoveryEnd(_) | Event::Undo(_) | Event::Stop => {}
        }
        words
    }
}

fn write_ack(words: &mut [u64; EVENT_WORDS], ack: &Ack) {
    let mut flags = flag(ack.cwnd_limited, event_flag::CWND_LIMITED)
        | flag(ack.rtt.is_some(), event_flag::RTT)
        | flag(ack.srtt.is_some(), event_flag::SRTT)
        | flag(ack.rate.is_some(), event_flag::RATE);
    if let Some(rate) = &ack.rate {
        flags |= flag(rate.app_limited, event_flag::RATE_APP_LIMITED);
        words[field::RATE_DELIVERED] = rate.delivered;
        words[field::RATE_PRIOR_DELIVERED] = rate.prior_delivered;
        words[field::RATE_INTERVAL] = rate.interval_ns;
        words[field::RATE_IN_FLIGHT] = rate.in_flight;
        words[field::RATE_LOST] = rate.lost;
    }
    words[field::FLAGS] = flags;
    words[field::PHASE] = match ack.phase {
        Phase::Open => 0,
        Phase::Recovery => 1,
        Phase::Loss => 2,
    };
    words[field::NEWLY_ACKED] = ack.newly_acked;
    words[field::NEWLY_DELIVERED] = ack.newly_delivered;
    words[field::NEWLY_LOST] = ack.newly_lost;
    words[field::DELIVERED] = ack.delivered;
    words[field::NEWLY_MARKED] = ack.newly_marked;
    words[field::ACKED_TO] = ack.acked_to;
    words[field::SENT_TO] = ack.sent_to;
    words[field::IN_FLIGHT] = ack.in_flight;
    words[field::PRIOR_IN_FLIGHT] = ack.prior_in_flight;
    words[field::RTT] = ack.rtt.map_or(0, units::Rtt::nanos);
    words[field::SRTT] = ack.srtt.map_or(0, units::Rtt::nanos);
}

const fn flag(is_set: bool, flag: u64) -> u64 {
    if is_set { flag } else { 0 }
}

/// A program's answer, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Window, packets.
    pub cwnd: u64,
    /// Pacing rate; `None`: not paced.
    pub pacing: Option<BitRate>,
    /// Slow-start threshold, packets.
    pub ssthresh: Option<u64>,
    /// Who reduces the window in recovery.
    pub reduction: Reduction,
    /// Smallest burst while paced, packets.
    pub min_burst: u64,
    /// Windows by which the send buffer is sized.
    pub send_buffer_windows: u64,
    /// Number of the event that it answers, modulo 2^32, from 1.
    pub event: u32,
}

/// An answer that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// A number beyond its range.
    #[error("{what} of {value}; it must be 1 to {most}")]
    OutOfRange {
        /// The setting, with its article.
        what: &'static str,
        /// Its value.
        value: u64,
        /// The most that it may be.
        most: u64,
    },
    /// No number of an event.
    #[error("the number {0} of an event, which no event has")]
    Event(u64),
    /// Flags that this version does not have.
    #[error("flags {0:#x}, of which {unknown:#x} are unknown", unknown = .0 & !reply_flag::ALL)]
    Flags(u64),
}

impl Reply {
    /// Reads a record.
    ///
    /// # Errors
    /// A value beyond its range.
    pub fn from_words(words: [u64; REPLY_WORDS]) -> Result<Self, ReplyError> {
        let [flags, cwnd, pacing, ssthresh, min_burst, send_buffer_windows, event, _] = words;
        if flags & !reply_flag::ALL != 0 {
            return Err(ReplyError::Flags(flags));
        }
        let pacing = (flags & reply_flag::PACED != 0)
            .then(|| in_range("a pacing rate in bit/s", pacing, MAX_PACING_BPS))
            .transpose()?;
        let ssthresh = (flags & reply_flag::SSTHRESH != 0)
            .then(|| in_range("a slow-start threshold", ssthresh, MAX_WINDOW))
            .transpose()?;
        let controlled = flags & reply_flag::CONTROLS_RECOVERY != 0;
        Ok(Reply {
            cwnd: in_range("a window", cwnd, MAX_WINDOW)?,
            pacing: pacing.map(BitRate::from_bps),
            ssthresh,
            reduction: if controlled { Reduction::Controlled } else { Reduction::Proportional },
            min_burst: in_range("a minimum burst", min_burst, MAX_FACTOR)?,
            send_buffer_windows: in_range(
                "a number of send buffer windows",
                send_buffer_windows,
                MAX_FACTOR,
            )?,
            event: u32::try_from(event).map_err(|_| ReplyError::Event(event))?,
        })
    }
}

fn in_range(what: &'static str, value: u64, most: u64) -> Result<u64, ReplyError> {
    if (1..=most).contains(&value) {
        Ok(value)
    } else {
        Err(ReplyError::OutOfRange { what, value, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::RateSample;
    use units::Rtt;

    fn ack() -> Ack {
        let rate = RateSample {
            delivered: 15,
            prior_delivered: 16,
            interval_ns: 17,
            app_limited: true,
            in_flight: 18,
            lost: 19,
        };
        Ack {
            now: Nanos(1),
            newly_acked: 4,
            newly_delivered: 5,
            newly_lost: 6,
            delivered: 7,
            newly_marked: 8,
            acked_to: 9,
            sent_to: 10,
            in_flight: 11,
            prior_in_flight: 12,
            cwnd_limited: true,
            rtt: Some(Rtt::from_nanos(13)),
            srtt: Some(Rtt::from_nanos(14)),
            rate: Some(rate),
            receiver: None,
            phase: Phase::Loss,
        }
    }

    #[test]
    fn fields_are_at_their_places() {
        let words = Event::Ack(&ack()).to_words();
        assert_eq!(words[..4], [2, 1, 0b1_1111, 2]);
        assert_eq!(words[4..20], std::array::from_fn::<u64, 16, _>(|index| index as u64 + 4));
        assert_eq!(words[20..], [0; 12]);
        let bare = Ack { rtt: None, srtt: None, rate: None, cwnd_limited: false, ..ack() };
        let words = Event::Ack(&bare).to_words();
        assert_eq!((words[2], &words[13..]), (0, &[0; 19][..]));
        let congestion = Congestion {
            now: Nanos(1),
            in_flight: 11,
            is_new: true,
            first_lost: 20,
            lost: 21,
            sent_to: 10,
        };
        for (event, kind) in [(Event::Congestion(&congestion), 3), (Event::Timeout(&congestion), 5)]
        {
            let words = event.to_words();
            assert_eq!((words[0], words[1], words[2]), (kind, 1, event_flag::IS_NEW));
            assert_eq!((words[10], words[11], words[20], words[21]), (10, 11, 20, 21));
        }
        let words = Event::IdleEnd { now: Nanos(1), idle_ns: 22, timeouts: 23 }.to_words();
        assert_eq!((words[0], words[22], words[23]), (7, 22, 23));
        let words = Event::Start { mss: 24, seed: 25, flow: 26 }.to_words();
        assert_eq!((words[0], &words[24..27]), (1, &[24, 25, 26][..]));
        let kinds = [Event::RecoveryEnd(Nanos(1)), Event::Undo(Nanos(1)), Event::Stop];
        assert_eq!(kinds.map(|event| event.to_words()[0]), [4, 6, 8]);
    }

    #[test]
    fn the_ends_of_each_range_are_accepted_and_what_is_beyond_refused() {
        let read = |words: [u64; 6]| {
            let [flags, cwnd, pacing, ssthresh, burst, windows] = words;
            Reply::from_words([flags, cwnd, pacing, ssthresh, burst, windows, 1, 0])
        };
        let least = read([0, 1, 0, 0, 1, 1]).unwrap();
        assert_eq!((least.pacing, least.ssthresh), (None, None), "not asked for");
        assert_eq!(least.reduction, Reduction::Proportional);
        let most = read([7, MAX_WINDOW, 1 << 50, MAX_WINDOW, 64, 64]).unwrap();
        assert_eq!((most.cwnd, most.ssthresh), (MAX_WINDOW, Some(MAX_WINDOW)));
        assert_eq!(most.pacing, Some(BitRate::from_bps(1 << 50)));
        assert_eq!(most.reduction, Reduction::Controlled);
        for wrong in [
            [0, 0, 0, 0, 2, 2],
            [0, MAX_WINDOW + 1, 0, 0, 2, 2],
            [0, 1 << 40, 0, 0, 2, 2],
            [0, u64::MAX, 0, 0, 2, 2],
            [1, 10, 0, 0, 2, 2],
            [1, 10, (1 << 50) + 1, 0, 2, 2],
            [2, 10, 0, 0, 2, 2],
            [2, 10, 0, MAX_WINDOW + 1, 2, 2],
            [0, 10, 0, 0, 0, 2],
            [0, 10, 0, 0, 65, 2],
            [0, 10, 0, 0, 2, 0],
            [0, 10, 0, 0, 2, 65],
            [8, 10, 0, 0, 2, 2],
        ] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        let text = read([9, 10, 1, 0, 2, 2]).unwrap_err().to_string();
        assert_eq!(text, "flags 0x9, of which 0x8 are unknown");
        let text = read([0, 0, 0, 0, 2, 2]).unwrap_err().to_string();
        assert_eq!(text, "a window of 0; it must be 1 to 4294967296");
    }
}
