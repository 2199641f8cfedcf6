//! Whatever is wrong: one line that names it and what would be right, and an
//! exit code of 1 or 2.

use crate::program::{Server, run};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;

fn refused(arguments: &[&str], code: i32, says: &str) -> String {
    let output = run(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert!(text.starts_with("longhaul: "), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    assert!(text.contains(says), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty(), "{arguments:?}: nothing is printed beside the error");
    text
}

/// The command that an error ends with.
fn next_command(error: &str) -> Option<Vec<String>> {
    let command = ["; see: longhaul ", "; try: longhaul "]
        .iter()
        .find_map(|before| error.trim_end().split_once(before).map(|(_, command)| command))?;
    Some(command.split(' ').map(str::to_owned).collect())
}

#[test]
fn wrong_usage_is_refused_before_anything_runs() {
    let (mut commands, mut errors) = (BTreeSet::new(), 0);
    for (arguments, says) in [
        (&["bdp", "100mbit", "173"][..], "give the unit"),
        (&["bdp", "100", "173ms"], "give the unit"),
        (&["bdp", "0", "173ms"], "a rate of zero"),
        (&["bdp", "100mbit", "-1ms"], "-1ms for <RTT>: a round-trip time cannot be negative"),
        (&["bdp", "-100mbit", "1ms"], "-100mbit for <RATE>: a rate cannot be negative"),
        (&["calc", "window", "--rtt", "-1ms", "--rate", "1gbit"], "time cannot be negative"),
        (&["calc", "transfer", "-10GB", "--rate", "1gbit", "--rtt", "1ms"], "a size cannot be"),
        (&["calc", "cubic", "--rtt", "1ms", "--loss", "-1%"], "a loss ratio cannot be negative"),
        (&["test", "h", "-b", "-5m"], "a rate cannot be negative"),
        (&["test", "h", "-t", "-5"], "a time cannot be negative"),
        (&["test", "h", "-P", "-8"], "a count cannot be negative"),
        (&["test", "h", "-p", "-1"], "a port cannot be negative"),
        (&["ping", "h", "-i", "-0.5"], "a time cannot be negative"),
        (&["server", "--max-time", "-1"], "a time cannot be negative"),
        (&["bdp", "100mbit", "0ms"], "round trip"),
        (&["bdp", "1e400gbit", "1ms"], "rate"),
        (&["bdp", "100mbit", "173ms", "--window", "10EiB"], "window"),
        (&["bdp", "100mbit", "173ms", "--streams", "0"], "streams"),
        (&["bdp", "100mbit", "173ms", "--streams", "-1"], "-1"),
        (&["bdp", "100mbit", "173ms", "--mtu", "20"], "MTU"),
        (&["iperf2"], "--server"),
        (&["iperf2", "-s", "-c", "h"], "cannot be used with"),
        (&["iperf2", "-c", "h", "-d", "-r"], "cannot be used with"),
        (&["iperf2", "-c", "h", "-b", "0"], "send nothing"),
        (&["iperf2", "-c", "h", "-n", "1KB"], "kmgKMG"),
        (&["iperf2", "-c", "127.0.0.1", "-P", "129"], "128"),
        (&["iperf2", "-c", "127.0.0.1", "-u", "-l", "20"], "76 to 65507"),
        (&["iperf2", "-c", "h", "-f", "x"], "kmgaKMGA"),
        (&["iperf2", "-c", "h", "-B", "x"], "fe80::1%eth0"),
        (&["iperf2", "-c", "h", "--bounceback"], "--bounceback"),
        (&["iperf2", "-c", "h", "--trust-udp"], "cannot be used with"),
        (&["iperf2", "-c", "127.0.0.1", "-Z", "nosuch"], "-Z"),
        (&["test"], "HOST"),
        (&["test", "h", "-w", "10EiB"], "window"),
        (&["test", "h", "-P", "129"], "128"),
        (&["test", "h", "-t", "0"], "above 0"),
        (&["test", "h", "-t", "nan"], "above 0"),
        (&["test", "h", "-t", "5", "-n", "1M"], "cannot be used with"),
        (&["test", "h", "-b", "100x"], "not a unit of rate"),
        (&["test", "h", "-p", "0"], "ports are 1 to 65535"),
        (&["baseline"], "HOST"),
        (&["baseline", "h", "--servers", "f"], "cannot be used with"),
        (&["baseline", "h", "--rate", "1gbit"], "cannot be used with"),
        (&["baseline", "h", "--duration", "0"], "above 0"),
        (&["baseline", "h", "-P", "1"], "2..=128"),
        (&["baseline", "h", "-o", "/nonexistent/x"], "-o NAME"),
        (&["baseline", "h", "--compare", "/nonexistent"], "cannot read /nonexistent"),
        (&["baseline", "h", "--compare", "Cargo.toml"], "it is not JSON"),
        (&["baseline", "--servers", "Cargo.toml"], "a list has lines HOST PORTS RATE LOCATION"),
        (&["baseline", "name.invalid"], "cannot resolve 'name.invalid'"),
        (&["test", "h", "-p", "70000"], "70000"),
        (&["test", "h", "-4", "-6"], "cannot be used with"),
        (&["test", "h", "-B", "nowhere"], "nowhere"),
        (&["test", "h", "-p", "5210-5201"], "range"),
        (&["test", "h", "-u", "-l", "15"], "16 to 65507"),
        (&["test", "h", "-R", "--bidir"], "cannot be used with"),
        (&["test", "h", "-M", "10"], "88 to 32767"),
        (&["test", "127.0.0.1", "-C", "warp"], "warp"),
        (&["test", "h", "--compare", "/no/such/file"], "/no/such/file"),
        (&["test", "h", "--baseline", "/no/such/file"], "/no/such/file"),
        (&["test", ""], "name"),
        (&["test", "no.such.host.invalid"], "cannot resolve"),
        (&["test", "127.0.0.1", "-B", "192.0.2.1"], "192.0.2.1"),
        (&["server", "--max-tests", "0"], "max-tests"),
        (&["lab", "run", "--", "true"], "--link"),
        (&["lab", "run", "--link", "rate=0,rtt=1ms", "--", "true"], "a rate of zero"),
        (&["lab", "run", "--link", "rate=1mbit,rtt=-1ms", "--", "true"], "negative"),
        (&["lab", "run", "--link", "rate=1mbit,rtt=1ms,loss=120%", "--", "true"], "100 %"),
        (&["lab", "run", "--link", "rate=1mbit,rtt=1ms"], "CMD"),
        (&["lab", "run", "--link", "rate=1mbit,rtt=1ms", "--sysctl", "x", "--", "a"], "KEY=VALUE"),
        (
            &[
                "lab",
                "run",
                "--link",
                "rate=1mbit,rtt=1ms",
                "--sysctl",
                "vm.swappiness=60",
                "--",
                "a",
            ],
            "whole machine",
        ),
        (&["ping"], "HOST"),
        (&["ping", "no.such.host.invalid"], "cannot resolve"),
        (&["ping", "127.0.0.1", "-6"], "no IPv6 address"),
        (&["ping", "127.0.0.1", "-i", "0.5ms"], "at least 1 ms"),
        (&["ping", "127.0.0.1", "-i", "0"], "above 0"),
        (&["ping", "127.0.0.1", "-W", "nan"], "above 0"),
        (&["ping", "127.0.0.1", "-s", "65508"], "65507"),
        (&["ping", "127.0.0.1", "--ttl", "0"], "0"),
        (&["ping", "127.0.0.1", "--tcp=0"], "ports are 1 to 65535"),
        (&["ping", "127.0.0.1", "--dscp", "64"], "0 to 63"),
        (&["ping", "127.0.0.1", "--dscp", "EF", "--tos", "1"], "cannot be used with"),
        (&["ping", "127.0.0.1", "-B", "::1"], "no IPv6 address"),
        (&["ping", "127.0.0.1", "--tcp", "-B", "192.0.2.1"], "ip address"),
        (&["trace"], "HOST"),
        (&["trace", ""], "cannot resolve"),
        (&["trace", "127.0.0.1", "-m", "0"], "0"),
        (&["trace", "127.0.0.1", "-m", "256"], "256"),
        (&["trace", "127.0.0.1", "-i", "1ms"], "at least 10 ms"),
        (&["trace", "127.0.0.1", "--udp", "--tcp"], "cannot be used with"),
        (&["trace", "127.0.0.1", "--icmp", "-p", "80"], "cannot be used with"),
        (&["trace", "127.0.0.1", "--mmdb", "/no/such/file"], "cannot read the address database"),
        (&["trace", "127.0.0.1", "--mmdb", "/dev/null"], "MaxMind"),
        (&["no-such-verb"], "no-such-verb"),
        (&["completions", "csh"], "csh"),
    ] {
        let Some(command) = next_command(&refused(arguments, 2, says)) else { continue };
        errors += 1;
        // What was meant by the others needs a host.
        if command.last().is_some_and(|word| word == "--help") {
            commands.insert(command);
        }
    }
    // Most of them name the command to run next, which works.
    assert!(errors >= 50, "{errors} errors name a command");
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = run(&words);
        assert!(output.status.success() && !output.stdout.is_empty(), "{command:?}");
    }
}

#[test]
fn what_was_meant_is_a_command_that_works() {
    for (wrong, meant) in [
        (&["bdpp", "100mbit", "173ms"][..], "bdp 100mbit 173ms"),
        (&["bdp", "100mbit", "173ms", "--widnow", "64KiB"], "bdp 100mbit 173ms --window 64KiB"),
        (&["bdp", "100mbit", "173ms", "--color=alwys"], "bdp 100mbit 173ms --color=always"),
        (
            &["calc", "transfr", "1GB", "--rate", "1gbit", "--rtt", "1ms"],
            "calc transfer 1GB --rate 1gbit --rtt 1ms",
        ),
        (&["study", "lits"], "study list"),
    ] {
        let command = next_command(&refused(wrong, 2, meant)).unwrap();
        assert_eq!(command.join(" "), meant);
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        assert!(run(&words).status.success(), "{meant}");
    }
}

#[test]
fn work_that_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("half.json");
    std::fs::write(&file, "{\"schema\": \"longhaul.measurement/1\"").unwrap();
    let file = file.to_str().unwrap();
    refused(&["explain", file], 1, "not a measurement");
    refused(&["explain", "/no/such/file"], 1, "cannot read");
    let other = folder.path().join("other.json");
    for (text, says) in [
        ("{\"nmaprun\": {}}", "its first key is 'nmaprun'"),
        ("{\"start\": {\"version\": \"iperf 3.12\"", "it is truncated"),
        ("Hello\u{1b}[31m", "it begins with 'Hello[31m'; accepted are longhaul's measurements"),
    ] {
        std::fs::write(&other, text).unwrap();
        refused(&["explain", other.to_str().unwrap()], 1, says);
    }
    refused(&["man", "--dir", "/no/such/folder"], 1, "create the directory first");
    // Nobody listens where a listener just was.
    let port = stall_retry::free_port().to_string();
    refused(&["test", "127.0.0.1", "-p", &port], 1, "longhaul server");
}

#[test]
fn a_port_in_use_is_named() {
    let server = Server::start(&[]);
    refused(&["server", "-B", "127.0.0.1", "-p", &server.port], 1, "another server uses it");
}

/// A server that takes the connection and answers with `bytes`.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut cookie = [0; 37];
        let _ = stream.read_exact(&mut cookie);
        let _ = stream.write_all(bytes);
    });
    port
}

#[test]
fn a_peer_that_speaks_something_else_is_told_apart() {
    for bytes in
        [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x09\xff\xff\xff\xff", b"", b"\x09\x00"]
    {
        let output = run(&["test", "127.0.0.1", "-p", &answering(bytes), "-t", "1"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.lines().count()), (Some(1), 1), "{bytes:?}: {text}");
    }
}

#[test]
fn nobody_reading_is_no_panic() {
    use crate::program::command;
    use std::process::Stdio;
    let mut child = command(&["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
