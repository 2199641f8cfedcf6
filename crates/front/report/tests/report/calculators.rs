//! Calculators at every width, in Unicode and in ASCII.

use crate::assertions::fits;
use model::calc::{
    self, CalcResult, LossQuestion, OverheadQuestion, TransferQuestion, UdtQuestion,
};
use model::calc::{Law, ScaleQuestion, WanQuestion, WindowQuestion};
use model::{IpVersion, Transfer};
use report::terminal::{self, Style};
use units::{BitRate, ByteCount, LossRatio, Rtt};

/// One of each calculator.
fn results() -> Vec<CalcResult> {
    let rate = BitRate::from_bps(2_500_000_000);
    let rtt = Rtt::from_micros(163_600);
    let loss = model::loss_from_fraction(1e-4).unwrap_or(LossRatio::NONE);
    let mss = ByteCount::from_bytes(1448);
    let window = ByteCount::from_bytes(65_536);
    let law = |law| LossQuestion {
        law,
        rtt,
        loss: Some(loss),
        link: Some(rate),
        target: None,
        mss,
        window: None,
        rto: None,
        packets_per_ack: 1,
    };
    let transfer = Transfer {
        size: ByteCount::from_bytes(10_000_000_000),
        link: rate,
        rtt,
        loss,
        mss,
        window: None,
        initial: 10,
    };
    vec![
        calc::window(&WindowQuestion {
            rate: Some(rate),
            rtt: Some(rtt),
            window: None,
            streams: 4,
        }),
        calc::scale(&ScaleQuestion { rate: Some(rate), rtt: Some(rtt) }),
        calc::loss(&law(Law::Mathis)),
        calc::loss(&law(Law::Pftk)),
        calc::loss(&law(Law::Cubic)),
        calc::loss(&law(Law::Bbr)),
        calc::wan(&WanQuestion { rate, rtt, loss, window, ratio: 3.0, lan: rate, mss, reno: true }),
        calc::overhead(&OverheadQuestion {
            rate,
            mtu: 1500,
            ip: IpVersion::Ipv4,
            vlan_tags: 2,
            timestamps: true,
            sack_blocks: 3,
            udp: false,
        }),
        calc::transfer_time(&TransferQuestion { transfer, congestion: None }),
        calc::udt(&UdtQuestion { rate, sending: BitRate::ZERO, packet: 1500, loss: Some(loss) }),
    ]
    .into_iter()
    .map(Result::unwrap)
    .collect()
}

#[test]
fn every_result_fits_every_terminal() {
    for result in results() {
        for width in [1, 10, 39, 40, 41, 60, 80, 100, 200] {
            for unicode in [true, false] {
                let text = terminal::calc_result(&result, &Style { colour: false, width, unicode });
                fits(&text, width);
                assert!(unicode || text.is_ascii(), "{}: {text}", result.calculator);
            }
        }
    }
}

#[test]
fn nothing_is_truncated_at_80_columns() {
    for result in results() {
        let text =
            terminal::calc_result(&result, &Style { colour: false, width: 80, unicode: true });
        assert!(!text.contains('…'), "{}: {text}", result.calculator);
        let marked = result.tables.iter().flat_map(|table| &table.rows).filter(|row| row.marked);
        let marks = text.lines().filter(|line| line.starts_with('>'));
        assert_eq!(marks.count(), marked.count(), "{text}");
    }
}

#[test]
fn curves_have_labels_and_show_the_input_point() {
    for result in results() {
        let Some(curve) = &result.curve else { continue };
        let text =
            terminal::calc_result(&result, &Style { colour: false, width: 80, unicode: true });
        for series in &curve.series {
            assert!(text.contains(&format!("━━ {}", series.name)), "{text}");
        }
        // Once on the curve and once in the legend.
        let points = text.matches('◉').count();
        assert_eq!(points, if curve.asked.is_some() { 2 } else { 0 }, "{text}");
    }
}
