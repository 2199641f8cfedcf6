//! `longhaul boost`: both boxes as processes, with the keys of one pair.

use crate::program::{command, printed, run};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// What every wait is bounded by.
const LONG: Duration = Duration::from_secs(30);

/// A box that runs; killed when dropped.
struct Running {
    child: Child,
    log: BufReader<ChildStdout>,
    /// The address of its first listener.
    address: String,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child =
            command(&[&["boost"], arguments].concat()).stdout(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "{arguments:?} ended");
            if let Some(rest) = line.split("Listening on ").nth(1) {
                break rest.split([' ', ';', ',']).next().unwrap().to_owned();
            }
        };
        Running { child, log, address }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// The rest of its log, once it has ended by itself.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the keys of a pair that `boost pair` prints.
fn key_files(directory: &Path) -> [String; 2] {
    let text = printed(&["boost", "pair"]);
    ["near:", "far:"].map(|role| {
        let key = text.lines().find(|line| line.starts_with(role)).unwrap();
        let path = directory.join(format!("{}key", role.replace(':', ".")));
        let mut options = std::fs::OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .unwrap()
            .write_all(key.as_bytes())
            .unwrap();
        path.to_str().unwrap().to_owned()
    })
}

struct Pair {
    near: Running,
    far: Running,
    target: TcpListener,
}

impl Pair {
    fn start(directory: &Path) -> Self {
        let [near_key, far_key] = key_files(directory);
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = target.local_addr().unwrap().to_string();
        let far = Running::start(&["far", "-l", "0", "--key-file", &far_key, "--allow", &address]);
        let forward = format!("0:{address}");
        let near = ["near", "--far", &far.address, "--key-file", &near_key, "-L", &forward, "-v"];
        Pair { near: Running::start(&near), far, target }
    }

    /// A flow that has carried a byte.
    fn flow(&self) -> (TcpStream, TcpStream) {
        let mut application = TcpStream::connect(&self.near.address).unwrap();
        application.write_all(b"x").unwrap();
        let (mut server, _) = self.target.accept().unwrap();
        for stream in [&application, &server] {
            stream.set_read_timeout(Some(LONG)).unwrap();
        }
        server.read_exact(&mut [0]).unwrap();
        (application, server)
    }
}

/// Killed at any moment, a box says RST and never FIN.
#[test]
fn a_box_that_is_killed_resets_its_flows() {
    for kills_near in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let pair = Pair::start(directory.path());
        let (application, server) = pair.flow();
        // Half of it is over already.
        let (half, server_of_half) = pair.flow();
        half.shutdown(std::net::Shutdown::Write).unwrap();
        if kills_near { &pair.near } else { &pair.far }.signal("KILL");
        for mut stream in [application, server, half] {
            let error = stream.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "near {kills_near}");
        }
        drop(server_of_half);
    }
}

#[test]
fn a_box_that_is_terminated_prints_what_it_carried() {
    let directory = tempfile::tempdir().unwrap();
    let pair = Pair::start(directory.path());
    let (application, server) = pair.flow();
    pair.near.signal("TERM");
    drop(application);
    drop(server);
    let Pair { near, far, .. } = pair;
    let log = near.rest();
    assert!(log.contains("sent 1 bytes, received 0 bytes"), "{log}");
    assert!(log.contains("1 flow in ") && log.contains("0 refused, 0 reset"), "{log}");
    far.signal("TERM");
    assert!(far.rest().contains("1 flow in "));
}

#[test]
fn running_boxes_say_what_they_carry() {
    let directory = tempfile::tempdir().unwrap();
    let pair = Pair::start(directory.path());
    let (application, server) = pair.flow();
    let pid = pair.near.child.id();
    let here: Value = serde_json::from_str(&printed(&["boost", "status", "--json"])).unwrap();
    assert_eq!(here["schema"], "longhaul.boost-status/1");
    let boxes = here["boxes"].as_array().unwrap();
    let near = boxes.iter().find(|one| one["pid"] == pid).unwrap();
    assert_eq!((&near["role"], &near["active_flows"]), (&"near".into(), &1.into()), "{here:#}");
    assert_eq!(near["in_bytes"], 1);
    let text = printed(&["boost", "status"]);
    assert!(text.contains(&format!("process {pid}")) && text.contains("1 open"), "{text}");
    drop((application, server));
    // Nobody is there.
    let nobody = run(&["boost", "status", "127.0.0.1:1"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8(nobody.stdout).unwrap().contains("does not answer"));
}

#[test]
fn what_is_missing_is_named() {
    let said = |arguments: &[&str]| {
        let output = run(&[&["boost"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let [near_key, far_key] = key_files(directory.path());
    for (arguments, part) in [
        (&["far"][..], "--key-file"),
        (&["far", "--insecure", "-l", "0.0.0.0:0"], "--allow"),
        (&["far", "--insecure", "--allow", "x"], "HOST:PORT"),
        (&["far", "--key-file", &near_key], "key of the near box"),
        (&["near", "--far", "a", "-L", "1:b:2", "--key-file", &far_key], "key of the far box"),
        (&["near", "--far", "a", "-L", "1:b", "--insecure"], "not a forwarded port"),
        (&["near", "--far", "a:0", "-L", "1:b:2", "--insecure"], "HOST or HOST:PORT"),
        (&["far", "--insecure", "-C", "none"], "available:"),
        (&["verify", "--", "true"], "--far"),
        (&["verify", "--far", "a", "--insecure"], "HOST"),
        (&["verify", "--far", "a", "--", "true"], "--key-file"),
        (&["verify", "--link", "rate=fast"], "--link"),
        (&["verify", "--solo", "--repeat", "0", "h"], "--repeat"),
    ] {
        assert!(said(arguments).contains(part), "{arguments:?}: {}", said(arguments));
    }
}

#[test]
fn events_are_documents() {
    let mut child = command(&["boost", "far", "--insecure", "-l", "0", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        log.read_line(&mut line).unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["schema"], "longhaul.boost-event/1");
        if event["event"] == "listening" {
            assert_eq!((&event["role"], &event["encrypted"]), (&"far".into(), &false.into()));
            break;
        }
    }
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let last = log.lines().last().unwrap().unwrap();
    let document: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&document["schema"], &document["flows"]), (&"longhaul.boost/1".into(), &0.into()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
