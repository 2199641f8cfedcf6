//! What `longhaul copy` promises, some of it beside scp on the same path in the same run:
//! `cargo bench -p longhaul-cli --bench copy`, or with names, some of it.
//!
//! The files are in memory (`/dev/shm`), so that no disk is the limit: `large` needs 20 GB
//! there. `scp` needs Debian's openssh-server. Root is required: sshd needs it.

mod client;
mod kills;
mod sshd;

use bench_harness::{Arguments, Fallible, heading, median, note, row};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const LONGHAUL: &str = env!("CARGO_BIN_EXE_longhaul");
/// The path of the promises.
const LINK: &str = "rate=1gbit,rtt=100ms";
const LINK_BPS: f64 = 1e9;
const GB: u64 = 1_000_000_000;
/// Option of the process that runs as the lab's client.
const CLIENT: &str = "--as-client";

const HELP: &str = "\
cargo bench -p longhaul-cli --bench copy -- [PART]...
Parts: scp, small, large, kills (all of them)";

fn main() -> ExitCode {
    bench_harness::run(HELP, |mut arguments| match arguments.value::<String>(CLIENT)? {
        Some(part) => match &arguments.names()?[..] {
            [directory] => client::run(&part, Path::new(directory)),
            _ => Err(format!("{CLIENT} PART DIRECTORY").into()),
        },
        None => measure(arguments),
    })
}

type Part = fn(&Bench) -> Fallible<()>;

fn measure(arguments: Arguments) -> Fallible<()> {
    let parts: [(&str, Part); 4] =
        [("scp", beside_scp), ("small", small_files), ("large", large_file), ("kills", kills::run)];
    let asked = arguments.parts(&parts)?;
    heading();
    asked.into_iter().try_for_each(|part| part(&Bench::new()?))
}

/// A directory with a token, and `root`, which a server in the lab offers.
struct Bench {
    directory: tempfile::TempDir,
}

impl Bench {
    fn new() -> Fallible<Self> {
        let directory = tempfile::tempdir_in("/dev/shm")?;
        let bench = Bench { directory };
        fs::create_dir(bench.path("root"))?;
        write_private(&bench.path("token"), "0123456789abcdef0123456789abcdef")?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs this program as the client of a lab with a copy server, and with `also` on the
    /// server's host. The lines that it prints, each a JSON document.
    fn in_lab(&self, part: &str, link: &str, also: Option<&Path>) -> Fallible<Vec<Value>> {
        let mut servers = "#!/bin/sh\n".to_owned();
        if let Some(script) = also {
            servers += &format!("unshare -m {} &\n", script.display());
        }
        servers += &format!(
            "exec {LONGHAUL} server --root {} --writable --tokens {}\n",
            self.path("root").display(),
            self.path("token").display()
        );
        let script = self.path("servers");
        write_script(&script, &servers)?;
        let ended = Command::new(LONGHAUL)
            .args(["lab", "run", "--tuned", "--link", link, "--server"])
            .arg(&script)
            .arg("--")
            .arg(std::env::current_exe()?)
            .args([CLIENT, part])
            .arg(self.directory.path())
            .stderr(File::create(self.path("log"))?)
            .stdin(Stdio::null())
            .output()?;
        let lines: Result<Vec<Value>, _> =
            String::from_utf8_lossy(&ended.stdout).lines().map(serde_json::from_str).collect();
        // Code 3: the emulation was late for a moment, which the copies did not need.
        match (ended.status.code(), lines) {
            (Some(0 | 3), Ok(lines)) if !lines.is_empty() => Ok(lines),
            (code, _) => {
                let mut log = String::new();
                File::open(self.path("log"))?.read_to_string(&mut log)?;
                Err(format!("the lab of {part} ended with {code:?}:\n{log}").into())
            }
        }
    }
}

/// The values of the lines that are about `what`.
fn values(lines: &[Value], what: &str) -> Vec<f64> {
    lines.iter().filter_map(|line| line[what].as_f64()).collect()
}

/// 1 GB in a file and 200 small files: the time of each, beside scp's.
fn beside_scp(bench: &Bench) -> Fallible<()> {
    random_file(&bench.path("file"), GB)?;
    random_files(&bench.path("tree"), 200, 10_000)?;
    let sshd = sshd::prepare(bench.directory.path())?;
    let lines = bench.in_lab("scp", LINK, Some(&sshd))?;
    for (what, copy, scp) in
        [("1 GB", "copy_file", "scp_file"), ("200 files of 10 kB", "copy_tree", "scp_tree")]
    {
        let (ours, theirs) = (median(&values(&lines, copy)), median(&values(&lines, scp)));
        let ratio = theirs / ours;
        row(
            &format!("{what}: scp's time over copy's"),
            ">= 5",
            &format!("{ratio:.1}"),
            ratio >= 5.0,
        );
        note("copy, median of three", &format!("{ours:.1} s"));
        note("scp, median of three", &format!("{theirs:.1} s"));
    }
    Ok(())
}

fn small_files(bench: &Bench) -> Fallible<()> {
    let (files, bytes) = (100_000, 10_000);
    random_files(&bench.path("tree"), files, bytes)?;
    let lines = bench.in_lab("tree", LINK, None)?;
    share_row("100,000 files of 10 kB", files * bytes, &values(&lines, "copy_tree"), 0.6);
    Ok(())
}

fn large_file(bench: &Bench) -> Fallible<()> {
    random_file(&bench.path("file"), 10 * GB)?;
    let lines = bench.in_lab("file", LINK, None)?;
    share_row("10 GB", 10 * GB, &values(&lines, "copy_file"), 0.9);
    Ok(())
}

fn share_row(what: &str, bytes: u64, seconds: &[f64], promised: f64) {
    let share = bytes as f64 * 8.0 / median(seconds) / LINK_BPS;
    row(
        &format!("{what} over {LINK}"),
        &format!(">= {:.0} %", promised * 100.0),
        &format!("{:.0} %", share * 100.0),
        share >= promised,
    );
}

fn random_file(path: &Path, bytes: u64) -> io::Result<()> {
    io::copy(&mut File::open("/dev/urandom")?.take(bytes), &mut File::create(path)?).map(drop)
}

fn random_files(directory: &Path, files: u64, bytes: u64) -> io::Result<()> {
    fs::create_dir(directory)?;
    (0..files).try_for_each(|index| random_file(&directory.join(index.to_string()), bytes))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn write_script(path: &Path, text: &str) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}
