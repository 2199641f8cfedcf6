//! The figures that users brought, and what is refused.

use super::*;

fn asked(law: Law, rtt: &str, loss: Option<&str>, link: Option<&str>) -> LossQuestion {
    LossQuestion {
        law,
        rtt: rtt.parse().unwrap(),
        loss: loss.map(|text| text.parse().unwrap()),
        link: link.map(|text| text.parse().unwrap()),
        target: None,
        mss: ByteCount::from_bytes(1448),
        window: None,
        rto: None,
        packets_per_ack: 1,
    }
}

fn rate(result: &CalcResult, key: &str) -> f64 {
    let Some(Value::Rate(rate)) = result.figure(key) else { panic!("{key}") };
    rate.as_f64() / 1e6
}

#[test]
fn one_percent_at_100_ms() {
    let mathis = loss(&asked(Law::Mathis, "100ms", Some("1%"), None)).unwrap();
    assert!((rate(&mathis, "rate_bps") - 1.42).abs() < 5e-3);
    // The source says at most 3 Mbit/s for CUBIC.
    let cubic = loss(&asked(Law::Cubic, "100ms", Some("1%"), Some("10gbit"))).unwrap();
    assert!((rate(&cubic, "rate_bps") - 1.42).abs() < 5e-3);
    assert!(rate(&cubic, "cubic_region_bps") < rate(&cubic, "reno_friendly_bps"));
    let bbr = loss(&asked(Law::Bbr, "100ms", Some("1%"), Some("10gbit"))).unwrap();
    assert!(rate(&bbr, "rate_bps") > 9_000.0);
}

#[test]
fn the_maximum_loss_for_ten_gigabit_at_100_ms_is_below_3e_8() {
    let mut question = asked(Law::Cubic, "100ms", None, Some("10gbit"));
    question.mss = ByteCount::from_bytes(1500);
    let result = loss(&question).unwrap();
    let Some(Value::Loss(budget)) = result.figure("loss_budget") else { panic!() };
    assert!((2.9e-8..3e-8).contains(&budget.fraction()), "{budget}");
    // The curve begins a decade or more below it.
    assert!(result.curve.unwrap().series[0].points[0].0 < 1e-8);
}

#[test]
fn a_budget_below_the_resolution_is_noted() {
    let result = loss(&asked(Law::Mathis, "1s", None, Some("100tbit"))).unwrap();
    assert!(result.answers[0].equation.contains("below 10^-12"), "{:?}", result.answers[0]);
}

#[test]
fn bbr_beyond_its_model_has_no_figure() {
    let result = loss(&asked(Law::Bbr, "100ms", Some("25%"), Some("1gbit"))).unwrap();
    assert_eq!(result.figure("rate_bps"), None);
    assert!(result.answers[0].equation.contains("20 %"), "{}", result.answers[0].equation);
    let clean = loss(&asked(Law::Bbr, "100ms", Some("0%"), Some("1gbit"))).unwrap();
    assert!((rate(&clean, "rate_bps") - 1000.0).abs() < 1e-9);
    assert_eq!(
        result.figure("inflight_bytes"),
        Some(&Value::Size(ByteCount::from_bytes(25_000_000)))
    );
}

#[test]
fn link_and_window_bound_every_law() {
    for law in Law::ALL {
        let mut question = asked(law, "10ms", Some("0.0001%"), Some("10mbit"));
        let result = loss(&question).unwrap();
        assert!(rate(&result, "rate_bps") <= 10.0, "{law:?}");
        question.window = Some(ByteCount::from_bytes(1448 * 4));
        let result = loss(&question).unwrap();
        assert!(rate(&result, "rate_bps") <= 1448.0 * 4.0 * 8.0 / 0.01 / 1e6 + 1e-6, "{law:?}");
        assert_eq!(result.figure("loss_budget"), None, "the window is too small for 10 Mbit/s");
    }
}

#[test]
fn values_out_of_range_are_rejected() {
    let good = asked(Law::Mathis, "100ms", Some("1%"), None);
    for (question, says) in [
        (LossQuestion { rtt: Rtt::ZERO, ..good }, "round trip"),
        (LossQuestion { loss: None, ..good }, "‹loss›"),
        (LossQuestion { loss: Some(LossRatio::NONE), ..good }, "above zero"),
        (LossQuestion { law: Law::Bbr, ..good }, "‹rate›"),
        (LossQuestion { mss: ByteCount::ZERO, ..good }, "‹mss›"),
        (LossQuestion { mss: ByteCount::from_bytes(70_000), ..good }, "65495"),
        (LossQuestion { window: Some(ByteCount::ZERO), ..good }, "window of zero"),
        (LossQuestion { rto: Some(Rtt::ZERO), ..good }, "‹rto›"),
        (
            LossQuestion {
                link: Some(BitRate::from_bps(1)),
                target: Some(BitRate::from_bps(2)),
                ..good
            },
            "exceeds the link",
        ),
    ] {
        let error = loss(&question).unwrap_err().to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn the_given_loss_is_one_marked_row() {
    for (p, rows) in [("1%", 8), ("0.3%", 9)] {
        let result = loss(&asked(Law::Pftk, "100ms", Some(p), Some("1gbit"))).unwrap();
        assert_eq!(result.tables[0].rows.len(), rows);
        assert_eq!(result.tables[0].rows.iter().filter(|row| row.marked).count(), 1);
        assert_eq!(result.tables[0].columns.len(), 5);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_question_returns(law in 0usize..4, rtt: u64, p in 0.0..1.0_f64, link: Option<u64>,
                                mss in 0u64..70_000, window: Option<u64>, acks: u32) {
        let _ = loss(&LossQuestion {
            law: Law::ALL[law], rtt: Rtt::from_nanos(rtt), loss: loss_from_fraction(p),
            link: link.map(BitRate::from_bps), target: None, mss: ByteCount::from_bytes(mss),
            window: window.map(ByteCount::from_bytes), rto: None, packets_per_ack: acks,
        });
    }
}
