//! Disk throughput, measured with an unnamed file that the kernel removes with the process.

use ::doctor::DiskFacts;
use host::disk::{RAMFS, TMPFS, bypass_cache, file_system, forget};
use host::{clock, memory::Region};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Bytes per write and read: most programs, `cp` included, use no more.
const BLOCK: usize = 4 << 20;

/// Writes up to `most` bytes to a file in `folder` and reads them back, for at
/// most `limit` each, until `stop` returns true.
///
/// # Errors
/// The system's own: no such folder, no right to write there, no room; and
/// `Interrupted`.
pub(super) fn disk(
    folder: &Path,
    most: ByteCount,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<DiskFacts> {
    let mut file = tempfile::tempfile_in(folder)?;
    let kind = file_system(&file).unwrap_or_default();
    let is_memory = kind == TMPFS || kind == RAMFS;
    let direct = bypass_cache(&file);
    // A page-aligned block of incompressible data.
    let mut block = Region::new(BLOCK)?;
    block.copy_from_slice(&host::random::incompressible(BLOCK));

    let began = clock::now();
    let mut written = 0u64;
    while written < most.bytes() && began.elapsed() < limit {
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = file.write(&block)?;
        written += as_u64(length);
        if length < BLOCK {
            break;
        }
    }
    file.sync_data()?;
    let write_bps = BitRate::of(ByteCount::from_bytes(written), began.elapsed());

    if direct.is_err() {
        forget(&file)?;
    }
    let (read, read_bps) = read(&mut file, &mut block, limit, stop)?;
    if read == 0 {
        return Err(io::Error::other("the disk returned no data"));
    }
    let method = match (is_memory, direct) {
        (true, _) => "a file system in memory".to_owned(),
        (false, Ok(())) => "bypassing the page cache (O_DIRECT)".to_owned(),
        (false, Err(_)) => {
            "synced and dropped from the page cache; this file system has no O_DIRECT".to_owned()
        }
    };
    Ok(DiskFacts {
        folder: folder.display().to_string(),
        bytes: ByteCount::from_bytes(written),
        write_bps,
        read_bps,
        method,
        is_memory,
    })
}

fn read(
    file: &mut File,
    block: &mut Region,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<(u64, BitRate)> {
    file.seek(SeekFrom::Start(0))?;
    let (began, mut read) = (clock::now(), 0u64);
    while began.elapsed() < limit {
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(block)? {
            0 => break,
            length => read += as_u64(length),
        }
    }
    Ok((read, BitRate::of(ByteCount::from_bytes(read), began.elapsed())))
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    #[test]
    fn a_folder_is_as_empty_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let most = ByteCount::from_bytes(3 << 20);
        let found = disk(folder.path(), most, LIMIT, &|| false).unwrap();
        assert_eq!(found.bytes.bytes(), BLOCK as u64);
        assert!(found.write_bps.bps() > 0 && found.read_bps.bps() > 0, "{found:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_ends_when_told_and_says_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let most = ByteCount::from_bytes(1 << 30);
        let error = disk(folder.path(), most, LIMIT, &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        let error = disk(Path::new("/no/such/folder"), most, LIMIT, &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(disk(Path::new("/proc"), most, LIMIT, &|| false).is_err());
    }
}
