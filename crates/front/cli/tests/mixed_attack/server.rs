//! `longhaul server` with its default limits.

use crate::addresses;
use crate::processes::LONGHAUL;
use std::fs::{self, File};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A running server, killed when dropped.
pub(crate) struct Server {
    child: Child,
    log: tempfile::NamedTempFile,
}

impl Server {
    /// Returns once it listens at `port`.
    pub(crate) fn start(arguments: &[&str], port: u16) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let file = || File::options().append(true).open(log.path()).unwrap();
        let child = Command::new(LONGHAUL)
            .arg("server")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file())
            .stderr(file())
            .spawn()
            .unwrap();
        let server = Server { child, log };
        for _ in 0..1000 {
            if TcpStream::connect((addresses::SERVER, port)).is_ok() {
                return server;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the server does not listen: {}", server.last_lines());
    }

    /// Most physical memory it has used, in bytes; `None` where it has ended.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    }

    pub(crate) fn last_lines(&self) -> String {
        let text = fs::read(self.log.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
