//! Paths of under 1 ms, where a byte's CPU time decides: buffers beyond the caches, and the
//! timers of BBR's pacing (docs/design/local-paths.md).

use crate::Buffers;
use units::{BitRate, ByteCount, Rtt};

/// What the autotuned buffers of some connections hold, if it is more than the caches on a short
/// path. The smaller one of both buffers bounds it: a receive buffer stays empty where the
/// receiver keeps up with what the send buffer holds. One connection showed no difference.
#[must_use]
pub fn beyond_caches(
    buffers: &Buffers,
    rate: BitRate,
    rtt: Rtt,
    connections: u32,
) -> Option<ByteCount> {
    let each = buffers.tcp_rmem[2].min(buffers.tcp_wmem[2]);
    let all = each.saturating_mul(u64::from(connections));
    let beyond = model::is_short_path(rate, rtt) && connections > 1 && all > model::CACHES.bytes();
    beyond.then(|| ByteCount::from_bytes(all))
}

/// What to say of that.
#[must_use]
pub fn advice(all: ByteCount, rate: BitRate, rtt: Rtt) -> String {
    format!(
        "the path needs {}, and autotuning may buffer {all}: beyond about 32 MB data leaves the \
         CPU's caches, and a byte costs 1.2 to 1.4 times the CPU time; set -w 1M, or SO_SNDBUF and \
         SO_RCVBUF, for local transfers (long paths need the sysctls as they are)",
        model::bdp(rate, rtt)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_much_data_on_a_fast_short_path_is_beyond_the_caches() {
        let buffers = |rmem: u64, wmem: u64| Buffers {
            tcp_rmem: [4096, 131_072, rmem << 20],
            tcp_wmem: [4096, 16_384, wmem << 20],
            window_scaling: true,
        };
        let fast = BitRate::from_bps(100_000_000_000);
        let beyond = |buffers, rate, us, connections| {
            beyond_caches(&buffers, rate, Rtt::from_micros(us), connections).is_some()
        };
        assert!(beyond(buffers(64, 64), fast, 50, 4));
        // The defaults of a distribution, and of Linux 6.18.
        assert!(!beyond(buffers(6, 4), fast, 50, 4));
        assert!(!beyond(buffers(32, 4), fast, 50, 4));
        assert!(!beyond(buffers(64, 64), fast, 2_000, 4), "not short");
        assert!(!beyond(buffers(64, 64), BitRate::from_bps(1_000_000_000), 50, 4), "not fast");
        assert!(!beyond(buffers(64, 64), fast, 50, 1), "one connection");
        let text = advice(ByteCount::from_bytes(256_000_000), fast, Rtt::from_micros(50));
        assert!(text.contains("needs 625 kB") && text.contains("may buffer 256 MB"), "{text}");
    }
}
