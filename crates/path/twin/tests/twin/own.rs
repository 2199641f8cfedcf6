//! Congestion control of the caller's own.

use crate::arrange::{bottleneck, goodput_share, scenario};
use control::{Ack, Algorithm, Congestion, CongestionControl, Controller, MAX_WINDOW};
use tcp::WindowSize;
use twin::{ConnectionConfig, Scenario};
use units::{BitRate, ByteCount, Nanos};

type Own = Option<Box<dyn CongestionControl + Send>>;

/// A constant window, until it fails.
struct Constant {
    cwnd: u64,
    /// When it fails.
    fails_at: Option<Nanos>,
    failure: Option<String>,
}

impl Constant {
    fn of(cwnd: u64, fails_at: Option<Nanos>) -> Own {
        Some(Box::new(Constant { cwnd, fails_at, failure: None }))
    }
}

impl CongestionControl for Constant {
    fn name(&self) -> &str {
        "constant"
    }

    fn on_ack(&mut self, ack: &Ack) {
        if self.fails_at.is_some_and(|at| ack.now >= at) {
            self.failure = Some("it gave up".to_owned());
        }
    }

    fn on_congestion(&mut self, _congestion: &Congestion) {}

    fn on_recovery_end(&mut self, _now: Nanos) {}

    fn on_retransmission_timeout(&mut self, _congestion: &Congestion) {}

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> Option<u64> {
        Some(self.cwnd)
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// CUBIC behind the interface for own controllers.
struct Wrapped(Controller);

impl CongestionControl for Wrapped {
    fn name(&self) -> &str {
        "wrapped"
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.0.on_congestion(congestion);
    }

    fn on_recovery_end(&mut self, now: Nanos) {
        self.0.on_recovery_end(now);
    }

    fn on_retransmission_timeout(&mut self, congestion: &Congestion) {
        self.0.on_retransmission_timeout(congestion);
    }

    fn undo(&mut self, now: Nanos) {
        self.0.undo(now);
    }

    fn on_idle_end(&mut self, now: Nanos, idle_ns: u64, timeouts: u32) {
        self.0.on_idle_end(now, idle_ns, timeouts);
    }

    fn cwnd(&self) -> u64 {
        self.0.cwnd()
    }

    fn ssthresh(&self) -> Option<u64> {
        self.0.ssthresh()
    }

    fn pacing_rate(&self) -> Option<BitRate> {
        self.0.pacing_rate()
    }
}

/// 20 Mbit/s and 40 ms, so a BDP of 67 packets.
fn path(seconds: u64) -> Scenario {
    scenario(bottleneck(20, 40, 1.0), Algorithm::Cubic, seconds)
}

#[test]
fn half_a_bdp_as_a_constant_window_carries_half_of_the_rate() {
    let outcome = twin::run_with(&path(10), |_| Constant::of(33, None)).unwrap();
    let share = goodput_share(&outcome, 20, 1.0, 10.0);
    assert!((0.47..0.51).contains(&share), "{share}");
    let stream = &outcome.measurement.streams[0];
    assert_eq!(stream.congestion.as_deref(), Some("constant"));
    assert_eq!(outcome.measurement.spec.congestion.as_deref(), Some("constant"));
}

#[test]
fn cubic_is_the_same_behind_the_interface() {
    let built_in = twin::run(&path(10));
    let wrapped = |_| -> Own { Some(Box::new(Wrapped(Algorithm::Cubic.start(1448, 0)))) };
    let own = twin::run_with(&path(10), wrapped).unwrap();
    assert_eq!(own.truth, built_in.truth);
    assert_eq!(own.senders, built_in.senders);
    let none = twin::run_with(&path(10), |_| None).unwrap();
    assert_eq!(none.measurement, built_in.measurement);
}

#[test]
fn only_the_asked_connection_has_an_own_controller() {
    let mut scenario = path(5);
    scenario.connections = vec![ConnectionConfig::default(); 2];
    let second = |index| if index == 1 { Constant::of(10, None) } else { None };
    let outcome = twin::run_with(&scenario, second).unwrap();
    let names: Vec<_> =
        outcome.measurement.streams.iter().map(|stream| stream.congestion.as_deref()).collect();
    assert_eq!(names, [Some("cubic"), Some("constant")]);
    assert_eq!(outcome.senders[1].cwnd, 10);
}

#[test]
fn a_failure_ends_the_simulation_and_says_whose() {
    let mut scenario = path(1_000_000);
    scenario.connections = vec![ConnectionConfig::default(); 3];
    let own = |index| if index == 2 { Constant::of(10, Some(Nanos(3_000_000_000))) } else { None };
    let failure = twin::run_with(&scenario, own).unwrap_err();
    assert_eq!(failure.connection, 2);
    assert_eq!(failure.to_string(), "congestion control 'constant' of flow 3: it gave up");
}

#[test]
fn windows_beyond_the_range_do_no_harm() {
    let mut scenario = path(2);
    // Bounds what is sent at once.
    scenario.connections[0].window = WindowSize::Fixed(ByteCount::from_bytes(1 << 20));
    for cwnd in [0, 1, MAX_WINDOW, u64::MAX] {
        let outcome = twin::run_with(&scenario, |_| Constant::of(cwnd, None)).unwrap();
        assert!(outcome.read[0] > 10, "{cwnd}: {:?}", outcome.read);
    }
}
