//! iperf3's control connections.

use crate::packets::{columns, ipv4, passing, show_all};
use proptest::prelude::*;

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";
const SYN: u8 = 2;
const DATA: u8 = 24;

/// A connection's segments: each from the client or not, with its flags and payload.
struct Connection {
    ports: [u16; 2],
    next: [u32; 2],
    frames: Vec<Vec<u8>>,
}

impl Connection {
    fn new(ports: [u16; 2]) -> Self {
        let mut it = Connection { ports, next: [1000, 5000], frames: Vec::new() };
        it.send(true, SYN, &[]);
        it.send(false, SYN | 16, &[]);
        it
    }

    fn send(&mut self, is_client: bool, flags: u8, payload: &[u8]) {
        let [client, server] = self.ports;
        let (ports, from, to) =
            if is_client { ([client, server], 0, 1) } else { ([server, client], 1, 0) };
        let mut segment = ports.map(u16::to_be_bytes).concat();
        segment.extend(self.next[from].to_be_bytes());
        segment.extend(self.next[to].to_be_bytes());
        segment.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        segment.extend(payload);
        self.next[from] += payload.len() as u32 + u32::from(flags & SYN != 0);
        self.frames.push(ipv4(6, 1 + from as u8, &segment));
    }

    fn client(&mut self, payload: &[u8]) {
        self.send(true, DATA, payload);
    }

    fn server(&mut self, payload: &[u8]) {
        self.send(false, DATA, payload);
    }
}

fn json(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// A test from the cookie to its end: 14 packets, the first two without a payload.
fn control_connection(ports: [u16; 2]) -> Connection {
    let mut it = Connection::new(ports);
    it.client(COOKIE);
    it.server(&[9]);
    // The length in a segment of its own, as iperf3 sends it.
    it.client(&json("{\"tcp\":true}")[..4]);
    it.client(&json("{\"tcp\":true}")[4..]);
    it.server(&[10]);
    it.server(&[1, 2]);
    it.client(&[4]);
    it.server(&[13]);
    it.client(&json("{\"streams\":[]}"));
    it.server(&[json("{\"streams\":[1]}"), vec![14]].concat());
    it.client(&[16]);
    it.client(&[]);
    it
}

#[test]
fn an_iperf3_test_is_recognised_on_any_port() {
    for ports in [[40_000, 5201], [40_000, 40_001], [5201, 443]] {
        let frames = control_connection(ports).frames;
        assert_eq!(frames.len(), 14);
        assert_eq!(passing(&frames, "iperf3"), (3..=13).collect::<Vec<u64>>(), "{ports:?}");
        assert_eq!(passing(&frames, "tls"), [0; 0]);
        assert_eq!(passing(&frames, "iperf3.cookie contains \"abc\""), [3]);
        assert_eq!(passing(&frames, "iperf3.state == PARAM_EXCHANGE"), [4]);
        assert_eq!(passing(&frames, "iperf3.state == TEST_RUNNING"), [8]);
        assert_eq!(passing(&frames, "iperf3.state in {4, 14, 16}"), [9, 12, 13]);
        assert_eq!(passing(&frames, "iperf3.length > 12"), [11, 12]);
        assert_eq!(
            passing(&frames, "frame.protocols == \"eth:ethertype:ip:tcp:iperf3\"").len(),
            11
        );
        let columns = columns(&frames);
        let info: Vec<&str> = columns[2..13].iter().map(|(_, info)| info.as_str()).collect();
        assert_eq!(
            info,
            [
                "cookie abcdefghijklmnopqrstuvwxyz2345672345",
                "PARAM_EXCHANGE",
                "JSON, 12 bytes",
                "JSON, continued",
                "CREATE_STREAMS",
                "TEST_START, TEST_RUNNING",
                "TEST_END",
                "EXCHANGE_RESULTS",
                "JSON, 14 bytes",
                "JSON, 15 bytes, DISPLAY_RESULTS",
                "IPERF_DONE",
            ]
        );
        assert!(columns[2..13].iter().all(|(protocol, _)| *protocol == "iperf3"));
        assert_eq!([columns[1].0, columns[13].0], ["TCP"; 2]);
    }
}

#[test]
fn refusals_are_recognised() {
    let mut busy = Connection::new([40_000, 5201]);
    busy.client(COOKIE);
    busy.server(&[0xff]);
    assert_eq!(passing(&busy.frames, "iperf3.state == ACCESS_DENIED"), [4]);
    assert_eq!(passing(&busy.frames, "iperf3.state == -1"), [4]);
    let mut error = Connection::new([40_000, 5201]);
    error.client(COOKIE);
    error.server(&[9]);
    error.client(&json("{}"));
    error.server(&[0xfe]);
    error.server(&[0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(passing(&error.frames, "iperf3.state == SERVER_ERROR"), [6]);
    assert_eq!(columns(&error.frames)[6], ("iperf3", "error numbers".to_owned()));
}

/// Data, another protocol on the port, and what cannot be known have no name.
#[test]
fn what_is_uncertain_has_no_name() {
    let named = |connection: &Connection| passing(&connection.frames, "iperf3");
    // A stream of data has the cookie, and nothing after it, whatever its first byte is.
    for (is_client, first) in [(true, b'0'), (true, 9), (true, 12), (false, b'0'), (false, 9)] {
        let mut data = Connection::new([40_000, 5201]);
        data.client(COOKIE);
        data.send(is_client, DATA, &[first, 0x80, 3, 4]);
        data.send(is_client, DATA, &[9]);
        data.send(is_client, DATA, &[10]);
        assert_eq!(named(&data), [3], "{is_client} {first}");
    }
    // The port without the cookie; the cookie with more or less; one that is none.
    for first in [&[9][..], b"GET / HTTP/1.1\r\n\r\n", &COOKIE[..36], &[b'0'; 37]] {
        let mut other = Connection::new([40_000, 5201]);
        other.client(first);
        other.server(&[9]);
        other.client(COOKIE);
        other.server(&[9]);
        assert_eq!(named(&other), [0; 0], "{first:?}");
    }
    let mut longer = Connection::new([40_000, 5201]);
    longer.client(&[&COOKIE[..], b"x"].concat());
    assert_eq!(named(&longer), [0; 0]);
    // The server begins, or the beginning is not in the capture.
    let mut server_first = Connection::new([40_000, 5201]);
    server_first.server(b"220 ready\r\n");
    server_first.client(COOKIE);
    assert_eq!(named(&server_first), [0; 0]);
    let mut whole = control_connection([40_000, 5201]);
    whole.frames.drain(..2);
    assert_eq!(named(&whole), [0; 0]);
    // States out of order, and lengths that cannot be.
    let mut disordered = Connection::new([40_000, 5201]);
    disordered.client(COOKIE);
    disordered.server(&[1]);
    disordered.server(&[2]);
    assert_eq!(named(&disordered), [3]);
    let mut long = Connection::new([40_000, 5201]);
    long.client(COOKIE);
    long.server(&[9]);
    long.client(&[0x7f, 0xff, 0xff, 0xff]);
    long.server(&[10]);
    assert_eq!(named(&long), [3, 4]);
}

#[test]
fn gaps_and_repetitions() {
    // A retransmitted state is no second one.
    let mut frames = control_connection([40_000, 5201]).frames;
    let repeated = frames[3].clone();
    frames.insert(4, repeated);
    assert_eq!(passing(&frames, "iperf3.state == PARAM_EXCHANGE"), [4]);
    assert_eq!(passing(&frames, "iperf3").len(), 11);
    // Without JSON that was not captured, the rest is known; without a state, it is not.
    let mut frames = control_connection([40_000, 5201]).frames;
    frames.remove(5);
    assert_eq!(passing(&frames, "iperf3").len(), 10);
    let mut frames = control_connection([40_000, 5201]).frames;
    frames.remove(6);
    assert_eq!(passing(&frames, "iperf3"), [3, 4, 5, 6]);
}

proptest! {
    #[test]
    fn any_segments_after_a_cookie_are_shown(segments in prop::collection::vec((any::<bool>(), prop::collection::vec(prop_oneof![0_u8..17, any::<u8>()], 0..12), -3_i32..3), 0..20)) {
        let mut it = Connection::new([40_000, 5201]);
        it.client(COOKIE);
        it.server(&[9]);
        for (is_client, payload, gap) in segments {
            let side = usize::from(!is_client);
            it.next[side] = it.next[side].wrapping_add(gap.cast_unsigned());
            it.send(is_client, DATA, &payload);
        }
        show_all(&it.frames);
    }
}
