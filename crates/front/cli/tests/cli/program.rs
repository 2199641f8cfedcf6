//! The program under test, bounded in time.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// Longest that any call here may take; far more than any needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command, without the user's own settings and colours.
pub(crate) fn command(arguments: &[&str]) -> Command {
    // In a script's background the tests ignore Ctrl-C; what they start must not.
    host::signals::restore_interrupts();
    host::signals::restore_hangup();
    let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.args(arguments).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

/// Runs it to its end; one that does not end is killed and fails the test.
pub(crate) fn run(arguments: &[&str]) -> Output {
    let child = command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, (send, receive)) = (child.id(), std::sync::mpsc::channel());
    std::thread::spawn(move || send.send(child.wait_with_output()));
    receive.recv_timeout(PATIENCE).map_or_else(
        |_| {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            panic!("longhaul {arguments:?} did not end within {PATIENCE:?}")
        },
        Result::unwrap,
    )
}

/// What it printed, where it must succeed.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// A server of ours on a port that the kernel chose; killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: String,
    output: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = command(&["server", "-B", "127.0.0.1", "-p", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address =
            line.split([' ', ';', '"']).find(|word| word.starts_with("127.0.0.1:")).unwrap();
        let port = address.rsplit(':').next().unwrap().to_owned();
        Server { child, port, output }
    }

    /// The next line of its log; empty where it has ended.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Sends it a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Memory that it holds, in pages (proc(5), `statm`).
    pub(crate) fn resident_pages(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Its exit code, when it ends by itself.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
