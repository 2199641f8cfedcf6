//! Windows against the figures that users brought.

use super::*;
use crate::MAX_WINDOW;
use crate::calc::{ScaleQuestion, scale};

fn asked(
    rate: Option<&str>,
    rtt: Option<&str>,
    window: Option<&str>,
    streams: u32,
) -> WindowQuestion {
    WindowQuestion {
        rate: rate.map(|text| text.parse().unwrap()),
        rtt: rtt.map(|text| text.parse().unwrap()),
        window: window.map(|text| text.parse().unwrap()),
        streams,
    }
}

fn marked(result: &CalcResult) -> Option<usize> {
    result.tables[0].rows.iter().position(|row| row.marked)
}

#[test]
fn frankfurt_to_las_vegas_in_decimal_and_binary_units() {
    let result = window(&asked(Some("100mbit"), Some("173ms"), None, 1)).unwrap();
    assert_eq!(result.figure("window_bytes"), Some(&Value::Size(ByteCount::from_bytes(2_162_500))));
    let binary = &result.answers[1];
    assert!(binary.equation.contains("18140365 bit = 2.1625 MiB"), "{}", binary.equation);
    let result = window(&asked(None, Some("173ms"), Some("64KiB"), 1)).unwrap();
    assert_eq!(result.figure("rate_bps"), Some(&Value::Rate(BitRate::from_bps(3_030_566))));
    let Some(Value::Number(binary)) = result.figure("rate_binary_mbit_s") else { panic!() };
    assert!((binary - 2.89).abs() < 1e-2, "{binary}");
    assert_eq!(result.figure("window_scale"), Some(&Value::Count(0)));
}

#[test]
fn home_fibre() {
    for (rtt, bytes) in [("163.6ms", 51_125_000), ("228.1ms", 71_281_250)] {
        let result = window(&asked(Some("2.5gbit"), Some(rtt), None, 4)).unwrap();
        assert_eq!(result.figure("window_bytes"), Some(&Value::Size(ByteCount::from_bytes(bytes))));
        let each = ByteCount::from_bytes(bytes.div_ceil(4));
        assert_eq!(result.figure("window_per_stream_bytes"), Some(&Value::Size(each)));
        // 16 MiB hold 12.8 MB, and 32 MiB 17.8 MB.
        let least = if bytes < 60_000_000 { 8 } else { 9 };
        assert_eq!(marked(&result), Some(least));
    }
}

#[test]
fn the_third_of_any_two_is_the_same() {
    let rtt = window(&asked(Some("100mbit"), None, Some("2162500"), 1)).unwrap();
    assert_eq!(rtt.figure("rtt_ms"), Some(&Value::Rtt("173ms".parse().unwrap())));
    let rate = window(&asked(None, Some("173ms"), Some("216250"), 10)).unwrap();
    assert_eq!(rate.figure("rate_bps"), Some(&Value::Rate("100mbit".parse().unwrap())));
    for question in [
        asked(None, None, None, 1),
        asked(Some("1mbit"), None, None, 1),
        asked(Some("1mbit"), Some("1ms"), Some("64KiB"), 1),
    ] {
        assert_eq!(window(&question), Err(CalcError::TwoOfThree));
    }
}

#[test]
fn bounds_are_named() {
    for (question, says) in [
        (asked(Some("1mbit"), Some("0ms"), None, 1), "round trip"),
        (asked(None, Some("1ms"), Some("0"), 1), "window of zero"),
        (asked(None, Some("1ms"), Some("2GiB"), 1), "RFC 7323"),
        (asked(Some("1mbit"), Some("1ms"), None, 0), "1 to 128"),
        (asked(Some("1mbit"), Some("1ms"), None, 129), "1 to 128"),
    ] {
        let error = window(&question).unwrap_err().to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
    assert!(window(&asked(None, Some("1ms"), Some("1GiB"), 128)).is_ok());
}

#[test]
fn beyond_one_window_no_row_is_marked() {
    let result = window(&asked(Some("100gbit"), Some("200ms"), None, 1)).unwrap();
    assert_eq!((marked(&result), result.figure("window_scale")), (None, None));
    let result = scale(&ScaleQuestion { rate: "100gbit".parse().ok(), rtt: "200ms".parse().ok() });
    let result = result.unwrap();
    assert!(result.tables[0].title.contains("no row reaches 100 Gbit/s"));
    assert_eq!((marked(&result), result.figure("streams")), (None, Some(&Value::Count(3))));
}

#[test]
fn one_of_fifteen_scales_is_marked() {
    let question = ScaleQuestion { rate: "100mbit".parse().ok(), rtt: "173ms".parse().ok() };
    let result = scale(&question).unwrap();
    assert_eq!((result.tables[0].rows.len(), marked(&result)), (15, Some(6)));
    let sizes: Vec<_> = result.tables[0].rows.iter().map(|row| row.cells[1].clone()).collect();
    assert_eq!(sizes[0], Some(Value::Size(ByteCount::from_bytes(65_535))));
    assert_eq!(sizes[14], Some(Value::Size(MAX_WINDOW)));
    assert_eq!(scale(&ScaleQuestion { rtt: Some(Rtt::ZERO), ..question }), Err(CalcError::ZeroRtt));
}

#[test]
fn scales_without_a_target() {
    let rtt = "173ms".parse().ok();
    for (question, columns) in [
        (ScaleQuestion::default(), 3),
        (ScaleQuestion { rate: None, rtt }, 4),
        (ScaleQuestion { rate: "1gbit".parse().ok(), rtt }, 5),
    ] {
        let result = scale(&question).unwrap();
        let table = &result.tables[0];
        assert_eq!((table.columns.len(), table.rows.len()), (columns, 15));
        assert!(table.rows.iter().all(|row| row.cells.len() == columns));
        assert_eq!(result.answers.is_empty(), question.rate.is_none());
        assert_eq!(marked(&result).is_some(), question.rate.is_some());
    }
    let alone = ScaleQuestion { rate: "1gbit".parse().ok(), rtt: None };
    assert_eq!(scale(&alone), Err(CalcError::RateWithoutRtt));
}

/// 131,072 x 8 / 0.173 s: 6.06 Mbit/s, 5.78 in units of 2^20 and 5.92 in units of 1024 x 1000.
#[test]
fn three_meanings_of_a_megabit() {
    let result = window(&asked(None, Some("173ms"), Some("128KiB"), 1)).unwrap();
    for (key, mbit) in [("rate_binary_mbit_s", 5.780), ("rate_mixed_mbit_s", 5.919)] {
        let Some(Value::Number(number)) = result.figure(key) else { panic!("{key}") };
        assert!((number - mbit).abs() < 1e-3, "{key}: {number}");
    }
}

proptest::proptest! {
    #[test]
    fn any_question_returns(rate: Option<u64>, rtt: Option<u64>, bytes: Option<u64>, streams in 0u32..140) {
        let question = WindowQuestion {
            rate: rate.map(BitRate::from_bps), rtt: rtt.map(Rtt::from_nanos),
            window: bytes.map(ByteCount::from_bytes), streams,
        };
        let _ = window(&question);
        let _ = scale(&ScaleQuestion { rate: question.rate, rtt: question.rtt });
    }
}
