//! A test of iperf3 that was found in a capture, in sentences. Everything in it is from the
//! file, so each text passes the sanitizer.

use crate::{untrusted::excerpt, wording};
use serde_json::Value;
use tcp_analysis::iperf3::{Cut, Document, State, StateChange, Test};
use units::{BitRate, ByteCount};

/// Longest name that is shown, in characters.
const NAME: usize = 24;

/// The test, its phases, results, and what the capture lacks; times are since `first_ns`.
#[must_use]
pub fn iperf3_test(test: &Test, first_ns: u64) -> Vec<String> {
    let mut texts = vec![asked(test)];
    if !test.states.is_empty() {
        let phases: Vec<String> = test.states.iter().map(|it| phase(it, first_ns)).collect();
        texts.push(format!("phases: {}", phases.join(", ")));
    }
    for (side, document) in ["client", "server"].iter().zip(&test.results) {
        texts.extend(document.as_ref().map(|document| results(side, document)));
    }
    let documents = [
        ("parameters are", &test.parameters),
        ("client's results are", &test.results[0]),
        ("server's results are", &test.results[1]),
    ];
    let mut is_told = false;
    for (what, document) in documents {
        if let Some(Document { cut: Some(cut), packet, .. }) = document {
            texts.push(format!("the {what} incomplete: {}", why(*cut, *packet)));
            is_told = true;
        }
    }
    if test.is_incomplete && !is_told {
        texts.push(
            "parts of the control connection are missing; capture whole packets (-s 0)".to_owned(),
        );
    }
    texts
}

fn asked(test: &Test) -> String {
    let head = format!("iperf3 test (control connection: stream {})", test.stream);
    let Some(document) = &test.parameters else {
        return format!("{head}: parameters are not in the capture");
    };
    let json = &document.json;
    let number = |key: &str| json.get(key).and_then(Value::as_u64).filter(|number| *number > 0);
    let is_set = |key: &str| {
        json.get(key).is_some_and(|it| *it == Value::Bool(true)) || number(key).is_some()
    };
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(|it| excerpt(it, NAME));
    let protocol = ["udp", "sctp"].into_iter().find(|name| is_set(name)).unwrap_or("tcp");
    let mut parts = vec![protocol.to_uppercase()];
    parts.extend(number("time").map(|seconds| format!("{seconds} s")));
    parts.extend(number("omit").map(|seconds| format!("the first {seconds} s omitted")));
    let bytes = |key| number(key).map(ByteCount::from_bytes);
    parts.extend(bytes("num").map(ByteCount::decimal));
    parts.extend(number("blockcount").map(|count| format!("{count} blocks")));
    let streams = number("parallel").unwrap_or(1);
    parts.push(format!("{streams} stream{}", if streams == 1 { "" } else { "s" }));
    let direction = if is_set("bidirectional") {
        "both directions"
    } else if is_set("reverse") {
        "server to client"
    } else {
        "client to server"
    };
    parts.push(direction.to_owned());
    parts.extend(bytes("len").map(|length| format!("blocks of {length}")));
    parts.extend(bytes("window").map(|window| format!("socket buffers of {window}")));
    let rate = |key| number(key).map(BitRate::from_bps);
    parts.extend(rate("bandwidth").map(|rate| format!("{rate} per stream")));
    parts.extend(rate("fqrate").map(|rate| format!("paced to {rate}")));
    parts.extend(number("MSS").map(|mss| format!("MSS {mss}")));
    parts.extend(text("congestion"));
    parts.extend(text("client_version").map(|version| format!("iperf {version}")));
    format!("{head}: {}", parts.join(", "))
}

fn phase(change: &StateChange, first_ns: u64) -> String {
    let at = change.time_ns.saturating_sub(first_ns) as f64 / 1e9;
    let codes = match change.error {
        Some((code, 0)) => format!(" with code {code}"),
        Some((code, errno)) => format!(" with code {code}, errno {errno}"),
        None if change.state == State::ServerError => " without a code".to_owned(),
        None => String::new(),
    };
    format!("{}{codes} at {at:.3} s (packet {})", change.state, change.packet)
}

fn results(side: &str, document: &Document) -> String {
    let json = &document.json;
    let streams = json.get("streams").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let sum = |key: &str| {
        let counts = streams.iter().filter_map(|stream| stream.get(key)?.as_u64());
        counts.fold(0, u64::saturating_add)
    };
    let mut parts = Vec::new();
    if !streams.is_empty() {
        let bytes = ByteCount::from_bytes(sum("bytes")).decimal();
        let count = streams.len();
        parts.push(format!("{bytes} in {count} stream{}", if count == 1 { "" } else { "s" }));
        let has_count = json.get("sender_has_retransmits").and_then(Value::as_i64) == Some(1);
        if has_count {
            parts.push(wording::counted(sum("retransmits"), "retransmission"));
        }
        if sum("packets") > 0 {
            parts.push(format!("{} of {} datagrams lost", sum("errors"), sum("packets")));
        }
    }
    let congestion = json.get("congestion_used").and_then(Value::as_str);
    parts.extend(congestion.map(|name| excerpt(name, NAME)));
    let cpu = json.get("cpu_util_total").and_then(Value::as_f64).filter(|cpu| *cpu >= 0.0);
    parts.extend(cpu.map(|cpu| format!("CPU {} of a core", units::percent_with(cpu / 100.0, 2))));
    if parts.is_empty() {
        parts.push("no figures".to_owned());
    }
    format!("results of the {side} (packet {}): {}", document.packet, parts.join(", "))
}

fn why(cut: Cut, packet: u64) -> String {
    match cut {
        Cut::Snaplen => {
            format!("the snaplen cut packets up to {packet}; capture whole packets (-s 0)")
        }
        Cut::NotCaptured => format!("packets before {packet} are missing or out of order"),
        Cut::TooLong => "longer than 64 KiB; only the beginning is read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_test_is_told_in_sentences_and_sanitized() {
        let document = |json| Some(Document { json, packet: 9, cut: None });
        let change = |state, packet, error| StateChange {
            state,
            packet,
            time_ns: 1_000_000_000 + packet * 1_000_000,
            error,
        };
        let parameters = json!({"tcp": true, "time": 10, "parallel": 2, "len": 131_072,
            "congestion": "cu\u{1b}[31mbic\u{202e}", "bandwidth": 0, "client_version": "3.12"});
        let mut test = Test {
            cookie: [b'a'; 37],
            stream: 4,
            parameters: document(parameters),
            results: [
                document(json!({"cpu_util_total": 12.34, "sender_has_retransmits": 1,
                    "streams": [{"bytes": 5_000_000, "retransmits": 7},
                                {"bytes": u64::MAX, "retransmits": -1}]})),
                None,
            ],
            states: vec![
                change(State::ParamExchange, 6, None),
                change(State::ServerError, 8, Some((120, 0))),
            ],
            is_incomplete: false,
        };
        let texts = iperf3_test(&test, 1_000_000_000);
        assert!(texts.iter().all(|text| !text.contains(['\u{1b}', '\u{202e}'])), "{texts:?}");
        assert!(texts[0].starts_with("iperf3 test (control connection: stream 4): TCP, 10 s, 2 streams, client to server, blocks of 128 KiB, cu"), "{}", texts[0]);
        assert_eq!(
            texts[1],
            "phases: PARAM_EXCHANGE at 0.006 s (packet 6), SERVER_ERROR with code 120 at 0.008 s (packet 8)"
        );
        assert!(texts[2].contains("7 retransmissions, CPU 12 % of a core"), "{}", texts[2]);
        assert_eq!(texts.len(), 3);
        test.parameters = Some(Document { json: json!({}), packet: 7, cut: Some(Cut::Snaplen) });
        let last = iperf3_test(&test, 0).pop().unwrap_or_default();
        assert!(last.starts_with("the parameters are incomplete: the snaplen cut"), "{last}");
    }
}
