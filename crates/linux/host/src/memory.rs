//! The host's memory, and memory in huge pages.

use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use units::ByteCount;

/// Memory available without swapping: `MemAvailable`, or what the control group
/// has left if that is less; `None` if unknown.
#[must_use]
pub fn available() -> Option<ByteCount> {
    let machine = meminfo("MemAvailable:")?.bytes();
    Some(ByteCount::from_bytes(group_leaves().map_or(machine, |left| left.min(machine))))
}

/// Total memory (`MemTotal`); `None` if unknown.
#[must_use]
pub fn total() -> Option<ByteCount> {
    meminfo("MemTotal:")
}

/// Resident memory of this process (proc(5), `statm`); `None` if unknown.
#[must_use]
pub fn resident() -> Option<ByteCount> {
    resident_in(&std::fs::read_to_string("/proc/self/statm").ok()?)
}

/// The same of another process; `None` if it has ended.
#[must_use]
pub fn resident_of(process: u32) -> Option<ByteCount> {
    resident_in(&std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?)
}

fn resident_in(statm: &str) -> Option<ByteCount> {
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(ByteCount::from_bytes(pages.saturating_mul(crate::identity::page_bytes())))
}

fn meminfo(key: &str) -> Option<ByteCount> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(ByteCount::from_bytes(kibibytes.saturating_mul(1024)))
}

/// Memory left within a container's control group (version 2, seen from inside).
fn group_leaves() -> Option<u64> {
    let number = |file: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// Zeroed memory in pages of 2 MiB if available. With small pages, buffers of
/// hundreds of megabytes cost a page fault per 4 KiB and most of the TLB.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, like a Box's.
unsafe impl Send for Region {}

/// Size of a huge page in bytes on all supported architectures.
const HUGE: usize = 2 << 20;

impl Region {
    /// Allocates at least `bytes`, in whole huge pages.
    ///
    /// # Errors
    /// The system error if it is out of memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let length = bytes.max(1).next_multiple_of(HUGE);
        // Huge pages are aligned to their size: maps one more and unmaps what is outside
        // of the aligned part.
        let mapped = length + HUGE;
        // SAFETY: a fresh private mapping touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let before = base.align_offset(HUGE);
        // SAFETY: all three parts lie within the mapping; nobody has a pointer into it yet.
        let start = unsafe {
            let start = base.byte_add(before);
            if before > 0 {
                libc::munmap(base, before);
            }
            libc::munmap(start.byte_add(length), HUGE - before);
            // Without support for huge pages the kernel uses small ones.
            libc::madvise(start, length, libc::MADV_HUGEPAGE);
            start
        };
        NonNull::new(start.cast())
            .map(|start| Region { start, length })
            .ok_or_else(|| io::Error::other("memory at address 0"))
    }
}

impl Region {
    /// Populates all pages now rather than at first use (Linux 5.14; has no effect
    /// before).
    pub fn touch(&self) {
        // SAFETY: the region is ours; its content stays.
        unsafe {
            libc::madvise(self.start.as_ptr().cast(), self.length, libc::MADV_POPULATE_WRITE)
        };
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: mapped, zeroed and ours for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly what was kept of the mapping; nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_resident() {
        let (own, same) = (resident().unwrap(), resident_of(std::process::id()).unwrap());
        assert!(own.bytes() > 100_000 && same.bytes() > own.bytes() / 2, "{own} {same}");
        assert!(resident_in("12 3 4").unwrap().bytes() >= 3 * 4096);
        assert_eq!(resident_in("nonsense"), None);
    }

    #[test]
    fn a_region_is_zeroed_aligned_and_writable() {
        let mut region = Region::new(HUGE + 1).unwrap();
        assert_eq!((region.len(), region.as_ptr().align_offset(HUGE)), (2 * HUGE, 0));
        assert!(region.iter().all(|byte| *byte == 0));
        let last = region.len() - 1;
        region[last] = 7;
        assert_eq!((region[0], region[last]), (0, 7));
    }
}
