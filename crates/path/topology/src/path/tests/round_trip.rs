//! Any text is answered, and what a path prints reads as that path.

use super::*;
use proptest::prelude::*;

/// One setting that is right by itself, under a prefix.
fn setting() -> impl Strategy<Value = String> {
    let time = prop_oneof![
        (1u64..5_000).prop_map(|n| format!("{n}ms")),
        (1u64..3_000_000_000).prop_map(|n| format!("{n}ns")),
        (1u64..60).prop_map(|n| format!("{n}.5s")),
    ];
    let share = (0u64..100_000).prop_map(|n| format!("{}.{:03}%", n / 1000, n % 1000));
    let size = prop_oneof![
        (1u64..5000).prop_map(|n| format!("{n}p")),
        (2u64..5000).prop_map(|n| format!("{n}KB")),
        (1u64..90).prop_map(|n| format!("{n}.25bdp")),
        (100u64..900).prop_map(|n| format!("{n}ms")),
    ];
    prop_oneof![
        (1u64..9_000).prop_map(|n| format!("rate={n}mbit")),
        Just("rate=unlimited".to_owned()),
        time.clone().prop_map(|t| format!("delay={t}")),
        (0..4usize, time.clone()).prop_map(|(kind, t)| {
            let kind = ["", "uniform:", "exponential:", "pareto:"][kind];
            format!("jitter={kind}{t}")
        }),
        share.clone().prop_map(|s| format!("loss={s}")),
        (share.clone(), 1u32..100).prop_map(|(p, r)| format!("loss=ge:{p}:{r}%")),
        (1u64..99, 100u64..999).prop_map(|(a, b)| format!("loss=list:{a}+{a}-{b}")),
        (1u32..99, time.clone()).prop_map(|(n, t)| format!("bursts={n}p@{t}")),
        time.clone().prop_map(|t| format!("blackhole={t}@100s")),
        (share.clone(), time).prop_map(|(s, t)| format!("reorder={s}:{t}")),
        share.clone().prop_map(|s| format!("duplicate={s}")),
        share.prop_map(|s| format!("corrupt={s}")),
        (0u8..15).prop_map(|n| format!("window-scale={n}")),
        (2u64..99).prop_map(|n| format!("police={n}mbit:64KiB")),
        (2u64..99).prop_map(|n| format!("udp.police={n}mbit:64KiB")),
        any::<bool>().prop_map(|b| format!("tcp.blackhole={}", if b { "yes" } else { "no" })),
        size.prop_map(|s| format!("queue={s}")),
        prop::sample::select(discipline::names()).prop_map(|name| format!("queue={name}")),
        (1u32..1000).prop_map(|n| format!("mark={n}p")),
    ]
}

fn prefixed() -> impl Strategy<Value = String> {
    let at =
        prop_oneof![3 => Just(String::new()), 1 => (1u64..90).prop_map(|s| format!("@{s}.5s."))];
    let direction = prop_oneof![Just(""), Just("up."), Just("down.")];
    (at, direction, setting())
        .prop_map(|(at, direction, setting)| format!("{at}{direction}{setting}"))
}

fn any_path() -> impl Strategy<Value = String> {
    let settings = proptest::collection::vec(prefixed(), 0..6);
    (1u64..1_000_000_000, settings, 0u8..3).prop_map(|(ns, settings, base)| {
        let base = ["rate=77mbit", "geo", "leo"][usize::from(base)];
        format!("{base},rtt={ns}ns,{}", settings.join(","))
    })
}

#[test]
fn most_of_these_paths_are_good() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let good = (0..1000)
        .filter(|_| any_path().new_tree(&mut runner).unwrap().current().parse::<PathSpec>().is_ok())
        .count();
    assert!(good > 500, "{good} of 1000");
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".*") {
        let _ = text.parse::<PathSpec>();
    }

    #[test]
    fn any_settings_are_answered(text in "([@.a-z0-9]{1,8}=[a-z0-9:.%+-]{0,12},){0,4}") {
        let _ = text.parse::<PathSpec>();
    }

    #[test]
    fn any_toml_is_answered(text in "([a-z.@\\[\\]\"]{1,8} = [\"a-z0-9]{0,9}\n){0,4}") {
        let _ = UserPaths::parse("f.toml", &text);
    }

    #[test]
    fn any_values_are_answered(
        rate in ".{0,12}",
        queue in "[0-9.]{0,9}[a-zA-Z]{0,5}",
        mtu in proptest::num::u32::ANY,
    ) {
        if let Ok(spec) = format!("rate={rate},rtt=3600s,queue={queue},mtu={mtu}").parse::<PathSpec>() {
            let _ = (spec.memory(), spec.schedules(0), spec.to_string());
        }
    }

    #[test]
    fn extreme_paths_are_answered(
        rate in 1u64..=100_000_000_000_000,
        ns in 0u64..=3_600_000_000_000,
        queue in prop_oneof![
            prop::sample::select(vec!["1000bdp", "100000000p", "16383PiB", "3600s"]),
            prop::sample::select(discipline::names()),
        ],
    ) {
        let text = format!("rate={rate}bit,rtt={ns}ns,queue={queue},jitter=pareto:3600s,@3600s.delay=3600s");
        if let Ok(spec) = text.parse::<PathSpec>() {
            let _ = (spec.memory(), spec.schedules(0), spec.to_string());
        }
    }

    #[test]
    fn what_is_printed_reads_as_the_same(text in any_path(), seed in any::<u64>()) {
        if let Ok(spec) = text.parse::<PathSpec>() {
            let again: PathSpec = spec.to_spec().parse().unwrap();
            prop_assert_eq!(&again, &spec);
            prop_assert_eq!(again.to_spec(), spec.to_spec());
            let (first, second) = (spec.schedules(seed), again.schedules(seed));
            prop_assert_eq!(first, second);
            prop_assert!(!spec.to_string().contains('\n'));
        }
    }

    #[test]
    fn a_change_is_as_if_written_last(text in any_path(), direction in 0u8..3, percent in 1u8..99) {
        let direction = ["", "up.", "down."][usize::from(direction)];
        if let Ok(spec) = text.parse::<PathSpec>() {
            let changed = spec.with(&format!("{direction}loss={percent}%"), &mut files::no_files).unwrap();
            let wanted = format!("{percent}%").parse().unwrap();
            for (at, [up, down]) in changed.states() {
                prop_assert!(direction == "down." || up.mean_loss() == wanted, "{at:?}");
                prop_assert!(direction == "up." || down.mean_loss() == wanted, "{at:?}");
            }
        }
    }
}
