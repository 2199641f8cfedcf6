//! `longhaul boost edge`: a real nginx that ends with its parent, and refusals without one.

use crate::program::{command, printed, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What every wait is bounded by.
const LONG: Duration = Duration::from_secs(30);

struct Edge {
    child: Child,
    log: BufReader<ChildStdout>,
    address: String,
}

impl Edge {
    /// `None`: nginx is not installed.
    fn start(origin: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments =
            ["boost", "edge", "--origin", origin, "--listen", &port.to_string(), "--json"];
        if ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].iter().all(|path| !exists(path)) {
            eprintln!("nginx is not installed: skipped");
            return None;
        }
        let mut child = command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let first = line(&mut log);
        assert_eq!(
            (&first["event"], &first["schema"]),
            (&"listening".into(), &"longhaul.edge-event/1".into())
        );
        let address = first["address"].as_str().unwrap().to_owned();
        Some(Edge { child, log, address })
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// The processes of nginx below it.
    fn descendants(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
            let children = tasks.flatten().map(|task| task.path().join("children"));
            let children: Vec<String> =
                children.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
            all.extend(
                children.join(" ").split_whitespace().map(|pid| pid.parse::<u32>().unwrap()),
            );
            next += 1;
        }
        all.split_off(1)
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn exists(path: &str) -> bool {
    std::path::Path::new(path).exists()
}

fn line(log: &mut impl BufRead) -> Value {
    let mut text = String::new();
    log.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn until(mut is_so: impl FnMut() -> bool) {
    let began = host::clock::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "not within {LONG:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that answers every request with five bytes that are fresh for a minute.
fn origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut request = String::new();
            while stream.read_line(&mut request).is_ok_and(|read| read > 2) {}
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: max-age=60\r\n\
                          Connection: close\r\n\r\nhello";
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

fn get(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_edge_serves_and_counts() {
    let Some(mut edge) = Edge::start(&origin()) else { return };
    for status in ["fwd=uri-miss", "hit"] {
        let answer = get(&edge.address);
        let header = format!("Cache-Status: longhaul-edge; {status}\r\n");
        assert!(answer.contains(&header) && answer.ends_with("hello"), "{answer}");
    }
    edge.signal("TERM");
    let document = line(&mut edge.log);
    assert_eq!(document["schema"], "longhaul.edge/1");
    assert_eq!((&document["requests"], &document["from_cache"]), (&2.into(), &1.into()));
    assert_eq!((&document["by_status"]["miss"], &document["sent_bytes"]), (&1.into(), &10.into()));
    assert_eq!(edge.child.wait().unwrap().code(), Some(0));
    assert!(TcpStream::connect(&edge.address).is_err());
}

#[test]
fn nginx_ends_with_a_killed_edge() {
    let Some(mut edge) = Edge::start(&origin()) else { return };
    let processes = edge.descendants();
    assert!(processes.len() >= 2, "{processes:?}");
    edge.signal("KILL");
    edge.child.wait().unwrap();
    until(|| processes.iter().all(|pid| !exists(&format!("/proc/{pid}/exe"))));
    assert!(TcpStream::connect(&edge.address).is_err());
}

#[test]
fn the_configuration_is_printed_without_nginx() {
    let text = printed(&["boost", "edge", "--origin", "https://origin.example/pub", "--print"]);
    for directive in
        ["listen 127.0.0.1:8080;", "proxy_pass https://origin/pub/;", "proxy_cache_lock on;"]
    {
        assert!(text.contains(directive), "{text}");
    }
    for (arguments, says) in [
        (["--origin", "http://a;b"], "--origin"),
        (["--origin", "ftp://a"], "other than http"),
        (["--origin", "http://127.0.0.1:8080"], "this edge itself"),
    ] {
        let ended = run(&[&["boost", "edge"], &arguments[..]].concat());
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code() == Some(2) && stderr.contains(says), "{arguments:?}: {stderr}");
    }
}
