//! The measurement of a simulation is one that diagnosis reads.

use crate::arrange::{MSS, bottleneck, goodput_share, scenario};
use control::Algorithm;
use record::Limit;
use tcp::{Application, BufferCheck, BufferSize, KernelVersion, WindowSize};
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

/// Fields that older kernels do not report: the window of the receiver (Linux 6.2), that which the
/// sender sees (5.4), and the timers (4.10), as `host::tcp_info` reads a short struct. Their senders
/// hold bursts back as those of 6.1 do.
#[test]
fn fields_cut_from_tcp_info_hide_a_limit_and_never_invent_one() {
    let window = ByteCount::from_bytes(100 * MSS);
    type Change<'a> = &'a dyn Fn(&mut ConnectionConfig);
    let limits: [(Limit, Change<'_>); 3] = [
        (Limit::ReceiveWindow, &|c| c.window = WindowSize::Fixed(window)),
        (Limit::SendBuffer, &|c| c.buffer = BufferSize::Fixed(window)),
        (Limit::PathRate, &|_| {}),
    ];
    for (truth, change) in limits {
        let mut scenario = scenario(bottleneck(50, 50, 1.0), Algorithm::Cubic, 20);
        scenario.connections.iter_mut().for_each(change);
        scenario.connections.iter_mut().for_each(|c| c.kernel = KernelVersion::V6_1);
        let mut measurement = twin::run(&scenario).measurement;
        let found = |measurement: &record::Measurement| diagnose::explain(measurement).limit;
        for stream in &mut measurement.streams {
            stream.receiver.iter_mut().for_each(|sample| sample.window_bytes = None);
        }
        assert_eq!(found(&measurement), Some(truth), "Linux 6.1");
        for stream in &mut measurement.streams {
            stream.sender.iter_mut().for_each(|sample| sample.peer_window_bytes = None);
        }
        assert_eq!(found(&measurement), Some(truth), "Linux 5.3");
        for sample in measurement.streams.iter_mut().flat_map(|stream| &mut stream.sender) {
            (sample.busy_us, sample.rwnd_limited_us, sample.sndbuf_limited_us) = (0, 0, 0);
        }
        let blind = found(&measurement);
        let honest = [None, Some(Limit::Unknown), Some(truth)].contains(&blind);
        assert!(honest, "without timers, {truth:?} is called {blind:?}");
    }
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
