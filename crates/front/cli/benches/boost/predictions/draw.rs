//! Paths, hosts and options by a seed.

use model::Congestion;
use record::BoostKind;
use std::fmt;

/// Options in turn.
const KINDS: [BoostKind; 4] =
    [BoostKind::Pair, BoostKind::Streams, BoostKind::Route, BoostKind::Copy];

/// A path between hosts, and an option for it.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) path: String,
    pub(super) congestion: Congestion,
    /// True if the path loses packets at random.
    pub(super) has_loss: bool,
    /// True for hosts without window scaling, whose windows are 64 KiB: no setting makes larger ones
    /// exactly, as the kernel adapts them beyond the metric of a route.
    pub(super) has_small_window: bool,
    pub(super) kind: BoostKind,
}

impl Drawn {
    /// The words of a plan after `--link`.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![self.path.clone(), "-C".to_owned(), self.congestion.name().to_owned()];
        if self.has_small_window {
            words.extend(["--window", "64KiB"].map(str::to_owned));
        }
        words
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.path, self.congestion.name())?;
        if self.has_small_window {
            write!(f, ", 64 KiB")?;
        }
        write!(f, ", {}", self.kind.name())
    }
}

/// The draws of a seed.
#[derive(Debug)]
pub(super) struct Draws {
    state: u64,
    count: usize,
}

impl Draws {
    pub(super) const fn new(seed: u64) -> Self {
        Draws { state: seed, count: 0 }
    }

    /// The next number from 0 to 1, by SplitMix64: draws of a seed stay what they are.
    fn share(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// As many below the geometric mean of both ends as above it.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }
}

impl Iterator for Draws {
    type Item = Drawn;

    fn next(&mut self) -> Option<Drawn> {
        let kind = KINDS.get(self.count % KINDS.len()).copied()?;
        self.count += 1;
        let rate = self.between(8.0, 120.0);
        let rtt = self.between(20.0, 250.0);
        let mut path = format!("rate={rate:.0}mbit,rtt={rtt:.0}ms");
        let has_loss = self.share() < 0.5;
        let loss = self.between(0.02, 1.0);
        if has_loss {
            path += &format!(",loss={loss:.2}%");
        }
        let congestion = match self.share() {
            share if share < 0.6 => Congestion::Cubic,
            share if share < 0.75 => Congestion::Reno,
            _ => Congestion::Bbr,
        };
        let has_small_window = self.share() < 0.4;
        Some(Drawn { path, congestion, has_loss, has_small_window, kind })
    }
}
