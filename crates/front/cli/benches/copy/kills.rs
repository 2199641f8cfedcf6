//! A copy that is killed twenty times, with bits of the partial file flipped in between.

use crate::{Bench, GB, client, random_file, values};
use bench_harness::{Fallible, row};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const KILLS: u64 = 20;
/// Sent a second time at each restart, at most, bytes.
const ALLOWED: f64 = 64e6;
const LINK: &str = "rate=1gbit,rtt=20ms";
/// Bits flipped between two runs.
const FLIPS: u64 = 8;

pub(crate) fn run(bench: &Bench) -> Fallible<()> {
    random_file(&bench.path("file"), GB)?;
    let lines = bench.in_lab("kills", LINK, None)?;
    let sent = values(&lines, "sent").iter().sum::<f64>();
    let kills = values(&lines, "killed").len() as f64;
    let identical = same(&bench.path("file"), &bench.path("root/file"))?;
    let words = if identical { "identical" } else { "DIFFERENT" };
    row(&format!("1 GB after {kills} kills and flipped bits"), "identical", words, identical);
    // Headers are in it, and what was sent and had not arrived.
    let again = (sent - GB as f64) / kills.max(1.0);
    let shown = format!("{:.0} MB", again / 1e6);
    row("sent a second time per restart", "<= 64 MB", &shown, again <= ALLOWED);
    Ok(())
}

/// Kills the copy each time that 10 to 45 MB more have been sent, then lets it finish.
pub(crate) fn on_client(directory: &Path) -> Fallible<()> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let part = directory.join("root/.file.longhaul-part");
    let mut counted = sent_bytes()?;
    for _ in 0..KILLS {
        let until = sent_bytes()? + 10_000_000 + next(35_000_000);
        let mut copy = client::copy(directory, &directory.join("file")).spawn()?;
        while sent_bytes()? < until {
            if let Some(ended) = copy.try_wait()? {
                return Err(format!("the copy ended before it was killed: {ended}").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        copy.kill()?;
        copy.wait()?;
        if let Ok(file) = OpenOptions::new().read(true).write(true).open(&part) {
            for _ in 0..FLIPS {
                let at = next(file.metadata()?.len().max(1));
                let mut byte = [0];
                if file.read_at(&mut byte, at)? == 1 {
                    file.write_at(&[byte[0] ^ (1 << next(8))], at)?;
                }
            }
        }
        let now = sent_bytes()?;
        println!("{{\"killed\":1,\"sent\":{}}}", now - counted);
        counted = now;
    }
    let ended = client::copy(directory, &directory.join("file")).status()?;
    println!("{{\"sent\":{}}}", sent_bytes()? - counted);
    if ended.success() { Ok(()) } else { Err(format!("the last copy failed: {ended}").into()) }
}

/// Bytes that this host's interfaces have sent, but for loopback.
fn sent_bytes() -> Fallible<u64> {
    let mut sum = 0;
    for line in fs::read_to_string("/proc/net/dev")?.lines().skip(2) {
        let Some((name, counters)) = line.split_once(':') else { continue };
        if name.trim() != "lo" {
            sum += counters.split_whitespace().nth(8).unwrap_or("0").parse::<u64>()?;
        }
    }
    Ok(sum)
}

fn same(one: &Path, other: &Path) -> Fallible<bool> {
    let hash = |path: &Path| -> Fallible<blake3::Hash> {
        Ok(blake3::Hasher::new().update_reader(File::open(path)?)?.finalize())
    };
    Ok(hash(one)? == hash(other)?)
}
