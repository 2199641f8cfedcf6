//! What limits a connection, and what the ground truth says of it.

use crate::arrange::{MSS, bottleneck, ms, packet_rate, scenario, unlimited};
use control::Algorithm;
use tcp::{Application, BufferSize, LimitTimes, Reader, WindowSize};
use twin::{ConnectionConfig, Outcome, Scenario};
use units::{BitRate, ByteCount};

fn with(scenario: Scenario, change: impl Fn(&mut ConnectionConfig)) -> Outcome {
    let mut scenario = scenario;
    scenario.connections.iter_mut().for_each(change);
    twin::run(&scenario)
}

/// Times of the first connection from one second on, as shares of the time.
fn shares(outcome: &Outcome) -> [f64; 5] {
    let later = outcome.truth.iter().filter(|interval| interval.to_s > 1.05);
    let mut sums = [0.0; 5];
    let mut total = 0.0;
    for interval in later {
        let LimitTimes { application_ns, cwnd_ns, rwnd_ns, send_buffer_ns, pacing_ns, .. } =
            interval.connections[0].times;
        for (sum, ns) in
            sums.iter_mut().zip([application_ns, cwnd_ns, rwnd_ns, send_buffer_ns, pacing_ns])
        {
            *sum += ns as f64;
            total += ns as f64;
        }
    }
    sums.map(|sum| sum / total)
}

#[test]
fn a_fixed_receive_window_gives_window_over_rtt() {
    let window = ByteCount::from_bytes(200 * MSS);
    let outcome = with(scenario(unlimited(50), Algorithm::Cubic, 10), |connection| {
        connection.window = WindowSize::Fixed(window);
    });
    let expected = 200.0 / 0.05;
    let rate = packet_rate(&outcome, 0, 2.0, 10.0);
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate}");
    let [_, _, rwnd, _, _] = shares(&outcome);
    assert!(rwnd > 0.95, "{:?}", shares(&outcome));
}

#[test]
fn a_fixed_send_buffer_gives_buffer_over_rtt_at_most() {
    let outcome = with(scenario(unlimited(50), Algorithm::Cubic, 10), |connection| {
        connection.buffer = BufferSize::Fixed(ByteCount::from_bytes(200 * MSS));
    });
    let rate = packet_rate(&outcome, 0, 2.0, 10.0) / (200.0 / 0.05);
    // A blocked writer waits until a third is free.
    assert!((0.6..=1.01).contains(&rate), "{rate}");
    let [_, _, _, send_buffer, _] = shares(&outcome);
    assert!(send_buffer > 0.9, "{:?}", shares(&outcome));
    let last = outcome.measurement.streams[0].sender.last().unwrap();
    assert!(last.sndbuf_limited_us > 8_000_000, "{last:?}");
}

#[test]
fn a_writer_at_a_rate_is_application_limited() {
    let rate = BitRate::from_bps(20_000_000);
    let outcome = with(scenario(bottleneck(100, 20, 1.0), Algorithm::Cubic, 10), |connection| {
        connection.application = Application::Rate { rate, block: ByteCount::from_bytes(131_072) };
    });
    let achieved = packet_rate(&outcome, 0, 2.0, 10.0) * (MSS * 8) as f64 / 20e6;
    assert!((achieved - 1.0).abs() < 0.03, "{achieved}");
    let [application, ..] = shares(&outcome);
    assert!(application > 0.6, "{:?}", shares(&outcome));
}

#[test]
fn a_reader_at_a_rate_closes_the_window() {
    let rate = BitRate::from_bps(20_000_000);
    let outcome = with(scenario(bottleneck(100, 20, 1.0), Algorithm::Cubic, 10), |connection| {
        connection.window = WindowSize::Fixed(ByteCount::from_bytes(1 << 20));
        connection.reader = Reader::Rate { rate, block: ByteCount::from_bytes(65_536) };
    });
    let achieved = packet_rate(&outcome, 0, 2.0, 10.0) * (MSS * 8) as f64 / 20e6;
    assert!((achieved - 1.0).abs() < 0.03, "{achieved}");
    let [_, _, rwnd, _, _] = shares(&outcome);
    assert!(rwnd > 0.8, "{:?}", shares(&outcome));
}

#[test]
fn a_maximum_pacing_rate_is_kept_and_named() {
    let most = BitRate::from_bps(20_000_000);
    let outcome = with(scenario(bottleneck(100, 20, 1.0), Algorithm::Cubic, 10), |connection| {
        connection.max_pacing_rate = Some(most);
    });
    let achieved = packet_rate(&outcome, 0, 2.0, 10.0) * (MSS * 8) as f64 / 20e6;
    assert!((achieved - 1.0).abs() < 0.03, "{achieved}");
    let [_, _, _, _, pacing] = shares(&outcome);
    assert!(pacing > 0.9, "{:?}", shares(&outcome));
}

#[test]
fn an_autotuned_window_does_not_limit_a_long_path() {
    let outcome = with(scenario(bottleneck(100, 100, 1.0), Algorithm::Cubic, 20), |connection| {
        connection.window = WindowSize::Auto(ByteCount::from_bytes(16 << 20));
        connection.buffer = BufferSize::Auto(ByteCount::from_bytes(16 << 20));
    });
    let share = packet_rate(&outcome, 0, 5.0, 20.0) / (100e6 / 8.0 / 1500.0);
    assert!(share > 0.95, "{share}");
    // One that may not grow far enough does.
    let outcome = with(scenario(bottleneck(100, 100, 1.0), Algorithm::Cubic, 20), |connection| {
        connection.window = WindowSize::Auto(ByteCount::from_bytes(300 * MSS));
    });
    let rate = packet_rate(&outcome, 0, 5.0, 20.0) / (300.0 / 0.1);
    assert!((rate - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn an_on_off_writer_begins_again_with_a_smaller_window() {
    let outcome = with(scenario(bottleneck(100, 20, 1.0), Algorithm::Cubic, 10), |connection| {
        connection.application = Application::OnOff { on: ms(1_000), off: ms(2_000) };
        connection.buffer = BufferSize::Fixed(ByteCount::from_bytes(1 << 20));
    });
    let rate = |from: f64, to: f64| packet_rate(&outcome, 0, from, to);
    assert!(rate(1.5, 3.0) < 1.0 && rate(3.2, 4.0) > 5_000.0);
    let stream = &outcome.measurement.streams[0].sender;
    let at = |t: f64| stream.iter().rfind(|sample| sample.t_s <= t + 1e-9).unwrap().cwnd_bytes;
    assert!(at(3.0 + 0.1) < at(1.0), "{} {}", at(3.1), at(1.0));
}

#[test]
fn a_flow_ends_with_its_bytes_or_at_its_time_and_leaves_the_path_to_the_other() {
    let mut two = scenario(bottleneck(20, 40, 1.0), Algorithm::Cubic, 20);
    two.connections.push(two.connections[0]);
    two.connections[1].start = ms(1_000);
    two.connections[1].limit.after = Some(ms(9_000));
    let outcome = twin::run(&two);
    let ended = &outcome.measurement.streams[1];
    let last = ended.sender.last().unwrap();
    assert!((10.0..10.6).contains(&last.t_s), "{}", last.t_s);
    assert_eq!(ended.sent_bytes, ended.received_bytes, "what is not sent is discarded");
    let alone = packet_rate(&outcome, 0, 14.0, 20.0) * MSS as f64 * 8.0;
    assert!(alone > 0.93 * 20e6, "{alone}");

    let bytes = ByteCount::from_bytes(1_000 * MSS + 1);
    let outcome = with(scenario(bottleneck(20, 40, 1.0), Algorithm::Cubic, 20), |connection| {
        connection.limit.bytes = Some(bytes);
    });
    assert_eq!(outcome.read, [1_001]);
    let stream = &outcome.measurement.streams[0];
    assert!(stream.received_seconds < 2.0, "{}", stream.received_seconds);
}
