//! Five hosts in a row: application, near box, path, far box, server.

use crate::LONGHAUL;
use bench_harness::Fallible;
use std::path::Path;
use std::process::{Command, Stdio};

/// A window of 64 KiB at most (RFC 9293, section 3.1).
pub(crate) const SMALL_WINDOW: &str = r#"sysctl = { "net.ipv4.tcp_window_scaling" = 0 }"#;

/// Hosts in a lab, and what runs on them.
pub(crate) struct Hosts<'a> {
    /// The path between the boxes.
    pub(crate) path: &'a str,
    /// Settings of the application's and of the server's host.
    pub(crate) app: &'a str,
    pub(crate) server: &'a str,
    /// Host and command of programs that serve.
    pub(crate) services: Vec<(&'static str, String)>,
    /// Congestion control of the boxes' hosts. A lab sets it by their routes, which overrides the
    /// one that a box asks for before it connects.
    pub(crate) lanes: &'a str,
    /// The command on the application's host, whose end is the lab's.
    pub(crate) command: &'a str,
}

/// What the lab says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity(pub(crate) bool);

impl Hosts<'_> {
    /// Runs them. LAN legs have the queue of a sending host, which drops nothing.
    pub(crate) fn run(&self, folder: &Path) -> Fallible<Validity> {
        let Hosts { path, app, server, services, lanes, command } = self;
        let buffers = r#"sysctl = { "net.ipv4.tcp_wmem" = "4096 16384 67108864", "net.ipv4.tcp_rmem" = "4096 131072 67108864" }"#;
        let mut text = format!(
            r#"
[host.app]
{app}
[host.server]
{server}
[router.near]
congestion = "{lanes}"
{buffers}
[router.far]
congestion = "{lanes}"
{buffers}
[[link]]
between = ["app", "near"]
path = "rate=1gbit,rtt=0.2ms,queue=16MB"
[[link]]
between = ["near", "far"]
path = "{path}"
[[link]]
between = ["far", "server"]
path = "rate=1gbit,rtt=0.2ms,queue=16MB"
"#
        );
        for (host, command) in services {
            text += &format!(
                "[[run]]\non = \"{host}\"\ncommand = '''{command}'''\nbackground = true\n"
            );
        }
        text += &format!("[[run]]\non = \"app\"\ncommand = '''{command}'''\n");
        let file = folder.join("plan.toml");
        std::fs::write(&file, text)?;
        let lab =
            Command::new(LONGHAUL).args(["lab", "up"]).arg(&file).stdin(Stdio::null()).output()?;
        match lab.status.code() {
            Some(0) => Ok(Validity(true)),
            Some(3) => Ok(Validity(false)),
            _ => Err(format!("the lab failed: {}", String::from_utf8_lossy(&lab.stderr)).into()),
        }
    }
}
