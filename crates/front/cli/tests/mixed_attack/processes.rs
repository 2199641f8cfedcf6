//! Programs that run for a bounded time.

use host::clock;
use std::io::Read;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

/// The program that is tested.
pub(crate) const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");

/// What became of programs that ran one after the other.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) count: u32,
    pub(crate) failures: Vec<String>,
}

impl Served {
    pub(crate) fn add(&mut self, one: Result<(), String>) {
        match one {
            Ok(()) => self.count += 1,
            Err(error) => self.failures.push(error),
        }
    }
}

/// Waits for a program's end, and kills it after `longest`.
pub(crate) fn ended(child: &mut Child, longest: Duration) -> Result<ExitStatus, String> {
    let deadline = clock::now() + longest;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Ok(status);
        }
        if clock::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("did not end within {longest:?}"));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a program has said, once it has ended.
pub(crate) fn reads(output: Option<impl Read>) -> String {
    let mut text = Vec::new();
    output.map(|mut output| output.read_to_end(&mut text));
    String::from_utf8_lossy(&text).trim().to_owned()
}
