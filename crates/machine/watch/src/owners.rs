//! Finds the process that has a socket open, by the socket's inode in `/proc/PID/fd`.
//!
//! A scan reads a link for every open file of the host, so it runs only for sockets
//! that are displayed, once for each, and takes at most 2 % of the time.

use host::clock;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pause after a scan, in multiples of its duration.
const PAUSE_FACTOR: u32 = 50;

/// Maximum number of remembered sockets without a known owner.
const MAX_UNKNOWN: usize = 100_000;

/// The known owners of sockets.
#[derive(Debug)]
pub(crate) struct Owners {
    root: PathBuf,
    /// Process by socket, from the last scan.
    sockets: HashMap<u32, u32>,
    names: HashMap<u32, String>,
    /// Without an owner in the last scan: of another user, or of a kernel thread.
    unknown: HashSet<u32>,
    not_before: Option<Instant>,
    denied: bool,
}

impl Owners {
    /// `root` is `/proc`, except in tests.
    pub(crate) fn new(root: &Path) -> Self {
        Owners {
            root: root.to_owned(),
            sockets: HashMap::new(),
            names: HashMap::new(),
            unknown: HashSet::new(),
            not_before: None,
            denied: false,
        }
    }

    /// Whether some processes could not be read.
    pub(crate) fn were_denied(&self) -> bool {
        self.denied
    }

    /// The owner of a socket, if known: its PID and name.
    pub(crate) fn of(&self, inode: u32) -> Option<(u32, &str)> {
        let pid = *self.sockets.get(&inode)?;
        Some((pid, self.names.get(&pid).map_or("", String::as_str)))
    }

    /// Finds the owners of new sockets.
    pub(crate) fn resolve(&mut self, inodes: impl IntoIterator<Item = u32>) {
        let is_new = |inode: &u32| {
            *inode != 0 && !self.sockets.contains_key(inode) && !self.unknown.contains(inode)
        };
        let wanted: Vec<u32> = inodes.into_iter().filter(is_new).collect();
        let started = clock::now();
        if wanted.is_empty() || self.not_before.is_some_and(|time| started < time) {
            return;
        }
        self.scan();
        if self.unknown.len() > MAX_UNKNOWN {
            self.unknown.clear();
        }
        let absent = wanted.into_iter().filter(|inode| !self.sockets.contains_key(inode));
        self.unknown.extend(absent);
        let took = started.elapsed();
        // A scan of microseconds must not lead to one at every poll.
        self.not_before = started.checked_add(took.max(Duration::from_millis(1)) * PAUSE_FACTOR);
    }

    fn scan(&mut self) {
        (self.sockets, self.names) = Default::default();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let sockets = &mut self.sockets;
            let mut has_any = false;
            let scanned = sockets_of(&self.root, pid, |inode| {
                has_any = true;
                // If shared, the first process, which is usually the parent.
                sockets.entry(inode).or_insert(pid);
            });
            self.denied |= scanned.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
            if has_any {
                self.names.insert(pid, name_of(&self.root, pid));
            }
        }
    }
}

/// Calls `visit` with the inode of every socket that a process has open.
///
/// # Errors
/// `NotFound` if there is no such process, `PermissionDenied` if it belongs to
/// another user.
pub(crate) fn sockets_of(root: &Path, pid: u32, mut visit: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(root.join(pid.to_string()).join("fd"))?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let inode = target
            .to_str()
            .and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.into_iter().for_each(&mut visit);
    }
    Ok(())
}

/// The name of a process (`/proc/PID/comm`).
pub(crate) fn name_of(root: &Path, pid: u32) -> String {
    let text = fs::read(root.join(pid.to_string()).join("comm")).unwrap_or_default();
    String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn process(root: &Path, pid: u32, name: &str, links: &[&str]) {
        let fd = root.join(pid.to_string()).join("fd");
        fs::create_dir_all(&fd).unwrap();
        fs::write(root.join(pid.to_string()).join("comm"), format!("{name}\n")).unwrap();
        for (at, link) in links.iter().enumerate() {
            symlink(link, fd.join(at.to_string())).unwrap();
        }
    }

    #[test]
    fn sockets_have_owners_and_are_resolved_once() {
        let root = tempfile::tempdir().unwrap();
        let odd = ["/dev/null", "socket:[7]", "socket:[x]", "socket:[", "pipe:[8]"];
        process(root.path(), 10, "a\u{1b}server", &odd);
        fs::create_dir(root.path().join("self")).unwrap();
        let mut owners = Owners::new(root.path());
        owners.resolve([0]);
        assert_eq!(owners.of(7), None, "inode 0 starts no scan");
        owners.resolve([7, 8]);
        assert_eq!(owners.of(7), Some((10, "aserver")));
        assert!(owners.of(8).is_none() && !owners.were_denied());
        // 8 is known to have no owner: no scan.
        process(root.path(), 11, "late", &["socket:[8]"]);
        owners.not_before = None;
        owners.resolve([7, 8]);
        assert_eq!(owners.of(8), None);
        // A new socket starts a scan, which finds 8 as well.
        owners.resolve([9]);
        assert_eq!(owners.of(8), Some((11, "late")));
        // No scan during the pause.
        process(root.path(), 12, "later", &["socket:[12]"]);
        owners.not_before = clock::now().checked_add(Duration::from_secs(1000));
        owners.resolve([12]);
        assert!(owners.of(12).is_none() && !owners.unknown.contains(&12));
    }

    #[test]
    fn a_missing_process_is_not_found() {
        let error = sockets_of(Path::new("/proc"), u32::MAX, |_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
