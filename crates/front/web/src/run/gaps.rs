//! Gaps between arrivals. Wi-Fi collects frames and sends them at once (IEEE 802.11, A-MPDU: 5.5 ms at
//! most), so that data arrives in bursts with pauses of milliseconds, where a wire delivers one packet
//! after the other.
//!
//! What arrived of an upload, or was acknowledged of a download, is read from `TCP_INFO` every half
//! millisecond for 1.5 s. A pause is a time without progress of at least 1.5 ms and of eight packets at
//! the mean rate, and of at most 20 ms: longer ones are round trips or outages. Where pauses take half of
//! the time, arrivals are aggregated. Cable and mobile lines aggregate as well, so that this alone says
//! nothing of Wi-Fi.

use super::message::{Plan, StepKind};
use crate::connection::Connection;
use host::clock;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The interval of readings, and the longest one that is taken for regular, seconds.
const INTERVAL: Duration = Duration::from_micros(500);
const REGULAR_S: f64 = 0.001;
/// The share of the time that may lie between irregular ones: a busy server sees no gaps.
const MAX_IRREGULAR: f64 = 0.2;
/// When readings begin, as a share of the step and at most, and how long they last, in seconds.
const FROM_SHARE: f64 = 0.3;
const FROM_S: f64 = 1.0;
const LENGTH_S: f64 = 1.5;
/// The shortest time that says something.
const MIN_LENGTH_S: f64 = 0.2;
/// The bounds of a pause, in seconds, and in packets of the mean rate.
const MIN_PAUSE_S: f64 = 0.0015;
const MIN_PAUSE_PACKETS: f64 = 8.0;
const MAX_PAUSE_S: f64 = 0.02;
/// The largest lower bound of a pause: slower transfers, below about 10 Mbit/s, do not tell.
const LARGEST_MIN_PAUSE_S: f64 = 0.01;
/// A packet, bytes.
const PACKET: f64 = 1448.0;
/// The share of the time in pauses from which arrivals are aggregated.
pub(super) const AGGREGATED: f64 = 0.5;
/// A thread's stack.
const STACK: usize = 128 << 10;

/// How data arrived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Gaps {
    /// The share of the time that was spent in pauses.
    pub(super) paused: f64,
    /// The mean number of bytes between two pauses; null without pauses.
    pub(super) burst_bytes: Option<f64>,
    /// The share from which arrivals are aggregated.
    threshold: f64,
}

impl Gaps {
    pub(super) fn is_aggregated(&self) -> bool {
        self.paused >= AGGREGATED
    }

    #[cfg(test)]
    pub(super) fn with_paused(paused: f64) -> Self {
        Gaps { paused, burst_bytes: None, threshold: AGGREGATED }
    }

    /// The gaps in readings of time, in seconds, and bytes.
    fn of(readings: &[(f64, u64)]) -> Option<Self> {
        let (first, last) = (*readings.first()?, *readings.last()?);
        let (seconds, bytes) = (last.0 - first.0, last.1.saturating_sub(first.1));
        if seconds < MIN_LENGTH_S || bytes == 0 {
            return None;
        }
        let pairs = || readings.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?)));
        let irregular: f64 = pairs().map(|(a, b)| b.0 - a.0).filter(|gap| *gap > REGULAR_S).sum();
        let least = MIN_PAUSE_S.max(MIN_PAUSE_PACKETS * PACKET * seconds / bytes as f64);
        if irregular > seconds * MAX_IRREGULAR || least > LARGEST_MIN_PAUSE_S {
            return None;
        }
        // Between the last reading before some bytes and that at which they were there.
        let arrivals = pairs().filter(|(a, b)| b.1 > a.1).map(|(_, b)| b.0);
        let (mut before, mut paused, mut pauses) = (first.0, 0.0, 0u32);
        for at in arrivals {
            let gap = at - before;
            if (least..=MAX_PAUSE_S).contains(&gap) {
                paused += gap;
                pauses += 1;
            }
            before = at;
        }
        let burst_bytes = (pauses > 0).then(|| bytes as f64 / f64::from(pauses));
        Some(Gaps { paused: paused / seconds, burst_bytes, threshold: AGGREGATED })
    }
}

/// A thread that reads a step's connections.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Option<Gaps>>,
}

impl Watch {
    /// Begins, in a step without an experiment; `None` if no thread can be started.
    pub(super) fn begin(plan: &Plan, connections: Vec<Connection>) -> Option<Self> {
        if !plan.kind.is_transfer() || plan.is_experiment() || connections.is_empty() {
            return None;
        }
        let sends = plan.kind == StepKind::Download;
        let from_s = (plan.seconds * FROM_SHARE).min(FROM_S);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = move || read(&connections, sends, from_s, &stopped);
        let named = thread::Builder::new().name("gaps".to_owned()).stack_size(STACK);
        Some(Watch { stop, thread: named.spawn(work).ok()? })
    }

    /// Ends it, which takes no longer than an interval.
    pub(super) fn end(self) -> Option<Gaps> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().flatten()
    }
}

fn read(connections: &[Connection], sends: bool, from_s: f64, stop: &AtomicBool) -> Option<Gaps> {
    let began = clock::now();
    let mut readings = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
        let t_s = began.elapsed().as_secs_f64();
        if t_s < from_s {
            continue;
        }
        if t_s > from_s + LENGTH_S {
            break;
        }
        readings.push((t_s, progress(connections, sends).ok()??));
    }
    Gaps::of(&readings)
}

/// Bytes of all flows that arrived, or were acknowledged; `None` where the kernel does not say.
fn progress(connections: &[Connection], sends: bool) -> io::Result<Option<u64>> {
    let mut total = Some(0u64);
    for connection in connections {
        let info = connection.tcp_info()?;
        let bytes = if sends { info.bytes_acked } else { info.bytes_received };
        total = total.zip(bytes).map(|(total, bytes)| total.saturating_add(bytes));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings each half millisecond of bursts of `burst_ms` worth of data at a rate.
    fn readings(mbit: f64, burst_ms: f64) -> Vec<(f64, u64)> {
        let at = |t: f64| {
            let whole = (t * 1e3 / burst_ms).floor() * burst_ms / 1e3;
            (whole * mbit * 1e6 / 8.0) as u64
        };
        (0..3000).map(|i| f64::from(i) * 0.0005).map(|t| (t, at(t))).collect()
    }

    #[test]
    fn bursts_with_pauses_are_aggregated_and_a_wire_is_not() {
        for mbit in [20.0, 50.0, 100.0, 500.0] {
            let packet_ms = PACKET * 8.0 / mbit / 1e3;
            let wire = Gaps::of(&readings(mbit, packet_ms)).unwrap();
            assert!(!wire.is_aggregated() && wire.paused < 0.05, "{mbit}: {wire:?}");
            let wifi = Gaps::of(&readings(mbit, 5.0)).unwrap();
            assert!(wifi.is_aggregated() && wifi.paused > 0.9, "{mbit}: {wifi:?}");
            let burst = wifi.burst_bytes.unwrap();
            assert!((burst / (mbit * 1e6 / 8.0 * 0.005) - 1.0).abs() < 0.1, "{burst}");
        }
    }

    /// Just below and just above the shortest pause, and the longest one.
    #[test]
    fn pauses_have_bounds() {
        let paused = |burst_ms| Gaps::of(&readings(400.0, burst_ms)).unwrap().paused;
        assert!(paused(1.0) < 0.1, "{}", paused(1.0));
        assert!(paused(2.0) > 0.9, "{}", paused(2.0));
        assert!(paused(19.0) > 0.9, "{}", paused(19.0));
        assert!(paused(22.0) < 0.1, "{}", paused(22.0));
    }

    #[test]
    fn what_says_nothing_is_none() {
        assert_eq!(Gaps::of(&[]), None);
        assert_eq!(Gaps::of(&readings(100.0, 5.0)[..100]), None);
        // Eight packets take longer than a pause of Wi-Fi.
        assert_eq!(Gaps::of(&readings(5.0, 5.0)), None);
        // A busy server reads every third millisecond.
        let rare: Vec<_> = readings(100.0, 1.0).into_iter().step_by(6).collect();
        assert_eq!(Gaps::of(&rare), None);
        let still: Vec<_> = readings(100.0, 1.0).into_iter().map(|(t, _)| (t, 7)).collect();
        assert_eq!(Gaps::of(&still), None);
    }
}
