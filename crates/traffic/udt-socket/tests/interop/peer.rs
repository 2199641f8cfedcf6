//! The peer: a small program built with libudt.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("udt-peer")
}

/// Builds the peer, or says what is missing.
pub(crate) fn build() -> Result<(), String> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/peer.cpp");
    let output = Command::new("g++")
        .args(["-O2", "-std=c++17", "-o"])
        .arg(program())
        .args([source, "-ludt", "-lpthread"])
        .output();
    match output {
        Err(error) => Err(format!("g++ is not installed ({error})")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("udt/udt.h"), "the peer does not compile: {said}");
            Err("libudt-dev is not installed".to_owned())
        }
    }
}

/// A running peer, killed when dropped.
pub(crate) struct Peer(Child);

impl Peer {
    pub(crate) fn start(arguments: &[&str]) -> Peer {
        let child = Command::new(program()).args(arguments).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap();
        if arguments[0] == "listen" {
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "listening\n");
        }
        Peer(child)
    }

    /// Whether it ends well in time.
    pub(crate) fn succeeds(mut self, within: Duration) -> bool {
        let until = host::clock::now() + within;
        wait(&mut self.0, until)
    }
}

fn wait(child: &mut Child, until: Instant) -> bool {
    while host::clock::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
