//! Paths read, refused, changed and printed.

mod access_links;
mod every_key;
mod forms;
mod queue_forms;
mod refusals;
mod round_trip;
mod toml_files;

use super::*;
use std::collections::BTreeMap;
use std::io;
use units::Nanos;

/// A path that names no files.
fn path(text: &str) -> PathSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A path on a file system of these files.
fn read(text: &str, files: &[(&str, &str)]) -> Result<PathSpec, PathError> {
    PathSpec::parse(text, &mut reader(files))
}

fn reader(files: &[(&str, &str)]) -> impl FnMut(&str) -> io::Result<String> {
    let files: BTreeMap<String, String> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    move |name: &str| {
        files.get(name).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

fn change(spec: &PathSpec, changes: &str) -> PathSpec {
    spec.with(changes, &mut files::no_files).unwrap_or_else(|error| panic!("{changes}: {error}"))
}

#[test]
fn seed_zeros_path() {
    let spec = path("rate=100mbit,rtt=173ms");
    assert_eq!(spec.bdp(), ByteCount::from_bytes(2_162_500));
    assert_eq!(spec.queue_bytes(), ByteCount::from_bytes(2_162_500));
    assert_eq!(
        spec,
        PathSpec::new(BitRate::from_bps(100_000_000), Rtt::from_micros(173_000))
            .with("rate=100mbit,rtt=173ms", &mut files::no_files)
            .unwrap()
    );
    let [up, down] = spec.schedules(1);
    assert_eq!(up.start.delay + down.start.delay, Duration::from_millis(173));
    assert_ne!(up.start.seed, down.start.seed);
    assert_eq!(spec.memory(), ByteCount::from_bytes(3 * 2_162_500));
}

#[test]
fn an_odd_nanosecond_goes_into_the_way_back() {
    let spec = path("rate=1gbit,rtt=5ns");
    assert_eq!(spec.directions().map(|direction| direction.delay().nanos()), [2, 3]);
    assert_eq!(spec.rtt().nanos(), 5);
}

#[test]
fn simple_paths_are_printed_as_ever() {
    for (text, words) in [
        (
            "rate=100mbit,rtt=173ms",
            "100 Mbit/s in each direction counting IP bytes, RTT 173 ms without serialisation, loss 0 % in each direction, queue 1 BDP (2.16 MB)",
        ),
        (
            "rate=100mbit,rtt=173ms,loss=0.1%,queue=1000p,overhead=38",
            "100 Mbit/s in each direction counting IP bytes and 38 bytes of framing per packet, RTT 173 ms without serialisation, loss 0.1 % in each direction, queue 1000 packets",
        ),
        (
            "rate=1gbit,rtt=0ms",
            "1 Gbit/s in each direction counting IP bytes, RTT 0 ms without serialisation, loss 0 % in each direction, queue 96 kB",
        ),
        (
            "up.rate=3mbit,down.rate=250mbit,up.delay=200ms,down.delay=400ms,down.loss=1%,jitter=5ms",
            "3 Mbit/s up and 250 Mbit/s down counting IP bytes, RTT 600 ms (200 ms up and 400 ms down) without serialisation, loss 0 % up and 1 % down, queue 1 BDP (225 kB) up and 1 BDP (18.8 MB) down, jitter normal 5 ms in each direction",
        ),
        (
            "rate=unlimited,rtt=10ms,loss=ge:1%:30%,@5s.up.reorder=1%:5ms,repeat=30s,up.blackhole=2s@7s",
            "unlimited rate in each direction counting IP bytes, RTT 10 ms without serialisation, loss 3.226 % in bursts (Gilbert-Elliott p 1 %, r 30 %, bad 100 %, good 0 %) in each direction, queue none (unlimited rate), blackhole for the last 2000 ms of every 7000 ms up, from 5s: up.reorder=1%:5ms, repeated every 30s",
        ),
    ] {
        assert_eq!(path(text).to_string(), words);
    }
}

#[test]
fn a_bdp_is_of_each_ways_own_rate_and_both_ways_delay() {
    let spec = path("up.rate=10mbit,down.rate=100mbit,up.delay=20ms,down.delay=60ms");
    assert_eq!(spec.directions().map(|direction| direction.bdp().bytes()), [100_000, 1_000_000]);
    assert_eq!(spec.bdp().bytes(), 1_000_000);
    assert_eq!(spec.queue_bytes().bytes(), 1_000_000);
}

#[test]
fn memory_is_for_the_worst_of_times() {
    let calm = path("rate=100mbit,rtt=100ms").memory();
    assert_eq!(calm.bytes(), 3 * 1_250_000);
    // 1 Gbit/s later on: ten times the wire and the queues.
    assert_eq!(path("rate=100mbit,rtt=100ms,@5s.rate=1gbit").memory(), calm.times(10));
    // 5 standard deviations of 10 ms: the wire holds twice as much.
    let jitter = path("rate=100mbit,rtt=100ms,jitter=10ms").memory();
    assert_eq!(jitter, calm.plus(ByteCount::from_bytes(1_250_000)));
    assert!(path("rate=unlimited,rtt=100ms").memory().bytes() >= 250_000_000);
    let huge = "rate=100tbit,rtt=3600s,queue=1000bdp,jitter=pareto:3600s";
    assert!(path(huge).memory().bytes() > 1 << 60);
}

#[test]
fn every_named_path_can_be_had() {
    let mut names = Vec::new();
    for named in PATHS {
        let spec = path(named.name);
        assert_eq!(spec, path(named.spec), "{}", named.name);
        assert_eq!(spec, path(&spec.to_spec()), "{}", named.name);
        let _ = (spec.schedules(7), spec.memory(), spec.to_string());
        let lossy = path(&format!("{},loss=1%", named.name));
        assert_eq!(lossy.directions().map(PathDirection::mean_loss), ["1%".parse().unwrap(); 2]);
        for text in [named.about, named.source] {
            assert!(!text.is_empty() && !text.contains('\n'), "{}", named.name);
        }
        assert!(!names.contains(&named.name), "{} is there twice", named.name);
        names.push(named.name);
    }
    assert_eq!(path("geo").rtt().duration(), Duration::from_millis(600));
    assert_eq!(path("home-2.5g-to-paris").bdp().bytes(), 51_125_000);
    assert_eq!(path("home-2.5g-to-darwin").bdp().bytes(), 71_281_250);
}

#[test]
fn a_low_orbit_changes_its_delay_every_15_s() {
    let [up, _] = path("leo").schedules(0);
    let delay = |s: u64| up.at(Nanos(s * 1_000_000_000)).0.delay.as_micros();
    assert_eq!(
        [0, 14, 15, 30, 45, 59, 60, 75].map(delay),
        [12_500, 12_500, 30_000, 50_000, 20_000, 20_000, 12_500, 30_000]
    );
}
