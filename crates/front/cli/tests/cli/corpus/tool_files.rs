//! The results of other tools in the corpus, as those tools write them.

use serde_json::{Value, json};

type File = (String, Vec<u8>);

/// One second of iperf3's sender: bytes, retransmitted segments, congestion window and RTT in µs.
type Second = (u64, u64, u64, u64);

/// A result of iperf3.
struct Iperf3 {
    version: &'static str,
    seconds: Vec<Second>,
    streams: usize,
    omit: usize,
    window: Option<u64>,
    received: Option<u64>,
    congestion: &'static str,
}

impl Iperf3 {
    fn new(version: &'static str, seconds: Vec<Second>) -> Self {
        let (window, received, congestion) = (None, None, "cubic");
        Iperf3 { version, seconds, streams: 1, omit: 0, window, received, congestion }
    }

    fn interval(&self, at: usize, second: Second) -> Value {
        let (bytes, retransmits, cwnd, rtt) = second;
        let omitted = at < self.omit;
        let from = if omitted { at } else { at - self.omit };
        let stream = |number: usize| {
            let mut stream = json!({
                "socket": 5 + number, "start": from, "end": from + 1, "seconds": 1, "bytes": bytes,
                "retransmits": retransmits, "snd_cwnd": cwnd, "rtt": rtt, "rttvar": 100,
                "pmtu": 1500, "omitted": omitted, "sender": true,
            });
            if let Some(window) = self.window {
                stream["snd_wnd"] = window.into();
            }
            stream
        };
        let streams: Vec<Value> = (0..self.streams).map(stream).collect();
        json!({"streams": streams, "sum": {"omitted": omitted}})
    }

    fn file(&self, name: &str) -> File {
        let counted = &self.seconds[self.omit..];
        let bytes: u64 = counted.iter().map(|second| second.0).sum();
        let retransmits: u64 = counted.iter().map(|second| second.1).sum();
        let seconds = counted.len();
        let end = |number: usize| {
            json!({
                "sender": {"socket": 5 + number, "end": seconds, "bytes": bytes, "retransmits": retransmits},
                "receiver": {"socket": 5 + number, "end": seconds as f64 + 0.04,
                    "bytes": self.received.unwrap_or(bytes)},
            })
        };
        let all = self.seconds.iter().enumerate();
        let intervals: Vec<Value> = all.map(|(at, second)| self.interval(at, *second)).collect();
        let streams: Vec<Value> = (0..self.streams).map(end).collect();
        let start = start(
            self.version,
            &json!({"protocol": "TCP", "num_streams": self.streams,
            "blksize": 131_072, "omit": self.omit, "duration": seconds, "reverse": 0}),
        );
        let end = json!({"streams": streams, "sender_tcp_congestion": self.congestion});
        written(name, &start, &intervals.into(), &end)
    }
}

fn start(version: &str, test: &Value) -> Value {
    json!({
        "connected": [{"socket": 5, "local_host": "192.0.2.1", "remote_host": "198.51.100.1"}],
        "version": format!("iperf {version}"), "tcp_mss_default": 1448,
        "connecting_to": {"host": "198.51.100.1", "port": 5201}, "test_start": test,
    })
}

/// In iperf3's order: a document is recognised by its first key.
fn written(name: &str, start: &Value, intervals: &Value, end: &Value) -> File {
    let text = format!("{{\"start\": {start}, \"intervals\": {intervals}, \"end\": {end}}}\n");
    (format!("{name}.json"), text.into_bytes())
}

/// So many seconds of a window that stays, after a ramp-up.
fn level(window: u64, rtt_ms: u64, seconds: u64) -> Vec<Second> {
    let each = window * 1000 / rtt_ms;
    let second = |at: u64| {
        let bytes = if at == 0 { each / 3 } else { each + 1000 * (at % 3) };
        (bytes, 0, window * 3 / 2, rtt_ms * 1000 + at * 137 % 500)
    };
    (0..seconds).map(second).collect()
}

/// Every file.
pub(super) fn all() -> Vec<File> {
    let mut files = windows();
    files.extend(losses());
    files.extend(short());
    files.extend(datagrams());
    files.extend([flent_sparse(), flent_many(), iperf2_window()]);
    files
}

fn windows() -> Vec<File> {
    let known =
        |window| Iperf3 { window: Some(window), ..Iperf3::new("3.12", level(3_100_000, 296, 10)) };
    let many = Iperf3 { streams: 8, ..Iperf3::new("3.9", level(800_000, 150, 10)) };
    let gigabit: Vec<Second> =
        (0..10).map(|at| (117_675_000, 0, 4_000_000 + 900_000 * (at % 4), 20_000)).collect();
    vec![
        Iperf3::new("3.1.7", level(3_145_728, 296, 10)).file("iperf3-3.1-fixed-window"),
        Iperf3 { omit: 2, ..Iperf3::new("3.18", level(1_500_000, 230, 12)) }
            .file("iperf3-3.18-fixed-window-omit"),
        many.file("iperf3-3.9-fixed-windows-of-8-streams"),
        known(3_150_000).file("iperf3-3.12-receive-window"),
        known(6_291_456).file("iperf3-3.12-send-buffer"),
        Iperf3::new("3.9", gigabit).file("iperf3-3.9-full-gigabit"),
    ]
}

fn losses() -> Vec<File> {
    let growing = |at: u64| {
        let cwnd = 1_450_000 + 780_000 * (10 - (10 - at.min(10)).pow(3) / 100) / 10;
        (cwnd * 1000 / 276, if at == 1 { 5 } else { 0 }, cwnd, 275_600)
    };
    let omitted = Iperf3 { omit: 3, ..Iperf3::new("3.9", (0..13).map(growing).collect()) };
    let bursts = |at: u64| match at % 3 {
        2 => (35 * 125_000, 1500, 1_400_000, 311_000 + 300 * (at % 4)),
        rest => (94 * 125_000, rest, 4_900_000, 311_000 + 300 * (at % 4)),
    };
    vec![
        omitted.file("iperf3-3.9-losses-in-omitted-seconds"),
        Iperf3::new("3.9", (0..12).map(bursts).collect()).file("iperf3-3.9-bursts-of-losses"),
    ]
}

fn short() -> Vec<File> {
    let nothing = Iperf3 { received: Some(0), ..Iperf3::new("3.12", level(10_000, 100, 5)) };
    let test = json!({"protocol": "TCP", "num_streams": 1, "blksize": 131_072, "omit": 0,
        "duration": 0, "bytes": 20_480, "reverse": 0});
    let interval = json!([{"streams": [{"socket": 5, "start": 0, "end": 0.0007, "seconds": 0.0007,
        "bytes": 60_000, "retransmits": 0, "snd_cwnd": 14_480, "rtt": 180_000, "omitted": false,
        "sender": true}]}]);
    let end = json!({"streams": [{
        "sender": {"socket": 5, "end": 0.0007, "bytes": 60_000, "retransmits": 0},
        "receiver": {"socket": 5, "end": 0.19, "bytes": 28_960}}]});
    vec![
        written("iperf3-3.9-within-one-rtt", &start("3.9", &test), &interval, &end),
        nothing.file("iperf3-3.12-nothing-received"),
    ]
}

fn datagrams() -> Vec<File> {
    let file = |name: &str, sent: u64, gaps: u64, received: Value| {
        let test = json!({"protocol": "UDP", "num_streams": 1, "blksize": 1448,
            "target_bitrate": 2_000_000, "duration": 3});
        let interval = json!([{"streams": [{"socket": 5, "start": 0, "end": 3, "seconds": 3,
            "bytes": sent * 1448, "packets": sent, "omitted": false, "sender": true}]}]);
        let end = json!({
            "streams": [{"udp": {"socket": 5, "packets": sent, "lost_packets": gaps, "seconds": 3}}],
            "sum_received": received});
        written(name, &start("3.12", &test), &interval, &end)
    };
    let sum = |arrived: u64, gaps: u64| json!({"bytes": arrived * 1448, "packets": arrived + gaps, "lost_packets": gaps, "seconds": 3});
    vec![
        file("iperf3-udp-tail-lost", 518, 10, sum(269, 10)),
        file("iperf3-udp-all-arrived", 518, 0, sum(518, 0)),
        file("iperf3-udp-nothing-arrived", 518, 0, sum(0, 0)),
    ]
}

/// Reports of a second and more, on common times of 0.2 s.
fn flent(name: &str, flows: u32, seconds: u32, mbit: f64) -> File {
    let begins = 1_767_225_600.0;
    let count = seconds * 5;
    let times: Vec<f64> = (0..count).map(|at| f64::from(at) * 0.2).collect();
    let mut results = serde_json::Map::new();
    let mut raw = serde_json::Map::new();
    for flow in 1..=flows {
        let reports = 1..seconds;
        let at = |second: u32| f64::from(second) + 0.01 * f64::from(flow % 7);
        let values: Vec<Value> = (0..count)
            .map(|at| if at % 5 == flow % 5 { mbit.into() } else { Value::Null })
            .collect();
        let reports: Vec<Value> = reports
            .map(|second| json!({"t": begins + at(second), "dur": 1.0, "val": mbit}))
            .collect();
        results.insert(format!("TCP upload::{flow}"), values.into());
        raw.insert(format!("TCP upload::{flow}"), reports.into());
    }
    let metadata = json!({"NAME": "tcp_nup", "TIME": "2026-01-01T00:00:00.000000Z",
        "FLENT_VERSION": "2.1.1", "STEP_SIZE": 0.2, "LENGTH": seconds, "SERIES_META": {}});
    let document = json!({"metadata": metadata, "version": 4, "x_values": times,
        "results": results, "raw_values": raw});
    (format!("{name}.flent.gz"), super::compressed(document.to_string().as_bytes()))
}

fn flent_sparse() -> File {
    flent("flent-sparse-reports", 4, 12, 2.0)
}

fn flent_many() -> File {
    flent("flent-40-flows", 40, 8, 1.0)
}

/// A window of 128 kB over an RTT of 105 ms, in whole writes.
fn iperf2_window() -> File {
    let mut text = String::new();
    let flow = "192.0.2.1,34386,198.51.100.1,5001,1";
    let mut sum = 0;
    for second in 0..10_u64 {
        let bytes = if second == 0 { 917_504 } else { 131_072 * (9 + second % 2) };
        sum += bytes;
        let to = second + 1;
        let stamp = 20_260_101_000_001 + second;
        text += &format!("{stamp},{flow},{second}.0-{to}.0,{bytes},{}\n", bytes * 8);
    }
    text += &format!("20260101000011,{flow},0.0-10.0,{sum},{}\n", sum * 8 / 10);
    ("iperf2-steady.csv".to_owned(), text.into_bytes())
}
