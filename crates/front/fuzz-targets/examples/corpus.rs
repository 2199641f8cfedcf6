//! Writes the seeds of all targets as the fuzzer reads them, and prints the names of
//! the targets: `corpus DIRECTORY` makes `DIRECTORY/TARGET/SEED`.

use fuzz_targets::{TARGETS, seeds};
use std::fs;
use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    let to = std::env::args_os().nth(1).map(PathBuf::from);
    let to = to.ok_or_else(|| io::Error::other("usage: corpus DIRECTORY"))?;
    for (name, _) in TARGETS {
        let folder = to.join(name);
        fs::create_dir_all(&folder)?;
        for seed in seeds::of(name)? {
            fs::write(folder.join(seed.path.file_name().unwrap_or_default()), &seed.input)?;
        }
        println!("{name}");
    }
    Ok(())
}
