use super::*;
use crate::{IpVersion, Payload};

const MSS: ByteCount = ByteCount::from_bytes(1448);

fn path(rate: &str, rtt: &str, loss: &str) -> LongPath {
    let payload = Payload::on_ethernet(1500, IpVersion::Ipv4);
    LongPath {
        rate: Estimate::exact(payload.goodput(rate.parse().unwrap()).unwrap()),
        rtt: Estimate::exact(rtt.parse().unwrap()),
        loss: Estimate::exact(loss.parse().unwrap()),
        mss: MSS,
    }
}

fn hosts(congestion: Congestion, window: Option<u64>) -> Connections {
    let window = window.map(ByteCount::from_bytes);
    Connections { congestion, window, program_window: None, count: 1 }
}

fn boxes(congestion: Congestion) -> Boxes {
    let lan_rtt = Rtt::from_micros(200);
    Boxes { congestion, window: None, lan_rtt, lan_rate: None, reduction: 1.0 }
}

/// Split over direct, and the split goodput in Mbit/s.
fn gain(path: &LongPath, of: &Connections, boxes: &Boxes) -> (f64, f64) {
    let (direct, split) = (direct(path, of).unwrap(), split(path, of, boxes).unwrap());
    let mbit = split.rate.expected.as_f64() / 1e6;
    (split.rate.expected.as_f64() / direct.rate.expected.as_f64(), mbit)
}

#[test]
fn a_window_of_64_kib_gains_what_the_long_leg_has() {
    // 64 KiB / 173 ms = 3.03 Mbit/s, and 94.1 x 0.99.
    let small = hosts(Congestion::Cubic, Some(1 << 16));
    let (factor, mbit) = gain(&path("100mbit", "173ms", "0"), &small, &boxes(Congestion::Cubic));
    assert!((30.5..31.5).contains(&factor) && mbit >= 92.0, "{factor} {mbit}");
    // 64 KiB / 100 ms = 5.24 Mbit/s, and 941 x 0.99.
    let (factor, mbit) = gain(&path("1gbit", "100ms", "0"), &small, &boxes(Congestion::Cubic));
    assert!((176.0..180.0).contains(&factor) && mbit >= 900.0, "{factor} {mbit}");
}

#[test]
fn bbr_with_buffers_gains_nothing() {
    for loss in ["0", "0.1%", "1%"] {
        let path = path("1gbit", "100ms", loss);
        let of = hosts(Congestion::Bbr, None);
        let (factor, _) = gain(&path, &of, &boxes(Congestion::Bbr));
        assert!((PAIR_PAYLOAD - 1e-6..1.0).contains(&factor), "{loss}: {factor}");
        assert!(holds_path(&path, &of));
    }
}

#[test]
fn under_loss_the_gain_is_the_congestion_controls() {
    // CUBIC at 100 ms: 43 segments an RTT at 0.1 %, 12.6 at 1 %.
    for (loss, mbit) in [("0.1%", 5.05), ("1%", 1.47)] {
        let path = path("1gbit", "100ms", loss);
        let of = hosts(Congestion::Cubic, None);
        let now = direct(&path, &of).unwrap();
        assert!((now.rate.expected.as_f64() / 1e6 - mbit).abs() < 0.1, "{now:?}");
        assert_eq!(now.bound, Bound::Congestion);
        let (same, _) = gain(&path, &of, &boxes(Congestion::Cubic));
        assert!((same - PAIR_PAYLOAD).abs() < 1e-6, "{same}");
        assert!(gain(&path, &of, &boxes(Congestion::Bbr)).0 > 140.0);
    }
}

#[test]
fn the_near_leg_needs_a_short_rtt() {
    // 64 KiB fill 1 Gbit/s over at most 0.52 ms.
    let small = hosts(Congestion::Cubic, Some(1 << 16));
    let far = Boxes { lan_rtt: Rtt::from_micros(5_200), ..boxes(Congestion::Cubic) };
    let split = split(&path("1gbit", "100ms", "0"), &small, &far).unwrap();
    assert_eq!(split.bound, Bound::Lan);
    assert!((split.rate.expected.as_f64() / 1e6 - 100.8).abs() < 0.1, "{split:?}");
}

#[test]
fn a_programs_own_window_spans_the_whole_path() {
    // SFTP: 64 requests of 32 KiB over 173 ms are 97 Mbit/s, split or not.
    let sftp = Connections {
        program_window: Some(ByteCount::from_bytes(64 * (32 << 10))),
        ..hosts(Congestion::Cubic, None)
    };
    let path = path("1gbit", "173ms", "0");
    let now = direct(&path, &sftp).unwrap();
    assert_eq!(now.bound, Bound::ProgramWindow);
    assert!((now.rate.expected.as_f64() / 1e6 - 97.0).abs() < 0.1, "{now:?}");
    let (factor, _) = gain(&path, &sftp, &boxes(Congestion::Bbr));
    assert!((0.98..1.0).contains(&factor), "{factor}");
    assert!(!holds_path(&path, &sftp));
}

/// Delivery in order over a link at which losses are repaired after one RTT: the time of every
/// packet, with a window that opens as the packet of a window before is delivered.
fn delivered_in_order(window: u64, rate_bps: f64, rtt_s: f64, loss: f64) -> f64 {
    const PACKETS: usize = 400_000;
    let packets = usize::try_from(window / MSS.bytes()).unwrap();
    let serialization = 1500.0 * 8.0 / rate_bps;
    let (mut free, mut delivered, mut state) = (0.0_f64, 0.0_f64, 1_u64);
    let mut times: Vec<f64> = Vec::with_capacity(PACKETS);
    for index in 0..PACKETS {
        let allowed = index.checked_sub(packets).map_or(0.0, |at| times[at] + rtt_s / 2.0);
        let sent = free.max(allowed);
        free = sent + serialization;
        let mut arrival = free + rtt_s / 2.0;
        loop {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if (state >> 11) as f64 / (1_u64 << 53) as f64 >= loss {
                break;
            }
            arrival += rtt_s;
        }
        delivered = delivered.max(arrival);
        times.push(delivered);
    }
    PACKETS as f64 * MSS.as_f64() * 8.0 / delivered
}

#[test]
fn a_programs_window_waits_for_repairs() {
    for (window, loss) in
        [(1 << 20, "0"), (1 << 20, "0.1%"), (1 << 20, "1%"), (2 << 20, "0.1%"), (2 << 20, "0.3%")]
    {
        let path = path("100mbit", "173ms", loss);
        let program = Connections {
            program_window: Some(ByteCount::from_bytes(window)),
            ..hosts(Congestion::Bbr, None)
        };
        let predicted = direct(&path, &program).unwrap();
        let share = path.loss.expected.fraction();
        let stepped = delivered_in_order(window, 100e6, 0.173, share);
        let ratio = stepped / predicted.rate.expected.as_f64();
        assert_eq!(predicted.bound, Bound::ProgramWindow);
        assert!((0.9..1.02).contains(&ratio), "{window} at {loss}: {ratio}");
    }
}

#[test]
fn compression_exceeds_the_path_up_to_the_local_network() {
    let path = path("100mbit", "173ms", "0");
    let of = hosts(Congestion::Cubic, Some(1 << 16));
    let three = Boxes { reduction: 3.0, ..boxes(Congestion::Cubic) };
    let (_, mbit) = gain(&path, &of, &three);
    assert!((mbit - 94.15 * 3.0 * PAIR_PAYLOAD).abs() < 0.5, "{mbit}");
    let slow = Boxes { lan_rate: Some("200mbit".parse().unwrap()), ..three };
    let capped = split(&path, &of, &slow).unwrap();
    assert_eq!((capped.bound, capped.rate.expected.bps()), (Bound::Lan, 200_000_000));
    let no_number = Boxes { reduction: f64::NAN, ..three };
    assert!(gain(&path, &of, &no_number).1 < 94.15);
}

#[test]
fn a_copy_over_udt_bears_loss() {
    let copied = udp_copy(&path("100mbit", "173ms", "1%")).unwrap().rate;
    assert!(copied.expected.as_f64() > 85e6 && copied.low < copied.expected, "{copied:?}");
    assert_eq!(udp_copy(&path("100mbit", "173ms", "21%")), None);
    assert_eq!(udp_copy(&path("10gbit", "20ms", "0")).unwrap().bound, Bound::Cpu);
}

#[test]
fn an_object_of_1_mb_takes_18_round_trips() {
    let of = hosts(Congestion::Cubic, Some(1 << 16));
    let size = ByteCount::from_bytes(1_000_000);
    let far = object_time(&path("100mbit", "173ms", "0"), &of, size).unwrap();
    assert!((2.9..3.4).contains(&far.expected), "{far:?}");
    let edge = object_time(&path("100mbit", "4ms", "0"), &of, size).unwrap();
    assert!(far.expected / edge.expected > 25.0, "{edge:?}");
    assert_eq!(object_time(&path("100mbit", "4ms", "0"), &of, ByteCount::ZERO), None);
}

#[test]
fn measured_loss_has_an_interval() {
    let few = loss_estimate(1, 1_000).unwrap();
    assert!(few.low.fraction() < 1e-4 && few.high.fraction() > 5e-3, "{few:?}");
    let many = loss_estimate(10_000, 10_000_000).unwrap();
    assert!(many.high.fraction() / many.low.fraction() < 1.05);
    assert_eq!(loss_estimate(0, 0), None);
    assert_eq!(loss_estimate(2, 1).unwrap().expected.fraction().round(), 1.0);
}

#[test]
fn uncertain_inputs_widen_the_interval() {
    let sure = path("100mbit", "173ms", "0.1%");
    let vague = LongPath {
        rtt: Estimate {
            low: Rtt::from_micros(150_000),
            high: Rtt::from_micros(250_000),
            ..sure.rtt
        },
        loss: loss_estimate(10, 10_000).unwrap(),
        ..sure
    };
    let of = hosts(Congestion::Cubic, None);
    let [sure, vague] = [&sure, &vague].map(|path| direct(path, &of).unwrap().rate);
    assert_eq!(sure.expected, vague.expected);
    assert!(vague.low < sure.low && vague.high > sure.high, "{sure:?} {vague:?}");
}

#[test]
fn hosts_have_limits_of_their_own() {
    let of = hosts(Congestion::Cubic, None);
    // 1 GiB over 2 s.
    let long = direct(&path("100gbit", "2s", "0"), &of).unwrap();
    assert_eq!(long.bound, Bound::LargestWindow);
    assert!((long.rate.expected.as_f64() / 1e9 - 4.29).abs() < 0.01, "{long:?}");
    assert_eq!(direct(&path("100gbit", "1ms", "0"), &of).unwrap().bound, Bound::Cpu);
    for (count, bound) in [(1, Bound::LargestWindow), (16, Bound::Cpu)] {
        let found = most(&path("100gbit", "1s", "0"), count).unwrap();
        assert_eq!(found.bound, bound, "{count}: {found:?}");
    }
    assert_eq!(most(&path("1gbit", "1ms", "0"), 1).unwrap().bound, Bound::Link);
    assert!(!holds_path(&path("100gbit", "1s", "0"), &of));
}

#[test]
fn above_30_percent_loss_there_is_no_equation() {
    for congestion in Congestion::ALL {
        let of = hosts(congestion, Some(1 << 16));
        let is_bbr = congestion == Congestion::Bbr;
        assert_eq!(direct(&path("100mbit", "50ms", "25%"), &of).is_some(), !is_bbr);
        let lossy = path("100mbit", "50ms", "31%");
        assert_eq!(direct(&lossy, &of), None);
        assert_eq!(object_time(&lossy, &of, ByteCount::from_bytes(1_000_000)), None);
    }
}

#[test]
fn an_object_under_loss_has_the_error_of_the_congestion_control() {
    let size = ByteCount::from_bytes(10_000_000);
    let spread = |loss: &str| {
        let time =
            object_time(&path("1gbit", "100ms", loss), &hosts(Congestion::Cubic, None), size);
        let time = time.unwrap();
        time.high / time.low
    };
    assert!(spread("1%") > 1.9 && spread("0") < 1.3, "{} {}", spread("1%"), spread("0"));
}

proptest::proptest! {
    #[test]
    fn predictions_hold_the_bounds(mbit in 1u64..10_000, us in 200u64..1_000_000,
                                   p in 0.0..0.15_f64, window in proptest::option::of(1u64 << 12..1 << 30),
                                   count in 1u32..20, which in 0usize..3, lanes in 0usize..3) {
        let path = LongPath {
            rate: Estimate::exact(BitRate::from_bps(mbit * 1_000_000)),
            rtt: Estimate::exact(Rtt::from_micros(us)),
            loss: Estimate::exact(loss_from_fraction(p).unwrap()),
            mss: MSS,
        };
        let of = Connections { count, ..hosts(Congestion::ALL[which], window) };
        let now = direct(&path, &of).unwrap();
        // Lanes that are the hosts' own, with their window.
        let same = Boxes { window: of.window, lan_rtt: Rtt::from_micros(100), ..boxes(of.congestion) };
        let other = boxes(Congestion::ALL[lanes]);
        for predicted in [Some(now), split(&path, &of, &same), split(&path, &of, &other), udp_copy(&path)] {
            let rate = predicted.unwrap().rate;
            proptest::prop_assert!(rate.low <= rate.expected && rate.expected <= rate.high);
            proptest::prop_assert!(rate.high <= path.rate.high, "{rate:?}");
        }
        let split = split(&path, &of, &same).unwrap();
        if split.bound != Bound::Cpu {
            let kept = split.rate.expected.as_f64() / now.rate.expected.as_f64();
            proptest::prop_assert!(kept >= PAIR_PAYLOAD - 1e-3, "{kept}");
        }
    }

    #[test]
    fn goodput_falls_with_rtt_and_loss(us in 1_000u64..500_000, longer in 1u64..500_000,
                                       p in 0.0..0.1_f64, more in 0.0..0.1_f64,
                                       window in proptest::option::of(1u64 << 14..1 << 28), which in 0usize..3) {
        let at = |us: u64, p: f64| {
            let path = LongPath {
                rate: Estimate::exact(BitRate::from_bps(1_000_000_000)),
                rtt: Estimate::exact(Rtt::from_micros(us)),
                loss: Estimate::exact(loss_from_fraction(p).unwrap()),
                mss: MSS,
            };
            let of = hosts(Congestion::ALL[which], window);
            [direct(&path, &of), split(&path, &of, &boxes(Congestion::Bbr))].map(|one| one.unwrap().rate.expected)
        };
        for ([here, far], lossy) in [(at(us, p), at(us + longer, p)), (at(us, p), at(us, p + more))]
            .map(|(near, worse)| ([near[0], worse[0]], [near[1], worse[1]])) {
            proptest::prop_assert!(here >= far, "{here} {far}");
            proptest::prop_assert!(lossy[0] >= lossy[1], "{lossy:?}");
        }
    }

    #[test]
    fn any_numbers_are_answered(bps: u64, nanos: u64, p in 0.0..1.0_f64, mss: u64, window: Option<u64>,
                                program: Option<u64>, count: u32, reduction: f64) {
        let path = LongPath {
            rate: Estimate::exact(BitRate::from_bps(bps)),
            rtt: Estimate::exact(Rtt::from_nanos(nanos)),
            loss: Estimate::exact(loss_from_fraction(p).unwrap()),
            mss: ByteCount::from_bytes(mss),
        };
        let program_window = program.map(ByteCount::from_bytes);
        let of = Connections { count, program_window, ..hosts(Congestion::Cubic, window) };
        let boxes = Boxes { reduction, ..boxes(Congestion::Bbr) };
        let _ = (direct(&path, &of), split(&path, &of, &boxes), udp_copy(&path));
        let _ = object_time(&path, &of, ByteCount::from_bytes(mss));
    }
}
