//! iperf3 as its users run it.

use crate::addresses;
use crate::processes::{Served, ended, reads};
use crate::schedule::Stop;
use serde_json::Value;
use std::io::Seek;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Clients that run all the time.
pub(crate) const COUNT: u8 = 4;

/// Addresses of clients that come while these run, used in turn.
pub(crate) const NEWCOMERS: u8 = 60;

/// Beyond its own time, the longest that a client may take.
const LONGEST: Duration = Duration::from_secs(30);

/// A client, each of another kind; all are paced to 100 Mbit/s.
pub(crate) struct Client {
    pub(crate) name: &'static str,
    number: u8,
    options: &'static [&'static str],
}

impl Client {
    pub(crate) const ALL: [Client; COUNT as usize] = [
        Client { name: "upload", number: 1, options: &["-b", "100M"] },
        Client { name: "download", number: 2, options: &["-b", "100M", "-R"] },
        Client { name: "four streams", number: 3, options: &["-b", "25M", "-P", "4"] },
        Client { name: "UDP", number: 4, options: &["-b", "100M", "-u", "-l", "1400"] },
    ];

    /// Runs for so many seconds and returns what was received, in Mbit/s.
    pub(crate) fn run(&self, seconds: u32) -> Result<f64, String> {
        let time = seconds.to_string();
        let options = [&["-t", &time], self.options].concat();
        let longest = Duration::from_secs(seconds.into()) + LONGEST;
        let report = iperf3(addresses::client(self.number), &options, longest)?;
        let end = |path: &str| report.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
        let bits = if self.options.contains(&"-u") {
            let lost = end("/end/sum/lost_percent") / 100.0;
            end("/end/sum/bits_per_second") * (1.0 - lost)
        } else {
            end("/end/sum_received/bits_per_second")
        };
        Ok(bits / 1e6)
    }
}

/// Whether iperf3 is installed.
pub(crate) fn are_there() -> bool {
    Command::new("iperf3").arg("--version").output().is_ok()
}

/// All clients at the same time.
pub(crate) fn at_once(seconds: u32) -> Vec<Result<f64, String>> {
    thread::scope(|scope| {
        let all = Client::ALL.map(|client| scope.spawn(move || client.run(seconds)));
        all.into_iter().map(|client| client.join().unwrap()).collect()
    })
}

/// One short test after the other, each from another address.
pub(crate) fn newcomers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope Stop,
) -> ScopedJoinHandle<'scope, Served> {
    scope.spawn(|| {
        let mut told = Served::default();
        stop.repeat(1, |turn| {
            let number = u8::try_from(turn % u32::from(NEWCOMERS)).unwrap() + 1;
            let test = iperf3(addresses::newcomer(number), &["-n", "64K"], LONGEST);
            told.add(test.map(drop));
        });
        told
    })
}

fn iperf3(from: Ipv4Addr, options: &[&str], longest: Duration) -> Result<Value, String> {
    let mut report = tempfile::tempfile().unwrap();
    let mut child = Command::new("iperf3")
        .args(["-c", &addresses::SERVER.to_string(), "-p", &addresses::PORT.to_string()])
        .args(["-B", &from.to_string(), "-J"])
        .args(options)
        .stdin(Stdio::null())
        .stdout(report.try_clone().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    ended(&mut child, longest).map_err(|error| format!("iperf3 from {from}: {error}"))?;
    report.rewind().unwrap();
    let text = reads(Some(report));
    let report: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    match report.get("error") {
        Some(error) => Err(format!("iperf3 from {from}: {error}")),
        None => Ok(report),
    }
}
