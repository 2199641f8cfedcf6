//! Our ends against a real iperf 2, both ways.

use crate::ground::{Ground, close, free_port, near, reports, run, sent, short, totals};
use iperf2::{Amount, Mode};
use probe::iperf2::client::ClientConfig;
use probe::iperf2::{Event, Iperf2Error};
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

/// A row of its `-y C`.
#[derive(Debug, Clone)]
struct Line {
    from: f64,
    to: f64,
    bytes: u64,
    datagrams: Option<u64>,
    lost: Option<u64>,
}

fn line(text: &str) -> Option<Line> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    let (from, to) = fields.get(6)?.split_once('-')?;
    let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
    Some(Line {
        from: from.parse().ok()?,
        to: to.parse().ok()?,
        bytes: number(7)?,
        lost: number(10),
        datagrams: number(11),
    })
}

/// A real server that prints rows, killed when dropped.
struct Iperf {
    child: Child,
    port: u16,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Iperf {
    fn server(udp: bool) -> Self {
        let port = free_port(udp);
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
        // UDP has no connection that could be refused: its socket shows in /proc.
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

    /// A test of ours against it.
    fn test(&self, udp: bool, change: impl FnOnce(&mut ClientConfig)) -> Vec<Event> {
        let mut config = short(self.port, udp);
        change(&mut config);
        run(&config).unwrap()
    }

    /// Waits for so many of its rows.
    fn told(&self, count: usize) -> Vec<Line> {
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
        let lines = server.told(streams as usize);
        assert!(close(ours, its_sum(&lines)), "{streams} {amount:?}: {ours}, {lines:?}");
        if let Amount::Bytes(bytes) = amount {
            // The header of 60 bytes counts at both ends.
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
        let lines = server.told(streams as usize);
        // The reports come in the order of the streams' ends.
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
        let lines = server.told(rows);
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        assert!(close(all, its_sum(&lines[..rows])), "{mode:?}: {ours:?}, {lines:?}");
        let received = ours.iter().find(|row| !row.sending).unwrap();
        assert!(near(received.bytes, 6_250_000), "{mode:?}: {received:?}");
    }
    // Without a port that it can reach there is no way back.
    let ground = Iperf::server(false);
    let held = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let mut config = short(ground.port, false);
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

/// A real client against our server; its rows of whole tests.
fn iperf_client(ground: &Ground, options: &[&str]) -> Vec<Line> {
    let output = Command::new("iperf")
        .args(["-c", "127.0.0.1", "-y", "C", "-p", &ground.address.port().to_string()])
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
        let ground = Ground::new(false);
        let lines = iperf_client(&ground, options);
        let ours = ground.totals(lines.len().max(1));
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        assert!(close(all, its_sum(&lines)), "{options:?}: {ours:?}, {lines:?}");
    }
}

fn its_client_sends_udp_to_our_server() {
    let ground = Ground::new(true);
    let port = ground.address.port().to_string();
    let output = Command::new("iperf")
        .args(["-c", "127.0.0.1", "-u", "-b50m", "-t1", "-p", &port])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let ours = ground.totals(1)[0];
    let counts = ours.received.unwrap();
    assert!(text.contains("Server Report:"), "{text}");
    let told = format!("{}/{} (", counts.lost, counts.datagrams);
    assert!(text.contains(&told), "{told}: {text}");
    assert!(near(counts.datagrams, 4253), "{counts:?}");
    assert_eq!(ours.bytes, (counts.datagrams - counts.lost) * 1470);
    // Two at a time: each gets the report of its own.
    let lines = iperf_client(&ground, &["-u", "-b20m", "-t1", "-P2"]);
    let rows = ground.totals(3);
    assert!(close(its_sum(&lines), rows[1..].iter().map(|row| row.bytes).sum()), "{lines:?}");
}

fn our_server_sends_tcp_to_its_client() {
    for (option, rows) in [("-R", 1), ("--full-duplex", 2), ("-d", 2), ("-r", 2)] {
        let ground = Ground::new(false);
        let listen = free_port(false).to_string();
        let lines = iperf_client(&ground, &["-t1", "-b50m", "-l16K", option, "-L", &listen]);
        let ours = ground.totals(rows);
        let all: u64 = ours.iter().map(|row| row.bytes).sum();
        // A sum follows the rows of -d and --full-duplex.
        let theirs = its_sum(&lines[..rows.min(lines.len())]);
        assert!(close(all, theirs), "{option}: {ours:?}, {lines:?}");
        let sent = ours.iter().find(|row| row.sending).unwrap();
        assert!(near(sent.bytes, 6_250_000), "{option}: {sent:?}");
    }
}

fn our_server_sends_udp_to_its_client() {
    for option in ["-R", "--full-duplex", "-d", "-r"] {
        let ground = Ground::new(true);
        let listen = free_port(true).to_string();
        let lines = iperf_client(&ground, &["-u", "-t1", "-b50m", option, "-L", &listen]);
        let rows = if option == "-R" { 1 } else { 2 };
        let ours = ground.totals(rows);
        let sent = ours.iter().find(|row| row.sending).unwrap();
        assert!(near(sent.bytes / 1470, 4253), "{option}: {sent:?}");
        // What it received and printed is what we sent.
        let counted: Vec<u64> = lines
            .iter()
            // A busy machine may drop a few where its buffers are small.
            .filter_map(|line| {
                line.datagrams.filter(|all| line.lost.is_some_and(|l| l * 50 <= *all))
            })
            .collect();
        assert!(
            counted.iter().any(|&count| close(count, sent.bytes / 1470)),
            "{option}: {lines:?}"
        );
    }
}
