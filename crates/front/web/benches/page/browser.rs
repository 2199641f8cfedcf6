//! Headless Chromium on a host of the lab, asked for the page's result by DevTools.

use crate::page::{Socket, ask};
use bench_harness::Fallible;
use host::clock::now;
use lab::LabHost;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A run, with the time that Chromium needs to start.
const LONGEST: Duration = Duration::from_secs(90);
const DEVTOOLS: u16 = 9222;

/// Chromium, which ends with the run.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of a run that the page starts by itself.
pub(crate) fn run(host: &LabHost, server: SocketAddr) -> Fallible<Value> {
    let profile = tempfile::tempdir()?;
    let mut command = Command::new("chromium");
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .arg(format!("--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE {}", server.ip()))
        // For the clock of 5 µs, as over TLS.
        .arg(format!("--unsafely-treat-insecure-origin-as-secure=http://{server}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--remote-debugging-port={DEVTOOLS}"))
        .arg(format!("http://{server}/?autostart"))
        .env("HOME", profile.path())
        .env("XDG_CACHE_HOME", profile.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let browser = host.namespace.run(|| command.spawn())?;
    let _browser = Browser(browser.map_err(|error| format!("chromium: {error}"))?);
    let result = host.namespace.run(wait_for_result)??;
    Ok(serde_json::from_str(&result)?)
}

fn wait_for_result() -> Fallible<String> {
    let address = SocketAddr::from(([127, 0, 0, 1], DEVTOOLS));
    let deadline = now() + LONGEST;
    let mut devtools = None;
    while now() < deadline {
        thread::sleep(Duration::from_millis(500));
        if devtools.is_none() {
            devtools = page_target(address).and_then(|it| Socket::try_open(address, &it, "").ok());
        }
        let Some(socket) = &mut devtools else { continue };
        let expression = "JSON.stringify(Object.assign({}, document.documentElement.dataset))";
        socket.say(&json!({"id": 1, "method": "Runtime.evaluate",
            "params": {"expression": expression}}));
        let Some(answer) = socket.text() else { return Err("Chromium has left".into()) };
        let told = answer["result"]["result"]["value"].as_str().unwrap_or("{}");
        let told: Value = serde_json::from_str(told)?;
        match (told["result"].as_str(), told["problem"].as_str()) {
            (Some(result), _) => return Ok(result.to_owned()),
            (_, Some(problem)) => return Err(problem.to_owned().into()),
            _ => {}
        }
    }
    Err("the page has no result in time".into())
}

/// The path of the page's DevTools connection, once Chromium listens.
fn page_target(address: SocketAddr) -> Option<String> {
    std::net::TcpStream::connect(address).ok()?;
    let request =
        format!("GET /json/list HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let (_, answer) = ask(address, &request);
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let targets: Vec<Value> = serde_json::from_str(body).ok()?;
    let page = targets.iter().find(|target| target["type"] == "page")?;
    let (_, path) = page["webSocketDebuggerUrl"].as_str()?.split_once(&address.to_string())?;
    Some(path.to_owned())
}
