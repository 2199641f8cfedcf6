//! Chooses copying or zero copy for a TCP stream, whichever uses less CPU.
//!
//! Zero copy (sendfile(2)) saves the copy and adds work for each page. Which is
//! cheaper depends on the device, its offloads and the kernel, so both are tried
//! alternately at the start of the stream and their CPU time is compared.

use std::time::Duration;

/// Bytes of one trial: enough for the resolution of a thread's CPU clock.
const TRIAL_BYTES: usize = 1 << 20;
/// Trials of each method, of which the median counts.
const TRIALS: usize = 9;
/// Zero copy is used if its cost is below this share of copying's.
const MAX_COST_RATIO: f64 = 0.95;

/// State of the choice.
#[derive(Debug)]
pub(super) enum ZerocopyTrial {
    /// The method is chosen.
    Settled { by_reference: bool },
    /// Both are being tried.
    Running(Trial),
}

/// Measurements so far.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Bytes of the current trial.
    bytes: usize,
    /// The thread's CPU time at its start.
    began: Option<Duration>,
    /// CPU time of a byte in each trial, in seconds, with copying and with zero copy: calls of
    /// several blocks make the trials unequally long.
    costs: [Vec<f64>; 2],
}

impl ZerocopyTrial {
    pub(super) const fn settled(by_reference: bool) -> Self {
        ZerocopyTrial::Settled { by_reference }
    }

    pub(super) fn trial() -> Self {
        ZerocopyTrial::Running(Trial::default())
    }

    pub(super) fn by_reference(&self) -> bool {
        match self {
            ZerocopyTrial::Settled { by_reference } => *by_reference,
            ZerocopyTrial::Running(trial) => trial.method() == 1,
        }
    }

    /// Records bytes sent with the current method. `clock` reads the thread's CPU
    /// time; without it, copying is chosen.
    pub(super) fn sent(&mut self, bytes: usize, clock: impl FnOnce() -> Option<Duration>) {
        let ZerocopyTrial::Running(trial) = self else { return };
        trial.bytes += bytes;
        if trial.began.is_some() && trial.bytes < TRIAL_BYTES {
            return;
        }
        let Some(now) = clock() else {
            *self = ZerocopyTrial::settled(false);
            return;
        };
        // The first block of all only starts the clock.
        if let Some(began) = trial.began.replace(now) {
            let method = trial.method();
            let time = now.saturating_sub(began).as_secs_f64();
            trial.costs[method].push(time / trial.bytes.max(1) as f64);
        }
        trial.bytes = 0;
        if let Some(by_reference) = trial.verdict() {
            *self = ZerocopyTrial::settled(by_reference);
        }
    }
}

impl Trial {
    /// Alternates, so that both see the same load.
    fn method(&self) -> usize {
        usize::from(self.costs[0].len() > self.costs[1].len())
    }

    fn verdict(&mut self) -> Option<bool> {
        if self.costs[1].len() < TRIALS {
            return None;
        }
        let [copied, referred] = self.costs.each_mut().map(|costs| {
            costs.sort_unstable_by(f64::total_cmp);
            costs.get(costs.len() / 2).copied().unwrap_or(0.0)
        });
        Some(referred < MAX_COST_RATIO * copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether zero copy is chosen for the given costs of a block in ns, and after
    /// how many blocks.
    fn settles(block: usize, copied: u64, referred: u64) -> (bool, usize) {
        let (mut copying, mut time, mut blocks) = (ZerocopyTrial::trial(), 0, 0);
        while matches!(copying, ZerocopyTrial::Running(_)) {
            time += if copying.by_reference() { referred } else { copied };
            blocks += 1;
            copying.sent(block, || Some(Duration::from_nanos(time)));
        }
        (copying.by_reference(), blocks)
    }

    #[test]
    fn the_cheaper_send_path_is_chosen() {
        assert_eq!(settles(131_072, 40_000, 30_000), (true, 1 + 2 * TRIALS * 8));
        assert!(!settles(131_072, 30_000, 40_000).0);
        assert!(!settles(131_072, 40_000, 39_000).0, "about the same is copied");
        assert!(settles(1_448, 3_000, 2_000).0, "small blocks too");
    }

    #[test]
    fn trials_of_unequal_length_are_compared_by_the_byte() {
        // Calls of three blocks where the data is copied, of one by reference; 10 % cheaper so.
        let (block, mut nanos, mut trial) = (200_000, 0, ZerocopyTrial::trial());
        while matches!(trial, ZerocopyTrial::Running(_)) {
            let (blocks, cost) = if trial.by_reference() { (1, 90) } else { (3, 100) };
            nanos += blocks * cost * 1_000;
            let bytes = block * usize::try_from(blocks).unwrap();
            trial.sent(bytes, || Some(Duration::from_nanos(nanos)));
        }
        assert!(trial.by_reference());
        // And the other way round: 1.2 MB of each copied trial, 1.8 MB by reference.
        let (mut nanos, mut trial) = (0, ZerocopyTrial::trial());
        while matches!(trial, ZerocopyTrial::Running(_)) {
            let (bytes, per_byte) = if trial.by_reference() { (900_000, 9) } else { (600_000, 10) };
            nanos += bytes * per_byte;
            let bytes = usize::try_from(bytes).unwrap();
            trial.sent(bytes, || Some(Duration::from_nanos(nanos)));
        }
        assert!(trial.by_reference());
    }

    #[test]
    fn one_slow_trial_does_not_decide() {
        let (mut copying, mut time, mut blocks) = (ZerocopyTrial::trial(), 0, 0);
        while matches!(copying, ZerocopyTrial::Running(_)) {
            blocks += 1;
            time += if copying.by_reference() { 30_000 } else { 20_000 };
            time += if blocks == 20 { 9_000_000 } else { 0 };
            copying.sent(131_072, || Some(Duration::from_nanos(time)));
        }
        assert!(!copying.by_reference());
    }

    #[test]
    fn without_a_clock_copying_is_used() {
        let mut copying = ZerocopyTrial::trial();
        copying.sent(131_072, || None);
        assert!(matches!(copying, ZerocopyTrial::Settled { by_reference: false }));
    }
}
