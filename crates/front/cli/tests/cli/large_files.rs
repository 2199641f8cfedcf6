//! Files that have no end, are none, or are larger than what they are read for;
//! and a recording that stays below its limit.

use crate::program::{command, run};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

fn refused(arguments: &[&str], says: &str) {
    let output = run(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?}: {text}");
    assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    assert!(text.contains(says), "{arguments:?}: {text}");
}

/// Every way to name a file to read, with `file` for it.
fn each_reader(file: &str, says: &str) {
    let trace = format!("rate=trace:{file},rtt=1ms");
    let log = format!("rate=1mbit,rtt=1ms,loss=replay:{file}");
    for arguments in [
        &["lab", "up", file][..],
        &["lab", "run", "--link", &trace, "--", "true"],
        &["lab", "run", "--link", &log, "--", "true"],
        &["explain", file],
        &["test", "127.0.0.1", "-p", "1", "--compare", file],
        &["trace", "127.0.0.1", "--mmdb", file],
        &["server", "--tokens", file],
        &["server", "--private-key", file, "--users", file],
        &["iperf3", "-s", "--rsa-private-key-path", file, "--authorized-users-path", file],
    ] {
        refused(arguments, says);
    }
}

#[test]
fn what_is_no_file_is_not_read() {
    each_reader("/dev/zero", "a device");
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    // Nobody writes to it: opening it the plain way would wait for ever.
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    each_reader(fifo.to_str().unwrap(), "a FIFO");
}

/// A file of that length without contents: it takes no room.
fn sparse(path: &Path, bytes: u64) {
    std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn what_is_too_large_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, bytes) in [("plan.toml", 1 << 20), ("trace", 64 << 20), ("words", 1 << 20)] {
        sparse(&at(name), bytes + 1);
    }
    sparse(&at("key"), (64 << 10) + 1);
    sparse(&at("places.mmdb"), (512 << 20) + 1);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    refused(&["lab", "up", &text("plan.toml")], "larger than the limit of 1 MiB");
    let trace = format!("rate=trace:{},rtt=1ms", text("trace"));
    refused(&["lab", "run", "--link", &trace, "--", "true"], "larger than the limit");
    refused(&["server", "--tokens", &text("words")], "larger than the limit");
    let users = text("words");
    refused(&["server", "--private-key", &text("key"), "--users", &users], "larger than");
    refused(&["trace", "127.0.0.1", "--mmdb", &text("places.mmdb")], "larger than the limit");
}

/// What a running lab would be asked to read is read by who asks, and an error
/// about it repeats nothing of it.
#[test]
fn no_error_repeats_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shadow");
    std::fs::write(&file, "root:secret-hash:19000:0:99999:7:::\n").unwrap();
    let file = file.to_str().unwrap();
    for link in [format!("rate=trace:{file},rtt=1ms"), format!("rate=1mbit,loss=replay:{file}")] {
        let output = run(&["lab", "run", "--link", &link, "--", "true"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("line 1") || text.contains("header line"), "{text}");
        assert!(!text.contains("root") && !text.contains("hash"), "{text}");
    }
}

#[test]
fn a_recording_stops_at_its_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    std::thread::spawn(move || std::io::copy(&mut far, &mut std::io::sink()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.rec");
    let (name, port) = (file.to_str().unwrap(), port.to_string());
    let arguments = ["watch", "--record", name, "--record-max", "12kB", "-q", "-i", "100ms"];
    let mut child = command(&[&arguments[..], &["--port", &port]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It ends by itself: there is nothing else for it to do.
    while child.try_wait().unwrap().is_none() {
        near.write_all(&[7; 16 << 10]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("recording stopped at 12 kB"), "{said}");
    let length = std::fs::metadata(&file).unwrap().len();
    assert!((1000..=12_000).contains(&length), "{length} bytes");
    assert_eq!(run(&["explain", name]).status.code(), Some(0));
}
