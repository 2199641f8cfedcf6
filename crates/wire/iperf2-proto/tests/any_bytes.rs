//! No input from the network causes a panic, and messages round-trip.

use iperf2_proto::{
    Amount, ClientHeader, Datagram, Format, Mode, Preamble, ReceiveStats, ServerReport,
};
use proptest::prelude::*;
use std::time::Duration;

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Normal),
        Just(Mode::TradeOff),
        Just(Mode::Dual),
        Just(Mode::Reverse),
        Just(Mode::FullDuplex)
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_parsed(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Datagram::decode(&bytes);
        let _ = ClientHeader::decode(&bytes);
        let _ = ClientHeader::decode_datagram(&bytes);
        let _ = ServerReport::decode(&bytes);
        let opening = bytes.first_chunk().map(|first| Preamble::of(*first));
        if let Some(Preamble::Header(length)) = opening {
            prop_assert!((24..=256).contains(&length));
        }
    }

    #[test]
    fn headers_round_trip(
        mode in modes(), streams: u32, port: u32, length: u32, rate_bps in 0u64..1 << 56, tos: u8,
        steps in 1u32..1 << 31, bytes in 0u64..1 << 31, by_time: bool, no_report: bool,
    ) {
        let amount = if by_time {
            Amount::Time(Duration::from_millis(10) * steps)
        } else {
            Amount::Bytes(bytes)
        };
        let acknowledged = !matches!(mode, Mode::Reverse | Mode::FullDuplex);
        let asked = ClientHeader {
            mode, streams, port, length, amount, rate_bps, tos, acknowledged, no_report,
        };
        prop_assert_eq!(ClientHeader::decode(&asked.encode()), Ok(Some(asked)));
        let mut datagram = vec![0; 16];
        datagram.extend(asked.encode_datagram());
        prop_assert_eq!(ClientHeader::decode_datagram(&datagram), Ok(Some(asked)));
    }

    #[test]
    fn datagrams_round_trip(number in 1u64..1 << 63, last: bool, secs: u32, micros in 0u32..1_000_000) {
        let sent = Duration::new(secs.into(), micros * 1000);
        let datagram = Datagram { number, last, sent };
        // The header declares 64-bit numbers.
        let mut bytes = vec![0; 16];
        bytes.extend(0x4801_0098u32.to_be_bytes());
        datagram.encode(&mut bytes);
        prop_assert_eq!(Datagram::decode(&bytes), Some(datagram));
    }

    #[test]
    fn statistics_stay_consistent(numbers in proptest::collection::vec(any::<u64>(), 1..50), sent: u64) {
        let mut stats = ReceiveStats::default();
        for number in numbers {
            stats.arrive(number, 1, Duration::from_micros(sent), Duration::from_micros(number));
            prop_assert!(stats.lost() <= stats.datagrams);
        }
        let _ = (stats.jitter(), stats.since(&ReceiveStats::default()));
    }

    /// In any order, received and lost datagrams add up to those sent.
    #[test]
    fn each_datagram_is_counted_once(
        order in Just((1u64..=40).collect::<Vec<_>>()).prop_shuffle(), lost in 0usize..40,
    ) {
        let mut stats = ReceiveStats::default();
        for &number in &order[lost..] {
            stats.arrive(number, 7, Duration::ZERO, Duration::ZERO);
        }
        prop_assert_eq!(stats.lost() + stats.received, stats.datagrams);
        prop_assert_eq!(stats.bytes, stats.received * 7);
    }

    #[test]
    fn any_text_is_a_quantity_or_an_error(text: String) {
        let _ = iperf2_proto::quantity::parse(&text);
        let _ = iperf2_proto::Pace::parse(&text);
        let _ = Format::parse(&text);
    }
}
