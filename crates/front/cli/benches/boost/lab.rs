//! Pairs over emulated paths.

use crate::LONGHAUL;
use crate::hosts::{Hosts, SMALL_WINDOW};
use bench_harness::{Fallible, Ratios, median, row};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Keys of the two boxes, or plaintext.
pub(crate) struct Security {
    pub(crate) near: String,
    pub(crate) far: String,
}

impl Security {
    pub(crate) fn plaintext() -> Self {
        Security { near: "--insecure".to_owned(), far: "--insecure".to_owned() }
    }

    /// Writes the keys of a new pair.
    pub(crate) fn keys(folder: &Path) -> Fallible<Self> {
        let output = Command::new(LONGHAUL).args(["boost", "pair"]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let write = |role: &str| -> Fallible<String> {
            let key = text.lines().find(|line| line.starts_with(role)).ok_or("no key")?;
            let file = folder.join(role.replace(':', ".key"));
            std::fs::write(&file, key)?;
            Ok(format!("--key-file {}", file.display()))
        };
        Ok(Security { near: write("near:")?, far: write("far:")? })
    }
}

/// A path with the boxes on its routers.
pub(crate) struct Scenario {
    pub(crate) path: &'static str,
    /// Settings of the application's and the target's hosts.
    pub(crate) sysctl: &'static str,
    pub(crate) server: String,
    /// The target's port, which near forwards as 5301.
    pub(crate) port: u16,
    pub(crate) security: Security,
    pub(crate) command: String,
}

impl Scenario {
    /// Runs it in a lab.
    pub(crate) fn run(&self, folder: &Path) -> Fallible<()> {
        let Scenario { path, sysctl, server, port, security, command } = self;
        let Security { near, far } = security;
        let (near, far) = (
            format!("{LONGHAUL} boost near --far far {near} -L 0.0.0.0:5301:server:{port}"),
            format!("{LONGHAUL} boost far -l 0.0.0.0:7425 {far} --allow server:{port}"),
        );
        let services = vec![("server", server.clone()), ("far", far), ("near", near)];
        Hosts { path, app: sysctl, server: sysctl, services, lanes: "bbr", command }
            .run(folder)
            .map(drop)
    }
}

/// Goodput at the receiver in bit/s.
pub(crate) fn goodput(file: &Path) -> Fallible<f64> {
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let figure = |name: &str| document[name].as_f64().ok_or("no figure");
    Ok(figure("received_bytes")? * 8.0 / figure("seconds")?)
}

pub(crate) fn test(to: &str, seconds: u32, omit: u32, file: &Path) -> String {
    format!("{LONGHAUL} test {to} -t {seconds} --omit {omit} --json > {}", file.display())
}

/// A 64 KiB window, directly and boosted.
pub(crate) fn window(count: usize, is_short: bool) -> Fallible<()> {
    let (mut direct, mut boosted) = (Vec::new(), Vec::new());
    let (seconds, omit) = if is_short { (6, 5) } else { (25, 5) };
    for _ in 0..count {
        let folder = tempfile::tempdir()?;
        let [one, other] = ["direct", "boosted"].map(|name| folder.path().join(name));
        let tests =
            [test("server", seconds, omit, &one), test("near -p 5301", seconds, omit, &other)];
        Scenario {
            path: "rate=100mbit,rtt=173ms",
            sysctl: SMALL_WINDOW,
            server: format!("{LONGHAUL} server"),
            port: 5201,
            security: Security::plaintext(),
            command: tests.join(" && "),
        }
        .run(folder.path())?;
        direct.push(goodput(&one)?);
        boosted.push(goodput(&other)?);
    }
    let rate = median(&boosted) / 1e6;
    row(
        "boost: 64 KiB window, 100 Mbit/s x 173 ms",
        "92 Mbit/s",
        &format!("{rate:.1} Mbit/s"),
        rate >= 92.0,
    );
    let ratio = Ratios::of(&boosted, &direct);
    row("boost: the same, times direct", "30", &ratio.to_string(), ratio.median() >= 30.0);
    Ok(())
}

/// An object over a warm lane.
pub(crate) fn object(count: usize) -> Fallible<()> {
    let mut times = Vec::new();
    for _ in 0..count {
        let folder = tempfile::tempdir()?;
        for (name, bytes) in [("large", 10_000_000), ("small", 1_000_000)] {
            std::fs::write(folder.path().join(name), host::random::incompressible(bytes))?;
        }
        let result = folder.path().join("result");
        let get = "curl -sf -o /dev/null -w %{time_total} http://near:5301";
        Scenario {
            path: "rate=100mbit,rtt=173ms",
            sysctl: SMALL_WINDOW,
            server: format!("python3 -m http.server -d {} 8000", folder.path().display()),
            port: 8000,
            security: Security::plaintext(),
            command: format!(
                "sleep 1; {get}/large && sleep 10; {get}/small > {}",
                result.display()
            ),
        }
        .run(folder.path())?;
        times.push(std::fs::read_to_string(&result)?.trim().parse::<f64>()?);
    }
    let time = median(&times);
    row("boost: 1 MB at 173 ms over a warm lane", "0.35 s", &format!("{time:.3} s"), time <= 0.35);
    Ok(())
}
