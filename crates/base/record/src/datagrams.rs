//! The datagram counters of a UDP stream.

use serde::{Deserialize, Serialize};
use units::Rtt;

/// The receiver's counters of one UDP stream, including the warm-up.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Payload bytes per datagram.
    pub length_bytes: u32,
    /// Sent; `None` if the sender did not report it.
    pub sent: Option<u64>,
    /// Received, without duplicates.
    pub received: u64,
    /// Lost: sent and not received; where `sent` is `None`, not received though a later one was.
    /// With `received` at zero as well, what the receiver counted is unknown.
    pub lost: u64,
    /// Duplicates received.
    pub duplicates: u64,
    /// Received after one that was sent later (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Maximum reordering extent in datagrams (RFC 4737 section 4.2.1).
    pub reorder_extent: u64,
    /// Interarrival jitter at the end (RFC 3550 section 6.4.1).
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    #[serde(rename = "jitter_ms", with = "crate::millis")]
    pub jitter: Rtt,
    /// Loss bursts by length, shortest first.
    pub loss_bursts: Vec<LossBurst>,
    /// How each datagram is fragmented; `None` if it is not, or the route's MTU is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragmentation: Option<Fragmentation>,
}

/// The IP fragments of a datagram that exceeds the MTU (RFC 791, section 3.2; RFC 8200,
/// section 4.5). One lost fragment loses the datagram.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragmentation {
    /// Fragments of each datagram, at least two.
    pub fragments: u32,
    /// The largest payload that is not fragmented, in bytes.
    pub largest_whole_bytes: u32,
}

impl Fragmentation {
    /// Headers of IP and UDP, and IPv6's fragment header, in bytes.
    const V4: u32 = 20;
    const V6: u32 = 40;
    const UDP: u32 = 8;
    const FRAGMENT: u32 = 8;

    /// The largest payload of a datagram that is not fragmented at this MTU, in bytes.
    #[must_use]
    pub const fn largest_whole(mtu: u32, is_v6: bool) -> u32 {
        mtu.saturating_sub(if is_v6 { Self::V6 } else { Self::V4 } + Self::UDP)
    }

    /// The fragments of a datagram with `length` bytes of payload at this MTU; `None` if it is
    /// not fragmented.
    #[must_use]
    pub fn of(length: u32, mtu: u32, is_v6: bool) -> Option<Self> {
        let largest_whole_bytes = Self::largest_whole(mtu, is_v6);
        // Fragments but the last one have multiples of 8 bytes.
        let headers = if is_v6 { Self::V6 + Self::FRAGMENT } else { Self::V4 };
        let each = mtu.saturating_sub(headers) & !7;
        let is_fragmented = length > largest_whole_bytes && each > 0;
        is_fragmented.then(|| Fragmentation {
            fragments: length.saturating_add(Self::UDP).div_ceil(each),
            largest_whole_bytes,
        })
    }

    /// What it means for datagrams of `length` bytes, as a note.
    #[must_use]
    pub fn sentence(&self, length: u32) -> String {
        let Fragmentation { fragments, largest_whole_bytes } = self;
        format!(
            "datagrams of {length} B are fragmented into {fragments}: one lost fragment loses the \
             datagram; the largest that is not fragmented is -l {largest_whole_bytes}"
        )
    }
}

/// Loss bursts of one length, or of a range of lengths if long.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossBurst {
    /// Minimum number of consecutive datagrams.
    pub from: u64,
    /// Maximum number of consecutive datagrams.
    pub to: u64,
    /// Number of such bursts.
    pub count: u64,
}

/// A datagram of a train, with the times at both ends. The clocks differ: only differences
/// between datagrams mean anything.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedDatagram {
    /// Its sequence number, from 1.
    pub number: u64,
    /// When it was sent, by the sender's clock, in µs.
    pub sent_us: u64,
    /// When it arrived in the receiver's kernel, by the receiver's clock, in µs.
    pub arrived_us: u64,
}

impl Datagrams {
    /// Counts as lost all that was sent and not received, with what was sent after the last arrival.
    pub fn count_unreceived(&mut self) {
        let Some(sent) = self.sent else { return };
        let tail = sent.saturating_sub(self.received.saturating_add(self.lost));
        if tail == 0 {
            return;
        }
        // Without the lengths of the others, one burst says nothing of them.
        if self.lost == 0 || !self.loss_bursts.is_empty() {
            self.loss_bursts.push(LossBurst { from: tail, to: tail, count: 1 });
            self.loss_bursts.sort_by_key(|burst| burst.from);
        }
        self.lost = self.lost.saturating_add(tail);
    }

    /// Whether the receiver's counts are there: nothing received and nothing lost is none.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        self.received > 0 || self.lost > 0
    }

    /// The loss ratio, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
    pub fn loss(&self) -> f64 {
        match self.received.saturating_add(self.lost) {
            0 => 0.0,
            all => self.lost as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_after_the_last_arrival_are_lost() {
        let burst = |length, count| LossBurst { from: length, to: length, count };
        let counted = |sent, received, lost, loss_bursts: Vec<LossBurst>| {
            let mut all = Datagrams { sent, received, lost, loss_bursts, ..Datagrams::default() };
            all.count_unreceived();
            (all.lost, all.loss_bursts)
        };
        assert_eq!(counted(Some(518), 269, 0, vec![]), (249, vec![burst(249, 1)]));
        assert_eq!(counted(Some(10), 0, 0, vec![]), (10, vec![burst(10, 1)]));
        let bursts = vec![burst(1, 2), burst(9, 1)];
        let all = vec![burst(1, 2), burst(4, 1), burst(9, 1)];
        assert_eq!(counted(Some(100), 85, 11, bursts), (15, all));
        assert_eq!(counted(Some(100), 85, 11, vec![]), (15, vec![]), "lengths that were not told");
        assert_eq!(counted(None, 85, 11, vec![]).0, 11);
        assert_eq!(counted(Some(3), 85, 11, vec![]).0, 11, "less than arrived");
    }

    #[test]
    fn fragments_are_those_of_the_ip_header() {
        let of = |length, mtu, is_v6| {
            Fragmentation::of(length, mtu, is_v6).map(|it| (it.fragments, it.largest_whole_bytes))
        };
        assert_eq!(of(1472, 1500, false), None);
        assert_eq!(of(1473, 1500, false), Some((2, 1472)));
        assert_eq!(of(20_480, 1500, false), Some((14, 1472)));
        assert_eq!(of(1452, 1500, true), None);
        assert_eq!(of(1453, 1500, true), Some((2, 1452)));
        // 1448 bytes of each packet are payload.
        assert_eq!(of(65_507, 1500, true), Some((46, 1452)));
        assert_eq!(of(65_507, 65_536, false), None);
        assert_eq!(of(1, 0, false), None);
    }
}
