//! Reproducible random numbers, and the draws that the families share.

use control::Algorithm::{self, Bbr, Cubic, NewReno};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use units::{BitRate, ByteCount};

/// The congestion controls of Linux that scenarios run with.
pub const KERNEL_CONTROLS: [Algorithm; 3] = [Cubic, NewReno, Bbr];

/// The most data packets of a run: bounds the time that the twin takes for it.
const MAX_PACKETS: f64 = 1.2e6;
/// Bits of a packet of 1500 bytes.
pub(crate) const PACKET_BITS: f64 = 12_000.0;

/// A generator of reproducible random numbers.
pub struct Draws {
    generator: Pcg64,
    mix: Option<Mix>,
}

/// What the balanced draw has in equal parts in every family, whatever the family would draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mix {
    congestion: Algorithm,
    several: bool,
    reverse: bool,
    /// Both hosts have Linux's default buffers, unless the family sets them.
    pub(crate) default_buffers: bool,
}

impl Mix {
    /// That of a family's run of a number: 24 in a row are all that there are.
    pub(crate) const fn of(number: usize) -> Self {
        Mix {
            congestion: KERNEL_CONTROLS[number % 3],
            several: number % 2 == 1,
            reverse: number / 2 % 2 == 1,
            default_buffers: number / 4 % 2 == 1,
        }
    }
}

/// A path without its queue.
#[derive(Debug, Clone, Copy)]
pub struct BasePath {
    /// Bottleneck rate, Mbit/s.
    pub rate: f64,
    /// RTT without queueing, ms.
    pub rtt: f64,
    /// How long a transfer over it lasts, s.
    pub seconds: f64,
}

impl Draws {
    /// The generator of one scenario.
    pub fn new(seed: u64, number: usize) -> Self {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        Draws { generator: Pcg64::seed_from_u64(seed), mix: None }
    }

    /// The same for a scenario whose mix is given.
    pub(crate) fn of_mix(seed: u64, number: usize, mix: Mix) -> Self {
        Draws { mix: Some(mix), ..Draws::new(seed, number) }
    }

    /// Uniform between two values.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        // The 53 bits of a double's mantissa.
        let share = (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * share
    }

    /// Log-uniform between two positive values.
    pub fn log(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.between(libm::log(low), libm::log(high)))
    }

    /// True with that probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.between(0.0, 1.0) < probability
    }

    /// One of the values, each equally likely.
    pub fn one<T: Copy, const N: usize>(&mut self, values: &[T; N]) -> T {
        const { assert!(N > 0, "a value to draw") };
        let at = self.between(0.0, N as f64) as usize;
        values[at.min(N - 1)]
    }

    /// A rate and an RTT from the whole range, and a duration: 4 to 20 s, shorter where
    /// the path is fast.
    pub(crate) fn base(&mut self) -> BasePath {
        // Three of four as between hosts of different sites.
        let rtt = if self.chance(0.75) { self.log(2.0, 300.0) } else { self.log(0.02, 2.0) };
        let rate = self.log(1.0, 2000.0);
        self.lasting(rate, rtt)
    }

    /// A rate and an RTT within ranges, for causes that others do not show.
    pub fn base_within(&mut self, rate: (f64, f64), rtt: (f64, f64)) -> BasePath {
        let (rate, rtt) = (self.log(rate.0, rate.1), self.log(rtt.0, rtt.1));
        self.lasting(rate, rtt)
    }

    fn lasting(&mut self, rate: f64, rtt: f64) -> BasePath {
        let most = (MAX_PACKETS * PACKET_BITS / (rate * 1e6)).clamp(4.0, 20.0);
        // A path of 300 ms needs some seconds to leave slow start.
        let least = (4.0 + rtt * 0.015).min(most);
        BasePath { rate, rtt, seconds: self.between(least, most) }
    }

    /// A congestion control: CUBIC in half of the draws.
    pub fn congestion(&mut self) -> Algorithm {
        self.mix.map_or_else(
            || self.one(&[Cubic, Cubic, Cubic, NewReno, Bbr, Bbr]),
            |mix| mix.congestion,
        )
    }

    /// A control that losses reduce.
    pub fn loss_based(&mut self) -> Algorithm {
        self.mix.map_or_else(|| self.one(&[Cubic, Cubic, NewReno]), |mix| mix.congestion)
    }

    /// The same in that share of the runs, else BBR.
    pub(crate) fn mostly_loss_based(&mut self, share: f64) -> Algorithm {
        if self.mix.is_some() || self.chance(share) { self.loss_based() } else { Bbr }
    }

    /// The control that a scenario is about.
    pub(crate) fn about(&self, congestion: Algorithm) -> Algorithm {
        self.mix.map_or(congestion, |mix| mix.congestion)
    }

    /// One stream in six of ten runs, else 2 to 8.
    pub(crate) fn streams(&mut self) -> u32 {
        self.streams_of(0.6, 9.0)
    }

    /// The same, with one stream in a share of the runs more.
    pub(crate) fn mostly_one_stream(&mut self, share: f64) -> u32 {
        if self.mix.is_none() && self.chance(share) { 1 } else { self.streams() }
    }

    /// One stream in eight of ten runs, else 2 to 4.
    pub(crate) fn few_streams(&mut self) -> u32 {
        self.streams_of(0.8, 5.0)
    }

    fn streams_of(&mut self, single: f64, below: f64) -> u32 {
        let one = self.mix.map_or_else(|| self.chance(single), |mix| !mix.several);
        if one { 1 } else { self.between(2.0, below) as u32 }
    }

    /// Whether the server sends (`-R`), in that share of the runs.
    pub(crate) fn reverse(&mut self, share: f64) -> bool {
        self.mix.map_or_else(|| self.chance(share), |mix| mix.reverse)
    }

    /// A drop-tail queue between two depths in BDP, log-uniform; at least `least` packets.
    pub fn drop_tail(&mut self, base: &BasePath, depth: (f64, f64), least: f64) -> String {
        let bytes = (self.log(depth.0, depth.1) * base.bdp()).max(least * 1500.0);
        if self.chance(0.4) {
            format!("queue={:.0}p", (bytes / 1500.0).max(1.0))
        } else {
            format!("queue={bytes:.0}")
        }
    }

    /// A queue of any discipline, as a queue that is not the point of a family.
    pub(crate) fn any_queue(&mut self, base: &BasePath) -> String {
        if self.chance(0.6) { self.drop_tail(base, (0.3, 8.0), 10.0) } else { self.aqm(base) }
    }

    /// A queue with active management, which drops rather than marks.
    pub(crate) fn aqm(&mut self, base: &BasePath) -> String {
        let discipline = self.one(&["fq_codel", "fq_codel", "codel", "pie", "red"]);
        format!("{},ecn=no", self.managed(base, discipline))
    }

    /// A queue of that discipline, without its `ecn=`.
    pub(crate) fn managed(&mut self, base: &BasePath, discipline: &str) -> String {
        match discipline {
            "fq_codel" | "codel" => {
                // A target below 1.5 packets drops at an idle queue (RFC 8290, section 5.2.2).
                let least = 1.5 * PACKET_BITS / (base.rate * 1e3);
                let target = self.one(&[5.0, 5.0, 5.0, 10.0f64]).max(least);
                format!(
                    "queue={discipline},target={:.0}us,interval={:.0}us",
                    target * 1e3,
                    target * 20e3
                )
            }
            "pie" => format!("queue=pie,target={:.0}ms", self.one(&[15.0, 15.0, 20.0])),
            _ => {
                let limit = (self.log(0.5, 4.0) * base.bdp()).max(60.0 * 1500.0);
                format!("queue=red,limit={limit:.0}")
            }
        }
    }
}

impl BasePath {
    /// Bandwidth-delay product, bytes.
    pub fn bdp(&self) -> f64 {
        self.rate * self.rtt * 125.0
    }

    /// The start of the path's text.
    pub fn path(&self) -> String {
        format!("rate={:.0}kbit,rtt={:.0}us", self.rate * 1e3, (self.rtt * 1e3).max(1.0))
    }

    /// A share of the rate.
    pub(crate) fn share(&self, share: f64) -> BitRate {
        BitRate::from_bps_f64(self.rate * 1e6 * share)
    }
}

pub(crate) fn bytes(bytes: f64) -> ByteCount {
    ByteCount::from_f64(bytes)
}
