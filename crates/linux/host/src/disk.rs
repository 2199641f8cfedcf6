//! Direct file I/O, for measuring the disk.

use rustix::fs::{self, Advice, OFlags};
use std::io;
use std::os::fd::AsFd;

/// Makes reads and writes of a file bypass the page cache (open(2),
/// `O_DIRECT`). Buffers, offsets and lengths must then be multiples of the
/// disk's block size: 4096 suits all.
///
/// # Errors
/// `InvalidInput` if the file system does not support it; otherwise the system error.
pub fn bypass_cache(file: &impl AsFd) -> io::Result<()> {
    let flags = fs::fcntl_getfl(file)?;
    Ok(fs::fcntl_setfl(file, flags | OFlags::DIRECT)?)
}

/// Drops a file's pages from the page cache once they are on disk
/// (posix_fadvise(2), `POSIX_FADV_DONTNEED`).
///
/// # Errors
/// The system error.
pub fn forget(file: &impl AsFd) -> io::Result<()> {
    Ok(fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Magic number of the file system that a file is on (statfs(2)).
///
/// # Errors
/// The system error.
pub fn file_system(file: &impl AsFd) -> io::Result<u64> {
    // The field's type differs between architectures; a magic number is 32 bits.
    Ok(u64::try_from(fs::fstatfs(file)?.f_type).unwrap_or_default() & 0xffff_ffff)
}

/// Size of a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Total.
    pub total: u64,
    /// Available to unprivileged users.
    pub free: u64,
}

/// Size and free space of the file system that a file is on (statvfs(3)).
///
/// # Errors
/// The system error.
pub fn room(file: &impl AsFd) -> io::Result<Room> {
    let filled = fs::fstatvfs(file)?;
    let bytes = |blocks: u64| blocks.saturating_mul(filled.f_frsize);
    Ok(Room { total: bytes(filled.f_blocks), free: bytes(filled.f_bavail) })
}

/// `TMPFS_MAGIC` (linux/magic.h).
pub const TMPFS: u64 = 0x0102_1994;
/// `RAMFS_MAGIC`.
pub const RAMFS: u64 = 0x8584_58f6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn direct_writes_work_or_are_refused() {
        let folder = std::env::temp_dir();
        let name = folder.join(format!("longhaul-disk-{}", std::process::id()));
        let mut file = File::create(&name).unwrap();
        std::fs::remove_file(&name).unwrap();
        assert!(file_system(&file).unwrap() > 0);
        match bypass_cache(&file) {
            Ok(()) => {
                let region = Region::new(1 << 20).unwrap();
                file.write_all(&region).unwrap();
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EINVAL)),
        }
        file.sync_data().unwrap();
        forget(&file).unwrap();
    }
}
