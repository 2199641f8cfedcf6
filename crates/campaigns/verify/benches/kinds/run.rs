//! A transfer in the lab: its packets with their fates, and what its senders did.

use crate::paths;
use crate::tracepoints::{Event, Tracepoints};
use crate::traffic::{self, PORT};
use bench_harness::Fallible;
use capture::LinkType;
use capture::dissect::{self, Layers};
use lab::{Lab, LinkDirection, Options, PacketRecord};
use link::FateKind;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use topology::Plan;

/// Bytes of each packet: all headers.
const SNAPLEN: usize = 120;

/// A packet of a measured connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Packet {
    /// From the client, which sends the data.
    pub(crate) is_data: bool,
    /// The client's port.
    pub(crate) port: u16,
    /// ns since the lab's start.
    pub(crate) arrived_ns: u64,
    /// When it was delivered; `None`: lost.
    pub(crate) due_ns: Option<u64>,
    pub(crate) length: u32,
    pub(crate) bytes: Box<[u8]>,
}

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) path: String,
    /// In the order in which the lab received them.
    pub(crate) packets: Vec<Packet>,
    pub(crate) events: Vec<Event>,
    /// Packets that the lab's tap missed.
    pub(crate) missed: u64,
}

/// Runs a path in the lab.
///
/// # Errors
/// The lab or the tracepoints fail.
pub(crate) fn run(path: &paths::Path, seed: u64, tracepoints: &Tracepoints) -> Fallible<Run> {
    let link = format!("{},seed={seed}", path.link).parse()?;
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let sysctls: Vec<(String, String)> = path.sysctls.iter().map(owned).collect();
    let lab = Lab::start(&Plan::pair(link, path.congestion, &sysctls, true), Options::default())?;
    let watch = lab.watch(None, SNAPLEN)?;
    let records = std::thread::spawn(move || {
        let records: Vec<PacketRecord> = watch.records.iter().flatten().collect();
        (records, watch.missed())
    });
    let marked = tracepoints.begin()?;
    lab.begin();
    traffic::run(&lab, path.traffic, Duration::from_secs(path.seconds))?;
    let events = tracepoints.events(marked, lab.epoch())?;
    lab.finish()?;
    let (mut records, missed) = records.join().map_err(|_| "the capture panicked")?;
    // Packets of a train have one time, and those that are dropped are recorded first.
    records.sort_by_key(|record| (record.arrived, record.number));
    let mut layers = Layers::new();
    let packets = records.into_iter().filter_map(|record| packet(record, &mut layers)).collect();
    Ok(Run { path: path.name.to_owned(), packets, events, missed })
}

fn packet(record: PacketRecord, layers: &mut Layers) -> Option<Packet> {
    let is_data = record.direction == LinkDirection::Up;
    dissect::dissect(LinkType::RAW, &record.bytes, record.length, layers);
    let key = layers.tcp(&record.bytes)?.key;
    let port = match (key.a_port, key.b_port) {
        (PORT, port) | (port, PORT) => port,
        _ => return None,
    };
    let due_ns = match record.kind {
        FateKind::Delivered { due, .. } => Some(due.0),
        FateKind::Dropped(_) => None,
    };
    let arrived_ns = record.arrived.0;
    Some(Packet { is_data, port, arrived_ns, due_ns, length: record.length, bytes: record.bytes })
}

fn file(folder: &Path, name: &str, seed: u64) -> PathBuf {
    folder.join(format!("{name}-{seed}.json"))
}

/// Writes a run into a folder, which is created if it does not exist.
///
/// # Errors
/// It cannot be written.
pub(crate) fn save(folder: &Path, seed: u64, run: &Run) -> Fallible<()> {
    fs::create_dir_all(folder)?;
    Ok(fs::write(file(folder, &run.path, seed), serde_json::to_vec(run)?)?)
}

/// Reads one.
///
/// # Errors
/// It cannot be read.
pub(crate) fn load(folder: &Path, name: &str, seed: u64) -> Fallible<Run> {
    let path = file(folder, name, seed);
    let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(serde_json::from_slice(&bytes)?)
}
