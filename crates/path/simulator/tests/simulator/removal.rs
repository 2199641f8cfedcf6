//! What helps, by removal: outcomes of one run, and figures over many.

use control::Algorithm;
use record::{Finding, Limit, Measurement, Remedy, RemedyCommand, RemedyPlace};
use simulator::Scenario;
use simulator::draws::Draws;
use simulator::removal::{Action, Advised, Arm, Figures, MENU, Outcome, Outcomes, Share, measure};
use units::{BitRate, ByteCount};

const BBR: Action = Action::Control(Algorithm::Bbr);

fn outcome(goodput: f64, neighbour: f64) -> Outcome {
    let mbit = |rate: f64| BitRate::from_bps_f64(rate * 1e6);
    Outcome { goodput: mbit(goodput), neighbour: mbit(neighbour) }
}

/// Outcomes of the whole menu, drawn; the run as it was has 10 Mbit/s.
fn drawn(draws: &mut Draws) -> Outcomes {
    let further = [Action::Buffers, Action::BuffersAndBbr];
    let others = MENU.into_iter().skip(1).chain(further);
    let others =
        others.map(|action| (action, outcome(draws.log(2.0, 100.0), draws.log(0.5, 50.0))));
    Outcomes::new(outcome(10.0, 20.0), others.collect())
}

#[test]
fn the_best_action_has_no_regret_and_nothing_has_no_harm() {
    for number in 0..500 {
        let outcomes = drawn(&mut Draws::new(5, number));
        let largest =
            MENU.into_iter().max_by(|a, b| outcomes.gain(*a).total_cmp(&outcomes.gain(*b)));
        let largest = largest.unwrap();
        assert!(outcomes.regret(largest) == 0.0 && outcomes.is_right(largest), "{outcomes:?}");
        assert!(outcomes.is_right(outcomes.best()), "{outcomes:?}");
        assert!(outcomes.harm(Action::Nothing) == 0.0 && !outcomes.is_slower(Action::Nothing));
        assert!((outcomes.gain(Action::Nothing) - 1.0).abs() < 1e-12);
        for action in MENU.into_iter().chain([Action::BuffersAndBbr]) {
            let (regret, harm) = (outcomes.regret(action), outcomes.harm(action));
            assert!((0.0..=1.0).contains(&regret) && (0.0..=1.0).contains(&harm));
            // The same rule said twice, but for rounding.
            assert!((regret - 0.1).abs() < 1e-9 || outcomes.is_right(action) == (regret < 0.1));
        }
    }
}

#[test]
fn where_no_action_gains_nothing_is_right() {
    let with = |bbr: f64, buffers: f64| {
        let others = vec![(BBR, outcome(bbr, 1.0)), (Action::Buffers, outcome(buffers, 1.0))];
        Outcomes::new(outcome(10.0, 10.0), others)
    };
    let none = with(10.5, 10.0);
    assert!(!none.has_gain() && none.is_right(Action::Nothing));
    assert_eq!(none.best(), Action::Nothing);
    // Both buffers count where no single change has a gain.
    let pair = with(10.5, 30.0);
    assert_eq!(pair.best(), Action::Buffers);
    assert!(!pair.is_right(BBR) && (pair.regret(BBR) - 0.65).abs() < 1e-9);
    let single = with(12.0, 30.0);
    assert_eq!(single.best(), BBR);
    assert!((single.regret(Action::Nothing) - 1.0 / 6.0).abs() < 1e-9);
}

fn finding(limit: Limit, remedies: &[(RemedyPlace, RemedyCommand)]) -> Finding {
    let remedies = remedies.iter().map(|(place, command)| Remedy {
        place: *place,
        command: command.clone(),
        setting: None,
        expects_bps: None,
        why: String::new(),
    });
    let remedies = remedies.collect();
    Finding { limit: Some(limit), remedies, ..diagnose::explain(&Measurement::default()) }
}

#[test]
fn the_first_remedy_is_the_action() {
    let of = |place, command| Action::advised(&finding(Limit::Loss, &[(place, command)]));
    let sysctl = || RemedyCommand::Sysctl { key: String::new(), value: String::new() };
    assert_eq!(of(RemedyPlace::Receiver, sysctl()), Action::ReceiveBuffer);
    assert_eq!(of(RemedyPlace::Sender, sysctl()), Action::SendBuffer);
    let call = |command| of(RemedyPlace::Call, command);
    assert_eq!(call(RemedyCommand::CongestionControl("bbr".to_owned())), BBR);
    assert_eq!(call(RemedyCommand::CongestionControl("unheard".to_owned())), Action::Nothing);
    assert_eq!(call(RemedyCommand::Streams(8)), Action::Flows);
    let rate = BitRate::from_bps(4_750_000);
    assert_eq!(call(RemedyCommand::RateLimitKbit(4_750)), Action::RateLimit(rate));
    let buffer = ByteCount::from_bytes(256 << 10);
    assert_eq!(call(RemedyCommand::SocketBufferKib(256)), Action::SocketBuffer(buffer));
    assert_eq!(call(RemedyCommand::Seconds(40)), Action::Nothing);
    // Without a remedy, the setting that is the limit.
    let bare = |limit| Action::advised(&finding(limit, &[]));
    assert_eq!(bare(Limit::SendBuffer), Action::SendBuffer);
    assert_eq!(bare(Limit::PathRate), Action::Nothing);
}

#[test]
fn several_flows_write_and_read_no_more() {
    let limited = Scenario {
        streams: 2,
        rate: Some(BitRate::from_bps(4_000_000)),
        ..Scenario::new("rate=100mbit,rtt=20ms", 2.0)
    };
    let flows = Action::Flows.applied(&limited).unwrap();
    assert_eq!((flows.streams, flows.rate), (8, Some(BitRate::from_bps(1_000_000))));
    let most = Action::Flows.applied(&Scenario { streams: 9, ..limited.clone() }).unwrap();
    assert_eq!((most.streams, most.rate), (9, limited.rate));
    // A policer below the bottleneck's rate is what pacing is for.
    let policed = Scenario::new("rate=100mbit,rtt=20ms,police=10mbit:30000", 2.0);
    let paced = Action::Pacing.applied(&policed).unwrap();
    assert_eq!(paced.pacing, Some(BitRate::from_bps(9_500_000)));
}

#[test]
fn a_window_of_64_kib_is_helped_by_the_buffer_and_not_by_bbr() {
    let window = Some(ByteCount::from_bytes(64 << 10));
    let scenario = Scenario {
        receive_window: window,
        ..Scenario::new("rate=100mbit,rtt=100ms,queue=1bdp", 5.0)
    };
    let outcomes = measure(&scenario, 1, &[Action::SendBuffer]).unwrap();
    assert!(outcomes.gain(Action::ReceiveBuffer) > 10.0, "{outcomes:?}");
    for action in [BBR, Action::SendBuffer, Action::Pacing] {
        assert!((outcomes.gain(action) - 1.0).abs() < 0.05, "{action:?} {outcomes:?}");
    }
    // Four windows of their own.
    assert!((outcomes.gain(Action::Flows) - 4.0).abs() < 0.2, "{outcomes:?}");
    assert_eq!(outcomes.best(), Action::ReceiveBuffer);
    // The neighbour had what the window left.
    assert!((0.2..0.9).contains(&outcomes.harm(Action::ReceiveBuffer)), "{outcomes:?}");
    assert_eq!(outcomes.of(Action::SendBuffer), outcomes.of(Action::Nothing));
}

fn advised(found: Limit, action: Action, bbr: f64) -> Advised {
    let outcomes = Outcomes::new(outcome(10.0, 10.0), vec![(BBR, outcome(bbr, 4.0))]);
    let cause_right = found == Limit::Loss;
    Advised { family: "loss", found, cause_right, action, action_for_rate: BBR, outcomes }
}

#[test]
fn figures_count_what_was_advised() {
    let runs = [
        advised(Limit::Loss, BBR, 40.0),
        advised(Limit::Policer, Action::Nothing, 40.0),
        advised(Limit::PathRate, Action::Nothing, 10.0),
        advised(Limit::Policer, BBR, 5.0),
    ];
    let figures = Figures::of(&runs);
    let share = |of, all| Share { of, all };
    assert_eq!(figures.all.cause_right, share(1, 4));
    let [finding, for_rate, nothing, _, best] = figures.all.arms;
    assert_eq!((finding.right, nothing.right, best.right), (share(2, 4), share(2, 4), share(4, 4)));
    assert_eq!((finding.right_with_gain, finding.honest_no), (share(1, 2), share(1, 2)));
    assert_eq!((finding.slower, nothing.slower), (share(1, 4), share(0, 4)));
    // 0.75 and 0.5 of the best are missed; BBR takes 0.6 of the neighbour's goodput.
    assert!((finding.regret - 0.3125).abs() < 1e-9 && (finding.harm - 0.3).abs() < 1e-9);
    assert_eq!(for_rate.right, share(3, 4));
    assert!(best.regret == 0.0 && nothing.harm == 0.0);
    assert_eq!(figures.found.first().map(|(limit, _)| *limit), Some(Limit::Policer));
    let listed: Vec<_> =
        figures.mistakes.iter().map(|it| (it.found, it.advised, it.best, it.runs.all)).collect();
    assert_eq!(
        listed,
        [(Limit::Policer, "bbr", "nothing", 1), (Limit::Policer, "nothing", "bbr", 1)]
    );
    let text = figures.to_string();
    for arm in Arm::ALL {
        assert!(text.contains(arm.name()), "{text}");
    }
    assert!(Figures::of(&[]).to_string().contains("cause right"));
}
