//! Control characters from every source of text: none may reach the terminal, a
//! log or a JSON document as it is.

use crate::peer;
use crate::program::{Server, command, printed, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use record::{ConnectionId, HostFacts, RECORDING_SCHEMA, RecordingHead, RecordingLine};
use record::{ConnectionSample, Sample};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

/// What a terminal obeys, or what reorders and hides what it shows (UAX #9).
fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of an attacker's: escape sequences among letters, and what JSON, TOML and
/// CSV give a meaning to. No NUL, which no argument can hold.
fn hostile() -> impl Strategy<Value = String> {
    const PIECES: [&str; 22] = [
        "\u{1b}[2J",
        "\u{1b}]0;title\u{7}",
        "\u{1b}[31m",
        "\u{1b}[8m",
        "\u{1b}c",
        "\u{9b}2J",
        "\u{90}q\u{9c}",
        "\u{7f}",
        "\r",
        "\u{8}\u{8}",
        "\u{85}",
        "\u{202e}",
        "\u{2066}",
        "\u{2028}",
        "\u{200f}",
        "\u{1}",
        "\u{e}",
        "a",
        "x=1",
        ",",
        ":",
        "'",
    ];
    proptest::collection::vec(proptest::sample::select(&PIECES), 1..8).prop_map(|parts| {
        // One of them at least.
        parts.concat() + "\u{1b}[5m"
    })
}

fn checked(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found: Vec<char> = text.chars().filter(|c| is_dangerous(*c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
}

/// Runs it and looks at both streams; whether it succeeds is its own matter.
fn shows_nothing(arguments: &[&str]) {
    let output = run(arguments);
    checked(&format!("{arguments:?}, stdout"), &output.stdout);
    checked(&format!("{arguments:?}, stderr"), &output.stderr);
    assert_ne!(output.status.code(), None, "{arguments:?} was killed");
}

fn for_each_text(cases: u32, test: impl Fn(&str)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let runner = &mut TestRunner::new(config);
    let ran = runner.run(&hostile(), |text| {
        test(&text);
        Ok(())
    });
    ran.unwrap();
}

/// A string of JSON, and of TOML too.
fn quoted(text: &str) -> String {
    let escaped: String = text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    format!("\"{escaped}\"")
}

#[test]
fn arguments_are_repeated_without_them() {
    for_each_text(8, |text| {
        for arguments in [
            &[text][..],
            &["bdp", text, "1ms"],
            &["test", "127.0.0.1", text, text],
            &["test", "127.0.0.1", "-C", text, "-p", "1"],
            &["ping", text],
            &["watch", "--dst", text],
            &["explain", text],
            &["iperf3", "-c", "127.0.0.1", "-B", text],
            &["iperf2", "-c", "127.0.0.1", "-B", text],
            &["lab", "run", "--link", text, "--", "true"],
            &["lab", "exec", "--lab", text, "host"],
        ] {
            shows_nothing(arguments);
        }
    });
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn plans_and_traces_are_quoted_without_them() {
    let folder = tempfile::tempdir().unwrap();
    for_each_text(6, |text| {
        let name = quoted(text);
        let plans = [
            text.to_owned(),
            format!("name = {name}\n"),
            format!("[host.{name}]\n[host.b]\n"),
            format!("[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", {name}]\npath = \"geo\"\n"),
            format!("[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\npath = {name}\n"),
            format!("[host.a]\n[[run]]\non = {name}\ncommand = \"true\"\n"),
            format!("[host.a]\n{name} = 1\n"),
        ];
        for plan in plans {
            let file = written(folder.path(), "plan.toml", &(plan + "\n[unfinished"));
            shows_nothing(&["lab", "up", &file]);
        }
        let csv = format!("link,way,number,fate\n{text},up,1,dropped\n{text},up,x,dropped\n");
        let trace = written(folder.path(), "trace", &format!("1\nx{text}\n"));
        let log = written(folder.path(), "log.csv", &csv);
        let paths = written(folder.path(), "p.toml", &format!("[{name}]\nbase = {name}\n"));
        for link in [
            format!("rate=trace:{trace},rtt=1ms"),
            format!("rate=1mbit,rtt=1ms,loss=replay:{log}"),
            format!("rate=1mbit,rtt=1ms,loss=replay:{log}:none"),
            format!("{paths}:none"),
            paths,
        ] {
            shows_nothing(&["lab", "run", "--link", &link, "--", "true"]);
        }
    });
}

/// Every string of a document, one after the other, replaced.
fn with_each_string(document: &Value, text: &str, take: &mut dyn FnMut(&Value)) {
    fn count(value: &Value) -> usize {
        match value {
            Value::String(_) => 1,
            Value::Array(all) => all.iter().map(count).sum(),
            Value::Object(all) => all.values().map(count).sum(),
            _ => 0,
        }
    }
    fn replace(value: &mut Value, place: &mut usize, text: &str) {
        match value {
            Value::String(old) => {
                if *place == 0 {
                    text.clone_into(old);
                }
                *place = place.wrapping_sub(1);
            }
            Value::Array(all) => all.iter_mut().for_each(|one| replace(one, place, text)),
            Value::Object(all) => all.values_mut().for_each(|one| replace(one, place, text)),
            _ => {}
        }
    }
    for mut place in 0..count(document) {
        let mut changed = document.clone();
        replace(&mut changed, &mut place, text);
        take(&changed);
    }
}

#[test]
fn measurements_are_explained_without_them() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("m.json");
    let (kept, port) = (kept.to_str().unwrap(), server.port.as_str());
    printed(&["test", "127.0.0.1", "-p", port, "-n", "1M", "--save", kept]);
    let base: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    for_each_text(2, |text| {
        let explain = |value: &Value| {
            let mut value = value.clone();
            value["notes"] = json!([text]);
            let file = written(folder.path(), "changed.json", &value.to_string());
            shows_nothing(&["explain", &file, "--color", "never"]);
            shows_nothing(&["explain", &file, "--json"]);
        };
        with_each_string(&base, text, &mut |value| explain(value));
        let page = folder.path().join("p.html");
        let mut value = base.clone();
        (value["peer"], value["spec"]["target"]) = (text.into(), text.into());
        let file = written(folder.path(), "changed.json", &value.to_string());
        shows_nothing(&["explain", &file, "--html", page.to_str().unwrap()]);
        checked("the page", &std::fs::read(&page).unwrap());
        let unfinished = written(folder.path(), "broken.json", &format!("{{{text}"));
        shows_nothing(&["explain", &unfinished]);
    });
}

fn recording(text: &str) -> String {
    let head = RecordingHead {
        schema: RECORDING_SCHEMA.to_owned(),
        version: text.to_owned(),
        started_unix_s: 1_700_000_000,
        interval_s: 1.0,
        host: HostFacts { kernel: text.to_owned(), ..HostFacts::default() },
    };
    let who = ConnectionId {
        id: text.to_owned(),
        local: text.to_owned(),
        remote: text.to_owned(),
        pid: Some(7),
        program: Some(text.to_owned()),
        uid: 0,
        congestion: Some(text.to_owned()),
    };
    let look = |at: u32| RecordingLine::Sample {
        id: text.to_owned(),
        seen: ConnectionSample {
            sent: Sample {
                t_s: f64::from(at),
                acked_bytes: u64::from(at) * 1_000_000,
                ..Sample::default()
            },
            ..ConnectionSample::default()
        },
    };
    let lines = [RecordingLine::Connection(who), look(0), look(1), look(2)];
    let lines = lines.iter().map(|line| serde_json::to_string(line).unwrap());
    let head = serde_json::to_string(&head).unwrap();
    std::iter::once(head).chain(lines).map(|line| line + "\n").collect()
}

#[test]
fn recordings_are_explained_without_them() {
    let folder = tempfile::tempdir().unwrap();
    for_each_text(4, |text| {
        let file = written(folder.path(), "r.rec", &recording(text));
        shows_nothing(&["explain", &file, "--color", "never"]);
        shows_nothing(&["explain", &file, "--json"]);
        shows_nothing(&["explain", &file, "--connection", "1", "--color", "never"]);
        shows_nothing(&["explain", &file, "--connection", text]);
        let wrong = written(folder.path(), "w.rec", &(recording("x") + "{\"" + text + "\":1}\n"));
        shows_nothing(&["explain", &wrong]);
    });
}

/// A lab that is none, and answers whatever it is told to.
#[test]
fn a_labs_answers_are_shown_without_them() {
    let user = std::fs::metadata("/proc/self").unwrap().uid();
    let name = format!("escapes-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(format!("longhaul-lab/{user}/{name}")).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    let (send, answers) = std::sync::mpsc::channel::<String>();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            let _ = BufReader::new(&stream).read_line(&mut line);
            // Whoever asked may have gone.
            let _ = stream.write_all((answer + "\n").as_bytes());
        }
    });
    for_each_text(4, |text| {
        let refused = json!({"answer": "refused", "why": text});
        let host = json!({"name": text, "ipv4": "10.0.0.1", "ipv6": "::1", "namespace": 3});
        let link = json!({"name": text, "between": [text, text], "path": text});
        let inventory = json!({"answer": "inventory", "hosts": [host], "links": [link]});
        let answer = |text: String| send.send(text).unwrap();
        answer(refused.to_string());
        shows_nothing(&["lab", "set", "--lab", &name, "loss=1%"]);
        answer(inventory.to_string());
        shows_nothing(&["lab", "exec", "--lab", &name, "none"]);
        answer(refused.to_string());
        shows_nothing(&["watch", "--once", "--in-lab", &format!("{name}:none")]);
        answer(text.to_owned());
        shows_nothing(&["lab", "set", "--lab", &name, "loss=1%"]);
    });
}

#[test]
fn peers_are_shown_without_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for_each_text(2, |text| {
        let extra = json!({
            "version": text,
            "notes": [text],
            "streams": [{"id": 1, "congestion": text}],
        });
        let added = json!({
            "congestion_used": text,
            "server_output_text": format!("{text}\n{text}"),
            "longhaul": extra,
        });
        let as_json = json!({"server_output_json": {text: [text]}});
        for (added, arguments) in [
            (&added, &["test", "127.0.0.1", "-n", "1K", "--color", "never", "-p", &port][..]),
            (&added, &["test", "127.0.0.1", "-n", "1K", "--json", "-p", &port]),
            (
                &added,
                &[
                    "iperf3",
                    "-c",
                    "127.0.0.1",
                    "-n",
                    "1K",
                    "--get-server-output",
                    "-V",
                    "-p",
                    &port,
                ],
            ),
            (
                &added,
                &[
                    "iperf3",
                    "-c",
                    "127.0.0.1",
                    "-n",
                    "1K",
                    "--get-server-output",
                    "-J",
                    "-p",
                    &port,
                ],
            ),
            (
                &as_json,
                &["iperf3", "-c", "127.0.0.1", "-n", "1K", "--get-server-output", "-p", &port],
            ),
            (&as_json, &["iperf3", "-c", "127.0.0.1", "-n", "1K", "-T", text, "-p", &port]),
        ] {
            std::thread::scope(|scope| {
                // A client that refuses the results hangs up.
                scope.spawn(|| peer::serve_once(&listener, &peer::results(added)));
                shows_nothing(arguments);
            });
        }
    });
}

#[test]
fn a_servers_log_is_written_without_them() {
    let mut servers = [&["--verbose"][..], &["--verbose", "--json"]].map(Server::start);
    for_each_text(6, |text| {
        let broken = format!("{{{text}");
        let strange = json!({"tcp": true, "time": text, "parallel": text, "congestion": text,
            "title": text, text: text, "longhaul": {"version": text}});
        for server in &servers {
            let address = format!("127.0.0.1:{}", server.port).parse().unwrap();
            peer::ask(address, broken.as_bytes()).unwrap();
            peer::ask(address, strange.to_string().as_bytes()).unwrap();
        }
    });
    for server in &mut servers {
        server.signal("TERM");
        let mut log = String::new();
        loop {
            let line = server.line();
            if line.is_empty() {
                break;
            }
            log += &line;
        }
        assert!(log.lines().count() > 1, "{log}");
        checked("the log", log.as_bytes());
    }
}

/// A process chooses its own name (prctl(2), PR_SET_NAME), 15 bytes of anything.
#[test]
fn processes_are_listed_without_them() {
    let comm = "/proc/self/comm";
    let before = std::fs::read(comm).unwrap();
    std::fs::write(comm, "\u{1b}[2J\u{9b}1m\u{202e}x").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.write_all(&[0; 1000]).unwrap();
    far.read_exact(&mut [0; 1000]).unwrap();
    for arguments in [
        &["watch", "--once", "-i", "200ms", "--color", "never", "--port", &port][..],
        &["watch", "--once", "-i", "200ms", "--json", "--port", &port],
    ] {
        let mut watch = command(arguments);
        let output = watch.output().unwrap();
        checked("watch", &output.stdout);
        checked("watch", &output.stderr);
        assert!(String::from_utf8_lossy(&output.stdout).contains(&port));
    }
    std::fs::write(comm, before).unwrap();
}
