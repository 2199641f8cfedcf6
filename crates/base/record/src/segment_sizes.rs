//! The sizes of segments that arrive and of those that do not.

use crate::Sample;
use serde::{Deserialize, Serialize};

/// What a connection, or a probe of its path, shows of segments that are lost because of their
/// size (RFC 4821, section 7.6.2).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentSizes {
    /// The largest payload that arrived, in bytes.
    pub largest_delivered_bytes: u32,
    /// The smallest payload that was sent twice or more and never arrived, in bytes.
    pub smallest_lost_bytes: u32,
    /// The largest IP packet that a probe of the path got through, in bytes; `None` without one.
    #[serde(default)]
    pub path_mtu_bytes: Option<u32>,
}

/// Retransmissions in vain from which a size counts as lost.
const IN_VAIN: u64 = 2;

impl SegmentSizes {
    /// The sizes by a sender's samples, whose application first wrote `first` bytes alone; `None`
    /// if nothing was lost repeatedly.
    #[must_use]
    pub fn of(samples: &[Sample], first: u32) -> Option<Self> {
        let arrived = |s: &Sample| s.delivered_bytes.max(s.acked_bytes);
        let begun = samples.first().map_or(0, arrived);
        let mut delivered = first.min(u32::try_from(begun).unwrap_or(u32::MAX));
        let (mut lost, mut in_vain) = (None, 0);
        for pair in samples.windows(2) {
            let [before, after] = pair else { continue };
            let mss = before.mss_bytes.min(after.mss_bytes);
            let grown = arrived(after).saturating_sub(arrived(before));
            if grown > 0 {
                in_vain = 0;
                delivered = delivered.max(mss.min(u32::try_from(grown).unwrap_or(u32::MAX)));
            } else {
                in_vain += after.retransmits.saturating_sub(before.retransmits);
                if in_vain >= IN_VAIN {
                    lost = Some(lost.map_or(mss, |lost: u32| lost.min(mss)));
                }
            }
        }
        let smallest_lost_bytes = lost?;
        let largest_delivered_bytes = delivered;
        Some(SegmentSizes { largest_delivered_bytes, smallest_lost_bytes, path_mtu_bytes: None })
    }

    /// Whether size decides: everything that was lost is larger than all that arrived.
    #[must_use]
    pub const fn is_black_hole(&self) -> bool {
        self.smallest_lost_bytes > self.largest_delivered_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of segments of `mss` bytes: acknowledged and retransmitted so far.
    fn sizes(samples: &[(u64, u64, u32)]) -> Option<(u32, u32)> {
        let sample = |&(acked_bytes, retransmits, mss_bytes): &(u64, u64, u32)| Sample {
            acked_bytes,
            retransmits,
            mss_bytes,
            ..Sample::default()
        };
        let samples: Vec<Sample> = samples.iter().map(sample).collect();
        let sizes = SegmentSizes::of(&samples, 37)?;
        Some((sizes.largest_delivered_bytes, sizes.smallest_lost_bytes))
    }

    #[test]
    fn a_size_is_lost_when_it_was_sent_in_vain_twice() {
        let (one, two) = ([(38, 0, 1448), (38, 1, 1448)], [(38, 1, 1448), (38, 2, 1448)]);
        assert_eq!(sizes(&one), None);
        assert_eq!(sizes(&[one, two].concat()), Some((37, 1448)));
        assert_eq!(sizes(&[(0, 0, 1448), (0, 2, 1448)]), Some((0, 1448)));
        let later = [(38, 0, 1448), (90_038, 0, 1448), (90_038, 2, 1448)];
        assert_eq!(sizes(&later), Some((1448, 1448)), "no black hole");
        assert_eq!(sizes(&[(38, 0, 1448), (90_038, 9, 1448)]), None, "ordinary losses");
    }

    #[test]
    fn probing_leaves_the_larger_size_lost() {
        // net.ipv4.tcp_mtu_probing=1: a smaller segment size after some timeouts.
        let probed = [(38, 0, 1448), (38, 2, 1448), (38, 3, 512), (50_000, 3, 512)];
        assert_eq!(sizes(&probed), Some((512, 512)), "one was sent while the size changed");
        let probed = [(38, 0, 1448), (38, 2, 1448), (50_000, 3, 512)];
        assert_eq!(sizes(&probed), Some((512, 1448)));
    }
}
