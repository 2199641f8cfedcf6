//! When datagrams came, by the kernel's stamps in a capture.

use crate::pair::Pair;
use bench_harness::Fallible;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

/// One train on the wire.
pub(crate) struct Arrival {
    /// Seconds.
    pub(crate) at: f64,
    /// Datagrams in it.
    pub(crate) datagrams: usize,
}

/// What arrives on the server's host while `traffic` runs.
pub(crate) fn capture<T>(
    pair: &Pair,
    traffic: impl FnOnce() -> Fallible<T>,
) -> Fallible<Vec<Arrival>> {
    let mut tcpdump = Command::new("tcpdump");
    // 42 bytes of headers and a part of the payload; a ring that holds a second of them.
    // Written at once: it is ended with SIGKILL, as other signals are blocked in a sandbox.
    tcpdump.args([
        "-i",
        "far",
        "-w-",
        "-U",
        "-s64",
        "-B65536",
        "-n",
        "--time-stamp-precision=nano",
    ]);
    tcpdump.arg("udp dst port 5201 and greater 100");
    let mut tcpdump = pair
        .spawn(1, tcpdump.stdout(Stdio::piped()).stderr(Stdio::null()))
        .map_err(|error| format!("tcpdump: {error}; install the package tcpdump"))?;
    let mut output = tcpdump.stdout.take().ok_or("no output of tcpdump")?;
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        output.read_to_end(&mut all).map(|_| all)
    });
    std::thread::sleep(Duration::from_millis(500));
    traffic()?;
    std::thread::sleep(Duration::from_millis(500));
    tcpdump.kill()?;
    tcpdump.wait()?;
    let all = reader.join().map_err(|_| "the reader died")??;
    // A pcap file: a header of 24 bytes, then one of 16 before each packet.
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(all.get(at..at + 4)?.try_into().ok()?))
    };
    let (mut arrivals, mut at) = (Vec::new(), 24);
    while let (Some(seconds), Some(nanos), Some(kept), Some(length)) =
        (word(at), word(at + 4), word(at + 8), word(at + 12))
    {
        // Ethernet, IPv4 and UDP take 42 bytes; a train is one packet here.
        let datagrams = (length as usize).saturating_sub(42) / 1448;
        arrivals.push(Arrival { at: f64::from(seconds) + f64::from(nanos) * 1e-9, datagrams });
        at += 16 + kept as usize;
    }
    Ok(arrivals)
}

/// How far datagrams are off their time: the schedule is one every `spacing`
/// seconds, placed where it fits best, and `share` of them are no further off.
pub(crate) fn off_schedule(arrivals: &[Arrival], spacing: f64, share: f64) -> f64 {
    let mut off = Vec::new();
    let mut number = 0.0;
    let start = arrivals.first().map_or(0.0, |first| first.at);
    for arrival in arrivals {
        for _ in 0..arrival.datagrams {
            off.push(arrival.at - start - number * spacing);
            number += 1.0;
        }
    }
    if off.is_empty() {
        return f64::INFINITY;
    }
    off.sort_by(f64::total_cmp);
    let middle = off[off.len() / 2];
    let mut off: Vec<f64> = off.into_iter().map(|off| (off - middle).abs()).collect();
    off.sort_by(f64::total_cmp);
    off[((off.len() as f64 * share) as usize).min(off.len() - 1)]
}
