//! Data reduction: text over a path that limits it, ciphertext where nothing does.

use crate::lab::{Scenario, Security};
use crate::relay::{boost, carry_piece};
use bench_harness::{Fallible, Ratios, median, note, rounds, row};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of the corpus.
const CORPUS: usize = 120_000_000;
/// Ratio of `zstd -1` that the corpus is to have.
const RATIO: std::ops::RangeInclusive<f64> = 2.5..=3.0;

/// The files of documentation below a folder, sorted by name.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) -> Fallible<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            documents(&entry, found)?;
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            found.push(entry);
        }
    }
    Ok(())
}

/// The repository's documentation, one file after another, as often as it takes. It is longer than
/// the window of `zstd -1` (512 KiB), which does not see that it repeats.
fn corpus() -> Fallible<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = Vec::new();
    documents(&root.join("docs"), &mut files)?;
    files.push(root.join("SECURITY.md"));
    files.push(root.join("ARCHITECTURE.md"));
    let texts = files.iter().map(fs::read).collect::<std::io::Result<Vec<_>>>()?;
    let all = texts.concat();
    if all.len() < 600_000 {
        return Err(format!("the documentation has {} bytes only", all.len()).into());
    }
    Ok(all.into_iter().cycle().take(CORPUS).collect())
}

/// The ratio of `zstd -1`.
fn ratio(file: &Path) -> Fallible<f64> {
    let output = Command::new("zstd").args(["-1", "-q", "-c"]).arg(file).output();
    let output =
        output.map_err(|error| format!("cannot start zstd: {error}; apt-get install zstd"))?;
    Ok(CORPUS as f64 / output.stdout.len() as f64)
}

/// What carries the flows, and the flags of near for it.
const CARRIERS: [(&str, &str); 2] = [("lanes", ""), ("--mux", "--mux")];

/// The corpus over 100 Mbit/s, directly and by a pair that compresses.
pub(crate) fn text(count: usize) -> Fallible<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("corpus");
    fs::write(&file, corpus()?)?;
    let ratio = ratio(&file)?;
    if !RATIO.contains(&ratio) {
        return Err(format!("zstd -1 reduces the corpus by {ratio:.2}, not 2.5 to 3").into());
    }
    note("boost: zstd -1 on the corpus of documentation", &format!("{ratio:.2}"));
    let promised = 0.9 * ratio;
    for (name, flag) in CARRIERS {
        let (mut direct, mut boosted) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let [one, other] = fetch_twice(folder.path(), flag)?;
            direct.push(one);
            boosted.push(other);
        }
        let shown = |rates: &[f64]| format!("{:.1} Mbit/s", median(rates) * 8e-6);
        note(&format!("boost: the corpus, direct, beside {name}"), &shown(&direct));
        note(&format!("boost: the corpus, compressed, {name}"), &shown(&boosted));
        let gain = Ratios::of(&boosted, &direct);
        row(
            &format!("boost: the corpus over 100 Mbit/s, {name}, times direct"),
            &format!("{promised:.2}"),
            &gain.to_string(),
            gain.median() >= promised,
        );
    }
    Ok(())
}

/// Bytes per second of the corpus, directly and by a pair whose near box has this flag.
fn fetch_twice(folder: &Path, flag: &str) -> Fallible<[f64; 2]> {
    let files = ["direct", "boosted"].map(|name| folder.join(name));
    let [one, other] = &files;
    let get = |from: &str, to: &Path| {
        format!(
            "curl -sf -o /dev/null -w %{{speed_download}} http://{from}/corpus > {}",
            to.display()
        )
    };
    let far = "--insecure --compress".to_owned();
    Scenario {
        path: "rate=100mbit,rtt=20ms",
        sysctl: "",
        server: format!("python3 -m http.server -d {} 8000", folder.display()),
        port: 8000,
        security: Security { near: format!("{far} {flag}"), far },
        command: format!("sleep 1; {} && {}", get("server:8000", one), get("near:5301", other)),
    }
    .run(folder)?;
    let rate = |file: &Path| -> Fallible<f64> { Ok(fs::read_to_string(file)?.trim().parse()?) };
    Ok([rate(one)?, rate(other)?])
}

/// Ciphertext on loopback, with and without `--compress`.
pub(crate) fn ciphertext(count: usize, is_short: bool) -> Fallible<()> {
    for (name, flag) in CARRIERS {
        compare_ciphertext(name, flag, count, is_short)?;
    }
    Ok(())
}

fn compare_ciphertext(name: &str, flag: &str, count: usize, is_short: bool) -> Fallible<()> {
    let target = TcpListener::bind("127.0.0.1:0")?;
    let address = target.local_addr()?;
    let bytes = if is_short { 2_000_000_000 } else { 10_000_000_000 };
    let piece = host::random::incompressible(1 << 18);
    let mut of_near: Vec<&str> = [flag].into_iter().filter(|flag| !flag.is_empty()).collect();
    let without = boost(address, [&of_near, &[]])?;
    of_near.push("--compress");
    let chains = [boost(address, [&of_near, &["--compress"]])?, without];
    let mut costs = [Vec::new(), Vec::new()];
    let rates = rounds(&chains, count, |chain, _| {
        let before = chain.cpu_seconds()?;
        let rate = carry_piece(chain.port, &target, bytes, &piece)?;
        let index = usize::from(chain.port != chains[0].port);
        if let Some(costs) = costs.get_mut(index) {
            costs.push(chain.cpu_seconds()? - before);
        }
        Ok(rate)
    })?;
    if let [with, without] = rates.as_slice() {
        let shown = format!("{:.2} Gbit/s", median(with) / 1e9);
        note(&format!("boost: ciphertext, --compress, {name}"), &shown);
        let ratio = Ratios::of(with, without);
        row(
            &format!("boost: ciphertext, {name}, with --compress to without, throughput"),
            "0.98",
            &ratio.to_string(),
            ratio.median() >= 0.98,
        );
    }
    let [with, without] = &costs;
    let ratio = Ratios::of(with, without);
    row(
        &format!("boost: ciphertext, {name}, with --compress to without, CPU per byte"),
        "1.05",
        &ratio.to_string(),
        ratio.median() <= 1.05,
    );
    Ok(())
}
