//! Receiver and sender without a connection, for tests and fuzz targets: their peer is a
//! function, which sends any messages in any order.

use crate::budget::Budget;
use crate::directory::Directory;
use crate::progress::{Figures, Progress};
use crate::receiver::Destination;
use crate::transport::Session;
pub use crate::transport::in_memory::Peer;
use crate::{CopyError, receiver, sender, walk};
use host::stop::StopFlag;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Symbolic links that the kernel follows in one path (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// What a copy may hold at most.
#[derive(Debug, Clone)]
pub struct Limits {
    held: Arc<Budget>,
    open_files: Arc<Budget>,
}

impl Limits {
    /// The memory of one copy, in bytes, and files that may be open besides one of each thread.
    #[must_use]
    pub fn new(held_bytes: usize, open_files: usize) -> Self {
        Limits { held: Budget::new(held_bytes), open_files: Budget::new(open_files) }
    }

    /// Those of a copy that shares the open files of a server with others.
    #[must_use]
    pub fn beside(&self) -> Self {
        let held = Budget::new(receiver::HELD_BYTES);
        Limits { held, open_files: Arc::clone(&self.open_files) }
    }

    /// The most bytes that were held at a time.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.held.peak()
    }

    /// The most files that were open at a time, besides one of each thread.
    #[must_use]
    pub fn peak_open_files(&self) -> usize {
        self.open_files.peak()
    }
}

impl Default for Limits {
    /// Those of a server, with many descriptors.
    fn default() -> Self {
        Limits::new(receiver::HELD_BYTES, 1 << 16)
    }
}

/// What came of a copy.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended early.
    pub result: Result<(), CopyError>,
    /// What was done.
    pub figures: Figures,
    /// Entries that failed, with the reason.
    pub problems: Vec<String>,
}

/// Receives what `peer` sends, into a directory.
///
/// # Errors
/// The directory cannot be opened.
pub fn receive(
    directory: &Path,
    limits: &Limits,
    peer: impl FnOnce(&Peer<'_>) + Send,
) -> io::Result<Outcome> {
    let destination = Destination {
        held: Arc::clone(&limits.held),
        ..Destination::new(Directory::open(directory)?, Arc::clone(&limits.open_files))
    };
    Ok(run(peer, |session, progress| receiver::receive(session, progress, &destination)))
}

/// Sends files, and what is below directories, to `peer`.
///
/// # Errors
/// One of them is not there.
pub fn send(paths: &[PathBuf], peer: impl FnOnce(&Peer<'_>) + Send) -> Result<Outcome, CopyError> {
    let paths: Vec<_> = paths.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
    let sources = walk::local_sources(&paths)?;
    Ok(run(peer, |session, progress| sender::send(session, progress, sources)))
}

fn run(
    peer: impl FnOnce(&Peer<'_>) + Send,
    copy: impl FnOnce(&Session, &Progress) -> Result<(), CopyError>,
) -> Outcome {
    let (session, progress) = (Session::new(StopFlag::new()), Progress::default());
    let done = StopFlag::new();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = Peer::new(&session);
            peer(&end);
            end.linger(|| done.is_raised());
        });
        // Even where it panics, or the peer would wait for ever.
        let _end = done.raised_on_drop();
        copy(&session, &progress)
    });
    Outcome { result, figures: progress.figures(), problems: progress.problems() }
}

/// The symbolic links below a directory that lead out of it, found as path_resolution(7) says,
/// without the kernel's help.
///
/// # Errors
/// Something cannot be read.
pub fn links_that_lead_out(root: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let (path, kind) = (directory.join(entry.file_name()), entry.file_type()?);
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_symlink() && leads_out(root, &path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn leads_out(root: &Path, link: &Path) -> bool {
    let (mut at, mut links) = (PathBuf::new(), 0);
    let mut rest: VecDeque<PathBuf> = link.iter().map(PathBuf::from).collect();
    while let Some(next) = rest.pop_front() {
        match next.components().next() {
            Some(Component::RootDir) => return true,
            Some(Component::ParentDir) if at.as_os_str().is_empty() => return true,
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                let path = at.join(name);
                match fs::read_link(root.join(&path)) {
                    Ok(target) => {
                        links += 1;
                        if links > MAX_LINKS {
                            return false;
                        }
                        for name in target.iter().rev() {
                            rest.push_front(PathBuf::from(name));
                        }
                    }
                    Err(_) if root.join(&path).is_dir() => at = path,
                    // A file, or nothing.
                    Err(_) => return false,
                }
            }
            _ => {}
        }
    }
    false
}
