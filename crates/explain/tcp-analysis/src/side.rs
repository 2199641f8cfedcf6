//! What is kept of one direction of a connection.

use crate::ecn::SideEcn;
use crate::flags::{FlagCounts, Flags};
use crate::outstanding::{ALLOCATION, Outstanding};
use crate::recovery::Recovery;
use crate::vantage::Responses;
use crate::window_edges::{LeastScale, WindowEdges};
use std::num::{NonZeroU32, NonZeroU64};

/// Whether and how the windows of a side are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowScale {
    /// Its SYN was not captured.
    #[default]
    Unknown,
    /// A side did not offer it, so neither scales.
    Off,
    /// The shift of its windows.
    Shift(u8),
}

impl WindowScale {
    /// The shift; 0 where it is off or unknown.
    #[must_use]
    #[inline]
    pub const fn shift(self) -> u8 {
        match self {
            WindowScale::Shift(shift) => shift,
            WindowScale::Unknown | WindowScale::Off => 0,
        }
    }
}

/// RTTs of the data of a side, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SideRtt {
    pub(crate) least_ns: NonZeroU64,
    /// As in RFC 6298.
    pub(crate) smoothed_ns: u64,
}

/// A side's own numbers, and what it last acknowledged. A `seq` or `ack` of 0 counts as
/// not seen, as in Wireshark.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// Its first sequence number.
    pub(crate) base_seq: Option<u32>,
    /// Highest sequence number after a segment of its own, and when it was reached.
    pub(crate) next_seq: u32,
    pub(crate) next_seq_ns: u64,
    /// Highest number that was captured without a gap.
    pub(crate) contiguous: u32,
    pub(crate) last_ack: u32,
    /// Bytes that it acknowledged before the first packet of its peer.
    pub(crate) acked_unseen: u64,
    pub(crate) last_ack_ns: u64,
    /// As last sent, not scaled; `None` before the first segment.
    pub(crate) window: Option<u16>,
    /// -1 after an ACK of what was not captured.
    pub(crate) duplicate_acks: i32,
    /// Packet whose ACK the duplicates repeat.
    pub(crate) repeated_ack: u32,
    pub(crate) last_flags: Flags,
    /// The data-level acknowledgement of its last MPTCP option.
    pub(crate) data_ack: Option<NonZeroU32>,
    pub(crate) scale: WindowScale,
    /// The least scale of its windows where its SYN was not captured: known from an earlier pass
    /// over the capture, or what the peer's data proves so far.
    pub(crate) least_scale: Option<LeastScale>,
    pub(crate) edges: Option<Box<WindowEdges>>,
    /// The largest window outside of a SYN, as sent.
    pub(crate) largest_window: u16,
    /// From its first packet with a mark, or with AccECN from the handshake on.
    pub(crate) ecn: Option<Box<SideEcn>>,
    /// Whether the last window was in a SYN, which is never scaled.
    pub(crate) window_of_syn: bool,
    /// Whether its bytes in flight are known: no gap since the peer's last ACK.
    pub(crate) flight_known: bool,
    /// Whether its last packet had SACK blocks, how many bytes they report, and the
    /// highest edge of them.
    pub(crate) has_sack: bool,
    pub(crate) sacked_bytes: u32,
    pub(crate) sacked_to: u32,
    pub(crate) outstanding: Outstanding,
    /// End of its last segment, if that came in order after the least time of a timeout.
    pub(crate) after_silence: Option<NonZeroU32>,
    /// From the first evidence of a loss on.
    pub(crate) recovery: Option<Box<Recovery>>,
    /// From its first flag on.
    pub(crate) counts: Option<Box<FlagCounts>>,
    pub(crate) packets: u32,
    pub(crate) data_packets: u32,
    /// Payload of all transmissions.
    pub(crate) payload_bytes: u64,
    /// Its latest timestamp value.
    pub(crate) latest_ts: Option<NonZeroU32>,
    /// MSS and permission to send SACK in its SYN.
    pub(crate) mss: u16,
    pub(crate) sack_permitted: bool,
    /// Longest payload of a segment.
    pub(crate) longest: u32,
    /// Of its data: from a segment to the ACK.
    pub(crate) rtt: Option<SideRtt>,
    pub(crate) responses: Responses,
}

impl Default for Side {
    fn default() -> Self {
        Side {
            base_seq: None,
            next_seq: 0,
            next_seq_ns: 0,
            contiguous: 0,
            last_ack: 0,
            acked_unseen: 0,
            last_ack_ns: 0,
            window: None,
            duplicate_acks: 0,
            repeated_ack: 0,
            last_flags: Flags::default(),
            data_ack: None,
            scale: WindowScale::Unknown,
            least_scale: None,
            edges: None,
            largest_window: 0,
            ecn: None,
            window_of_syn: false,
            flight_known: true,
            has_sack: false,
            sacked_bytes: 0,
            sacked_to: 0,
            outstanding: Outstanding::default(),
            after_silence: None,
            recovery: None,
            counts: None,
            packets: 0,
            data_packets: 0,
            payload_bytes: 0,
            latest_ts: None,
            mss: 0,
            sack_permitted: false,
            longest: 0,
            rtt: None,
            responses: Responses::default(),
        }
    }
}

impl Side {
    /// Bytes that it takes on the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        let counts = self.counts.as_ref().map_or(0, |_| size_of::<FlagCounts>() + ALLOCATION);
        let recovery = self.recovery.as_ref().map_or(0, |recovery| recovery.heap_bytes());
        self.outstanding.heap_bytes() + counts + recovery
    }

    /// Notes an RTT of its data.
    #[inline]
    pub(crate) fn sample_rtt(&mut self, rtt_ns: u64) {
        let Some(sample) = NonZeroU64::new(rtt_ns) else { return };
        self.rtt = Some(match self.rtt {
            None => SideRtt { least_ns: sample, smoothed_ns: rtt_ns },
            Some(SideRtt { least_ns, smoothed_ns }) => SideRtt {
                least_ns: least_ns.min(sample),
                smoothed_ns: smoothed_ns - smoothed_ns / 8 + rtt_ns / 8,
            },
        });
    }

    /// The smoothed RTT of its data in ns; 0 before the first sample.
    #[inline]
    pub(crate) fn smoothed_rtt_ns(&self) -> u64 {
        self.rtt.map_or(0, |rtt| rtt.smoothed_ns)
    }

    /// A number of bytes of its own, given modulo 2^32.
    pub(crate) fn unwrapped(&self, low: u32) -> u64 {
        // What was sent at least once, modulo 2^32: transmissions only exceed it.
        let low = u64::from(low);
        let wraps = self.payload_bytes.saturating_sub(low) >> 32;
        (low + (wraps << 32)).min(self.payload_bytes)
    }

    /// The least scale of its windows that the peer's data proves, where no SYN says it.
    pub(crate) fn proven_scale(&self) -> Option<LeastScale> {
        if self.scale != WindowScale::Unknown {
            return None;
        }
        self.least_scale.or_else(|| self.edges.as_ref()?.least_scale())
    }

    /// The shift of its windows, the least that is known; `None` if nothing is.
    #[inline]
    pub(crate) fn shift(&self) -> Option<u8> {
        match self.scale {
            WindowScale::Unknown => self.least_scale.map(|scale| scale.shift),
            WindowScale::Off => Some(0),
            WindowScale::Shift(shift) => Some(shift),
        }
    }

    /// The window it last advertised, in bytes; `None` if its scale is unknown, or only a lower
    /// bound, and the window not 0, which it is with any scale.
    #[inline]
    pub(crate) fn window_bytes(&self) -> Option<u64> {
        let window = u64::from(self.window?);
        if self.window_of_syn || window == 0 {
            return Some(window);
        }
        let is_bound = self.scale == WindowScale::Unknown
            && self.least_scale.is_none_or(|scale| !scale.is_filled);
        self.shift().filter(|_| !is_bound).map(|shift| window << shift)
    }

    /// Whether its window is closed, which it is with any scale only at 0.
    pub(crate) fn has_closed_window(&self, mss: u64) -> bool {
        match self.scale {
            WindowScale::Unknown => self.window == Some(0),
            _ => self.window_bytes().is_some_and(|window| window < mss),
        }
    }
}
