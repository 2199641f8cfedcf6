//! The trends of UDT.

use super::*;

/// UDT over the path of figure 6: the rate rises by 0.12 of the link each second, and falls once,
/// after two NAKs; with loss it has a hundredth.
pub(super) fn rising(test: &Test) -> FlowFigures {
    let link = test.spec.rate().unwrap().as_f64();
    if test.loss.is_some_and(|loss| loss.fraction() > 0.0) {
        return rate(link / 100.0);
    }
    let mut series_bps: Vec<f64> =
        (0..25).map(|second| link * (0.12 * f64::from(second)).min(0.95)).collect();
    series_bps[15] = link * 0.6;
    let mut nak_series = vec![0; 25];
    nak_series[14] = 2;
    FlowFigures { naks: Some(2), nak_series, series_bps, ..rate(link * 0.85) }
}

/// The verdict of a trend over the path of figure 6.
fn over_figure_6(trend: &str, flow: impl Fn(&Test) -> FlowFigures) -> Option<bool> {
    let study = BuiltIn::named("emulab").unwrap().study(true, Some(trend)).unwrap();
    let found = trends(&study, &made(&study, |_, test, _| flow(test)));
    found.into_iter().find(|one| one.name == trend).unwrap().holds
}

#[test]
fn a_rapid_rise_is_early_lasts_and_is_lost_with_packets() {
    let lossless = |test: &Test| test.loss.is_none_or(|loss| loss.fraction() == 0.0);
    assert_eq!(over_figure_6("udt-rapid", rising), Some(true));
    let late = |test: &Test| {
        let mut flow = rising(test);
        flow.series_bps = [vec![1e6; 13], flow.series_bps].concat();
        flow
    };
    assert_eq!(over_figure_6("udt-rapid", late), Some(false), "late");
    let falls = |test: &Test| {
        let mut flow = rising(test);
        flow.series_bps.iter_mut().skip(12).for_each(|second| *second /= 2.0);
        flow
    };
    assert_eq!(over_figure_6("udt-rapid", falls), Some(false), "it does not stay");
    let same = |test: &Test| if lossless(test) { rising(test) } else { rate(80e6) };
    assert_eq!(over_figure_6("udt-rapid", same), Some(false), "loss costs nothing");
}

#[test]
fn naks_of_a_delayed_path_count_with_the_drop_after_them() {
    assert_eq!(over_figure_6("udt-delay-naks", rising), Some(true));
    let none = |test: &Test| FlowFigures { naks: Some(0), nak_series: Vec::new(), ..rising(test) };
    assert_eq!(over_figure_6("udt-delay-naks", none), Some(false), "no NAK");
    let elsewhere = |test: &Test| {
        let mut flow = rising(test);
        flow.nak_series = vec![0, 0, 0, 2];
        flow
    };
    assert_eq!(over_figure_6("udt-delay-naks", elsewhere), Some(false), "no drop after it");
}

#[test]
fn a_share_is_given_and_comes_back() {
    let verdict = |shape: fn(&mut [f64])| {
        let name = "udt-share-back";
        let study = BuiltIn::named("emulab").unwrap().study(true, Some(name)).unwrap();
        let runs = made(&study, |_, test, flow| {
            let mut series_bps = shared(test, flow);
            if flow.name == "first" {
                shape(&mut series_bps);
            }
            FlowFigures { series_bps, ..rate(30e6) }
        });
        trends(&study, &runs).into_iter().find(|one| one.name == name).unwrap().holds
    };
    assert_eq!(verdict(|_| ()), Some(true));
    let stays_low = |first: &mut [f64]| first.iter_mut().skip(20).for_each(|rate| *rate = 30e6);
    assert_eq!(verdict(stays_low), Some(false));
    assert_eq!(verdict(|first| first.fill(90e6)), Some(false), "it gives nothing");
}

/// Each condition of UDT's trends by itself makes them fail.
#[test]
fn each_condition_of_the_trends_of_udt_counts() {
    let only = |trend: &str, flow: &dyn Fn(&Test, &Traffic) -> FlowFigures| {
        let study = BuiltIn::named("emulab").unwrap().study(true, Some(trend)).unwrap();
        let found = trends(&study, &made(&study, |_, test, traffic| flow(test, traffic)));
        found.into_iter().find(|one| one.name == trend).unwrap().holds
    };
    let acks = |slow: f64, fast: f64, light: f64| {
        only("udt-acks", &|test, _| FlowFigures {
            acks_per_packet: Some(if test.path.contains("100kbit") { slow } else { fast }),
            light_acks_per_packet: Some(light),
            ..FlowFigures::default()
        })
    };
    assert_eq!(acks(1.0, 0.001, 1.0 / 64.0), Some(true));
    for wrong in
        [acks(0.6, 0.001, 1.0 / 64.0), acks(1.0, 0.003, 1.0 / 64.0), acks(1.0, 0.001, 0.02)]
    {
        assert_eq!(wrong, Some(false));
    }
    let increase = |count, by_alpha, grown| {
        only("udt-increase", &|_, _| FlowFigures {
            increases: Some(count),
            increases_by_alpha: Some(by_alpha),
            growth_over_alpha: Some(grown),
            ..FlowFigures::default()
        })
    };
    assert_eq!(increase(100, 95, 0.9), Some(true));
    for wrong in [increase(100, 80, 0.9), increase(100, 95, 1.3), increase(100, 95, 0.3)] {
        assert_eq!(wrong, Some(false));
    }
    assert_eq!(increase(1, 1, 0.9), Some(false), "too few");
    assert_eq!(only("udt-increase", &|_, _| FlowFigures::default()), None);
    let file = |limit, mean: f64, series: [f64; 4], tcp: f64| {
        only("slow-disk", &|_, flow| match (flow.protocol, flow.disk_limit()) {
            (record::Protocol::Udt, Some(_)) => FlowFigures {
                limit: Some(limit),
                disk_bps: Some(20e6),
                series_bps: series.repeat(4),
                ..rate(mean)
            },
            (record::Protocol::Udt, None) => rate(95e6),
            (_, Some(_)) => rate(tcp),
            (_, None) => rate(8e6),
        })
    };
    let bursts = [0.0, 0.0, 75e6, 0.0];
    assert_eq!(file(Limit::Application, 20e6, bursts, 8e6), Some(true));
    for wrong in [
        file(Limit::Loss, 20e6, bursts, 8e6),
        file(Limit::Application, 12e6, bursts, 8e6),
        file(Limit::Application, 20e6, [20e6; 4], 8e6),
        file(Limit::Application, 20e6, [10e6, 10e6, 70e6, 10e6], 8e6),
        file(Limit::Application, 20e6, bursts, 4e6),
    ] {
        assert_eq!(wrong, Some(false));
    }
}
