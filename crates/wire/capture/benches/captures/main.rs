//! How long big captures take: read alone, and read, dissected and counted; beside
//! tshark where it is installed. The promised figures are those of docs/design/captures.md.
//!
//! `cargo bench -p longhaul-capture --bench captures` writes 3.6 GB of temporary files;
//! `-- bulk` or `-- small` runs one of the two; `--no-tshark` leaves tshark out, `--keep`
//! leaves the files.

#![expect(clippy::unwrap_used, reason = "in a benchmark an unwrap is an assertion")]

mod generate;

use bench_harness::timed;
use capture::batch::Batch;
use capture::conversations::Conversations;
use capture::dissect::{Layers, dissect};
use capture::endpoints::Endpoints;
use capture::file::Reader;
use capture::hierarchy::Hierarchy;
use capture::{MemoryBudget, Seed, TABLE_BYTES};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The shortest of three.
fn best<T>(mut work: impl FnMut() -> T) -> (f64, T) {
    let mut best = timed(&mut work);
    for _ in 0..2 {
        let next = timed(&mut work);
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

/// Reads the file into one buffer, over and over: what no analysis can beat.
fn read_alone(path: &Path) -> u64 {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return bytes,
            count => bytes += count as u64,
        }
    }
}

/// Reads and dissects; the sum of payloads, so that nothing is left out.
fn dissect_alone(path: &Path) -> u64 {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let mut layers = Layers::new();
    let mut payload = 0;
    while let Some(packet) = reader.next_packet().unwrap() {
        dissect(packet.link, packet.data, packet.original_len, &mut layers);
        payload += layers.tcp(packet.data).map_or(0, |segment| u64::from(segment.payload_len));
    }
    payload
}

/// All that the crate counts; packets and flows.
fn count_all(path: &Path) -> (u64, usize) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let seed = Seed([0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321]);
    let (mut batch, mut hierarchy) = (Batch::new(seed), Hierarchy::new(seed));
    let mut conversations = Conversations::new(seed);
    while let Some(packets) = reader.next_packets().unwrap() {
        batch.prepare(&packets, &conversations);
        for (packet, layers, stream) in batch.each(&packets) {
            hierarchy.add(layers, packet.original_len);
            let segment = layers.tcp(packet.data);
            conversations.add_expected(&packet, layers, segment.as_ref(), stream);
        }
    }
    let packets = reader.summary().packets;
    let budget = MemoryBudget::new(TABLE_BYTES);
    let endpoints = Endpoints::of_ip(&conversations, &budget);
    (packets, endpoints.len().max(conversations.tcp().len()))
}

fn tshark(path: &Path) -> Option<f64> {
    let (time, status) = timed(|| {
        Command::new("tshark")
            .args(["-q", "-z", "io,phs", "-z", "conv,tcp", "-z", "conv,ip", "-z", "conv,eth", "-r"])
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
    });
    status.ok().filter(std::process::ExitStatus::success).map(|_| time)
}

fn measure(name: &str, path: &Path, with_tshark: bool) {
    let bytes = std::fs::metadata(path).unwrap().len();
    read_alone(path);
    let (read, _) = best(|| read_alone(path));
    let (dissected, _) = best(|| dissect_alone(path));
    let (counted, (packets, flows)) = best(|| count_all(path));
    let ns = |seconds: f64| seconds * 1e9 / packets as f64;
    println!("{name}: {:.2} GB, {packets} packets, {flows} flows or hosts", bytes as f64 / 1e9);
    println!("  read alone            {:8.3} s  {:6.1} ns/packet", read, ns(read));
    println!("  read, dissected       {:8.3} s  {:6.1} ns/packet", dissected, ns(dissected));
    println!(
        "  all that is counted   {:8.3} s  {:6.1} ns/packet, {:.1} M packets/s, {:.2} x read alone",
        counted,
        ns(counted),
        1e3 / ns(counted),
        counted / read,
    );
    match with_tshark.then(|| tshark(path)).flatten() {
        Some(time) => {
            println!("  tshark                {:8.3} s  {:.0} x as long", time, time / counted);
        }
        None => println!("  tshark: not run"),
    }
}

const HELP: &str = "\
cargo bench -p longhaul-capture --bench captures -- [OPTION]... [PART]...
Parts: bulk, small (both)
  --no-tshark   leave tshark out
  --keep        leave the captures";

fn main() -> ExitCode {
    bench_harness::run(HELP, |mut arguments| {
        let (with_tshark, keep) = (!arguments.flag("--no-tshark"), arguments.flag("--keep"));
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(&folder)?;
        for is_bulk in arguments.parts(&[("bulk", true), ("small", false)])? {
            let path = folder.join(if is_bulk { "bulk.pcap" } else { "small.pcap" });
            if is_bulk {
                generate::bulk(&path)?;
                measure("bulk transfer", &path, with_tshark);
            } else {
                generate::small(&path, generate::SMALL_PACKETS)?;
                // tshark would need minutes, and memory that few machines have.
                measure("small packets", &path, false);
            }
            if !keep {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    })
}
