//! How long big captures take: read alone, and read, dissected and counted; beside
//! tshark where it is installed. The promised figures are those of docs/design/captures.md.
//!
//! `cargo bench -p longhaul-capture --bench captures` writes 3.6 GB of temporary files;
//! `-- bulk` or `-- small` runs one of the two; `--no-tshark` leaves tshark out, `--keep`
//! leaves the files.

#![expect(clippy::unwrap_used, reason = "in a benchmark an unwrap is an assertion")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod generate;

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
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The shortest of three.
fn best<T>(mut work: impl FnMut() -> T) -> (Duration, T) {
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

fn tshark(path: &Path) -> Option<Duration> {
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
    let ns = |time: Duration| time.as_nanos() as f64 / packets as f64;
    println!("{name}: {:.2} GB, {packets} packets, {flows} flows or hosts", bytes as f64 / 1e9);
    println!("  read alone            {:8.3} s  {:6.1} ns/packet", read.as_secs_f64(), ns(read));
    println!(
        "  read, dissected       {:8.3} s  {:6.1} ns/packet",
        dissected.as_secs_f64(),
        ns(dissected)
    );
    println!(
        "  all that is counted   {:8.3} s  {:6.1} ns/packet, {:.1} M packets/s, {:.2} x read alone",
        counted.as_secs_f64(),
        ns(counted),
        1e3 / ns(counted),
        counted.as_secs_f64() / read.as_secs_f64(),
    );
    match with_tshark.then(|| tshark(path)).flatten() {
        Some(time) => println!(
            "  tshark                {:8.3} s  {:.0} x as long",
            time.as_secs_f64(),
            time.as_secs_f64() / counted.as_secs_f64()
        ),
        None => println!("  tshark: not run"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let both = !has("bulk") && !has("small");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&folder).unwrap();
    if both || has("bulk") {
        let path = folder.join("bulk.pcap");
        generate::bulk(&path).unwrap();
        measure("bulk transfer", &path, !has("--no-tshark"));
        if !has("--keep") {
            std::fs::remove_file(path).unwrap();
        }
    }
    if both || has("small") {
        let path = folder.join("small.pcap");
        generate::small(&path, generate::SMALL_PACKETS).unwrap();
        // tshark would need minutes, and memory that few machines have.
        measure("small packets", &path, false);
        if !has("--keep") {
            std::fs::remove_file(path).unwrap();
        }
    }
}
