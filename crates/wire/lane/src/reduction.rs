//! Which blocks of a direction of a flow are worth compressing.
//!
//! ```text
//!            first bytes of TLS or SSH
//!   Trying ──────────────────────────────> Never
//!     │ ^
//!     │ └── after 256 KiB, then twice as many each time
//!     v
//!   Paused       a block gains under 5 %, has the entropy of ciphertext, or the CPU is the limit
//! ```
//!
//! Blocks that are sent while this waits are not looked at: their payload may be spliced.

use std::time::Duration;

/// Blocks of fewer bytes, such as keystrokes, are sent as they are.
pub const MIN_BLOCK: usize = 128;
/// A block that is longer than this part of its size gains too little, in percent.
pub const MAX_PERCENT: usize = 95;
/// Bytes after which a direction is tried again, at first and at most.
const PAUSE: (u64, u64) = (256 << 10, 16 << 20);
/// The same where the CPU is the limit.
const CPU_PAUSE: (u64, u64) = (8 << 20, 256 << 20);
/// Bytes whose entropy is estimated, and the fewest for which the estimate is of use.
const SAMPLE: (usize, usize) = (1024, 4096);
/// Chi-squared of uniformly distributed bytes is 255 on average, with a standard deviation of 23;
/// of text it is above 10,000.
const MAX_CHI_SQUARED: u64 = 400;
/// Bytes over which compressing is compared with the lane.
const WINDOW: u64 = 1 << 20;

/// The reason that a direction of a flow is not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uncompressed {
    /// It begins as TLS or SSH does.
    Encrypted,
    /// A block gained under 5 %, or looked like ciphertext.
    Incompressible,
    /// Compressing takes longer than the lane takes to send.
    CpuLimited,
}

impl Uncompressed {
    /// All reasons.
    pub const ALL: [Uncompressed; 3] =
        [Uncompressed::Encrypted, Uncompressed::Incompressible, Uncompressed::CpuLimited];
}

/// When a direction is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Trying,
    /// So many bytes are to be sent before.
    Paused(u64),
    Never,
}

/// What the thread that compresses has done by now, from any origin that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Time that it has compressed, over all flows.
    pub compressing: Duration,
    /// The time.
    pub now: Duration,
}

/// The period over which compressing is compared with the lane.
#[derive(Debug, Clone, Copy)]
struct Window {
    began: Effort,
    bytes: u64,
    blocks: u32,
    /// Blocks before which the lane had something to send.
    waited: u32,
    is_busy: bool,
}

/// One direction of a flow.
#[derive(Debug, Clone)]
pub struct Reduction {
    phase: Phase,
    has_begun: bool,
    pause: u64,
    cpu_pause: u64,
    window: Option<Window>,
    why: Option<Uncompressed>,
}

impl Default for Reduction {
    fn default() -> Self {
        Reduction {
            phase: Phase::Trying,
            has_begun: false,
            pause: PAUSE.0,
            cpu_pause: CPU_PAUSE.0,
            window: None,
            why: None,
        }
    }
}

impl Reduction {
    /// The reason for which the direction was last left uncompressed, if it is.
    #[must_use]
    pub const fn uncompressed(&self) -> Option<Uncompressed> {
        self.why
    }

    /// Takes note of the first bytes of the direction; later calls change nothing.
    pub fn begin(&mut self, first: &[u8]) {
        if !std::mem::replace(&mut self.has_begun, true) && is_encrypted(first) {
            (self.phase, self.why) = (Phase::Never, Some(Uncompressed::Encrypted));
        }
    }

    /// True if the next block is to be offered.
    #[must_use]
    pub fn is_trying(&self) -> bool {
        self.phase == Phase::Trying
    }

    /// True if this block is to be compressed.
    pub fn accepts(&mut self, block: &[u8]) -> bool {
        if !self.is_trying() || block.len() < MIN_BLOCK {
            return false;
        }
        let looks_random = is_random(block);
        if looks_random {
            self.gains_nothing();
        }
        !looks_random
    }

    /// A block that was accepted gained under 5 %.
    pub fn gains_nothing(&mut self) {
        self.stop(self.pause, Uncompressed::Incompressible);
        self.pause = (self.pause * 2).min(PAUSE.1);
    }

    /// A block of so many bytes was compressed.
    pub fn gains(&mut self, bytes: usize, effort: Effort) {
        self.pause = PAUSE.0;
        self.why = None;
        let begun = Window { began: effort, bytes: 0, blocks: 0, waited: 0, is_busy: false };
        let window = self.window.get_or_insert(begun);
        window.bytes = window.bytes.saturating_add(as_u64(bytes));
        window.blocks += 1;
        window.waited += u32::from(std::mem::take(&mut window.is_busy));
        if window.bytes < WINDOW {
            return;
        }
        let Window { began, blocks, waited, .. } = *window;
        self.window = None;
        let compressing = effort.compressing.saturating_sub(began.compressing);
        if waited * 4 >= blocks {
            self.cpu_pause = CPU_PAUSE.0;
        } else if compressing * 2 > effort.now.saturating_sub(began.now) {
            self.stop(self.cpu_pause, Uncompressed::CpuLimited);
            self.cpu_pause = (self.cpu_pause * 2).min(CPU_PAUSE.1);
        }
    }

    /// The lane has something to send: while that is so, compressing costs no throughput.
    pub const fn lane_is_busy(&mut self) {
        if let Some(window) = &mut self.window {
            window.is_busy = true;
        }
    }

    /// Counts bytes that were sent as they are.
    pub fn sent_raw(&mut self, bytes: usize) {
        if let Phase::Paused(left) = self.phase {
            let left = left.saturating_sub(as_u64(bytes));
            self.phase = if left == 0 { Phase::Trying } else { Phase::Paused(left) };
        }
    }

    fn stop(&mut self, pause: u64, why: Uncompressed) {
        (self.phase, self.why) = (Phase::Paused(pause), Some(why));
        self.window = None;
    }
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// TLS's record of a handshake (RFC 8446 section 5.1), or SSH's identification (RFC 4253 section
/// 4.2).
fn is_encrypted(first: &[u8]) -> bool {
    first.starts_with(&[0x16, 0x03]) || first.starts_with(b"SSH-")
}

/// True if the bytes are distributed as those of ciphertext.
fn is_random(block: &[u8]) -> bool {
    let (fewest, most) = SAMPLE;
    let sample = block.get(..most).unwrap_or(block);
    let count = as_u64(sample.len());
    if sample.len() < fewest {
        return false;
    }
    let mut counts = [0_u32; 256];
    for byte in sample {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let squares: u64 = counts.iter().map(|count| u64::from(*count).pow(2)).sum();
    (squares * 256 / count).saturating_sub(count) <= MAX_CHI_SQUARED
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: [u8; 4096] = [b'a'; 4096];

    /// Bytes of xorshift64 (Marsaglia 2003).
    fn random(count: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    fn effort(compressing_ms: u64, now_ms: u64) -> Effort {
        let [compressing, now] = [compressing_ms, now_ms].map(Duration::from_millis);
        Effort { compressing, now }
    }

    #[test]
    fn ciphertext_is_never_tried() {
        for first in [&b"\x16\x03\x01\x02\x00"[..], b"SSH-2.0-OpenSSH_9.2\r\n"] {
            let mut reduction = Reduction::default();
            reduction.begin(first);
            reduction.sent_raw(usize::MAX);
            assert!(!reduction.is_trying() && !reduction.accepts(&TEXT));
            assert_eq!(reduction.uncompressed(), Some(Uncompressed::Encrypted));
        }
        let mut later = Reduction::default();
        later.begin(b"GET / HTTP/1.1\r\n");
        later.begin(b"\x16\x03\x01\x02\x00");
        assert!(later.accepts(&TEXT));
    }

    #[test]
    fn random_bytes_are_told_from_text_and_from_what_is_too_short() {
        for length in [1024, 4096, 65536] {
            let mut reduction = Reduction::default();
            assert!(!reduction.accepts(&random(length)), "{length}");
            assert_eq!(reduction.uncompressed(), Some(Uncompressed::Incompressible));
        }
        let hex: Vec<u8> =
            random(4096).iter().map(|byte| b"0123456789abcdef"[usize::from(byte % 16)]).collect();
        for block in [&hex[..], &random(1023), &TEXT[..MIN_BLOCK]] {
            assert!(Reduction::default().accepts(block), "{}", block.len());
        }
        assert!(!Reduction::default().accepts(&TEXT[..MIN_BLOCK - 1]));
    }

    #[test]
    fn pauses_grow_and_a_gain_shortens_them() {
        let mut reduction = Reduction::default();
        let pause = |reduction: &mut Reduction| {
            assert!(reduction.is_trying());
            reduction.gains_nothing();
            let mut sent = 0_u64;
            while !reduction.is_trying() {
                reduction.sent_raw(64 << 10);
                sent += 64 << 10;
            }
            sent >> 10
        };
        assert_eq!([(); 3].map(|()| pause(&mut reduction)), [256, 512, 1024]);
        assert_eq!([(); 6].map(|()| pause(&mut reduction))[5], 16 << 10);
        reduction.gains(1000, effort(0, 0));
        assert_eq!(reduction.uncompressed(), None);
        assert_eq!(pause(&mut reduction), 256);
    }

    #[test]
    fn the_cpu_is_the_limit_where_the_lane_waits_for_it() {
        let blocks = |reduction: &mut Reduction, share: u64, busy: u64| {
            for block in 0..=16 {
                if block < busy {
                    reduction.lane_is_busy();
                }
                if !reduction.is_trying() {
                    break;
                }
                reduction.gains(64 << 10, effort(block * share, block * 100));
            }
            reduction.uncompressed()
        };
        let limited = Some(Uncompressed::CpuLimited);
        assert_eq!(blocks(&mut Reduction::default(), 60, 0), limited);
        assert_eq!(blocks(&mut Reduction::default(), 99, 3), limited);
        assert_eq!(blocks(&mut Reduction::default(), 40, 0), None, "it waits for the flow");
        assert_eq!(blocks(&mut Reduction::default(), 99, 6), None, "the lane is the limit");
        let mut again = Reduction::default();
        blocks(&mut again, 60, 0);
        again.sent_raw(8 << 20);
        assert_eq!(blocks(&mut again, 60, 0), limited);
        again.sent_raw(8 << 20);
        assert!(!again.is_trying(), "the pause has grown");
    }
}
