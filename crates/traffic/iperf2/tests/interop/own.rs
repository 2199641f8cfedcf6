//! Our client against our server, and invalid clients.

use crate::test_server::{TestServer, close, datagram, reports, run, sent, totals};
use host::stop::StopFlag;
use iperf2::server::Trust;
use iperf2::{Event, client};
use iperf2_proto::{Amount, ClientHeader, Datagram, Mode, report};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

pub(crate) const TESTS: [(&str, fn()); 9] = [
    ("our_endpoints_agree_over_tcp", our_endpoints_agree_over_tcp),
    ("our_endpoints_agree_over_udp", our_endpoints_agree_over_udp),
    (
        "streams_and_sums_are_reported_at_each_interval",
        streams_and_sums_are_reported_at_each_interval,
    ),
    ("invalid_clients_do_not_stop_the_server", invalid_clients_do_not_stop_the_server),
    ("unsupported_tests_are_refused_by_name", unsupported_tests_are_refused_by_name),
    ("reports_never_exceed_what_was_received", reports_never_exceed_what_was_received),
    ("a_reverse_port_that_opens_late_is_found", a_reverse_port_that_opens_late_is_found),
    (
        "untrusted_addresses_get_at_most_what_they_sent",
        untrusted_addresses_get_at_most_what_they_sent,
    ),
    ("a_stopped_test_reports_its_totals", a_stopped_test_reports_its_totals),
];

fn our_endpoints_agree_over_tcp() {
    for (mode, streams, rows) in [
        (Mode::Normal, 1, 1),
        (Mode::Normal, 3, 3),
        (Mode::Reverse, 2, 2),
        (Mode::FullDuplex, 1, 2),
        (Mode::Dual, 2, 4),
        (Mode::TradeOff, 1, 2),
    ] {
        let server = TestServer::new(false);
        let mut config = server.config(false);
        (config.mode, config.streams, config.amount) = (mode, streams, Amount::Bytes(1_000_000));
        let ours = totals(&run(&config).unwrap());
        let theirs = server.totals(rows);
        assert_eq!((ours.len(), theirs.len()), (rows, rows), "{mode:?}");
        let sum = |rows: &[iperf2::IntervalReport]| rows.iter().map(|row| row.bytes).sum::<u64>();
        assert!(close(sum(&ours), sum(&theirs)), "{mode:?}: {ours:?}, {theirs:?}");
        assert!(close(sum(&ours), rows as u64 * 1_000_000), "{mode:?}: {ours:?}");
    }
}

fn our_endpoints_agree_over_udp() {
    for mode in [Mode::Normal, Mode::Reverse, Mode::FullDuplex, Mode::Dual, Mode::TradeOff] {
        let server = TestServer::new(true);
        let mut config = server.config(true);
        (config.mode, config.amount) = (mode, Amount::Bytes(1470 * 999));
        let events = run(&config).unwrap();
        for row in totals(&events).iter().filter(|row| !row.sending) {
            let counts = row.received.unwrap();
            assert_eq!(counts.datagrams, 1000, "{mode:?}");
        }
        if mode == Mode::Normal {
            let (sent, report) = (sent(&events)[0], reports(&events)[0]);
            assert_eq!((sent, report.datagrams), (1000, 1000));
            assert_eq!(report.bytes, (1000 - report.lost) * 1470);
        }
    }
}

fn streams_and_sums_are_reported_at_each_interval() {
    let server = TestServer::new(false);
    let mut config = server.config(false);
    (config.streams, config.interval) = (2, Some(Duration::from_millis(250)));
    let events = run(&config).unwrap();
    let rows: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Interval(row) => Some(row),
            _ => None,
        })
        .collect();
    let count = |sum: bool, whole: bool| {
        rows.iter().filter(|row| row.label.is_none() == sum && row.whole == whole).count()
    };
    assert_eq!((count(false, true), count(true, true)), (2, 1));
    assert!(count(false, false) >= 8 && count(true, false) >= 4, "{rows:?}");
    let bytes = |whole: bool, sum: bool| -> u64 {
        rows.iter()
            .filter(|row| row.whole == whole && row.label.is_none() == sum)
            .map(|row| row.bytes)
            .sum()
    };
    assert_eq!(bytes(true, false), bytes(true, true), "the sum is that of its streams");
}

fn invalid_clients_do_not_stop_the_server() {
    let server = TestServer::with(false, |config| {
        config.limits.header_timeout = Duration::from_millis(200);
        config.limits.idle_timeout = Duration::from_millis(500);
        config.limits.streams = 8;
        config.limits.streams_per_address = Some(8);
    });
    let header = ClientHeader {
        mode: Mode::Dual,
        streams: u32::MAX,
        port: u32::MAX,
        length: u32::MAX,
        amount: Amount::Bytes(1 << 30),
        rate_bps: 1 << 55,
        tos: 255,
        acknowledged: true,
        no_report: true,
    };
    let random: Vec<u8> =
        (0..5000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for bytes in [
        &[][..],
        &[0x40],
        &header.encode()[..30],
        &header.encode(),
        &random,
        &[0xff; 300],
        &[0x40, 1, 0, 0x78],
    ] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(bytes).unwrap();
        // Some close, some stay idle.
        if bytes.len() % 2 == 0 {
            drop(stream);
        } else {
            std::mem::forget(stream);
        }
    }
    // The clients above may still hold all slots, one of them two, and a client is then
    // refused. All slots become free again: incomplete headers and idle clients time out.
    let reversed = ClientHeader { mode: Mode::Reverse, ..header };
    until_served(&server, || {
        let mut stream = TcpStream::connect(server.address)?;
        stream.write_all(&reversed.encode())?;
        stream.read_exact(&mut [0; 1000])
    });
    until_served(&server, || {
        let events = run(&server.config(false)).map_err(io::Error::other)?;
        match totals(&events).first() {
            Some(row) if row.bytes > 1_000_000 => Ok(()),
            row => Err(io::Error::other(format!("{row:?}"))),
        }
    });
}

/// Repeats a client until the server serves it.
fn until_served(server: &TestServer, client: impl Fn() -> io::Result<()>) {
    let mut last = None;
    for _ in 0..200 {
        match client() {
            Ok(()) => return,
            Err(error) => last = Some(error),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{last:?}; events: {:?}", server.events());
}

fn unsupported_tests_are_refused_by_name() {
    let server = TestServer::new(false);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(&[0, 0x80, 0, 0]).unwrap();
    assert!(server.peer_error().contains("--bounceback"));
    assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0, "nothing is sent");
    server.serves(false);
}

/// Resident memory, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The memory is that of the process: nothing may run beside it.
pub(crate) fn garbage_datagrams_take_no_memory() {
    let server = TestServer::new(true);
    let before = resident();
    for round in 0..1000u32 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut bytes = vec![0; 1 + round as usize];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = (round.wrapping_mul(2_654_435_761).wrapping_add(at as u32) >> 7) as u8;
        }
        // Every second one is a valid first datagram.
        if round % 2 == 0 {
            let first = Datagram { number: 1, last: false, sent: Duration::ZERO };
            first.encode(&mut bytes);
        }
        socket.send_to(&bytes, server.address).unwrap();
    }
    server.serves(true);
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more");
    let streams = server.events().iter().filter(|e| matches!(e, Event::Connected { .. })).count();
    assert!(streams < 100, "{streams} streams were accepted");
}

/// Bytes received until 500 ms pass without a datagram.
fn received_bytes(socket: &UdpSocket) -> usize {
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut buffer = [0; 2048];
    let mut all = 0;
    while let Ok(length) = socket.recv(&mut buffer) {
        all += length;
    }
    all
}

fn reports_never_exceed_what_was_received() {
    let server = TestServer::new(true);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    // A last datagram alone is late traffic of an ended test.
    for _ in 0..10 {
        socket.send(&datagram(5, true, None, 1470)).unwrap();
    }
    assert_eq!(received_bytes(&socket), 0);
    let mut sent = 0;
    for number in 1..4 {
        sent += socket.send(&datagram(number, number == 3, None, 20)).unwrap();
    }
    assert_eq!(received_bytes(&socket), 0, "60 bytes do not pay for a report of 128");
    for _ in 0..100 {
        sent += socket.send(&datagram(3, true, None, 20)).unwrap();
    }
    let came = received_bytes(&socket);
    assert!(came > 0 && came <= sent && came <= 10 * report::LENGTH, "{came} for {sent}");
}

fn untrusted_addresses_get_at_most_what_they_sent() {
    let server = TestServer::with(true, |config| config.limits.trust = Trust::None);
    let header = |mode, port: u16| ClientHeader {
        mode,
        streams: 1,
        port: port.into(),
        length: 0,
        amount: Amount::Time(Duration::from_secs(1)),
        rate_bps: 100_000_000,
        tos: 0,
        acknowledged: false,
        no_report: true,
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket.send(&datagram(1, false, Some(&header(Mode::Reverse, 5001)), 1470)).unwrap();
    assert!(server.peer_error().contains("‹trust_udp›"));
    assert_eq!(received_bytes(&socket), 0);
    // Full duplex: as much as was received.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    let asked = header(Mode::FullDuplex, 5001);
    let mut sent = 0;
    for number in 1..=5 {
        sent += socket.send(&datagram(number, false, Some(&asked), 1470)).unwrap();
    }
    let came = received_bytes(&socket);
    assert!(came > 0 && came <= sent, "{came} for {sent}");
    // Dual: to another port of the same address.
    let other = UdpSocket::bind(("127.0.0.1", stall_retry::free_port())).unwrap();
    let asked = header(Mode::Dual, other.local_addr().unwrap().port());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    let sent = socket.send(&datagram(1, false, Some(&asked), 1470)).unwrap();
    assert!(received_bytes(&other) <= sent);
}

fn a_reverse_port_that_opens_late_is_found() {
    let server = TestServer::new(false);
    let port = stall_retry::free_port();
    let asked = ClientHeader {
        mode: Mode::Dual,
        streams: 1,
        port: port.into(),
        length: 1000,
        amount: Amount::Bytes(10_000),
        rate_bps: 0,
        tos: 0,
        acknowledged: false,
        no_report: false,
    };
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(&asked.encode()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (mut back, _) = listener.accept().unwrap();
    let mut came = Vec::new();
    back.read_to_end(&mut came).unwrap();
    assert!(came.len() >= 10_000, "{}", came.len());
}

fn a_stopped_test_reports_its_totals() {
    let server = TestServer::new(false);
    let mut config = server.config(false);
    config.amount = Amount::Time(Duration::from_secs(600));
    config.interval = Some(Duration::from_millis(100));
    let (stop, rows) = (StopFlag::new(), std::sync::Mutex::new(Vec::new()));
    let tell = |event| {
        if let Event::Interval(row) = event {
            stop.raise();
            rows.lock().unwrap().push(row);
        }
    };
    client::run(&config, &tell, &stop).unwrap();
    let rows = rows.into_inner().unwrap();
    assert!(rows.last().unwrap().whole && rows.last().unwrap().bytes > 0);
    assert_eq!(server.totals(1)[0].bytes, rows.last().unwrap().bytes);
}
