//! Payload by the case it is counted in.

use super::*;

fn fibre() -> OverheadQuestion {
    OverheadQuestion {
        rate: "2.5gbit".parse().unwrap(),
        mtu: 1500,
        ip: IpVersion::Ipv4,
        vlan_tags: 0,
        timestamps: true,
        sack_blocks: 0,
        udp: false,
    }
}

fn gbit(value: Option<&Value>) -> f64 {
    let Some(Value::Rate(rate)) = value else { panic!("{value:?}") };
    rate.as_f64() / 1e9
}

#[test]
fn home_fibre_by_its_cases() {
    let result = overhead(&fibre()).unwrap();
    assert!((gbit(result.figure("payload_bps")) - 2.354).abs() < 5e-4);
    for (case, expected) in [
        ("TCP/IPv4 one-way data, timestamps", 2.354),
        ("TCP/IPv4 options counted 12 + 24", 2.3147),
        ("TCP/IPv6 options counted 12 + 24", 2.2822),
        ("TCP/IPv4 timestamps, 3 SACK blocks", 2.308),
    ] {
        let row = result.tables[1]
            .rows
            .iter()
            .find(|row| row.cells[0] == Some(Value::Text(case.to_owned())));
        let rate = gbit(row.unwrap().cells[4].as_ref());
        assert!((rate - expected).abs() < 5e-4, "{case}: {rate}");
    }
}

#[test]
fn the_parts_add_up_to_the_frame() {
    for question in [
        fibre(),
        OverheadQuestion { udp: true, ip: IpVersion::Ipv6, ..fibre() },
        OverheadQuestion { vlan_tags: 2, sack_blocks: 3, mtu: 9000, ..fibre() },
        OverheadQuestion { timestamps: false, sack_blocks: 4, ..fibre() },
    ] {
        let result = overhead(&question).unwrap();
        let bytes: Vec<u64> = result.tables[0]
            .rows
            .iter()
            .map(|row| match row.cells[1] {
                Some(Value::Count(bytes)) => bytes,
                _ => panic!(),
            })
            .collect();
        let (frame, parts) = bytes.split_last().unwrap();
        assert_eq!(parts.iter().sum::<u64>(), *frame, "{question:?}");
    }
}

#[test]
fn impossible_frames_are_rejected() {
    for (question, says) in [
        (OverheadQuestion { vlan_tags: 3, ..fibre() }, "‹vlan›"),
        (OverheadQuestion { sack_blocks: 4, ..fibre() }, "‹sack›"),
        (OverheadQuestion { mtu: 575, ..fibre() }, "576"),
        (OverheadQuestion { mtu: 1279, ip: IpVersion::Ipv6, ..fibre() }, "1280"),
        (OverheadQuestion { mtu: 65_536, ..fibre() }, "65535"),
    ] {
        let error = overhead(&question).unwrap_err().to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
