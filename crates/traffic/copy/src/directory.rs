//! A directory and what is below it. No path leads out, whatever is on the disk and whoever
//! changes it meanwhile: openat2(2) with `RESOLVE_BENEATH`.

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Whether symbolic links are followed that stay below the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory(OwnedFd);

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// `O_NONBLOCK`: a pipe is opened at once, and then refused.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl Directory {
    /// Opens a directory that the user named.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Directory(fs::open(path, DIRECTORY | OFlags::RDONLY, Mode::empty())?))
    }

    /// Opens a directory that the user named, to write below it.
    pub(crate) fn open_to_write(path: &Path) -> io::Result<Self> {
        host::output_file::directory(path).map(Directory)
    }

    fn openat2(&self, path: &[u8], flags: OFlags, mode: Mode, links: Links) -> io::Result<OwnedFd> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == Links::Refuse {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        self.resolve(path, flags, mode, resolve)
    }

    fn resolve(
        &self,
        path: &[u8],
        flags: OFlags,
        mode: Mode,
        resolve: ResolveFlags,
    ) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        loop {
            match fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, mode, resolve) {
                Ok(file) => return Ok(file),
                // Something was renamed meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS) => {
                    return Err(io::Error::other("this needs Linux 5.6 (openat2)"));
                }
                Err(Errno::PERM) => {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "not permitted; a container's seccomp filter must allow openat2",
                    ));
                }
                Err(Errno::XDEV) => {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "the path leads out of its directory",
                    ));
                }
                Err(Errno::LOOP) if resolve.contains(ResolveFlags::NO_SYMLINKS) => {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "the path contains a symbolic link",
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A directory below it.
    pub(crate) fn directory(&self, path: &[u8], links: Links) -> io::Result<Self> {
        self.openat2(path, DIRECTORY | OFlags::RDONLY, Mode::empty(), links).map(Directory)
    }

    /// Opens a regular file to read.
    pub(crate) fn read(&self, path: &[u8], links: Links) -> io::Result<File> {
        let file = File::from(self.openat2(path, READ, Mode::empty(), links)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
    }

    /// Checks that a path leads to something below the directory, links followed, or to nothing:
    /// to a name that is not there, or in a circle.
    pub(crate) fn check_contains(&self, path: &[u8]) -> io::Result<()> {
        // Without NO_MAGICLINKS, whose error is that of a circle: BENEATH refuses them.
        match self.resolve(path, OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(_) => Ok(()),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Opens a name of this directory to read and write, if it is there.
    pub(crate) fn open_existing(&self, name: &[u8]) -> io::Result<Option<File>> {
        let flags = READ.difference(OFlags::RDONLY) | OFlags::RDWR | OFlags::NOFOLLOW;
        match self.openat2(name, flags, Mode::empty(), Links::Refuse) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a file that only this user can read.
    pub(crate) fn create(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        self.openat2(name, flags, Mode::RUSR | Mode::WUSR, Links::Refuse).map(File::from)
    }

    /// What a path is, without following a symbolic link at its end.
    pub(crate) fn stat(&self, name: &[u8]) -> io::Result<Stat> {
        Ok(fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// What the open directory is.
    pub(crate) fn own_stat(&self) -> io::Result<Stat> {
        Ok(fs::fstat(&self.0)?)
    }

    /// Creates a directory that only this user can use; one that is there is taken. Whether
    /// it is new.
    pub(crate) fn make_directory(&self, name: &[u8]) -> io::Result<bool> {
        match fs::mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) if is_directory(&self.stat(name)?) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn make_symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(fs::symlinkat(target, &self.0, name)?)
    }

    pub(crate) fn symlink_target(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Gives a file another name, whose old file goes.
    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> io::Result<()> {
        Ok(fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(crate) fn remove(&self, name: &[u8]) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> io::Result<Vec<Vec<u8>>> {
        self.names_by(usize::MAX)?.collect()
    }

    /// The names in it, so many of which are held, and sorted, at a time.
    pub(crate) fn names_by(&self, most: usize) -> io::Result<Names> {
        let mut names = Names { held: Vec::new(), most, rest: Some(fs::Dir::read_from(&self.0)?) };
        names.read()?;
        Ok(names)
    }
}

/// Names in a directory. While more are to be read, it is open.
pub(crate) struct Names {
    /// The next one is the last.
    held: Vec<Vec<u8>>,
    most: usize,
    rest: Option<fs::Dir>,
}

impl Names {
    fn read(&mut self) -> io::Result<()> {
        let Some(mut rest) = self.rest.take() else { return Ok(()) };
        while self.held.len() < self.most {
            let Some(entry) = rest.next() else {
                self.sort();
                return Ok(());
            };
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                self.held.push(name);
            }
        }
        self.sort();
        self.rest = Some(rest);
        Ok(())
    }

    fn sort(&mut self) {
        self.held.sort_unstable_by(|one, other| other.cmp(one));
    }
}

impl Iterator for Names {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.held.is_empty()
            && let Err(error) = self.read()
        {
            return Some(Err(error));
        }
        self.held.pop().map(Ok)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// A path that a user named, as the directory that contains it and its name there. `None`
/// as name: the path is a directory without a name of its own, such as `.` or `/`.
pub(crate) fn split(path: &[u8]) -> (PathBuf, Option<Vec<u8>>) {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    match path.file_name() {
        Some(name) => {
            let parent = path.parent().unwrap_or(Path::new(""));
            (parent.to_path_buf(), Some(name.as_bytes().to_vec()))
        }
        None => (path.to_path_buf(), None),
    }
}
