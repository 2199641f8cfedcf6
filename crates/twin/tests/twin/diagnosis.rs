//! The measurement of a simulation is one that diagnosis reads.

use crate::arrange::{MSS, bottleneck, goodput_share, scenario};
use control::Algorithm;
use record::Limit;
use tcp::{Application, BufferCheck, BufferSize, WindowSize};
use twin::ConnectionConfig;
use units::{BitRate, ByteCount};

fn limit(change: impl Fn(&mut ConnectionConfig)) -> Option<Limit> {
    let mut scenario = scenario(bottleneck(50, 50, 1.0), Algorithm::Cubic, 20);
    scenario.connections.iter_mut().for_each(change);
    diagnose::explain(&twin::run(&scenario).measurement).limit
}

/// As measured with Linux 6.18 in the lab: 64 KiB carry 35 Mbit/s over 100 Mbit/s x 60 ms,
/// where a window of 64 KiB would carry 8.7.
#[test]
fn a_send_buffer_that_bursts_past_is_still_the_limit() {
    let mut scenario = scenario(bottleneck(100, 60, 1.0), Algorithm::Cubic, 10);
    for connection in &mut scenario.connections {
        connection.buffer = BufferSize::Fixed(ByteCount::from_bytes(65_536));
        connection.buffer_check = BufferCheck::Unsent;
    }
    let outcome = twin::run(&scenario);
    let share = goodput_share(&outcome, 100, 2.0, 10.0);
    assert!((0.25..0.6).contains(&share), "{share}");
    assert_eq!(diagnose::explain(&outcome.measurement).limit, Some(Limit::SendBuffer));
}

#[test]
fn diagnosis_names_the_limits_that_tcp_info_shows() {
    let window = ByteCount::from_bytes(100 * MSS);
    assert_eq!(limit(|c| c.window = WindowSize::Fixed(window)), Some(Limit::ReceiveWindow));
    assert_eq!(limit(|c| c.buffer = BufferSize::Fixed(window)), Some(Limit::SendBuffer));
    let rate = BitRate::from_bps(10_000_000);
    let block = ByteCount::from_bytes(131_072);
    let writes = Application::Rate { rate, block };
    assert_eq!(limit(|c| c.application = writes), Some(Limit::Application));
    assert_eq!(limit(|_| {}), Some(Limit::PathRate));
}
