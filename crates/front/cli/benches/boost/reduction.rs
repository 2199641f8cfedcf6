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
    let (mut direct, mut boosted) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let [one, other] = ["direct", "boosted"].map(|name| folder.path().join(name));
        let get = |from: &str, to: &Path| {
            format!(
                "curl -sf -o /dev/null -w %{{speed_download}} http://{from}/corpus > {}",
                to.display()
            )
        };
        let with = || "--insecure --compress".to_owned();
        Scenario {
            path: "rate=100mbit,rtt=20ms",
            sysctl: "",
            server: format!("python3 -m http.server -d {} 8000", folder.path().display()),
            port: 8000,
            security: Security { near: with(), far: with() },
            command: format!(
                "sleep 1; {} && {}",
                get("server:8000", &one),
                get("near:5301", &other)
            ),
        }
        .run(folder.path())?;
        let rate = |file: &Path| -> Fallible<f64> { Ok(fs::read_to_string(file)?.trim().parse()?) };
        direct.push(rate(&one)?);
        boosted.push(rate(&other)?);
    }
    note("boost: the corpus, direct", &format!("{:.1} Mbit/s", median(&direct) * 8e-6));
    note("boost: the corpus, compressed", &format!("{:.1} Mbit/s", median(&boosted) * 8e-6));
    let gain = Ratios::of(&boosted, &direct);
    let promised = 0.9 * ratio;
    row(
        "boost: the corpus over 100 Mbit/s, times direct",
        &format!("{promised:.2}"),
        &gain.to_string(),
        gain.median() >= promised,
    );
    Ok(())
}

/// Ciphertext on loopback, with and without `--compress`.
pub(crate) fn ciphertext(count: usize, is_short: bool) -> Fallible<()> {
    let target = TcpListener::bind("127.0.0.1:0")?;
    let address = target.local_addr()?;
    let bytes = if is_short { 2_000_000_000 } else { 10_000_000_000 };
    let piece = host::random::incompressible(1 << 18);
    let chains = [boost(address, [&["--compress"]; 2])?, boost(address, [&[]; 2])?];
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
        note("boost: ciphertext, --compress", &format!("{:.2} Gbit/s", median(with) / 1e9));
        let ratio = Ratios::of(with, without);
        row(
            "boost: ciphertext with --compress to without, throughput",
            "0.98",
            &ratio.to_string(),
            ratio.median() >= 0.98,
        );
    }
    let [with, without] = &costs;
    let ratio = Ratios::of(with, without);
    row(
        "boost: ciphertext with --compress to without, CPU per byte",
        "1.05",
        &ratio.to_string(),
        ratio.median() <= 1.05,
    );
    Ok(())
}
