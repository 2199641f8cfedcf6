//! The page in headless Chromium, and its protocol between hosts of a lab. Where Chromium is missing,
//! or a lab cannot be made, a test counts as ignored.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test they are assertions")]

#[path = "web/page.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod page;

#[path = "web/lab.rs"]
mod lab_cases;
#[path = "../benches/legs/run.rs"]
mod legs_run;

use libtest_mimic::{Arguments, Failed, Trial};
use page::Server;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use web::{WebEvent, WebRequest};

fn main() {
    // A case in a lab has a process of its own, which has one thread when it enters the sandbox.
    if let Some(case) = std::env::var_os(lab_cases::CASE) {
        std::process::exit(lab_cases::run(&case.to_string_lossy()));
    }
    let version = Command::new("chromium").arg("--version").output();
    let is_missing = !version.is_ok_and(|output| output.status.success());
    let mut trials = vec![
        Trial::test("a_browser_runs_the_page_without_an_error", runs_without_an_error)
            .with_ignored_flag(is_missing),
        Trial::test("the_page_measures_two_legs_in_turns", measures_two_legs)
            .with_ignored_flag(is_missing),
        Trial::test("the_page_measures_ipv4_beside_ipv6", measures_both_families)
            .with_ignored_flag(is_missing),
    ];
    trials.extend(lab_cases::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Chromium, which ends with the test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Opens a page, for which names have the addresses of rules that end with a comma; its console goes to `log` in the folder.
fn open(folder: &TempDir, url: &str, names: &str) -> Browser {
    let rules = format!("--host-resolver-rules={names}MAP * ~NOTFOUND , EXCLUDE 127.0.0.1");
    Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args([rules.as_str(), "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--remote-debugging-port=0")
        .arg(url)
        .env("HOME", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(folder.path().join("log")).unwrap())
        .spawn()
        .map(Browser)
        .unwrap()
}

/// The lines of the page's console.
fn complaints(console: &str) -> Vec<&str> {
    console.lines().filter(|line| line.contains("CONSOLE")).collect()
}

fn runs_without_an_error() -> Result<(), Failed> {
    let request = WebRequest { step_seconds: 1.0, ..page::short() };
    let server = Server::start(request);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let browser = open(&folder, &format!("http://{}/?autostart", server.address), "");
    let ended = server.wait_for(Duration::from_secs(60), |event| {
        matches!(event, WebEvent::RunFinished { .. } | WebEvent::RunFailed { .. })
    });
    let console = std::fs::read_to_string(&log).unwrap();
    drop(browser);
    let complaints = complaints(&console);
    assert!(complaints.is_empty(), "{complaints:#?}");
    let WebEvent::RunFinished { download_bps, upload_bps, bytes, .. } = &ended else {
        panic!("{ended:?}\n{console}")
    };
    // The loopback carries more, in any browser.
    assert!(download_bps.is_some_and(|rate| rate > 50e6), "{ended:?}");
    assert!(upload_bps.is_some_and(|rate| rate > 50e6), "{ended:?}");
    assert!(*bytes > 10_000_000, "{ended:?}");
    Ok(())
}

/// The peer has another origin: its port. It asks for a token.
fn measures_two_legs() -> Result<(), Failed> {
    let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let far = Server::start(WebRequest {
        allow_origins: vec![format!("http://{free}").parse().unwrap()],
        token: Some("secret".to_owned()),
        ..page::short()
    });
    let near = Server::start(WebRequest {
        listen: free,
        peer: format!("http://{}/?token=secret", far.address).parse().ok(),
        ..page::short()
    });
    let folder = tempfile::tempdir().unwrap();
    let browser = open(&folder, &format!("http://{}/?autolegs", near.address), "");
    for _ in 0..3 {
        for (name, server) in [("near", &near), ("far", &far)] {
            let ended = server.wait_for(Duration::from_secs(60), |event| {
                matches!(event, WebEvent::RunFinished { .. } | WebEvent::RunFailed { .. })
            });
            let WebEvent::RunFinished { download_bps, upload_bps, .. } = &ended else {
                panic!("{name}: {ended:?}")
            };
            assert!(download_bps.is_some() && upload_bps.is_some(), "{name}: {ended:?}");
        }
    }
    let console = std::fs::read_to_string(folder.path().join("log")).unwrap();
    drop(browser);
    let complaints = complaints(&console);
    assert!(complaints.is_empty(), "{complaints:#?}");
    Ok(())
}

/// A name of the test has the address of the loopback in IPv6; another one has none.
fn measures_both_families() -> Result<(), Failed> {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return Ok(());
    }
    for (name, is_reached) in [("v6.test", true), ("none.test", false)] {
        let server = Server::start(WebRequest {
            listen: "[::]:0".parse().unwrap(),
            ipv4_name: Some("127.0.0.1".to_owned()),
            ipv6_name: Some(name.to_owned()),
            ..page::short()
        });
        let folder = tempfile::tempdir().unwrap();
        let url = format!("http://127.0.0.1:{}/?autostart&thorough=0", server.address.port());
        let browser = open(&folder, &url, "MAP v6.test [::1],");
        let mut clients = Vec::new();
        // The runs of both families come before the whole one.
        for _ in 0..if is_reached { 3 } else { 2 } {
            let ended = server.wait_for(Duration::from_secs(60), |event| {
                matches!(event, WebEvent::RunFinished { .. } | WebEvent::RunFailed { .. })
            });
            let WebEvent::RunFinished { client, download_bps, upload_bps, .. } = &ended else {
                panic!("{ended:?}")
            };
            clients.push((client.is_ipv4(), download_bps.is_some(), upload_bps.is_some()));
        }
        drop(browser);
        let (family, whole) = ((true, true, false), (true, true, true));
        let expected = if is_reached {
            vec![family, (false, true, false), whole]
        } else {
            vec![family, whole]
        };
        assert_eq!(clients, expected);
        let console = std::fs::read_to_string(folder.path().join("log")).unwrap();
        // Chromium tells of every request that fails.
        let of_failures = if is_reached { "-" } else { "net::ERR_NAME_NOT_RESOLVED" };
        let complaints = complaints(&console);
        let complaints: Vec<_> =
            complaints.into_iter().filter(|line| !line.contains(of_failures)).collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
    Ok(())
}
