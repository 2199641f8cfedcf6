//! Studies that are killed, run out of space, and reproduce what was published.

use crate::program::{Ended, LONGHAUL, end, run, signal, start};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Cells of a fifth of a second.
const PLAN: &str = r#"question = "Does throughput follow window over round trip?"
[path]
rate = "20mbit"
rtt = "10ms"
[factors]
window = ["16KiB", "64KiB"]
streams = [1, 2, 3]
[traffic]
duration = "200ms"
[repeats]
count = 3
"#;
const RUNS: usize = 18;

/// The plan in a new directory, and the directory of its results.
fn study() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, PLAN).unwrap();
    let paths = [plan, folder.path().join("results")].map(|path| path.display().to_string());
    (folder, paths)
}

/// The stored runs, as (cell, repeat); fails if one is there twice.
fn stored(results: &str) -> BTreeSet<(u64, u64)> {
    let ended = run(&["study", "export", results, "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let key = |row: &Value| (row["cell"].as_u64().unwrap(), row["repeat"].as_u64().unwrap());
    let keys: BTreeSet<(u64, u64)> = rows.iter().map(key).collect();
    assert_eq!(keys.len(), rows.len(), "a run is stored twice");
    keys
}

/// Killed without warning again and again, at moments that no run's length divides.
pub(crate) fn a_killed_study_resumes() {
    let kills = if std::env::var_os("LONGHAUL_LONG").is_some() { 50 } else { 4 };
    let (_folder, [plan, results]) = study();
    let mut before = BTreeSet::new();
    for kill in 0..kills {
        let mut child = start(&["study", "run", &plan, "--out", &results, "--attempts", "1"]);
        std::thread::sleep(Duration::from_millis(700 + 137 * (kill % 11)));
        if child.try_wait().unwrap().is_none() {
            signal("KILL", child.id());
        }
        let _ = child.wait();
        // Killed before the first run, it may have no tables yet.
        let begun = run(&["study", "export", &results, "--json"]).code == Some(0);
        assert!(begun || before.is_empty(), "the stored runs are not readable");
        if begun {
            let now = stored(&results);
            assert!(now.is_superset(&before), "{before:?} before, {now:?} after");
            before = now;
        }
    }
    let ended = run(&["study", "run", &plan, "--out", &results, "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr));
    assert_eq!((report["runs"].as_u64(), report["done"].as_u64()), (Some(18), Some(18)));
    assert_eq!(stored(&results).len(), RUNS);
    // Nothing is left to do, and the report is the same.
    let again = run(&["study", "run", &plan, "--out", &results, "--json"]);
    let same: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(same["parts"], report["parts"]);
    levels_are_compared(&report, Path::new(&results));
}

/// In JSON and first on the page, to which the pages of the cells link back; and a page beside
/// another study.
fn levels_are_compared(report: &Value, results: &Path) {
    let compared = report["parts"][0]["comparisons"].as_array().unwrap();
    let of = |factor: &str| compared.iter().filter(|one| one["factor"] == factor).count();
    // Windows with 3 numbers of streams and over all; 3 pairs of these with 2 windows and over both.
    assert_eq!((of("window"), of("streams")), (4, 9), "{compared:?}");
    let index = fs::read_to_string(results.join("index.html")).unwrap();
    let is_measured = compared.iter().any(|one| one["ratio"].is_number());
    assert_eq!(index.contains("class=\"verdicts\""), is_measured, "{compared:?}");
    let cells = index.matches("href=\"cells/").count();
    assert!(cells > 0, "no page of a cell");
    for entry in fs::read_dir(results.join("cells")).unwrap() {
        let page = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(page.contains("href=\"../index.html\""), "no way back");
    }
    let (page, results) = (results.with_extension("html"), results.to_str().unwrap());
    let ended = run(&["study", "compare", results, results, "--html", page.to_str().unwrap()]);
    let text = fs::read_to_string(&page).unwrap_or_default();
    assert!(ended.code == Some(2) || text.contains("Cells of both studies"), "{}", ended.stderr);
}

/// The Python that has DuckDB, if `scripts/peers` could install it.
pub(crate) const DUCKDB: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/peers/bin/python");

/// Asks DuckDB for every row of the Parquet files below a directory, as JSON.
const QUERY: &str = r#"
import duckdb, json, sys
rows = duckdb.sql("SELECT * FROM read_parquet('" + sys.argv[1] + "/**/*.parquet', "
    "hive_partitioning = true) ORDER BY cell, repeat")
names = [column[0] for column in rows.description]
print(json.dumps([dict(zip(names, row)) for row in rows.fetchall()]))
"#;

/// What DuckDB reads is what the other exports have.
pub(crate) fn exports_are_files_and_parquet_is_read_by_duckdb() {
    let (folder, [plan, results]) = study();
    fs::write(&plan, PLAN.replace("count = 3", "count = 1")).unwrap();
    let ended = run(&["study", "run", &plan, "--out", &results, "--attempts", "1"]);
    let parquet = folder.path().join("parquet").display().to_string();
    let exported = run(&["study", "export", &results, "--parquet", &parquet]);
    assert_eq!(exported.code, Some(0), "{} {}", ended.stderr, exported.stderr);
    // Never into a directory that is there.
    let again = run(&["study", "export", &results, "--parquet", &parquet]);
    assert!(again.code == Some(2) && again.stderr.contains("exists"), "{}", again.stderr);
    let plots = folder.path().join("plots").display().to_string();
    for expected in [0, 2] {
        let drawn = run(&["study", "export", &results, "--svg", &plots]);
        assert_eq!(drawn.code, Some(expected), "{}", drawn.stderr);
    }
    let drawn = fs::read_dir(&plots).unwrap().map(|file| file.unwrap().file_name());
    assert!(drawn.count() > 0, "no plots");
    let asked = Command::new(DUCKDB).args(["-c", QUERY, &parquet]).output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let read: Vec<Value> = serde_json::from_slice(&asked.stdout).unwrap();
    let lines = run(&["study", "export", &results, "--json"]).stdout;
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((read.len(), rows.len()), (6, 6));
    for (read, row) in read.iter().zip(&rows) {
        for (name, value) in row.as_object().unwrap() {
            assert_eq!(&read[name], value, "{name}: {read}");
        }
        assert_eq!((&read["part"], &read["factor"]), (&"all".into(), &"window".into()));
        assert_eq!(read["value"], row["window"]);
    }
}

/// A full file system ends a study in good order; with space it goes on.
pub(crate) fn a_full_disk_stops_a_study() {
    let (folder, [plan, _]) = study();
    let mount = folder.path().join("small");
    fs::create_dir(&mount).unwrap();
    // A mount namespace of its own: the file system goes with it.
    let script = format!(
        "mount -t tmpfs -o size=260k,mode=700 none {small} && \
         {LONGHAUL} study run {plan} --out {small}/results --attempts 1; code=$?; \
         mount -o remount,size=20m {small} && \
         {LONGHAUL} study run {plan} --out {small}/results --attempts 1 >&2; \
         {LONGHAUL} study export {small}/results --json | wc -l; exit $code",
        small = mount.display()
    );
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let Ended { code, stdout, stderr } = end(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("no space left") && stderr.contains("resume"), "{stderr}");
    assert_eq!(stdout.trim(), RUNS.to_string(), "{stderr}");
}

/// A file on a disk that is slower than the link, over TCP and UDT: no more arrives than the disk
/// gives, and the finding says so. Without FUSE the runs say that they did not run.
pub(crate) fn a_disk_limits_a_study() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("disk.toml");
    let text = PLAN
        .replace(
            "window = [\"16KiB\", \"64KiB\"]\nstreams = [1, 2, 3]",
            "protocol = [\"tcp\", \"udt\"]",
        )
        .replace("200ms", "2s\"\nsource = \"file\"\ndisk = \"4mbit\"\nchunk = \"64KiB")
        .replace("count = 3", "count = 1");
    fs::write(&plan, text).unwrap();
    let results = folder.path().join("results").display().to_string();
    let plan = plan.display().to_string();
    let ended = run(&["study", "run", &plan, "--out", &results, "--json"]);
    let exported = run(&["study", "export", &results, "--json"]).stdout;
    let rows: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{}", ended.stderr);
    for row in &rows {
        if !Path::new("/dev/fuse").exists() {
            assert_eq!(row["status"], "failed", "{row}");
            assert!(row["reason"].as_str().unwrap().starts_with("not run:"), "{row}");
            continue;
        }
        let (disk, goodput) = (&row["disk_bps"], &row["throughput_bps"]);
        // The device gives no more than its rate, but for the one read that is under way.
        let most = 4e6 + 2.0 * 131_072.0 * 8.0 / 2.0;
        assert!((1e6..most).contains(&disk.as_f64().unwrap()), "{row}");
        assert!((1e6..most).contains(&goodput.as_f64().unwrap()), "{row}");
        assert_eq!(row["limit"], "application", "{row}");
    }
    if Path::new("/dev/fuse").exists() {
        let page = fs::read_to_string(Path::new(&results).join("cells/1.html")).unwrap();
        assert!(page.contains("Disk-limited: the file was read at"), "{page}");
    }
}

/// The windows of the first published experiment, in its short form; `make studies` runs all of it.
pub(crate) fn edge_cloud_windows_hold() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results").display().to_string();
    let plan = ["study", "run", "edge-cloud", "--quick", "--only", "window-plateau", "--json"];
    let ended = run(&[&plan[..], &["--out", &results]].concat());
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr));
    if ended.code == Some(3) {
        stall_retry::undecided(format!("not valid: {}", report["parts"]));
    }
    let trends = report["trends"].as_array().unwrap();
    assert_eq!(trends.len(), 3);
    for trend in trends {
        assert_eq!(trend["holds"], true, "{trend}");
        assert!(trend["published"].is_string() && trend["measured"].is_string(), "{trend}");
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The page is complete by itself, and each cell has one.
    let page = fs::read_to_string(Path::new(&results).join("index.html")).unwrap();
    assert!(page.contains("window-plateau") && !page.contains("http://") && !page.contains("src="));
    assert!(Path::new(&results).join("cells/windows-0.html").is_file());
    links_lead_to_files(Path::new(&results));
}

/// No link of a study's pages is dead.
fn links_lead_to_files(results: &Path) {
    let cells = fs::read_dir(results.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let mut links = 0;
    for page in cells.chain([results.join("index.html")]) {
        let html = fs::read_to_string(&page).unwrap();
        for link in html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let target = fs::read_to_string(&target).unwrap_or_else(|e| panic!("{link}: {e}"));
            assert!(anchor.is_empty() || target.contains(&format!("id=\"{anchor}\"")), "{link}");
            links += 1;
        }
    }
    assert!(links > 0, "no link");
}

/// Programs as traffic: one that works, and some that do what they should not.
const PROGRAMS: &str = r#"question = "Which programs transfer?"
[path]
rate = "20mbit"
rtt = "20ms"
[factors]
program = ["sends", "prints", "fails", "stays"]
hosts = ["1x1", "2x1"]
[traffic]
duration = "1s"
[optional]
"net.core.rmem_max" = "4000000"
"net.ipv4.tcp_sack" = "1"
[programs.sends]
server = ["sh", "-c", "timeout 20 python3 server.py {port}"]
client = ["python3", "client.py", "{server}", "{port}", "{seconds}"]
output = "number bit/s"
[programs.sends.files]
"server.py" = """
import socket, sys
server = socket.create_server(("", int(sys.argv[1])))
connection, _ = server.accept()
while connection.recv(65536): pass
"""
"client.py" = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
began, sent = time.time(), 0
while time.time() < began + float(sys.argv[3]): sent += connection.send(bytes(65536))
print("sent", 8 * sent / float(sys.argv[3]))
"""
[programs.prints]
client = ["sh", "-c", "while :; do echo {port} no end; done"]
output = "number bit/s"
[programs.fails]
client = ["sh", "-c", "echo {port} \u001b[2Jout of order >&2; exit 3"]
output = "number bit/s"
[programs.stays]
client = ["sh", "-c", "setsid sleep 1000 & id -u; echo {port} > /dev/null"]
output = "number bit/s"
"#;

pub(crate) fn programs_are_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    fs::write(&plan, PROGRAMS).unwrap();
    let [plan, results] =
        [plan, folder.path().join("results")].map(|path| path.display().to_string());
    let arguments = ["study", "run", &plan, "--out", &results, "--allow-commands", "--json"];
    let options = ["--attempts", "1", "--pcap", "--pcap-max", "200kB"];
    let ended = run(&[&arguments[..], &options].concat());
    let report: Value = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ended.stdout, ended.stderr));
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
    assert_eq!(report["not_set"], serde_json::json!(["net.core.rmem_max"]));
    let exported = run(&["study", "export", &results, "--json"]).stdout;
    let rows: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let row = |program: &str, hosts: &str| {
        let found = rows.iter().find(|row| row["program"] == program && row["hosts"] == hosts);
        found.unwrap_or_else(|| panic!("{program} {hosts}: {exported}"))
    };
    for hosts in ["1x1", "2x1"] {
        let reason = |program: &str| row(program, hosts)["reason"].as_str().unwrap().to_owned();
        assert!(reason("prints").contains("it printed more than 1 MiB"), "{exported}");
        let failed = reason("fails");
        assert!(failed.contains("exit code 3") && failed.contains("out of order"), "{failed}");
    }
    let sends = row("sends", "1x1");
    if [sends, row("sends", "2x1")].iter().any(|row| row["status"] == "invalid") {
        stall_retry::undecided(format!("not valid: {exported}"));
    }
    // What the program wrote, and what the kernel delivered.
    let rate = |key: &str| sends[key].as_f64().unwrap();
    assert!(rate("throughput_bps") > 5e6 && rate("traffic.sent_bps") > 5e6, "{sends}");
    assert!((19.0..30.0).contains(&rate("traffic.min_rtt_ms")), "{sends}");
    assert_eq!(row("sends", "2x1")["status"], "valid", "{exported}");
    // A capture of each cell, whole and not too long.
    let captures = fs::read_dir(Path::new(&results).join("captures")).unwrap();
    let captures: Vec<_> = captures.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(captures.len(), 8, "{captures:?}");
    for path in &captures {
        assert!(fs::metadata(path).unwrap().len() <= 200_000);
        assert_eq!(run(&["pcap", path.to_str().unwrap()]).code, Some(0));
    }
    // As root's nobody, or as the user who runs it, root in its own namespace.
    let user = row("stays", "1x1")["throughput_bps"].as_f64();
    assert!([Some(65_534.0), Some(0.0)].contains(&user), "{exported}");
}
