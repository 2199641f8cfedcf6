//! A path that acknowledges, and the controller that drives it.

use control::{Ack, Arithmetic, Congestion, CongestionControl, Law, Phase, Windowed};
use units::{Nanos, Rtt};

/// Acknowledgements a round trip, at most.
const ACKS: u64 = 32;

/// A path without loss of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    /// Round trip without a queue, s.
    pub(crate) rtt_s: f64,
    /// Packets a second at the bottleneck; what the window holds beyond is queued.
    pub(crate) bottleneck: Option<f64>,
}

impl Path {
    /// A constant round trip.
    pub(crate) const fn of(rtt_s: f64) -> Self {
        Path { rtt_s, bottleneck: None }
    }

    fn rtt(&self, window: f64) -> f64 {
        self.bottleneck.map_or(self.rtt_s, |rate| self.rtt_s.max(window / rate))
    }
}

/// A connection over a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection<L> {
    pub(crate) control: Windowed<L>,
    path: Path,
    /// Time, s.
    pub(crate) now_s: f64,
    acked: u64,
    pub(crate) phase: Phase,
    /// Acknowledgements a round trip, at most.
    pub(crate) acks: u64,
}

impl<L: Law + Copy> Connection<L> {
    /// In congestion avoidance at that window.
    pub(crate) fn new(law: L, arithmetic: Arithmetic, path: Path, window: u64) -> Self {
        let control = Windowed::avoiding_congestion(law, arithmetic, window);
        Connection { control, path, now_s: 1.0, acked: 0, phase: Phase::Open, acks: ACKS }
    }

    pub(crate) fn window(&self) -> f64 {
        self.control.window().exact()
    }

    pub(crate) const fn acked(&self) -> u64 {
        self.acked
    }

    fn now(&self) -> Nanos {
        Nanos((self.now_s * 1e9) as u64)
    }

    /// One acknowledgement.
    pub(crate) fn ack(&mut self, packets: u64, marked: u64) {
        let window = self.window();
        let rtt_s = self.path.rtt(window);
        self.now_s += rtt_s * packets as f64 / window;
        self.acked += packets;
        let in_flight = self.control.cwnd();
        let rtt = Some(Rtt::from_secs(rtt_s));
        self.control.on_ack(&Ack {
            now: self.now(),
            newly_acked: packets,
            newly_delivered: packets,
            newly_lost: 0,
            delivered: self.acked,
            newly_marked: marked,
            acked_to: self.acked,
            sent_to: self.acked + in_flight,
            in_flight,
            prior_in_flight: in_flight,
            cwnd_limited: true,
            rtt,
            srtt: rtt,
            rate: None,
            receiver: None,
            phase: self.phase,
        });
    }

    /// Acknowledgements of that many packets.
    pub(crate) fn acknowledge(&mut self, packets: u64) {
        let mut left = packets;
        while left > 0 {
            let each = (self.control.cwnd() / self.acks).clamp(1, left);
            self.ack(each, 0);
            left -= each;
        }
    }

    /// Congestion by losses, or by marks where there are none.
    pub(crate) fn congestion(&mut self, lost: u64) {
        let in_flight = self.control.cwnd();
        self.control.on_congestion(&Congestion {
            now: self.now(),
            in_flight,
            is_new: true,
            first_lost: self.acked,
            lost,
            sent_to: self.acked + in_flight,
        });
        self.phase = Phase::Recovery;
    }

    pub(crate) fn end_recovery(&mut self) {
        self.control.on_recovery_end(self.now());
        self.phase = Phase::Open;
    }

    /// A loss, and the round trip of its recovery.
    pub(crate) fn lose(&mut self) {
        self.congestion(1);
        let threshold = self.control.ssthresh().unwrap();
        let began_s = self.now_s;
        self.acknowledge(threshold);
        self.now_s = began_s + self.path.rtt(threshold as f64);
        self.end_recovery();
    }

    /// That many packets and then a loss; the mean window until it.
    pub(crate) fn cycle(&mut self, packets: u64) -> f64 {
        let began_s = self.now_s;
        self.acknowledge(packets);
        let mean = packets as f64 * self.path.rtt_s / (self.now_s - began_s);
        self.lose();
        mean
    }

    /// Mean window where every 1/p-th packet is lost, over the second half of that many cycles.
    pub(crate) fn mean_window(&mut self, p: f64, cycles: u32) -> f64 {
        let packets = (1.0 / p).round() as u64;
        let means: Vec<f64> = (0..cycles).map(|_| self.cycle(packets)).collect();
        let later = &means[means.len() / 2..];
        // Over time: each cycle lasts as long as its window is small.
        later.len() as f64 / later.iter().map(|mean| 1.0 / mean).sum::<f64>()
    }
}

pub(crate) fn within(name: &str, measured: f64, expected: f64, tolerance: f64) {
    let error = measured / expected - 1.0;
    println!("{name:40} {measured:10.2} {expected:10.2} {:+6.2} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{name}: {measured:.2}, expected {expected:.2}");
}
