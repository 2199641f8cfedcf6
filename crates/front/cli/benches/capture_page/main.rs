//! What the page of a capture promises: `cargo bench -p longhaul-cli --bench capture_page`.
//!
//! The bulk transfer of `wire/capture/benches` (1.6 GB, 1.14 million packets), and ten million
//! packets captured without payload: how long the page takes to write, how long it is, and,
//! where Chromium is installed, how long it takes to open and to zoom. 2.5 GB of temporary
//! space; `--keep` leaves the files.

#[path = "../../tests/capture_page/browser.rs"]
mod browser;
#[path = "../../../../wire/capture/benches/captures/generate.rs"]
#[expect(dead_code, reason = "the benchmark of the crate uses the rest")]
mod generate;

use bench_harness::{Fallible, timed};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// The promised figures.
const MAX_BYTES: f64 = 5e6;
const OPENS: Duration = Duration::from_secs(2);
const ZOOMS_MS: f64 = 100.0;

/// Segments of ten million packets, with an ACK for each sixteen.
const TEN_MILLION: u32 = 9_411_764;
/// Link, IP and TCP header with timestamps.
const HEADERS: u32 = 66;

/// Zooms in by 24 steps and out again. Reading a pixel waits until a canvas is drawn.
const ZOOM: &str = "
  const drawn = () => graphs.forEach(({ plot }) => plot.context.getImageData(0, 0, 1, 1));
  drawn();
  const opened = performance.now();
  const times = [];
  const centre = state.home.from + (state.home.to - state.home.from) * 0.37;
  for (let step = 0; step < 48; step++) {
    const before = performance.now();
    zoomAt(centre, step < 24 ? 0.6 : 1 / 0.6);
    draw();
    drawn();
    times.push(performance.now() - before);
  }
  times.sort((a, b) => a - b);
  return { errors, opened, median: times[24], longest: times[47] };";

const HELP: &str = "\
cargo bench -p longhaul-cli --bench capture_page -- [--keep]
  --keep   leave the captures";

fn main() -> ExitCode {
    bench_harness::run(HELP, |mut arguments| {
        let keep = arguments.flag("--keep");
        arguments.end()?;
        measure_all(keep)
    })
}

fn measure_all(keep: bool) -> Fallible<()> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capture-page");
    std::fs::create_dir_all(&folder)?;
    let bulk = folder.join("bulk.pcap");
    generate::bulk(&bulk)?;
    measure("1.6 GB, 1.14 million packets", &bulk, &folder)?;
    let many = folder.join("many.pcap");
    generate::bulk_of(&many, TEN_MILLION, HEADERS)?;
    measure("10 million packets, headers", &many, &folder)?;
    if !keep {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

fn measure(name: &str, capture: &Path, folder: &Path) -> Fallible<()> {
    let page = folder.join("page.html");
    let longhaul = |arguments: &[&std::ffi::OsStr]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.arg("pcap").arg(capture).args(arguments);
        timed(|| command.output())
    };
    // Once for the page cache.
    longhaul(&[]).1?;
    let (summary, _) = longhaul(&[]);
    let (written, output) = longhaul(&["--html".as_ref(), page.as_ref()]);
    if !output?.status.success() {
        return Err("the page was not written".into());
    }
    let bytes = std::fs::metadata(&page)?.len() as f64;
    println!("{name}");
    println!("  summary alone    {summary:7.2} s");
    println!("  with the page    {written:7.2} s");
    println!("  page             {:7.2} MB   (promised: below {})", bytes / 1e6, MAX_BYTES / 1e6);
    if !browser::is_installed() {
        println!("  chromium is not installed: not opened");
        return Ok(());
    }
    let blank = folder.join("blank.html");
    std::fs::write(&blank, "<title>blank</title>")?;
    let picture = |page: &Path| {
        let mut command = browser::chromium(folder);
        command.arg(format!("--screenshot={}", folder.join("page.png").display()));
        command.arg(format!("file://{}", page.display()));
        timed(|| command.output()).0
    };
    picture(&blank);
    let (empty, whole) = (picture(&blank), picture(&page));
    let result = browser::run(&page, folder, ZOOM)?;
    let ms = |key: &str| result.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
    println!(
        "  drawn after      {:7.2} s    (promised: below {}); until a screenshot {:.2} s, of a \
         blank page {:.2} s",
        ms("opened") / 1e3,
        OPENS.as_secs(),
        whole,
        empty
    );
    println!(
        "  a zoom           {:7.1} ms   (promised: below {ZOOMS_MS}), the longest {:.1} ms of 48",
        ms("median"),
        ms("longest")
    );
    println!("  errors           {}", result.get("errors").unwrap_or(&result));
    Ok(())
}
