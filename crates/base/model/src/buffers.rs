//! The socket buffers that a rate over a round trip needs.
//!
//! The window that keeps a bottleneck saturated is the path's BDP plus its
//! queue: until the queue overflows and the congestion control backs off, both
//! are in flight. The kernel turns only a share of a receive buffer into window,
//! so the buffer is `window / share x` [`HEAD_ROOM`](crate::HEAD_ROOM), and never
//! less than four windows. A send buffer holds what is in flight and what waits
//! behind it, with the kernel's own overhead on top: four windows likewise.

use crate::{INITIAL_WINDOW_SHARE, bdp, buffer_for, per_stream, window_for};
use units::{BitRate, ByteCount, Rtt};

const MIB: u64 = 1 << 20;

/// Largest buffer the kernel takes, in whole MiB: `tcp_rmem` and `tcp_wmem`
/// are `int` there, so 2 GiB is one byte too many.
pub const MAX_BUFFER: ByteCount = ByteCount::from_bytes((1 << 31) - MIB);

/// Share of a send buffer that holds payload in flight; the rest waits behind
/// it or is the kernel's overhead. A cautious figure: autotuning aims at two
/// congestion windows of segments with memory of their own (`tcp_sndbuf_expand` in Linux'
/// `tcp_input.c`).
pub const SEND_SHARE: f64 = 0.5;

/// Share of a buffer that holds payload once autotuning has raised it to its maximum, from the
/// least to the most. Of a receive buffer one half before Linux 6.6, later 0.66 to 0.77; of a
/// send buffer 0.79 to 0.86 (Linux 6.18, MTU 1500, RTT 100 to 200 ms, 34 to 815 Mbit/s).
pub const AUTOTUNED_SHARES: [f64; 2] = [0.5, 0.86];

/// The middle of the measured shares of a send buffer ([`AUTOTUNED_SHARES`]).
pub const AUTOTUNED_SEND_SHARE: f64 = 0.82;

/// The rate and path that the buffers of two hosts have to sustain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferTarget {
    /// The bottleneck rate, of all connections together.
    pub rate: BitRate,
    /// The RTT without queueing.
    pub rtt: Rtt,
    /// The bottleneck's queue.
    pub queue: ByteCount,
    /// Parallel connections that share the rate; 0 counts as 1.
    pub streams: u32,
}

/// A target that needs a larger buffer than the kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rate} over {rtt} needs a buffer of {needed} per stream, and the kernel takes less than \
     2 GiB (2147483647 bytes): use at least {streams} streams"
)]
pub struct BufferTooLarge {
    /// The target's rate.
    pub rate: BitRate,
    /// The target's RTT.
    pub rtt: Rtt,
    /// The buffer each stream would need.
    pub needed: ByteCount,
    /// The least number of streams that reach the target.
    pub streams: u64,
}

impl BufferTarget {
    /// Bytes in flight when the path and its queue are full.
    #[must_use]
    pub fn window(&self) -> ByteCount {
        window_for(self.rate, self.rtt).plus(self.queue)
    }

    /// The window of each stream: its even share of [`window`](Self::window).
    #[must_use]
    pub fn stream_window(&self) -> ByteCount {
        per_stream(self.window(), self.streams)
    }

    /// The buffer of each stream, in whole MiB. `share` is the part of a buffer
    /// that becomes window or holds payload in flight.
    ///
    /// # Errors
    /// Where it is over [`MAX_BUFFER`].
    pub fn buffer(&self, share: f64) -> Result<ByteCount, BufferTooLarge> {
        let needed = buffer_for(self.stream_window(), share).rounded_up_to(MIB);
        if needed <= MAX_BUFFER {
            return Ok(needed);
        }
        let streams = buffer_for(self.window(), share).bytes().div_ceil(MAX_BUFFER.bytes());
        Err(BufferTooLarge { rate: self.rate, rtt: self.rtt, needed, streams })
    }

    /// How [`buffer`](Self::buffer) comes to `buffer`, in numbers; `use_of_share`
    /// completes "50 % of a buffer …".
    #[must_use]
    pub fn explain(&self, share: f64, buffer: ByteCount, use_of_share: &str) -> String {
        let Self { rate, rtt, queue, streams } = *self;
        let mut text = format!("{rate} x {rtt} = {} in flight", bdp(rate, rtt));
        if queue.bytes() > 0 {
            text += &format!(", plus {queue} of queue: a window of {}", self.window());
        }
        if streams > 1 {
            text += &format!(", {} for each of {streams} streams", self.stream_window());
        }
        let percent = valid_share(share) * 100.0;
        text + &format!(
            "; about {percent:.0} % of a buffer {use_of_share}, so with headroom it is {buffer}"
        )
    }
}

/// The window, or the payload in flight, that a buffer makes.
#[must_use]
pub fn share_of_buffer(buffer: ByteCount, share: f64) -> ByteCount {
    ByteCount::from_f64(buffer.as_f64() * valid_share(share))
}

/// A sysctl triple (least, initial, most) with at least `most` as its last
/// number, and no number above that; `None` where it is large enough already.
#[must_use]
pub fn raised_triple(present: [u64; 3], most: ByteCount) -> Option<[u64; 3]> {
    let [least, initial, now] = present;
    let most = most.bytes();
    (now < most).then(|| [least.min(most), initial.min(most), most])
}

fn valid_share(share: f64) -> f64 {
    if share > 0.0 && share <= 1.0 { share } else { INITIAL_WINDOW_SHARE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(rate: &str, rtt: &str, queue: u64, streams: u32) -> BufferTarget {
        let queue = ByteCount::from_bytes(queue);
        BufferTarget { rate: rate.parse().unwrap(), rtt: rtt.parse().unwrap(), queue, streams }
    }

    #[test]
    fn four_windows_in_whole_mebibytes() {
        // 4 x 4.325 MB = 17.3 MB.
        let target = target("100mbit", "173ms", 2_162_500, 1);
        assert_eq!(target.window(), ByteCount::from_bytes(4_325_000));
        assert_eq!(target.buffer(0.5), Ok(ByteCount::from_bytes(17 * MIB)));
    }

    #[test]
    fn streams_share_the_window() {
        let target = target("1gbit", "200ms", 0, 8);
        assert_eq!(target.stream_window(), ByteCount::from_bytes(3_125_000));
        assert_eq!(target.buffer(0.5), Ok(ByteCount::from_bytes(12 * MIB)));
    }

    #[test]
    fn a_buffer_over_two_gib_names_the_streams_that_do() {
        let far = target("100gbit", "100ms", 0, 1);
        let error = far.buffer(0.5).unwrap_err();
        assert_eq!(error.streams, 3);
        assert!(BufferTarget { streams: 3, ..far }.buffer(0.5).is_ok());
        assert!(BufferTarget { streams: 2, ..far }.buffer(0.5).is_err());
    }

    #[test]
    fn a_triple_is_raised_and_never_lowered() {
        let bytes = ByteCount::from_bytes;
        assert_eq!(raised_triple([1, 2, 10], bytes(10)), None);
        assert_eq!(raised_triple([1, 2, 10], bytes(11)), Some([1, 2, 11]));
        assert_eq!(raised_triple([1, 99, 10], bytes(11)), Some([1, 11, 11]));
    }
}
