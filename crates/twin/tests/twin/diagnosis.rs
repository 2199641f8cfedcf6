//! The measurement of a simulation is one that diagnosis reads.

use crate::arrange::{MSS, bottleneck, scenario};
use control::Algorithm;
use record::Limit;
use tcp::{Application, BufferSize, WindowSize};
use twin::ConnectionConfig;
use units::{BitRate, ByteCount};

fn limit(change: impl Fn(&mut ConnectionConfig)) -> Option<Limit> {
    let mut scenario = scenario(bottleneck(50, 50, 1.0), Algorithm::Cubic, 20);
    scenario.connections.iter_mut().for_each(change);
    diagnose::explain(&twin::run(&scenario).measurement).limit
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
