//! Direct file I/O, for measuring the disk.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Makes reads and writes of a file bypass the page cache (open(2),
/// `O_DIRECT`). Buffers, offsets and lengths must then be multiples of the
/// disk's block size: 4096 suits all.
///
/// # Errors
/// `InvalidInput` if the file system does not support it; otherwise the system error.
pub fn bypass_cache(file: &impl AsFd) -> io::Result<()> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: fcntl(2) with these takes and gives plain numbers.
    let flags = sys::check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    sys::check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_DIRECT) }).map(drop)
}

/// Drops a file's pages from the page cache once they are on disk
/// (posix_fadvise(2), `POSIX_FADV_DONTNEED`).
///
/// # Errors
/// The system error.
pub fn forget(file: &impl AsFd) -> io::Result<()> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: takes plain numbers; it returns the error instead of setting it.
    match unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Magic number of the file system that a file is on (statfs(2)).
///
/// # Errors
/// The system error.
pub fn file_system(file: &impl AsFd) -> io::Result<u64> {
    let mut room = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills one statfs, whose address it is; zeros are one as well.
    let filled = unsafe {
        sys::check(libc::fstatfs(file.as_fd().as_raw_fd(), room.as_mut_ptr()))?;
        room.assume_init()
    };
    // The field's type differs between architectures; a magic number is 32 bits.
    Ok(u64::try_from(filled.f_type).unwrap_or_default() & 0xffff_ffff)
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
    let mut room = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: one statvfs is filled, whose address it is; zeros are one as well.
    let filled = unsafe {
        sys::check(libc::fstatvfs(file.as_fd().as_raw_fd(), room.as_mut_ptr()))?;
        room.assume_init()
    };
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(filled.f_frsize);
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
