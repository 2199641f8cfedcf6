//! Which process has a socket open: by the socket's number, from `/proc/PID/fd`.
//!
//! That is thousands of links to read on a host with thousands of sockets, so it is
//! done for sockets that are shown, once for each, and never for more than a
//! fiftieth of the time.

use host::clock;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A scan is followed by so many times its length without one.
const REST: u32 = 50;

/// Sockets whose owners were not found are remembered up to so many.
const MOST_MISSING: usize = 100_000;

/// The owners known so far.
#[derive(Debug)]
pub(crate) struct Owners {
    root: PathBuf,
    /// Every socket that the last scan saw.
    sockets: HashMap<u32, u32>,
    names: HashMap<u32, String>,
    /// Looked for and not found: another user's, or a kernel thread's.
    missing: HashSet<u32>,
    not_before: Option<Instant>,
    denied: bool,
}

impl Owners {
    /// Below `root`, which is `/proc` but in tests.
    pub(crate) fn new(root: &Path) -> Self {
        Owners {
            root: root.to_owned(),
            sockets: HashMap::new(),
            names: HashMap::new(),
            missing: HashSet::new(),
            not_before: None,
            denied: false,
        }
    }

    /// Whether some processes would not let us see.
    pub(crate) fn were_denied(&self) -> bool {
        self.denied
    }

    /// The owner of a socket, as far as known: its number and name.
    pub(crate) fn of(&self, inode: u32) -> Option<(u32, &str)> {
        let pid = *self.sockets.get(&inode)?;
        Some((pid, self.names.get(&pid).map_or("", String::as_str)))
    }

    /// Looks for the owners of sockets that are new.
    pub(crate) fn look_for(&mut self, inodes: impl IntoIterator<Item = u32>) {
        let unknown = |inode: &u32| {
            *inode != 0 && !self.sockets.contains_key(inode) && !self.missing.contains(inode)
        };
        let wanted: Vec<u32> = inodes.into_iter().filter(unknown).collect();
        let begun = clock::now();
        if wanted.is_empty() || self.not_before.is_some_and(|time| begun < time) {
            return;
        }
        self.scan();
        if self.missing.len() > MOST_MISSING {
            self.missing.clear();
        }
        let absent = wanted.into_iter().filter(|inode| !self.sockets.contains_key(inode));
        self.missing.extend(absent);
        let took = begun.elapsed();
        // The first rows are not to wait for a second scan where the machine is quick.
        self.not_before = begun.checked_add(took.max(Duration::from_millis(1)) * REST);
    }

    fn scan(&mut self) {
        (self.sockets, self.names) = Default::default();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let sockets = &mut self.sockets;
            let mut has_any = false;
            let seen = sockets_of(&self.root, pid, |inode| {
                has_any = true;
                // Shared by several: the first, which is mostly the parent.
                sockets.entry(inode).or_insert(pid);
            });
            self.denied |= seen.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
            if has_any {
                self.names.insert(pid, name_of(&self.root, pid));
            }
        }
    }
}

/// Tells every socket that a process has open.
///
/// # Errors
/// `NotFound` where there is no such process, `PermissionDenied` where it is
/// another user's.
pub(crate) fn sockets_of(root: &Path, pid: u32, mut tell: impl FnMut(u32)) -> io::Result<()> {
    for entry in fs::read_dir(root.join(pid.to_string()).join("fd"))?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let inode = target
            .to_str()
            .and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.into_iter().for_each(&mut tell);
    }
    Ok(())
}

/// A process' name, as it calls itself.
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
    fn sockets_have_owners_and_are_looked_for_once() {
        let root = tempfile::tempdir().unwrap();
        let odd = ["/dev/null", "socket:[7]", "socket:[x]", "socket:[", "pipe:[8]"];
        process(root.path(), 10, "a\u{1b}server", &odd);
        fs::create_dir(root.path().join("self")).unwrap();
        let mut owners = Owners::new(root.path());
        owners.look_for([0]);
        assert_eq!(owners.of(7), None, "nothing was asked for");
        owners.look_for([7, 8]);
        assert_eq!(owners.of(7), Some((10, "aserver")));
        assert!(owners.of(8).is_none() && !owners.were_denied());
        // 8 has come since; it was looked for before, and that was that.
        process(root.path(), 11, "late", &["socket:[8]"]);
        owners.not_before = None;
        owners.look_for([7, 8]);
        assert_eq!(owners.of(8), None);
        // A new one is: and the scan finds 8 as well.
        owners.look_for([9]);
        assert_eq!(owners.of(8), Some((11, "late")));
        // Not again at once.
        process(root.path(), 12, "later", &["socket:[12]"]);
        owners.not_before = clock::now().checked_add(Duration::from_secs(1000));
        owners.look_for([12]);
        assert!(owners.of(12).is_none() && !owners.missing.contains(&12));
    }

    #[test]
    fn a_process_that_is_not_there() {
        let nobody = sockets_of(Path::new("/proc"), u32::MAX, |_| {}).unwrap_err();
        assert_eq!(nobody.kind(), io::ErrorKind::NotFound);
    }
}
