//! Streams arrive whole, whatever the path does.

use crate::path::{NATIVE, PAYLOAD, Path, bottleneck, bytes_of, config, ms};
use link::{Distribution, Jitter, LinkConfig, Loss, Reorder};
use proptest::prelude::*;
use std::time::Duration;
use udt::{Config, Sequence};

#[test]
fn a_clean_path_is_filled() {
    let mut path = Path::established(bottleneck(100, 50, 1.0), config(1, NATIVE));
    path.saturate(Duration::from_secs(5));
    let mbit = path.saturate(Duration::from_secs(4)) * PAYLOAD as f64 * 8.0 / 1e6;
    // Payload of 1456 in 1500 bytes: 97.1 Mbit/s.
    assert!((95.0..97.1).contains(&mbit), "{mbit:.1} Mbit/s");
}

#[test]
fn acknowledgements_are_one_a_packet_at_100_kbit_s_and_one_in_500_at_1_gbit_s() {
    let mut slow = Path::established(bottleneck(1, 50, 8.0), config(1, NATIVE));
    // A packet of 1456 bytes each 116 ms: 100 kbit/s.
    for _ in 0..100 {
        assert_eq!(slow.client.write(&[7; PAYLOAD as usize]), PAYLOAD as usize);
        slow.run_for(ms(116), |path| {
            path.server().discard();
        });
    }
    let now = slow.now;
    let received = slow.server().statistics(now).received;
    let share = received.acks as f64 / received.packets as f64;
    assert!((0.95..1.05).contains(&share), "{share:.2} a packet");

    let mut fast = Path::established(bottleneck(1_000, 20, 1.0), config(1, NATIVE));
    fast.saturate(Duration::from_secs(3));
    let before = {
        let now = fast.now;
        fast.server().statistics(now).received
    };
    fast.saturate(Duration::from_secs(1));
    let now = fast.now;
    let after = fast.server().statistics(now).received;
    let packets = (after.packets - before.packets) as f64;
    let full = (after.acks - before.acks) as f64 / packets;
    let light = (after.light_acks - before.light_acks) as f64 / packets;
    assert!(full < 1.0 / 500.0, "1/{:.0}", 1.0 / full);
    assert!((1.0 / 70.0..1.0 / 60.0).contains(&light), "1/{:.0}", 1.0 / light);
}

#[test]
fn sequence_numbers_wrap_around() {
    let first = Sequence::new(0x7FFF_FFFF - 1_000);
    let ours = Config { initial_sequence: first, ..config(1, NATIVE) };
    let [forward, reverse] = bottleneck(50, 20, 1.0);
    let lossy = LinkConfig { loss: Loss::Bernoulli("0.5%".parse().unwrap()), ..forward };
    let mut path = Path::established([lossy, reverse], ours);
    path.transfer(bytes_of(4_000));
    assert!(path.client.statistics(path.now).sent.retransmitted > 0);
}

#[test]
fn both_ends_send_at_once() {
    let mut path = Path::established(bottleneck(50, 20, 1.0), config(1, NATIVE));
    let (mut back, mut written) = (0, 0);
    path.run_until(|path| {
        written += path.client.write(&[1; 10_000]).min(1_000_000);
        path.server().write(&[2; 10_000]);
        let mut buffer = [0; 20_000];
        let count = path.client.read(&mut buffer);
        assert!(buffer[..count].iter().all(|byte| *byte == 2));
        back += count;
        path.server().discard();
        back > 3_000_000
    });
    assert!(written > 1_000_000, "{written}");
}

#[test]
fn a_receiver_that_does_not_read_stops_the_sender_and_nothing_is_lost() {
    let ours = Config { max_buffer: 1_000, ..config(1, NATIVE) };
    let mut path = Path::established(bottleneck(100, 20, 1.0), ours);
    let data = crate::path::pattern(0, bytes_of(3_000) as usize);
    let mut written = 0;
    path.run_for(Duration::from_secs(20), |path| {
        written += path.client.write(&data[written..]);
    });
    let sent = path.sent;
    assert!(sent < 4_000, "{sent} datagrams");
    let mut read = Vec::new();
    path.run_until(|path| {
        written += path.client.write(&data[written..]);
        let mut buffer = [0; 5_000];
        let count = path.server().read(&mut buffer);
        read.extend_from_slice(&buffer[..count]);
        read.len() == data.len()
    });
    assert!(read == data);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Loss, reordering, duplicates, jitter, any first sequence number.
    #[test]
    fn any_path_delivers_what_was_sent(
        first: u32,
        loss in 0_u32..8,
        back in 0_u32..8,
        duplicates in 0_u32..8,
        reordered in 0_u32..8,
        jitter_us in 0_u64..4_000,
        seed: u64,
        packets in 1_u64..400,
    ) {
        let percent = |value: u32| format!("{value}%").parse().unwrap();
        let [forward, reverse] = bottleneck(20, 20, 2.0);
        let impaired = |link: LinkConfig, loss: u32| LinkConfig {
            loss: Loss::Bernoulli(percent(loss)),
            duplicate: percent(duplicates),
            reorder: Some(Reorder { share: format!("{reordered}%").parse().unwrap(), by: ms(3) }),
            jitter: Some(Jitter {
                distribution: Distribution::Exponential,
                scale: Duration::from_micros(jitter_us),
                overtake: true,
            }),
            seed,
            ..link
        };
        let ours = Config { initial_sequence: Sequence::new(first), ..config(1, NATIVE) };
        let links = [impaired(forward, loss), impaired(reverse, back)];
        let mut path = Path::established(links, ours);
        path.transfer(packets * 1_000);
    }
}
