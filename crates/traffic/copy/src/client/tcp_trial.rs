//! Whether TCP carries more than UDT: a path may police UDP.
//!
//! A policer drops what exceeds its rate, so that UDT loses packets wherever it does. Many
//! other causes lose packets; only TCP, tried on the same path, tells them apart.

use super::far_side::FarSide;
use super::{Attempt, Notice};
use crate::protocol::message::{Carrier, Message};
use crate::transport::{Session, Transport};
use host::clock;
use host::stop::StopFlag;
use std::collections::VecDeque;
use std::thread::Scope;
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// Loss of UDT above which TCP is tried: BBR keeps it below 2 % unless the path itself loses.
const SUSPICIOUS_LOSS: f64 = 0.02;
/// Packets below which a share of them says nothing.
const MIN_PACKETS: u64 = 100;
/// TCP is not tried for less than this.
const MIN_REMAINING: Duration = Duration::from_secs(10);
/// Time over which loss and rate are taken.
const WINDOW: Duration = Duration::from_millis(1_500);
/// What UDT's startup may take, and lose, from the first byte that the receiver wrote.
const START: Duration = Duration::from_secs(1);
/// What TCP's slow start may take.
const WARM_UP: Duration = Duration::from_millis(1_500);
/// What TCP has to carry, as a multiple of UDT's rate.
const ADVANTAGE: f64 = 1.5;
const POLL: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(5);
const CONNECT: Duration = Duration::from_secs(2);

/// Counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    at: Instant,
    /// Bytes that were carried.
    carried: u64,
    packets: u64,
    lost: u64,
}

/// The samples of the last [`WINDOW`].
#[derive(Debug, Default)]
struct Samples(VecDeque<Sample>);

impl Samples {
    fn push(&mut self, sample: Sample) {
        self.0.push_back(sample);
        while self.0.get(1).is_some_and(|second| sample.at.duration_since(second.at) >= WINDOW) {
            self.0.pop_front();
        }
    }

    /// The first and the last of a whole window.
    fn window(&self) -> Option<(Sample, Sample)> {
        let (first, last) = (*self.0.front()?, *self.0.back()?);
        (last.at.duration_since(first.at) >= WINDOW).then_some((first, last))
    }

    fn rate(&self) -> Option<BitRate> {
        let (first, last) = self.window()?;
        let carried = ByteCount::from_bytes(last.carried.saturating_sub(first.carried));
        Some(BitRate::of(carried, last.at.duration_since(first.at)))
    }

    /// Share of the packets that was lost.
    fn loss(&self) -> Option<f64> {
        let (first, last) = self.window()?;
        let packets = last.packets.saturating_sub(first.packets);
        let lost = last.lost.saturating_sub(first.lost);
        (packets >= MIN_PACKETS).then(|| lost as f64 / packets as f64)
    }
}

/// Watches a copy over UDT, and once moves its data to TCP for a trial.
pub(super) struct TcpTrial<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) far: &'a FarSide,
    pub(super) session: &'a Session,
    /// The copy has ended.
    pub(super) done: &'a StopFlag,
}

impl<'a> TcpTrial<'a> {
    pub(super) fn run<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        report: &(dyn Fn(Notice) + Sync),
    ) where
        'a: 'scope,
    {
        let Some((udt, loss)) = self.suspicious() else { return };
        let Ok(lanes) = self.far.connect_tcp(self.attempt.request.streams, CONNECT, None) else {
            return;
        };
        report(Notice::TryingTcp { loss });
        let session = self.session;
        for mut tls in lanes {
            scope.spawn(move || tls.carry(session, false));
        }
        self.carry_over(Carrier::Tcp);
        let Some(tcp) = self.tcp_rate_after(WARM_UP) else { return };
        let kept = if tcp.as_f64() >= udt.as_f64() * ADVANTAGE {
            Transport::Tcp
        } else {
            self.carry_over(Carrier::Udt);
            Transport::UdtNative
        };
        report(Notice::TriedTcp { udt, tcp, kept });
    }

    fn carry_over(&self, carrier: Carrier) {
        self.session.data_path().use_only(carrier);
        if !self.attempt.is_upload() {
            // Fails only where the session has.
            let _ = self.session.send(&Message::CarryDataOver(carrier));
        }
    }

    /// Waits until UDT loses so many packets, in a copy that takes long enough, that TCP is
    /// worth a trial. UDT's rate, and the loss.
    fn suspicious(&self) -> Option<(BitRate, f64)> {
        let mut samples = Samples::default();
        let mut begun: Option<Instant> = None;
        while self.goes_on() {
            let carried = self.attempt.progress.figures().written_bytes;
            if carried == 0 || begun.get_or_insert_with(clock::now).elapsed() < START {
                continue;
            }
            samples.push(self.sample(carried));
            if let (Some(rate), Some(loss)) = (samples.rate(), samples.loss())
                && loss >= SUSPICIOUS_LOSS
                && rate.bps() > 0
                && self.remaining() > rate.bytes_in(MIN_REMAINING).bytes()
            {
                return Some((rate, loss));
            }
        }
        None
    }

    /// TCP's rate over a window that begins after `wait`; `None` if the copy ends before. What
    /// UDT had taken before arrives meanwhile, and does not count.
    fn tcp_rate_after(&self, wait: Duration) -> Option<BitRate> {
        let begin = clock::now() + wait;
        let mut samples = Samples::default();
        while self.goes_on() {
            if clock::now() >= begin {
                samples.push(self.sample(self.session.data_path().tcp_bytes()));
            }
            if let Some(rate) = samples.rate() {
                return Some(rate);
            }
        }
        None
    }

    /// Waits for the next sample; false once the copy has ended, which must not be delayed.
    fn goes_on(&self) -> bool {
        let until = clock::now() + POLL;
        while clock::now() < until {
            if self.done.is_raised() {
                return false;
            }
            std::thread::sleep(STEP);
        }
        true
    }

    fn sample(&self, carried: u64) -> Sample {
        let (packets, lost) = self.session.data_path().counted();
        Sample { at: clock::now(), carried, packets, lost }
    }

    /// Bytes that have yet to be copied, as far as they are known.
    fn remaining(&self) -> u64 {
        let figures = self.attempt.progress.figures();
        figures.listed_bytes.saturating_sub(figures.written_bytes + figures.kept_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_the_rate_and_the_loss() {
        let began = clock::now();
        let mut samples = Samples::default();
        for step in 0..=40_u32 {
            assert_eq!(samples.rate().is_some(), step > 15, "{step}");
            // 1 MB and 1,000 packets in each 100 ms, of which 50 are lost from 2.5 s.
            let lost = u64::from(step.saturating_sub(25)) * 50;
            let at = began + POLL * step;
            let (carried, packets) = (u64::from(step) * 1_000_000, u64::from(step) * 1_000);
            samples.push(Sample { at, carried, packets, lost });
        }
        assert_eq!(samples.rate(), Some(BitRate::from_bps(80_000_000)));
        assert!((samples.loss().unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn few_packets_have_no_share() {
        let at = clock::now();
        let mut samples = Samples::default();
        samples.push(Sample { at, carried: 0, packets: 0, lost: 0 });
        samples.push(Sample { at: at + WINDOW, carried: 0, packets: 90, lost: 80 });
        assert_eq!(samples.loss(), None);
    }
}
