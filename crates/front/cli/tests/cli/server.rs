//! A server as a process: how it ends, what it counts and logs, whom it
//! admits, and that a crowd neither fills its memory nor its log.

use crate::program::{Server, command, printed, run};
use host::clock;
use perf::StopFlag;
use perf::client::{self, ClientConfig, EndAfter};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A test of so many seconds that runs beside; its server has told of it.
fn begin(server: &mut Server, seconds: &str) -> Child {
    let child = command(&["test", "127.0.0.1", "-p", &server.port, "-t", seconds, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = server.line();
    assert!(line.contains("receiving over 1 stream") || line.contains("\"started\""), "{line}");
    child
}

fn scrape(address: &str, target: &str) -> String {
    try_scrape(address, target).unwrap()
}

fn try_scrape(address: &str, target: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{page}")).parse().unwrap()
}

fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn sigterm_lets_a_test_finish() {
    let mut server = Server::start(&[]);
    let client = begin(&mut server, "2");
    server.signal("TERM");
    assert!(server.line().starts_with("Draining: 1 test still running, new clients are refused"));
    let refused = run(&["test", "127.0.0.1", "-p", &server.port, "-t", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    let finished = client.wait_with_output().unwrap();
    assert!(finished.status.code() != Some(1), "{finished:?}");
    let document: Value = serde_json::from_slice(&finished.stdout).unwrap();
    assert!(document["schema"].is_string());
    assert!(server.line().contains("as limit") || server.line().starts_with("test 1: received "));
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once_and_clients_are_told() {
    for second in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        let client = begin(&mut server, "60");
        let before = clock::now();
        server.signal("TERM");
        assert!(server.line().contains("Draining"));
        // Signals closer together than this are one that came by two ways; a stall only
        // makes the gap longer.
        thread::sleep(Duration::from_millis(500));
        server.signal(second);
        assert_eq!(server.ended(), Some(0));
        let ended = client.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(complaint.contains("was stopped"), "{complaint}");
        assert!(before.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn an_idle_server_ends_with_the_first_signal() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::start(&[]);
        server.signal(signal);
        assert_eq!(server.ended(), Some(0));
    }
}

#[test]
fn metrics_follow_a_test() {
    let mut server = Server::start(&["--metrics", "0"]);
    let line = server.line();
    let address = line.trim().strip_prefix("Metrics on http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"));
    let before = scrape(&address, "/metrics");
    assert_eq!(value(&before, "longhaul_tests_running"), 0.0);
    let mut client = begin(&mut server, "4");
    let received = "longhaul_bytes_total{direction=\"receive\"}";
    let during = loop {
        let page = scrape(&address, "/metrics");
        if value(&page, received) > 0.0 && value(&page, "longhaul_tests_running") == 1.0 {
            break page;
        }
        assert!(client.try_wait().unwrap().is_none(), "no bytes counted while a test ran\n{page}");
        thread::sleep(Duration::from_millis(100));
    };
    client.wait().unwrap();
    assert!(server.line().starts_with("test 1: received"));
    let after = scrape(&address, "/metrics");
    let series =
        "longhaul_tests_total{protocol=\"tcp\",direction=\"receive\",outcome=\"finished\"}";
    assert_eq!(value(&after, series), 1.0);
    assert_eq!(value(&after, "longhaul_tests_running"), 0.0);
    assert!(value(&after, received) >= value(&during, received));
    assert!(value(&after, "longhaul_last_test_bytes_per_second{direction=\"receive\"}") > 0.0);
    assert!(scrape(&address, "/").starts_with("HTTP/1.1 404 "));
    // A crowd that says nothing is closed in time, and the page is there again.
    let crowd: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let until = clock::now() + Duration::from_secs(20);
    let mut answer = String::new();
    while !answer.starts_with("HTTP/1.0 200 ") {
        assert!(clock::now() < until);
        thread::sleep(Duration::from_millis(200));
        let mut connection = TcpStream::connect(&address).unwrap();
        let _ = connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        answer.clear();
        let _ = connection.read_to_string(&mut answer);
    }
    drop(crowd);
}

/// The speed test for browsers beside it: one page of metrics, one drain, one stop.
#[test]
fn both_servers_are_one_process() {
    let mut server = Server::start(&["--metrics", "0", "--web", "0", "--token", "secret"]);
    let line = server.line();
    let metrics = line.trim().strip_prefix("Metrics on http://").unwrap();
    let metrics = metrics.strip_suffix("/metrics").unwrap().to_owned();
    let line = server.line();
    let page = line.trim().split_once("open http://").unwrap().1;
    let page = page.strip_suffix("/?token=secret").unwrap().to_owned();
    assert!(page.starts_with("127.0.0.1:"), "{line}");
    let line = server.line();
    assert!(line.starts_with("listening for WebTransport on UDP 127.0.0.1:"), "{line}");
    assert!(scrape(&page, "/").starts_with("HTTP/1.1 200 "));
    let refused = scrape(&page, "/empty");
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let counted = scrape(&metrics, "/metrics");
    assert_eq!(value(&counted, "longhaul_tests_running"), 0.0);
    assert_eq!(value(&counted, "longhaul_web_refused_total{reason=\"token\"}"), 1.0);
    // A test that runs keeps both, which refuse what is new.
    let client = begin(&mut server, "3");
    server.signal("TERM");
    let refused = loop {
        // One that ends resets what it has not accepted.
        let refused = try_scrape(&page, "/garbage?token=secret").unwrap_or_default();
        if !refused.starts_with("HTTP/1.1 200 ") {
            break refused;
        }
        thread::sleep(Duration::from_millis(50));
    };
    // The page may have ended: nothing of it ran.
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(client.wait_with_output().unwrap().status.code() != Some(1));
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_taken_port_of_the_page_ends_both() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(&["server", "-p", "0", "--web", &port]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("--web"), "{said}");
    assert_eq!(run(&["server", "--tls", "self-signed"]).status.code(), Some(2));
}

/// A page in a browser whose name resolves to this host reads no metrics (DNS rebinding).
#[test]
fn metrics_are_not_for_other_host_names() {
    let mut server = Server::start(&["--metrics", "0", "--metrics-host", "metrics.example"]);
    let line = server.line();
    let address = line.trim().strip_prefix("Metrics on http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    let port = address.rsplit(':').next().unwrap();
    let get = |version: &str, headers: &str| {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "GET /metrics HTTP/{version}\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let is_served = answer.starts_with(&format!("HTTP/{version} 200 "));
        assert_eq!(answer.contains("longhaul_"), is_served, "{answer}");
        answer
    };
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example"] {
        let refused = get("1.1", &format!("Host: {host}\r\n"));
        assert!(refused.starts_with("HTTP/1.1 421 Misdirected Request\r\n"), "{refused}");
        assert!(refused.contains("--metrics-host NAME"), "{refused}");
    }
    let doubled = format!("Host: evil.example\r\nHost: {address}\r\n");
    for headers in
        ["", &doubled, "Host : localhost\r\n", "X: y\nHost: localhost\r\nHost: evil.example\r\n"]
    {
        assert!(get("1.1", headers).starts_with("HTTP/1.1 400 "), "{headers}");
    }
    for host in [address, "localhost", &format!("metrics.example:{port}"), "[::1]"] {
        assert!(get("1.1", &format!("Host: {host}\r\n")).starts_with("HTTP/1.1 200 "), "{host}");
    }
    assert!(get("1.0", "").starts_with("HTTP/1.0 200 "));
}

#[test]
fn events_are_json_lines() {
    let mut server = Server::start(&["--json", "--verbose"]);
    begin(&mut server, "2").wait().unwrap();
    server.signal("TERM");
    let mut names = vec!["started".to_owned()];
    loop {
        let line = server.line();
        if line.is_empty() {
            break;
        }
        let document: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(document["schema"], "longhaul.server-event/1");
        if document["event"] == "finished" {
            assert!(document["received_bps"].as_f64().unwrap() > 0.0);
        }
        names.push(document["event"].as_str().unwrap().to_owned());
    }
    names.dedup();
    assert_eq!(names, ["started", "interval", "finished", "draining", "stopped"]);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_word_admits_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let words = file(folder.path(), "words", "# who may\nopen sesame\n", 0o600);
    let mut server = Server::start(&["--json", "--tokens", words.to_str().unwrap()]);
    let refused = run(&["test", "127.0.0.1", "-p", &server.port, "-t", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    let event: Value = serde_json::from_str(&server.line()).unwrap();
    assert_eq!((&event["event"], &event["reason"]), (&"refused".into(), &"authentication".into()));
    let port = server.port.parse().unwrap();
    for (word, admitted) in [("open sesame", true), ("sesame", false)] {
        let config = ClientConfig {
            ports: port..=port,
            end: EndAfter::Seconds(0.3),
            token: Some(word.to_owned()),
            watch_load: Duration::ZERO,
            ..ClientConfig::new("127.0.0.1")
        };
        let done = client::run(&config, &mut |_| (), &StopFlag::new());
        assert_eq!(done.is_ok(), admitted, "{word}");
    }
}

#[test]
fn files_that_admit_nobody_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = file(folder.path(), "empty", "# nobody\n\n", 0o600);
    let open = file(folder.path(), "open", "# nobody\n", 0o644);
    let users = file(folder.path(), "users", "mario,no hash\n", 0o600);
    let path = |path: &'static str| folder.path().join(path).to_str().unwrap().to_owned();
    for (flags, complaint) in [
        (vec!["--tokens".to_owned(), path("empty")], "no token in"),
        (vec!["--tokens".to_owned(), path("none")], "cannot read the tokens"),
        (vec!["--tokens".to_owned(), "/dev".to_owned()], "cannot read the tokens"),
        (vec!["--private-key".to_owned(), path("empty")], "--users"),
        (
            vec!["--private-key".to_owned(), path("empty"), "--users".to_owned(), path("users")],
            "private key",
        ),
    ] {
        let words: Vec<&str> =
            ["server", "-p", "0"].into_iter().chain(flags.iter().map(String::as_str)).collect();
        let output = run(&words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(complaint) && said.trim().lines().count() == 1, "{said}");
    }
    let output = run(&["server", "-p", "0", "--tokens", open.to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("warning: other users can read the tokens"), "{said}");
    drop((empty, users));
}

#[test]
fn wrong_flags_are_refused_in_a_line() {
    for flags in [
        &["--max-rate", "0"][..],
        &["--max-bytes", "0"],
        &["--max-tests", "0"],
        &["--max-streams", "129"],
        &["--metrics", "host:1"],
        &["--metrics-host", "name.example"],
        &["--metrics", "0", "--metrics-host", "name.example:80"],
        &["--idle-timeout", "5"],
        &["-4", "-6"],
        &["--systemd-unit", "--one-off"],
        &["--pkcs1"],
    ] {
        let words: Vec<&str> = ["server"].into_iter().chain(flags.iter().copied()).collect();
        let output = run(&words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert_eq!(said.trim().lines().count(), 1, "{said}");
    }
}

#[test]
fn the_unit_repeats_its_flags_and_is_one() {
    let unit = printed(&[
        "server",
        "--max-time",
        "300",
        "--systemd-unit",
        "--tokens",
        "/etc/longhaul words",
        "-p",
        "80",
    ]);
    for line in [
        "DynamicUser=yes",
        "ProtectSystem=strict",
        "NoNewPrivileges=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6",
        "TimeoutStopSec=360",
        "Restart=on-failure",
        "LimitNOFILE=65536",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "LoadCredential=tokens:/etc/longhaul words",
        "WantedBy=multi-user.target",
    ] {
        assert!(unit.lines().any(|of| of == line), "{line} is not in\n{unit}");
    }
    assert!(unit.contains(" server --max-time 300 --tokens %d/tokens -p 80\n"), "{unit}");
    verify_unit(&unit);
}

#[test]
fn the_unit_of_the_page_has_its_certificate_as_credentials() {
    let unit =
        printed(&["web", "--listen", "[::]:443", "--tls", "/c.pem,/k.pem", "--systemd-unit"]);
    for line in [
        "DynamicUser=yes",
        "LoadCredential=certificate:/c.pem",
        "LoadCredential=key:/k.pem",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
    ] {
        assert!(unit.lines().any(|of| of == line), "{line} is not in\n{unit}");
    }
    assert!(unit.contains(" web --listen [::]:443 --tls credentials\n"), "{unit}");
    verify_unit(&unit);
}

/// Systemd finds nothing wrong in it, where it is installed.
fn verify_unit(unit: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "longhaul.service", unit, 0o644);
    let verified = Command::new("systemd-analyze").arg("verify").arg(&path).output();
    if let Ok(output) = verified {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours = said.lines().filter(|line| line.contains("longhaul"));
        assert_eq!(ours.count(), 0, "{said}");
    }
}

/// Connects in three ways that come to nothing, as fast as asked for; how many.
fn crowd(port: &str, a_second: u64, lasting: Duration) -> u64 {
    let (count, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let address = format!("127.0.0.1:{port}");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let began = clock::now();
                while !over.load(Ordering::Relaxed) && began.elapsed() < lasting {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    let due = Duration::from_micros(number * 1_000_000 / a_second);
                    thread::sleep(due.saturating_sub(began.elapsed()));
                    let to = address.parse().unwrap();
                    let Ok(mut connection) =
                        TcpStream::connect_timeout(&to, Duration::from_millis(200))
                    else {
                        continue;
                    };
                    match number % 3 {
                        0 => {}
                        // Half a cookie, and what looks like a whole one.
                        1 => drop(connection.write_all(b"half")),
                        _ => drop(connection.write_all(&[b'x'; 37])),
                    }
                }
            });
        }
        thread::sleep(lasting);
        over.store(true, Ordering::Relaxed);
    });
    count.into_inner()
}

#[test]
fn a_crowd_fills_neither_memory_nor_log() {
    let mut server = Server::start(&[]);
    let client = begin(&mut server, "4");
    let before = server.resident_pages();
    let connects = crowd(&server.port, 10_000, Duration::from_secs(3));
    let after = server.resident_pages();
    let finished = client.wait_with_output().unwrap();
    assert!(finished.status.code() != Some(1), "{finished:?}");
    assert!(connects > 300, "{connects} connections are no crowd");
    let grown = after.saturating_sub(before);
    assert!(grown < 16_384, "{grown} pages more after {connects} connections");
    server.signal("TERM");
    let mut lines = 0u64;
    let mut received = false;
    loop {
        let line = server.line();
        if line.is_empty() {
            break;
        }
        received |= line.starts_with("test 1: received ");
        lines += 1;
    }
    assert!(received);
    assert!(lines < 300.max(connects / 4), "{lines} lines for {connects} connections");
    assert_eq!(server.ended(), Some(0));
}

/// A script's background jobs inherit an ignored SIGINT; they end with it nevertheless, as iperf3
/// does. What nohup(1) has ignored stays so.
#[test]
fn an_inherited_sigint_ends_it_and_an_inherited_hangup_does_not() {
    let mut child = Command::new("sh")
        .args(["-c", "trap '' INT QUIT HUP; exec \"$0\" server -B 127.0.0.1 -p 0"])
        .arg(env!("CARGO_BIN_EXE_longhaul"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let id = child.id().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    };
    let ignored = || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    // Bits from SIGHUP, which is 1.
    assert_eq!(ignored() & 0b111, 0b001);
    signal("HUP");
    assert!(child.try_wait().unwrap().is_none());
    signal("INT");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
}
