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
        let path = if path.is_empty() { b"." } else { path };
        loop {
            match fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, mode, resolve) {
                Ok(file) => return Ok(file),
                // Something was renamed meanwhile.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS) => {
                    return Err(io::Error::other("this needs Linux 5.6 (openat2)"));
                }
                Err(Errno::XDEV) => {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "the path leads out of its directory",
                    ));
                }
                Err(Errno::LOOP) if links == Links::Refuse => {
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
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
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
