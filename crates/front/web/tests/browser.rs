//! One run of the page in headless Chromium. Where that is missing, the test counts as ignored.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test they are assertions")]

#[path = "web/page.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod page;

use libtest_mimic::{Arguments, Failed, Trial};
use page::Server;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use web::{WebEvent, WebRequest};

fn main() {
    let version = Command::new("chromium").arg("--version").output();
    let is_missing = !version.is_ok_and(|output| output.status.success());
    let trials = vec![
        Trial::test("a_browser_runs_the_page_without_an_error", runs_without_an_error)
            .with_ignored_flag(is_missing),
        Trial::test("the_page_measures_two_legs_in_turns", measures_two_legs)
            .with_ignored_flag(is_missing),
    ];
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

/// Opens a page, whose console goes to `log` in the folder.
fn open(folder: &TempDir, url: &str) -> Browser {
    Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args([
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--enable-logging=stderr",
        ])
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
    let browser = open(&folder, &format!("http://{}/?autostart", server.address));
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
    let browser = open(&folder, &format!("http://{}/?autolegs", near.address));
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
