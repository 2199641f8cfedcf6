//! Our endpoints against iperf 2, in both directions.

use crate::test_server::{TestServer, close, near, reports, run, sent, short, totals};
use iperf2::client::ClientConfig;
use iperf2::{Event, Iperf2Error};
use iperf2_proto::{Amount, Mode};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) const TESTS: [(&str, fn()); 8] = [
    ("our_client_sends_tcp_to_its_server", our_client_sends_tcp_to_its_server),
    ("our_client_sends_udp_to_its_server", our_client_sends_udp_to_its_server),
    ("its_server_sends_tcp_to_our_client", its_server_sends_tcp_to_our_client),
    ("its_server_sends_udp_to_our_client", its_server_sends_udp_to_our_client),
    ("its_client_sends_tcp_to_our_server", its_client_sends_tcp_to_our_server),
    ("its_client_sends_udp_to_our_server", its_client_sends_udp_to_our_server),
    ("our_server_sends_tcp_to_its_client", our_server_sends_tcp_to_its_client),
    ("our_server_sends_udp_to_its_client", our_server_sends_udp_to_its_client),
];

/// A line of `iperf -y C`.
#[derive(Debug, Clone)]
struct Line {
    from: f64,
    to: f64,
    bytes: u64,
    datagrams: Option<u64>,
}

fn line(text: &str) -> Option<Line> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let (from, to) = fields.get(6)?.split_once('-')?;
    let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
    Some(Line {
        from: from.parse().ok()?,
        to: to.parse().ok()?,
        bytes: number(7)?,
        datagrams: number(11),
    })
}

/// An iperf server, killed when dropped.
struct Iperf {
    child: Child,
    port: u16,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Iperf {
    fn server(udp: bool) -> Self {
        let port = stall_retry::free_port();
        let mut command = Command::new("iperf");
        command.args(["-s", "-B", "127.0.0.1", "-y", "C", "-p", &port.to_string()]);
        if udp {
            command.arg("-u");
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&lines);
        thread::spawn(move || {
            for text in output.lines().map_while(Result::ok) {
                log.lock().unwrap().extend(line(&text));
            }
        });
        // A UDP port cannot be probed: wait for its socket in /proc.
        let name = if udp { "udp" } else { "tcp" };
        let here = format!("0100007F:{port:04X}");
        for _ in 0..500 {
            let table = std::fs::read_to_string(format!("/proc/net/{name}")).unwrap();
            if table.contains(&here) {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        Iperf { child, port, lines }
    }

    /// Runs our client against it.
    fn test(&self, udp: bool, change: impl FnOnce(&mut ClientConfig)) -> Vec<Event> {
        let mut config = short(self.port, udp);
        change(&mut config);
        run(&config).unwrap()
    }

    /// Waits for so many of its lines.
    fn lines(&self, count: usize) -> Vec<Line> {
        for _ in 0..1000 {
            let lines = self.lines.lock().unwrap().clone();
            if lines.len() >= count {
                return lines;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("iperf -s printed {:?}", self.lines.lock().unwrap());
    }
}

impl Drop for Iperf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn its_sum(lines: &[Line]) -> u64 {
    lines.iter().map(|line| line.bytes).sum()
}

fn our_client_sends_tcp_to_its_server() {
    for (streams, amount) in [
        (1, Amount::Time(Duration::from_secs(1))),
        (4, Amount::Time(Duration::from_secs(1))),
        (1, Amount::Bytes(3_000_000)),
        (4, Amount::Bytes(1_000_000)),
    ] {
        let server = Iperf::server(false);
        let events = server.test(false, |config| {
            (config.streams, config.amount) = (streams, amount);
        });
        let ours: u64 = totals(&events).iter().map(|row| row.bytes).sum();
        let lines = server.lines(streams as usize);
        assert!(close(ours, its_sum(&lines)), "{streams} {amount:?}: {ours}, {lines:?}");
        if let Amount::Bytes(bytes) = amount {
            // Both endpoints count the header of 60 bytes.
            assert_eq!(ours, u64::from(streams) * (bytes + 60));
        }
    }
}

fn our_client_sends_udp_to_its_server() {
    for streams in [1, 2] {
        let server = Iperf::server(true);
        let events = server.test(true, |config| config.streams = streams);
        let (sent, reports) = (sent(&events), reports(&events));
        assert_eq!(reports.len(), streams as usize, "{events:?}");
        let lines = server.lines(streams as usize);
        // The reports arrive in the order in which the streams end.
        let (all, told): (u64, u64) =
            (sent.iter().sum(), reports.iter().map(|report| report.datagrams).sum());
        assert_eq!(all, told, "{events:?}");
        let bytes: u64 = reports.iter().map(|report| report.bytes).sum();
        assert_eq!(bytes, its_sum(&lines));
        let lost: u64 = reports.iter().map(|report| report.lost).sum();
        if lost == 0 {
            assert_eq!(bytes, all * 1470);
        }
        // 50 Mbit/s is 4252 datagrams a second.
        assert!(sent.iter().all(|&sent| near(sent, 4253)), "{sent:?}");
    }
}

fn its_server_sends_tcp_to_our_client() {
    for (mode, rows) in
        [(Mode::Reverse, 1), (Mode::FullDuplex, 2), (Mode::Dual, 2), (Mode::TradeOff, 2)]
    {
        let server = Iperf::server(false);
        let events = server.test(false, |config| config.mode = mode);
        let ours = totals(&events);
        assert_eq!(ours.len(), rows, "{mode:?}: {events:?}");
        let lines = server.lines(rows);
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        assert!(close(all, its_sum(&lines[..rows])), "{mode:?}: {ours:?}, {lines:?}");
        let received = ours.iter().find(|row| !row.sending).unwrap();
        assert!(near(received.bytes, 6_250_000), "{mode:?}: {received:?}");
    }
    // A used port cannot be opened for the reverse connection.
    let test_server = Iperf::server(false);
    let held = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let mut config = short(test_server.port, false);
    config.mode = Mode::TradeOff;
    config.listen_port = Some(held.local_addr().unwrap().port());
    assert!(matches!(run(&config), Err(Iperf2Error::Bind { .. })));
}

fn its_server_sends_udp_to_our_client() {
    for mode in [Mode::Reverse, Mode::FullDuplex, Mode::Dual, Mode::TradeOff] {
        let server = Iperf::server(true);
        let events = server.test(true, |config| config.mode = mode);
        let ours = totals(&events);
        let received = ours.iter().find(|row| !row.sending).unwrap();
        let counts = received.received.unwrap();
        assert!(near(counts.datagrams, 4253), "{mode:?}: {received:?}");
        assert_eq!(received.bytes, (counts.datagrams - counts.lost) * 1470, "{mode:?}");
    }
}

/// Runs an iperf client against our server; returns its totals.
fn iperf_client(test_server: &TestServer, options: &[&str]) -> Vec<Line> {
    let output = Command::new("iperf")
        .args(["-c", "127.0.0.1", "-y", "C", "-p", &test_server.address.port().to_string()])
        .args(options)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(line).filter(|line| line.from == 0.0 && line.to > 0.5).collect()
}

fn its_client_sends_tcp_to_our_server() {
    for options in [
        &["-t1", "-b50m", "-l16K"][..],
        &["-t1", "-b20m", "-l16K", "-P4"],
        &["-t1", "-b50m", "-l16K", "-X"],
        &["-t1", "-b50m", "-l16K", "-C"],
        &["-t1", "-b50m", "-l16K", "-w64K", "-N", "-M1000"],
        &["-t1"],
    ] {
        let test_server = TestServer::new(false);
        let lines = iperf_client(&test_server, options);
        let ours = test_server.totals(lines.len().max(1));
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        assert!(close(all, its_sum(&lines)), "{options:?}: {ours:?}, {lines:?}");
    }
}

fn its_client_sends_udp_to_our_server() {
    let test_server = TestServer::new(true);
    let port = test_server.address.port().to_string();
    let output = Command::new("iperf")
        .args(["-c", "127.0.0.1", "-u", "-b50m", "-t1", "-p", &port])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ours = test_server.totals(1)[0];
    let counts = ours.received.unwrap();
    assert!(text.contains("Server Report:"), "{text}");
    let told = format!("{}/{} (", counts.lost, counts.datagrams);
    assert!(text.contains(&told), "{told}: {text}");
    assert!(near(counts.datagrams, 4253), "{counts:?}");
    assert_eq!(ours.bytes, (counts.datagrams - counts.lost) * 1470);
    // Two at a time: each gets its own report.
    let lines = iperf_client(&test_server, &["-u", "-b20m", "-t1", "-P2"]);
    let rows = test_server.totals(3);
    assert!(close(its_sum(&lines), rows[1..].iter().map(|row| row.bytes).sum()), "{lines:?}");
}

fn our_server_sends_tcp_to_its_client() {
    for (option, rows) in [("-R", 1), ("--full-duplex", 2), ("-d", 2), ("-r", 2)] {
        let test_server = TestServer::new(false);
        let listen = stall_retry::free_port().to_string();
        let lines = iperf_client(&test_server, &["-t1", "-b50m", "-l16K", option, "-L", &listen]);
        let ours = test_server.totals(rows);
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        // -d and --full-duplex print a sum as well.
        let theirs = its_sum(&lines[..rows.min(lines.len())]);
        assert!(close(all, theirs), "{option}: {ours:?}, {lines:?}");
        let sent = ours.iter().find(|row| row.sending).unwrap();
        assert!(near(sent.bytes, 6_250_000), "{option}: {sent:?}");
    }
}

fn our_server_sends_udp_to_its_client() {
    for option in ["-R", "--full-duplex", "-d", "-r"] {
        let test_server = TestServer::new(true);
        let listen = stall_retry::free_port().to_string();
        let lines = iperf_client(&test_server, &["-u", "-t1", "-b50m", option, "-L", &listen]);
        let rows = if option == "-R" { 1 } else { 2 };
        let ours = test_server.totals(rows);
        let sent = ours.iter().find(|row| row.sending).unwrap();
        assert!(near(sent.bytes / 1470, 4253), "{option}: {sent:?}");
        // It counts what we sent, by sequence numbers: also what its socket had no room for.
        let counted: Vec<u64> = lines.iter().filter_map(|line| line.datagrams).collect();
        assert!(
            counted.iter().any(|&count| close(count, sent.bytes / 1470)),
            "{option}: {lines:?}"
        );
    }
}
