//! Files past the page cache, so that what is measured is the disk.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Lets reads and writes of a file go past the page cache from now on (open(2),
/// `O_DIRECT`). Buffers, offsets and lengths have to be multiples of the
/// disk's blocks then: 4096 does for all.
///
/// # Errors
/// `InvalidInput` where the file system cannot; otherwise the system's own.
pub fn bypass_cache(file: &impl AsFd) -> io::Result<()> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: fcntl(2) with these takes and gives plain numbers.
    let flags = sys::check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    sys::check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_DIRECT) }).map(drop)
}

/// Asks the kernel to forget what it keeps of a file whose bytes are on disk
/// (posix_fadvise(2), `POSIX_FADV_DONTNEED`).
///
/// # Errors
/// The system's own.
pub fn forget(file: &impl AsFd) -> io::Result<()> {
    let fd = file.as_fd().as_raw_fd();
    // SAFETY: takes plain numbers; it returns the error instead of setting it.
    match unsafe { libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The kind of file system that a file is on, by its magic number (statfs(2)).
///
/// # Errors
/// The system's own.
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

/// A file system in memory (`TMPFS_MAGIC`, linux/magic.h).
pub const TMPFS: u64 = 0x0102_1994;
/// Another (`RAMFS_MAGIC`).
pub const RAMFS: u64 = 0x8584_58f6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;
    use std::fs::File;
    use std::io::Write;

    #[test]
    fn a_file_is_written_past_the_cache_or_says_that_it_cannot_be() {
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
