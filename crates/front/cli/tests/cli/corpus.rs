//! The corpus of inputs with their truth, `tests/corpus`: every file is explained as its truth says,
//! and no headline contradicts its own evidence. What is missing is said first.
//!
//! `LONGHAUL_BLESS=1` writes the files again; `truth.tsv` is written by hand.

mod captures;
#[path = "../../../../campaigns/verify/benches/ordinary/headline.rs"]
mod headline;
mod tool_files;

use crate::program::{printed, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A rate may be off by this share: the true one is of the whole transfer, or of its equation.
const RATE_WITHIN: f64 = 0.15;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// What is true of a file.
struct Truth {
    file: String,
    /// The limits that are right.
    limits: Vec<String>,
    mbit: Option<f64>,
    /// The kind of the first caveat.
    caveat: Option<String>,
}

fn truths() -> Vec<Truth> {
    let table = std::fs::read_to_string(folder().join("truth.tsv")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, limits, mbit, caveat, _made] = fields[..] else { panic!("{line}") };
        Truth {
            file: file.to_owned(),
            limits: limits.split('|').map(str::to_owned).collect(),
            mbit: mbit.parse().ok(),
            caveat: (caveat != "-").then(|| caveat.to_owned()),
        }
    })
    .collect()
}

/// What is wrong with the explanation of a file; empty if nothing is.
fn faults(truth: &Truth) -> Vec<String> {
    let path = folder().join(&truth.file);
    let text = printed(&["explain", path.to_str().unwrap(), "--json"]);
    let found: Value = serde_json::from_str(&text).unwrap();
    // A result of another tool is a measurement with its finding.
    let found = found.get("finding").unwrap_or(&found);
    let limit = found["limit"].as_str().unwrap_or("none");
    let sentence = found["sentence"].as_str().unwrap();
    let bits = found["throughput_bps"].as_f64().unwrap();
    let mut faults = Vec::new();
    if !truth.limits.iter().any(|right| right == limit) {
        faults.push(format!("{limit}, not {}", truth.limits.join(" or ")));
    }
    if let Some(mbit) = truth.mbit
        && (bits - mbit * 1e6).abs() > RATE_WITHIN * mbit * 1e6 + 1e3
    {
        faults.push(format!("{:.3} Mbit/s, not {mbit}", bits / 1e6));
    }
    let caveat = found["caveats"].get(0).and_then(|caveat| caveat["kind"].as_str());
    if caveat != truth.caveat.as_deref() {
        faults.push(format!("first caveat {caveat:?}, not {:?}", truth.caveat));
    }
    faults.extend(headline::contradiction(sentence, bits));
    faults.extend(untrue(found, limit));
    if !faults.is_empty() {
        faults.push(sentence.to_owned());
    }
    faults
}

/// A limit whose share of the time is 0 %, or whose prediction is off by more than a factor of three.
fn untrue(found: &Value, limit: &str) -> Option<String> {
    let share = match limit {
        "receive-window" | "window-scaling" | "slow-receiver" => "receive_window",
        "send-buffer" => "send_buffer",
        "application" => "application",
        _ => "",
    };
    if found["shares"][share].as_f64().is_some_and(|share| share < 0.005) {
        return Some(format!("{limit} took no time"));
    }
    let ratio = found["throughput_bps"].as_f64()? / found["predicted_bps"].as_f64()?.max(1.0);
    (!(1.0 / 3.0..=3.0).contains(&ratio)).then(|| format!("{ratio:.2} of what is predicted"))
}

#[test]
fn every_file_is_explained_as_its_truth_says() {
    let made: BTreeMap<String, Vec<u8>> =
        captures::all().into_iter().chain(tool_files::all()).collect();
    if std::env::var_os("LONGHAUL_BLESS").is_some() {
        for (name, bytes) in &made {
            std::fs::write(folder().join(name), bytes).unwrap();
        }
    }
    let truths = truths();
    let listed: Vec<&String> = truths.iter().map(|truth| &truth.file).collect();
    let unlisted: Vec<&String> = made.keys().filter(|name| !listed.contains(name)).collect();
    assert!(unlisted.is_empty(), "not in truth.tsv: {unlisted:?}");
    assert!(truths.len() >= 60, "{}", truths.len());
    for (name, bytes) in &made {
        let kept = std::fs::read(folder().join(name)).unwrap();
        assert!(plain(&kept) == plain(bytes), "{name} is not what its generator writes");
    }
    let half = truths.len().div_ceil(2);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            truths.chunks(half).map(|part| scope.spawn(|| failures(part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

fn failures(truths: &[Truth]) -> Vec<String> {
    let all = truths.iter().map(|truth| (truth, faults(truth)));
    let failed = all.filter(|(_, faults)| !faults.is_empty());
    failed.map(|(truth, faults)| format!("{}: {}", truth.file, faults.join("; "))).collect()
}

/// Decompressed, as compressors differ between their versions.
fn plain(bytes: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut plain = Vec::new();
    match flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(_) => bytes.to_vec(),
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Every file of the other corpora in the tree, without their truth.
#[test]
fn no_headline_contradicts_its_evidence() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../explain/tool-results/tests/files");
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut count = 0;
    for entry in [kept, samples].iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        let output = run(&["explain", path.to_str().unwrap(), "--json"]);
        let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        let found = found.get("finding").unwrap_or(&found);
        let Some(sentence) = found["sentence"].as_str() else { continue };
        let bits = found["throughput_bps"].as_f64().unwrap_or(0.0);
        let limit = found["limit"].as_str().unwrap_or("none");
        let fault = headline::contradiction(sentence, bits).or_else(|| untrue(found, limit));
        assert_eq!(fault, None, "{}: {sentence}", path.display());
        count += 1;
    }
    assert!(count > 40, "{count}");
}
