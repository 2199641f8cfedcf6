//! Files of iperf3 made here, with the truth known from how they were made: losses after the last
//! arrival and in omitted seconds, transfers that are too short for a rate, and windows that stay
//! as they are, in the formats of several versions.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use record::{Caveat, Finding, Limit, Measurement};
use serde_json::{Value, json};

/// One second of a stream.
#[derive(Clone, Copy)]
struct Second {
    bytes: u64,
    retransmits: u64,
    cwnd: u64,
    rtt_us: u64,
}

/// What differs between files.
struct File {
    version: &'static str,
    seconds: Vec<Second>,
    streams: usize,
    omit: usize,
    congestion: &'static str,
    /// The receiver's window; versions before 3.11 do not report it.
    window: Option<u64>,
    requested: u64,
    received: Option<u64>,
}

impl File {
    fn new(version: &'static str, seconds: Vec<Second>) -> Self {
        let (congestion, window, received) = ("cubic", None, None);
        File { version, seconds, streams: 1, omit: 0, congestion, window, requested: 0, received }
    }

    fn minor(&self) -> u32 {
        self.version.split('.').nth(1).unwrap().parse().unwrap()
    }

    fn interval(&self, index: usize, one: Second) -> Value {
        let omitted = index < self.omit;
        let from = if omitted { index } else { index - self.omit };
        let stream = |socket: usize| {
            let mut stream = json!({
                "socket": 5 + socket, "start": from, "end": from + 1, "seconds": 1,
                "bytes": one.bytes, "retransmits": one.retransmits, "snd_cwnd": one.cwnd,
                "rtt": one.rtt_us, "omitted": omitted,
            });
            if self.minor() >= 2 {
                (stream["rttvar"], stream["pmtu"]) = (100.into(), 1500.into());
                stream["sender"] = true.into();
            }
            if let Some(window) = self.window.filter(|_| self.minor() >= 11) {
                stream["snd_wnd"] = window.into();
            }
            stream
        };
        let streams: Vec<Value> = (0..self.streams).map(stream).collect();
        json!({"streams": streams, "sum": {"omitted": omitted}})
    }

    fn json(&self) -> Value {
        let counted = self.seconds.get(self.omit..).unwrap();
        let (bytes, retransmits) = counted
            .iter()
            .fold((0, 0), |(bytes, lost), one| (bytes + one.bytes, lost + one.retransmits));
        let seconds = counted.len();
        let end = |socket: usize| {
            json!({
                "sender": {"socket": 5 + socket, "end": seconds, "bytes": bytes, "retransmits": retransmits},
                "receiver": {"socket": 5 + socket, "end": seconds as f64 + 0.04,
                    "bytes": self.received.unwrap_or(bytes)},
            })
        };
        let intervals = self.seconds.iter().enumerate();
        let intervals: Vec<Value> = intervals.map(|(at, one)| self.interval(at, *one)).collect();
        let streams: Vec<Value> = (0..self.streams).map(end).collect();
        let mut file = json!({
            "start": {
                "connected": [{"socket": 5, "local_host": "192.0.2.1", "remote_host": "198.51.100.1"}],
                "version": format!("iperf {}", self.version), "tcp_mss_default": 1448,
                "connecting_to": {"host": "198.51.100.1", "port": 5201},
                "test_start": {"protocol": "TCP", "num_streams": self.streams, "blksize": 131_072,
                    "omit": self.omit, "duration": seconds, "reverse": 0},
            },
            "intervals": intervals,
            "end": {"streams": streams, "sender_tcp_congestion": self.congestion},
        });
        if self.minor() >= 10 {
            file["start"]["target_bitrate"] = self.requested.into();
        }
        file
    }

    fn explained(&self) -> (Measurement, Finding) {
        explained(&self.json())
    }
}

fn explained(file: &Value) -> (Measurement, Finding) {
    // iperf3's order: a document is recognised by its first key.
    let part = |key: &str| format!("\"{key}\": {}", file[key]);
    let text = format!("{{{}, {}, {}}}", part("start"), part("intervals"), part("end"));
    let measurement = tool_results::read(text.as_bytes()).unwrap().remove(0);
    let finding = diagnose::explain(&measurement);
    assert_eq!(diagnose::contradiction(&finding, &measurement), None);
    (measurement, finding)
}

const VERSIONS: [&str; 6] = ["3.1.7", "3.7", "3.9", "3.12", "3.16", "3.18"];

/// A window of so many bytes over an RTT, in whole writes, with a little noise.
fn level(window: u64, rtt_ms: u64, seconds: u64) -> Vec<Second> {
    let each = window as f64 * 1e3 / rtt_ms as f64;
    let second = |index: u64| {
        let writes = |seconds: f64| (each * seconds / 131_072.0).round() as u64 * 131_072;
        Second {
            bytes: writes(index as f64 + 1.0) - writes(index as f64),
            retransmits: 0,
            cwnd: window * 3 / 2,
            rtt_us: rtt_ms * 1000 + index * 137 % 500,
        }
    };
    (0..seconds).map(second).collect()
}

/// The same with a ramp-up.
fn ramped(window: u64, rtt_ms: u64, seconds: u64) -> Vec<Second> {
    let mut all = level(window, rtt_ms, seconds);
    all[0].bytes /= 3;
    all
}

#[test]
fn a_window_that_stays_is_named_in_every_version() {
    for version in VERSIONS {
        for (window, rtt_ms) in
            [(3_145_728, 296), (3_100_000, 150), (1_500_000, 230), (212_992, 90)]
        {
            for (streams, omit) in [(1, 0), (1, 3), (8, 0)] {
                let mut seconds = ramped(window, rtt_ms, 10 + omit as u64);
                seconds[0].cwnd /= 2;
                let file = File { streams, omit, ..File::new(version, seconds) };
                let (_, finding) = file.explained();
                let what = format!("{version} {window} {rtt_ms} -P {streams} -O {omit}");
                assert_eq!(finding.limit, Some(Limit::FixedWindow), "{what}: {finding:?}");
                let text = &finding.sentence;
                assert!(text.contains("tcp_rmem") && text.contains("tcp_wmem"), "{what}: {text}");
            }
        }
    }
}

#[test]
fn a_known_receive_window_decides() {
    for (window, limit) in [(3_150_000, Limit::ReceiveWindow), (6_291_456, Limit::SendBuffer)] {
        let file = File { window: Some(window), ..File::new("3.12", ramped(3_100_000, 296, 10)) };
        let (_, finding) = file.explained();
        assert_eq!(finding.limit, Some(limit), "{finding:?}");
    }
}

/// What looks like a fixed window, and is none.
#[test]
fn rates_that_were_requested_and_full_paths_are_not_called_windows() {
    let refuse = |what: &str, file: File| {
        let (_, finding) = file.explained();
        assert_ne!(finding.limit, Some(Limit::FixedWindow), "{what}: {}", finding.sentence);
    };
    for version in VERSIONS {
        // 20 Mbit/s with -b, which versions before 3.10 do not report.
        let paced = level(250_000, 100, 10);
        refuse(version, File { requested: 20_000_000, ..File::new(version, paced) });
        let with = |change: &dyn Fn(u64, &mut Second)| {
            let mut seconds = ramped(1_900_000, 100, 10);
            (0..).zip(&mut seconds).for_each(|(index, one)| change(index, one));
            File::new(version, seconds)
        };
        refuse("queue", with(&|index, one| one.rtt_us += 8_000 * index));
        refuse("losses", with(&|index, one| one.retransmits = u64::from(index % 3 == 2) * 9));
        refuse("growth", with(&|index, one| one.cwnd += 60_000 * index));
        refuse("BBR", File { congestion: "bbr", ..with(&|_, _| ()) });
    }
}

#[test]
fn a_full_line_is_said_and_nothing_is_advised() {
    let each = 941_400_000 / 8 / 10 * 2;
    let (_, finding) = File::new("3.9", ramped(each, 200, 10)).explained();
    assert_ne!(finding.limit, Some(Limit::FixedWindow));
    let mut file = File::new("3.9", level(each, 200, 10));
    (0..).zip(&mut file.seconds).for_each(|(at, one): (u64, _)| one.cwnd += 900_000 * (at % 4));
    let (_, finding) = file.explained();
    if matches!(finding.limit, None | Some(Limit::Unknown)) {
        assert!(
            finding.sentence.contains("the TCP payload rate of a 1 Gbit/s link"),
            "{}",
            finding.sentence
        );
        assert!(finding.remedies.is_empty());
    }
}

/// Growth of the window after losses that the result omits.
#[test]
fn omitted_losses_are_evidence() {
    let file = |retransmits| {
        let second = |index: u64| {
            let cwnd = 1_450_000 + 780_000 * (10 - (10 - index.min(10)).pow(3) / 100) / 10;
            let lost = if index == 1 { retransmits } else { 0 };
            Second { bytes: cwnd * 1000 / 276, retransmits: lost, cwnd, rtt_us: 275_600 }
        };
        File { omit: 3, ..File::new("3.9", (0..13).map(second).collect()) }
    };
    let (measurement, finding) = file(5).explained();
    let caveat = Caveat::OmittedSeconds { seconds: 3.0, retransmits: Some(5) };
    assert_eq!((measurement.streams[0].caveats[0], finding.caveats[0]), (caveat, caveat));
    assert_eq!(finding.limit, Some(Limit::CongestionAvoidance), "{}", finding.sentence);
    assert_eq!(
        measurement.streams[0].sender[0].ssthresh_bytes,
        file(5).seconds.get(1).map(|s| s.cwnd)
    );
    let (measurement, finding) = file(0).explained();
    assert_eq!(measurement.streams[0].sender[0].ssthresh_bytes, None);
    assert_ne!(finding.limit, Some(Limit::EcnMarks));
}

/// Bursts that cut the window to a quarter, in seconds in which it grows as well.
#[test]
fn bursts_of_losses_are_no_reordering() {
    let seconds = (0..12).map(|index| {
        let is_cut = index % 3 == 2;
        let (cwnd, mbit) = if is_cut { (1_400_000, 35) } else { (4_900_000, 94) };
        let retransmits = if is_cut { 1_500 } else { index % 3 };
        Second { bytes: mbit * 125_000, retransmits, cwnd, rtt_us: 311_000 + 300 * (index % 4) }
    });
    let (_, finding) = File::new("3.9", seconds.collect()).explained();
    assert_ne!(finding.limit, Some(Limit::Reordering), "{}", finding.sentence);
}

#[test]
fn a_transfer_within_a_round_trip_has_the_receivers_rate() {
    let second = Second { bytes: 40_544, retransmits: 0, cwnd: 14_480, rtt_us: 222_390 };
    let mut file = File::new("3.9", vec![second]).json();
    file["intervals"][0]["streams"][0]["end"] = 0.000_534.into();
    file["end"]["streams"][0]["receiver"]["bytes"] = 14_480.into();
    file["end"]["streams"][0]["receiver"]["end"] = 0.231.into();
    let (_, finding) = explained(&file);
    assert_eq!(finding.limit, None);
    assert!(finding.caveats.contains(&Caveat::WithinOneRoundTrip));
    for rate in [finding.average_bps, finding.throughput_bps] {
        assert!((rate.as_f64() / 501_470.0 - 1.0).abs() < 0.01, "{rate}");
    }
}

#[test]
fn no_rate_is_above_the_receivers() {
    let second = Second { bytes: 3_000_000, retransmits: 0, cwnd: 900_000, rtt_us: 100_000 };
    let mut file = File::new("3.9", vec![second]).json();
    file["end"]["streams"][0]["receiver"]["end"] = 3.0.into();
    let (_, finding) = explained(&file);
    for rate in [finding.average_bps, finding.throughput_bps] {
        assert!(rate.as_f64() <= 8.1e6, "{rate}");
    }
    let nothing = File { received: Some(0), ..File::new("3.12", level(10_000, 100, 5)) };
    let (_, finding) = nothing.explained();
    assert_eq!((finding.average_bps.bps(), finding.throughput_bps.bps()), (0, 0));
    assert!(matches!(finding.limit, None | Some(Limit::Outage)), "{finding:?}");
}

#[test]
fn datagrams_after_the_last_arrival_are_lost() {
    let file = |streams: u64, received: Value| {
        let udp =
            |socket: u64| json!({"udp": {"socket": socket, "packets": 518, "lost_packets": 10}});
        let interval =
            |socket: u64| json!({"socket": socket, "start": 0, "end": 3, "bytes": 750_064});
        json!({
            "start": {"version": "iperf 3.12", "connecting_to": {"host": "h", "port": 5201},
                "test_start": {"protocol": "UDP", "blksize": 1448, "target_bitrate": 2_000_000}},
            "intervals": [{"streams": (0..streams).map(interval).collect::<Value>()}],
            "end": {"streams": (0..streams).map(udp).collect::<Value>(), "sum_received": received},
        })
    };
    for streams in [1, 3] {
        let bytes = 269 * 1448 * streams;
        for received in [
            json!({"bytes": bytes, "packets": 279 * streams, "lost_packets": 10 * streams}),
            json!({"packets": 279 * streams, "lost_packets": 10 * streams}),
        ] {
            let (measurement, finding) = explained(&file(streams, received));
            let counted = measurement.streams.iter().map(|s| s.datagrams.as_ref().unwrap());
            let counted: Vec<(Option<u64>, u64, u64)> =
                counted.map(|one| (one.sent, one.received, one.lost)).collect();
            assert_eq!(counted, vec![(Some(518), 269, 249); streams as usize]);
            let text = format!("{} of {} datagrams were lost (48 %)", 249 * streams, 518 * streams);
            assert!(finding.sentence.starts_with(&text), "{}", finding.sentence);
        }
    }
    // Older versions have the sender's count and the gaps.
    let (_, finding) = explained(&file(1, Value::Null));
    assert!(finding.sentence.contains("up to the last arrival"), "{}", finding.sentence);
}

#[test]
fn samples_that_are_far_apart_are_said() {
    let mut file = File::new("3.9", ramped(900_000, 100, 10)).json();
    for (at, interval) in file["intervals"].as_array_mut().unwrap().iter_mut().enumerate() {
        let stream = &mut interval["streams"][0];
        (stream["start"], stream["end"]) = ((5 * at).into(), (5 * at + 5).into());
    }
    let (_, finding) = explained(&file);
    assert!(finding.caveats.contains(&Caveat::SparseSamples { interval_s: 5.0 }));
}
