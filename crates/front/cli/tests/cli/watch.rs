//! `longhaul watch` over the loopback: what it lists, records and refuses.

use crate::program::{command, printed, run};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Connections of this test's own, idle, and the port of their listener.
fn idle(count: usize) -> (Vec<(TcpStream, TcpStream)>, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = |_| {
        let near = TcpStream::connect(("127.0.0.1", port)).unwrap();
        (near, listener.accept().unwrap().0)
    };
    ((0..count).map(pair).collect(), port)
}

/// One that carries what it can until dropped.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
    port: u16,
}

impl Busy {
    fn start() -> Self {
        let (mut pairs, port) = idle(1);
        let (mut near, mut far) = pairs.remove(0);
        // Without pacing, whose timers a busy machine delays.
        host::tcp_info::set_congestion(&near, "reno").unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let writer = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) && near.write_all(&[7; 16 << 10]).is_ok() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let reader = std::thread::spawn(move || {
            let mut block = [0; 64 << 10];
            while far.read(&mut block).is_ok_and(|length| length > 0) {}
        });
        Busy { stop, threads: vec![writer, reader], port }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn looks(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_thousand_sockets_are_all_listed() {
    // Two ends each; the usual limit of a process is 1024 open files.
    host::limits::raise_open_files().unwrap();
    let (_pairs, port) = idle(500);
    let (pid, port) = (std::process::id().to_string(), port.to_string());
    let arguments = ["watch", "--json", "--port", &port, "-c", "2", "-i", "200ms"];
    for arguments in [&arguments[..], &[&arguments[..], &["--pid", &pid]].concat()] {
        let reports = looks(&printed(arguments));
        assert_eq!(reports.len(), 2);
        for report in reports {
            assert_eq!(report["schema"], "longhaul.watch/2");
            assert_eq!(report["matching"], 1000, "{arguments:?}");
            let connections = report["connections"].as_array().unwrap();
            assert_eq!(connections.len(), 1000);
            assert!(connections.iter().all(|one| one["pid"] == std::process::id()));
            assert!(connections.iter().all(|one| one["state"] == "established"));
        }
    }
}

#[test]
fn what_carries_payload_comes_first() {
    let (_pairs, quiet) = idle(5);
    let busy = Busy::start();
    let ports = format!("{quiet},{}", busy.port);
    let json = printed(&["watch", "--once", "--json", "--port", &ports, "-i", "500ms"]);
    let report = &looks(&json)[0];
    assert_eq!((&report["matching"], &report["busy"]), (&12.into(), &2.into()), "{report}");
    let first = &report["connections"][0];
    let ends = [first["local"].as_str().unwrap(), first["remote"].as_str().unwrap()];
    assert!(ends.iter().any(|end| end.ends_with(&format!(":{}", busy.port))), "{first}");
    let rates = ["sends_bps", "receives_bps"].map(|key| first[key].as_f64().unwrap());
    assert!(rates[0].max(rates[1]) > 1e5, "{first}");
    assert!(first["why"].is_string() && first["rtt_ms"].as_f64().unwrap() > 0.0, "{first}");

    let only = printed(&["watch", "--once", "--json", "--busy", "--port", &ports, "--top", "1"]);
    let report = &looks(&only)[0];
    assert_eq!(report["matching"], 2);
    assert_eq!(report["connections"].as_array().unwrap().len(), 1);
    let elsewhere = ["watch", "--once", "--json", "--port", &ports, "--dst", "192.0.2.0/24"];
    assert_eq!(looks(&printed(&elsewhere))[0]["matching"], 0);

    for color in ["never", "always"] {
        let text = printed(&["watch", "--once", "--port", &ports, "--color", color]);
        // Of how many, depends on what else this machine does.
        let counted = text.contains("12 of ") || text.contains("12 connections");
        assert!(counted && text.contains("127.0.0.1:"), "{text}");
        assert_eq!(text.contains('\u{1b}'), color == "always", "{text}");
        if color == "never" {
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}

#[test]
fn a_recording_is_explained() {
    let busy = Busy::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.rec");
    let (file, port) = (file.to_str().unwrap(), busy.port.to_string());
    let arguments = ["watch", "--record", file, "-q", "--port", &port, "-c", "10", "-i", "200ms"];
    assert_eq!(printed(&arguments), "");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(file).unwrap());
    assert_eq!(mode & 0o777, 0o600, "who talks to whom is nobody else's business");
    let json = printed(&["explain", file, "--json"]);
    let explained: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(explained["schema"], "longhaul.explained-recording/2");
    let all = explained["connections"].as_array().unwrap();
    assert_eq!(all.len(), 2, "both ends are here: {json}");
    let sender = all.iter().find(|one| one["sends"] == true).unwrap();
    // Its program sleeps between writes: 16 kB every 2 ms and more.
    assert_eq!(sender["limit"], "application", "{sender}");
    assert_eq!(all.iter().find(|one| one["sends"] == false).unwrap()["limit"], Value::Null);
    let text = printed(&["explain", file]);
    assert!(text.contains("application-limited"), "{text}");
    let remote = sender["remote"].as_str().unwrap();
    let page = folder.path().join("one.html");
    let one = printed(&["explain", file, "--connection", remote, "--html", page.to_str().unwrap()]);
    assert!(one.contains("goodput") && page.exists(), "{one}");

    for (arguments, code, says) in [
        (&["explain", file, "--connection", "99"][..], 2, "from 1 to 2"),
        (&["explain", file, "--html", "x.html"], 2, "--connection 1"),
    ] {
        let output = run(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{complaint}");
        assert!(complaint.contains(says) && complaint.lines().count() == 1, "{complaint}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none/r.rec");
    let empty = folder.path().join("empty.rec");
    let head = r#"{"schema":"longhaul.recording/1","version":"0","started_unix_s":1,
        "interval_s":1.0,"host":{"kernel":"","cores":1,"tcp_rmem":null,"tcp_wmem":null,
        "busy_before":null}}"#;
    std::fs::write(&empty, head.replace('\n', "") + "\n").unwrap();
    let broken = folder.path().join("broken.rec");
    std::fs::write(&broken, head.replace('\n', "") + "\nwhat\n").unwrap();
    for (arguments, code, says) in [
        (&["watch", "--pid", "4294967295"][..], 2, "no process has PID 4294967295"),
        (&["watch", "--pid", "x"], 2, "--pid"),
        (&["watch", "--port", "0"], 2, "--port"),
        (&["watch", "--dst", "10.0.0.0/33"], 2, "192.0.2.0/24"),
        (&["watch", "--dst", "no.such.host.invalid"], 2, "no.such.host.invalid"),
        (&["watch", "-i", "1ms"], 2, "100ms"),
        (&["watch", "-c", "0"], 2, "--count"),
        (&["watch", "--sort", "colour"], 2, "--sort"),
        (&["watch", "-q"], 2, "--record"),
        (&["watch", "--once", "--in-lab", "nobody:there"], 2, "lab"),
        (&["watch", "--once", "--record", missing.to_str().unwrap()], 1, "cannot write"),
        (&["explain", empty.to_str().unwrap()], 1, "no connection with traffic"),
        (&["explain", broken.to_str().unwrap()], 1, "line 2"),
    ] {
        let output = run(arguments);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
        assert!(complaint.contains(says), "{arguments:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(output.stdout.is_empty());
    }
}

/// Without an end it goes on until it is told to, or until nobody reads.
#[test]
fn it_ends_when_told_to() {
    let start = || {
        let mut watch = command(&["watch", "--json", "-i", "100ms"]);
        watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first_line = |child: &mut std::process::Child| {
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    };
    for signal in ["INT", "TERM", "HUP"] {
        let mut child = start();
        first_line(&mut child);
        let id = child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{signal}");
        // Every line is whole.
        assert!(output.stderr.is_empty() && output.stdout.ends_with(b"\n"));
    }
    let mut child = start();
    first_line(&mut child);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
