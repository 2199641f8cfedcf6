//! Retransmissions by kind.

/// How the sender came to retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetransmissionKind {
    /// The retransmission timer expired.
    Timeout,
    /// Later segments of a window, after the timer expired.
    AfterTimeout,
    /// Duplicate ACKs or SACK blocks: the first one of a recovery.
    Fast,
    /// The others of a recovery.
    Recovery,
    /// A tail loss probe.
    TailLossProbe,
}

/// How many kinds there are.
pub const KIND_COUNT: usize = 5;

impl RetransmissionKind {
    /// Every kind, in the order in which counts are stored.
    pub const ALL: [RetransmissionKind; KIND_COUNT] = [
        RetransmissionKind::Timeout,
        RetransmissionKind::AfterTimeout,
        RetransmissionKind::Fast,
        RetransmissionKind::Recovery,
        RetransmissionKind::TailLossProbe,
    ];

    /// Its name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RetransmissionKind::Timeout => "timeout",
            RetransmissionKind::AfterTimeout => "after_timeout",
            RetransmissionKind::Fast => "fast",
            RetransmissionKind::Recovery => "recovery",
            RetransmissionKind::TailLossProbe => "tail_loss_probe",
        }
    }
}

/// Retransmissions of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retransmissions {
    /// By kind, in the order of [`RetransmissionKind::ALL`].
    pub kinds: [u32; KIND_COUNT],
    /// The first packet of each kind, where there is one of it.
    pub first_packet: [u32; KIND_COUNT],
    /// Of segments that had passed this point: lost behind it, or not at all.
    pub seen_before: u32,
    /// Of segments that had not: lost before it.
    pub not_seen_before: u32,
    /// Spurious by Eifel (RFC 3522): the ACK echoes a time before the retransmission.
    pub spurious_eifel: u32,
    /// Spurious by DSACK (RFC 2883): the receiver had it twice.
    pub spurious_dsack: u32,
    /// Segments that came late without being retransmitted: overtaken on the path.
    pub reordered: u32,
    /// DSACKs of segments that were not retransmitted: duplicated on the path.
    pub duplicated: u32,
}

impl Retransmissions {
    /// Retransmissions of all kinds.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.kinds.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// How many of one kind.
    #[must_use]
    pub fn of(&self, kind: RetransmissionKind) -> u32 {
        self.kinds[kind as usize]
    }
}
