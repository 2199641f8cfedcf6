//! The part of the bench that runs on the lab's client: each copy's time is a line of JSON.

use crate::{LONGHAUL, kills, sshd};
use bench_harness::Fallible;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const REPEATS: usize = 3;

pub(crate) fn run(part: &str, directory: &Path) -> Fallible<()> {
    let file = directory.join("file");
    let tree = directory.join("tree");
    match part {
        "scp" => {
            for _ in 0..REPEATS {
                copied("copy_file", directory, &file)?;
                by_scp("scp_file", directory, &file)?;
                copied("copy_tree", directory, &tree)?;
                by_scp("scp_tree", directory, &tree)?;
            }
            Ok(())
        }
        "tree" => (0..REPEATS).try_for_each(|_| copied("copy_tree", directory, &tree)),
        "file" => copied("copy_file", directory, &file),
        "kills" => kills::on_client(directory),
        other => Err(format!("no part {other}").into()),
    }
}

/// `longhaul copy` of a file or directory to the server.
pub(crate) fn copy(directory: &Path, what: &Path) -> Command {
    let mut copy = Command::new(LONGHAUL);
    copy.args(["copy", "-q", "--token-file"]).arg(directory.join("token"));
    copy.arg(what).arg("server:").stdin(Stdio::null());
    copy
}

fn copied(name: &str, directory: &Path, what: &Path) -> Fallible<()> {
    timed(name, directory, &mut copy(directory, what))
}

fn by_scp(name: &str, directory: &Path, what: &Path) -> Fallible<()> {
    let to = format!("server:{}/", directory.join("root").display());
    timed(name, directory, sshd::scp(directory).arg(what).arg(to))
}

fn timed(name: &str, directory: &Path, command: &mut Command) -> Fallible<()> {
    // The server holds the directory itself.
    for entry in fs::read_dir(directory.join("root"))? {
        let path = entry?.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    let began = host::clock::now();
    let ended = command.stdout(Stdio::null()).status()?;
    let seconds = began.elapsed().as_secs_f64();
    if !ended.success() {
        return Err(format!("{name} failed: {ended}").into());
    }
    println!("{{\"{name}\":{seconds}}}");
    Ok(())
}
