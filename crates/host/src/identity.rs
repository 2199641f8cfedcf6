//! Which machine this is, since which boot, and which of its networks.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The machine's own number, given at its installation (machine-id(5)); `None`
/// where it has none, as in many containers.
#[must_use]
pub fn machine_id() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"].into_iter().find_map(first_word)
}

/// A number that each boot draws anew (random(4)).
#[must_use]
pub fn boot_id() -> Option<String> {
    first_word("/proc/sys/kernel/random/boot_id")
}

/// The machine's name in its UTS namespace.
#[must_use]
pub fn hostname() -> Option<String> {
    first_word("/proc/sys/kernel/hostname")
}

/// The number of the calling thread's network namespace (namespaces(7)): one
/// of those that exist, and free for another once this one has ended.
#[must_use]
pub fn network_namespace() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|file| file.ino())
}

/// The same of another process; `None` where there is none, or it is another user's.
#[must_use]
pub fn network_namespace_of(pid: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.ino())
}

/// All memory, in bytes (`MemTotal` of proc_meminfo(5)).
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Bytes of a page of memory, in which the kernel counts.
#[must_use]
pub fn page_bytes() -> u64 {
    // SAFETY: asks for a number.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn first_word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    // In an image that has never been started it reads `uninitialized`.
    text.split_whitespace().next().filter(|word| *word != "uninitialized").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_boot_a_network_and_memory() {
        assert_eq!(boot_id(), boot_id());
        assert!(boot_id().unwrap().len() > 30);
        assert!(network_namespace().unwrap() > 0);
        assert!(page_bytes().is_power_of_two());
        assert!(memory_bytes().unwrap() > 1 << 20);
    }
}
