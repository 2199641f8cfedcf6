//! Paths on which a byte's CPU time, not the network, can be the limit (docs/design/local-paths.md).

use units::{BitRate, ByteCount, Rtt};

/// Below this RTT a byte's CPU time can be the limit.
pub const SHORT_RTT: Rtt = Rtt::from_micros(1_000);
/// From this rate on.
pub const SHORT_PATH_RATE: BitRate = BitRate::from_bps(8_000_000_000);
/// Data between the applications with which a byte costs 1.2 times the CPU time, measured with a
/// last level cache of that size.
pub const CACHES: ByteCount = ByteCount::from_bytes(32_000_000);

/// Whether a byte's CPU time can be the limit on a path.
#[must_use]
pub fn is_short_path(rate: BitRate, rtt: Rtt) -> bool {
    rtt < SHORT_RTT && rate >= SHORT_PATH_RATE
}
