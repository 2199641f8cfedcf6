//! The entries to send: the requested paths, and everything below them.

use crate::CopyError;
use crate::directory::{Directory, Links, Names, is_directory, split};
use crate::protocol::message::{EntryKind, MAX_FILE_BYTES};
use crate::protocol::path::RelativePath;
use glob::{MatchOptions, Pattern};
use rustix::fs::{FileType, Stat};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Ends of names that a copy gives to files it has not completed; they are not sent.
pub(crate) const PARTIAL: &[u8] = b".longhaul-part";
/// Most paths that the wildcards of one copy may match.
const MAX_MATCHES: usize = 10_000;
const TOO_MANY: &str = "more than 10 000 paths match; name the directory instead";

/// Names of a directory that are held at a time, and of one that is below [`DEEP`] others.
const NAMES: usize = 4_096;
const NAMES_BELOW: usize = 64;
const DEEP: usize = 8;

/// A directory that contains sources.
#[derive(Debug)]
pub(crate) enum ParentDirectory {
    /// Of this user's own choice.
    Open(Arc<Directory>),
    /// A path below a root. It is opened where it is needed: a client may ask for thousands.
    Below(Arc<Directory>, Vec<u8>),
}

impl ParentDirectory {
    pub(crate) fn open(&self) -> std::io::Result<Arc<Directory>> {
        match self {
            ParentDirectory::Open(directory) => Ok(Arc::clone(directory)),
            ParentDirectory::Below(root, path) => root.directory(path, Links::Follow).map(Arc::new),
        }
    }
}

/// One of the paths that were asked for.
#[derive(Debug)]
pub(crate) struct Source {
    /// The directory that contains it.
    pub(crate) parent: Arc<ParentDirectory>,
    /// Its name there.
    pub(crate) name: Vec<u8>,
    /// The name it is sent as.
    pub(crate) sent_as: Vec<u8>,
}

/// The entries found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) source: Arc<Source>,
    /// Its path below the source's parent.
    pub(crate) disk_path: Vec<u8>,
    /// Its path below the directory of the copy.
    pub(crate) path: RelativePath,
    pub(crate) kind: EntryKind,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, u32),
}

/// Sources among the files of this host, as far as its user may read them.
pub(crate) fn local_sources(paths: &[Vec<u8>]) -> Result<Vec<Source>, CopyError> {
    let mut parents = Parents::default();
    paths.iter().map(|path| local_source(path, &mut parents)).collect()
}

/// Refuses sources that would overwrite each other.
pub(crate) fn check_names(sources: &[Source]) -> Result<(), CopyError> {
    let mut names = HashSet::new();
    match sources.iter().find(|source| !names.insert(&source.sent_as)) {
        Some(twice) => {
            Err(CopyError::at(&twice.sent_as, "two sources have this name; copy one at a time"))
        }
        None => Ok(()),
    }
}

/// Sources of the same directory share it, since many match a wildcard.
#[derive(Default)]
struct Parents(Option<(Vec<u8>, Arc<ParentDirectory>)>);

impl Parents {
    fn find(
        &mut self,
        path: &[u8],
        open: impl FnOnce() -> std::io::Result<ParentDirectory>,
    ) -> std::io::Result<Arc<ParentDirectory>> {
        if let Some((known, directory)) = &self.0
            && known == path
        {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(open()?);
        self.0 = Some((path.to_vec(), Arc::clone(&directory)));
        Ok(directory)
    }
}

fn local_source(path: &[u8], parents: &mut Parents) -> Result<Source, CopyError> {
    use std::os::unix::ffi::OsStrExt;
    let given = Path::new(std::ffi::OsStr::from_bytes(path));
    let real = std::fs::canonicalize(given).map_err(|error| CopyError::at(path, error))?;
    let (parent, name) = split(real.as_os_str().as_bytes());
    let name = name.ok_or_else(|| CopyError::at(path, "name a file or directory below it"))?;
    let parent = parents
        .find(parent.as_os_str().as_bytes(), || {
            Directory::open(&parent).map(|directory| ParentDirectory::Open(Arc::new(directory)))
        })
        .map_err(|error| CopyError::at(path, error))?;
    // A symbolic link that the user names is followed, and keeps its name.
    let sent_as = split(path).1.unwrap_or_else(|| name.clone());
    Ok(Source { parent, name, sent_as })
}

/// Sources below a directory that none of them may leave.
pub(crate) fn sources_below(
    root: &Arc<Directory>,
    patterns: &[Vec<u8>],
) -> Result<Vec<Source>, CopyError> {
    let (mut sources, mut parents) = (Vec::new(), Parents::default());
    for pattern in patterns {
        for path in matches_below(root, pattern)? {
            let wrong = |error: std::io::Error| CopyError::at(pattern, error);
            let (parent, name) = path.split_last();
            let parent = parent.unwrap_or_default();
            let below = || ParentDirectory::Below(Arc::clone(root), parent.to_vec());
            let parent = parents.find(parent, || Ok(below())).map_err(wrong)?;
            parent.open().and_then(|parent| parent.stat(name)).map_err(wrong)?;
            sources.push(Source { parent, name: name.to_vec(), sent_as: name.to_vec() });
            if sources.len() > MAX_MATCHES {
                return Err(CopyError::at(pattern, TOO_MANY));
            }
        }
    }
    Ok(sources)
}

/// The paths below `root` that a pattern names.
pub(crate) fn matches_below(
    root: &Directory,
    pattern: &[u8],
) -> Result<Vec<RelativePath>, CopyError> {
    let names: Vec<&[u8]> =
        pattern.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let joined = names.join(&b'/');
    if joined.is_empty() {
        let all = root.names().map_err(|error| CopyError::at(pattern, error))?;
        return all
            .into_iter()
            .map(|name| RelativePath::new(name).map_err(|error| CopyError::at(pattern, error)))
            .collect();
    }
    let exact = RelativePath::new(joined).map_err(|error| CopyError::at(pattern, error))?;
    if !has_wildcard(pattern) || root_has(root, &exact) {
        return Ok(vec![exact]);
    }
    let mut found: Vec<Vec<u8>> = vec![Vec::new()];
    for name in names {
        let mut next = Vec::new();
        for base in &found {
            let matching = if has_wildcard(name) {
                let Ok(directory) = root.directory(base, Links::Follow) else { continue };
                let Ok(entries) = directory.names() else { continue };
                entries.into_iter().filter(|entry| matches_name(name, entry)).collect()
            } else {
                vec![name.to_vec()]
            };
            for entry in matching {
                let path = if base.is_empty() { entry } else { [base, &entry[..]].join(&b'/') };
                next.push(path);
            }
            if next.len() > MAX_MATCHES {
                return Err(CopyError::at(pattern, TOO_MANY));
            }
        }
        found = next;
    }
    let paths = found.into_iter().filter_map(|path| RelativePath::new(path).ok());
    let paths: Vec<_> = paths.filter(|path| root_has(root, path)).collect();
    if paths.is_empty() { Err(CopyError::at(pattern, "nothing matches")) } else { Ok(paths) }
}

fn root_has(root: &Directory, path: &RelativePath) -> bool {
    let (parent, name) = path.split_last();
    root.directory(parent.unwrap_or_default(), Links::Follow)
        .is_ok_and(|parent| parent.stat(name).is_ok())
}

fn has_wildcard(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Returns true if a name matches a pattern of glob(7).
pub(crate) fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    if pattern == name {
        return true;
    }
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    let (pattern, name) = (String::from_utf8_lossy(pattern), String::from_utf8_lossy(name));
    Pattern::new(&pattern).is_ok_and(|pattern| pattern.matches_with(&name, options))
}

/// A directory whose entries are being visited.
struct OpenDirectory {
    directory: Directory,
    disk_path: Vec<u8>,
    path: RelativePath,
    /// Those still to visit.
    names: Names,
}

/// Visits a source and all that is below it, directories before what they contain. What
/// cannot be sent goes to `skipped`, with its path and why.
pub(crate) fn walk<E>(
    source: Source,
    mut found: impl FnMut(Found) -> Result<(), E>,
    mut skipped: impl FnMut(String) -> Result<(), E>,
) -> Result<(), E> {
    let source = Arc::new(source);
    let Ok(top) = RelativePath::new(source.sent_as.clone()) else {
        return skipped(format!("{}: not a name", String::from_utf8_lossy(&source.sent_as)));
    };
    let top_parent = match source.parent.open() {
        Ok(parent) => parent,
        Err(error) => return skipped(format!("{top}: {error}")),
    };
    let mut open: Vec<OpenDirectory> = Vec::new();
    let mut next = Some((source.name.clone(), top));
    loop {
        let Some((disk_path, path)) = next.take() else {
            let Some(OpenDirectory { disk_path: disk, path, names, .. }) = open.last_mut() else {
                return Ok(());
            };
            match names.next() {
                None => drop(open.pop()),
                Some(Err(error)) => skipped(format!("{path}/…: {error}"))?,
                Some(Ok(name)) if name.ends_with(PARTIAL) => {}
                Some(Ok(name)) => match path.join(&name) {
                    Ok(path) => next = Some(([&disk[..], &name].join(&b'/'), path)),
                    Err(error) => skipped(format!("{path}/…: {error}"))?,
                },
            }
            continue;
        };
        let parent = open.last().map_or(&*top_parent, |open| &open.directory);
        let name = disk_path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let (stat, kind) = match parent.stat(name).and_then(|stat| {
            let kind = kind(parent, name, &stat)?;
            Ok((stat, kind))
        }) {
            Ok(both) => both,
            Err(error) => {
                skipped(format!("{path}: {error}"))?;
                continue;
            }
        };
        let mut below = None;
        if is_directory(&stat) {
            let most = if open.len() < DEEP { NAMES } else { NAMES_BELOW };
            let listed = parent
                .directory(name, Links::Refuse)
                .and_then(|directory| Ok((directory.names_by(most)?, directory)));
            match listed {
                Ok((names, directory)) => {
                    let (disk_path, path) = (disk_path.clone(), path.clone());
                    below = Some(OpenDirectory { directory, disk_path, path, names });
                }
                Err(error) => {
                    skipped(format!("{path}: {error}"))?;
                    continue;
                }
            }
        }
        let (mode, modified) = (stat.st_mode, modified(&stat));
        found(Found { source: Arc::clone(&source), disk_path, path, kind, mode, modified })?;
        open.extend(below);
    }
}

/// Time of the last modification.
pub(crate) fn modified(stat: &Stat) -> (i64, u32) {
    (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or_default())
}

fn kind(parent: &Directory, name: &[u8], stat: &Stat) -> std::io::Result<EntryKind> {
    let wrong = |why: &str| Err(std::io::Error::other(why.to_owned()));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => match u64::try_from(stat.st_size) {
            Ok(bytes) if bytes <= MAX_FILE_BYTES => Ok(EntryKind::File(bytes)),
            _ => wrong("files larger than 16 TiB are not copied"),
        },
        FileType::Directory => Ok(EntryKind::Directory),
        FileType::Symlink => parent.symlink_target(name).map(EntryKind::Symlink),
        _ => wrong("neither a file nor a directory; devices, pipes and sockets are not copied"),
    }
}

/// Sources among the files of this host that patterns name.
pub(crate) fn sources_anywhere(patterns: &[Vec<u8>]) -> Result<Vec<Source>, CopyError> {
    let mut paths = Vec::new();
    for pattern in patterns {
        use std::os::unix::ffi::OsStrExt;
        let exists = Path::new(std::ffi::OsStr::from_bytes(pattern)).symlink_metadata().is_ok();
        if exists || !has_wildcard(pattern) {
            paths.push(if pattern.is_empty() { b".".to_vec() } else { pattern.clone() });
            continue;
        }
        let text = std::str::from_utf8(pattern).map_err(|_| {
            CopyError::at(pattern, "wildcards cannot be combined with bytes that are not UTF-8")
        })?;
        let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
        let matches =
            glob::glob_with(text, options).map_err(|error| CopyError::at(pattern, error))?;
        let before = paths.len();
        for path in matches.flatten().take(MAX_MATCHES + 1) {
            paths.push(path.as_os_str().as_bytes().to_vec());
        }
        match paths.len() - before {
            0 => return Err(CopyError::at(pattern, "nothing matches")),
            count if count > MAX_MATCHES => {
                return Err(CopyError::at(pattern, TOO_MANY));
            }
            _ => {}
        }
    }
    local_sources(&paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_sources_below_a_root_have_no_descriptor() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..100 {
            std::fs::create_dir(root.path().join(number.to_string())).unwrap();
            std::fs::write(root.path().join(format!("{number}/file")), "").unwrap();
        }
        let top = Arc::new(Directory::open(root.path()).unwrap());
        let sources = sources_below(&top, &[b"*/*".to_vec()]).unwrap();
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
            let link = std::fs::read_link(entry.as_ref().unwrap().path());
            link.is_ok_and(|target| target.starts_with(root.path()))
        });
        assert_eq!((sources.len(), descriptors.count()), (100, 1));
    }

    #[test]
    fn names_are_held_some_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        (0..10).for_each(|n| std::fs::write(directory.path().join(n.to_string()), "").unwrap());
        let open = Directory::open(directory.path()).unwrap();
        let all = open.names().unwrap();
        for most in [1, 3, 10, 11] {
            let mut names: Vec<_> = open.names_by(most).unwrap().map(Result::unwrap).collect();
            names.sort();
            assert_eq!(names, all, "{most}");
        }
        assert!(all.is_sorted() && all.len() == 10);
    }
}
