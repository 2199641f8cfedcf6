//! What goes on beside the clients, with attackers and without: copies one after the
//! other, and a capture of every packet.

use crate::addresses::{COPY_PORT, SERVER, TEST_PORT_BESIDE_COPIES};
use crate::processes::{LONGHAUL, Served, ended, reads};
use crate::schedule::Stop;
use crate::server::Server;
use host::wait;
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;
use tempfile::TempDir;

/// Length of a copied file, bytes: with [`LIMIT`] a copy takes most of a second.
const LENGTH: u32 = 8_000_000;
const LIMIT: &str = "100mbit";

/// The longest that a copy, and the end of a capture, may take.
const LONGEST: Duration = Duration::from_secs(30);

/// Length of what a client of copies sends before TLS.
pub(crate) const PREAMBLE_BYTES: usize = 40;

/// A server for copies, and the capture, which ends by itself at the latest when no
/// test runs any more.
pub(crate) struct Background {
    pub(crate) server: Server,
    /// What a client with the token sends first, which is not encrypted.
    pub(crate) preamble: [u8; PREAMBLE_BYTES],
    capture: Child,
    folder: TempDir,
}

impl Background {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("token"), "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(at("token"), Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(at("root")).unwrap();
        fs::write(at("data"), data()).unwrap();
        fs::copy(at("data"), at("root/data")).unwrap();
        let [tests, copies] = [TEST_PORT_BESIDE_COPIES, COPY_PORT].map(|port| port.to_string());
        let [root, token] = [at("root"), at("token")].map(text);
        let arguments = ["--port", &tests, "--copy-port", &copies, "--root", &root, "--writable"];
        let server = Server::start(&[&arguments[..], &["--tokens", &token]].concat(), COPY_PORT);
        let capture = Command::new(LONGHAUL)
            .args(["capture", "lo", "--json", "--ring", "2:32MB", "-t", "300", "-w"])
            .arg(at("all.pcapng"))
            .stdin(Stdio::null())
            .stdout(File::create(at("captured")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let preamble = recorded_preamble(&[&at("token"), &at("data")]);
        Background { server, preamble, capture, folder }
    }

    /// Copies a file a second, in both directions and over both transports in turn.
    pub(crate) fn copies<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stop: &'scope Stop,
    ) -> ScopedJoinHandle<'scope, Served> {
        scope.spawn(|| {
            let mut copies = Served::default();
            stop.repeat(1, |turn| copies.add(self.copy(turn)));
            copies
        })
    }

    fn copy(&self, turn: u32) -> Result<(), String> {
        let at = |name: String| self.folder.path().join(name);
        let transport = if turn & 2 == 0 { "udt" } else { "tcp" };
        // Of a file that is already there nothing would be copied.
        let (from, to, copied) = if turn & 1 == 0 {
            let name = format!("up-{turn}");
            let copied = at(format!("root/{name}"));
            (text(at("data".to_owned())), format!("{SERVER}:{name}"), copied)
        } else {
            let copied = at(format!("down-{turn}"));
            (format!("{SERVER}:data"), text(copied.clone()), copied)
        };
        let mut child = copy_command(&at("token".to_owned()), COPY_PORT)
            .args(["--limit", LIMIT, "--transport", transport, &from, &to])
            .spawn()
            .unwrap();
        let what = format!("{from} to {to} over {transport}");
        let status = ended(&mut child, LONGEST).map_err(|error| format!("{what}: {error}"))?;
        if !status.success() {
            return Err(format!("{what}: {}", reads(child.stderr.take())));
        }
        let is_whole = fs::read(&copied).is_ok_and(|copy| copy == data());
        let _ = fs::remove_file(copied);
        if is_whole { Ok(()) } else { Err(format!("{what}: the copy differs")) }
    }

    /// Ends the capture and returns how many packets it has, if it ran until now.
    pub(crate) fn end_capture(&mut self) -> Result<u64, String> {
        if let Ok(Some(status)) = self.capture.try_wait() {
            return Err(format!("the capture ended early: {status}"));
        }
        let id = self.capture.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        let status = ended(&mut self.capture, LONGEST)?;
        let report = fs::read(self.folder.path().join("captured")).unwrap_or_default();
        let report: Value = serde_json::from_slice(&report).unwrap_or_default();
        match report["packets"].as_u64() {
            Some(packets) if packets > 0 && status.success() => Ok(packets),
            _ => Err(format!("the capture: {status}: {report}")),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.capture.kill();
        let _ = self.capture.wait();
    }
}

fn copy_command(token: &Path, port: u16) -> Command {
    let mut command = Command::new(LONGHAUL);
    command.args(["copy", "--quiet", "--port", &port.to_string(), "--token-file"]).arg(token);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The first bytes of a client, at a port where nobody answers.
fn recorded_preamble([token, data]: &[&Path; 2]) -> [u8; PREAMBLE_BYTES] {
    let listener = TcpListener::bind((SERVER, 0)).unwrap();
    let mut command = copy_command(token, listener.local_addr().unwrap().port());
    let mut client = command.arg(data).arg(format!("{SERVER}:")).spawn().unwrap();
    wait::readable([listener.as_fd()], Some(LONGEST)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut connection = listener.accept().unwrap().0;
    connection.set_nonblocking(false).unwrap();
    connection.set_read_timeout(Some(LONGEST)).unwrap();
    let mut preamble = [0; PREAMBLE_BYTES];
    connection.read_exact(&mut preamble).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    preamble
}

fn data() -> Vec<u8> {
    (0..LENGTH).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect()
}

fn text(path: impl Into<PathBuf>) -> String {
    path.into().into_os_string().into_string().unwrap()
}
