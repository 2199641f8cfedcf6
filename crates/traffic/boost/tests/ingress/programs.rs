//! Programs in a network of their own.

use crate::stage::{
    SERVERS, program, program_of_user, program_over_mux, start_program, start_unanswered, text,
};
use std::io::{BufRead, BufReader, Read};
use std::process::{Output, Stdio};

const CURL: [&str; 4] = ["curl", "-sS", "--max-time", "20"];

fn curl<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&CURL[..], words].concat()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn addresses() {
    let [v4, v6] = SERVERS;
    let got = printed(&program("far", "all", &curl(&[&format!("http://{v4}/a")])));
    assert_eq!(got, format!("GET /a HTTP/1.1 at {v4}:80"));
    let got = printed(&program("far", "all", &curl(&["-g", &format!("http://[{v6}]/b")])));
    assert_eq!(got, format!("GET /b HTTP/1.1 at [{v6}]:80"));
    // Servers of the program's own stay in its network.
    let script = "import socket\n\
        s = socket.create_server(('127.0.0.1', 0))\n\
        c = socket.create_connection(s.getsockname())\n\
        print(s.accept()[1][0])";
    assert_eq!(printed(&program("far", "all", &["/usr/bin/python3", "-c", script])), "127.0.0.1");
}

/// The address of a name, as the C library finds it.
fn lookup(name_server: &str, name: &str, options: &str) -> Output {
    let options = format!("RES_OPTIONS={options}");
    program(name_server, "all", &["env", &options, "getent", "ahostsv4", name])
}

fn names(name_server: &str, over: &str) {
    let got = printed(&program(name_server, "all", &curl(&["http://www.example/"])));
    assert!(got.starts_with("GET / HTTP/1.1 at 198.51.100.7"), "{got}");
    assert_eq!(lookup(name_server, "nothing.example", "").status.code(), Some(2));
    let first = |name, options| {
        let found = printed(&lookup(name_server, name, options));
        found.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(first("over.example", ""), over);
    assert_eq!(first("over.example", "use-vc"), "198.51.100.2");
    // Truncated over UDP, whole over TCP: each address has three lines.
    let big = printed(&lookup(name_server, "big.example", ""));
    assert_eq!(big.lines().filter(|line| line.contains("STREAM")).count(), 100);
}

pub(crate) fn names_at_far() {
    names("far", "198.51.100.2");
}

pub(crate) fn names_at_near() {
    names("near", "198.51.100.1");
}

pub(crate) fn listed_ports() {
    let got = printed(&program("far", "80,443", &curl(&["http://www.example/"])));
    assert!(got.contains("at 198.51.100.7:80"), "{got}");
    // Repeated; the port of the name server's stand-in; the port of DNS.
    let got = printed(&program("far", "80,80,5300,53", &curl(&["http://www.example/"])));
    assert!(got.contains("at 198.51.100.7:80"), "{got}");
    let other = program("far", "80,443", &curl(&["http://www.example:9/"]));
    assert_eq!(other.status.code(), Some(7), "curl: connection refused");
    // The stand-in's port is not boosted by itself.
    let other = program("far", "80,443", &curl(&["http://www.example:5300/"]));
    assert_eq!(other.status.code(), Some(7), "curl: connection refused");
}

pub(crate) fn ordinary_user() {
    let script = "id -u; curl -sS http://www.example/; echo; grep CapEff /proc/self/status";
    let output = program_of_user(&["sh", "-c", script]);
    let got = text(&output.stdout);
    assert!(got.starts_with("65534\nGET / HTTP/1.1 at 198.51.100.7"), "{output:?}");
    assert!(got.ends_with("CapEff:\t0000000000000000"), "{got}");
}

pub(crate) fn exit_codes() {
    let code = |script: &str| program("far", "all", &["sh", "-c", script]).status.code();
    assert_eq!(code("exit 7"), Some(7));
    assert_eq!(code("kill -TERM $$"), Some(128 + 15));
    let missing = program("far", "all", &["/nowhere/program"]);
    assert_eq!(missing.status.code(), Some(99));
    assert!(text(&missing.stderr).contains("cannot start /nowhere/program"), "{missing:?}");

    let script = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.1; done";
    let mut child = start_program(&["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let killed = std::process::Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "got");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

pub(crate) fn interrupted() {
    let mut child = start_unanswered(&["echo", "started"]);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "connected");
    let killed = std::process::Command::new("kill").arg(child.id().to_string()).status();
    assert!(killed.unwrap().success());
    assert!(lines.all(|line| line.unwrap() == "connected"), "the program has not run");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(99), "interrupted"));
}

pub(crate) fn last_bytes() {
    let script = "import socket\n\
        c = socket.create_connection(('198.51.100.7', 9))\n\
        c.sendall(b'x' * 20000000)";
    let output = program("far", "all", &["/usr/bin/python3", "-c", script]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stderr).contains("sink: 20000000 bytes"), "{output:?}");
}

pub(crate) fn kept_open() {
    let script = "import socket\n\
        c = socket.create_connection(('198.51.100.7', 7))\n\
        c.sendall(b'x' * 1000000)";
    let command = ["/usr/bin/python3", "-c", script];
    for output in [program("far", "all", &command), program_over_mux(&command)] {
        assert!(output.status.success(), "{output:?}");
        assert!(!text(&output.stderr).contains("reset"), "{output:?}");
    }
    // What the program started may still receive.
    let script = "import os, socket\n\
        c = socket.create_connection(('198.51.100.7', 7))\n\
        if os.fork(): os._exit(0)\n\
        c.shutdown(socket.SHUT_WR)\n\
        print(c.recv(4))";
    let command = ["/usr/bin/python3", "-c", script];
    for output in [program("far", "all", &command), program_over_mux(&command)] {
        assert_eq!(printed(&output), "b'late'");
    }
}

pub(crate) fn killed() {
    let script = "sleep 1000 & echo started; sleep 1000";
    let mut child = start_program(&["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    child.kill().unwrap();
    child.wait().unwrap();
    // The pipe ends with the last process that holds it.
    assert_eq!(lines.read_to_string(&mut line).unwrap(), 0);
}

pub(crate) fn refusals() {
    let code = |url: &str| program("far", "all", &curl(&[url])).status.code();
    // Accepted by near and reset: at once (7), while sending, or instead of an answer.
    for url in ["http://198.51.100.7:81/", "http://10.0.0.1/", "http://169.254.169.254/"] {
        let code = code(url);
        assert!(matches!(code, Some(7 | 52 | 55 | 56)), "{url}: {code:?}");
    }
    let script = "import socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        s.connect(('198.51.100.7', 443))\n\
        s.settimeout(20)\n\
        s.send(b'x')\n\
        try: s.recv(9)\n\
        except ConnectionRefusedError: print('refused')";
    let output = program("far", "all", &["/usr/bin/python3", "-c", script]);
    assert_eq!(printed(&output), "refused");
}
