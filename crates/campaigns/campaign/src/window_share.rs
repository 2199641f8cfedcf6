//! The receive buffer that leads to a window.
//!
//! Only the buffer can be set (`tcp_rmem`). The share of it that is advertised depends on the
//! kernel's overhead for each packet (`tcp_adv_win_scale`, and since Linux 6.6 a ratio that is
//! measured from received packets), so it is measured: by a short transfer at first, and by
//! each run whose window was not the one asked.

use crate::cell_lab::{self, Shared};
use crate::testbed::AttemptError;
use host::lock::lock;
use perf::StopFlag;
use record::{Sample, Stream};
use std::collections::BTreeMap;
use std::sync::Mutex;
use study::{Plan, Side, Sysctl};
use topology::PathSpec;
use units::{BitRate, ByteCount};

/// Share of a window by which the advertised one may differ, beside one segment: a window
/// changes by whole segments, and by units of the window scale.
const TOLERANCE: f64 = 0.02;

/// Share of a stream's time, once its window has opened, in which it waits for the receive
/// window, above which a window that is smaller than asked makes a difference. Before that the
/// receiver is still opening the window (`rcv_ssthresh` starts at 64 KiB and grows with the data
/// received), also of a stream that never fills the one asked.
const MATTERS: f64 = 0.01;

/// Share of the highest window from which a window has opened.
const OPEN: f64 = 0.98;

/// The shares measured so far. Packets that arrive closer together are received together,
/// with less overhead: the share depends on the rate as well.
#[derive(Debug, Default)]
pub(crate) struct WindowShares(Mutex<BTreeMap<PathKind, f64>>);

/// The MTU and the rate of a path.
type PathKind = (u32, Option<BitRate>);

fn kind(path: &PathSpec) -> PathKind {
    (path.mtu(), path.rate())
}

impl WindowShares {
    /// The receive buffer for a window.
    pub(crate) fn buffer(
        &self,
        path: &PathSpec,
        window: ByteCount,
        stop: &StopFlag,
    ) -> Result<ByteCount, AttemptError> {
        // While it is measured, other runs wait for it.
        let mut shares = lock(&self.0);
        let share = match shares.get(&kind(path)) {
            Some(share) => *share,
            None => {
                let share = measure(path, stop)?.unwrap_or(model::INITIAL_WINDOW_SHARE);
                *shares.entry(kind(path)).or_insert(share)
            }
        };
        Ok(ByteCount::from_f64(window.as_f64() / share))
    }

    pub(crate) fn learn(&self, path: &PathSpec, buffer: ByteCount, advertised: u64) {
        if let Some(share) = share_of(buffer, advertised) {
            lock(&self.0).insert(kind(path), share);
        }
    }
}

/// Measures the share over a short path of that MTU and rate.
fn measure(path: &PathSpec, stop: &StopFlag) -> Result<Option<f64>, AttemptError> {
    const WINDOW: u64 = 128 << 10;
    let buffer = ByteCount::from_bytes(WINDOW * 2);
    let Sysctl { name: key, value, .. } = sysctl(buffer);
    let rate = path.rate().map_or("unlimited".to_owned(), |rate| format!("{}bit", rate.bps()));
    let mtu = path.mtu();
    let plan = format!(
        "question = \"?\"\n[path]\nrate = \"{rate}\"\nrtt = \"20ms\"\nmtu = {mtu}\n[factors]\n\
         {key} = [\"{value}\"]\n[traffic]\nduration = \"300ms\""
    );
    let plan = Plan::parse(&plan).map_err(|error| AttemptError::Path(error.to_string()))?;
    let test = plan.test(&plan.cell(0)).map_err(|error| AttemptError::Path(error.to_string()))?;
    // No window is asked, so this does not come back here.
    let attempt = cell_lab::run(&test, 1, &Shared::default(), None, stop)?;
    let measurement = attempt.flows.first().map(|(_, measurement)| measurement);
    let window = measurement.and_then(|measurement| advertised(&measurement.streams));
    Ok(window.and_then(|window| share_of(buffer, window)))
}

/// The sysctl of a receive buffer, for every host of a lab.
pub(crate) fn sysctl(buffer: ByteCount) -> Sysctl {
    let name = "net.ipv4.tcp_rmem".to_owned();
    let value = format!("4096 {0} {0}", buffer.bytes());
    Sysctl { side: Side::Both, name, value, optional: false }
}

fn share_of(buffer: ByteCount, advertised: u64) -> Option<f64> {
    let share = advertised as f64 / buffer.as_f64();
    Some(share).filter(|share| (0.05..=1.0).contains(share))
}

/// The highest window that was advertised to a sender.
pub(crate) fn advertised(streams: &[Stream]) -> Option<u64> {
    let samples = streams.iter().flat_map(|stream| &stream.sender);
    samples.filter_map(|sample| sample.peer_window_bytes).max()
}

/// What is wrong with the window of a run; a smaller one counts only where a stream waited
/// for it.
pub(crate) fn complaint(asked: ByteCount, advertised: u64, streams: &[Stream]) -> Option<String> {
    let last = streams.iter().filter_map(|stream| stream.sender.last());
    let segment = last.map(|sample| sample.mss_bytes).max().unwrap_or(0);
    let tolerance = asked.as_f64() * TOLERANCE + f64::from(segment);
    let difference = advertised as f64 - asked.as_f64();
    let waited = || streams.iter().any(|stream| waited(&stream.sender));
    let wrong = difference > tolerance || (difference < -tolerance && waited());
    let advertised = ByteCount::from_bytes(advertised);
    wrong.then(|| format!("the receiver advertised {advertised} instead of {asked}"))
}

/// Whether a stream waited for the receive window once it had opened, from the kernel's
/// counters.
fn waited(samples: &[Sample]) -> bool {
    let highest = samples.iter().filter_map(|sample| sample.peer_window_bytes).max().unwrap_or(0);
    let is_open = |sample: &&Sample| {
        sample.peer_window_bytes.is_some_and(|window| window as f64 >= OPEN * highest as f64)
    };
    let (Some(opened), Some(last)) = (samples.iter().find(is_open), samples.last()) else {
        return false;
    };
    // One sample has the whole time.
    let before = Some(opened).filter(|opened| opened.busy_us < last.busy_us);
    let (limited_us, busy_us) =
        before.map_or((0, 0), |sample| (sample.rwnd_limited_us, sample.busy_us));
    let limited = last.rwnd_limited_us.saturating_sub(limited_us) as f64;
    limited > MATTERS * last.busy_us.saturating_sub(busy_us) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(advertised: u64, waited_us: u64) -> Vec<Stream> {
        let sample = Sample {
            peer_window_bytes: Some(advertised),
            mss_bytes: 1448,
            busy_us: 1_000_000,
            rwnd_limited_us: waited_us,
            ..Sample::default()
        };
        vec![Stream { sender: vec![sample], ..Stream::default() }]
    }

    #[test]
    fn a_window_is_right_within_a_segment_and_some() {
        let asked = ByteCount::from_bytes(65_536);
        let wrong = |advertised, waited_us| {
            complaint(asked, advertised, &streams(advertised, waited_us)).is_some()
        };
        assert!(!wrong(65_536 - 1_448, 900_000) && !wrong(65_536 + 2_700, 900_000));
        assert!(wrong(65_536 + 3_000, 0), "a larger one is always wrong");
        assert!(wrong(60_000, 900_000) && !wrong(60_000, 0), "a smaller one if it was waited for");
    }

    #[test]
    fn a_wait_for_a_window_that_was_still_opening_is_none() {
        let at = |busy_us, rwnd_limited_us, window| Sample {
            busy_us,
            rwnd_limited_us,
            peer_window_bytes: Some(window),
            ..Sample::default()
        };
        let asked = ByteCount::from_bytes(8 << 20);
        let wrong = |sender| {
            let streams = [Stream { sender, ..Stream::default() }];
            complaint(asked, 7_400_000, &streams).is_some()
        };
        let opening = [at(200_000, 150_000, 900_000), at(1_400_000, 160_000, 7_400_000)];
        assert!(!wrong([&opening[..], &[at(3_000_000, 160_000, 7_400_000)]].concat()));
        let limiting = at(3_000_000, 180_000, 7_400_000);
        assert!(wrong([&opening[..], &[limiting]].concat()), "20 ms with the whole window");
    }
}
