//! How much data the ends of a short path may hold: the receive window at a receiver, the bytes
//! that are written and not sent yet at a sender.
//!
//! The kernel's autotuning lets both grow to many times the BDP where the RTT is short: data then
//! leaves the CPU's caches before it is read (docs/design/traffic.md). The cap is
//!
//! > max(floor, 4 x minimum RTT x peak rate of a stream) x 4^n
//!
//! and never taken for enough: a path whose RTT varies, or whose receiver waits for a CPU core,
//! needs more. So n grows by trials: six epochs alternate between the cap (A) and four times the
//! cap (B), in the order A B B A A B, which a steadily rising rate does not favour. If B is faster
//! in each of the three pairs and by 10 % in all, it stays; else the next trial is twice as far off.
//!
//! Pure: the caller has the clock and the sockets.

use std::time::Duration;
use units::{BitRate, ByteCount, Rtt};

/// The minimum RTT below which windows are capped. From here on, four BDPs of the rates at which
/// memory matters (25 Gbit/s) are 25 MB, as much as caches hold: a cap would gain nothing.
const SHORT: Rtt = Rtt::from_micros(2_000);
/// BDPs that the cap allows: the RTT under load is up to four times that of the handshake.
const BDPS: u64 = 4;
/// The least receive window. A reader takes 50 to 100 µs to wake, and longer where it waits for a
/// core: with 4 MiB, tests in one direction over a veth pair lost 5 to 10 % of 48 to 78 Gbit/s.
const WINDOW_FLOOR: ByteCount = ByteCount::from_bytes(16 << 20);
/// The least unsent data, as much as a default `tcp_wmem` allows at all.
const UNSENT_FLOOR: ByteCount = ByteCount::from_bytes(4 << 20);
/// A cap above this size is none: that is what autotuning allows at most by default, or more.
const LARGEST: u64 = 32 << 20;
/// By what a trial multiplies the cap.
const RAISE: u64 = 4;
/// The gain from which a raised cap stays: a cap that limits the rate gains far more.
const GAIN: f64 = 1.1;
/// The rate of all streams from which unsent data costs throughput. Below, a writer that is woken
/// more often takes CPU time from others, and the limit gains nothing.
const FAST: BitRate = BitRate::from_bps(5_000_000_000);
/// The epochs of a trial: whether the cap is raised.
const EPOCHS: [bool; 6] = [false, true, true, false, false, true];
/// The start of an epoch that does not count, as the window of the epoch before is in flight, and
/// the time that then counts.
const SETTLES: Duration = Duration::from_millis(8);
const COUNTS: Duration = Duration::from_millis(18);
/// Trials begin at multiples of the interval after the first one. Those of the other end are
/// half an interval later, so that they do not disturb each other.
const FIRST_TRIAL: Duration = Duration::from_millis(100);
const TRIAL_INTERVAL: Duration = Duration::from_millis(400);
/// The longest wait between two trials.
const LONGEST_WAIT: Duration = Duration::from_millis(6_400);
/// Rates over less than this time are not measured: a count grows by whole blocks.
const SHORTEST_TICK: Duration = Duration::from_millis(5);

/// Which end of the streams caps what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The receive window.
    Receiver,
    /// Written and unsent bytes.
    Sender,
}

/// The cap of all streams of one direction, at one end.
#[derive(Debug)]
pub(crate) struct WindowCap {
    end: End,
    min_rtt: Rtt,
    /// The highest rate of one stream so far.
    peak: BitRate,
    /// Whether all streams together were as fast as [`FAST`].
    fast: bool,
    /// How often the cap was raised.
    raises: u32,
    /// Bytes of each stream at the last tick, and when that was.
    counts: Vec<u64>,
    at: Duration,
    trial: Option<Trial>,
    next_trial: Duration,
    /// The wait after the next trial without gain.
    wait: Duration,
}

/// A trial under way.
#[derive(Debug)]
struct Trial {
    /// When the current epoch began.
    since: Duration,
    /// What counts of it.
    bytes: u64,
    time: Duration,
    /// The rates of those before, bit/s.
    rates: Vec<f64>,
}

impl Trial {
    fn begin(at: Duration) -> Self {
        Trial { since: at, bytes: 0, time: Duration::ZERO, rates: Vec::new() }
    }

    /// Adds the bytes of the time `from` to `to`; whether a raised cap is faster, once all epochs
    /// are over.
    fn add(&mut self, bytes: u64, from: Duration, to: Duration) -> Option<bool> {
        if from.saturating_sub(self.since) >= SETTLES {
            self.bytes = self.bytes.saturating_add(bytes);
            self.time += to - from;
        }
        if self.time < COUNTS {
            return None;
        }
        self.rates.push(self.bytes as f64 / self.time.as_secs_f64());
        (self.since, self.bytes, self.time) = (to, 0, Duration::ZERO);
        (self.rates.len() == EPOCHS.len()).then(|| self.gained())
    }

    fn is_raised(&self) -> bool {
        EPOCHS.get(self.rates.len()).copied().unwrap_or(false)
    }

    fn gained(&self) -> bool {
        let (mut low, mut high, mut wins) = (0.0, 0.0, true);
        for (pair, raised) in self.rates.chunks_exact(2).zip(EPOCHS.chunks_exact(2)) {
            let (a, b) = if raised[0] { (pair[1], pair[0]) } else { (pair[0], pair[1]) };
            (low, high, wins) = (low + a, high + b, wins && b > a);
        }
        wins && high >= GAIN * low
    }
}

impl WindowCap {
    /// The cap of `streams` whose least RTT is that of their handshakes; `None` if that is not
    /// known, or not short. A receiver's kernel has no other RTT that is safe: `tcpi_rcv_rtt` is
    /// at least 1 ms with timestamps of that resolution, and includes queueing.
    pub(crate) fn new(end: End, min_rtt: Option<Rtt>, streams: usize) -> Option<Self> {
        let min_rtt = min_rtt.filter(|rtt| *rtt < SHORT)?;
        Some(WindowCap {
            end,
            min_rtt,
            peak: BitRate::ZERO,
            fast: false,
            raises: 0,
            counts: vec![0; streams],
            at: Duration::ZERO,
            trial: None,
            next_trial: trial_from(end, Duration::ZERO),
            wait: TRIAL_INTERVAL,
        })
    }

    /// The bytes of each stream so far, `at` the time since the traffic began.
    pub(crate) fn tick(&mut self, at: Duration, counts: impl IntoIterator<Item = u64>) {
        let time = at.saturating_sub(self.at);
        if time < SHORTEST_TICK {
            return;
        }
        let mut sum = 0u64;
        for (before, now) in self.counts.iter_mut().zip(counts) {
            let bytes = now.saturating_sub(*before);
            *before = now;
            sum = sum.saturating_add(bytes);
            self.peak = self.peak.max(BitRate::of(ByteCount::from_bytes(bytes), time));
        }
        self.fast |= BitRate::of(ByteCount::from_bytes(sum), time) >= FAST;
        let from = std::mem::replace(&mut self.at, at);
        if !self.applies() {
            return;
        }
        match &mut self.trial {
            Some(trial) => {
                if let Some(gained) = trial.add(sum, from, at) {
                    self.trial = None;
                    self.judge(gained);
                }
            }
            None if at >= self.next_trial => self.trial = Some(Trial::begin(at)),
            None => {}
        }
    }

    fn judge(&mut self, gained: bool) {
        if gained {
            self.raises += 1;
            self.wait = TRIAL_INTERVAL;
            self.next_trial = trial_from(self.end, self.at);
        } else {
            self.next_trial = trial_from(self.end, self.at + self.wait);
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Whether it is in force, if it has not been lifted: a receiver's always is.
    fn applies(&self) -> bool {
        self.end == End::Receiver || self.fast
    }

    /// Whether it has been lifted for good.
    pub(crate) fn is_lifted(&self) -> bool {
        self.raised(self.raises).is_none()
    }

    /// The cap in force now, if any.
    pub(crate) fn bytes(&self) -> Option<ByteCount> {
        let trial = u32::from(self.trial.as_ref().is_some_and(Trial::is_raised));
        self.raised(self.raises + trial).filter(|_| self.applies())
    }

    /// The same without a trial under way.
    pub(crate) fn settled(&self) -> Option<ByteCount> {
        self.raised(self.raises).filter(|_| self.applies())
    }

    fn raised(&self, raises: u32) -> Option<ByteCount> {
        let floor = match self.end {
            End::Receiver => WINDOW_FLOOR,
            End::Sender => UNSENT_FLOOR,
        };
        let base = self.peak.bytes_in(self.min_rtt.duration()).times(BDPS).max(floor);
        let cap = base.times(RAISE.saturating_pow(raises));
        (cap.bytes() <= LARGEST).then_some(cap)
    }
}

/// The first time from `at` on at which an end's trials begin.
fn trial_from(end: End, at: Duration) -> Duration {
    let first = match end {
        End::Receiver => FIRST_TRIAL,
        End::Sender => FIRST_TRIAL + TRIAL_INTERVAL / 2,
    };
    let mut next = first;
    while next < at {
        next += TRIAL_INTERVAL;
    }
    next
}

#[cfg(test)]
mod tests;
