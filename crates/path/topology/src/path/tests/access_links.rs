//! Links of access networks in virtual time: the rate and the RTT that their names promise.

use super::path;
use link::{Link, Train};
use std::time::Duration;
use units::Nanos;

const PACKET: u32 = 1500;
const MS: u64 = 1_000_000;

/// Mbit/s that leave a direction within a second from `from` on, offered 3 Gbit/s.
fn mbit(name: &str, direction: usize, from: u64) -> f64 {
    let schedule = path(name).schedules(1)[direction].clone();
    let mut link = Link::new(schedule);
    let start = Nanos(from * 1000 * MS);
    let (mut packets, end) = (0_u64, Nanos(start.0 + 1500 * MS));
    let mut now = start;
    while now < end {
        link.arrive(now, Train::single(PACKET), ());
        while let Some(delivery) = link.release(now) {
            // The first half second fills queue and wire, and empties the token bucket.
            if now.0 >= start.0 + 500 * MS {
                packets += u64::from(delivery.train.packets());
            }
        }
        now = Nanos(now.0 + 4_000);
    }
    (packets * u64::from(PACKET) * 8) as f64 / 1e6
}

/// Sorted RTTs of packets of 64 bytes, one every 200 ms, in ms.
fn round_trips(name: &str) -> Vec<f64> {
    let [up, down] = path(name).schedules(1);
    let (mut up, mut down) = (Link::new(up), Link::new(down));
    let mut found = Vec::new();
    for number in 0..500 {
        let sent = Nanos(number * 200 * MS);
        let arrived = crossed(&mut up, sent);
        let returned = crossed(&mut down, arrived);
        found.push((returned.0 - sent.0) as f64 / MS as f64);
    }
    found.sort_by(f64::total_cmp);
    found
}

fn crossed(link: &mut Link<()>, sent: Nanos) -> Nanos {
    link.arrive(sent, Train::single(64), ());
    let mut now = sent;
    loop {
        now = link.next_due().map_or(now, |due| due.max(now));
        if link.release(now).is_some() {
            return now;
        }
    }
}

#[test]
fn each_carries_the_rate_that_is_said_up_and_down() {
    // Name; second, up and down in Mbit/s.
    let promised = [
        ("wifi-2.4ghz-crowded", 0, 26.0, 26.0),
        ("wifi-2.4ghz-crowded", 3, 13.0, 13.0),
        ("wifi-5ghz", 0, 800.0, 800.0),
        ("wifi-5ghz", 7, 480.0, 480.0),
        ("wifi-6ghz", 0, 1600.0, 1600.0),
        ("lte-driving", 0, 3.1, 6.9),
        ("lte-driving", 21, 1.1, 2.3),
        ("5g-mid-band", 1, 25.0, 225.0),
        ("5g-mid-band", 11, 25.0, 145.0),
        ("docsis", 0, 11.0, 250.0),
        ("docsis-no-aqm", 0, 11.0, 250.0),
    ];
    for (name, second, up, down) in promised {
        for (direction, rate) in [up, down].into_iter().enumerate() {
            let found = mbit(name, direction, second);
            assert!((found / rate - 1.0).abs() < 0.05, "{name}: {found} instead of {rate}");
        }
    }
}

#[test]
fn each_has_the_rtt_that_is_said() {
    for (name, rtt) in
        [("lte-driving", 70.0), ("5g-mid-band", 29.0), ("docsis", 10.0), ("docsis-no-aqm", 10.0)]
    {
        assert_eq!(path(name).rtt().duration(), Duration::from_millis(rtt as u64), "{name}");
        let found = round_trips(name);
        assert!(found[0] >= rtt && found[499] < rtt + 1.0, "{name}: {:?}", &found[495..]);
    }
    // Of a crowded channel half of the packets wait 20 ms and more, in good conditions few do.
    for (name, median, tail) in [
        ("wifi-2.4ghz-crowded", 20.0..45.0, 60.0..140.0),
        ("wifi-5ghz", 2.0..5.0, 4.0..10.0),
        ("wifi-6ghz", 2.0..4.0, 3.0..8.0),
    ] {
        let found = round_trips(name);
        assert!(median.contains(&found[250]), "{name}: median {}", found[250]);
        assert!(tail.contains(&found[450]), "{name}: 90 % {}", found[450]);
    }
}
