//! What holds for every path.

use super::*;
use model::Congestion;
use proptest::prelude::*;
use units::{BitRate, ByteCount, Rtt};

/// A path, its hosts, and what was asked for.
#[derive(Debug, Clone)]
struct Drawn {
    kbit: u64,
    us: u64,
    loss: f64,
    request: PlanRequest,
}

impl Drawn {
    fn link(&self) -> &PlannedLink {
        let PlanSource::Link(link) = &self.request.source else { panic!("it is a link") };
        link
    }

    /// The smaller window of a connection: Linux's default buffer where none is given.
    fn window(&self) -> ByteCount {
        let default = ByteCount::from_f64(4.0 * 1_048_576.0 * model::AUTOTUNED_SEND_SHARE);
        self.link().window.unwrap_or(default)
    }
}

prop_compose! {
    fn hosts()(
        window in prop::option::of(12u32..34), program in prop::option::weighted(0.2, 12u32..24),
        which in 0usize..3, streams in 1u32..24, reverse: bool,
    ) -> PlannedLink {
        let bytes = |shift: u32| ByteCount::from_bytes(1 << shift);
        PlannedLink {
            reverse, streams, window: window.map(bytes), program_window: program.map(bytes),
            congestion: Congestion::ALL[which], ..PlannedLink::new("")
        }
    }
}

prop_compose! {
    fn settings()(
        compressible in prop::option::of(1.0..10.0_f64), edge in prop::option::of(100u64..400_000),
        lan_us in 50u64..5_000, lan_mbit in prop::option::weighted(0.3, 10u64..100_000),
    ) -> PlanSettings {
        PlanSettings {
            compressible, edge_rtt: edge.map(Rtt::from_micros), lan_rtt: Rtt::from_micros(lan_us),
            lan_rate: lan_mbit.map(|mbit| BitRate::from_bps(mbit * 1_000_000)),
            ..PlanSettings::default()
        }
    }
}

prop_compose! {
    fn drawn()(
        rate in 10.0..27.5_f64, rtt in 7.0..19.0_f64, has_loss: bool, loss in -16.0..-0.02_f64,
        link in hosts(), settings in settings(),
    ) -> Drawn {
        let (kbit, us) = (rate.exp2() as u64, rtt.exp2() as u64);
        let loss = if has_loss { loss.exp2() } else { 0.0 };
        let path = format!("rate={kbit}kbit,rtt={us}us,loss={:.5}%", loss * 100.0);
        let source = PlanSource::Link(PlannedLink { path, ..link });
        Drawn { kbit, us, loss, request: PlanRequest { settings, ..PlanRequest::new(source) } }
    }
}

fn expected(option: &BoostOption) -> f64 {
    option.goodput_bps.map_or(0.0, |rate| rate.expected.as_f64())
}

/// Neither the path, nor TCP's windows, nor the hosts' cores are exceeded.
fn assert_limits(drawn: &Drawn, option: &BoostOption) {
    let goodput = expected(option);
    let connections = match option.kind {
        BoostKind::Streams => f64::from(drawn.link().streams.max(16)),
        _ => f64::from(drawn.link().streams),
    };
    if !matches!(option.kind, BoostKind::CompressedPair | BoostKind::Edge) {
        let link = drawn.kbit as f64 * 1e3 * (1.0 - drawn.loss);
        assert!(goodput <= link, "{drawn:?} {option:?}");
        let windows = connections * f64::from(1u32 << 30) * 8.0 / (drawn.us as f64 / 1e6);
        assert!(goodput <= windows, "{drawn:?} {option:?}");
    }
    assert!(goodput <= 40e9, "{drawn:?} {option:?}");
}

/// A reason is true of the path and of the row.
fn assert_reason(drawn: &Drawn, now: &BoostOption, option: &BoostOption) {
    let Some(reason) = option.reason else { return };
    let link = drawn.link();
    let path = drawn.kbit as f64 * 1e3 * (1.0 - drawn.loss);
    let round = drawn.us as f64 / 1e6;
    let streams = f64::from(link.streams);
    let windows = drawn.window().as_f64() * 8.0 / round * streams;
    let is_true = match reason {
        BoostReason::AsItIs => option.kind == BoostKind::Nothing,
        // The payload's share of the path is above 0.9.
        BoostReason::AlreadyBbr => {
            link.congestion == Congestion::Bbr && windows >= 0.9 * path * (1.0 - drawn.loss)
        }
        BoostReason::WindowRemains => {
            option.kind == BoostKind::Route && expected(option) >= 0.8 * windows.min(path)
        }
        BoostReason::LineFull => {
            option.kind == BoostKind::Edge || expected(now).max(expected(option)) >= 0.8 * path
        }
        BoostReason::Loss => drawn.loss > 0.0 && expected(option) < path,
        BoostReason::ProgramWindow => link.program_window.is_some(),
        BoostReason::Lan => link.window.is_some() || drawn.request.settings.lan_rate.is_some(),
        BoostReason::BoxCpu => {
            matches!(option.kind, BoostKind::Pair | BoostKind::CompressedPair)
        }
        BoostReason::HostCpu => {
            !matches!(option.kind, BoostKind::Pair | BoostKind::CompressedPair)
                && expected(option) >= 1e9
        }
        BoostReason::LargestWindow => expected(option) >= f64::from(1u32 << 30) * 8.0 / round * 0.8,
        BoostReason::Parallel => link.streams >= 16,
        BoostReason::Farther => {
            let edge = drawn.request.settings.edge_rtt.unwrap();
            edge.secs_f64() >= 0.95 * round
        }
        BoostReason::NoModel => drawn.loss > 0.19 && option.factor.is_none(),
        _ => false,
    };
    assert!(is_true, "{drawn:?} {option:?}");
}

fn assert_commands(drawn: &Drawn, option: &BoostOption) {
    for command in &option.commands {
        let mib = command.split_once("--buffer ").map(|(_, size)| {
            let digits: String = size.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        });
        assert!(mib.is_none_or(|mib| (1..=1024).contains(&mib)), "{command}");
        if option.kind == BoostKind::Copy {
            assert_eq!(command == "longhaul copy HOST:FILE .", drawn.link().reverse, "{command}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_row_contradicts_its_path(drawn in drawn()) {
        let transfer = plan(&drawn.request).transfers.remove(0);
        assert_reasons(&transfer, &format!("{drawn:?}"));
        let now = of_kind(&transfer, BoostKind::Nothing);
        for option in &transfer.options {
            assert_limits(&drawn, option);
            assert_reason(&drawn, now, option);
            assert_commands(&drawn, option);
            // No equation is valid.
            prop_assert!(drawn.loss <= 0.3 || option.factor.is_none(), "{drawn:?} {option:?}");
        }
        let best = transfer.recommended.map(|kind| of_kind(&transfer, kind));
        prop_assert!(best.is_none_or(|best| {
            best.reason.is_none() && best.needed_send_buffer.is_none() && !best.commands.is_empty()
        }), "{transfer:?}");
    }
}

#[test]
fn where_loss_is_the_limit_a_window_is_not() {
    let lossy = of_link("rate=100mbit,rtt=100ms,loss=1%", |link| {
        link.window = Some("64KiB".parse().unwrap());
    });
    let route = of_kind(&lossy, BoostKind::Route);
    let rate = route.goodput_bps.unwrap();
    // In the lab 4.28 Mbit/s, 2.3 times CUBIC.
    assert!((rate.low.as_f64()..rate.high.as_f64()).contains(&4.28e6), "{route:?}");
    assert!(route.reason.is_none() && route.factor.unwrap().expected > 2.0, "{route:?}");
}

#[test]
fn bbr_behind_the_default_send_buffer_is_told_the_buffer() {
    let lossy = of_link("rate=1gbit,rtt=100ms,loss=0.1%", |_| ());
    let route = of_kind(&lossy, BoostKind::Route);
    let rate = route.goodput_bps.unwrap();
    // In the lab 146 Mbit/s.
    assert!((rate.low.as_f64()..rate.high.as_f64()).contains(&146e6), "{route:?}");
    let needed = route.needed_send_buffer.unwrap();
    assert!((13..=16).contains(&(needed.bytes() >> 20)), "{needed}");
    assert!(lossy.path.send_buffer.unwrap().is_assumed);
    assert_ne!(lossy.recommended, Some(BoostKind::Route));
    let large = of_link("rate=1gbit,rtt=100ms,loss=0.1%", |link| {
        link.window = Some("64MiB".parse().unwrap());
    });
    assert_eq!((large.path.send_buffer, large.recommended), (None, Some(BoostKind::Route)));
}

#[test]
fn the_limits_of_hosts_are_in_every_row() {
    let fast = of_link("rate=100gbit,rtt=1ms,loss=0.1%", |link| {
        link.window = Some("1GiB".parse().unwrap());
    });
    for option in &fast.options {
        assert!(expected(option) <= 40e9, "{option:?}");
    }
    let long = of_link("rate=100gbit,rtt=2s", |link| link.window = Some("8GiB".parse().unwrap()));
    let now = expected(of_kind(&long, BoostKind::Nothing));
    assert!((now / 4.29e9 - 1.0).abs() < 0.01, "{now}");
}

#[test]
fn nine_connections_become_sixteen() {
    let nine = of_link("rate=100mbit,rtt=173ms", |link| {
        link.window = Some("64KiB".parse().unwrap());
        link.streams = 9;
    });
    let streams = of_kind(&nine, BoostKind::Streams);
    assert!((streams.factor.unwrap().expected - 16.0 / 9.0).abs() < 1e-6, "{streams:?}");
    assert!(streams.commands[0].contains("--transfers 16 "), "{streams:?}");
}
