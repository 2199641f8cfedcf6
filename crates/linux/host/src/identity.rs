//! Identity of this host, of its boot and of its network namespaces.

use crate::sys;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The host's ID, set at installation (machine-id(5)); `None` if there is none,
/// as in many containers.
#[must_use]
pub fn machine_id() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"].into_iter().find_map(first_word)
}

/// A random ID of this boot (random(4)).
#[must_use]
pub fn boot_id() -> Option<String> {
    first_word("/proc/sys/kernel/random/boot_id")
}

/// The host name in this UTS namespace.
#[must_use]
pub fn hostname() -> Option<String> {
    first_word("/proc/sys/kernel/hostname")
}

/// Inode number of the calling thread's network namespace (namespaces(7)).
/// Unique among existing namespaces; may be reused later.
#[must_use]
pub fn network_namespace() -> Option<u64> {
    fs::metadata("/proc/thread-self/ns/net").ok().map(|file| file.ino())
}

/// The cookie of the calling thread's network namespace, which no other one of this boot has or
/// will have (`SO_NETNS_COOKIE`, socket(7)); `None` before Linux 5.14.
#[must_use]
pub fn network_namespace_cookie() -> Option<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = UnixDatagram::unbound().ok()?;
    sys::number_option(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE).ok()
}

/// Whether a process or a mount has a network namespace of that inode number; `None` where none
/// was found, but not every process can be examined.
#[must_use]
pub fn network_namespace_exists(inode: u64) -> Option<bool> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    if mounts.contains(&format!(" net:[{inode}] ")) {
        return Some(true);
    }
    let mut is_complete = true;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match network_namespace_of(pid) {
            Some(found) if found == inode => return Some(true),
            Some(_) => {}
            // It ended, or belongs to another user.
            None => is_complete &= !entry.path().exists(),
        }
    }
    is_complete.then_some(false)
}

/// Inode number of another process's network namespace; `None` if it does not exist or belongs to another user.
#[must_use]
pub fn network_namespace_of(pid: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| file.ino())
}

/// Total memory, bytes (`MemTotal` of proc_meminfo(5)).
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Page size, bytes.
#[must_use]
pub fn page_bytes() -> u64 {
    u64::try_from(rustix::param::page_size()).unwrap_or(4096)
}

/// Whether this process runs as root. Root of a user namespace that maps to one
/// ordinary user, as in a lab, has no more rights to files than that user.
#[must_use]
pub fn is_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    crate::directory::effective_uid() == 0 && !maps_to_one_user(&map)
}

/// Returns true for uid 0 that cannot become another user, as in a sandbox: it lacks CAP_SETUID or
/// CAP_SETGID, or its user namespace has no user nobody.
#[must_use]
pub fn must_stay_root() -> bool {
    const CAPABILITIES: u64 = 1 << 6 | 1 << 7;
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    let is_mapped = |map: String| {
        map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().ok());
            let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
            let nobody = u64::from(crate::privileges::NOBODY);
            matches!((first, count), (Some(Some(first)), Some(Some(count)))
                if (first..first.saturating_add(count)).contains(&nobody))
        })
    };
    let can_change = effective.is_some_and(|all| all & CAPABILITIES == CAPABILITIES)
        && is_mapped(read("/proc/self/uid_map"))
        && is_mapped(read("/proc/self/gid_map"));
    crate::directory::effective_uid() == 0 && !can_change
}

/// Whether uid 0 maps to a single other user (user_namespaces(7), `uid_map`).
fn maps_to_one_user(map: &str) -> bool {
    let mut lines = map.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    match (lines.next().as_deref(), lines.next()) {
        (Some([inside, outside, count]), None) => {
            *inside == "0" && *outside != "0" && *count == "1"
        }
        _ => false,
    }
}

/// Root's home directory according to passwd(5), regardless of `HOME`.
#[must_use]
pub fn root_home() -> PathBuf {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    home_of_root(&text).unwrap_or_else(|| PathBuf::from("/root"))
}

fn home_of_root(passwd: &str) -> Option<PathBuf> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let root = passwd.lines().map(fields).find(|line| line.get(2).is_some_and(|uid| uid == "0"))?;
    root.get(5).map(PathBuf::from).filter(|home| home.is_absolute())
}

fn first_word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    // In an image that has never been booted it is `uninitialized`.
    text.split_whitespace().next().filter(|word| *word != "uninitialized").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_single_user_namespace_is_not_root() {
        assert!(maps_to_one_user("         0       1000          1\n"));
        for map in
            ["0 0 4294967295\n", "0 0 1\n", "0 1000 1\n1 100000 65536\n", "0 100000 65536\n", ""]
        {
            assert!(!maps_to_one_user(map), "{map}");
        }
        let passwd = "daemon:x:1:1::/usr/sbin:\nroot:x:0:0:root:/var/roothome:/bin/sh\n";
        assert_eq!(home_of_root(passwd), Some(PathBuf::from("/var/roothome")));
        assert_eq!(home_of_root("broken\n"), None);
    }

    #[test]
    fn this_host_has_an_identity() {
        assert_eq!(boot_id(), boot_id());
        assert!(boot_id().unwrap().len() > 30);
        assert!(network_namespace().unwrap() > 0);
        assert!(page_bytes().is_power_of_two());
        assert!(memory_bytes().unwrap() > 1 << 20);
    }
}
