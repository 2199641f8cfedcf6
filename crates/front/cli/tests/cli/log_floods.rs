//! Clients that make a server write to its log as fast as they can.

use crate::peer;
use crate::program::{Server, command};
use host::clock;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long each flood lasts.
const FLOOD: Duration = Duration::from_millis(1500);

/// Does it again and again; how often it worked, and over how many seconds.
fn flood(mut attack: impl FnMut(u64) -> bool) -> (usize, f64) {
    let since = clock::now();
    let (mut count, mut worked) = (0, 0);
    while since.elapsed() < FLOOD {
        worked += usize::from(attack(count));
        count += 1;
    }
    (worked, since.elapsed().as_secs_f64())
}

#[test]
fn empty_tests_do_not_bypass_the_limit() {
    let mut server = Server::start(&["--max-tests", "64"]);
    let address: SocketAddr = format!("127.0.0.1:{}", server.port).parse().unwrap();
    let (tests, seconds) = flood(|number| peer::empty_test(address, number).is_ok());
    server.signal("TERM");
    let mut lines = 0;
    while !server.line().is_empty() {
        lines += 1;
    }
    // 10 tests a second with two lines each, 20 lines about failures, and one a
    // second on what was suppressed; windows overlap the flood at both ends.
    let most = 41.0 * (seconds + 2.0);
    assert!(f64::from(lines) <= most, "{lines} lines in {seconds} s for {tests} tests");
    assert!(tests > 0);
}

/// iperf3's own server: every connection that fails has five lines there.
#[test]
fn the_drop_in_has_the_same_limit() {
    let port = stall_retry::free_port();
    let mut server = command(&["iperf3", "-s", "-B", "127.0.0.1", "-p", &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, complaints) = (server.stdout.take().unwrap(), server.stderr.take().unwrap());
    let mut out = BufReader::new(out);
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(!first.is_empty(), "the server does not run");
    let lines = std::thread::spawn(move || out.lines().count());
    let complaints = std::thread::spawn(move || {
        BufReader::new(complaints).lines().map_while(Result::ok).collect::<Vec<String>>()
    });
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    let (connections, seconds) = flood(|number| match number % 2 {
        // A bare connection, and a whole test.
        0 => TcpStream::connect(address).is_ok(),
        _ => peer::empty_test(address, number).is_ok(),
    });
    let sent = Command::new("kill").args(["-s", "INT", &server.id().to_string()]).status();
    assert!(sent.unwrap().success());
    server.wait().unwrap();
    let (lines, complaints) = (lines.join().unwrap(), complaints.join().unwrap());
    assert!(connections > 0);
    let most = 140.0 * (seconds + 2.0);
    let all = lines + complaints.len();
    assert!(all as f64 <= most, "{all} lines in {seconds} s for {connections} connections");
    if connections > 100 {
        let told = complaints.iter().any(|line| line.contains("log rate limit: suppressed"));
        assert!(told, "{complaints:?}");
    }
}
