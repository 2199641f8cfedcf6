//! True limits of runs whose intervals are written down.

use control::Algorithm;
use record::Limit;
use simulator::{CrossFlow, Scenario, Truth};
use tcp::LimitTimes;
use twin::{ConnectionTruth, ReverseTruth, TruthInterval};
use units::BitRate;

/// 10 Mbit/s fill an interval with 83 packets.
const FULL: u64 = 83;

fn scenario(path: &str) -> Scenario {
    Scenario::new(path, 10.0)
}

/// Ten seconds in which one sender waits for its congestion window and half of the link
/// is used; `change` is given the number of each interval.
fn run(change: impl Fn(usize, &mut TruthInterval)) -> Vec<TruthInterval> {
    let interval = |index: usize| {
        let read = FULL / 2;
        let mut interval = TruthInterval {
            to_s: (index + 1) as f64 / 10.0,
            utilization: 0.5,
            sent_bytes: read * 1500,
            connections: vec![ConnectionTruth {
                measured: true,
                times: LimitTimes {
                    cwnd_ns: 100_000_000,
                    busy_ns: 100_000_000,
                    ..LimitTimes::default()
                },
                read,
                arrived_bytes: read * 1500,
                ..ConnectionTruth::default()
            }],
            ..TruthInterval::default()
        };
        change(index, &mut interval);
        interval
    };
    (0..100).map(interval).collect()
}

fn fill(interval: &mut TruthInterval) {
    interval.utilization = 1.0;
    interval.peak_queue_bytes = 15_000;
    interval.sent_bytes = FULL * 1500;
    interval.connections[0].read = FULL;
    interval.connections[0].arrived_bytes = FULL * 1500;
}

/// A reduction every two seconds, with what is lost.
fn losing(lose: impl Fn(&mut ConnectionTruth)) -> Vec<TruthInterval> {
    run(|index, interval| {
        if index % 20 == 10 {
            interval.connections[0].reductions = 1;
            lose(&mut interval.connections[0]);
        }
    })
}

fn waiting(times: LimitTimes) -> Vec<TruthInterval> {
    run(|_, interval| interval.connections[0].times = times)
}

fn limit(scenario: &Scenario, intervals: &[TruthInterval]) -> Limit {
    Truth::of(scenario, intervals).unwrap().limit
}

const DEEP: &str = "rate=10mbit,rtt=40ms,queue=1bdp";
const SHALLOW: &str = "rate=10mbit,rtt=400ms,queue=0.1bdp";

#[test]
fn waits_of_the_sender_decide_first() {
    let full = |_: usize, interval: &mut TruthInterval| {
        fill(interval);
        interval.connections[0].times =
            LimitTimes { rwnd_ns: 60_000_000, cwnd_ns: 40_000_000, ..LimitTimes::default() };
    };
    assert_eq!(limit(&scenario(DEEP), &run(full)), Limit::ReceiveWindow);
    let strip = format!("{DEEP},window-scale=strip");
    assert_eq!(limit(&scenario(&strip), &run(full)), Limit::WindowScaling);
    let reader = Some(BitRate::from_bps(9_700_000));
    assert_eq!(limit(&Scenario { reader, ..scenario(DEEP) }, &run(full)), Limit::SlowReceiver);
    // It would read faster than what arrives.
    let reader = Some(BitRate::from_bps(12_000_000));
    assert_eq!(limit(&Scenario { reader, ..scenario(DEEP) }, &run(full)), Limit::ReceiveWindow);
    let idle = LimitTimes { application_ns: 80_000_000, ..LimitTimes::default() };
    assert_eq!(limit(&scenario(DEEP), &waiting(idle)), Limit::Application);
}

#[test]
fn only_settings_of_the_case_are_limits_of_the_host() {
    let buffer = LimitTimes { send_buffer_ns: 100_000_000, ..LimitTimes::default() };
    let send_buffer = Some(units::ByteCount::from_bytes(50_000));
    assert_eq!(
        limit(&Scenario { send_buffer, ..scenario(DEEP) }, &waiting(buffer)),
        Limit::SendBuffer
    );
    assert_ne!(limit(&scenario(DEEP), &waiting(buffer)), Limit::SendBuffer);
    // Half of 10 Mbit/s is 4.7 Mbit/s of payload.
    let paced = LimitTimes { pacing_ns: 100_000_000, ..LimitTimes::default() };
    let at = |bps| Scenario { pacing: Some(BitRate::from_bps(bps)), ..scenario(DEEP) };
    assert_eq!(limit(&at(5_000_000), &waiting(paced)), Limit::Pacing);
    assert_ne!(limit(&at(6_000_000), &waiting(paced)), Limit::Pacing);
}

#[test]
fn a_saturated_bottleneck_is_named_by_its_queue() {
    let full = run(|_, interval| fill(interval));
    assert_eq!(limit(&scenario(DEEP), &full), Limit::PathRate);
    let overflowing = |managed: bool| {
        run(move |index, interval| {
            fill(interval);
            if index % 20 == 10 {
                let connection = &mut interval.connections[0];
                connection.reductions = 1;
                *(if managed { &mut connection.drops.aqm } else { &mut connection.drops.queue }) =
                    5;
            }
        })
    };
    assert_eq!(limit(&scenario(DEEP), &overflowing(false)), Limit::PathRate);
    assert_eq!(limit(&scenario(SHALLOW), &overflowing(false)), Limit::ShallowQueue);
    let managed = scenario("rate=10mbit,rtt=40ms,queue=fq_codel,ecn=no");
    assert_eq!(limit(&managed, &overflowing(true)), Limit::Aqm);
    assert_eq!(limit(&managed, &full), Limit::PathRate);
}

#[test]
fn a_bottleneck_is_shared_from_15_percent_on() {
    let others = |share: f64| {
        run(move |_, interval| {
            fill(interval);
            let own = &mut interval.connections[0].arrived_bytes;
            *own = (*own as f64 * (1.0 - share)) as u64;
        })
    };
    let cross = vec![CrossFlow::Tcp { congestion: Algorithm::Cubic, start_s: 0.0 }];
    let shared = Scenario { cross, ..scenario(DEEP) };
    assert_eq!(limit(&shared, &others(0.16)), Limit::SharedBottleneck);
    assert_eq!(limit(&shared, &others(0.13)), Limit::PathRate);
    // Without cross traffic, what has not arrived yet is its own.
    assert_eq!(limit(&scenario(DEEP), &others(0.16)), Limit::PathRate);
}

#[test]
fn below_saturation_the_latest_reductions_decide() {
    let lost = losing(|connection| connection.lost = 1);
    assert_eq!(limit(&scenario(&format!("{DEEP},loss=0.1%")), &lost), Limit::Loss);
    assert_eq!(limit(&scenario(&format!("{DEEP},loss=ge:0.1%:30%")), &lost), Limit::ClusteredLoss);
    let policed = losing(|connection| connection.drops.policer = 9);
    assert_eq!(limit(&scenario(&format!("{DEEP},police=5mbit:64KiB")), &policed), Limit::Policer);
    let marked = losing(|connection| connection.marked = 1);
    assert_eq!(limit(&scenario(&format!("{DEEP},mark=5p")), &marked), Limit::EcnMarks);
    let needless = losing(|connection| connection.duplicates = 3);
    assert_eq!(limit(&scenario(&format!("{DEEP},reorder=1%:5ms")), &needless), Limit::Reordering);
    let overflow = losing(|connection| connection.drops.queue = 20);
    assert_eq!(limit(&scenario(SHALLOW), &overflow), Limit::ShallowQueue);
}

#[test]
fn one_event_is_followed_by_slow_growth() {
    let once = |at: usize| {
        run(move |index, interval| {
            if index == at {
                interval.connections[0].reductions = 1;
                interval.connections[0].lost = 1;
            }
        })
    };
    let path = scenario(&format!("{DEEP},loss=0.001%"));
    assert_eq!(limit(&path, &once(5)), Limit::CongestionAvoidance);
    let lost = losing(|connection| connection.lost = 1);
    assert_eq!(limit(&path, &lost), Limit::Loss);
}

#[test]
fn ramp_and_a_saturated_ack_path() {
    let slow_start = run(|_, interval| interval.connections[0].slow_start = true);
    assert_eq!(limit(&scenario(DEEP), &slow_start), Limit::Ramp);
    let back = |utilization| {
        run(move |_, interval| {
            interval.reverse = ReverseTruth { utilization, ..ReverseTruth::default() };
        })
    };
    assert_eq!(limit(&scenario(DEEP), &back(0.95)), Limit::AckPath);
    assert_eq!(limit(&scenario(DEEP), &back(0.8)), Limit::CongestionAvoidance);
}

fn names(truth: &Truth) -> Vec<(f64, Limit)> {
    truth.segments.iter().map(|s| ((s.from_s * 10.0).round() / 10.0, s.limit)).collect()
}

#[test]
fn a_fallen_rate_is_a_change_of_the_path() {
    let path = format!("{DEEP},@5s.rate=5mbit");
    let full = run(|_, interval| fill(interval));
    let truth = Truth::of(&scenario(&path), &full).unwrap();
    assert_eq!(names(&truth), [(0.0, Limit::PathRate), (5.0, Limit::PathChange)]);
    // A fall by less than 30 % is the same bottleneck.
    let path = format!("{DEEP},@5s.rate=7500kbit");
    assert_eq!(names(&Truth::of(&scenario(&path), &full).unwrap()), [(0.0, Limit::PathRate)]);
}

#[test]
fn the_costliest_limit_is_not_the_longest() {
    // 6 s at the link rate cost 6 C, 4 s at a tenth of it 7.6 C.
    let truth = run(|index, interval| {
        if index < 60 {
            fill(interval);
        } else {
            interval.connections[0].read = FULL / 10;
            interval.utilization = 0.1;
            if index % 5 == 0 {
                interval.connections[0].reductions = 1;
                interval.connections[0].lost = 1;
            }
        }
    });
    let truth = Truth::of(&scenario(&format!("{DEEP},@6s.loss=3%")), &truth).unwrap();
    assert_eq!(truth.limit, Limit::Loss);
    assert_eq!(truth.segments.len(), 2);
    assert!((truth.shares[0].1 - 7.6 / 13.6).abs() < 0.03, "{:?}", truth.shares);
}

#[test]
fn a_span_of_200_ms_belongs_to_its_neighbours() {
    let dip = |until: usize| {
        run(move |index, interval| {
            fill(interval);
            if (50..until).contains(&index) {
                interval.connections[0].times =
                    LimitTimes { application_ns: 100_000_000, ..LimitTimes::default() };
            }
        })
    };
    assert_eq!(Truth::of(&scenario(DEEP), &dip(52)).unwrap().segments.len(), 1);
    assert_eq!(Truth::of(&scenario(DEEP), &dip(57)).unwrap().segments.len(), 3);
}

#[test]
fn simulated_runs_have_the_limits_that_their_paths_leave() {
    let label_of = |scenario: Scenario| scenario.run(1).unwrap().truth.limit;
    assert_eq!(label_of(scenario(DEEP)), Limit::PathRate);
    assert_eq!(label_of(scenario("rate=10mbit,rtt=40ms,queue=4bdp,loss=1%")), Limit::Loss);
    assert_eq!(
        label_of(scenario("rate=10mbit,rtt=40ms,queue=1bdp,police=4mbit:20000")),
        Limit::Policer
    );
    let rate = Some(BitRate::from_bps(4_000_000));
    assert_eq!(label_of(Scenario { rate, ..scenario(DEEP) }), Limit::Application);
    let receive_window = Some(units::ByteCount::from_bytes(20_000));
    assert_eq!(label_of(Scenario { receive_window, ..scenario(DEEP) }), Limit::ReceiveWindow);
    let cross = vec![CrossFlow::Tcp { congestion: Algorithm::Cubic, start_s: 0.0 }; 2];
    assert_eq!(label_of(Scenario { cross, ..scenario(DEEP) }), Limit::SharedBottleneck);
}

/// What reduced windows before the loss model changed says nothing of what comes after.
#[test]
fn reductions_before_a_change_of_the_loss_are_forgotten() {
    let changes = |path: &str| {
        let lossy = run(|index, interval| {
            let connection = &mut interval.connections[0];
            if index < 50 && index % 5 == 0 {
                connection.reductions = 1;
                connection.drops.queue = 2;
            } else if index == 51 {
                connection.reductions = 1;
                connection.lost = 9;
            }
        });
        names(&Truth::of(&scenario(path), &lossy).unwrap())
    };
    let after = |names: Vec<(f64, Limit)>| names.last().unwrap().1;
    let changed = format!("{DEEP},@5s.loss=ge:10%:20%");
    assert_eq!(after(changes(&changed)), Limit::ClusteredLoss);
    assert_eq!(after(changes(DEEP)), Limit::CongestionAvoidance, "many of the queue, one other");
}

#[test]
fn a_timeout_that_was_backed_off_has_the_cause_of_its_loss() {
    let late = run(|index, interval| {
        let connection = &mut interval.connections[0];
        match index % 20 {
            2 => connection.lost = 3,
            10 => connection.reductions = 1,
            _ => {}
        }
    });
    assert_eq!(limit(&scenario(&format!("{DEEP},loss=0.1%")), &late), Limit::Loss);
}

#[test]
fn clusters_of_less_than_two_packets_are_independent_losses() {
    let lossy = losing(|connection| connection.lost = 2);
    let of = |model: &str| limit(&scenario(&format!("{DEEP},loss={model}")), &lossy);
    assert_eq!(of("ge:0.1%:20%"), Limit::ClusteredLoss);
    assert_eq!(of("ge:0.1%:60%"), Limit::Loss);
    // Ten packets at a time, of which a tenth is lost.
    assert_eq!(of("ge:0.1%:10%:10%"), Limit::Loss);
}

/// A sender that delivers all that its application writes is limited by it, whatever it
/// waits for between two writes.
#[test]
fn a_requested_rate_that_is_reached_is_the_applications() {
    let waits = run(|_, _| {});
    let at = |bps| Scenario { rate: Some(BitRate::from_bps(bps)), ..scenario(DEEP) };
    // 41 packets in 100 ms are 4.75 Mbit/s.
    assert_eq!(limit(&at(4_800_000), &waits), Limit::Application);
    assert_ne!(limit(&at(5_000_000), &waits), Limit::Application);
}
