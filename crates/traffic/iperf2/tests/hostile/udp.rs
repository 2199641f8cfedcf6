//! Datagrams with forged sources to an iperf 2 server: no address is sent more than was
//! received from it, and idle streams occupy no slot or thread.

use crate::network::{
    SERVER, TestServer, address, address_v6, alone_in_a_network, client, connected, datagram,
    header, in_a_network, run, totals, until,
};
use host::clock;
use iperf2::Event;
use iperf2::client::ClientConfig;
use iperf2_proto::{Amount, Datagram, Mode, ServerReport};
use std::cell::Cell;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

const MODES: [Mode; 5] =
    [Mode::Normal, Mode::TradeOff, Mode::Dual, Mode::Reverse, Mode::FullDuplex];

const HOUR: Amount = Amount::Time(Duration::from_secs(3600));

fn server(change: impl FnOnce(&mut iperf2::server::ServerConfig)) -> TestServer {
    TestServer::with(true, |config| {
        config.bind = Some((SERVER, 0).into());
        change(config);
    })
}

/// A count of datagrams and bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Traffic {
    datagrams: usize,
    bytes: usize,
}

impl Traffic {
    fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes;
    }
}

/// What any of the sockets receives within 2 s; the server's timers expire within 1.3 s.
fn received(sockets: &[UdpSocket]) -> Traffic {
    let mut traffic = Traffic::default();
    let mut buffer = vec![0; 65_536];
    for socket in sockets {
        socket.set_nonblocking(true).unwrap();
    }
    for _ in 0..200 {
        for socket in sockets {
            while let Ok(bytes) = socket.recv(&mut buffer) {
                traffic.add(bytes);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    traffic
}

/// A reflection attack in 40 bytes: sequence number 1, flags (version 1, run now, header
/// of 24 bytes), a port, a length of 65,507, 10 ms.
fn reflected(port: u16) -> [u8; 40] {
    let mut bytes = [0; 40];
    Datagram { number: 1, last: false, sent: Duration::ZERO }.encode(&mut bytes);
    let words = [0x8001_0031, 1, port.into(), 65_507, 0, u32::MAX];
    for (at, word) in words.into_iter().enumerate() {
        bytes[16 + 4 * at..20 + 4 * at].copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[test]
fn a_single_datagram_gets_no_reply() {
    in_a_network(|| {
        let test_server = server(|_| ());
        let victim = UdpSocket::bind((address(2), 0)).unwrap();
        let port = victim.local_addr().unwrap().port();
        let mut sockets = vec![victim];
        let mut send = |bytes: &[u8], times: usize| {
            let socket = UdpSocket::bind((address(2), 0)).unwrap();
            for _ in 0..times {
                socket.send_to(bytes, test_server.address).unwrap();
            }
            sockets.push(socket);
        };
        send(&reflected(port), 1);
        for mode in MODES {
            for amount in [Amount::Time(Duration::from_millis(10)), Amount::Bytes(0), HOUR] {
                let request = header(mode, port, 16, amount);
                send(&datagram(1, false, Some(&request), 1470), 1);
                // A last datagram never starts a stream.
                send(&datagram(1, true, Some(&request), 1470), 3);
            }
        }
        assert_eq!(received(&sockets), Traffic::default());
        assert_eq!(connected(&test_server), 0, "a stream starts with its second datagram");
    });
}

#[test]
fn an_address_gets_at_most_what_it_sent() {
    in_a_network(|| {
        let test_server = server(|_| ());
        let victim = UdpSocket::bind((address(2), 0)).unwrap();
        let port = victim.local_addr().unwrap().port();
        let (mut sockets, mut sent) = (vec![victim], Traffic::default());
        for mode in MODES {
            for (length, amount, size) in [
                (16, HOUR, 1470),
                (65_507, Amount::Time(Duration::from_millis(10)), 76),
                (0, Amount::Bytes(i32::MAX.unsigned_abs().into()), 1470),
            ] {
                let socket = UdpSocket::bind((address(2), 0)).unwrap();
                socket.connect(test_server.address).unwrap();
                let request = header(mode, port, length, amount);
                // Then the last one repeatedly, which requests the report again.
                for number in 1..=20 {
                    let bytes = datagram(number.min(8), number >= 8, Some(&request), size);
                    sent.add(socket.send(&bytes).unwrap());
                }
                sockets.push(socket);
            }
        }
        let got = received(&sockets);
        assert!(got.datagrams > 0, "reports at least");
        assert!(got.bytes <= sent.bytes && got.datagrams <= sent.datagrams, "{got:?} for {sent:?}");
    });
}

/// The number of stream threads in the calling thread's network namespace, and how often
/// they have slept.
fn threads() -> (usize, u64) {
    let network = std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let (mut count, mut sleeps) = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let here = std::fs::read_link(task.join("ns/net")).is_ok_and(|net| net == network);
        if !here {
            continue;
        }
        count += 1;
        let status = std::fs::read_to_string(task.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sleeps += line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    (usize::saturating_sub(count, 2), sleeps)
}

#[test]
fn streams_that_stop_growing_end_with_their_threads() {
    in_a_network(|| {
        let test_server = server(|config| {
            config.limits.streams = 16;
            config.limits.idle_timeout = Duration::from_secs(2);
        });
        let request = header(Mode::FullDuplex, 5001, 1470, HOUR);
        for number in 0..16 {
            let socket = UdpSocket::bind((address(2 + number), 0)).unwrap();
            for number in 1..=2 {
                let bytes = datagram(number, false, Some(&request), 80);
                socket.send_to(&bytes, test_server.address).unwrap();
            }
        }
        until("a thread for each stream", || threads().0 == 16);
        // Each has credit for less than a datagram and must sleep.
        let (begun, (_, before)) = (clock::now(), threads());
        thread::sleep(Duration::from_millis(300));
        let ((count, after), lasted) = (threads(), begun.elapsed());
        let each = after.saturating_sub(before) / count.max(1) as u64;
        // 30 in 300 ms, and more where the machine made the sleep longer.
        let most = u64::try_from(lasted.as_millis()).unwrap() / 10;
        assert!(each < most, "each thread woke {each} times in {lasted:?}");
        until("their end", || threads().0 == 0);
        let config =
            ClientConfig { mode: Mode::FullDuplex, ..client(&test_server, address(40), true) };
        let rows = totals(&run(&config).unwrap());
        assert!(rows.iter().all(|row| row.bytes > 0), "{rows:?}");
    });
}

/// Sends short streams until a report arrives.
fn report(test_server: &TestServer, from: IpAddr) -> ServerReport {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.connect(test_server.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut buffer = [0; 2048];
    for _ in 0..300 {
        for number in 1..=3 {
            socket.send(&datagram(number, number == 3, None, 200)).unwrap();
        }
        if let Ok(length) = socket.recv(&mut buffer) {
            return ServerReport::decode(&buffer[..length]).unwrap();
        }
    }
    panic!("no report: {:?}", test_server.events());
}

#[test]
fn idle_streams_are_evicted() {
    in_a_network(|| {
        let test_server = server(|config| {
            config.limits.streams = 4;
            config.limits.idle_timeout = Duration::from_secs(600);
        });
        let request = header(Mode::FullDuplex, 5001, 1470, HOUR);
        for number in 0..4 {
            let socket = UdpSocket::bind((address(2 + number), 0)).unwrap();
            for number in 1..=2 {
                let bytes = datagram(number, false, Some(&request), 80);
                socket.send_to(&bytes, test_server.address).unwrap();
            }
        }
        until("four reverse streams", || threads().0 == 4);
        assert_eq!(report(&test_server, address(40)).datagrams, 3);
        until("the end of a thread", || threads().0 < 4);
    });
}

#[test]
fn ended_streams_of_one_address_take_no_report_of_another() {
    // A report is kept for 3 s.
    stall_retry::retry(|| {
        in_a_network(|| {
            let test_server = server(|config| config.limits.streams = 8);
            let stream = |from: IpAddr| {
                let socket = UdpSocket::bind((from, 0)).unwrap();
                socket.connect(test_server.address).unwrap();
                socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
                for number in 1..=3 {
                    socket.send(&datagram(number, number == 3, None, 600)).unwrap();
                }
                assert!(socket.recv(&mut [0; 2048]).is_ok(), "no report");
                socket
            };
            let client = stream(address(80));
            // More than the server keeps: 256 and those that may be active.
            (0..300).for_each(|_| drop(stream(address(2))));
            client.send(&datagram(3, true, None, 600)).unwrap();
            assert!(client.recv(&mut [0; 2048]).is_ok(), "its report is gone");
        });
    });
}

/// Resident memory, KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_first_datagrams_evicts_no_client() {
    // Its memory is that of the process.
    alone_in_a_network(|| {
        let test_server = server(|_| ());
        let client = UdpSocket::bind((address(80), 0)).unwrap();
        client.connect(test_server.address).unwrap();
        // Its length shows in the report whether it was counted.
        client.send(&datagram(1, false, None, 201)).unwrap();
        let before = resident();
        let request = header(Mode::Dual, 5001, 65_507, HOUR);
        let bytes = datagram(1, false, Some(&request), 76);
        for _ in 0..200 {
            for number in 2..52 {
                let socket = UdpSocket::bind((address(number), 0)).unwrap();
                socket.send_to(&bytes, test_server.address).unwrap();
            }
        }
        let port = client.local_addr().unwrap().port();
        let is_ours =
            |event: &Event| matches!(event, Event::Connected { peer, .. } if peer.port() == port);
        until("the client's stream", || {
            client.send(&datagram(2, false, None, 200)).unwrap();
            test_server.events().iter().any(is_ours)
        });
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let received = Cell::new(None);
        until("its report", || {
            client.send(&datagram(3, true, None, 200)).unwrap();
            let mut buffer = [0; 2048];
            received.set(client.recv(&mut buffer).ok().map(|length| (buffer, length)));
            received.get().is_some()
        });
        let (buffer, length) = received.get().unwrap();
        let report = ServerReport::decode(&buffer[..length]).unwrap();
        assert_eq!((report.bytes % 200, report.datagrams), (1, 3), "{report:?}");
        let grown = resident().saturating_sub(before);
        assert!(grown < 16 * 1024, "{grown} KiB more");
    });
}

#[test]
fn an_ipv6_prefix_is_one_address() {
    in_a_network(|| {
        let test_server = server(|config| {
            config.bind = Some((address_v6(1, 1), 0).into());
            config.limits.streams = 8;
        });
        let mut sockets = Vec::new();
        for number in 1..=8 {
            let socket = UdpSocket::bind((address_v6(2, number), 0)).unwrap();
            for number in 1..=2 {
                socket.send_to(&datagram(number, false, None, 100), test_server.address).unwrap();
            }
            sockets.push(socket);
        }
        assert!(test_server.peer_error().contains("fd00:9:0:2::/64"));
        assert_eq!(connected(&test_server), 4, "half of all");
        assert_eq!(report(&test_server, address_v6(1, 2)).lost, 0);
    });
}

#[test]
fn a_client_that_sends_as_much_gets_its_data() {
    // Both directions run in real time.
    stall_retry::retry(|| {
        in_a_network(|| {
            let test_server = server(|_| ());
            for mode in [Mode::FullDuplex, Mode::Dual, Mode::TradeOff] {
                let amount = Amount::Bytes(1470 * 200);
                let config =
                    ClientConfig { mode, amount, ..client(&test_server, address(2), true) };
                let rows = totals(&run(&config).unwrap());
                let got: u64 = rows.iter().filter(|row| !row.sending).map(|row| row.bytes).sum();
                assert!(got >= 1470 * 180, "{mode:?}: {got}");
            }
        });
    });
}
