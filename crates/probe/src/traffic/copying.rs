//! Whether a TCP stream's blocks are copied to the kernel or sent by reference:
//! what costs this machine less, found out at the start of the stream.
//!
//! Sending by reference (sendfile(2)) saves the copy, and costs work for each
//! page. Which is dearer depends on the device, its offloads and the kernel, so
//! both ways are tried in turn and their time on the core compared.

use std::time::Duration;

/// Bytes of one try: enough that a thread's clock tells it apart.
const TRY: usize = 1 << 20;
/// Tries of each way, of which the middle one counts.
const TRIES: usize = 9;
/// Sending by reference must save so much; what is about the same is copied.
const WORTH: f64 = 0.95;

/// Which way the next block goes.
#[derive(Debug)]
pub(super) enum Copying {
    /// It is known.
    Settled { by_reference: bool },
    /// Both are being tried.
    Trying(Trial),
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Bytes of the try under way.
    bytes: usize,
    /// The thread's time when it began.
    began: Option<Duration>,
    /// Time of each try, copied and by reference.
    times: [Vec<Duration>; 2],
}

impl Copying {
    pub(super) const fn settled(by_reference: bool) -> Self {
        Copying::Settled { by_reference }
    }

    pub(super) fn to_be_tried() -> Self {
        Copying::Trying(Trial::default())
    }

    pub(super) fn by_reference(&self) -> bool {
        match self {
            Copying::Settled { by_reference } => *by_reference,
            Copying::Trying(trial) => trial.way() == 1,
        }
    }

    /// So many bytes went this way. `clock` tells the thread's time on a core;
    /// where there is no such clock, bytes are copied.
    pub(super) fn went(&mut self, bytes: usize, clock: impl FnOnce() -> Option<Duration>) {
        let Copying::Trying(trial) = self else { return };
        trial.bytes += bytes;
        if trial.began.is_some() && trial.bytes < TRY {
            return;
        }
        let Some(now) = clock() else {
            *self = Copying::settled(false);
            return;
        };
        // The first block of all only starts the clock.
        if let Some(began) = trial.began.replace(now) {
            let way = trial.way();
            trial.times[way].push(now.saturating_sub(began));
        }
        trial.bytes = 0;
        if let Some(by_reference) = trial.verdict() {
            *self = Copying::settled(by_reference);
        }
    }
}

impl Trial {
    /// In turn, so that both see the same machine.
    fn way(&self) -> usize {
        usize::from(self.times[0].len() > self.times[1].len())
    }

    fn verdict(&mut self) -> Option<bool> {
        if self.times[1].len() < TRIES {
            return None;
        }
        let [copied, referred] = self.times.each_mut().map(|times| {
            times.sort_unstable();
            times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
        });
        Some(referred < WORTH * copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The way it settles on, where a block takes so many nanoseconds each way,
    /// and how many blocks it took to tell.
    fn settles(block: usize, copied: u64, referred: u64) -> (bool, usize) {
        let (mut copying, mut time, mut blocks) = (Copying::to_be_tried(), 0, 0);
        while matches!(copying, Copying::Trying(_)) {
            time += if copying.by_reference() { referred } else { copied };
            blocks += 1;
            copying.went(block, || Some(Duration::from_nanos(time)));
        }
        (copying.by_reference(), blocks)
    }

    #[test]
    fn what_costs_less_is_taken() {
        assert_eq!(settles(131_072, 40_000, 30_000), (true, 1 + 2 * TRIES * 8));
        assert!(!settles(131_072, 30_000, 40_000).0);
        assert!(!settles(131_072, 40_000, 39_000).0, "about the same is copied");
        assert!(settles(1_448, 3_000, 2_000).0, "small blocks too");
    }

    #[test]
    fn one_slow_try_does_not_decide() {
        let (mut copying, mut time, mut blocks) = (Copying::to_be_tried(), 0, 0);
        while matches!(copying, Copying::Trying(_)) {
            blocks += 1;
            time += if copying.by_reference() { 30_000 } else { 20_000 };
            time += if blocks == 20 { 9_000_000 } else { 0 };
            copying.went(131_072, || Some(Duration::from_nanos(time)));
        }
        assert!(!copying.by_reference());
    }

    #[test]
    fn without_a_clock_it_copies() {
        let mut copying = Copying::to_be_tried();
        copying.went(131_072, || None);
        assert!(matches!(copying, Copying::Settled { by_reference: false }));
    }
}
