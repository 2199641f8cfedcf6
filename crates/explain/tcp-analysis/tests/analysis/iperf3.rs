//! iperf3's control connection: whole, cut by the snaplen, with missing packets, and made up.

use capture::LinkType;
use capture::dissect::{Layers, dissect};
use proptest::prelude::*;
use serde_json::json;
use tcp_analysis::iperf3::{Cut, State, Test, Tests};
use units::ByteCount;

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

/// A control connection whose packets are captured up to `snaplen` bytes of payload.
struct Conversation {
    tests: Tests,
    layers: Layers,
    packet: u64,
    next: [u32; 2],
    snaplen: usize,
    stream: u32,
}

impl Conversation {
    fn new(snaplen: usize) -> Self {
        let (tests, layers) = (Tests::default(), Layers::new());
        Conversation { tests, layers, packet: 0, next: [u32::MAX - 20, 5000], snaplen, stream: 7 }
    }

    /// Data of the client, or of the server; not captured if `lost`.
    fn send(&mut self, from_server: bool, payload: &[u8], lost: bool) {
        let seq = &mut self.next[usize::from(from_server)];
        let at = *seq;
        *seq = seq.wrapping_add(payload.len() as u32);
        if !lost {
            self.segment(from_server, at, payload);
        }
    }

    fn segment(&mut self, from_server: bool, seq: u32, payload: &[u8]) {
        let (from, to) = if from_server { (2, 1) } else { (1, 2) };
        let total = 40 + payload.len();
        let mut bytes = vec![0x45, 0];
        bytes.extend((total as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
        let ports: [u16; 2] = if from_server { [5201, 40000] } else { [40000, 5201] };
        ports.iter().for_each(|port| bytes.extend(port.to_be_bytes()));
        bytes.extend(seq.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(&payload[..payload.len().min(self.snaplen)]);
        dissect(LinkType::RAW, &bytes, total as u32, &mut self.layers);
        let segment = self.layers.tcp(&bytes).unwrap();
        self.packet += 1;
        self.tests.add(self.stream, self.packet, self.packet * 1_000_000, &segment);
    }

    fn state(&mut self, from_server: bool, state: State) {
        self.send(from_server, &[state.byte()], false);
    }

    fn json(&mut self, from_server: bool, text: &str, lost: bool) {
        self.send(from_server, &(text.len() as u32).to_be_bytes(), lost);
        self.send(from_server, text.as_bytes(), lost);
    }

    fn test(&self) -> &Test {
        self.tests.of(7).unwrap()
    }
}

const PARAMETERS: &str = r#"{"tcp":true,"omit":0,"time":10,"parallel":2,"window":131072,"bandwidth":0,
    "congestion":"bbr"}"#;
const RESULTS: &str = r#"{"cpu_util_total":1.5,"streams":[{"id":1,"bytes":7},{"id":3,"bytes":9}]}"#;

/// A whole test; with `lost` the client's results are not captured.
fn whole(snaplen: usize, lost: bool) -> Conversation {
    let mut x = Conversation::new(snaplen);
    x.send(false, COOKIE, false);
    x.state(true, State::ParamExchange);
    x.json(false, PARAMETERS, false);
    for state in [State::CreateStreams, State::TestStart, State::TestRunning] {
        x.state(true, state);
    }
    x.state(false, State::TestEnd);
    x.state(true, State::ExchangeResults);
    x.json(false, RESULTS, lost);
    x.json(true, RESULTS, false);
    x.state(true, State::DisplayResults);
    x.state(false, State::IperfDone);
    x
}

const STATES: [State; 8] = [
    State::ParamExchange,
    State::CreateStreams,
    State::TestStart,
    State::TestRunning,
    State::TestEnd,
    State::ExchangeResults,
    State::DisplayResults,
    State::IperfDone,
];

fn states(test: &Test) -> Vec<State> {
    test.states.iter().map(|change| change.state).collect()
}

#[test]
fn a_test_is_read_with_its_states() {
    let x = whole(usize::MAX, false);
    let test = x.test();
    assert_eq!(states(test), STATES);
    let first = test.states[0];
    assert_eq!((first.packet, first.time_ns), (2, 2_000_000));
    let parameters = test.parameters.as_ref().unwrap();
    assert_eq!((parameters.packet, parameters.cut), (4, None));
    assert_eq!(parameters.json["congestion"], "bbr");
    for document in &test.results {
        assert_eq!(document.as_ref().unwrap().json["streams"][1]["bytes"], 9);
    }
    assert!(!test.is_incomplete);
    let requested = test.requested();
    assert_eq!(requested.congestion, Some("bbr"));
    assert_eq!(requested.window.map(ByteCount::bytes), Some(131_072));
    assert_eq!((requested.rate, requested.pacing), (None, None));
}

#[test]
fn what_the_snaplen_left_is_read() {
    let x = whole(40, false);
    let test = x.test();
    assert_eq!(states(test), STATES);
    let parameters = test.parameters.as_ref().unwrap();
    assert_eq!(parameters.json, json!({"tcp": true, "omit": 0, "time": 10}));
    assert_eq!(parameters.cut, Some(Cut::Snaplen));
    let results = test.results[1].as_ref().unwrap();
    assert_eq!(results.json, json!({"cpu_util_total": 1.5}));
    assert!(test.is_incomplete);
    // Without the cookie nothing is a test.
    assert!(whole(36, false).tests.of(7).is_none());
}

#[test]
fn states_go_on_after_missing_packets() {
    let x = whole(usize::MAX, true);
    let test = x.test();
    assert_eq!(states(test), STATES);
    assert_eq!((test.results[0].is_none(), test.results[1].is_some()), (true, true));
    assert!(test.is_incomplete);
}

#[test]
fn retransmissions_change_nothing() {
    let mut x = Conversation::new(usize::MAX);
    x.send(false, COOKIE, false);
    x.segment(true, 5000, &[9]);
    x.segment(true, 5000, &[9]);
    x.segment(true, 5000, &[9, 10]);
    x.next[1] = 5002;
    x.send(true, &[0xfe, 0, 0, 0, 120], false);
    x.send(true, &[0, 0, 0, 99], false);
    let test = x.test();
    let expected = [State::ParamExchange, State::CreateStreams, State::ServerError];
    assert_eq!(states(test), expected);
    assert_eq!(test.states[2].error, Some((120, 99)));
}

#[test]
fn data_after_a_cookie_is_no_test() {
    let mut x = Conversation::new(usize::MAX);
    x.send(false, COOKIE, false);
    x.send(false, b"0123456789", false);
    assert!(x.tests.of(7).is_none());
    assert_eq!(x.tests.cookie_of(7), Some(*COOKIE));
}

#[test]
fn kept_json_is_bounded() {
    let mut x = Conversation::new(usize::MAX);
    let long = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(20_000));
    for stream in 0..300 {
        (x.stream, x.next) = (stream, [1, 5000]);
        x.send(false, COOKIE, false);
        x.json(false, &long, false);
    }
    let kept = x.tests.iter().filter(|test| test.parameters.is_some()).count();
    assert_eq!(kept, (1 << 20) / long.len());
}

proptest! {
    #[test]
    fn anything_may_follow_a_cookie(
        parts in prop::collection::vec(
            (any::<bool>(), 0u32..8, prop::collection::vec(any::<u8>(), 1..50), 0usize..60),
            0..60,
        )
    ) {
        let mut x = Conversation::new(usize::MAX);
        x.send(false, COOKIE, false);
        for (from_server, skip, payload, snaplen) in parts {
            x.snaplen = snaplen;
            let at = &mut x.next[usize::from(from_server)];
            *at = at.wrapping_add(skip.saturating_sub(5));
            x.send(from_server, &payload, false);
        }
        prop_assert!(x.tests.iter().all(|test| test.states.len() <= 32));
    }
}
