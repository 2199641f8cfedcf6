//! The drop-in for iperf3: its flags, and its output beside the real one's.

use crate::program::{command, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

#[test]
fn wrong_flags_are_one_line_and_exit_with_one() {
    for (flags, says) in [
        (&[][..], "-c HOST"),
        (&["-s", "-c", "x"], "cannot be used with"),
        (&["-s", "-u"], "--server cannot be used with --udp"),
        (&["-s", "--rev"], "--reverse"),
        (&["-c", "x", "-D"], "--daemon"),
        (&["-c", "x", "--server-max-duration", "3"], "--server-max-duration"),
        (&["-c", "x", "-p", "0"], "1 to 65535"),
        (&["-c", "x", "-p", "9-8"], "range"),
        (&["-c", "x", "-t", "86401"], "0 to 86400 seconds"),
        (&["-c", "x", "-t", "abc"], "0 to 86400 seconds"),
        (&["-c", "x", "-t", "1", "-n", "1"], "cannot be used with"),
        (&["-c", "x", "-n", "1", "-k", "1"], "cannot be used with"),
        (&["-c", "x", "-R", "--bidir"], "cannot be used with"),
        (&["-c", "x", "-i", "0.05"], "0.1 to 60"),
        (&["-c", "x", "-i", "61"], "0.1 to 60"),
        (&["-c", "x", "-O", "601"], "0 to 600"),
        (&["-c", "x", "-P", "129"], "1 to 128"),
        (&["-c", "x", "-w", "513M"], "512M"),
        (&["-c", "x", "-l", "2M"], "1M"),
        (&["-c", "x", "-u", "-l", "15"], "16 to 65507"),
        (&["-c", "x", "-M", "32768"], "32767"),
        (&["-c", "x", "-b", "1Q"], "50M"),
        (&["-c", "x", "-b", "1M/1001"], "1 to 1000"),
        (&["-c", "x", "-S", "256"], "0 to 255"),
        (&["-c", "x", "--dscp", "64"], "0 to 63"),
        (&["-c", "x", "-L", "0"], "1 to 1048575"),
        (&["-c", "x", "-A", "1025"], "0 to 1024"),
        (&["-c", "x", "-f", "x"], "k, m, g or t"),
        (&["-c", "x", "--cport", "0"], "1 to 65535"),
        (&["-c", "x", "--rcv-timeout", "99", "-R"], "100 to"),
        (&["-c", "x", "--rcv-timeout", "1000"], "--reverse"),
        (&["-c", "x", "--cntl-ka=6/2/3"], "exceed the product"),
        (&["-s", "--idle-timeout", "0"], "1 to 86400"),
        (&["-s", "--server-bitrate-limit", "1M/61"], "0.1 to 60"),
        (&["-s", "--time-skew-threshold", "0"], "1 to 86400"),
        (&["-s", "--rsa-private-key-path", "x"], "authorized-users-path"),
        (&["-c", "x", "--username", "me"], "rsa-public-key-path"),
        (&["-c", "x", "-F", "/dev/null", "-u"], "--udp"),
        (&["-c", "x", "-B", "nowhere"], "not an address"),
        (&["-c", "x", "--sctp"], "SCTP"),
        (&["-c", "x", "-X", "y"], "SCTP"),
        (&["-c", "x", "-x"], "-x"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["-s", "--logfile", "/no/such/folder/log"], "log file"),
        (&["-s", "-I", "/no/such/folder/pid"], "process id"),
    ] {
        let output = run(&[&["iperf3"], flags].concat());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {text}");
        assert!(text.starts_with("iperf3: "), "{flags:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{flags:?}: {text}");
        assert!(text.contains(says), "{flags:?}: {text}");
        assert!(output.stdout.is_empty(), "{flags:?}");
    }
}

#[test]
fn the_version_begins_as_dashboards_want_it() {
    for flag in ["-v", "--version"] {
        let output = run(&["iperf3", flag]);
        assert!(output.stdout.starts_with(b"iperf 3.21 (longhaul "), "{flag}");
    }
}

#[test]
fn a_link_called_iperf3_is_the_verb() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("iperf3");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_longhaul"), &link).unwrap();
    let output = Command::new(&link).arg("--version").output().unwrap();
    assert!(output.stdout.starts_with(b"iperf 3.21 "));
    assert_eq!(Command::new(&link).arg("-c").output().unwrap().status.code(), Some(1));
}

/// What another user planted in a directory such as /tmp is not written through.
#[test]
fn planted_links_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (shared, precious) = (folder.path().join("shared"), folder.path().join("precious"));
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    std::fs::write(&precious, "precious").unwrap();
    let planted = shared.join("planted");
    symlink(&precious, &planted).unwrap();
    let planted = planted.to_str().unwrap();
    for flags in [["--logfile", planted], ["--pidfile", planted]] {
        let port = free_port();
        let output = run(&[&["iperf3", "-c", "127.0.0.1", "-p", &port], &flags[..]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("is a symbolic link") && said.lines().count() == 1, "{said}");
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    let output = run(&["watch", "--record", planted, "-q", "-c", "1"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("is a symbolic link"));
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}

#[test]
fn a_failed_test_is_a_whole_document() {
    // A port that was free a moment ago, and nobody listens on.
    let port = free_port();
    let output = run(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["error"].as_str().unwrap().contains("cannot connect"), "{document}");
    assert!(document["start"]["version"].is_string() && document["end"].is_object());
}

/// The parent of a server in the background waits until it listens, or says why it does not.
#[test]
fn a_server_in_the_background_reports_a_busy_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let flags = ["iperf3", "-s", "-D", "-1", "-B", "127.0.0.1", "-p", &port];
    let output = run(&flags);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("iperf3: error") && said.contains("in use"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    drop(taken);
    let output = run(&flags);
    assert_eq!(output.status.code(), Some(0), "{:?}", output.stderr);
    assert!(output.stderr.is_empty(), "{:?}", output.stderr);
    // It listens already.
    let test = run(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-n", "1K"]);
    assert!(test.status.success(), "{test:?}");
}

/// A client that is refused while another one is tested is a document of its own.
#[test]
fn a_refused_client_is_a_document_of_the_server() {
    let port = free_port();
    let serving = Server::start(Whose::Ours, &port, &["-J"]);
    let to = ["-c", "127.0.0.1", "-p", &port];
    let mut first =
        iperf3(Whose::Ours, &[&to[..], &["-t", "2", "-b", "1M", "--json-stream"]].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut output = BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("\"start\""), "{line}");
    let refused = iperf3(Whose::Ours, &[&to[..], &["-t", "1"]].concat()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    output.read_to_string(&mut line).unwrap();
    assert!(first.wait().unwrap().success());
    let text = serving.end();
    let documents: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .map(|document| document.unwrap_or_else(|error| panic!("{error}: {text}")))
        .collect();
    let errors: Vec<&str> =
        documents.iter().filter_map(|document| document["error"].as_str()).collect();
    assert!(matches!(errors[..], [only] if only.contains("was refused")), "{text}");
    assert_eq!(documents.len(), 2, "{text}");
}

fn free_port() -> String {
    stall_retry::free_port().to_string()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Whose {
    Ours,
    Theirs,
}

fn iperf3(whose: Whose, flags: &[&str]) -> Command {
    match whose {
        Whose::Ours => {
            let mut ours = command(&["iperf3"]);
            ours.args(flags);
            ours
        }
        Whose::Theirs => {
            let mut theirs = Command::new("iperf3");
            theirs.args(flags).stdin(Stdio::null());
            theirs
        }
    }
}

/// Whether a real one is at hand; without it its half of a test is left out,
/// unless peers are required.
fn has_real() -> bool {
    let found = Command::new("iperf3").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("LONGHAUL_REQUIRE_PEERS").is_none(), "no iperf3 here");
    found
}

/// A server for one test, and what it printed.
struct Server(Child, BufReader<std::process::ChildStdout>);

impl Server {
    fn start(whose: Whose, port: &str, flags: &[&str]) -> Self {
        let mut child = iperf3(whose, &[&["-s", "-1", "-p", port, "--forceflush"], flags].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        // It listens when the kernel says so; a connection would be a test.
        let needle = format!(":{:04X} ", port.parse::<u16>().unwrap());
        let listens = |table: &str| {
            let text = std::fs::read_to_string(table).unwrap_or_default();
            text.lines().any(|line| line.contains(&needle) && line.contains(" 0A "))
        };
        while !listens("/proc/net/tcp") && !listens("/proc/net/tcp6") {
            assert!(child.try_wait().unwrap().is_none(), "the server ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Server(child, output)
    }

    fn end(mut self) -> String {
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        text
    }
}

/// What a client and its server print.
fn pair(client: Whose, server: Whose, flags: &[&str], both: &[&str]) -> (String, String) {
    let port = free_port();
    let serving = Server::start(server, &port, both);
    let all = [&["-c", "127.0.0.1", "-p", &port], flags, both].concat();
    let output = iperf3(client, &all).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{client:?} {all:?}: {text}");
    (text, serving.end())
}

/// Keys of 3.21 that the real one may be too old for.
const NEWER: [&str; 9] =
    ["reorder", "fq_rate", "bidir", "fqrate", "gro", "gso", "interval", "timemillisecs", "title"];

fn keys(text: &str) -> BTreeSet<String> {
    fn collect(value: &Value, path: &str, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(entries) => entries.iter().for_each(|(key, value)| {
                if !NEWER.contains(&key.as_str()) {
                    into.insert(format!("{path}.{key}"));
                    collect(value, &format!("{path}.{key}"), into);
                }
            }),
            Value::Array(values) => {
                values.iter().for_each(|value| collect(value, &format!("{path}[]"), into));
            }
            _ => {}
        }
    }
    let mut into = BTreeSet::new();
    collect(&serde_json::from_str(text).unwrap(), "", &mut into);
    into
}

const MODES: [&[&str]; 8] = [
    &["-t", "1"],
    &["-t", "1", "-R"],
    &["-t", "1", "--bidir", "-P", "2"],
    &["-t", "1", "-O", "1"],
    &["-t", "1", "-u"],
    &["-t", "1", "-u", "-R"],
    &["-t", "1", "-u", "--bidir"],
    &["-t", "1", "-T", "name", "--extra-data", "more", "--get-server-output"],
];

/// The real ends, our client with a real server, a real client with ours: at the
/// same time, for it is their words that are compared and not their speed.
fn three(mode: &[&str], more: &[&str]) -> [(String, String); 3] {
    let ends = [
        (Whose::Theirs, Whose::Theirs),
        (Whose::Ours, Whose::Theirs),
        (Whose::Theirs, Whose::Ours),
    ];
    std::thread::scope(|all| {
        ends.map(|(client, server)| all.spawn(move || pair(client, server, mode, more)))
            .map(|one| one.join().unwrap())
    })
}

#[test]
fn documents_have_the_real_ones_keys() {
    if !has_real() {
        return;
    }
    for mode in MODES {
        let [real, client, server] = three(mode, &["-J"]);
        assert_eq!(keys(&real.0), keys(&client.0), "our client, {mode:?}");
        assert_eq!(keys(&real.1), keys(&server.1), "our server, {mode:?}");
        assert_eq!(keys(&real.0), keys(&server.0), "a client of ours, {mode:?}");
    }
}

/// Lines without their figures: each number is a `#`, rows of the same form once.
fn forms(text: &str) -> BTreeSet<String> {
    let forms = text.lines().map(|line| {
        let words = line.split_whitespace().map(|word| {
            let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let unit =
                ["Bytes", "KBytes", "MBytes", "GBytes", "bits/sec", "Kbits/sec", "Mbits/sec"];
            match bare {
                _ if bare.starts_with(|c: char| c.is_ascii_digit()) => "#",
                _ if unit.contains(&bare) || bare.ends_with("bits/sec") => "unit",
                _ => word,
            }
        });
        words.collect::<Vec<_>>().join(" ")
    });
    forms.collect()
}

#[test]
fn rows_have_the_real_ones_columns() {
    if !has_real() {
        return;
    }
    // With one row in all the real one prints the heading of a sender, whatever it is.
    const ROWS: &[&str] = &["-i", "0.5"];
    for mode in MODES {
        let [real, client, server] = three(mode, ROWS);
        assert_eq!(forms(&real.0), forms(&client.0), "our client, {mode:?}");
        let without_banner = |text: &str| {
            text.lines().filter(|line| !line.contains("listening")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(forms(&without_banner(&real.1)), forms(&without_banner(&server.1)), "{mode:?}");
    }
}

#[test]
fn a_stream_is_a_line_for_each_thing() {
    let (client, _) = pair(Whose::Ours, Whose::Ours, &["-t", "1", "--json-stream"], &[]);
    let events: Vec<Value> =
        client.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"start"), Some(&"end")), "{names:?}");
    assert!(names.contains(&"interval"), "{names:?}");
}
